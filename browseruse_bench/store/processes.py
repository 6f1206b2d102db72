"""Processes that never outlive their owner unnoticed: recorded before they run, ended whole.

A process that this module starts waits at a gate until what identifies it is on disk in
`<owner>/processes.jsonl`. If the owner dies before, the gate's other end closes and the
program never runs; if it dies later, `reap` finds the record, proves from the system's own
table that what it names is still the same process, and ends it. Nothing is ever found by
its name. Folders that must not stay behind are recorded in the same way (`owned_folder`).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import tempfile
import time
import uuid
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal

from pydantic import ValidationError

from browseruse_bench.records.base import Record
from browseruse_bench.store.journal import Journal
from browseruse_bench.store.process_table import (
    Seen,
    boot_id,
    environment_has,
    look,
    machine_id,
    table,
)
from browseruse_bench.store.redact import Redactor

FILE = "processes.jsonl"
MARK = "BUBENCH_OWNED"
"""Variable that every owned process and its descendants carry: ids, separated by spaces."""

# dash takes no descriptor above 9 in a redirection, hence /dev/fd. The spent gate, an
# inherited descriptor at its end of file, is all that the program sees of it.
_GATE = 'read -r _ </dev/fd/{gate} && exec "$@"'
_GONE_S = 5.0

Stream = int | IO[bytes] | None


class ProcessEntry(Record):
    """A line of processes.jsonl: a process was started (or a folder made), or it ended and left
    nothing.
    """

    event: Literal["start", "end"]
    id: str
    kind: str = ""
    boot_id: str = ""
    machine_id: str = ""
    pgid: int = 0
    leader_start: str = ""
    owner_pid: int = 0
    owner_start: str = ""
    argv: tuple[str, ...] = ()
    removes: tuple[str, ...] = ()
    """Folders and files that go when the process does: absolute, without symbolic links."""


@dataclass(frozen=True)
class Owned:
    """A running process of ours, leader of its own session and process group."""

    process: asyncio.subprocess.Process
    entry: ProcessEntry
    owner: Path

    @property
    def pgid(self) -> int:
        """The process group, which is also the leader's process id."""
        return self.entry.pgid

    def alive(self) -> bool:
        """Whether the leader still runs, by the system's own table."""
        return _leader_lives(self.entry)


async def spawn(
    argv: Sequence[str],
    *,
    owner: Path,
    kind: str,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    stdin: Stream = None,
    stdout: Stream = None,
    stderr: Stream = None,
    pass_fds: Sequence[int] = (),
    removes: Sequence[Path] = (),
    limit: int = 2**16,
) -> Owned:
    """Start a program in a session of its own; its record is on disk before it runs.

    Args:
        argv: program (a path, or a name on PATH) and arguments; kept on disk without what has
            the value or the shape of a secret, but every user of the machine can read them.
        owner: folder whose `processes.jsonl` holds the record.
        kind: what it is, for people: "browser", "site", "worker".
        env: the whole environment; default: this process's own.
        stdin: as for asyncio, but None is the null device, not this process's input.
        stdout: as for asyncio.
        stderr: as for asyncio.
        removes: absolute paths that are removed when the process is ended or reaped.
        limit: longest line in bytes that the stream readers take.

    Raises:
        FileNotFoundError: there is no such program.
        ValueError: a path of `removes` is not absolute, or is a symbolic link.
    """
    program = shutil.which(argv[0])
    if program is None:
        raise FileNotFoundError(f"{argv[0]}: no such program")
    removable = tuple(str(_removable(path)) for path in removes)
    identity = uuid.uuid4().hex
    base = os.environ if env is None else env
    gate, release = os.pipe()
    try:
        process = await asyncio.create_subprocess_exec(
            "/bin/sh", "-c", _GATE.format(gate=gate), "sh", str(Path(program).absolute()),
            *argv[1:],
            env={**base, MARK: f"{base.get(MARK, '')} {identity}".strip()},
            cwd=cwd, stdin=asyncio.subprocess.DEVNULL if stdin is None else stdin,
            stdout=stdout, stderr=stderr, pass_fds=(gate, *pass_fds), start_new_session=True,
            limit=limit,
        )  # fmt: skip
        try:
            entry = _entry(process.pid, identity, kind, tuple(argv), removable)
            _append(owner, entry)
        except BaseException:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
            raise
        os.write(release, b"\n")
    finally:
        os.close(gate)
        os.close(release)
    return Owned(process, entry, owner)


async def end(owned: Owned, *, grace_s: float = 0) -> None:
    """End the process with all its group and descendants, and remove what goes with it.

    With `grace_s` the group is first asked to end (SIGTERM) and given so long. Afterwards
    nothing of it is left, also when this is cancelled meanwhile: the cancellation goes on
    when all is done. Calling it again does nothing more.

    Raises:
        OSError: a folder could not be removed; the next `reap` tries again.
    """
    ending = asyncio.ensure_future(_end(owned, grace_s))
    cancelled: asyncio.CancelledError | None = None
    while not ending.done():
        try:
            await asyncio.shield(ending)
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled
    ending.result()


async def _end(owned: Owned, grace_s: float) -> None:
    if grace_s > 0 and owned.alive():
        _signal_group(owned.entry, signal.SIGTERM)
        deadline = time.monotonic() + grace_s
        while time.monotonic() < deadline and _ours(owned.entry):
            await asyncio.sleep(0.02)
    deadline = time.monotonic() + _GONE_S
    while _kill(owned.entry) and time.monotonic() < deadline:
        await asyncio.sleep(0.01)
    await owned.process.wait()
    for path in owned.entry.removes:
        await asyncio.to_thread(_remove, Path(path))
    _append(owned.owner, ProcessEntry(event="end", id=owned.entry.id))


@contextlib.contextmanager
def owned_folder(owner: Path) -> Generator[Path]:
    """A new temporary folder with a short path, which goes when the block is left.

    Its record is on disk before it is made, so that `reap` removes it where this process was
    killed in between.

    Args:
        owner: folder whose `processes.jsonl` holds the record.
    """
    identity, me = uuid.uuid4().hex, look(os.getpid())
    assert me is not None
    folder = _removable(Path(tempfile.gettempdir()) / f"bubench-{identity[:8]}")
    entry = ProcessEntry(
        event="start", id=identity, kind="folder", boot_id=boot_id(), machine_id=machine_id(),
        owner_pid=me.pid, owner_start=me.start, removes=(str(folder),),
    )  # fmt: skip
    _append(owner, entry)
    folder.mkdir(mode=0o700)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        _append(owner, ProcessEntry(event="end", id=identity))


def reap(owner: Path) -> tuple[str, ...]:
    """End and remove what an owner that is dead left behind; say so in one line for each.

    Only what is proven is touched: the recorded boot and set of process numbers is this one,
    the recorded owner is gone, and the leader of the group started when the record says (or,
    where the leader is gone, a process carries the record's mark). After a reboot of the
    same machine only the files are removed. What another machine or container recorded is
    left alone.
    """
    lines: list[str] = []
    for entry in _left(owner):
        if entry.boot_id != boot_id():
            if not entry.machine_id or entry.machine_id != machine_id():
                continue
        elif _lives(entry.owner_pid, entry.owner_start):
            continue
        lines.append(_reap_one(owner, entry))
    return tuple(lines)


def _reap_one(owner: Path, entry: ProcessEntry) -> str:
    killed: set[int] = set()
    what = f"{entry.kind} left by process {entry.owner_pid}"
    if entry.boot_id == boot_id():
        deadline = time.monotonic() + _GONE_S
        while now := _kill(entry):
            killed |= now
            if time.monotonic() > deadline:
                return f"{what}: processes {sorted(now)} do not end; the next start tries again"
            time.sleep(0.01)
    removed = sum(_remove(Path(path)) for path in entry.removes)
    _append(owner, ProcessEntry(event="end", id=entry.id))
    return f"{what}: ended {len(killed)} processes, removed {removed} folders"


def _entry(
    pid: int, identity: str, kind: str, argv: tuple[str, ...], removes: tuple[str, ...]
) -> ProcessEntry:
    leader, owner = look(pid), look(os.getpid())
    if leader is None or owner is None:
        raise ProcessLookupError(f"process {pid} ended before it was released")
    return ProcessEntry(
        event="start", id=identity, kind=kind, boot_id=boot_id(), machine_id=machine_id(),
        pgid=pid, leader_start=leader.start, owner_pid=owner.pid, owner_start=owner.start,
        argv=tuple(map(Redactor.of_environment().said, argv)), removes=removes,
    )  # fmt: skip


def _append(owner: Path, entry: ProcessEntry) -> None:
    with Journal(owner / FILE) as journal:
        journal.append(entry.model_dump(mode="json", exclude_defaults=True))


def _left(owner: Path) -> list[ProcessEntry]:
    """The entries that started and did not end. A line that says nothing proves nothing."""
    started: dict[str, ProcessEntry] = {}
    path = owner / FILE
    for line in path.read_bytes().splitlines() if path.exists() else ():
        try:
            entry = ProcessEntry.model_validate(json.loads(line))
        except (ValueError, ValidationError):
            continue
        if entry.event == "start":
            started[entry.id] = entry
        else:
            started.pop(entry.id, None)
    return list(started.values())


def _lives(pid: int, start: str) -> bool:
    seen = look(pid)
    return seen is not None and seen.start == start and not seen.zombie


def _leader_lives(entry: ProcessEntry) -> bool:
    return _lives(entry.pgid, entry.leader_start)


def _ours(entry: ProcessEntry) -> dict[int, Seen]:
    """The living processes that are proven to belong to `entry`.

    A process is proven by the record's mark in its environment. The whole session is proven
    by its leader's start time, or by a member with the mark: the number of a session cannot
    be given to another one while a member lives.
    """
    seen = [process for process in table() if process.pid != os.getpid()]
    leader = look(entry.pgid)
    marked = {p.pid: p for p in seen if environment_has(p.pid, MARK, entry.id)}
    group_is_ours = (leader is not None and leader.start == entry.leader_start) or any(
        process.session == entry.pgid for process in marked.values()
    )
    group = {p.pid: p for p in seen if p.group == entry.pgid} if group_is_ours else {}
    return {p.pid: p for p in (marked | group).values() if not p.zombie}


def _kill(entry: ProcessEntry) -> set[int]:
    """Kill what is left of `entry` and return what that was; empty when all is gone."""
    ours = _ours(entry)
    if any(process.group == entry.pgid for process in ours.values()):
        _signal_group(entry, signal.SIGKILL)
    for pid, process in ours.items():
        if process.group != entry.pgid and _lives(pid, process.start):
            _send(pid, signal.SIGKILL)
    return set(ours)


def _signal_group(entry: ProcessEntry, number: signal.Signals) -> None:
    if entry.pgid > 1 and entry.pgid != os.getpgrp():
        try:
            os.killpg(entry.pgid, number)
        except (ProcessLookupError, PermissionError):
            # Gone in between; macOS says "not permitted" when only zombies are left.
            return


def _send(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def _removable(path: Path) -> Path:
    if not path.is_absolute() or ".." in path.parts:
        raise ValueError(f"{path}: not an absolute path, so it is not safe to remove")
    real = path.parent.resolve() / path.name
    if real.is_symlink():
        raise ValueError(f"{path}: a symbolic link, so it is not safe to remove")
    if len(real.parts) < 3 or real == Path.home():
        raise ValueError(f"{path}: not safe to remove")
    return real


def _remove(path: Path) -> bool:
    """Remove a folder or file if it is there, without following a link; say whether it was."""
    try:
        safe = _removable(path) == path and path.exists()
    except ValueError:
        return False
    if not safe:
        return False
    if not path.is_dir():
        path.unlink()
        return True
    # A process that was just killed may still finish a write in the folder.
    for wait_s in (0.05, 0.2, 0.5):
        try:
            shutil.rmtree(path)
        except FileNotFoundError:
            continue
        except OSError:
            time.sleep(wait_s)
        else:
            return True
    if path.exists():
        shutil.rmtree(path)
    return True
