import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from browseruse_bench.cli.root import bubench
from tests.benchmarks.small import put


@pytest.fixture
def listed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def _run(*arguments):
        result = CliRunner().invoke(bubench, ["list", *arguments])
        assert result.exit_code == 0, result.output
        return result.output

    return _run


def test_the_list_names_benchmarks_agents_and_browsers(listed):
    output = listed()
    for name in ("BrowseComp", "LexBench-Browser", "LocalSites", "Online-Mind2Web"):
        assert name in output
    assert "agents: " in output
    assert "nop" in output
    assert "oracle" in output
    assert "browsers: " in output
    assert "local" in output


def test_the_list_says_what_state_each_benchmark_is_in(listed, tmp_path):
    info = {"split": {"All": "tasks.json"}}
    for name, tasks in (("Good", [{"task_id": "a", "task": "T."}]), ("Bad", [{"task_id": "a"}])):
        put(tmp_path / "benchmarks" / name / "data_info.json", info)
        put(tmp_path / "benchmarks" / name / "data" / "tasks.json", tasks)
    value = {b["name"]: b for b in json.loads(listed("--json"))["benchmarks"]}
    assert (value["Good"]["state"], value["Good"]["n_tasks"]) == ("ready", 1)
    assert value["Good"]["path"] == str(tmp_path / "benchmarks" / "Good")
    assert value["Bad"]["state"] == "invalid"
    assert value["Bad"]["problems"]
    assert value["BrowseComp"]["state"] == "not pulled"
    assert value["BrowseComp"]["n_tasks"] is None
    assert "benchmark validate Bad" in listed()


def test_a_benchmark_whose_subset_files_are_missing_is_ready(listed, tmp_path):
    split = {"All": "tasks.json", "Hard": "tasks_hard.json"}
    put(tmp_path / "benchmarks" / "Part" / "data_info.json", {"split": split})
    put(tmp_path / "benchmarks" / "Part" / "data" / "tasks.json", [])
    value = {b["name"]: b for b in json.loads(listed("--json"))["benchmarks"]}
    assert (value["Part"]["state"], value["Part"]["problems"]) == ("ready", [])


def test_the_list_never_runs_an_evaluator(listed, tmp_path):
    put(tmp_path / "benchmarks" / "Trap" / "data_info.json", {"split": {"All": "tasks.json"}})
    put(tmp_path / "benchmarks" / "Trap" / "data" / "tasks.json", [])
    put(tmp_path / "benchmarks" / "Trap" / "evaluator.py", "raise SystemExit('was run')")
    assert "Trap" in listed()


def test_the_list_imports_no_sdk(tmp_path):
    code = (
        "import sys; from browseruse_bench.cli import main\n"
        "sys.argv = ['bubench', 'list']\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = {'browser_use', 'playwright', 'openai', 'anthropic', 'websockets', 'rich'}\n"
        "print('HEAVY', sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.endswith("HEAVY []\n")
