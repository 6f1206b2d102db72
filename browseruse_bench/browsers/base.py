"""The contract of a browser backend: one fresh session per attempt, judged by the harness."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from browseruse_bench.browsers.guard.confinement import Confinement
from browseruse_bench.browsers.guard.watch import Watch
from browseruse_bench.records.trace import BrowserId, Guard


@dataclass(frozen=True, kw_only=True)
class SessionRequest:
    """What an attempt needs of a browser."""

    work: Path
    """A folder of the attempt's own for profile and temporary files; removed afterwards."""
    downloads: Path
    """Where downloads go."""
    owner: Path
    """The run folder, whose processes file says what to reap after a crash."""
    hosts: Mapping[str, tuple[str, int]] = field(default_factory=dict[str, tuple[str, int]])
    """Site host -> loopback (address, port) that answers for it."""
    fence: bool = False
    """Whether every other host name is unreachable."""
    hidden: tuple[Path, ...] = ()
    """Folders that neither browser nor worker may read: answer keys, other attempts."""
    readable: tuple[Path, ...] = ()
    """Folders outside `work` that the browser may read, to upload from."""
    storage_state: Path | None = None
    """Cookies and local storage of a logged-in user, in Playwright's storage-state format."""


@dataclass(frozen=True, kw_only=True)
class Session:
    """A running browser with one open page, owned by the harness."""

    browser: BrowserId
    guard: Guard
    ws_url: str | None
    """Browser-level CDP socket (ws://.../devtools/browser/...); None without a browser."""
    http_url: str | None
    """The same endpoint for clients that want http://host:port."""
    target_id: str | None
    """The page that an agent starts on: about:blank."""
    watch: Watch = field(default_factory=Watch)
    """What the guard sees while the session goes on."""
    confinement: Confinement | None = None
    """What a worker of this session is held to; None below the level `confined`."""


class Backend(ABC):
    """A way to get a browser."""

    name: ClassVar[str]
    maps_hosts: ClassVar[bool] = True
    """Whether it can let a site of this machine answer for a host name."""

    @abstractmethod
    def guard(self, *, fence: bool) -> Guard:
        """What will keep a session from addresses that it must not reach.

        Raises:
            ConfigError: the level that was asked for is not to be had here.
        """

    @abstractmethod
    def open(self, request: SessionRequest) -> AbstractAsyncContextManager[Session]:
        """A session that ends, with all its processes and files, when the block is left.

        Raises:
            BrowserError: no browser could be found, started or reached.
        """

    @abstractmethod
    def alive(self, session: Session) -> bool:
        """Whether the session's browser process still lives, by the harness's own look."""

    def exit_status(self, session: Session) -> int | None:
        """With what an open session's browser process ended: 0 in order, below 0 by a signal;
        None where it lives or that is not known.
        """
        return None
