"""The contract of a site. A site runs in a process of its own; its code may block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar


class Site(ABC):
    """A web server on loopback that a benchmark brings along under a stable host name.

    The harness starts each site in a process of its own, maps `http://<host>/` to it in
    the browser, and keeps it for later attempts: a stateful one is given to one attempt at
    a time and reset in between, a stateless one is shared by all.
    """

    stateful: ClassVar[bool] = True
    """Whether what a visitor does can be seen by the next one."""

    @abstractmethod
    def start(self, directory: Path, seed: int) -> tuple[str, int]:
        """Serve in the background and return (host, port), a loopback address.

        Args:
            directory: an empty folder of its own.
            seed: the same seed gives the same content.
        """

    def reset(self) -> None:  # noqa: B027  a site without state has nothing to reset
        """Bring back exactly the state after `start`, tokens and counters included."""

    def snapshot(self, path: Path) -> bool:
        """Write the whole state to `path` as one SQLite file.

        Returns:
            False if the site has no state; then nothing is written.
        """
        return False

    @abstractmethod
    def stop(self) -> None:
        """Stop serving; called once, also after a failed start."""
