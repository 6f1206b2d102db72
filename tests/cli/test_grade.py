import json

import pytest
from click.testing import CliRunner

from browseruse_bench.cli.root import bubench
from tests.report.made_run import MadeBenchmark, MadeRun, row, rubric


@pytest.fixture
def bench(tmp_path):
    made = MadeBenchmark(tmp_path / "Made", [row("a"), row("b")])
    made.rubrics = {"a": rubric("a", 40, 60)}
    return made


@pytest.fixture
def run(tmp_path, bench):
    loaded = bench.load()
    made = MadeRun.of(tmp_path / "experiments", loaded)
    made.settle(loaded, "a", "Paris", urls=("http://shop.test/9", "http://shop.test/1"))
    made.settle(loaded, "b", "Rome")
    return made


def grade(run, task_id, *arguments):
    return CliRunner().invoke(
        bubench, ["grade", str(run.folder.try_path(task_id, 1, 1)), *map(str, arguments)]
    )


def test_every_item_is_shown_with_its_status_and_where_it_stands(run):
    shown = grade(run, "a")
    assert shown.exit_code == 0, shown.output
    lines = {line.split()[0]: line for line in shown.output.splitlines() if line.strip()}
    assert "violated" in lines["I0"]
    assert "met" in lines["I1"]
    assert "http://shop.test/1" in lines["I1"]
    assert "60.0" in lines["points"]


def test_json_holds_the_judgement_and_what_code_makes_of_it(run):
    shown = grade(run, "a", "--json")
    (graded,) = json.loads(shown.stdout)
    assert graded["judgement"]["trace_key"] == run.folder.attempts()["a", 1].trace_key
    assert graded["score"]["points"] == 60
    assert graded["score"]["success"] is False
    assert "score" not in graded["judgement"]


def test_several_samples_stand_side_by_side(run):
    shown = grade(run, "a", "--samples", 3)
    assert shown.output.count("sample 2") == 2
    assert grade(run, "a", "--samples", 0).exit_code == 2


def test_a_rubric_of_a_file_is_used_and_one_of_another_task_refused(run, tmp_path):
    file = tmp_path / "r.json"
    file.write_text(json.dumps(rubric("a", 100)))
    assert "0.0" in grade(run, "a", "--rubric", file).output
    file.write_text(json.dumps(rubric("b", 100)))
    refused = grade(run, "a", "--rubric", file)
    assert (refused.exit_code, "of task 'b'" in refused.output) == (2, True)
    file.write_text(json.dumps({"task_id": "a", "items": []}))
    assert grade(run, "a", "--rubric", file).exit_code == 3
    assert grade(run, "a", "--rubric", tmp_path / "nowhere.json").exit_code == 2


def test_a_task_without_a_rubric_says_what_to_give(run):
    refused = grade(run, "b")
    assert refused.exit_code == 2
    assert "--rubric" in refused.output


def test_a_trace_that_is_not_the_one_of_the_journal_is_refused(run):
    path = run.folder.try_path("a", 1, 1) / "steps.jsonl"
    path.write_text(path.read_text() + "\n")
    refused = grade(run, "a")
    assert refused.exit_code == 3
    assert "changed since the trace was frozen" in refused.output


def test_a_trace_outside_a_run_needs_its_benchmark(run, bench, tmp_path):
    moved = run.folder.try_path("a", 1, 1).rename(tmp_path / "trace")
    alone = CliRunner().invoke(bubench, ["grade", str(moved)])
    assert (alone.exit_code, "--benchmark" in alone.output) == (2, True)
    named = CliRunner().invoke(bubench, ["grade", str(moved), "--benchmark", str(bench.path)])
    assert named.exit_code == 0, named.output


def test_a_changed_task_is_refused(run, bench):
    bench.rows = [row("a", website="elsewhere.test"), row("b")]
    bench.load()
    refused = grade(run, "a")
    assert (refused.exit_code, "was changed" in refused.output) == (2, True)


def test_items_without_a_check_need_a_judge(run, tmp_path):
    file = tmp_path / "r.json"
    file.write_text(json.dumps(rubric("a", 100, check=False)))
    ungraded = grade(run, "a", "--rubric", file)
    assert (ungraded.exit_code, "--judge" in ungraded.output) == (4, True)


def test_judge_options_that_exclude_each_other_are_refused(run):
    assert grade(run, "a", "--judge", "x:y", "--panel", "x:y,x:z").exit_code == 2
    assert grade(run, "a", "--judge-budget-usd", "3").exit_code == 2
    assert grade(run, "a", "--evidence", "guess").exit_code == 2
    assert grade(run, "a", "--judge", "x:y", "--per-item", "--evidence", "divide").exit_code == 2
    assert grade(run, "a", "--panel", " , ").exit_code == 2


def test_no_secret_of_an_env_file_is_printed_or_kept_bl097(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    secret = "tok-9f8e7d6c5b4a3210"
    (tmp_path / ".env").write_text(f"OTHER_SERVICE_TOKEN={secret}\n")
    cited = {"step": "1", "source": "page", "ref": None, "quote": secret}
    found = {"item": "I0", "claim": secret, "citations": [cited], "reason": secret, "because": None}
    answer = {"reading": secret, "findings": [{**found, "status": "violated"}]}
    answer |= {"integrity": [], "attribution": []}
    (tmp_path / "judge.json").write_text(json.dumps([answer]))
    (tmp_path / "r.json").write_text(json.dumps(rubric("a", 100, check=False)))
    judge = ("--judge", "scripted:judge.json", "--rubric", "r.json", "--json")
    shown = grade(run, "a", *judge)
    assert shown.exit_code == 0, shown.output
    assert "[redacted]" in shown.stdout
    assert secret not in shown.output
    kept = [path for path in (tmp_path / "experiments" / "calls").rglob("*") if path.is_file()]
    assert kept
    assert not [path for path in kept if secret in path.read_text()]
