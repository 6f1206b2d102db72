"""LocalSites in real Chromium: the oracle earns 100 on every task, nop nothing, and a
plausible wrong attempt what the rubric says.
"""

import asyncio
import json
import shutil
from collections import defaultdict
from pathlib import Path

import pytest

from browseruse_bench.benchmarks.load import load_benchmark
from browseruse_bench.eval.evaluate import evaluate_run
from browseruse_bench.report.summary import summarise
from browseruse_bench.runs.execute import execute
from browseruse_bench.runs.plan import RunRequest, plan

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "benchmarks" / "LocalSites"
WRONG = json.loads(Path(__file__).with_name("wrong.json").read_text())

pytestmark = pytest.mark.browser


def first_of_each_template():
    """One task of each template: `<site>-<template>-<number>` without its number."""
    templates = defaultdict(list)
    for task in json.loads((FOLDER / "data" / "tasks.json").read_text()):
        templates[task["task_id"].rpartition("-")[0]].append(task["task_id"])
    return tuple(sorted(ids[0] for ids in templates.values()))


def earned(folder: Path, agent: str, experiments: Path, task_ids: tuple[str, ...] = ()):
    """(task id -> points, the run's summary) of one agent at these tasks, or at all."""
    request = RunRequest(
        agent=agent,
        benchmark=str(folder),
        mode="ids" if task_ids else "all",
        task_ids=task_ids,
        concurrency=2,
        experiments=experiments,
    )
    planned = plan(request)
    asyncio.run(execute(planned, on_settled=lambda _: None, stop=asyncio.Event()))
    benchmark = load_benchmark(str(folder))
    asyncio.run(evaluate_run(planned.folder, benchmark))
    summary = summarise(planned.folder, benchmark)
    assert summary.figures.accounting.graded == summary.figures.accounting.selected, [
        (row.task_id, a.where, a.message) for row in summary.tasks for a in row.attempts
    ]
    return {task.task_id: task.attempts[0].points for task in summary.tasks}, summary


def unlike(points, expected, experiments: Path):
    """What every task that did not earn as expected earned, and what its attempt says of that."""
    found = {}
    for task_id in expected.keys() | points.keys():
        if points.get(task_id) != expected.get(task_id):
            trace = json.loads(next(experiments.glob(f"**/{task_id}/1/*/trace.json")).read_text())
            said = trace["outcome"], trace["guard"]["hits"], trace["errors"]
            found[task_id] = points.get(task_id), expected.get(task_id), said
    return found


@pytest.fixture
def wrong_ways(tmp_path):
    """A copy of the benchmark whose solutions are the wrong attempts."""
    folder = tmp_path / "LocalSites"
    shutil.copytree(FOLDER, folder, ignore=shutil.ignore_patterns("__pycache__"))
    for task_id, wrong in WRONG.items():
        (folder / "solutions" / f"{task_id}.json").write_text(json.dumps(wrong["solution"]))
    return folder


def test_the_oracle_earns_everything_on_one_task_of_each_template(tmp_path):
    ids = first_of_each_template()
    points, summary = earned(FOLDER, "oracle", tmp_path, ids)
    assert unlike(points, dict.fromkeys(ids, 100), tmp_path) == {}
    assert summary.figures.success == 1


def test_nop_earns_nothing_on_one_task_of_each_template(tmp_path):
    """BL042: doing nothing earns nothing."""
    ids = first_of_each_template()
    points, summary = earned(FOLDER, "nop", tmp_path, ids)
    assert unlike(points, dict.fromkeys(ids, 0), tmp_path) == {}
    assert summary.figures.success == 0


def test_a_wrong_attempt_earns_what_its_rubric_says_on_one_task_of_each_template(
    tmp_path, wrong_ways
):
    ids = first_of_each_template()
    points, _ = earned(wrong_ways, "oracle", tmp_path, ids)
    expected = {task_id: WRONG[task_id]["points"] for task_id in ids}
    assert unlike(points, expected, tmp_path) == {}


def all_others():
    """The tasks that the tests above leave out."""
    first = set(first_of_each_template())
    return tuple(task_id for task_id in WRONG if task_id not in first)


@pytest.mark.slow
def test_the_oracle_earns_everything_on_all_other_tasks(tmp_path):
    points, _ = earned(FOLDER, "oracle", tmp_path, all_others())
    assert len(points) >= 22
    assert unlike(points, dict.fromkeys(all_others(), 100), tmp_path) == {}


@pytest.mark.slow
def test_nop_earns_nothing_on_all_other_tasks(tmp_path):
    """BL042."""
    points, _ = earned(FOLDER, "nop", tmp_path, all_others())
    assert unlike(points, dict.fromkeys(all_others(), 0), tmp_path) == {}


@pytest.mark.slow
def test_a_wrong_attempt_earns_what_its_rubric_says_on_all_other_tasks(tmp_path, wrong_ways):
    points, _ = earned(wrong_ways, "oracle", tmp_path, all_others())
    expected = {task_id: WRONG[task_id]["points"] for task_id in all_others()}
    assert unlike(points, expected, tmp_path) == {}


def test_there_is_a_wrong_attempt_at_every_task():
    tasks = json.loads((FOLDER / "data" / "tasks.json").read_text())
    assert {task["task_id"] for task in tasks} == WRONG.keys()
    assert len(first_of_each_template()) + len(all_others()) == len(WRONG)
