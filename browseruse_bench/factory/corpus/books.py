"""Jobs that are done once: each leaves its files and then a manifest, or nothing.

A file is written beside its place, synced and renamed; the manifest, written last, names the
files with their sizes and what the job counted. A job with a manifest is never done again: that
is all there is to going on after a stop.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from browseruse_bench.errors import DataError
from browseruse_bench.store.files import write_atomic


@contextlib.contextmanager
def placed(path: Path) -> Generator[Path]:
    """A path to write to; the file is synced and put in place at the end of the block."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        yield temporary
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


@dataclass(frozen=True, kw_only=True)
class Job(ABC):
    """One piece of work with files of its own; it can be pickled."""

    manifest: Path
    """Where its manifest is, once it is done."""

    @abstractmethod
    def work(self) -> Mapping[str, Any]:
        """Write the files, each through `placed`; return what was counted, as plain JSON."""

    @abstractmethod
    def outputs(self) -> tuple[Path, ...]:
        """The files that it leaves."""


def settle(job: Job) -> dict[str, Any]:
    """What a job counted, done now or before.

    Raises:
        DataError: a file that its manifest names is gone or has another size.
    """
    if job.manifest.exists():
        return _checked(job.manifest)
    job.manifest.parent.mkdir(parents=True, exist_ok=True)
    counted = dict(job.work())
    files = {path.name: path.stat().st_size for path in job.outputs()}
    write_atomic(job.manifest, json.dumps({"files": files, "counted": counted}, sort_keys=True))
    return counted


def _checked(manifest: Path) -> dict[str, Any]:
    content = json.loads(manifest.read_text())
    for name, size in content["files"].items():
        path = manifest.parent / name
        if not path.exists() or path.stat().st_size != size:
            raise DataError(
                f"{path}: is not as {manifest.name} says; restore it, or remove {manifest}: that "
                "part is then done again"
            )
    return dict(content["counted"])
