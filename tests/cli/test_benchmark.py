import json

import pytest
from click.testing import CliRunner

from browseruse_bench.cli.root import bubench
from tests.benchmarks.small import put, rubric

INFO = {"split": {"All": "tasks.json"}, "description": "Small."}


@pytest.fixture
def cli(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def _run(*arguments, status=0):
        result = CliRunner().invoke(bubench, list(arguments))
        assert result.exit_code == status, result.output
        return result

    return _run


@pytest.fixture
def small(tmp_path):
    folder = tmp_path / "benchmarks" / "Small"
    put(folder / "data_info.json", INFO)
    tasks = [{"task_id": "a", "task": "T.", "expected_result": "SECRET", "difficulty": "easy"}]
    put(folder / "data" / "tasks.json", tasks)
    return folder


def test_new_validate_split_and_show_work_one_after_another(cli):
    cli("benchmark", "new", "YourBenchmark", "--with-evaluator")
    valid = cli("benchmark", "validate", "YourBenchmark").output
    assert "ready, 2 tasks, 0 problems, 0 warnings" in valid
    assert "tasks_easy.json: 1 task, written" in cli("benchmark", "split", "YourBenchmark").output
    shown = cli("benchmark", "show", "YourBenchmark").output
    assert "splits: All 2, Easy 1, Medium 1, Hard 0" in shown
    assert "evaluator.py" in shown


def test_new_refuses_an_existing_folder_with_status_2(cli):
    cli("benchmark", "new", "Mine")
    assert "already there" in cli("benchmark", "new", "Mine", status=2).output


def test_new_elsewhere_is_found_by_its_path(cli):
    cli("benchmark", "new", "Mine", "--dir", "sets")
    cli("benchmark", "validate", "sets/Mine")
    cli("benchmark", "validate", "Mine", status=2)


def test_validate_lists_every_problem_and_exits_3(cli, small):
    put(small / "data" / "tasks.json", [{"task_id": "a"}, {"task": "T."}])
    result = cli("benchmark", "validate", "Small", status=3)
    assert "tasks.json[0].task: missing" in result.stderr
    assert "tasks.json[1].task_id: missing" in result.stderr
    assert "2 problems" in result.stderr


def test_validate_as_json_names_file_index_and_field(cli, small):
    put(small / "data" / "tasks.json", [{"task_id": "a"}, {"task_id": "b", "task": "T."}])
    value = json.loads(cli("benchmark", "validate", "Small", "--json", status=3).stdout)
    (problem,) = value["problems"]
    assert value["state"] == "invalid"
    assert (problem["file"], problem["index"], problem["field"]) == ("tasks.json", 0, "task")
    assert problem["line"].startswith("tasks.json[0].task: missing")


def test_validate_never_runs_the_evaluator(cli, small, tmp_path):
    put(
        small / "evaluator.py",
        f"open({str(tmp_path / 'ran')!r}, 'w')\nclass A(BaseEvaluator):\n"
        "    def evaluate_task(self, task_id, result): ...\n",
    )
    cli("benchmark", "validate", "Small")
    cli("benchmark", "show", "Small")
    assert not (tmp_path / "ran").exists()


def test_validate_of_data_that_is_not_pulled_says_how_to_get_it(cli):
    result = cli("benchmark", "validate", "Online-Mind2Web", status=3)
    assert "osunlp/Online-Mind2Web" in result.output


def test_a_mistyped_name_names_the_nearest(cli, small):
    assert small.is_dir()
    assert "did you mean 'Small'?" in cli("benchmark", "show", "Smal", status=2).output


def test_split_dry_run_writes_nothing(cli, small):
    before = sorted(small.rglob("*"))
    output = cli("benchmark", "split", "Small", "--dry-run").output
    assert "tasks_easy.json: 1 task, would be written" in output
    assert sorted(small.rglob("*")) == before


def test_show_of_a_task_marks_what_an_agent_sees(cli, small):
    put(small / "rubrics" / "a.json", rubric())
    output = cli("benchmark", "show", "Small", "a").output
    seen, hidden = output.split("an agent never sees:")
    assert "T." in seen
    assert "SECRET" not in seen
    assert "SECRET" in hidden
    assert "100 A1: It is so." in hidden
    value = json.loads(cli("benchmark", "show", "Small", "a", "--json").output)
    assert value["agent_sees"] == {"task_id": "a", "text": "T.", "attachments": []}
    assert value["hidden"]["expected_result"] == "SECRET"
    cli("benchmark", "show", "Small", "nosuch", status=2)


def test_show_as_json_counts(cli, small):
    assert small.is_dir()
    value = json.loads(cli("benchmark", "show", "Small", "--json").output)
    assert value["state"] == "ready"
    assert value["splits"] == {"All": 1}
    assert value["difficulty"] == {"easy": 1}
    assert len(value["content_sha256"]) == 64
