"""An append-only file of JSON lines, one per settled unit, safe to cut at any byte."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self, cast

from browseruse_bench.errors import DataError
from browseruse_bench.records.base import canonical_json
from browseruse_bench.store.redact import Redactor

_BLOCK_BYTES = 2**16


class Journal:
    """Appends whole lines and syncs each to disk; a torn last line counts as never written."""

    def __init__(self, path: Path) -> None:
        """Open for appending; a torn last line is cut off first."""
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        self._mend()

    def _mend(self) -> None:
        """Cut off what stands behind the last line end, looking for it from the end."""
        size = end = os.fstat(self._descriptor).st_size
        while end > 0:
            start = max(0, end - _BLOCK_BYTES)
            found = os.pread(self._descriptor, end - start, start).rfind(b"\n")
            if found >= 0:
                end = start + found + 1
                break
            end = start
        if end < size:
            os.ftruncate(self._descriptor, end)

    def append(self, entry: dict[str, Any]) -> None:
        """Add one entry, without our own secrets; when this returns it is on disk.

        Raises:
            OSError: it cannot be written (a full disk, say); then nothing of it is there.
        """
        self.append_all((entry,))

    def append_all(self, entries: Iterable[dict[str, Any]]) -> None:
        """Add several entries and sync once; raises as `append`, and then none of them is there."""
        own = Redactor.of_environment().own
        lines = "".join(f"{own(canonical_json(entry))}\n" for entry in entries)
        left = memoryview(lines.encode(errors="replace"))
        size = os.fstat(self._descriptor).st_size
        try:
            while left:
                left = left[os.write(self._descriptor, left) :]
            os.fsync(self._descriptor)
        except OSError:
            os.ftruncate(self._descriptor, size)
            raise

    def close(self) -> None:
        """Close the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
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
