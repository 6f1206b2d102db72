"""Agents without a browser, for tests of runs; found as tests.runs.doubles:Name."""

import asyncio
import json
import os
import time
from pathlib import Path

from browseruse_bench.agents.base import Agent, AgentReport
from browseruse_bench.browsers.none import NoBrowser
from browseruse_bench.errors import BrowserError
from browseruse_bench.records.trace import AgentId, Call

LOG = "BUBENCH_TEST_LOG"


def told():
    """What the agents of this test did, in order."""
    path = Path(os.environ[LOG])
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def tell(*what):
    with Path(os.environ[LOG]).open("a") as file:
        file.write(json.dumps(what) + "\n")


async def _raise(view, sink, workspace):
    raise RuntimeError("the agent fell over")


async def _hang(view, sink, workspace):
    await asyncio.sleep(3600)


async def _deaf(view, sink, workspace):
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            tell("deaf", view.task_id)


async def _thread(view, sink, workspace):
    await asyncio.to_thread(time.sleep, 3600)


async def _endless(view, sink, workspace):
    while True:
        await sink.action(Call(name="again"))


async def _save(view, sink, workspace):
    (workspace.files / "report.txt").write_text("42")


async def _sees(view, sink, workspace):
    tell("sees", view.as_json(), sorted(p.name for p in workspace.attachments.iterdir()))


async def _slow(view, sink, workspace):
    await asyncio.sleep(0.3)


BEHAVIOURS = {
    "raise": _raise,
    "hang": _hang,
    "deaf": _deaf,
    "thread": _thread,
    "endless": _endless,
    "save": _save,
    "sees": _sees,
    "slow": _slow,
}


class Echo(Agent):
    """Does what the task's text names, if anything; then one action, and answers the text."""

    name = "echo"
    needs_browser = False
    version = "1"

    def identity(self):
        return AgentId(name=self.name, version=self.version, model=self.setup.model)

    async def attempt(self, view, session, limits, sink, workspace):
        tell("attempt", view.task_id)
        if view.text in BEHAVIOURS:
            await BEHAVIOURS[view.text](view, sink, workspace)
        await sink.action(Call(name="click"))
        return AgentReport(status="finished", answer=view.text, claimed_success=None)


class InBrowser(Echo):
    needs_browser = True


class Nosy(Echo):
    """Answers with whether it was given the reference solutions."""

    name = "nosy"

    async def attempt(self, view, session, limits, sink, workspace):
        return AgentReport(status="finished", answer=repr(self.setup.solution_of))


class Echo2(Echo):
    version = "2"


class Flaky(NoBrowser):
    """Fails to start as often as the file says."""

    name = "flaky"

    def open(self, request):
        path = Path(os.environ[LOG]).with_name("failures")
        left = int(path.read_text()) if path.exists() else 0
        if left:
            path.write_text(str(left - 1))
            raise BrowserError("Chromium did not start")
        return super().open(request)
