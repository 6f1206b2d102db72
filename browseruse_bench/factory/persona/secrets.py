"""Keyed hashes: what reports and logs show of a value that must not be in them."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from pathlib import Path


def workspace_key(workspace: Path) -> bytes:
    """The key of a workspace, made at first use, only for its owner; it never leaves restricted/."""
    path = workspace / "restricted" / "persona.key"
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not path.exists():
        temporary = path.with_name(f".persona.key.{os.getpid()}")
        temporary.touch(mode=0o600)
        temporary.write_bytes(secrets.token_bytes(32))
        try:
            os.link(temporary, path)
        except FileExistsError:
            pass  # another process was first: its key counts
        finally:
            temporary.unlink()
    return path.read_bytes()


def keyed_hash(key: bytes, value: str) -> str:
    """16 hex digits that are the same for the same value in this workspace only."""
    return keyed_origin(key, value)[:16]


def keyed_origin(key: bytes, origin: str) -> str:
    """64 hex digits for a candidate's origin: without the key, which never leaves restricted/,
    nobody can try out of which short text they were made.
    """
    return hmac.new(key, origin.encode(), hashlib.sha256).hexdigest()
