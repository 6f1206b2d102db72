"""Whatever dies, whenever: nothing settled is lost or counted twice, nothing is left running or
lying about, the counts add up, and the next command goes on.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import pytest

from browseruse_bench.records.run import AttemptEntry
from browseruse_bench.store.process_table import HAS_PROC, look, table
from browseruse_bench.store.trace_folder import TraceFolder

REPO = Path(__file__).resolve().parents[2]
N_TASKS = 6
SEED = 20261130


@pytest.fixture
def temporary():
    """A folder for temporary files with a path as short as the system's own."""
    folder = Path(tempfile.mkdtemp(prefix="sv-", dir="/tmp"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


class Runs:
    """The same command, again and again, in one folder of runs."""

    def __init__(self, project, temporary, *arguments, root="experiments"):
        self.project = project
        self.temporary = temporary
        self.arguments = (*arguments, "--experiments", root)
        self.root = root

    def start(self, *more, **settings):
        env = {**os.environ, "PYTHONPATH": str(REPO), "TMPDIR": str(self.temporary)}
        command = [sys.executable, "-m", "browseruse_bench", "run", *self.arguments, *more]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, env=env, stdout=pipe, stderr=pipe, text=True, **settings)

    def finish(self, *more, timeout_s=120):
        process = self.start(*more)
        output, errors = process.communicate(timeout=timeout_s)
        return process.returncode, output, errors

    @property
    def folder(self):
        found = list(self.project.glob(f"{self.root}/*/*/*/*/*/run.json"))
        assert len(found) <= 1
        return found[0].parent if found else None

    def entries(self):
        """What the journal says, in whole lines."""
        path = self.folder / "attempts.jsonl" if self.folder else None
        if path is None or not path.exists():
            return []
        *lines, _torn = path.read_bytes().split(b"\n")
        return [AttemptEntry.model_validate_json(line) for line in lines]

    def recorded(self):
        """The records of processes and folders that started and did not end."""
        path = self.folder / "processes.jsonl" if self.folder else None
        started = {}
        if path is not None and path.exists():
            for line in path.read_bytes().splitlines():
                try:
                    entry = json.loads(line)
                except ValueError:
                    continue
                if entry["event"] == "start":
                    started[entry["id"]] = entry
                else:
                    started.pop(entry["id"], None)
        return list(started.values())

    def is_at_work(self, process):
        """Whether a worker that this command started is there."""
        return any(
            entry["owner_pid"] == process.pid and entry["kind"] == "worker"
            for entry in self.recorded()
        )

    def marks(self):
        lines = (self.folder / "processes.jsonl").read_bytes().splitlines()
        return {json.loads(line)["id"].encode() for line in lines if line.startswith(b"{")}

    def left_running(self):
        """Processes that carry a mark of this run."""
        marks, found = self.marks(), []
        for seen in table():
            try:
                environment = Path(f"/proc/{seen.pid}/environ").read_bytes()
            except OSError:
                continue
            if not seen.zombie and any(mark in environment for mark in marks):
                found.append(Path(f"/proc/{seen.pid}/cmdline").read_bytes()[:120])
        return found


def settled(entries):
    """(task, attempt) -> trace key of what counts; each counts once."""
    final = [entry for entry in entries if entry.status != "infrastructure"]
    keys = {(entry.task_id, entry.attempt): entry.trace_key for entry in final}
    assert len(keys) == len(final), "something was counted twice"
    return keys


def is_whole(runs, entries):
    for entry in entries:
        place = runs.folder / "tasks" / entry.task_id / str(entry.attempt) / f"try-{entry.try_}"
        assert TraceFolder.open(place, entry.trace_key).trace.outcome.status == entry.status


def is_clean(runs):
    assert runs.left_running() == []
    assert runs.recorded() == []
    assert [path.name for path in runs.temporary.iterdir()] == []


def shoot(runs, chance, kind):
    """Kill -9 a browser, worker or site of the run, if there is one; say whether."""
    targets = [
        entry["pgid"]
        for entry in runs.recorded()
        if entry.get("kind") == kind and (seen := look(entry["pgid"])) and not seen.zombie
    ]
    if not targets:
        return False
    try:
        os.kill(chance.choice(targets), signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


VICTIMS = ("parent", "worker", "browser", "site")
SIGNALS = (*[signal.SIGKILL] * 4, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def kill_one(runs, chance, process, kills):
    """Kill somebody, if somebody is there, of those whom nobody killed yet; returns who it was."""
    victim = chance.choice([kind for kind in VICTIMS if not kills[kind]] or VICTIMS)
    if victim != "parent":
        return victim if shoot(runs, chance, victim) else None
    if not runs.is_at_work(process) and chance.random() < 0.9:
        return None  # on a busy machine it would hardly ever come to a worker
    process.send_signal(chance.choice(SIGNALS))
    return victim


def shoot_at_random(runs, chance):
    """Fifty deaths over as many commands as that takes, each of which lost nothing."""
    kills, before, repeat, process = Counter(), {}, 1, None
    end = time.monotonic() + 220
    while kills.total() < 50 and time.monotonic() < end:
        if process is None:
            repeat += 1 if len(before) >= N_TASKS * repeat else 0
            process = runs.start("--repeat", str(repeat))
        time.sleep(chance.uniform(0.05, 0.7))
        if process.poll() is None:
            victim = kill_one(runs, chance, process, kills)
            kills.update([victim] if victim else [])
            if victim != "parent":
                continue
        check_end(process)
        process = None
        after = settled(runs.entries())
        assert before.items() <= after.items(), "something that had settled was lost"
        before = after
    if process is not None:
        process.kill()
        process.communicate()
    return kills, before, repeat


def check_end(process):
    _, errors = process.communicate(timeout=60)
    # A signal that comes before the command has set itself up ends it as any program.
    assert process.returncode in (0, 4, 130, *(-number for number in SIGNALS)), errors
    assert "Traceback" not in errors or "KeyboardInterrupt" in errors, errors


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.skipif(not HAS_PROC, reason="the table of processes is read from /proc")
def test_fifty_deaths_of_anything_lose_nothing(benchmark, project, temporary):
    """BL010, BL016, BL023: kill -9 of parents, workers, browsers and sites, and three signals."""
    benchmark(
        *(f"note {n}" for n in range(N_TASKS)), sites={"notes.test": "tests.runs.survivor:Notes"}
    )
    runs = Runs(
        project, temporary, "--agent", "tests.runs.survivor:Player", "--benchmark", "Small",
        "--concurrency", "2", "--timeout", "20", "--step-timeout", "10",
    )  # fmt: skip
    kills, before, repeat = shoot_at_random(runs, random.Random(SEED))
    assert kills.total() >= 50, kills
    assert set(kills) == set(VICTIMS)

    for _ in range(3):  # an attempt may have ended as infrastructure: it is owed again
        status, output, errors = runs.finish("--repeat", str(repeat), "--json")
        assert status in (0, 4), errors
        if status == 0:
            break
    assert status == 0, errors
    counts = json.loads(output)["accounting"]
    entries = runs.entries()
    after = settled(entries)
    assert before.items() <= after.items()
    # A worker that never works is no work that could be lost.
    assert "finished" in {entry.status for entry in entries}
    assert counts["selected"] == N_TASKS * repeat == len(after) == counts["ungraded"]["not_judged"]
    is_whole(runs, entries)
    is_clean(runs)


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.skipif(not HAS_PROC, reason="the table of processes is read from /proc")
def test_two_runs_side_by_side_do_not_touch_each_other_bl010(benchmark, project, temporary):
    """One is killed and goes on, which ends what it left running, while the other is at work."""
    benchmark(*(f"note {n}" for n in range(4)), sites={"notes.test": "tests.runs.survivor:Notes"})
    player = ("--agent", "tests.runs.survivor:Player", "--benchmark", "Small", "--concurrency", "1")
    killed, other = (Runs(project, temporary, *player, root=name) for name in ("one", "two"))
    more = ("--repeat", "4")  # so that it is at work all the while
    second, first = other.start(*more), killed.start()
    try:
        wait_for_a_line(other, second)
        end = time.monotonic() + 60
        while not killed.is_at_work(first):
            assert (first.poll(), second.poll()) == (None, None)
            assert time.monotonic() < end
            time.sleep(0.02)
        first.kill()
        first.communicate()
        assert killed.finish()[0] == 0
        assert second.poll() is None, "it had nothing left in which it could be touched"
        _, errors = second.communicate(timeout=180)
    finally:
        first.kill()
        second.kill()
    assert second.returncode == 0, errors
    assert "reaped" not in errors
    for runs, n in ((killed, 4), (other, 16)):
        assert {entry.status for entry in runs.entries()} == {"finished"}
        assert len(settled(runs.entries())) == len(runs.entries()) == n
        assert (runs.left_running(), runs.recorded()) == ([], [])
    assert list(temporary.iterdir()) == []


ECHO = (
    *("--agent", "tests.runs.doubles:Echo", "--benchmark", "Small"),
    *("--browser", "none", "--concurrency", "2"),
)


def wait_for_a_line(runs, process):
    while not runs.entries():
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_keeps_what_settled_and_the_next_command_goes_on(
    benchmark, project, temporary, number
):
    benchmark(*["slow"] * 12)
    runs = Runs(project, temporary, *ECHO)
    process = runs.start()
    wait_for_a_line(runs, process)
    process.send_signal(number)
    output, errors = process.communicate(timeout=30)
    assert process.returncode == 130, errors
    before = settled(runs.entries())
    assert 0 < len(before) < 12
    assert f"not run {12 - len(before)} (stopped {12 - len(before)})" in output
    is_clean(runs)
    assert runs.finish()[0] == 0
    assert before.items() <= settled(runs.entries()).items()
    assert len(runs.entries()) == 12


def test_a_reader_that_goes_away_ends_the_run_and_loses_nothing(benchmark, project, temporary):
    """SIGPIPE: `bubench run ... 2>&1 | head -1`."""
    benchmark(*["slow"] * 12)
    runs = Runs(project, temporary, *ECHO)
    process = runs.start()
    process.stderr.readline()
    process.stderr.close()
    process.stdout.close()
    assert process.wait(30) in (0, 141)
    before = settled(runs.entries())
    is_clean(runs)
    assert runs.finish()[0] == 0
    assert before.items() <= settled(runs.entries()).items()
    assert len(settled(runs.entries())) == 12


def test_two_commands_in_one_folder_the_second_says_who_holds_it(benchmark, project, temporary):
    benchmark("a", *["hang"] * 4)
    runs = Runs(project, temporary, *ECHO)
    first = runs.start()
    wait_for_a_line(runs, first)
    status, _, errors = runs.finish()
    assert status == 2
    assert f"another run goes on in this folder (process {first.pid})" in errors
    first.send_signal(signal.SIGINT)
    time.sleep(0.5)
    first.send_signal(signal.SIGINT)
    _, errors = first.communicate(timeout=60)
    assert first.returncode == 130, errors
    assert len(runs.entries()) == len(settled(runs.entries())) == 1
    is_clean(runs)


@pytest.fixture
def small_disk(project):
    """1.5 MB in place of experiments/."""
    folder = project / "experiments"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1536k", "tmpfs", str(folder)]
    if (
        shutil.which("mount") is None
        or subprocess.run(mount, check=False, capture_output=True).returncode
    ):
        pytest.skip("a small disk can only be mounted by root")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_disk_is_said_in_a_line_and_the_next_command_goes_on(
    benchmark, project, temporary, small_disk
):
    benchmark(*["a"] * 40)
    filler = small_disk / "filler"
    filler.write_bytes(b"x" * 1_250_000)
    runs = Runs(project, temporary, *ECHO)
    status, _, errors = runs.finish()
    assert status == 1
    assert "Traceback" not in errors
    assert "No space left on device" in errors
    assert "the same command goes on" in errors
    before = settled(runs.entries())
    assert 0 < len(before) < 40
    is_whole(runs, runs.entries())
    filler.unlink()
    status, _, errors = runs.finish()
    assert status == 0, errors
    entries = runs.entries()
    assert before.items() <= settled(entries).items()
    assert len(settled(entries)) == 40
    is_whole(runs, entries)
    is_clean(runs)


def test_steps_of_the_wall_clock_change_no_duration_and_no_limit(benchmark, carry_out, monkeypatch):
    from datetime import datetime, timedelta

    from browseruse_bench.runs import attempt

    class Jumping(datetime):
        n = 0

        @classmethod
        def now(cls, tz=None):
            cls.n += 1
            return datetime.now(tz) + timedelta(days=400 * (-1) ** cls.n)

    real = time.time
    monkeypatch.setattr(attempt, "datetime", Jumping)
    monkeypatch.setattr(time, "time", lambda: real() + random.choice([-1e7, 1e7]))
    benchmark("slow", "hang", "a")
    planned, executed, _ = carry_out(timeout_s=1)
    assert Jumping.n >= 6
    assert executed.statuses == {"finished": 2, "time_limit": 1}
    entries = planned.folder.attempts()
    assert 0.3 <= entries["t1", 1].wall_s < 1
    assert 1 <= entries["t2", 1].wall_s < 5
