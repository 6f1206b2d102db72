"""kill -9 while a run is judged: nothing is lost, nothing doubled, nothing paid twice."""

import random
import signal

import pytest

from tests.report.made_run import MadeBenchmark, MadeRun, row, rubric
from tests.zygote import Zygote, grown

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
    journal = run.folder.judgements_path
    chance = random.Random(9)
    place = (tmp_path, run.folder.path, bench.path)
    output = tmp_path / "output"
    with Zygote("tests.eval.paying_judge:main", *place, output=output) as process:
        for _ in range(KILLS):
            begun = grown(journal)
            process.fork()
            process.kill_once(begun, after_s=chance.uniform(0, 0.03))
            assert process.wait()[0] == -signal.SIGKILL, "it ended before it could be killed"
        process.fork()
        code, printed = process.wait()
    assert (code, int(printed) > 0) == (0, True)
    judged = run.folder.judgements()
    assert sorted(judgement.task_id for judgement in judged) == ids
    assert {judgement.status for judgement in judged} == {"graded"}
    paid = (tmp_path / "payments.log").read_text().splitlines()
    # What was asked and not yet kept when a kill came is asked again: at most what was in flight.
    assert len(set(paid)) <= len(paid) <= len(set(paid)) + 3 * KILLS
    assert len(list((tmp_path / "calls").rglob("*.json"))) >= N
