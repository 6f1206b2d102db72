import asyncio

import pytest

from browseruse_bench.eval.evaluate import evaluate_run
from browseruse_bench.eval.matcher import VERSION
from browseruse_bench.records.trace import Limits
from browseruse_bench.report.leaderboard import build, markdown
from tests.report.made_run import MadeBenchmark, MadeRun, row


@pytest.fixture
def root(tmp_path):
    return tmp_path / "experiments"


@pytest.fixture
def bench(tmp_path):
    rows = [row(t, expected_result="Paris") for t in "abcd"]
    return MadeBenchmark(tmp_path / "Made", rows)


def made(root, bench, answers: str, **options) -> MadeRun:
    """A judged run; per task `+` right, `-` wrong, `i` infrastructure, `.` not run."""
    loaded = bench.load()
    ids = options.pop("task_ids", [t.task_id for t in loaded.tasks])
    run = MadeRun.of(root, loaded, task_ids=ids, **options)
    for task_id, answer in zip(ids, answers, strict=True):
        if answer != ".":
            status = "infrastructure" if answer == "i" else "finished"
            run.settle(loaded, task_id, "Paris" if answer == "+" else "Rome", status=status)
    asyncio.run(evaluate_run(run.folder, loaded))
    return run


def ranks(group) -> list[tuple]:
    return [(row.rank, row.agent) for row in group.rows]


def test_runs_on_equal_terms_are_ranked_by_the_lower_bound(root, bench):
    """A missing verdict never helps: 2 right of 2 graded and 2 missing is below 3 of 4."""
    made(root, bench, "++ii", agent="lucky")
    made(root, bench, "+++-", agent="solid")
    made(root, bench, "++--", agent="even")
    (group,) = build(root).groups
    assert ranks(group) == [(1, "solid"), (2, "even"), (2, "lucky")]
    lucky = group.rows[2]
    assert (lucky.figures.mean, lucky.figures.lower, lucky.figures.upper) == (100, 50, 100)
    assert lucky.marks == ("incomplete: 2 without a verdict",)


def test_a_run_without_any_verdict_is_shown_and_not_ranked(root, bench):
    made(root, bench, "....", agent="idle")
    made(root, bench, "----", agent="bad")
    found = {row.agent: row for group in build(root).groups for row in group.rows}
    assert (found["idle"].rank, found["idle"].figures.mean) == (None, None)
    assert (found["bad"].rank, found["bad"].figures.mean) == (1, 0)


def test_a_partial_run_is_marked_and_never_ranked_with_full_ones(root, bench):
    """BL015."""
    made(root, bench, "+", agent="part", task_ids=["a"])
    made(root, bench, "++++", agent="full")
    by_size = {group.terms.n_tasks: group for group in build(root).groups}
    assert ranks(by_size[1]) == [(1, "part")]
    assert by_size[1].rows[0].marks == ("partial: 1 of 4 tasks",)
    assert ranks(by_size[4]) == [(1, "full")]


def test_a_model_id_with_a_slash_is_shown_whole(root, bench):
    """peers: model ids with `/` vanish from the leaderboard."""
    made(root, bench, "++++", model="openai/gpt-5")
    made(root, bench, "++++", model="https://host/v1?m=x")
    (group,) = build(root).groups
    assert {row.model for row in group.rows} == {"openai/gpt-5", "https://host/v1?m=x"}
    assert "openai/gpt-5" in markdown(build(root))


@pytest.mark.parametrize("change", ["stand-in", "judge", "protocol", "evidence", "revision"])
def test_unlike_terms_are_never_ranked_together(root, bench, change):
    """BL062."""
    made(root, bench, "++++", agent="one")
    other = made(root, bench, "++++", agent="two")
    run = other.folder.read_run()
    path = other.folder.judgements_path
    text = path.read_text()
    if change == "stand-in":
        other.folder.write_run(run.model_copy(update={"stand_in_hosts": ("public.test",)}))
    elif change == "judge":
        key = other.folder.judgements()[0].judge_key
        path.write_text(text.replace(key, "f" * 64))
    elif change == "protocol":
        path.write_text(
            text.replace(f'"matcher/{VERSION}"', f'"matcher/{VERSION}, three screenshots"')
        )
    elif change == "evidence":
        old = '"details":{'
        assert old in text
        path.write_text(text.replace(old, old + '"evidence_policy":"agent_reported",'))
    else:
        identity = run.identity.model_copy(update={"revision": "another"})
        other.folder.write_run(run.model_copy(update={"identity": identity}))
    groups = build(root).groups
    assert sorted(ranks(group)[0] for group in groups) == [(1, "one"), (1, "two")]


def test_limits_that_differ_are_said(root, bench):
    """BL062: other step budget."""
    made(root, bench, "++++", agent="one")
    made(root, bench, "++++", agent="two", limits=Limits(max_steps=5))
    (group,) = build(root).groups
    assert group.notes == ("the runs differ in their limits",)


def test_a_run_of_mixed_judges_is_marked_and_not_ranked(root, bench):
    run = made(root, bench, "++++")
    path = run.folder.judgements_path
    first, rest = path.read_text().split("\n", 1)
    path.write_text(first.replace(run.folder.judgements()[0].judge_key, "f" * 64) + "\n" + rest)
    (group,) = build(root).groups
    assert (group.rows[0].rank, group.rows[0].marks) == (None, ("mixed judges",))


def test_a_damaged_run_drops_only_itself(root, bench):
    """peers: a bad record drops itself and all after it."""
    bad = made(root, bench, "++++", agent="bad")
    made(root, bench, "++++", agent="good")
    bad.folder.attempts_path.write_text("{}\n")
    board = build(root)
    assert [row.agent for group in board.groups for row in group.rows] == ["good"]
    assert len(board.problems) == 1
    assert "bad" in board.problems[0]


def test_a_run_that_cannot_be_read_drops_only_itself(root, bench):
    bad = made(root, bench, "++++", agent="bad")
    made(root, bench, "++++", agent="good")
    bad.folder.attempts_path.unlink()
    bad.folder.attempts_path.mkdir()
    board = build(root)
    assert [row.agent for group in board.groups for row in group.rows] == ["good"]
    assert ["bad" in problem for problem in board.problems] == [True]


def test_only_the_benchmark_that_is_asked_for_is_shown(root, bench, tmp_path):
    made(root, bench, "++++")
    other = MadeBenchmark(tmp_path / "Other", [row("a", expected_result="Paris")])
    made(root, other, "+")
    assert [g.terms.benchmark for g in build(root, benchmark="Other").groups] == ["Other"]
    assert [g.terms.benchmark for g in build(root).groups] == ["Made", "Other"]
