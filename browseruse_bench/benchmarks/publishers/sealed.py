"""Encrypted task files (`.enc`): opened in memory only.

BU Bench publishes base64 of a Fernet token of JSON, with a key that is derived from the
benchmark's public name. That keeps the text from crawlers; it is no secret.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from pathlib import Path
from typing import Any

from browseruse_bench.benchmarks.rows import parse_json
from browseruse_bench.errors import ConfigError, DataError


def unseal(sealed: bytes, name: str) -> Any:
    """The JSON value of a sealed file.

    Args:
        sealed: the bytes of the file.
        name: the benchmark's name, which the key is derived from: "BU_Bench_V2".

    Raises:
        ConfigError: the package `cryptography` is not installed.
        DataError: it is not sealed in this form, or under another name. Nothing of the
            content is in the message.
    """
    try:
        from cryptography.fernet import Fernet, InvalidToken
    except ImportError:
        raise ConfigError(
            "an encrypted task file needs the package cryptography: pip install cryptography "
            "(the extra browseruse-bench[models] brings it)"
        ) from None
    key = base64.urlsafe_b64encode(hashlib.sha256(name.encode()).digest())
    try:
        token = base64.b64decode(sealed.strip(), validate=True)
    except binascii.Error:
        raise DataError("not base64, so not a sealed task file") from None
    try:
        opened = Fernet(key).decrypt(token)
    except InvalidToken:
        raise DataError(
            f"cannot be opened under the name '{name}': it is damaged or belongs to another benchmark"
        ) from None
    try:
        return parse_json(opened.decode())
    except ValueError:
        raise DataError("opened, but what is in it is not JSON") from None


def read_sealed(path: Path, name: str | None = None) -> Any:
    """The JSON value of a sealed file; `name` defaults to the file's name without `.enc`."""
    try:
        return unseal(path.read_bytes(), name or path.stem)
    except DataError as error:
        raise DataError([f"{path}: {line}" for line in error.problems]) from None
