"""A trace on disk: written once, frozen by its manifest, and checked when it is read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from browseruse_bench.errors import DataError
from browseruse_bench.records.base import canonical_json
from browseruse_bench.records.trace import Step, Trace
from browseruse_bench.store.files import read_json, sha256_file, write_atomic, write_durable

MANIFEST = "MANIFEST.json"


def put_evidence(folder: Path, content: bytes, suffix: str) -> str:
    """Store `content` in evidence/ under its hash and return the file's name."""
    name = f"{hashlib.sha256(content).hexdigest()}.{suffix}"
    path = folder / "evidence" / name
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, content)
    return name


def freeze(folder: Path, trace: Trace, steps: Sequence[Step], *, durable: bool = True) -> str:
    """Write trace.json, steps.jsonl and, last, the manifest; return the trace key.

    The key is the SHA-256 of the manifest, which holds the SHA-256 of every other file, so
    it names every byte of the trace. All of it is on disk on return, so that the journal's
    line, which is written next and makes it count, never names what a power failure took.

    Args:
        folder: where evidence/, files/ and native/ are already.
        trace: what goes into trace.json.
        steps: what goes into steps.jsonl.
        durable: whether to wait for the disk; False for a copy that nothing will name.
    """
    folder.mkdir(parents=True, exist_ok=True)
    write = write_durable if durable else Path.write_bytes
    write(folder / "trace.json", f"{trace.as_line()}\n".encode(errors="replace"))
    lines = "".join(f"{step.as_line()}\n" for step in steps)
    write(folder / "steps.jsonl", lines.encode(errors="replace"))
    manifest = {
        path.relative_to(folder).as_posix(): sha256_file(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink() and path != folder / MANIFEST
    }
    # A file's name may be bytes that are no UTF-8; JSON is read back the same way.
    text = canonical_json(manifest).encode(errors="surrogatepass")
    write(folder / MANIFEST, text)
    return hashlib.sha256(text).hexdigest()


@dataclass(frozen=True)
class TraceFolder:
    """A frozen trace whose bytes were compared with its key."""

    path: Path
    key: str
    trace: Trace
    steps: tuple[Step, ...]

    @classmethod
    def open(cls, path: Path, expected_key: str | None = None) -> TraceFolder:
        """Read and check a trace.

        Raises:
            DataError: a file is missing, added or changed, or the key is not the expected one.
        """
        manifest_path = path / MANIFEST
        if not manifest_path.is_file():
            raise DataError(f"{path}: no {MANIFEST}: the trace was never frozen")
        text = manifest_path.read_bytes()
        key = hashlib.sha256(text).hexdigest()
        if expected_key is not None and key != expected_key:
            raise DataError(f"{path}: the trace is not the one that the run recorded")
        problems = _manifest_problems(path, json.loads(text))
        if problems:
            raise DataError(problems)
        try:
            trace = Trace.model_validate(read_json(path / "trace.json"))
            # Bytes: a text would be split at U+2028 and the like, which JSON leaves as they are.
            lines = (path / "steps.jsonl").read_bytes().splitlines()
            steps = tuple(Step.model_validate_json(line) for line in lines)
        except ValidationError as error:
            raise DataError(f"{path}: not a trace: {error}") from error
        return cls(path, key, trace, steps)

    def evidence(self, ref: str) -> bytes:
        """The bytes of one piece of evidence.

        Raises:
            DataError: there is no such file in this trace.
        """
        return self.evidence_path(ref).read_bytes()

    def evidence_path(self, ref: str) -> Path:
        """Where one piece of evidence is.

        Raises:
            DataError: there is no such file in this trace.
        """
        path = self.path / "evidence" / ref
        if Path(ref).name != ref or not path.is_file():
            raise DataError(f"{self.path}: no evidence '{ref}'")
        return path

    @property
    def all_steps(self) -> tuple[Step, ...]:
        """The steps and, last, the final state."""
        return (*self.steps, self.trace.final)


def _manifest_problems(folder: Path, manifest: dict[str, str]) -> list[str]:
    found = {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink() and path != folder / MANIFEST
    }
    problems = [
        f"{folder}/{name}: is not in the manifest" for name in sorted(found - set(manifest))
    ]
    for name, expected in manifest.items():
        path = folder / name
        if name not in found:
            problems.append(f"{path}: missing")
        elif sha256_file(path) != expected:
            problems.append(f"{path}: changed since the trace was frozen")
        elif name.startswith("evidence/") and path.stem != expected:
            # What an agent wrote over while its attempt went on was frozen as it was then.
            problems.append(f"{path}: changed since the harness stored it")
    return problems
