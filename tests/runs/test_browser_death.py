"""The harness judges the browser's health by itself, whatever the agent does or says."""

import asyncio
from contextlib import suppress

import pytest

from browseruse_bench.agents.base import AgentReport
from browseruse_bench.browsers.cdp import CDP
from browseruse_bench.errors import BrowserError
from browseruse_bench.records.trace import Call
from browseruse_bench.store.trace_folder import TraceFolder
from tests.runs.doubles import Echo

pytestmark = pytest.mark.browser


class Closer(Echo):
    """Makes one action, closes the browser where the task says so, and claims success."""

    name = "closer"
    needs_browser = True

    async def attempt(self, view, session, limits, sink, workspace):
        await sink.action(Call(name="click"))
        if view.text == "close":
            cdp = await CDP.connect(session.ws_url)
            with suppress(BrowserError):
                await cdp.send("Browser.close")
            await cdp.close()
            await asyncio.sleep(5)
        return AgentReport(status="finished", answer="done", claimed_success=True)


def test_a_browser_that_dies_is_infrastructure_and_tried_again_not_a_result(benchmark, carry_out):
    benchmark("close", "a")
    planned, executed, _ = carry_out(
        agent="tests.runs.test_browser_death:Closer", browser="local", retries=1
    )
    assert executed.statuses == {"infrastructure": 1, "finished": 1}
    entry = planned.folder.attempts()["t1", 1]
    assert (entry.status, entry.reason, entry.try_) == ("infrastructure", "the browser died", 2)
    assert entry.wall_s < 5
    trace = TraceFolder.open(planned.folder.try_path("t1", 1, 2), entry.trace_key)
    assert [step.calls[0].name for step in trace.steps] == ["click"]
    assert trace.trace.outcome.answer is None
