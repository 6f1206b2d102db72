"""The integration guide, followed to the letter: in a project of its own, and in a copy of
this repository whose package is edited as step 4 shows.

The agent is `nop` where any would do, and `browser-use` in the guide's own commands: with a
model that is a scripted endpoint, and with sites that stand in for example.com and example.org.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.agents.browser_use.installed import installed
from tests.agents.browser_use.openai_server import Served

__all__ = ["installed"]

REPO = Path(__file__).resolve().parents[2]

TASKS = """
[
  {
    "task_id": "your_task_001",
    "task": "Task description shown to the agent",
    "website": "example.com",
    "category": "information_retrieval",
    "expected_result": "Expected result description",
    "requires_login": false,
    "difficulty": "easy"
  },
  {
    "task_id": "your_task_002",
    "task": "Another task description",
    "website": "example.org",
    "category": "form_filling",
    "expected_result": "Form submission successful",
    "requires_login": true,
    "difficulty": "medium"
  }
]
"""

DATA_INFO = """
{
  "name": "YourBenchmark",
  "description": "Your benchmark description",
  "default_split": "All",
  "split": {
    "All": "tasks.json",
    "Easy": "tasks_easy.json",
    "Medium": "tasks_medium.json",
    "Hard": "tasks_hard.json"
  }
}
"""

EVALUATOR = '''
from browseruse_bench.eval.base_evaluator import BaseEvaluator

class YourBenchmarkEvaluator(BaseEvaluator):
    """Custom evaluator."""

    def evaluate_task(self, task_id: str, result: dict) -> dict:
        """
        Evaluate a single task.

        Args:
            task_id: Task ID
            result: Agent result

        Returns:
            Evaluation result containing predicted_label and score.
        """
        score = self._calculate_score(result)

        return {
            "predicted_label": 1 if score >= 60 else 0,
            "score": score,
            "evaluation_details": {
                "grader_response": "Evaluation details..."
            }
        }
'''

REGISTRATION = """
BENCHMARKS = {
    "LexBench-Browser": ...,
    "Online-Mind2Web": ...,
    "BrowseComp": ...,
    "YourBenchmark": {
        "data_dir": "benchmarks/YourBenchmark",
        "evaluator": "browseruse_bench.eval.your_evaluator:YourBenchmarkEvaluator"
    }
}
"""

RUN = "run --agent nop --benchmark YourBenchmark --mode first_n --count 3"
EVAL = "eval --agent nop --benchmark YourBenchmark"


def follow_steps_1_to_3(folder: Path) -> None:
    (folder / "data").mkdir(parents=True)
    (folder / "README.md").write_text("# YourBenchmark\n")
    (folder / "data" / "tasks.json").write_text(TASKS)
    tasks = json.loads(TASKS)
    for difficulty in ("easy", "medium", "hard"):
        subset = [task for task in tasks if task["difficulty"] == difficulty]
        (folder / "data" / f"tasks_{difficulty}.json").write_text(json.dumps(subset))
    (folder / "data_info.json").write_text(DATA_INFO)
    (folder / "evaluator.py").write_text(EVALUATOR)


def bubench(arguments: str, cwd: Path, source: Path = REPO) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "browseruse_bench", *arguments.split()],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(source)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def judgements(cwd: Path) -> list[dict]:
    (path,) = cwd.glob("experiments/YourBenchmark/All/nop/no-model/*/judgements.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()]


def copy_repository(target: Path) -> None:
    """The files of the repository that git knows or would take up, without the rest."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=REPO,
        capture_output=True,
        check=True,
    ).stdout
    for name in filter(None, listed.decode().split("\0")):
        if (REPO / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(REPO / name, target / name)


@pytest.fixture
def own_project(tmp_path):
    follow_steps_1_to_3(tmp_path / "benchmarks" / "YourBenchmark")
    return tmp_path


@pytest.fixture
def edited_copy(tmp_path):
    copy_repository(tmp_path)
    follow_steps_1_to_3(tmp_path / "benchmarks" / "YourBenchmark")
    init = tmp_path / "browseruse_bench" / "benchmarks" / "__init__.py"
    assert "BENCHMARKS" in init.read_text()
    init.write_text(REGISTRATION)
    return tmp_path


@pytest.mark.browser
def test_the_guide_in_a_project_of_its_own(own_project):
    done = bubench(RUN, own_project)
    assert done.returncode == 0, done.stderr
    assert "2 tasks" in done.stderr
    assert "--count 3" in done.stderr
    assert "selected 2" in done.stdout
    assert "not run 1 (login 1)" in done.stdout

    judged = bubench(EVAL, own_project)
    assert judged.returncode == 0, judged.stderr
    assert "selected 2 = graded 1 + ungraded 0 + infrastructure 0 + not run 1 (login 1)" in (
        judged.stdout + judged.stderr
    )
    (judgement,) = judgements(own_project)
    assert judgement["basis"] == "evaluator"
    assert (judgement["label"], judgement["score"]) == (0, 0)
    assert judgement["details"] == {"grader_response": "Evaluation details..."}


@pytest.mark.browser
def test_the_guide_in_an_edited_copy_of_the_repository(edited_copy):
    done = bubench(RUN, edited_copy, edited_copy)
    assert done.returncode == 0, done.stderr
    judged = bubench(EVAL, edited_copy, edited_copy)
    assert judged.returncode == 0, judged.stderr
    (judgement,) = judgements(edited_copy)
    assert judgement["basis"] == "evaluator"
    # Step 4 names a module that step 3 never wrote: the folder's own file is used, and said.
    assert "evaluator.py" in judged.stdout + judged.stderr


@pytest.mark.browser
def test_the_module_that_step_4_names_is_used_where_it_exists(edited_copy):
    own = edited_copy / "benchmarks" / "YourBenchmark" / "evaluator.py"
    own.rename(edited_copy / "browseruse_bench" / "eval" / "your_evaluator.py")
    assert bubench(RUN, edited_copy, edited_copy).returncode == 0
    judged = bubench(EVAL, edited_copy, edited_copy)
    assert judged.returncode == 0, judged.stderr
    assert judgements(edited_copy)[0]["basis"] == "evaluator"


def test_the_edited_copy_still_lists_every_benchmark(edited_copy):
    listed = bubench("list --json", edited_copy, edited_copy)
    assert listed.returncode == 0, listed.stderr
    names = {entry["name"] for entry in json.loads(listed.stdout)["benchmarks"]}
    assert {
        "LexBench-Browser", "Online-Mind2Web", "BrowseComp", "YourBenchmark", "LocalSites",
    } <= names  # fmt: skip


SITES = """
import http.server
import threading

from browseruse_bench.sites.base import Site


class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = b"<h1>Expected result description</h1><a href='/form'>The form</a>"
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


class Example(Site):
    stateful = False

    def start(self, directory, seed):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return "127.0.0.1", self.server.server_port

    def stop(self):
        self.server.shutdown()
"""
STAND_INS = "--site example.com=my_sites:Example --site example.org=my_sites:Example"
SCRIPT = [
    [{"navigate": {"url": "http://example.com/"}}],
    [{"click": {"index": {"role": "link", "name": "The form"}}}],
    [{"read": {"heading": "Expected .*"}}, {"done": {"text": "{heading}", "success": True}}],
]
"""The played answer to "your_task_001"."""


@pytest.mark.browser
@pytest.mark.slow
def test_the_guides_own_commands_with_browser_use(own_project, installed):
    (own_project / "my_sites.py").write_text(SITES)
    with Served({"Task description shown to the agent": SCRIPT}) as served:
        model = f"--model openai-compatible:scripted@{served.url}"
        done = bubench(
            "run --agent browser-use --benchmark YourBenchmark --mode first_n --count 3 "
            f"{model} {STAND_INS}",
            own_project,
        )
    assert done.returncode == 0, done.stderr
    assert "not run 1 (login 1)" in done.stdout
    assert len(served.requests) == 3
    (path,) = own_project.glob("experiments/YourBenchmark/All/browser-use/*/*/tasks/*/1/try-1")
    trace = json.loads((path / "trace.json").read_text())
    assert trace["outcome"]["status"] == "finished"
    assert trace["outcome"]["answer"] == "Expected result description"
    assert trace["stand_in"] is True
    steps = [json.loads(line) for line in (path / "steps.jsonl").read_text().splitlines()]
    assert [step["calls"][0]["name"] for step in steps] == ["navigate", "click", "done"]
    assert steps[1]["page_after"]["url"] == "http://example.com/form"

    judged = bubench("eval --agent browser-use --benchmark YourBenchmark", own_project)
    assert judged.returncode == 0, judged.stderr
    listed = bubench("leaderboard", own_project)
    assert "browser-use  openai-compatible:scripted" in listed.stdout


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (
            "run --mode first_n --count 3",
            "agent 'browser-use' is not installed here; type `bubench",
        ),
        ("eval", "no run below experiments fits --benchmark YourBenchmark --split All"),
    ],
)
def test_without_its_environment_browser_use_says_what_to_type(
    own_project, command, said, monkeypatch
):
    monkeypatch.setenv("XDG_DATA_HOME", str(own_project / "nothing"))
    verb, _, rest = command.partition(" ")
    done = bubench(f"{verb} --agent browser-use --benchmark YourBenchmark {rest}", own_project)
    assert done.returncode == 2
    assert done.stderr.startswith(f"bubench: {said}")
    assert not (own_project / "experiments").exists()


@pytest.mark.browser
def test_without_a_model_the_guides_command_says_how_to_give_one(own_project, installed):
    done = bubench(
        "run --agent browser-use --benchmark YourBenchmark --mode first_n --count 3", own_project
    )
    assert done.returncode == 2
    assert done.stderr.startswith("bubench: agent 'browser-use' needs a model; give --model")


def test_an_empty_subset_is_valid(own_project):
    assert bubench("benchmark validate YourBenchmark", own_project).returncode == 0
    done = bubench("run --agent nop --benchmark YourBenchmark --split Hard", own_project)
    assert done.returncode == 0, done.stderr
    assert "selected 0" in done.stdout


def test_the_files_of_the_subsets_can_be_generated(own_project):
    data = own_project / "benchmarks" / "YourBenchmark" / "data"
    for name in ("easy", "medium", "hard"):
        (data / f"tasks_{name}.json").unlink()
    assert bubench("benchmark split YourBenchmark", own_project).returncode == 0
    sizes = {n: len(json.loads((data / f"tasks_{n}.json").read_text())) for n in ("easy", "hard")}
    assert sizes == {"easy": 1, "hard": 0}
    assert bubench("benchmark validate YourBenchmark", own_project).returncode == 0


@pytest.mark.browser
def test_a_login_runs_the_task_that_needs_one(own_project):
    (own_project / "state.json").write_text('{"cookies": [], "origins": []}')
    done = bubench(f"{RUN} --storage-state state.json", own_project)
    assert done.returncode == 0, done.stderr
    assert "selected 2 = graded 0 + ungraded 2 (not_judged 2)" in done.stdout
