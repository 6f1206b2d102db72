"""How a browser or a worker is started so that it is confined, and proved to be."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from browseruse_bench.browsers.guard import confine
from browseruse_bench.browsers.guard.canary import Canary
from browseruse_bench.browsers.guard.proxy import Reach
from browseruse_bench.browsers.guard.watch import Watch
from browseruse_bench.errors import BrowserError

PROGRAM = Path(confine.__file__)
PACKAGE = Path(__file__).resolve().parents[2]
KEYS = (PACKAGE / "benchmarks" / "builtin", PACKAGE / "sites")
"""What of this package tells answers: packaged benchmarks, and how sites make their data."""
_TRIAL_S = 20.0

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
    """The pipe on which a confined process tells of its canaries before it goes on."""

    def __init__(self) -> None:
        """Open the pipe."""
        self._read, self.descriptor = os.pipe()

    def command(self, confinement: Confinement, argv: Sequence[str]) -> list[str]:
        """The argv that confines itself, reports here and becomes `argv`, whose first is a path."""
        return [
            *(sys.executable, "-I", "-S", str(PROGRAM)),
            *confinement.options(),
            *("--report", str(self.descriptor), "--", *argv),
        ]

    def give_up(self) -> None:
        """Close both ends: the process was never started."""
        os.close(self.descriptor)
        os.close(self._read)

    async def settle(self, watch: Watch, who: str) -> None:
        """Wait for the report of the process that was started, and note it.

        Raises:
            BrowserError: a canary was reached, or the process could not confine itself.
        """
        os.close(self.descriptor)
        text = await asyncio.to_thread(_read_all, self._read)
        results = [line.rpartition(" ") for line in text.splitlines()]
        if not results:
            raise BrowserError(
                f"the guard could not confine the {who} (see its stderr); use --guard flags"
            )
        for name, _, result in results:
            watch.settle(f"{who}: {name}", reached=result != "blocked")


@cache
def why_not_confined() -> str | None:
    """Why this machine cannot confine a process, tried with a real one; None if it can."""
    if sys.platform != "linux":
        return f"needs Linux, this is {sys.platform}"
    abi = confine.landlock_abi()
    if abi < confine.MIN_ABI:
        return f"needs Landlock {confine.MIN_ABI} (Linux 6.7), this kernel has {abi or 'none'}"
    argv = [sys.executable, "-I", "-S", str(PROGRAM), "--ro", "/", "--", "/bin/sh", "-c", ":"]
    try:
        done = subprocess.run(
            argv,
            capture_output=True,
            text=True,
            timeout=_TRIAL_S,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except OSError as error:
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
