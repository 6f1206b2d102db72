"""The scripts that browser-use plays on LocalSites: what index.json says of them is what they
earn, in real Chromium with the real library.
"""

import asyncio
import json
from collections import Counter
from pathlib import Path

import pytest

from browseruse_bench.agents.browser_use.agent import read_scripts
from browseruse_bench.benchmarks.load import load_benchmark
from browseruse_bench.cli.demo import SCRIPTS
from browseruse_bench.eval.evaluate import evaluate_run
from browseruse_bench.report.summary import summarise
from browseruse_bench.runs.execute import execute
from browseruse_bench.runs.plan import RunRequest, plan
from tests.agents.browser_use.installed import installed

__all__ = ["installed"]

LOCALSITES = Path(__file__).resolve().parents[2] / "benchmarks" / "LocalSites"
FOLDER = LOCALSITES.joinpath(*SCRIPTS)
INDEX = json.loads((FOLDER / "index.json").read_text())
TASKS = {t["task_id"]: t for t in json.loads((LOCALSITES / "data" / "tasks.json").read_text())}
STATUS = {"right": "finished", "wrong": "finished", "gives up": "gave_up"}


def test_there_are_right_ones_wrong_ones_and_ones_that_give_up_on_every_site():
    assert set(INDEX) == set(read_scripts(FOLDER))
    assert len(INDEX) >= 12
    assert {TASKS[task_id]["website"] for task_id in INDEX} == {
        "docs.test", "flights.test", "miniwob.test", "shop.test",
    }  # fmt: skip
    kinds = Counter(entry["kind"] for entry in INDEX.values())
    assert set(kinds) == set(STATUS)
    assert min(kinds.values()) >= 3


@pytest.mark.parametrize("task_id", sorted(INDEX))
def test_no_script_addresses_an_element_by_a_recorded_number(task_id):
    script = read_scripts(FOLDER)[task_id]
    acted = [
        a["index"] for step in script for action in step for a in action.values() if "index" in a
    ]
    assert all(isinstance(target, dict) and "role" in target for target in acted)
    assert "done" in script[-1][-1]


@pytest.mark.parametrize("task_id", sorted(INDEX))
def test_the_index_is_as_its_kind_says(task_id):
    entry = INDEX[task_id]
    assert (entry["points"] == 100) is (entry["kind"] == "right")
    if entry["kind"] == "wrong":
        assert entry["why"]


@pytest.mark.browser
@pytest.mark.slow
def test_each_script_earns_what_the_index_says(installed, tmp_path):
    planned = plan(
        RunRequest(
            agent="browser-use",
            benchmark=str(LOCALSITES),
            mode="ids",
            task_ids=tuple(INDEX),
            model=f"scripted:{FOLDER}",
            concurrency=2,
            experiments=tmp_path,
        )
    )
    asyncio.run(execute(planned, on_settled=lambda _: None, stop=asyncio.Event()))
    benchmark = load_benchmark(str(LOCALSITES))
    asyncio.run(evaluate_run(planned.folder, benchmark))
    summary = summarise(planned.folder, benchmark)
    earned = {task.task_id: task.attempts[0].points for task in summary.tasks}
    assert earned == {task_id: entry["points"] for task_id, entry in INDEX.items()}
    ended = {key[0]: entry.status for key, entry in planned.folder.attempts().items()}
    assert ended == {task_id: STATUS[entry["kind"]] for task_id, entry in INDEX.items()}
