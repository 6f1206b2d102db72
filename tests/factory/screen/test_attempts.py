"""Real attempts through the harness: what agents and browsers receive, resume, budget, the pin."""

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest
from click.testing import CliRunner
from websockets.asyncio.client import ClientConnection

from browseruse_bench.cli.root import bubench
from browseruse_bench.errors import BudgetError, ConfigError, StageError
from browseruse_bench.factory.context import Resources
from browseruse_bench.factory.screen.attempts import Attempts, Spent
from browseruse_bench.factory.screen.grader import COMPLETED
from browseruse_bench.factory.stages.screen import Screening
from browseruse_bench.factory.workspace import WorkspaceConfig
from browseruse_bench.records.candidate import new_candidate
from browseruse_bench.store.journal import read_journal
from browseruse_bench.store.run_folder import RunFolder
from tests.factory.screen import watched
from tests.factory.screen.screening import NOTES, ROLES, UNIT, context, finding, grader, judged

MARK = "lead-mark-5b1c"
AGENT = "tests.factory.screen.watched:"


@pytest.fixture
def log(tmp_path, monkeypatch):
    path = tmp_path / "watched.jsonl"
    monkeypatch.setenv(watched.LOG, str(path))
    return path


def stage(agent, **screen):
    screen = {"browser": "none", "agent": AGENT + agent, **screen}
    return Screening(WorkspaceConfig(name="w", roles=ROLES, screen=screen))


def attempts(root, agent="Counted", usd=None, **screen):
    root.mkdir(parents=True, exist_ok=True)
    screen = {"browser": "none", "agent": AGENT + agent, "usd": usd, **screen}
    return Attempts(
        workspace=root,
        folder=root,
        config=WorkspaceConfig(name="w", screen=screen),
        resources=Resources({}),
        places=asyncio.Semaphore(2),
        spent=Spent.of(root, usd),
    )


@pytest.mark.browser
async def test_no_byte_of_leads_or_rubric_reaches_an_agent_or_its_browser(
    tmp_path, log, monkeypatch
):
    sent, send = [], ClientConnection.send

    async def listened(self, message, *rest, **more):
        sent.append(message if isinstance(message, bytes) else str(message).encode())
        return await send(self, message, *rest, **more)

    monkeypatch.setattr(ClientConnection, "send", listened)

    def marks(text, sample):
        if NOTES in text:
            lead = {"section": "answers", "text": f"{MARK}: it is 4711", "step": "1"}
            return {"add": [lead], "remove": []}
        return judged(finding("task_completed", "PAGE: Nothing found", "met"))

    ctx, model = context(tmp_path / "screen", marks)
    screening = stage(
        "Watcher", browser="local", sites={"shop.test": AGENT + "Shop"}, max_runs=2, fp=0, fn=0
    )
    outcome = await screening.settle(UNIT, ctx)
    asked = [r.text for r in model.requests if NOTES not in r.text]
    assert any(MARK in text for text in asked[1:]), "later judgements read the leads"
    given = log.read_bytes() + b"\n".join(sent)
    assert UNIT.text.encode() in given, "the agent's task was seen"
    assert b"PAGE: Nothing found" in given, "the page was seen"
    assert b"Page.navigate" in given, "what the browser is sent was seen"
    assert b"--user-data-dir" in given, "the browser's command line was seen"
    rubric = COMPLETED.read_text().split(". ")[0]
    n_attempts = sum("\"'view'\"" in line for line in log.read_text().splitlines())
    assert n_attempts >= 2, "an attempt was made after there were leads"
    for secret in (MARK, "task_completed", rubric, "Leads"):
        assert secret.encode() not in given
    # Nor does it lie in what the harness keeps of the attempts, or in the task's folder.
    home = tmp_path / "screen" / "tasks" / UNIT.key[:16]
    for path in (*(home / "runs").rglob("*"), *home.glob("screen-*/**/*")):
        assert path.is_dir() or MARK.encode() not in path.read_bytes()
    assert outcome is not None


async def test_an_attempt_is_made_once_and_read_again_later(tmp_path, log):
    first = await attempts(tmp_path / "s").made(UNIT, "reference", 1)
    again = await attempts(tmp_path / "s").made(UNIT, "reference", 1)
    second = await attempts(tmp_path / "s").made(UNIT, "reference", 2)
    assert first.entry == again.entry
    assert second.entry.trace_key != first.entry.trace_key
    assert len(log.read_text().splitlines()) == 2
    assert first.trace().trace.outcome.answer == UNIT.text


async def test_the_benchmark_of_a_candidate_holds_nothing_but_its_text(tmp_path, log):
    made = await attempts(tmp_path / "s").made(UNIT, "reference", 1)
    files = {p.name: p.read_text() for p in made.benchmark.path.rglob("*") if p.is_file()}
    assert set(files) == {"tasks.json", "data_info.json"}
    assert json.loads(files["tasks.json"]) == [{"task_id": UNIT.key[:16], "task": UNIT.text}]


async def test_a_browser_that_never_starts_leaves_the_attempt_owed(tmp_path, log, monkeypatch):
    monkeypatch.setenv("BUBENCH_TEST_LOG", str(tmp_path / "told"))
    (tmp_path / "failures").write_text("3")
    flaky = {"browser": "tests.runs.doubles:Flaky"}
    with pytest.raises(StageError, match="it is owed"):
        await attempts(tmp_path / "s", **flaky).made(UNIT, "reference", 1)
    assert not log.exists()
    made = await attempts(tmp_path / "s", **flaky).made(UNIT, "reference", 1)
    assert made.entry.status == "finished"


async def test_another_version_of_the_agent_is_refused(tmp_path, log, monkeypatch):
    await attempts(tmp_path / "s").made(UNIT, "reference", 1)
    monkeypatch.setenv("COUNTED", "2")
    other = new_candidate("Another task at the same screen")
    with pytest.raises(ConfigError, match=r"counted 1, no model, but here it is counted 2"):
        await attempts(tmp_path / "s").made(other, "reference", 1)
    with pytest.raises(ConfigError, match="agent_version pins counted 1"):
        await attempts(tmp_path / "t", agent_version="1").made(other, "reference", 1)


async def test_no_attempt_starts_beyond_the_budget(tmp_path, log):
    limited = attempts(tmp_path / "s", usd=1.0)
    limited.spent.usd = 1.0
    with pytest.raises(BudgetError, match=r"\[screen\] usd = 1 is reached"):
        await limited.made(UNIT, "reference", 1)
    assert not log.exists()


async def test_what_was_spent_is_counted_from_the_journals(tmp_path, log):
    made = await attempts(tmp_path / "s").made(UNIT, "reference", 1)
    line = {**made.entry.as_json(), "cost_usd": 0.75}
    with made.folder.attempts_path.open("a") as file:
        file.write(json.dumps(line) + "\n")
    assert Spent.of(tmp_path / "s", 2.0).usd == 0.75


UNITS = [new_candidate(f"Screen this task, which is number {n}") for n in range(3)]
SCRIPT = """
import asyncio, pathlib, sys
from tests.factory.screen.screening import context
from tests.factory.screen.test_attempts import UNITS, stage

async def main():
    ctx, _ = context(pathlib.Path(sys.argv[1]))
    screening = stage("Counted", max_runs=4, escalation_runs=1)
    for unit in UNITS:
        print((await screening.settle(unit, ctx)).reason, flush=True)

asyncio.run(main())
"""


def start(root):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(root)], env=env, stdout=subprocess.PIPE, text=True
    )


@pytest.mark.slow
def test_killed_at_any_moment_it_goes_on_and_no_settled_attempt_is_made_again(tmp_path, log):
    root, rng = tmp_path / "s", random.Random(3)
    for kills in range(1, 4):
        process = start(root)
        deadline = time.monotonic() + 60
        while not (log.exists() and len(log.read_text().splitlines()) >= 3 * kills):
            if process.poll() is not None or time.monotonic() > deadline:
                break
            time.sleep(0.01)
        time.sleep(rng.random() * 0.2)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    done, _ = start(root).communicate(timeout=120)
    assert done.split() == ["pending"] * 3
    runs = [path.parent for path in root.glob("tasks/*/runs/*/*/*/*/*/attempts.jsonl")]
    assert runs
    settled = [(e.task_id, e.attempt) for run in runs for e in RunFolder(run).entries()]
    per_run = {run: [(e.attempt) for e in RunFolder(run).entries()] for run in runs}
    assert all(len(numbers) == len(set(numbers)) for numbers in per_run.values())
    # Each kill may cost the attempt in flight, and nothing else.
    assert len(log.read_text().splitlines()) <= len(settled) + 3


def test_the_design_is_printed_before_a_run_is_spent(tmp_path):
    runner = CliRunner()
    runner.invoke(bubench, ["factory", "init", str(tmp_path / "w")])
    told = runner.invoke(
        bubench, ["factory", "screen", "--plan", "--workspace", str(tmp_path / "w"), "--json"]
    )
    assert told.exit_code == 0, told.output
    by_rate, stops, mixes, _ = json.loads(told.output)
    assert by_rate["headers"] == ["true pass rate", "escalate", "keep", "too_easy", "mean runs"]
    for _, *chances, mean in by_rate["rows"]:
        assert sum(float(c.rstrip("%")) for c in chances) == pytest.approx(100, abs=0.2)
        assert 0 < float(mean) <= 8
    assert len(stops["rows"]) == 8
    for _, mean, least, saved, _ in mixes["rows"]:
        assert float(mean) <= 1.05 * float(least) + 0.01
        assert float(saved) == pytest.approx(8 - float(mean), abs=0.011)
    refused = runner.invoke(bubench, ["factory", "screen", "--workspace", str(tmp_path / "w")])
    assert refused.exit_code == 2


async def test_a_whole_screen_of_an_agent_that_does_nothing_is_pending(tmp_path, log):
    ctx, model = context(tmp_path / "s", grader)
    outcome = await stage("Counted", max_runs=4, escalation_runs=1).settle(UNIT, ctx)
    assert outcome.reason == "pending"
    n = len(log.read_text().splitlines())
    assert n == outcome.evidence["screened"]["n_runs"] + 1
    (path,) = (tmp_path / "s").glob("tasks/*/judgements.jsonl")
    assert len(read_journal(path)) >= n
    assert model.requests
