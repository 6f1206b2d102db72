"""Real traces of LocalSites withstand every attack that code can tell, and honest ones lose
nothing: those of the reference solutions, of plausible wrong attempts and of an idle agent.

One template in three is attacked here, so that every site has some; `benches/redteam.py` attacks all.
"""

import asyncio

import pytest

from browseruse_bench.benchmarks.load import load_benchmark
from browseruse_bench.eval.findings.judge import FindingsJudge
from browseruse_bench.eval.redteam.campaign import campaign, victims
from browseruse_bench.eval.redteam.catalogue import chosen
from browseruse_bench.measure.redteam import figures
from browseruse_bench.models.scripted import ScriptedModel
from browseruse_bench.runs.execute import execute
from browseruse_bench.runs.plan import RunRequest, plan
from tests.eval.findings.believer import Believer
from tests.localsites.test_end_to_end import FOLDER, first_of_each_template, wrong_ways

pytestmark = [pytest.mark.browser, pytest.mark.slow]
__all__ = ["wrong_ways"]


def attacked(folder, agent, root, *names, ids=None, judge=None):
    """The figures of one agent's attempts at one task of every third template."""
    request = RunRequest(
        agent=agent,
        benchmark=str(folder),
        mode="ids",
        task_ids=ids or first_of_each_template()[::3],
        concurrency=2,
        experiments=root,
    )
    planned = plan(request)
    asyncio.run(execute(planned, on_settled=lambda _: None, stop=asyncio.Event()))
    found, skipped = victims(
        planned.folder, load_benchmark(str(folder)), judge=judge, by_code=False
    )
    assert not skipped
    wanted = [v for v in found if (v.kind == "model") == (judge is not None)]
    done = asyncio.run(campaign(wanted, chosen(names), into=root / "rt", success_at=100))
    failed = [
        (t.task_id, t.attack, t.gained, t.lost, t.after.message)
        for t in done.trials
        if t.is_counted and t.failed and t.tellable == "code"
    ]
    assert failed == []
    assert all(trial.is_counted for trial in done.trials)
    (judged,) = figures(done.trials)
    return judged


def test_right_traces_withstand_every_attack(tmp_path):
    found = attacked(FOLDER, "oracle", tmp_path)
    assert found.gains.n > 700
    assert found.losses.n > 60
    assert (found.gains.failed, found.losses.failed) == (0, 0)


def test_wrong_traces_and_idle_ones_withstand_them_too(tmp_path, wrong_ways):
    for folder, agent in ((wrong_ways, "oracle"), (FOLDER, "nop")):
        found = attacked(
            folder, agent, tmp_path / agent, "evidence", "echo", "words", "planted", "honest"
        )
        assert (found.gains.failed, found.losses.failed) == (0, 0)


def test_a_judge_that_believes_everything_gains_nothing_from_them(tmp_path):
    judge = FindingsJudge(ScriptedModel(Believer()), by_code=False)
    found = attacked(
        FOLDER,
        "oracle",
        tmp_path,
        *("evidence", "echo", "script", "planted", "key", "files", "honest-untouched"),
        ids=first_of_each_template()[::6],
        judge=judge,
    )
    assert found.gains.n > 200
    assert (found.gains.failed, found.losses.failed) == (0, 0)
