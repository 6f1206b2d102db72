"""Nothing of ours is left, and nothing that is not ours is ever touched."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from browseruse_bench.store import processes
from browseruse_bench.store.process_table import boot_id, look
from browseruse_bench.store.processes import ProcessEntry, end, owned_folder, reap, spawn

SLEEP = ("sleep", "300")


def lives(pid):
    seen = look(pid)
    return seen is not None and not seen.zombie


def wait_until(condition, within_s=5.0):
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, "did not happen in time"
        time.sleep(0.01)


def entry(**changed):
    """A record of this boot whose owner, by its start time, is long dead."""
    values = {
        "event": "start",
        "id": "0" * 32,
        "kind": "worker",
        "boot_id": boot_id(),
        "pgid": 2**22 + 5,
        "leader_start": "1",
        "owner_pid": os.getpid(),
        "owner_start": "1",
    }
    return ProcessEntry(**values | changed)


def write(owner, *entries, tail=""):
    lines = "".join(e.as_line() + "\n" for e in entries)
    (owner / processes.FILE).write_text(lines + tail)


@pytest.fixture
def stranger():
    """A process in a session of its own that we did not spawn."""
    process = subprocess.Popen(SLEEP, start_new_session=True)
    yield process
    process.kill()
    process.wait()


async def test_the_record_is_on_disk_before_the_program_runs(tmp_path):
    program = f"cat {tmp_path / processes.FILE}"
    owned = await spawn(
        ["sh", "-c", program], owner=tmp_path, kind="worker", stdout=asyncio.subprocess.PIPE
    )
    seen, _ = await owned.process.communicate()
    record = json.loads(seen)
    assert (record["pgid"], record["owner_pid"]) == (owned.pgid, os.getpid())
    await end(owned)


async def test_standard_input_belongs_to_the_program(tmp_path):
    pipe = asyncio.subprocess.PIPE
    owned = await spawn(["cat"], owner=tmp_path, kind="worker", stdin=pipe, stdout=pipe)
    out, _ = await owned.process.communicate(b"hello\n")
    assert out == b"hello\n"
    await end(owned)


async def test_the_gate_works_above_descriptor_nine(tmp_path):
    held = [os.open(os.devnull, os.O_RDONLY) for _ in range(20)]
    try:
        owned = await spawn(["true"], owner=tmp_path, kind="worker")
        assert await owned.process.wait() == 0
        await end(owned)
    finally:
        for descriptor in held:
            os.close(descriptor)


async def test_end_kills_the_group_and_removes_the_folder(tmp_path):
    profile = tmp_path / "profile"
    (profile / "deep").mkdir(parents=True)
    owned = await spawn(
        ["sh", "-c", "sleep 300 & sleep 300 & echo $!; wait"],
        owner=tmp_path, kind="worker", stdout=asyncio.subprocess.PIPE, removes=[profile],
    )  # fmt: skip
    child = int(await owned.process.stdout.readline())
    assert owned.alive()
    assert lives(child)
    await end(owned)
    assert not owned.alive()
    assert not lives(child)
    assert not profile.exists()
    await end(owned)


async def test_end_also_finds_a_descendant_that_left_the_group(tmp_path):
    # One write for each line: two processes that print at once would tear each other's.
    script = (
        "import os,time\nos.setsid() if os.fork()==0 else 0\n"
        "os.write(1, b'%d\\n' % os.getpid())\ntime.sleep(300)"
    )
    pipe = asyncio.subprocess.PIPE
    owned = await spawn([sys.executable, "-c", script], owner=tmp_path, kind="worker", stdout=pipe)
    pids = [int(await owned.process.stdout.readline()) for _ in range(2)]
    await end(owned)
    assert not any(map(lives, pids))


async def test_a_graceful_end_lets_the_program_finish(tmp_path):
    done = tmp_path / "done"
    script = f"trap 'touch {done}; exit 0' TERM; echo ready; while :; do sleep 0.02; done"
    pipe = asyncio.subprocess.PIPE
    owned = await spawn(["sh", "-c", script], owner=tmp_path, kind="site", stdout=pipe)
    await owned.process.stdout.readline()
    await end(owned, grace_s=5)
    assert done.exists()


async def test_a_program_that_ignores_the_request_is_killed_after_the_grace(tmp_path):
    pipe = asyncio.subprocess.PIPE
    owned = await spawn(
        ["sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.05; done"],
        owner=tmp_path, kind="site", stdout=pipe,
    )  # fmt: skip
    await owned.process.stdout.readline()
    await end(owned, grace_s=0.2)
    assert not owned.alive()


async def test_a_missing_program_is_refused_before_anything_is_recorded(tmp_path):
    with pytest.raises(FileNotFoundError, match="no-such-program"):
        await spawn(["no-such-program"], owner=tmp_path, kind="worker")
    assert not (tmp_path / processes.FILE).exists()


async def test_if_the_record_cannot_be_written_the_program_never_runs(tmp_path, monkeypatch):
    def full(_owner, _entry):
        raise OSError("disk full")

    monkeypatch.setattr(processes, "_append", full)
    ran = tmp_path / "ran"
    with pytest.raises(OSError, match="disk full"):
        await spawn(["touch", str(ran)], owner=tmp_path, kind="worker")
    await asyncio.sleep(0.1)
    assert not ran.exists()


DIES_AT_THE_GATE = """
import asyncio, os, sys
from pathlib import Path
from browseruse_bench.store import processes
append = processes._append
def die(owner, entry):
    if sys.argv[2] == "recorded":
        append(owner, entry)
    print(entry.pgid, flush=True)
    os.kill(os.getpid(), 9)
processes._append = die
folder = Path(sys.argv[1])
asyncio.run(processes.spawn(["touch", str(folder / "ran")], owner=folder, kind="worker"))
"""


@pytest.mark.parametrize("when", ["recorded", "unrecorded"])
def test_an_owner_killed_before_the_release_leaves_no_process(tmp_path, when):
    command = [sys.executable, "-c", DIES_AT_THE_GATE, str(tmp_path), when]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == -signal.SIGKILL
    wait_until(lambda: not lives(int(result.stdout)))
    assert not (tmp_path / "ran").exists()


LEAVES_BEHIND = """
import asyncio, os, sys
from pathlib import Path
from browseruse_bench.store.processes import spawn
folder = Path(sys.argv[1])
async def main():
    (folder / "profile").mkdir()
    await spawn(["sh", "-c", sys.argv[2]], owner=folder, kind="worker", removes=[folder / "profile"])
    while not (folder / "pids").exists() or not (folder / "pids").read_text().endswith("ok\\n"):
        await asyncio.sleep(0.01)
asyncio.run(main())
os.kill(os.getpid(), 9)
"""


def left_behind(tmp_path, program):
    """Pids of what an owner, killed with -9, left; `program` writes them to ./pids."""
    command = [sys.executable, "-c", LEAVES_BEHIND, str(tmp_path), program]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    return [int(word) for word in (tmp_path / "pids").read_text().split()[:-1]]


def test_reap_ends_what_a_killed_owner_left(tmp_path):
    pids = left_behind(
        tmp_path,
        f"sleep 300 & (echo $$; echo $!; echo ok) > {tmp_path}/pids; wait",
    )
    assert all(map(lives, pids))
    (line,) = reap(tmp_path)
    assert line.startswith("worker left by process ")
    assert not any(map(lives, pids))
    assert not (tmp_path / "profile").exists()
    assert reap(tmp_path) == ()


def test_reap_ends_group_members_whose_leader_is_gone(tmp_path):
    pids = left_behind(tmp_path, f"sleep 300 & (echo $!; echo ok) > {tmp_path}/pids")
    assert all(map(lives, pids))
    assert len(reap(tmp_path)) == 1
    assert not any(map(lives, pids))


async def test_reap_leaves_the_processes_of_a_living_owner_alone(tmp_path):
    owned = await spawn(SLEEP, owner=tmp_path, kind="worker")
    assert reap(tmp_path) == ()
    assert owned.alive()
    await end(owned)


def test_reap_never_kills_a_process_that_has_the_number_but_another_start(tmp_path, stranger):
    write(tmp_path, entry(pgid=stranger.pid, leader_start=str(int(look(stranger.pid).start) - 1)))
    assert "ended 0 processes" in reap(tmp_path)[0]
    assert lives(stranger.pid)


def test_reap_never_kills_the_group_of_a_reused_number_whose_leader_is_gone(tmp_path):
    read, written = os.pipe()
    leader = subprocess.Popen(
        ["sh", "-c", "sleep 300 >/dev/null & echo $!"], stdout=written, start_new_session=True
    )
    leader.wait()
    os.close(written)
    with os.fdopen(read) as out:
        member = int(out.readline())
    try:
        assert look(member).session == leader.pid
        write(tmp_path, entry(pgid=leader.pid, leader_start="1"))
        assert "ended 0 processes" in reap(tmp_path)[0]
        assert lives(member)
    finally:
        os.kill(member, signal.SIGKILL)


def test_reap_leaves_alone_what_another_boot_or_container_recorded(tmp_path, stranger):
    folder = tmp_path / "profile"
    folder.mkdir()
    start = look(stranger.pid).start
    write(
        tmp_path, entry(pgid=stranger.pid, leader_start=start, boot_id="b", removes=(str(folder),))
    )
    assert reap(tmp_path) == ()
    assert lives(stranger.pid)
    assert folder.exists()


def test_after_a_reboot_only_files_are_removed(tmp_path, stranger, monkeypatch):
    monkeypatch.setattr(processes, "machine_id", lambda: "this one")
    folder = tmp_path / "profile"
    folder.mkdir()
    old = entry(
        pgid=stranger.pid, leader_start=look(stranger.pid).start, boot_id="before",
        machine_id="this one", removes=(str(folder),),
    )  # fmt: skip
    write(tmp_path, old)
    assert "removed 1 folders" in reap(tmp_path)[0]
    assert lives(stranger.pid)
    assert not folder.exists()


def test_a_torn_last_line_hides_nothing_and_harms_nothing(tmp_path):
    folder = tmp_path / "profile"
    folder.mkdir()
    write(tmp_path, entry(removes=(str(folder),)), tail='{"event":"start","id":"1')
    assert len(reap(tmp_path)) == 1
    assert not folder.exists()
    assert reap(tmp_path) == ()


@pytest.mark.parametrize("path", ["relative/profile", "/", "/etc", "/tmp/../etc/passwd"])
async def test_a_path_that_is_not_safe_to_remove_is_refused(tmp_path, path):
    with pytest.raises(ValueError, match="remove"):
        await spawn(SLEEP, owner=tmp_path, kind="worker", removes=[Path(path)])


@pytest.mark.parametrize("link_at", ["itself", "parent"])
def test_reap_never_removes_through_a_symbolic_link(tmp_path, link_at):
    outside = tmp_path / "outside" / "folder"
    outside.mkdir(parents=True)
    (outside / "precious").write_text("x")
    if link_at == "itself":
        path = tmp_path / "profile"
        path.symlink_to(outside)
    else:
        (tmp_path / "link").symlink_to(outside.parent)
        path = tmp_path / "link" / "folder"
    write(tmp_path, entry(removes=(str(path),)))
    reap(tmp_path)
    assert (outside / "precious").exists()


async def test_removal_does_not_follow_a_link_inside(tmp_path):
    precious = tmp_path / "precious"
    precious.mkdir()
    profile = tmp_path / "profile"
    profile.mkdir()
    (profile / "link").symlink_to(precious)
    (precious / "file").write_text("x")
    owned = await spawn(SLEEP, owner=tmp_path, kind="worker", removes=[profile])
    await end(owned)
    assert not profile.exists()
    assert (precious / "file").exists()


async def test_a_cancelled_spawn_leaves_nothing(tmp_path):
    seconds = f"300.{os.getpid()}"
    for pause in range(12):
        task = asyncio.create_task(spawn(["sleep", seconds], owner=tmp_path, kind="worker"))
        for _ in range(pause):
            await asyncio.sleep(0)
        task.cancel()
        try:
            owned = await task
        except asyncio.CancelledError:
            continue
        await end(owned)
    await asyncio.sleep(0.1)
    commands = subprocess.run(
        ["ps", "-eo", "stat,args"], capture_output=True, text=True, check=True
    )
    left = [line for line in commands.stdout.splitlines() if seconds in line and line[0] != "Z"]
    assert left == []


def test_a_folder_goes_with_its_block_and_nothing_is_owed(tmp_path):
    with owned_folder(tmp_path) as folder:
        (folder / "file").write_text("x")
        assert reap(tmp_path) == ()
        assert (folder / "file").exists()
    assert not folder.exists()
    assert reap(tmp_path) == ()


def test_the_folder_of_a_killed_owner_is_reaped(tmp_path):
    code = (
        "import sys, time; from pathlib import Path\n"
        "from browseruse_bench.store.processes import owned_folder\n"
        "with owned_folder(Path(sys.argv[1])) as folder:\n"
        "    print(folder, flush=True); time.sleep(300)\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as owner:
        folder = Path(owner.stdout.readline().strip())
        assert folder.is_dir()
        owner.kill()
    (line,) = reap(tmp_path)
    assert line.startswith("folder left by process")
    assert not folder.exists()
