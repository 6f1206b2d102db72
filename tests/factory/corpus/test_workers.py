import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from browseruse_bench.errors import DataError, StageError
from browseruse_bench.factory.corpus import engines
from browseruse_bench.factory.corpus.books import Job
from browseruse_bench.factory.corpus.workers import Worker
from tests.factory.corpus.filtering import run, story, submissions, write_lines

ROOT = Path(__file__).resolve().parents[3]


class Tells(Job):
    def work(self):
        print("what a library prints is no reply")
        return {"process": os.getpid()}

    def outputs(self):
        return ()


class Fails(Tells):
    def work(self):
        raise DataError("a file is damaged; restore it")


class Dies(Tells):
    def work(self):
        os.kill(os.getpid(), signal.SIGKILL)


class Lasts(Tells):
    def work(self):
        (self.manifest.parent / "begun").write_text(str(os.getpid()))
        time.sleep(60)
        return {}


@pytest.fixture
def engine():
    made = engines.Embedded(2)
    made.expect(engines.APART_BYTES)
    yield made
    made.close()


def test_jobs_are_done_in_other_processes_where_there_is_much_to_do(tmp_path, engine):
    jobs = [Tells(manifest=tmp_path / f"{i}.json") for i in range(6)]
    told = engine.settle_all(jobs)
    processes = {counted["process"] for counted in told}
    assert os.getpid() not in processes
    assert 1 <= len(processes) <= 2
    engine.close()
    assert not any(Path(f"/proc/{process}").exists() for process in processes)
    assert engine.settle_all(jobs) == told


def test_little_is_done_here(tmp_path):
    engine = engines.Embedded(2)
    engine.expect(engines.APART_BYTES - 1)
    assert engine.settle_all([Tells(manifest=tmp_path / "0.json")]) == [{"process": os.getpid()}]


def test_what_a_job_raises_comes_back_and_the_worker_goes_on(tmp_path):
    worker = Worker()
    try:
        with pytest.raises(DataError, match="restore it"):
            worker.settle(Fails(manifest=tmp_path / "0.json"))
        assert not (tmp_path / "0.json").exists()
        assert worker.settle(Tells(manifest=tmp_path / "1.json"))["process"] != os.getpid()
    finally:
        worker.end()


def test_a_worker_that_dies_is_said_with_its_status(tmp_path, engine):
    with pytest.raises(StageError, match=r"status -9 .*0\.json.*the same command goes on"):
        engine.settle_all([Dies(manifest=tmp_path / "0.json")])


def test_a_worker_ends_with_the_process_that_started_it(tmp_path):
    code = (
        "from pathlib import Path\nfrom tests.factory.corpus import test_workers as t\n"
        f"t.Worker().settle(t.Lasts(manifest=Path({str(tmp_path)!r}) / 'last.json'))"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT)
    begun = tmp_path / "begun"
    deadline = time.monotonic() + 60
    while not (begun.exists() and begun.read_text()) and time.monotonic() < deadline:
        time.sleep(0.05)
    worker = Path("/proc") / begun.read_text()
    assert worker.exists()
    parent.kill()
    parent.wait()
    while _lives(worker) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _lives(worker)


def _lives(process):
    try:
        return "Z (zombie)" not in (process / "status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.slow
def test_processes_come_to_the_same_as_threads(tmp_path, monkeypatch):
    for way, least in (("here", 1 << 60), ("apart", 0)):
        monkeypatch.setattr(engines, "APART_BYTES", least)
        for i in range(3):
            write_lines(tmp_path / way / "in" / f"{i}.jsonl", submissions(i, 300))
        flow = run(tmp_path / way, partitions=4)[0]
        assert flow.n_in == 900
    assert story(tmp_path / "apart") == story(tmp_path / "here")
