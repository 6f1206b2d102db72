"""Two runs: whether they differ, on common tasks; unlike runs are refused with the reason."""

import asyncio

import pytest

from browseruse_bench.errors import ConfigError
from browseruse_bench.eval.evaluate import evaluate_run
from browseruse_bench.eval.matcher import VERSION
from browseruse_bench.records.trace import Limits
from browseruse_bench.report.compare import compare, markdown, read, tables
from tests.report.made_run import MadeBenchmark, MadeRun, row

MATCHER = f"matcher/{VERSION}"

N = 24


@pytest.fixture
def bench(tmp_path):
    rows = [row(f"t{n:02}", expected_result="Paris") for n in range(N)]
    return MadeBenchmark(tmp_path / "Made", rows)


@pytest.fixture
def made(tmp_path, bench):
    """Makes a judged run; per task `+` right, `-` wrong, `i` infrastructure, `.` not run."""

    def make(answers: str, *, of=bench, **options):
        loaded = of.load()
        run = MadeRun.of(tmp_path / "experiments", loaded, **options)
        for task, answer in zip(loaded.tasks, answers, strict=True):
            if answer != ".":
                status = "infrastructure" if answer == "i" else "finished"
                text = "Paris" if answer == "+" else "Rome"
                run.settle(loaded, task.task_id, text, status=status)
        asyncio.run(evaluate_run(run.folder, loaded))
        return run

    return make


def of(run, bench):
    return read(run.folder, run.folder.read_run(), bench.load())


def compared(bench, *runs, **options):
    return compare(*(of(run, bench) for run in runs), **options)


def test_a_difference_is_said_in_words_with_interval_p_and_common_tasks(bench, made):
    good, bad = made("+" * 22 + "--", agent="good"), made("+" * 6 + "-" * 18, agent="bad")
    for runs, verdict in (((good, bad), "first is better"), ((bad, good), "second is better")):
        found = compared(bench, *runs)
        assert found.verdict == verdict
        assert found.sentences[0].startswith("Points: good is better by 66.7 points [")
        assert found.sentences[0].endswith("], p < 0.001, on 24 common tasks.")
        assert found.points.p == found.points.p_mcnemar == found.success.p
        assert found.success.difference == pytest.approx(found.points.difference / 100)


def test_where_none_is_shown_the_words_say_what_could_have_been_seen(bench, made):
    found = compared(bench, made("+-" * 12, agent="one"), made("-+" * 10 + "+-+-", agent="two"))
    assert found.verdict == "no difference shown"
    assert "no difference shown: one minus two is 0.0 points [" in found.sentences[0]
    more = found.points.tasks_to_see(5) - N
    assert (
        f"about {more} more tasks would be needed to see a difference of 5." in found.sentences[0]
    )


def test_too_few_tasks_show_no_difference_beyond_the_scale(bench, made):
    """Points end at 100: a greater difference is none that could be seen."""
    rest = "." * (N - 4)
    found = compared(bench, made("++++" + rest, agent="one"), made("----" + rest, agent="two"))
    assert found.points.smallest_seen > 100
    assert "not even a difference of 100 points" in found.sentences[0]


def test_a_comparison_that_could_have_seen_it_says_so(bench, made):
    one, two = made("+" * N, agent="one"), made("+" * N, agent="two")
    assert "would have been seen" in compared(bench, one, two, see=40).sentences[0]


def test_only_common_tasks_count_and_each_side_s_others_are_told(bench, made):
    """Means of all tasks would say that `few` is better: it has the easy ones only."""
    few = made("+" * 6 + "i" * 10 + "." * 8, agent="few")
    all_ = made("+" * 8 + "-" * 16, agent="all")
    found = compared(bench, few, all_)
    assert (found.points.n_tasks, found.points.difference) == (6, 0)
    assert found.sides[0].figures.mean == 100
    assert found.sides[1].figures.mean == pytest.approx(100 / 3)
    assert found.notes == ("18 tasks have a verdict in the run of all only and are not compared",)
    assert "10 (41.7%)" in markdown(found)


def test_without_common_verdicts_there_is_no_difference_and_no_crash_BL057(bench, made):
    found = compared(
        bench, made("+" * 12 + "." * 12, agent="a"), made("." * 12 + "+" * 12, agent="b")
    )
    assert found.verdict == "no difference shown"
    assert found.sentences[0] == (
        "Points: no difference can be shown: no task has a verdict in both runs."
    )
    assert "nan" not in found.model_dump_json().lower()
    assert markdown(found)


def refused(bench, one, two):
    with pytest.raises(ConfigError, match="cannot be compared") as caught:
        compare(of(one, bench), of(two, bench))
    return str(caught.value)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("stand-in", "sites that stand in for public ones"),
        ("judge", "judge keys differ on 24 of 24 common tasks"),
        ("protocol", f"protocols differ on 24 of 24 common tasks ({MATCHER} and {MATCHER}, three"),
        (
            "evidence",
            "evidence policies differ on 24 of 24 common tasks (harness and agent_reported",
        ),
        ("revision", "their revisions are"),
        ("mixed", "come from unlike judges"),
    ],
)
def test_unlike_runs_are_refused_with_the_reason_bl062(bench, made, change, reason):
    one, two = made("+" * N, agent="one"), made("+" * N, agent="two")
    run, path = two.folder.read_run(), two.folder.judgements_path
    text = path.read_text()
    key = two.folder.judgements()[0].judge_key
    if change == "stand-in":
        two.folder.write_run(run.model_copy(update={"stand_in_hosts": ("public.test",)}))
    elif change == "judge":
        path.write_text(text.replace(key, "f" * 64))
    elif change == "protocol":
        path.write_text(text.replace(f'"{MATCHER}"', f'"{MATCHER}, three screenshots"'))
    elif change == "evidence":
        path.write_text(
            text.replace('"details":{', '"details":{"evidence_policy":"agent_reported",')
        )
    elif change == "mixed":
        path.write_text(text.replace(key, "f" * 64, 1))
    else:
        identity = run.identity.model_copy(update={"revision": "another"})
        two.folder.write_run(run.model_copy(update={"identity": identity}))
    assert reason in refused(bench, one, two)


def test_runs_of_two_benchmarks_are_refused(bench, made, tmp_path):
    other = MadeBenchmark(tmp_path / "Other", bench.rows)
    one, two = made("+" * N), made("+" * N, of=other)
    with pytest.raises(ConfigError, match="their benchmarks are Made and Other"):
        compare(of(one, bench), of(two, other))


def test_all_reasons_are_named_at_once(bench, made):
    one, two = made("+" * N, agent="one"), made("+" * N, agent="two")
    run, path = two.folder.read_run(), two.folder.judgements_path
    two.folder.write_run(run.model_copy(update={"stand_in_hosts": ("public.test",)}))
    path.write_text(path.read_text().replace(f'"{MATCHER}"', '"matcher/0"'))
    message = refused(bench, one, two)
    assert "stand in" in message
    assert "protocols differ" in message


def test_a_run_is_not_compared_with_itself(bench, made):
    run = made("+" * N)
    assert "the same run" in refused(bench, run, run)


def test_runs_that_share_names_are_told_apart(bench, made):
    one = made("+" * N, limits=Limits(max_steps=5))
    two = made("-" * N)
    found = compared(bench, one, two)
    assert {side.label for side in found.sides} == {f"scripted, {r.run.run_id}" for r in (one, two)}
    assert any("differ in their limits" in note for note in found.notes)


def test_the_same_comparison_gives_the_same_p(bench, made):
    one, two = (
        made("+" * 12 + "-" * 12, agent="one"),
        made("-" * 6 + "+" * 12 + "-" * 6, agent="two"),
    )
    assert compared(bench, one, two) == compared(bench, one, two)


def test_the_tasks_that_differ_are_listed_the_largest_difference_first(bench, made):
    found = compared(bench, made("+" * N, agent="a"), made("+" * (N - 2) + "--", agent="b"))
    listed = tables(found)[-1]
    assert [cells[0] for cells in listed.rows] == ["t22", "t23"]
    assert listed.rows[0][3] == "100.0"


def test_for_new_attempts_the_target_is_said(bench, made):
    found = compared(
        bench, made("+" * N, agent="a"), made("-" * N, agent="b"), target="new attempts"
    )
    assert (found.target, found.points.interval.target) == ("new attempts", "new attempts")
    assert "for new attempts" in markdown(found)


def test_hostile_names_stay_text(bench, made):
    """peers: text of a task runs as a script."""
    found = compared(bench, made("+" * N, agent="<script>x</script>"), made("-" * N, agent="b|c"))
    assert "<script" not in markdown(found)
    assert "b\\|c" in markdown(found)
