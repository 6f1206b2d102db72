"""`bubench eval`, `report` and `leaderboard`, as a user types them."""

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from browseruse_bench.cli.root import bubench
from tests.report.made_run import GUIDE_EVALUATOR, MadeBenchmark, MadeRun, evaluator, row


@pytest.fixture
def bench(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [row("a", expected_result="Paris"), row("b", expected_result="Rome")]
    return MadeBenchmark(tmp_path / "benchmarks" / "Made", rows)


@pytest.fixture
def run(tmp_path, bench):
    """Both attempts settled; a right, b wrong."""
    return settled(tmp_path, bench, a="Paris", b="Oslo")


def settled(tmp_path, bench, *, run_id=None, task_ids=None, **answers) -> MadeRun:
    loaded = bench.load()
    made = MadeRun.of(tmp_path / "experiments", loaded, run_id=run_id, task_ids=task_ids)
    for task_id, answer in answers.items():
        made.settle(loaded, task_id, answer)
    return made


def bub(*arguments: str):
    return CliRunner().invoke(bubench, arguments)


EVAL = ("eval", "--agent", "scripted", "--benchmark", "Made")


def test_eval_says_which_run_it_judges_and_prints_the_identity(run):
    done = bub(*EVAL)
    assert done.exit_code == 0, done.output
    assert f"judging run {run.run.run_id} of scripted on Made, split All" in done.stderr
    assert "selected 2 = graded 2 + ungraded 0 + infrastructure 0 + not run 0" in done.stdout
    assert "finished 2" in done.stdout
    assert "50.0 (n 2)" in done.stdout
    assert (run.folder.path / "report.md").is_file()


def test_eval_by_the_folder_of_the_benchmark_finds_the_same_run(run):
    assert bub("eval", "--agent", "scripted", "--data", "benchmarks/Made").exit_code == 0


def test_eval_with_the_evaluator_of_the_guide(tmp_path, bench):
    bench.evaluator = GUIDE_EVALUATOR
    settled(tmp_path, bench, a="Paris", b="Oslo")
    done = bub(*EVAL, "--json")
    summary = json.loads(done.stdout)
    assert done.exit_code == 0
    assert summary["protocols"] == ["evaluator:YourBenchmarkEvaluator"]
    assert (summary["figures"]["mean"], summary["figures"]["success"]) == (50, 0.5)


def test_an_evaluator_py_that_stands_in_for_a_missing_module_is_said(tmp_path, bench, monkeypatch):
    target = "browseruse_bench.eval.your_evaluator:YourBenchmarkEvaluator"
    entry = {"data_dir": "benchmarks/Made", "evaluator": target}
    monkeypatch.setattr("browseruse_bench.benchmarks.BENCHMARKS", {"Made": entry, "Other": ...})
    bench.evaluator = GUIDE_EVALUATOR
    settled(tmp_path, bench, a="Paris", b="Oslo")
    done = bub(*EVAL)
    assert done.exit_code == 0, done.output
    assert "browseruse_bench.eval.your_evaluator" in done.stderr
    assert "evaluator.py is used" in done.stderr


def test_json_output_is_nothing_but_json(run):
    for arguments in (EVAL, ("report",), ("leaderboard",)):
        json.loads(bub(*arguments, "--json").stdout)


def test_an_ungraded_attempt_is_exit_4_and_says_what_to_type(tmp_path, bench):
    """BL035: the mean is withheld from nobody, but coverage is shown and the status is not 0."""
    bench.evaluator = evaluator(
        'if task_id == "b": raise OSError("x")\nreturn {"predicted_label": 1, "score": 100}'
    )
    settled(tmp_path, bench, a="Paris", b="Oslo")
    done = bub(*EVAL)
    assert done.exit_code == 4
    assert "100.0 [50.0, 100.0] (n 1)" in done.stdout
    assert "b #1 evaluator_error: OSError: x" in done.stderr
    assert "--only-ungraded" in done.stderr
    assert bub(*EVAL, "--task-ids", "a").exit_code == 0
    assert bub("report").exit_code == 4


def test_an_attempt_that_did_not_settle_is_exit_4(tmp_path, bench):
    settled(tmp_path, bench, a="Paris")
    done = bub(*EVAL)
    assert done.exit_code == 4
    assert "not run 1 (pending 1)" in done.stdout


def test_a_task_left_out_for_want_of_a_login_is_counted_but_no_failure(tmp_path, bench):
    bench.rows[1]["requires_login"] = True
    settled(tmp_path, bench, a="Paris")
    done = bub(*EVAL)
    assert done.exit_code == 0
    assert "not run 1 (login 1)" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((*EVAL, "--run-id", "does-not-exist"), "--run-id does-not-exist"),
        ((*EVAL, "--model", "none"), "no run below experiments fits"),
        ((*EVAL, "--task-ids", "a,NoSuch"), "'NoSuch'"),
        ((*EVAL, "--split", "Hard"), "Hard"),
        (("eval", "--agent", "scripted", "--benchmark", "Mede"), "did you mean 'Made'"),
        ((*EVAL, "--froce"), "--froce"),
        (("report", "does-not-exist"), "does-not-exist"),
        (("leaderboard", "--benchmark", "Other"), "there is no run of Other"),
    ],
)
def test_what_is_not_there_is_exit_2_with_a_word_on_what_is(run, arguments, message):
    """BL021; peers: mistyped flags are accepted."""
    done = bub(*arguments)
    assert done.exit_code == 2
    assert message in done.stderr
    assert run.folder.judgements() == []


def test_a_broken_evaluator_is_exit_2_before_anything_is_judged(tmp_path, bench):
    """BL012."""
    bench.evaluator = "import no_such_module\n" + GUIDE_EVALUATOR
    run = settled(tmp_path, bench, a="Paris", b="Oslo")
    done = bub(*EVAL)
    assert done.exit_code == 2
    assert "no_such_module" in done.stderr
    assert run.folder.judgements() == []


def test_force_judges_again_and_keeps_the_old_verdicts(run):
    bub(*EVAL)
    assert "0 judged, 2 judged earlier" in bub(*EVAL).stderr
    assert "2 judged, 0 judged earlier" in bub(*EVAL, "--force").stderr
    assert len(run.folder.judgements()) == 4


def test_report_shows_a_run_by_id_by_folder_and_by_default(run):
    bub(*EVAL)
    for arguments in ((), (run.run.run_id,), (str(run.folder.path),), ("--benchmark", "Made")):
        done = bub("report", *arguments)
        assert done.exit_code == 0, done.output
        assert "selected 2 = graded 2" in done.stdout
    markdown = bub("report", "--markdown").stdout
    assert markdown == (run.folder.path / "report.md").read_text()
    assert "| a | 1 | 100.0 | success | finished |" in markdown


def test_report_works_when_the_benchmark_is_gone_as_far_as_it_can(run, bench):
    bub(*EVAL)
    bench.path.rename(bench.path.parent.parent / "moved")
    done = bub("report")
    assert done.exit_code == 0
    assert "Made is not at hand" in done.stdout
    assert "50.0 (n 2)" in done.stdout


def test_leaderboard_shows_every_run_with_its_counts(tmp_path, bench, run):
    settled(tmp_path, bench, run_id="second", a="Paris", b="Rome")
    for run_id in (run.run.run_id, "second"):
        bub(*EVAL, "--run-id", run_id)
    done = bub("leaderboard")
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[2].split()[:2] == ["1", "scripted"]
    assert "second" in lines[2]
    assert run.run.run_id in lines[3]
    assert (
        "| 1 | scripted | - | none | 100.0 | 34.2 to 100.0 | 100.0 | 34.2 to 100.0 | 2 |"
        in bub("leaderboard", "--markdown").stdout
    )


def test_a_damaged_run_is_exit_3_and_the_others_are_shown(tmp_path, bench, run):
    bub(*EVAL)
    bad = settled(tmp_path, bench, run_id="bad", a="Paris", b="Rome")
    (bad.folder.path / "run.json").write_text("{")
    done = bub("leaderboard")
    assert done.exit_code == 3
    assert run.run.run_id in done.stdout
    assert "bad" in done.stderr


def test_the_verbs_import_nothing_heavy():
    code = (
        "import sys, browseruse_bench.cli.eval, browseruse_bench.cli.report\n"
        "import browseruse_bench.cli.leaderboard\n"
        "heavy = {'pydantic', 'asyncio', 'rich', 'websockets'} & set(sys.modules)\n"
        "sys.exit(', '.join(sorted(heavy)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
