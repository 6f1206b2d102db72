"""The report of a red team shows what came through first, and nothing of it becomes active."""

import pytest

from browseruse_bench.eval.redteam.campaign import Campaign
from browseruse_bench.measure.redteam import Standing, Trial
from browseruse_bench.report.redteam import markdown, redteam, tables
from tests.report.made_run import MadeBenchmark, MadeRun, row


def trial(attack, tellable="code", gained=("A1",), **more):
    fields = {
        "task_id": "t",
        "attempt": 1,
        "trace_key": "k",
        "policy": "harness",
        "attack": attack,
        "family": "echo",
        "must": "gain_nothing",
        "tellable": tellable,
        "protocol": "code-checks/3",
        "judge_key": "j",
        "rubric_key": "r",
        "seed": 0,
        "version": "1",
        "before": Standing(status="graded", points=0.0),
        "after": Standing(status="graded", points=40.0, met=("A1",)),
        "gained": gained,
    }
    return Trial.model_validate(fields | more)


@pytest.fixture
def run(tmp_path):
    loaded = MadeBenchmark(tmp_path / "Made", [row("t")]).load()
    return MadeRun.of(tmp_path / "experiments", loaded, model="m").run


def made(run, *trials, **more):
    campaign = Campaign(trials=trials, n_resumed=0, skipped={}, not_applicable={}, **more)
    return redteam(run, campaign, seed=3)


def test_what_code_should_have_told_comes_first(run):
    found = made(run, trial("typed", "judge"), trial("selected"), trial("data-page", gained=()))
    came_through = tables(found)[-1]
    assert [line[1] for line in came_through.rows] == ["selected", "typed"]
    assert came_through.rows[0][3:] == ("0", "40", "A1")


def test_an_attack_that_gained_nothing_is_in_markdown_only(run):
    found = made(run, trial("data-page", gained=()))
    assert "data-page" not in str(tables(found))
    assert "| data-page | echo | code | 0 | 1 | 0.0% |" in markdown(found)


def test_a_copy_without_a_verdict_is_told_and_makes_it_incomplete(run):
    out = Standing(status="ungraded", message="judge_fault: HTTP 503")
    found = made(run, trial("typed", protocol="findings/1", after=out, gained=()))
    assert not found.is_complete
    assert tables(found)[-1].rows == (("1", "judge_fault: HTTP 503"),)
    assert not made(run, n_pending=2).is_complete
    assert made(run, trial("typed")).is_complete


def test_an_escape_says_that_there_was_no_verdict(run):
    out = Standing(status="ungraded", message="judge_fault: too long")
    found = made(run, trial("choking-answer", after=out, gained=()))
    assert found.is_complete
    assert tables(found)[-1].rows[0][4:] == ("no verdict", "judge_fault: too long")


def test_an_imported_run_is_marked(run):
    found = made(run, trial("captured-by-agent", "nobody", policy="agent_reported"))
    assert "the agent's own word, never ranked with others" in str(tables(found))
    assert found.judges[0].gains_by_word.failed == 1


def test_reasons_are_counted(run):
    skipped = {"a #1": "no rubric", "b #1": "no rubric", "c #1": "damaged"}
    campaign = Campaign(
        trials=(), n_resumed=4, skipped=skipped, not_applicable={("typed", "no value"): 2}
    )
    found = redteam(run, campaign, seed=0)
    rows = tables(found)[0].rows
    assert ("not attacked", "2: no rubric") in rows
    assert ("done earlier", "4 trials") in rows
    assert found.not_applicable == {"typed": {"no value": 2}}


def test_names_of_tasks_draw_nothing(run):
    text = markdown(made(run, trial("typed", task_id="a|b\n<script>\x1b[31m")))
    assert "<script>" not in text
    assert "\x1b" not in text
