"""kill -9 while a run is judged: nothing is lost, nothing doubled, nothing paid twice."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.report.made_run import MadeBenchmark, MadeRun, row, rubric

N = 400
KILLS = 25


@pytest.mark.slow
def test_random_kills_of_eval_lose_and_double_nothing(tmp_path):
    ids = [f"t{n:03}" for n in range(N)]
    bench = MadeBenchmark(tmp_path / "Made", [row(task_id) for task_id in ids])
    bench.rubrics = {task_id: rubric(task_id, 40, 60, check=False) for task_id in ids}
    loaded = bench.load()
    run = MadeRun.of(tmp_path / "experiments", loaded)
    for task_id in ids:
        run.settle(loaded, task_id, f"answer {task_id}")
    script = Path(__file__).with_name("paying_judge.py")
    root = Path(__file__).resolve().parents[2]
    command = [sys.executable, str(script), *map(str, (tmp_path, run.folder.path, bench.path))]
    environment = {"PYTHONPATH": str(root), "PATH": ""}
    journal = run.folder.judgements_path
    chance = random.Random(9)
    for _ in range(KILLS):
        size = journal.stat().st_size if journal.exists() else 0
        process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
        while process.poll() is None:
            if journal.exists() and journal.stat().st_size > size:
                time.sleep(chance.uniform(0, 0.03))
                process.send_signal(signal.SIGKILL)
                break
            time.sleep(0.002)
        process.wait()
        assert process.returncode == -signal.SIGKILL, "it ended before it could be killed"
    last = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert int(last.stdout) > 0
    judged = run.folder.judgements()
    assert sorted(judgement.task_id for judgement in judged) == ids
    assert {judgement.status for judgement in judged} == {"graded"}
    paid = (tmp_path / "payments.log").read_text().splitlines()
    # What was asked and not yet kept when a kill came is asked again: at most what was in flight.
    assert len(set(paid)) <= len(paid) <= len(set(paid)) + 3 * KILLS
    assert len(list((tmp_path / "calls").rglob("*.json"))) >= N
