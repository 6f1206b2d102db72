"""How a browser or a worker is started so that it is confined, and proved to be."""

from __future__ import annotations

import asyncio
import os
import platform
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from browseruse_bench.browsers.guard import confine, enclose
from browseruse_bench.browsers.guard.canary import Canary
from browseruse_bench.browsers.guard.network import Door, Network
from browseruse_bench.browsers.guard.proxy import Reach
from browseruse_bench.browsers.guard.watch import Watch
from browseruse_bench.errors import BrowserError

PROGRAM = Path(confine.__file__)
ENCLOSED = ("-c", enclose.START, str(Path(enclose.__file__).parents[1]))
PACKAGE = Path(__file__).resolve().parents[2]
KEYS = (PACKAGE / "benchmarks" / "builtin", PACKAGE / "sites")
"""What of this package tells answers: packaged benchmarks, and how sites make their data."""
_TRIAL_S = 20.0
_NOTHING = ("--", "/bin/sh", "-c", ":")

# What programs of a system need: code, fonts, certificates and the files by which names, times
# and users are looked up. Of /etc no more than that: it is where secrets of a machine are.
_SYSTEM = (
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt", "/nix/store", "/snap", "/sys",
    "/var/cache/fontconfig",
)  # fmt: skip
_ETC = (
    "alternatives", "ca-certificates", "chromium", "chromium.d", "chromium-browser", "fonts", "gai.conf",
    "group", "host.conf", "hosts", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "lsb-release",
    "mime.types", "nsswitch.conf", "opt", "os-release", "passwd", "pki", "protocols", "python3",
    "resolv.conf", "services", "ssl", "timezone",
)  # fmt: skip
_DEVICES = ("null", "zero", "full", "random", "urandom")
_FONTS = (".fonts", ".local/share/fonts", ".fontconfig", ".config/fontconfig")


@dataclass(frozen=True, kw_only=True)
class Confinement:
    """What a process may read, write and connect to; all else on this machine it may not."""

    bird: Canary
    reach: Reach
    """What its proxy lets through."""
    hidden: tuple[Path, ...]
    """Folders that stay unreadable wherever they are: answer keys, other attempts."""
    readable: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    ports: tuple[int, ...] = ()
    """TCP ports that it may connect to."""
    network: Network | None = None
    """The network that it is enclosed in; None: this machine's."""
    policy: str | None = None
    """Managed policies of a browser that is enclosed, as JSON."""
    devtools: str | None = None
    """Where its browser listens inside, "host:port/path"; None: where the harness reaches it."""

    def allowing(
        self,
        *,
        readable: Sequence[Path] = (),
        writable: Sequence[Path] = (),
        ports: Sequence[int] = (),
    ) -> Confinement:
        """The same, and more."""
        return replace(
            self,
            readable=(*self.readable, *readable),
            writable=(*self.writable, *writable),
            ports=(*self.ports, *ports),
        )

    def options(self) -> list[str]:
        """The options of `confine` that say so."""
        folders = [*_SYSTEM, *(f"/etc/{name}" for name in _ETC), *self.readable]
        folders += [Path.home() / name for name in _FONTS]
        # An ordinary user's Chromium sets up its own sandbox in /proc; root could write there
        # what the kernel then runs.
        proc = "--ro" if os.geteuid() == 0 else "--rw"
        pairs: list[tuple[str, object]] = [("--ro", folder) for folder in folders]
        pairs += [(proc, "/proc"), *(("--rw", f"/dev/{name}") for name in _DEVICES)]
        pairs += [("--rw", folder) for folder in self.writable]
        pairs += [("--hide", folder) for folder in self.hidden]
        pairs += [("--tcp", port) for port in self.ports]
        canaries = [self.bird.file, *filter(None, map(_first_file, self.hidden))]
        pairs += [("--file", file) for file in canaries]
        pairs += [("--port", self.bird.port)]
        return [str(word) for pair in pairs for word in pair]


class Report:
    """The pipe on which a confined process tells of its canaries before it goes on, and the
    door of one that is enclosed.
    """

    def __init__(self) -> None:
        """Open the pipe."""
        self._read, self.descriptor = os.pipe()
        self._network: Network | None = None
        self._door: Door | None = None

    @property
    def pass_fds(self) -> tuple[int, ...]:
        """The descriptors that the process inherits."""
        if self._network is None or self._door is None:
            return (self.descriptor,)
        return (self.descriptor, self._door.theirs, *self._network.spaces)

    def command(self, confinement: Confinement, argv: Sequence[str]) -> list[str]:
        """The argv that confines itself, reports here and becomes `argv`, whose first is a path."""
        starter, more = [str(PROGRAM)], list[str]()
        if confinement.network is not None:
            self._network, self._door = confinement.network, Door()
            starter = list(ENCLOSED)
            more = ["--door", str(self._door.theirs)]
            more += [word for space in self._network.spaces for word in ("--join", str(space))]
            more += ["--landlock", "1"] if has_landlock() else []
            more += [] if confinement.policy is None else ["--policy", confinement.policy]
        return [
            *(sys.executable, "-I", "-S", *starter),
            *confinement.options(),
            *more,
            *("--report", str(self.descriptor), "--", *argv),
        ]

    def give_up(self) -> None:
        """Close both ends: the process was never started."""
        os.close(self.descriptor)
        os.close(self._read)
        self.close()

    def close(self) -> bool:
        """Let an enclosed process end; whether it is one."""
        if self._door is not None:
            self._door.close()
        return self._door is not None

    async def settle(self, watch: Watch, who: str) -> None:
        """Wait for the report of the process that was started, and note it.

        Raises:
            BrowserError: a canary was reached, or the process could not confine itself.
        """
        os.close(self.descriptor)
        reading = asyncio.ensure_future(asyncio.to_thread(_read_all, self._read))
        if self._door is not None and self._network is not None:
            self._door.handed_over()
            if not self._network.spaces:
                with suppress(BrowserError):  # the report is missing then, too
                    await self._network.opened(self._door)
        results = [line.rpartition(" ") for line in (await reading).splitlines()]
        if not results:
            other = "flags" if self._network is None else "confined"
            raise BrowserError(f"the guard could not confine the {who}; use --guard {other}")
        for name, _, result in results:
            watch.settle(f"{who}: {name}", reached=result != "blocked")


def has_landlock() -> bool:
    """Whether this kernel has a Landlock that knows TCP."""
    return confine.landlock_abi() >= confine.MIN_ABI


@cache
def why_not_confined() -> str | None:
    """Why this machine cannot confine a process, tried with a real one; None if it can."""
    if sys.platform != "linux":
        return f"needs Linux, this is {sys.platform}"
    if not has_landlock():
        abi = confine.landlock_abi()
        return f"needs Landlock {confine.MIN_ABI} (Linux 6.7), this kernel has {abi or 'none'}"
    return _trial([str(PROGRAM), "--ro", "/", *_NOTHING], ())


@cache
def why_not_layered() -> str | None:
    """Why this machine cannot enclose a process, tried with a real one; None if it can."""
    return _enclosed()[0]


@cache
def takes_user_namespace() -> bool:
    """Whether namespaces are to be had only inside one of users."""
    return _enclosed()[1]


@cache
def _enclosed() -> tuple[str | None, bool]:
    """Why a process cannot be enclosed, and whether it got a namespace of users."""
    machine = platform.machine()
    if sys.platform != "linux" or machine not in confine.MACHINES:
        return f"needs Linux on x86-64 or arm64, this is {sys.platform} on {machine}", False
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        landlock = ["--landlock", "1"] if has_landlock() else []
        given = [word for folder in _SYSTEM for word in ("--ro", folder)]
        door = ["--door", str(theirs.fileno())]
        words = [*ENCLOSED, *given, "--ro", "/proc", "--rw", "/dev/null", *door, *landlock]
        why_not = _trial([*words, *_NOTHING], (theirs.fileno(),))
        if why_not is not None:
            return why_not, False
        _, descriptors, _, _ = socket.recv_fds(ours, 1, 3, socket.MSG_CMSG_CLOEXEC)
    for descriptor in descriptors:
        os.close(descriptor)
    # The network and a socket of it, and the users before them.
    return None, len(descriptors) > 2


def _trial(words: Sequence[str], pass_fds: Sequence[int]) -> str | None:
    """Why a program of ours fails; None if it does not."""
    argv = [sys.executable, "-I", "-S", *words]
    try:
        done = subprocess.run(
            argv,
            capture_output=True,
            text=True,
            timeout=_TRIAL_S,
            check=False,
            stdin=subprocess.DEVNULL,
            pass_fds=pass_fds,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"a trial failed: {error}"
    if done.returncode == 0:
        return None
    said = done.stderr.strip().splitlines()
    return f"a trial failed: {said[-1] if said else f'status {done.returncode}'}"


@cache
def has_user_namespaces() -> bool:
    """Whether an ordinary process of this user may make a user namespace."""
    script = "import ctypes, sys; sys.exit(ctypes.CDLL(None).unshare(0x10000000) != 0)"
    argv = [sys.executable, "-I", "-S", "-c", script]
    return subprocess.run(argv, timeout=_TRIAL_S, check=False).returncode == 0


def _read_all(descriptor: int) -> str:
    with os.fdopen(descriptor, "rb") as report:
        return report.read().decode()


def _first_file(folder: Path) -> Path | None:
    """A file below a folder, to be tried as a canary."""
    if folder.is_file():
        return folder
    for path, folders, files in os.walk(folder):
        folders.sort()
        for name in sorted(files):
            if os.access(found := Path(path) / name, os.R_OK):
                return found
    return None
