import asyncio
import json

import pytest

from browseruse_bench.records.trace import Limits
from browseruse_bench.runs.execute import execute
from browseruse_bench.runs.plan import RunRequest, plan


@pytest.fixture
def project(tmp_path, monkeypatch):
    """An empty folder to work in, with a place for what the doubles tell."""
    monkeypatch.setenv("BUBENCH_TEST_LOG", str(tmp_path / "told.jsonl"))
    home = tmp_path / "project"
    home.mkdir()
    monkeypatch.chdir(home)
    return home


@pytest.fixture
def benchmark(project):
    """Writes a benchmark folder of these task texts (or rows)."""

    def write(*tasks, name="Small", **info):
        folder = project / "benchmarks" / name
        (folder / "data").mkdir(parents=True, exist_ok=True)
        rows = [
            task if isinstance(task, dict) else {"task_id": f"t{n}", "task": task}
            for n, task in enumerate(tasks, 1)
        ]
        (folder / "data" / "tasks.json").write_text(json.dumps(rows))
        (folder / "data_info.json").write_text(
            json.dumps({"name": name, "split": {"All": "tasks.json"}, **info})
        )
        return folder

    return write


@pytest.fixture
def request_of(project):
    """A request with the doubles' agent and no browser."""

    def make(**changes):
        limits = Limits(
            max_steps=changes.pop("max_steps", 5),
            timeout_s=changes.pop("timeout_s", 20),
            step_timeout_s=changes.pop("step_timeout_s", 20),
        )
        settings = {
            "agent": "tests.runs.doubles:Echo",
            "benchmark": "Small",
            "browser": "none",
            "limits": limits,
            "experiments": project / "experiments",
            "concurrency": 2,
        }
        return RunRequest(**(settings | changes))

    return make


@pytest.fixture
def carry_out(request_of):
    """Plans and executes; returns (plan, executed, what was told)."""

    def run(**changes):
        told = []
        planned = plan(request_of(**changes))
        executed = asyncio.run(execute(planned, on_settled=told.append, stop=asyncio.Event()))
        return planned, executed, told

    return run
