"""`bubench run`, as a user types it: without a browser."""

import json
import subprocess
import sys

import pytest

from tests.benchmarks.small import put

AGENT = """
from browseruse_bench.agents.base import Agent, AgentReport
from browseruse_bench.records.trace import AgentId

class Mine(Agent):
    name = "mine"
    needs_browser = False

    def identity(self):
        return AgentId(name=self.name, version="1")

    async def attempt(self, view, session, limits, sink, workspace):
        return AgentReport(status="finished", answer="x")
"""
RUN = ("run", "--agent", "my_agent:Mine", "--benchmark", "Small", "--browser", "none")


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "benchmarks" / "Small"
    put(folder / "data_info.json", {"split": {"All": "tasks.json"}})
    rows = [{"task_id": i, "task": f"T {i}.", "expected_result": "x"} for i in ("a", "b")]
    put(folder / "data" / "tasks.json", rows)
    (tmp_path / "my_agent.py").write_text(AGENT)
    return tmp_path


def bubench(project, *typed):
    """The command as it is installed: -P keeps Python from adding the current folder."""
    return subprocess.run(
        [sys.executable, "-P", "-m", "browseruse_bench", *typed],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )


def test_an_agent_in_a_module_of_the_current_folder_runs(project):
    done = bubench(project, *RUN)
    assert done.returncode == 0, done.stderr
    assert "selected 2 = graded 0 + ungraded 2 (not_judged 2)" in done.stdout


def next_of(done):
    return done.stdout.splitlines()[-1].removeprefix("next: bubench ").split()


def test_what_it_says_to_type_next_works_and_is_what_is_left_to_do(project):
    done = bubench(project, *RUN, "--model", "a:b")
    assert "agent 'my_agent:Mine' asks no model: --model is not used" in done.stderr
    judge = next_of(done)
    assert judge[0] == "eval"
    judged = bubench(project, *judge)
    assert judged.returncode == 0, judged.stderr
    again = next_of(bubench(project, *RUN))
    assert again[0] == "report"
    assert bubench(project, *again).returncode == 0


def test_eval_and_report_take_the_agent_as_it_was_typed_for_the_run(project):
    bubench(project, *RUN)
    typed = ("--agent", "my_agent:Mine", "--benchmark", "Small")
    judged = bubench(project, "eval", *typed)
    assert judged.returncode == 0, judged.stderr
    assert "selected 2 = graded 2" in judged.stdout
    assert bubench(project, "report", *typed).returncode == 0


def test_progress_that_is_no_terminal_is_plain_lines_with_counts_rate_and_time_left(project):
    lines = bubench(project, *RUN, "--concurrency", "1").stderr.splitlines()
    first, second = (line for line in lines if line.startswith("["))
    assert first.startswith("[1/2] a #1 finished: 0 steps, ")
    assert "/min, " in first
    assert second.startswith("[2/2] b #1 finished: 0 steps, ")
    assert second.endswith("/min, 0 s left")


def test_a_dry_run_says_what_would_be_made_and_writes_nothing(project):
    done = bubench(project, *RUN, "--dry-run", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["to_make"] == [["a", 1], ["b", 1]]
    assert not (project / "experiments").exists()


SITE = """
import http.server
import threading

from browseruse_bench.sites.base import Site


class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = b"<h1>The stand-in's own heading</h1>"
        self.send_response(200)
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


@pytest.mark.browser
def test_a_site_of_ones_own_stands_in_for_a_public_host_and_the_run_says_so(project):
    (project / "my_site.py").write_text(SITE)
    path = [
        {"navigate": "http://example.com/"},
        {"extract": {"css": "h1", "as": "heading"}},
        {"done": "{heading}"},
    ]
    put(project / "benchmarks" / "Small" / "solutions" / "a.json", path)
    run = ("--agent", "oracle", "--benchmark", "Small")
    site = ("--site", "example.com=my_site:Example")
    done = bubench(project, "run", *run, *site, "--task-ids", "a")
    assert done.returncode == 0, done.stderr
    assert "stand-in for example.com: never ranked with live runs" in done.stderr
    (trace,) = project.glob("experiments/Small/All/oracle/*/*/tasks/a/1/try-1/trace.json")
    told = json.loads(trace.read_text())
    assert told["outcome"]["answer"] == "The stand-in's own heading"
    assert (told["stand_in"], told["sites"]) == (True, {"example.com": "my_site:Example"})
    assert bubench(project, "eval", *run, "--run-id", trace.parents[4].name).returncode == 0
    assert "stand-in sites" in bubench(project, "leaderboard").stdout
