"""What stands beside the mean in summaries and leaderboards: intervals, rates, repeats, effort."""

import asyncio
import json

import pytest

from browseruse_bench.eval.evaluate import evaluate_run
from browseruse_bench.records.run import Tokens
from browseruse_bench.records.trace import Usage
from browseruse_bench.report.leaderboard import build, markdown
from browseruse_bench.report.summary import markdown as report_markdown
from browseruse_bench.report.summary import report_run, summarise
from browseruse_bench.store.journal import Journal
from tests.report.made_run import MadeBenchmark, MadeRun, row, rubric


@pytest.fixture
def bench(tmp_path):
    return MadeBenchmark(
        tmp_path / "Made", [row(f"t{n}", expected_result="Paris") for n in range(10)]
    )


def made(tmp_path, bench, *answers, **options):
    """A judged run; per task a letter per attempt: `+` right, `-` wrong, `i` infrastructure."""
    loaded = bench.load()
    run = MadeRun.of(
        tmp_path / "experiments", loaded, repeat=max(map(len, answers), default=1), **options
    )
    for task, letters in zip(loaded.tasks, answers, strict=False):
        for number, letter in enumerate(letters, 1):
            status = "infrastructure" if letter == "i" else "finished"
            text = "Paris" if letter == "+" else "Rome"
            run.settle(loaded, task.task_id, text, attempt=number, status=status)
    asyncio.run(evaluate_run(run.folder, loaded))
    return run


def plain(markdown_text):
    """Without what keeps brackets from being links."""
    return markdown_text.replace("\\", "")


def test_ten_tasks_of_which_six_errored_are_no_clean_100_percent_bl058(tmp_path, bench):
    """10 tasks, 6 errored, 4 right: the share of what has a verdict, and what is missing, stand
    beside the score.
    """
    run = made(tmp_path, bench, *"++++iiiiii")
    (group,) = build(tmp_path / "experiments").groups
    (shown,) = group.rows
    assert (shown.figures.mean, shown.figures.lower, shown.figures.upper) == (100, 40, 100)
    assert shown.estimates.rates.as_json() == {
        "graded": 0.4, "ungraded": 0, "infrastructure": 0.6, "not_run": 0,
    }  # fmt: skip
    assert "100.0 [40.0, 100.0]" in plain(markdown(build(tmp_path / "experiments")))
    assert "6 (60.0%)" in markdown(build(tmp_path / "experiments"))
    text = report_markdown(summarise(run.folder, bench.load()))
    assert "graded 40.0%, ungraded 0.0%, infrastructure 60.0%" in text


def test_four_slots_with_one_success_and_three_infrastructure_failures_BL055(tmp_path, bench):
    bench.rows = bench.rows[:2]
    run = made(tmp_path, bench, "+iii", "iiii")
    text = plain(report_markdown(summarise(run.folder, bench.load())))
    assert "| 4 | - [50.0, 100.0] | - | - [0.0, 100.0] | - | 2 | 2 |" in text
    assert "selected 8 = graded 1 + ungraded 0 + infrastructure 7 + not run 0" in text
    assert "infrastructure 87.5%" in text


def test_nothing_graded_is_null_in_the_file_never_0_or_nan_BL057(tmp_path, bench):
    loaded = bench.load()
    run = MadeRun.of(tmp_path / "experiments", loaded)
    report_run(run.folder, loaded)
    text = (run.folder.path / "summary.json").read_text()
    found = json.loads(text, parse_constant=lambda name: pytest.fail(name))
    for name in ("points", "success", "points_again", "success_again", "n_effective"):
        assert found["estimates"][name] is None
    for name in ("steps", "seconds", "tokens"):
        assert found["effort"][name] is None


def test_one_attempt_has_a_mean_and_no_interval_BL057(tmp_path, bench):
    bench.rows = bench.rows[:1]
    found = summarise(made(tmp_path, bench, "+").folder, bench.load())
    assert (found.figures.mean, found.estimates.points, found.estimates.success) == (
        100,
        None,
        None,
    )


def test_partial_points_have_an_interval_of_their_own_BL057(tmp_path, bench):
    bench.rows = bench.rows[:3]
    for n in range(3):
        bench.rubrics[f"t{n}"] = rubric(f"t{n}", 25, 75)
    loaded = bench.load()
    run = MadeRun.of(tmp_path / "experiments", loaded)
    for n in range(3):
        urls = ["http://shop.test/9"] if n == 2 else [f"http://shop.test/{n}"]
        run.settle(loaded, f"t{n}", "Done", urls=urls)
    asyncio.run(evaluate_run(run.folder, loaded))
    found = summarise(run.folder, loaded)
    assert [task.figures.mean for task in found.tasks] == [25, 75, 0]
    assert (found.estimates.points.method, found.estimates.success.method) == ("bounded", "wilson")
    assert 0 <= found.estimates.points.low < 100 / 3 < found.estimates.points.high < 100


def test_repeats_are_shown_with_the_effective_number_and_both_targets(tmp_path, bench):
    run = made(tmp_path, bench, *["++"] * 5, *["--"] * 5)
    found = summarise(run.folder, bench.load())
    assert found.figures.n == 20
    assert found.estimates.n_effective == pytest.approx(10, abs=0.6)
    text = report_markdown(found)
    assert "for new tasks (n effective 10, bounded)" in text
    assert "for new attempts" in text
    assert "| 2 | 50.0 |" in text


def test_tokens_are_summed_by_kind_or_unknown(tmp_path, bench):
    bench.rows = bench.rows[:2]
    run = made(tmp_path, bench, "+", "+")
    assert summarise(run.folder, bench.load()).effort.tokens is None
    entries = run.folder.attempts().values()
    with Journal(run.folder.attempts_path) as journal:
        for entry in list(entries):
            told = entry.model_copy(update={"tokens": Tokens(uncached=10, cached=5, output=2)})
            journal.append(told.as_json())
    effort = summarise(run.folder, bench.load()).effort
    assert effort.tokens == Tokens(uncached=20, cached=10, output=4)
    assert (effort.n_attempts, effort.steps, effort.seconds) == (2, 1, 1.5)
    (group,) = build(tmp_path / "experiments").groups
    assert "| 10 | 5 | 2 | 0 |" in markdown(build(tmp_path / "experiments"))
    assert group.rows[0].effort == effort


def test_a_cost_that_one_attempt_does_not_tell_is_unknown(tmp_path, bench):
    """peers: what an unknown model costs is $0.00."""
    loaded = bench.load()
    run = MadeRun.of(tmp_path / "experiments", loaded)
    run.settle(loaded, "t0", "Paris", cost_usd=0.5)
    run.settle(loaded, "t1", "Paris", cost_usd=None)
    effort = summarise(run.folder, loaded).effort
    assert effort.cost_usd is None
    assert effort.judge_cost_usd == 0
    assert "cost unknown" in report_markdown(summarise(run.folder, loaded))


def test_the_judges_cost_is_told_apart_in_all_by_task_and_by_finding(tmp_path, bench):
    bench.rows = bench.rows[:2]
    run = made(tmp_path, bench, "+", "+")
    known = (Usage(model="m", cost_usd=0.03), Usage(model="n", cost_usd=0.01))
    with Journal(run.folder.judgements_path) as journal:
        for given in run.folder.judgements():
            journal.append(given.model_copy(update={"usage": known}).as_json())
    summary = summarise(run.folder, bench.load())
    effort = summary.effort
    assert effort.judge_cost_usd == pytest.approx(0.08)
    assert effort.judge_usd_per_task == pytest.approx(0.04)
    assert effort.judge_usd_per_finding is None
    assert "$0.08, $0.04 a task" in report_markdown(summary)
    unknown = (Usage(model="m", cost_usd=None),)
    with Journal(run.folder.judgements_path) as journal:
        given = run.folder.judgements()[-1]
        journal.append(given.model_copy(update={"usage": unknown}).as_json())
    assert summarise(run.folder, bench.load()).effort.judge_cost_usd is None
