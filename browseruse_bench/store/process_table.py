"""What the system says about processes: enough to tell one from a later one with its number.

Linux tells it in /proc. Elsewhere (macOS) `ps` does: its start times are whole seconds, and
it tells no session and no environment of a process, so less can be proven there.
"""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
HAS_PROC = (_PROC / "self" / "stat").exists()


@dataclass(frozen=True)
class Seen:
    """One process at one moment."""

    pid: int
    group: int
    session: int | None
    """None where the system does not tell."""
    start: str
    """When it started: clock ticks since boot (Linux), else a date to the second."""
    zombie: bool
    """It ended, and its parent has not asked for its status yet."""


def look(pid: int) -> Seen | None:
    """The process with this number, or None if there is none."""
    if HAS_PROC:
        return _from_proc(pid)
    return next(iter(_from_ps("-p", str(pid))), None)


def table() -> list[Seen]:
    """Every process that this user may see."""
    if not HAS_PROC:
        return _from_ps("-A")
    numbers = [int(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit()]
    return [seen for seen in map(_from_proc, numbers) if seen is not None]


def memory_gb(session: int) -> float:
    """What the processes of a session use together, in GB (10^9 bytes), without what they
    share with others; 0 where the system does not tell.
    """
    return sum(_private_bytes(seen.pid) for seen in table() if seen.session == session) / 1e9


def _private_bytes(pid: int) -> int:
    """Resident memory without the pages of files and of shared memory."""
    try:
        fields = (_PROC / str(pid) / "statm").read_text().split()
    except OSError:
        return 0
    return (int(fields[1]) - int(fields[2])) * os.sysconf("SC_PAGE_SIZE")


def environment_has(pid: int, name: str, word: str) -> bool:
    """Whether a process was started with `word` in the space-separated variable `name`.

    False where that cannot be read.
    """
    try:
        content = (_PROC / str(pid) / "environ").read_bytes()
    except OSError:
        return False
    key = f"{name}=".encode()
    values = [line[len(key) :] for line in content.split(b"\0") if line.startswith(key)]
    return any(word.encode() in value.split() for value in values)


def boot_id() -> str:
    """Names this boot of this machine and, in a container, its own set of process numbers.

    Process numbers and start times mean something only where this is the same.
    """
    if not HAS_PROC:
        command = ["sysctl", "-n", "kern.bootsessionuuid"]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
    return f"{boot} {(_PROC / 'self/ns/pid').readlink()}"


def machine_id() -> str:
    """Stands for this machine over its boots, as a hash that names nobody; empty where the
    machine has no such name.
    """
    try:
        name = Path("/etc/machine-id").read_text().strip()
    except OSError:
        return ""
    if not name:
        return ""
    return hashlib.sha256(f"{name} {platform.node()}".encode()).hexdigest()[:32]


def _from_proc(pid: int) -> Seen | None:
    try:
        text = (_PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    # The second field is the program's name in parentheses, which may hold anything.
    fields = text.rpartition(")")[2].split()
    return Seen(
        pid=pid,
        group=int(fields[2]),
        session=int(fields[3]),
        start=fields[19],
        zombie=fields[0] in "ZX",
    )


def _from_ps(*which: str) -> list[Seen]:
    command = ["ps", *which, "-o", "pid=,pgid=,stat=,lstart="]
    env = {**os.environ, "LC_ALL": "C", "TZ": "UTC"}
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    found: list[Seen] = []
    for line in result.stdout.splitlines():
        pid, group, state, start = line.split(None, 3)
        found.append(Seen(int(pid), int(group), None, start.strip(), state.startswith("Z")))
    return found
