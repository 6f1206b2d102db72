import asyncio
import json
import os
import sys
from pathlib import Path

import pytest

from browseruse_bench.agents import worker
from browseruse_bench.agents.base import AgentSetup, Stopped, Workspace
from browseruse_bench.agents.worker import WorkerAgent
from browseruse_bench.browsers.base import Session
from browseruse_bench.errors import AgentError
from browseruse_bench.records.task import TaskView
from browseruse_bench.records.trace import AgentId, BrowserId, Guard, Limits
from browseruse_bench.runs.recording import RecordingSink
from browseruse_bench.store.process_table import look

SCRIPT = Path(__file__).with_name("scripted_worker.py")
SESSION = Session(
    browser=BrowserId(kind="test"),
    guard=Guard(level="none"),
    ws_url="ws://127.0.0.1:1/devtools/browser/x",
    http_url="http://127.0.0.1:1",
    target_id="T0",
)


class Scripted(WorkerAgent):
    name = "scripted"
    behaviour = "honest"

    def identity(self):
        return AgentId(name=self.name, version="1")

    def command(self):
        return [sys.executable, str(SCRIPT), self.behaviour]

    def secrets(self):
        return {"THE_ONE_KEY": "sk-1"}


class Sink:
    def __init__(self, max_actions=100):
        self.seen = []
        self.max_actions = max_actions

    async def action(self, call, *, target_id=None, native_index=None):
        self.seen.append(("action", call.name, target_id, native_index))
        if len([s for s in self.seen if s[0] == "action"]) > self.max_actions:
            raise Stopped("step_limit")

    async def thought(self, text, *, native_index=None):
        self.seen.append(("thought", text, native_index))

    def usage(self, usage):
        self.seen.append(("usage", usage.model, usage.cost_usd))

    def alive(self):
        self.seen.append(("alive",))


@pytest.fixture
def attempt(tmp_path):
    folders = {n: tmp_path / n for n in ("files", "native", "scratch", "attachments", "owner")}
    for folder in folders.values():
        folder.mkdir()

    async def run(behaviour, sink=None, **limits):
        agent = Scripted(AgentSetup(model="test:m"))
        agent.behaviour = behaviour
        return await agent.attempt(
            TaskView(task_id="t", text="Do it."),
            SESSION,
            Limits(max_steps=3, timeout_s=30, **limits),
            sink or Sink(),
            Workspace(**folders),
        )

    return run


async def test_each_action_is_recorded_before_the_worker_goes_on(attempt):
    sink = Sink()
    report = await attempt("honest", sink)
    assert (report.status, report.answer, report.claimed_success) == ("finished", "42", True)
    assert sink.seen == [
        ("action", "click", "T1", 1),
        ("action", "click", "T1", 1),
        ("thought", "two done", 1),
        ("usage", "m", 0.5),
        ("alive",),
    ]


async def test_native_steps_are_kept_as_they_came(attempt, tmp_path):
    await attempt("honest")
    assert json.loads((tmp_path / "native" / "steps.jsonl").read_text()) == {"raw": 1}


async def test_a_worker_that_reaches_the_limit_is_told_and_may_still_answer(attempt):
    report = await attempt("endless", Sink(max_actions=3))
    assert (report.status, report.answer) == ("step_limit", "partial")


@pytest.mark.parametrize(
    ("behaviour", "message"),
    [
        ("torn", r"left without an end in the middle of a line \(exit status 3\)"),
        ("unknown", "not a message"),
        ("out_of_order", "message 3 where 2 was due"),
        ("not_json", "not a message"),
        ("leaves", r"left without an end \(exit status 7\) \(RuntimeError: no key\)"),
        ("no_ready", "began with 'heartbeat', not with ready"),
    ],
)
async def test_a_broken_protocol_is_the_workers_fault(attempt, behaviour, message):
    with pytest.raises(AgentError, match=message):
        await attempt(behaviour)


async def test_a_worker_that_ignores_its_limit_is_at_fault(attempt):
    with pytest.raises(AgentError, match="went on after it was told to stop"):
        await attempt("deaf_to_stop", Sink(max_actions=2))


async def test_a_worker_that_never_gets_ready_is_given_up(attempt, monkeypatch):
    monkeypatch.setattr(worker, "READY_S", 0.3)
    with pytest.raises(AgentError, match="not ready within 0.3 s"):
        await attempt("never_ready")


async def test_nothing_of_a_silent_worker_is_left_after_its_cancellation(attempt, tmp_path):
    """BL010, BL023: the process tree of a stuck attempt is gone."""
    running = asyncio.ensure_future(attempt("silent"))
    await asyncio.sleep(0.7)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    lines = (tmp_path / "owner" / "processes.jsonl").read_text().splitlines()
    pid = json.loads(lines[0])["pgid"]
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_a_child_of_the_worker_ends_with_it(attempt):
    report = await attempt("child")
    left = look(int(report.answer))
    assert left is None or left.zombie


async def test_a_worker_sees_one_key_and_no_other_secret(attempt, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("GITHUB_TOKEN", "ghp-secret")
    seen = json.loads((await attempt("environment")).answer)
    assert seen["THE_ONE_KEY"] == "sk-1"
    assert "secret" not in json.dumps(seen)


async def test_a_worker_gets_nothing_of_the_task_but_its_view(attempt):
    """BL085: an allow-list of fields."""
    seen = json.loads((await attempt("sees")).answer)
    assert seen["task"] == {"task_id": "t", "text": "Do it.", "attachments": []}
    assert set(seen) == {
        "type", "attempt", "task", "cdp_url", "ws_url", "target_id", "model", "work", "files",
        "native", "attachments", "settings", "limits",
    }  # fmt: skip


async def test_a_worker_hears_of_the_limit_in_usd_with_the_next_answer(attempt):
    sink = RecordingSink(None, Limits(cost_usd=0.3))
    report = await attempt("expensive", sink)
    assert report.status == "budget_limit"
    assert [step.calls[0].name for step in sink.steps] == ["click"] * 3


async def test_a_worker_that_uses_too_much_memory_is_ended_with_all_that_it_started(attempt):
    """Also where a child of it does, and only then."""
    with pytest.raises(AgentError, match=r"used 0.\d\d GB of memory, 0.2 are allowed"):
        await attempt("hoards", memory_gb=0.2)
    assert (await attempt("honest", memory_gb=2)).answer == "42"
