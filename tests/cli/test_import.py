"""`bubench import results`."""

import json

import pytest
from click.testing import CliRunner

from browseruse_bench.cli.root import bubench
from tests.export.made_abp import line, write


@pytest.fixture
def results(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return write(tmp_path / "results.jsonl", line(), line("t2"))


def bub(*arguments):
    return CliRunner().invoke(bubench, [str(argument) for argument in arguments])


def bring_in(results, *more):
    return bub("import", "results", "--format", "abp", results, *more)


def test_results_are_imported_judged_reported_and_attacked(results):
    done = bring_in(results, "--write-benchmark", "Own", "--model", "x:y")
    assert done.exit_code == 0, done.output
    assert "2 attempts imported, 0 left out" in done.stdout
    assert "evidence agent_reported" in done.stdout
    item = {"id": "A1", "requirement": "r", "weight": 100}
    check = {"kind": "answer", "values": ["$1,299"]}
    rubric = {"task_id": "t1", "items": [item | {"check": check}]}
    (results.parent / "Own" / "rubrics").mkdir()
    (results.parent / "Own" / "rubrics" / "t1.json").write_text(json.dumps(rubric))
    command = done.stdout.splitlines()[-1].removeprefix("next: bubench ").split()
    judged = bub(*command)
    assert judged.exit_code == 4, judged.output
    assert "1 judged" in judged.output or "2 judged" in judged.output
    assert "agent_reported" in bub("leaderboard").stdout
    attacked = bub("redteam", "--attacks", "captured-by-agent,typed", "--json")
    (judge,) = json.loads(attacked.stdout)["judges"]
    assert judge["policy"] == "agent_reported"
    assert judge["gains"]["failed"] == 0
    assert judge["gains_by_word"]["failed"] == 1


def test_the_same_file_again_adds_nothing(results):
    bring_in(results, "--write-benchmark", "Own")
    again = bring_in(results, "--benchmark", "Own", "--json")
    found = json.loads(again.stdout)
    assert (found["new"], found["kept"], found["evidence_policy"]) == (0, 2, "agent_reported")


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["--format", "abb", "--benchmark", "Own"], 2, "did you mean 'abp'"),
        (["--format", "abp", "--benchmark", "Own"], 2, "--write-benchmark"),
        (["--format", "abp", "--benchmark", "A", "--write-benchmark", "B"], 2, "exclude"),
        (["--format", "abp", "--benchmark", "LocalSites"], 2, "no such task"),
    ],
)
def test_what_is_typed_wrongly_says_so(results, arguments, status, said):
    done = bub("import", "results", results, *arguments)
    assert done.exit_code == status, done.output
    assert said in done.stderr


def test_a_file_of_another_form_is_exit_3_with_its_lines(results):
    results.write_text('{"task_id": "t1"}\nnot json\n')
    done = bring_in(results, "--write-benchmark", "Own")
    assert done.exit_code == 3
    assert "results.jsonl:1: task" in done.stderr
    assert "results.jsonl:2:" in done.stderr
    assert not (results.parent / "Own").exists()
