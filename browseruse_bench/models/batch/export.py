"""What waits in a batch, written as files that a provider takes."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from browseruse_bench.errors import ConfigError, DataError
from browseruse_bench.models.batch.folder import OPEN, BatchFolder, Form, Part, Queued, utc_now
from browseruse_bench.models.batch.form import Codec, Line, form_of
from browseruse_bench.models.ledger import Ledger
from browseruse_bench.models.spec import ModelSpec
from browseruse_bench.models.spending import cost_of, most_usd
from browseruse_bench.records.base import canonical_json

MAX_LINES = 50_000
MAX_BYTES = 200 * 10**6
"""What OpenAI takes in one file; Anthropic takes more."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How great one file may be."""

    n_lines: int = MAX_LINES
    n_bytes: int = MAX_BYTES


@dataclass(kw_only=True)
class Exported:
    """What one export did."""

    parts: list[Part] = field(default_factory=list[Part])
    n_waiting: int = 0
    """Requests that wait for an answer, in these parts or in earlier ones."""
    n_out: int = 0
    """Of these: in parts that went out before and may still be answered."""
    n_answered: int = 0
    """Had an answer in the ledger, and wait no more."""
    problems: list[str] = field(default_factory=list[str])
    """Requests that cannot be put into a file, and why."""


async def export(
    folder: BatchFolder,
    spec: ModelSpec,
    *,
    limits: Limits | None = None,
    again: bool = False,
) -> Exported:
    """Everything that waits and is in no open part is in a new one.

    To be called by whoever is alone with the folder.

    Args:
        folder: the batch.
        spec: from `form.settled`.
        limits: how great one file may be.
        again: also what is in parts that were written and never submitted.

    Raises:
        DataError: the folder is damaged.
        ConfigError: the model takes no batches.
    """
    limits = limits or Limits()
    parts = folder.parts()
    if again:
        for part in parts:
            if part.status == "exported":
                folder.write_part(part.model_copy(update={"status": "withdrawn"}))
        parts = folder.parts()
    out = {key for p in parts if p.status in OPEN for key in folder.part_keys(p)}
    writer = _Writer(folder, spec, limits, first=max((p.number for p in parts), default=0) + 1)
    done = Exported(parts=writer.parts)
    ledgers = ledgers_of(folder)
    try:
        for queued in folder.waiting():
            if queued.refused is not None:
                continue
            if ledgers[queued.restricted].find(queued.id) is not None:
                folder.remove(queued.id)
                done.n_answered += 1
                continue
            done.n_waiting += 1
            if queued.id in out:
                done.n_out += 1
                continue
            try:
                await writer.add(queued)
            except ConfigError as error:
                done.problems.append(f"{queued.id[:12]} ({queued.purpose}): {error}")
        writer.close()
    finally:
        writer.abandon()
    return done


def ledgers_of(folder: BatchFolder) -> tuple[Ledger, Ledger]:
    """Where the answers of a batch go: (ordinary, restricted)."""
    info = folder.info
    calls = Ledger(Path(info.calls))
    if info.restricted_calls is None:
        return calls, calls
    return calls, Ledger(Path(info.restricted_calls), private=True)


class _Writer:
    """Writes parts, each whole before its state says that it is there."""

    def __init__(self, folder: BatchFolder, spec: ModelSpec, limits: Limits, *, first: int) -> None:
        self._folder = folder
        self._spec = spec
        self._form: Form = form_of(spec)
        self._codec = Codec(spec)
        self._limits = limits
        self._number = first
        self._file: IO[bytes] | None = None
        self._endpoint = ""
        self._keys: list[str] = []
        self._n_bytes = 0
        self._sha256 = hashlib.sha256()
        self._scopes: set[str] = set()
        self._most: list[float | None] = []
        self._cost = cost_of(spec)
        self.parts: list[Part] = []

    async def add(self, queued: Queued) -> None:
        """The request is in the part that is written, or in the next one.

        Raises:
            ConfigError: no part can hold it.
        """
        request = self._folder.request(queued)
        line = await self._codec.line(request)
        content = canonical_json(line.as_json(queued.id, self._form)).encode() + b"\n"
        if len(content) > self._limits.n_bytes:
            raise ConfigError(
                f"{len(content):,} bytes, more than a file may have ({self._limits.n_bytes:,})"
            )
        full = len(self._keys) >= self._limits.n_lines
        if full or self._n_bytes + len(content) > self._limits.n_bytes or self._is_other(line):
            self.close()
        if self._file is None:
            self._open(line.endpoint)
        assert self._file is not None
        self._file.write(content)
        self._keys.append(queued.id)
        self._n_bytes += len(content)
        self._sha256.update(content)
        self._scopes.add(queued.scope)
        self._most.append(
            most_usd(request, self._cost, max_tokens=self._spec.asking.params.max_tokens)
        )

    def close(self) -> None:
        """The part that is written is whole, and its state says so."""
        if self._file is None:
            return
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        self._file = None
        self._temporary.replace(self._temporary.with_suffix(""))
        self._folder.write_keys(self._number, self._keys)
        mode = self._spec.asking.schema_
        assert mode is not None
        part = Part(
            number=self._number,
            form=self._form,
            endpoint=self._endpoint,
            mode=mode,
            n=len(self._keys),
            n_bytes=self._n_bytes,
            sha256=self._sha256.hexdigest(),
            most_usd=None if None in self._most else sum(most or 0.0 for most in self._most),
            scope=next(iter(self._scopes)) if len(self._scopes) == 1 else "",
            status="exported",
            created_at=utc_now(),
        )
        self.parts.append(self._folder.write_part(part))
        self._number += 1

    def abandon(self) -> None:
        """Leave nothing of a part that was not closed."""
        if self._file is not None:
            self._file.close()
            self._file = None
            self._temporary.unlink(missing_ok=True)

    def _is_other(self, line: Line) -> bool:
        return self._file is not None and line.endpoint != self._endpoint

    def _open(self, endpoint: str) -> None:
        path = self._temporary
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        self._file = os.fdopen(descriptor, "wb")
        self._endpoint = endpoint
        self._keys, self._n_bytes, self._sha256 = [], 0, hashlib.sha256()
        self._scopes, self._most = set(), []

    @property
    def _temporary(self) -> Path:
        return self._folder.path / "parts" / f"{self._number:04d}.jsonl.part"


def check_whole(folder: BatchFolder, part: Part) -> None:
    """Return if the file of a part is as it was written.

    Raises:
        DataError: it is missing or was changed.
    """
    path = folder.lines_path(part)
    if not path.is_file():
        raise DataError(f"{path}: is gone; `export --again` writes it anew")
    with path.open("rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != part.sha256:
            raise DataError(f"{path}: was changed since it was written; restore it")
