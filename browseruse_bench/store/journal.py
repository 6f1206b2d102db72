"""An append-only file of JSON lines, one per settled unit, safe to cut at any byte."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

from browseruse_bench.errors import DataError
from browseruse_bench.records.base import canonical_json
from browseruse_bench.store.redact import Redactor


class Journal:
    """Appends whole lines and syncs each to disk; a torn last line counts as never written."""

    def __init__(self, path: Path) -> None:
        """Open for appending; a torn last line is cut off first."""
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("ab")
        self._mend()

    def _mend(self) -> None:
        data = self.path.read_bytes()
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            os.truncate(self.path, whole)

    def append(self, entry: dict[str, Any]) -> None:
        """Add one entry, without our own secrets; when this returns it is on disk."""
        line = Redactor.of_environment().own(canonical_json(entry))
        self._file.write(line.encode(errors="replace") + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def read_journal(path: Path) -> list[dict[str, Any]]:
    """The entries of a journal, in order; a torn last line is left out.

    Raises:
        DataError: a whole line is not a JSON object; its number is named.
    """
    if not path.exists():
        return []
    entries: list[dict[str, Any]] = []
    *lines, _torn = path.read_bytes().split(b"\n")
    for number, line in enumerate(lines, 1):
        try:
            entry: Any = json.loads(line)
        except ValueError as error:
            raise DataError(
                f"{path}: line {number} is damaged ({error}); restore it, or remove that line: "
                "what it settled is then owed again"
            ) from error
        if not isinstance(entry, dict):
            raise DataError(f"{path}: line {number} is not an object")
        entries.append(cast("dict[str, Any]", entry))
    return entries
