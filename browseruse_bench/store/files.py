"""Atomic files, and names that are safe as one path segment."""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
from pathlib import Path
from typing import Any

from browseruse_bench.errors import DataError
from browseruse_bench.store.redact import Redactor

_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.,=+@-]*")
_RESERVED = {"CON", "PRN", "AUX", "NUL", *(f"{p}{n}" for p in ("COM", "LPT") for n in range(1, 10))}
_MAX_BYTES = 150


def write_atomic(path: Path, content: bytes | str, *, mode: int = 0o644) -> None:
    """Put `content` at `path` so that a reader sees the old file or the new one, whole.

    Half of a surrogate pair, which is no character and which pages and agents can hand in,
    is written as "?".
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    data = content.encode(errors="replace") if isinstance(content, str) else content
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_durable(path: Path, content: bytes) -> None:
    """Put `content` on disk at `path`; half a file may be left where that is interrupted.

    For what counts only once something that is written later names it: there is nothing for
    `write_atomic` to hide until then. What was in its place, a link too, is removed.
    """
    path.unlink(missing_ok=True)
    with path.open("xb") as file:
        if content:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())


def write_json(path: Path, value: Any) -> None:
    """Put a JSON value at `path`, indented, with sorted keys and without our own secrets,
    atomically.
    """
    text = json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)
    write_atomic(path, Redactor.of_environment().own(text) + "\n")


def read_json(path: Path) -> Any:
    """The JSON value at `path`.

    Raises:
        DataError: not UTF-8 or not JSON; the line and column are named.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 (byte {error.start})") from error
    except json.JSONDecodeError as error:
        raise DataError(
            f"{path}: line {error.lineno}, column {error.colno}: not JSON: {error.msg}"
        ) from error


def sha256_file(path: Path) -> str:
    """SHA-256 (hex) of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def segment_problem(name: str) -> str | None:
    """Why `name` cannot be one path segment as it is; None if it can."""
    if not name or name in (".", ".."):
        return "is not a name"
    if "/" in name or "\\" in name:
        return "has a path separator"
    if any(ord(c) < 32 or ord(c) == 127 for c in name):
        return "has a control character"
    if name.split(".")[0].upper() in _RESERVED:
        return "is a reserved name"
    if len(name.encode()) > _MAX_BYTES:
        return f"is longer than {_MAX_BYTES} bytes"
    return None


def escaped(name: str) -> str:
    """One safe path segment for any text: itself where it is plain, else escaped.

    Distinct names give distinct segments: what is escaped carries a hash of the whole name,
    and no plain name contains "~".
    """
    if _PLAIN.fullmatch(name) and segment_problem(name) is None:
        return name
    plain = re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip(".-")[:60]
    return f"{plain or 'x'}~{hashlib.sha256(name.encode()).hexdigest()[:12]}"
