"""What is left of a browser when the process that started it dies: nothing."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest

from browseruse_bench.store.processes import reap

pytestmark = pytest.mark.browser

PARENT = """
import asyncio, sys
from pathlib import Path
from browseruse_bench.browsers.base import SessionRequest
from browseruse_bench.browsers.local import LocalChromium
from browseruse_bench.browsers.options import BrowserOptions
folder = Path(sys.argv[1])
async def main():
    backend = LocalChromium(BrowserOptions())
    request = SessionRequest(work=folder / "work", downloads=folder / "downloads", owner=folder)
    print("starting", flush=True)
    async with backend.open(request):
        print("open", flush=True)
        await asyncio.sleep(60)
try:
    asyncio.run(main())
except KeyboardInterrupt:
    sys.exit(130)
"""


def left_of(folder):
    commands = subprocess.run(
        ["ps", "-eo", "stat=,pid=,args=", "-ww"], capture_output=True, text=True, check=True
    )
    return [
        line for line in commands.stdout.splitlines() if f"{folder}/work" in line and line[0] != "Z"
    ]


def start(folder):
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(folder)], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout.readline() == "starting\n"
    return parent


def kill(parent):
    parent.kill()
    parent.wait()
    parent.stdout.close()


def wait_until_gone(folder, within_s):
    deadline = time.monotonic() + within_s
    while left := left_of(folder):
        assert time.monotonic() < deadline, left
        time.sleep(0.05)


@pytest.mark.parametrize("trial", range(10))
def test_after_kill_9_of_the_parent_at_any_moment_reap_leaves_nothing_BL023(tmp_path, trial):  # noqa: N802
    parent = start(tmp_path)
    time.sleep(random.Random(trial).uniform(0, 1.0))
    kill(parent)
    reap(tmp_path)
    assert left_of(tmp_path) == []
    # Killed before the browser's record, at most empty folders and an empty log are there, and
    # never a browser.
    record = tmp_path / "processes.jsonl"
    if record.exists() and '"kind":"browser"' in record.read_text():
        assert not (tmp_path / "work").exists()
    left = [path for path in (tmp_path / "work").rglob("*") if path.is_file()]
    assert [path.stat().st_size for path in left if path.name == "stderr.log"] == [0] * len(left)
    assert reap(tmp_path) == ()


def test_after_kill_9_the_browser_ends_by_itself_BL023(tmp_path):  # noqa: N802
    parent = start(tmp_path)
    assert parent.stdout.readline() == "open\n"
    assert left_of(tmp_path)
    kill(parent)
    # One second on an idle machine; the rest is for a busy one.
    wait_until_gone(tmp_path, 1 + 4 * (os.getloadavg()[0] > 1))
    # The folder is the guard's canary.
    assert sorted(line.partition(" left by process")[0] for line in reap(tmp_path)) == [
        "browser",
        "folder",
    ]
    assert not (tmp_path / "work").exists()


def test_a_hung_browser_is_killed_by_reap(tmp_path):
    parent = start(tmp_path)
    assert parent.stdout.readline() == "open\n"
    pids = [int(line.split()[1]) for line in left_of(tmp_path)]
    for pid in pids:
        if pid != parent.pid:
            os.kill(pid, signal.SIGSTOP)
    kill(parent)
    time.sleep(0.3)
    assert left_of(tmp_path)
    reap(tmp_path)
    assert left_of(tmp_path) == []
    assert not (tmp_path / "work").exists()


def test_ctrl_c_ends_the_browser_before_the_parent(tmp_path):
    parent = start(tmp_path)
    assert parent.stdout.readline() == "open\n"
    parent.send_signal(signal.SIGINT)
    assert parent.wait(45) == 130
    parent.stdout.close()
    assert left_of(tmp_path) == []
    assert not (tmp_path / "work").exists()
    assert reap(tmp_path) == ()
