import asyncio
import json

import pytest

from browseruse_bench.errors import DataError
from browseruse_bench.eval.evaluate import evaluate_run
from browseruse_bench.eval.matcher import VERSION
from browseruse_bench.report.summary import markdown, report_run, summarise
from tests.report.made_run import MadeBenchmark, MadeRun, row, rubric


@pytest.fixture
def bench(tmp_path):
    rows = [
        row("a", expected_result="Paris", difficulty="easy", category="x"),
        row("b", expected_result="Rome", difficulty="hard", category="x"),
        row("c", expected_result="Oslo", difficulty="hard"),
        row("d", expected_result="Bonn", requires_login=True),
    ]
    return MadeBenchmark(tmp_path / "Made", rows)


@pytest.fixture
def run(tmp_path, bench):
    """a right, b wrong, c infrastructure, d needs a login."""
    loaded = bench.load()
    made = MadeRun.of(tmp_path / "experiments", loaded, model="openai/gpt-5")
    made.settle(loaded, "a", "Paris", cost_usd=0.5)
    made.settle(loaded, "b", "Oslo", cost_usd=None)
    made.settle(loaded, "c", None, status="infrastructure")
    return made


def judge(run, bench, **options):
    asyncio.run(evaluate_run(run.folder, bench.load(), **options))


def test_a_summary_accounts_for_every_selected_attempt(run, bench):
    judge(run, bench)
    found = summarise(run.folder, bench.load())
    assert found.figures.accounting.as_json() == {
        **{"selected": 4, "graded": 2, "ungraded": {}, "infrastructure": 1},
        "not_run": {"login": 1},
    }
    assert (found.figures.mean, found.figures.lower, found.figures.upper) == (50, 25, 75)
    assert found.statuses == {"finished": 2, "infrastructure": 1}
    assert (found.n_selected_tasks, found.n_total_tasks) == (4, 4)
    assert not found.is_complete
    assert not found.is_partial
    assert {name: f.mean for name, f in found.by_difficulty.items()} == {"easy": 100, "hard": 0}
    assert found.by_category["x"].n == 2
    assert found.identity.agent.model == "openai/gpt-5"
    assert found.protocols == (f"matcher/{VERSION}",)


def test_an_unknown_cost_is_never_zero(run, bench):
    """peers: an unknown model costs $0.00."""
    cost = summarise(run.folder, bench.load()).cost
    assert (cost.cost_usd, cost.known_usd, cost.n_unknown) == (None, 0.5, 1)


def test_before_judging_all_that_ran_is_not_judged(run, bench):
    found = summarise(run.folder, bench.load())
    assert found.figures.accounting.ungraded == {"not_judged": 2}
    assert found.figures.mean is None
    assert "| points | - (n 0) |" in markdown(found)


def test_the_files_are_rebuilt_byte_for_byte(run, bench):
    judge(run, bench)
    names = ("summary.json", "report.md")
    report_run(run.folder, bench.load())
    first = [(run.folder.path / name).read_bytes() for name in names]
    for name in names:
        (run.folder.path / name).unlink()
    report_run(run.folder, bench.load())
    assert [(run.folder.path / name).read_bytes() for name in names] == first
    assert json.loads(first[0])["figures"]["accounting"]["selected"] == 4


def test_a_partial_run_records_its_selection_and_how_many_tasks_there_are(tmp_path, bench):
    """BL015."""
    loaded = bench.load()
    made = MadeRun.of(tmp_path / "experiments", loaded, task_ids=["a"])
    found = summarise(made.folder, loaded)
    assert (found.n_selected_tasks, found.n_total_tasks, found.is_partial) == (1, 4, True)
    assert found.selections[0].task_ids == ("a",)


def test_excluded_tasks_are_not_missing(tmp_path, bench):
    bench.info["exclude"] = ["d"]
    loaded = bench.load()
    made = MadeRun.of(tmp_path / "experiments", loaded, task_ids=["a", "b", "c"])
    assert not summarise(made.folder, loaded).is_partial


def test_verdicts_by_a_reference_that_changed_are_not_used_and_it_is_said(run, bench):
    """BL019."""
    judge(run, bench)
    bench.rows[0]["expected_result"] = "Lima"
    found = summarise(run.folder, bench.load())
    assert found.figures.accounting.ungraded == {"not_judged": 1}
    assert any("no longer the task's" in note for note in found.notes)
    judge(run, bench)
    assert summarise(run.folder, bench.load()).figures.mean == 0


def test_mixed_judges_are_flagged(run, bench):
    """BL019."""
    judge(run, bench)
    path = run.folder.judgements_path
    lines = path.read_text().splitlines()
    lines[0] = json.dumps({**json.loads(lines[0]), "judge_key": "another"})
    path.write_text("\n".join(lines) + "\n")
    found = summarise(run.folder, bench.load())
    assert found.mixed_judges
    assert any("mixed judges" in note for note in found.notes)


def test_points_come_from_the_rubric_that_is_current(tmp_path, bench):
    bench.rubrics["a"] = rubric("a", 60, 40)
    loaded = bench.load()
    made = MadeRun.of(tmp_path / "experiments", loaded, task_ids=["a"])
    made.settle(loaded, "a", "Done", urls=["http://shop.test/0"])
    judge(made, bench)
    found = summarise(made.folder, loaded)
    assert (found.figures.mean, found.figures.success) == (60, 0)
    assert found.evidence.n_citations > 0
    assert summarise(made.folder, None).figures.accounting.ungraded == {"not_judged": 1}


def test_success_at_of_the_benchmark_decides_success(tmp_path, bench):
    bench.rubrics["a"] = rubric("a", 60, 40)
    bench.info["success_at"] = 60
    loaded = bench.load()
    made = MadeRun.of(tmp_path / "experiments", loaded, task_ids=["a"])
    made.settle(loaded, "a", "Done", urls=["http://shop.test/0"])
    judge(made, bench)
    assert summarise(made.folder, loaded).figures.success == 1


def test_with_a_storage_state_a_login_task_is_pending_not_left_out(tmp_path, bench):
    loaded = bench.load()
    settings = {"storage_state": True}
    made = MadeRun.of(tmp_path / "experiments", loaded, task_ids=["d"], settings=settings)
    assert summarise(made.folder, loaded).figures.accounting.not_run == {"pending": 1}


def test_hostile_text_stays_text_in_the_report(tmp_path):
    """peers: task text with a script tag runs in the leaderboard."""
    name = "x | y <script>alert(1)</script>"
    bench = MadeBenchmark(tmp_path / "Made", [row(name, expected_result="x")])
    loaded = bench.load()
    made = MadeRun.of(tmp_path / "experiments", loaded, model="[m](javascript:1)\n# no")
    made.settle(loaded, name, "y")
    text = markdown(summarise(made.folder, loaded))
    assert "<script" not in text
    assert "x \\| y &lt;script&gt;" in text
    assert "[m]" not in text.replace("\\[m\\]", "")
    assert "\n# no" not in text


def test_a_damaged_journal_is_an_error_that_names_the_line(run, bench):
    with run.folder.attempts_path.open("a") as file:
        file.write("{broken}\n")
    with pytest.raises(DataError, match="line 4 is damaged"):
        summarise(run.folder, bench.load())
