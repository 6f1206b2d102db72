"""The screen in a pipeline: run, report, and again, as `bubench factory` does it."""

import asyncio

from browseruse_bench.factory import STAGES
from browseruse_bench.factory.funnel import stage_report
from browseruse_bench.factory.pipeline import Pipeline
from browseruse_bench.factory.stages.screen import Screening, screened
from browseruse_bench.factory.workspace import Workspace, create
from tests.factory.screen import watched
from tests.factory.test_pipeline import Lines

CONFIG = """
name = "w"
[roles]
judge = "scripted:say.py:answer"
escalation = "scripted:say.py:answer"
[screen]
agent = "tests.factory.screen.watched:Counted"
browser = "none"
max_runs = 4
escalation_runs = 1
"""
SAY = """
from tests.factory.screen.screening import grader as answer
"""


def run(made, **more):
    async def each():
        for step in made.steps:
            done = await made.run(
                step,
                on_settled=lambda progress: None,
                on_progress=lambda text: None,
                stop=asyncio.Event(),
                **more,
            )
        return done

    return asyncio.run(each())


def test_it_runs_in_a_pipeline_reports_and_makes_nothing_twice(tmp_path, monkeypatch):
    log = tmp_path / "watched.jsonl"
    monkeypatch.setenv(watched.LOG, str(log))
    root = tmp_path / "w"
    create(root, CONFIG)
    (root / "say.py").write_text(SAY)
    (root / "corpus.txt").write_text("Find one thing on a page\nFind another thing there\n")
    workspace = Workspace.open(root)
    made = Pipeline(workspace, (Lines(), Screening(workspace.config)))
    done = run(made)
    assert done.flow.dropped == {"pending": 2}, stage_report(made, made.steps[1])
    n = len(log.read_text().splitlines())
    found = screened(made.folder(made.steps[1]), 1)
    assert n == sum(len(one.runs) for one in found)
    assert {one.agents["escalation"].model for one in found} == {"scripted:say.py:answer"}
    told = stage_report(made, made.steps[1])
    assert "reference: counted 1, no model" in told
    assert f"{found[0].n_runs:.2f} a task; the fixed design: 4" in told
    assert "## Notes changed after the judgement of each wave" in told
    assert run(made).n_now == 0
    assert len(log.read_text().splitlines()) == n


def test_screen_follows_restyle():
    names = list(STAGES)
    assert names.index("screen") == names.index("restyle") + 1
    assert STAGES.get("screen") is Screening
