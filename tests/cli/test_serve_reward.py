import json
import os
import signal
import subprocess
import sys
import time

import httpx
import pytest
from click.testing import CliRunner

from browseruse_bench.cli.root import bubench
from tests.report.made_run import MadeBenchmark, row, rubric


@pytest.fixture
def bench(tmp_path):
    made = MadeBenchmark(tmp_path / "Made", [row("a")])
    made.rubrics = {"a": rubric("a", 40, 60)}
    made.load()
    return made


def start(bench, *more):
    command = (sys.executable, "-m", "browseruse_bench", "serve-reward", "--json")
    process = subprocess.Popen(
        [*command, "--benchmark", str(bench.path), *map(str, more)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=bench.path.parent,
    )
    line = process.stdout.readline()
    assert line, process.wait()
    return process, json.loads(line)


def stop(process, number=signal.SIGTERM):
    process.send_signal(number)
    process.stdout.close()
    return process.wait(20)


def test_killed_servers_lose_nothing_and_grade_nothing_twice(bench):
    bench.rubrics = {"a": rubric("a", 40, 60)}
    bench.evaluator = (
        "import pathlib, time\n"
        "from browseruse_bench.eval.base_evaluator import BaseEvaluator\n"
        "class Slow(BaseEvaluator):\n"
        "    def evaluate_task(self, task_id, result):\n"
        f"        here = pathlib.Path({str(bench.path.parent)!r})\n"
        "        with (here / 'asked').open('a') as file:\n"
        "            file.write(result['answer'])\n"
        "        if result['answer'] == '2':\n"
        "            while not (here / 'go').exists():\n"
        "                time.sleep(0.02)\n"
        "        return {'predicted_label': 1, 'score': 50}\n"
    )
    bench.load()
    token_file = bench.path.parent / "token"
    asked = bench.path.parent / "asked"
    more = ("--token-file", token_file, "--concurrency", 1)
    process, told = start(bench, *more)
    assert oct(token_file.stat().st_mode & 0o777) == "0o600"
    headers = {"authorization": f"Bearer {token_file.read_text().strip()}"}

    def grade(url, answer, wait_s=0.0):
        body = {"task_id": "a", "answer": answer}
        params = {"wait_s": wait_s}
        return httpx.post(f"{url}/v1/gradings", json=body, headers=headers, params=params)

    first = grade(told["url"], "1", 20)
    ids = [grade(told["url"], answer).json()["id"] for answer in ("2", "3")]
    deadline = time.monotonic() + 20
    while asked.read_text() != "12" and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    (bench.path.parent / "go").touch()
    process, told = start(bench, *more)
    try:
        assert told["resumed"] == 2
        found = [
            httpx.get(f"{told['url']}/v1/gradings/{id}", headers=headers, params={"wait_s": 20})
            for id in ids
        ]
        assert [each.json()["reward"] for each in found] == [0.5, 0.5]
        assert grade(told["url"], "1", 20).text == first.text
        # "2" was under way when the server was killed; what had its result was not asked again.
        assert asked.read_text() == "1223"
    finally:
        assert stop(process) == 0


def test_what_cannot_be_served_is_said_in_one_line(bench):
    def refused(*arguments):
        given = ["serve-reward", "--benchmark", str(bench.path), *map(str, arguments)]
        shown = CliRunner().invoke(bubench, given)
        assert shown.exit_code == 2, shown.output
        return shown.output

    short = bench.path.parent / "token"
    short.write_text("short")
    state = ("--state", bench.path.parent / "state")
    assert "16 or more" in refused("--token-file", short, *state)
    assert "a reward is wanted now" in refused("--judge", "x", "--batch", bench.path / "b")
    assert "--port" in refused("--port", 70000)
