"""Judging a run again, in whole or in part, changes no count and loses no verdict."""

import asyncio
import json

import pytest

from browseruse_bench.eval.evaluate import evaluate_run
from browseruse_bench.report.leaderboard import build
from browseruse_bench.report.summary import report_run
from tests.report.made_run import MadeBenchmark, MadeRun, evaluator, row

FAILS = 'if task_id != "t0": raise OSError("402")\nreturn {"predicted_label": 1, "score": 100}'
WORKS = 'return {"predicted_label": 0, "score": 40}'


@pytest.fixture
def made(tmp_path):
    """(benchmark, run) of so many settled tasks."""

    def make(n, judge):
        rows = [row(f"t{i}") for i in range(n)]
        bench = MadeBenchmark(tmp_path / "Made", rows, evaluator=evaluator(judge))
        loaded = bench.load()
        run = MadeRun.of(tmp_path / "experiments", loaded)
        for one in rows:
            run.settle(loaded, one["task_id"], "x")
        return bench, run

    return make


def judge(bench, run, **options):
    loaded = bench.load()
    judged = asyncio.run(evaluate_run(run.folder, loaded, **options))
    return judged, report_run(run.folder, loaded)


def test_twenty_tasks_of_which_nineteen_were_judged_twice_are_twenty_bl014(made):
    """BL014: the older, ungraded lines do not count and do not win."""
    bench, run = made(20, FAILS)
    _, before = judge(bench, run)
    assert before.figures.accounting.ungraded == {"evaluator_error": 19}
    old = run.folder.judgements_path.read_bytes()
    bench.evaluator = evaluator(f'if task_id == "t0": return None\n{WORKS}')
    judge(bench, run, task_ids=[f"t{n}" for n in range(1, 20)])
    lines = run.folder.judgements_path.read_bytes()
    assert lines.startswith(old)
    assert lines.count(b"\n") == 39
    loaded = bench.load()
    summary = report_run(run.folder, loaded)
    assert summary.figures.accounting.as_json()["selected"] == 20
    assert summary.figures.n == 20
    assert summary.figures.mean == (100 + 19 * 40) / 20
    assert json.loads((run.folder.path / "summary.json").read_text())["figures"]["n"] == 20


def test_judging_two_of_fifty_leaves_forty_eight_verdicts_as_they_were_bl015(made, tmp_path):
    """BL015."""
    bench, run = made(50, WORKS)
    _, before = judge(bench, run)
    judged, after = judge(bench, run, force=True, task_ids=["t3", "t7"])
    assert sorted(j.task_id for j in judged.new) == ["t3", "t7"]
    assert after.figures == before.figures
    assert after.n_selected_tasks == after.n_total_tasks == 50
    (group,) = build(tmp_path / "experiments").groups
    assert [(r.rank, r.figures.n, r.marks) for r in group.rows] == [(1, 50, ())]
