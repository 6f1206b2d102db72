"""Locks between processes that the system takes back when their holder dies, however it dies."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(eq=False)
class FileLock:
    """A lock that this process holds; the file is there only while somebody holds it, or died
    holding it.
    """

    path: Path
    _descriptor: int
    _pid: int = field(default_factory=os.getpid)

    @classmethod
    def take(cls, path: Path) -> FileLock | None:
        """The lock, or None while somebody has it: another process, or another holder here."""
        path.parent.mkdir(parents=True, exist_ok=True)
        while True:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(descriptor)
                return None
            except OSError:
                os.close(descriptor)
                raise
            if _is_at(descriptor, path):
                return cls(path, descriptor)
            # The holder before removed the file between our opening and our locking it.
            os.close(descriptor)

    def release(self) -> None:
        """Give it back, and remove its file; a second time does nothing. In a copy of the process
        that took it (a fork) the lock stays with the original.
        """
        if self._descriptor >= 0:
            if os.getpid() == self._pid:
                self.path.unlink(missing_ok=True)
            os.close(self._descriptor)
            self._descriptor = -1


def is_held(path: Path) -> bool:
    """Whether somebody holds the lock at `path`; what a dead holder left is removed."""
    if not path.exists():
        return False
    lock = FileLock.take(path)
    if lock is None:
        return True
    lock.release()
    return False


@contextlib.contextmanager
def exclusive(descriptor: int) -> Generator[None]:
    """Alone with an open file, waiting for others; for what takes milliseconds."""
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        there = path.stat()
    except FileNotFoundError:
        return False
    here = os.fstat(descriptor)
    return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)
