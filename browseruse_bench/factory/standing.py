"""Where the units that come into a stage now stand, by its journal.

Only what still comes in counts: what an earlier stage does not keep any more is withdrawn here,
and its outcome stays in the journal for the day on which it comes back. What a task carries along
(counts, times) is that of now, whenever it settled. Units of one key are one unit of work.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, cast

from browseruse_bench.errors import StageError
from browseruse_bench.factory.entry import Entry
from browseruse_bench.factory.index import Index
from browseruse_bench.factory.stage import MERGED, Flow, Fold, Stage
from browseruse_bench.records.base import Record, canonical_json
from browseruse_bench.records.candidate import Candidate

if TYPE_CHECKING:
    from browseruse_bench.factory.stage_folder import StageFolder

_SCHEMA = """
CREATE TABLE arrived (unit TEXT PRIMARY KEY, n INTEGER, record TEXT);
CREATE TABLE merged (unit TEXT, evidence TEXT);
"""
_OWED = (
    "FROM arrived LEFT JOIN settled USING (unit) "
    "WHERE settled.status IS NULL OR settled.status = 'failed'"
)


class Standing(Index):
    """The units of a stage, on disk; one at a time in memory."""

    def __init__(
        self, step: Stage[Any, Any] | Fold[Any, Any], folder: StageFolder, units: Iterable[Record]
    ) -> None:
        """Take in all units and the journal.

        Raises:
            DataError: a line of the journal is damaged.
            StageError: two different units have one key, and cannot be joined.
        """
        super().__init__(folder.journal_path, step.version, beside=folder.path.parent)
        self.step = step
        self.folder = folder
        self.db.executescript(_SCHEMA)
        self.db.execute("BEGIN")
        for unit in units:
            self._arrive(unit)
        self.db.execute("COMMIT")

    def _arrive(self, unit: Record) -> None:
        new = self.db.execute(
            "INSERT OR IGNORE INTO arrived VALUES (?, 1, ?)", (unit.key, unit.as_line())
        )
        if new.rowcount == 1:
            return
        (before,) = self.db.execute("SELECT record FROM arrived WHERE unit = ?", (unit.key,))
        one, evidence = _joined(self._record(before[0]), unit, self.step.name)
        self.db.execute(
            "UPDATE arrived SET n = n + 1, record = ? WHERE unit = ?", (one.as_line(), unit.key)
        )
        self.db.execute("INSERT INTO merged VALUES (?, ?)", (unit.key, canonical_json(evidence)))

    def _record(self, line: str) -> Record:
        return cast("Record", self.step.takes.model_validate_json(line))

    def units(self) -> Iterator[Record]:
        """All units, sorted by key."""
        for (line,) in self.db.execute("SELECT record FROM arrived ORDER BY unit"):
            yield self._record(line)

    def owed(self) -> Iterator[Record]:
        """Those that have no outcome, sorted by key."""
        for (line,) in self.db.execute(f"SELECT record {_OWED} ORDER BY arrived.unit"):
            yield self._record(line)

    @property
    def n_units(self) -> int:
        """Units of work."""
        return self._number("SELECT count(*) FROM arrived")

    @property
    def n_owed(self) -> int:
        """Units without an outcome."""
        return self._number(f"SELECT count(*) {_OWED}")

    @property
    def n_new(self) -> int:
        """Units of which the journal says nothing."""
        return self._number(
            "SELECT count(*) FROM arrived WHERE unit NOT IN (SELECT unit FROM settled)"
        )

    @property
    def n_withdrawn(self) -> int:
        """Units with an outcome that do not come in any more."""
        return self._number(
            "SELECT count(*) FROM settled WHERE status != 'failed' "
            "AND unit NOT IN (SELECT unit FROM arrived)"
        )

    @property
    def n_merged(self) -> int:
        """Units that came in beside another of the same key."""
        return self._number("SELECT count(*) FROM merged")

    def _number(self, query: str) -> int:
        return int(self.db.execute(query).fetchone()[0])

    def is_in(self, unit: str) -> bool:
        """Whether it comes in now."""
        found = self.db.execute("SELECT 1 FROM arrived WHERE unit = ?", (unit,))
        return found.fetchone() is not None

    @property
    def keys_sha256(self) -> str:
        """SHA-256 over the sorted keys."""
        digest = hashlib.sha256()
        for place, (unit,) in enumerate(self.db.execute("SELECT unit FROM arrived ORDER BY unit")):
            digest.update(f"{chr(10) if place else ''}{unit}".encode())
        return digest.hexdigest()

    def flow(self) -> Flow:
        """Where everything that came in is now."""
        statuses: dict[str, int] = {}
        reasons: dict[str, int] = {MERGED: n} if (n := self.n_merged) else {}
        query = (
            "SELECT status, reason, count(*) FROM arrived JOIN settled USING (unit) "
            "GROUP BY status, reason"
        )
        for status, reason, n in self.db.execute(query):
            statuses[status] = statuses.get(status, 0) + n
            if status == "dropped":
                reasons[reason or ""] = n
        n_units = self.n_units
        return Flow(
            n_in=n_units + self.n_merged,
            kept=statuses.get("kept", 0),
            dropped=dict(sorted(reasons.items())),
            failed=statuses.get("failed", 0),
            pending=n_units - sum(statuses.values()),
        )

    def outcomes(self) -> Iterator[Entry]:
        """How each unit that comes in settled, sorted by key; kept ones carry what they carry
        now.
        """
        query = "SELECT record, place FROM arrived JOIN settled USING (unit) ORDER BY arrived.unit"
        for line, entry in self.at(query):
            yield self._carrying(line, entry) if entry.status == "kept" else entry

    def _carrying(self, line: str, entry: Entry) -> Entry:
        unit, value = self._record(line), self.step.gives.model_validate(entry.value)
        if isinstance(unit, Candidate) and isinstance(value, Candidate):
            return entry.model_copy(update={"value": value.carrying(unit).as_json()})
        return entry

    def kept(self) -> Iterator[Record]:
        """What goes on, sorted by the unit of which it was made."""
        for entry in self.outcomes():
            if entry.status == "kept":
                yield self.step.gives.model_validate(entry.value)

    def derive(self) -> None:
        """Write kept.jsonl and dropped.jsonl: the same bytes for the same units and journal."""
        kept, dropped = self.folder.path / "kept.jsonl", self.folder.path / "dropped.jsonl"
        temporary = [path.with_suffix(".tmp") for path in (kept, dropped)]
        with temporary[0].open("w") as to_kept, temporary[1].open("w") as to_dropped:
            for entry in self.outcomes():
                if entry.status == "kept":
                    line = {"key": entry.out, "unit": entry.unit, "value": entry.value}
                    to_kept.write(canonical_json(line) + "\n")
                elif entry.status == "dropped":
                    line = {"unit": entry.unit, "reason": entry.reason, "evidence": entry.evidence}
                    to_dropped.write(canonical_json(line) + "\n")
            for unit, evidence in self.db.execute("SELECT * FROM merged ORDER BY unit, evidence"):
                line = {"unit": unit, "reason": MERGED, "evidence": json.loads(evidence)}
                to_dropped.write(canonical_json(line) + "\n")
        for path, made in zip((kept, dropped), temporary, strict=True):
            made.replace(path)


def _joined(one: Record, other: Record, stage: str) -> tuple[Record, dict[str, Any]]:
    """(one record for both, what the one carried that is not named any more)."""
    if isinstance(one, Candidate) and isinstance(other, Candidate):
        both = one.joined(other)
        return both, (one if both.origin == other.origin else other).carried
    if one != other:
        raise StageError(
            f"stage {stage}: two units that differ have the key {one.key[:12]}, and a "
            f"{type(one).__name__} cannot be joined: one would pass for the other"
        )
    return one, {}
