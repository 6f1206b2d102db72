"""A journal's lines by unit, on disk: what a stage needs to go on, whatever its size.

The file has no name and is gone with the process; it is made where the stage's folder is, so that
nothing restricted is ever outside its part of the workspace.
"""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from pydantic import ValidationError

from browseruse_bench.errors import DataError
from browseruse_bench.factory.entry import Entry
from browseruse_bench.records.trace import Usage, summed

_CACHE_KIB = 16_384
_BATCH = 2_000
_SCHEMA = """
CREATE TABLE settled (unit TEXT PRIMARY KEY, status TEXT, reason TEXT, place INTEGER)
    WITHOUT ROWID;
CREATE TABLE paid (call TEXT PRIMARY KEY) WITHOUT ROWID;
"""


def nameless(folder: Path) -> sqlite3.Connection:
    """A database on the disk of a folder that nobody else can open."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f".index-{secrets.token_hex(8)}"
    made = sqlite3.connect(path, isolation_level=None)
    made.execute("PRAGMA journal_mode = OFF")
    made.execute("PRAGMA synchronous = OFF")
    made.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
    # The file is there from here on, and can lose its name.
    made.execute("CREATE TABLE made (at INTEGER)")
    path.unlink()
    return made


class Index:
    """The newest line of each unit under one version, and what all lines together cost."""

    def __init__(self, journal: Path, version: int, *, beside: Path) -> None:
        """Read the journal.

        Args:
            journal: the file; it need not be there.
            version: lines of others only count as paid.
            beside: folder on whose disk the index is.

        Raises:
            DataError: a whole line is damaged.
        """
        self.journal = journal
        self.version = version
        self.usage: tuple[Usage, ...] = ()
        """Of all calls that any line names, failures and other versions too: each call once."""
        self.seconds = 0.0
        """Over all lines."""
        self.db = nameless(beside)
        self.db.executescript(_SCHEMA)
        self._read = self._n_lines = 0
        self.refresh()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.db.close()

    def refresh(self) -> None:
        """Take in what was written since; a torn last line is left out."""
        batch: list[tuple[str, str, str | None, int]] = []
        self.db.execute("BEGIN")
        for place, entry in self._lines():
            self._count(entry)
            if entry.version == self.version:
                batch.append((entry.unit, entry.status, entry.reason, place))
            if len(batch) >= _BATCH:
                self._put(batch)
                batch.clear()
        self._put(batch)
        self.db.execute("COMMIT")

    def _put(self, batch: Iterable[tuple[str, str, str | None, int]]) -> None:
        self.db.executemany("INSERT OR REPLACE INTO settled VALUES (?, ?, ?, ?)", batch)

    def _count(self, entry: Entry) -> None:
        self.seconds += entry.seconds
        calls = (*entry.calls, *[""] * (len(entry.usage) - len(entry.calls)))
        new = [u for u, call in zip(entry.usage, calls, strict=True) if self._is_new(call)]
        if new:
            self.usage = summed([*self.usage, *new])

    def _is_new(self, call: str) -> bool:
        if not call:
            return True
        return self.db.execute("INSERT OR IGNORE INTO paid VALUES (?)", (call,)).rowcount == 1

    def _lines(self) -> Iterator[tuple[int, Entry]]:
        if not self.journal.exists():
            return
        with self.journal.open("rb") as file:
            file.seek(self._read)
            for line in file:
                if not line.endswith(b"\n"):
                    return
                place, self._read = self._read, self._read + len(line)
                self._n_lines += 1
                try:
                    yield place, Entry.model_validate_json(line)
                except ValidationError as error:
                    raise DataError(
                        f"{self.journal}: line {self._n_lines} is damaged; restore it, or remove "
                        "that line: what it settled is then owed again "
                        f"({error.errors()[0]['msg']})"
                    ) from error

    @property
    def n_settled(self) -> int:
        """Units that are kept or dropped, whether they still come in or not."""
        query = "SELECT count(*) FROM settled WHERE status != 'failed'"
        return int(self.db.execute(query).fetchone()[0])

    def entries(self) -> Iterator[Entry]:
        """The newest line of each unit, sorted by unit; one at a time in memory."""
        for _, entry in self.at("SELECT '', place FROM settled ORDER BY unit"):
            yield entry

    def at(self, query: str, values: tuple[str, ...] = ()) -> Iterator[tuple[str, Entry]]:
        """(text, entry) of each (text, place) that a query gives."""
        if not self.journal.exists():
            return
        with self.journal.open("rb") as file:
            for text, place in self.db.execute(query, values):
                file.seek(place)
                yield text, Entry.model_validate_json(file.readline())

    def entry(self, unit: str) -> Entry | None:
        """The newest line of a unit; None: it has none."""
        query = "SELECT '', place FROM settled WHERE unit = ?"
        return next((entry for _, entry in self.at(query, (unit,))), None)
