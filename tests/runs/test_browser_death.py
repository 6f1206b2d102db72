"""The harness judges the browser's health by itself, whatever the agent does or says."""

import asyncio
import json
import os
import signal
from contextlib import suppress

import pytest

from browseruse_bench.agents.base import AgentReport
from browseruse_bench.browsers.cdp import CDP
from browseruse_bench.browsers.local import LocalChromium
from browseruse_bench.errors import BrowserError
from browseruse_bench.records.trace import Call
from browseruse_bench.store.trace_folder import TraceFolder
from tests.runs.doubles import Echo, tell, told

pytestmark = pytest.mark.browser


AGENT = "tests.runs.test_browser_death:Ender"


def browsers_of(folder):
    """Process groups of the browsers that a run started and did not end."""
    lines = [json.loads(line) for line in (folder / "processes.jsonl").read_text().splitlines()]
    ended = {line["id"] for line in lines if line["event"] == "end"}
    browsers = [line for line in lines if line.get("kind") == "browser"]
    return [line["pgid"] for line in browsers if line["id"] not in ended]


class Ender(Echo):
    """Makes one action, ends its browser as the task says, and claims success."""

    name = "ender"
    needs_browser = True

    async def attempt(self, view, session, limits, sink, workspace):
        tell("attempt", view.task_id)
        await sink.action(Call(name="click"))
        times = sum(t == ["attempt", view.task_id] for t in told())
        if view.text in ("close", "close and go"):
            cdp = await CDP.connect(session.ws_url)
            with suppress(BrowserError):
                await cdp.send("Browser.close")
            await cdp.close()
            await asyncio.sleep(5 if view.text == "close" else 0)
        elif view.text == "kill" or (view.text == "kill once" and times == 1):
            for group in browsers_of(workspace.owner):
                os.killpg(group, signal.SIGKILL)
            await asyncio.sleep(5)
        elif view.text == "kill and look":
            for group in browsers_of(workspace.owner):
                os.killpg(group, signal.SIGKILL)
            await sink.action(Call(name="look"))
        return AgentReport(status="finished", answer="done", claimed_success=True)


def go(carry_out, **settings):
    return carry_out(agent=AGENT, browser="local", concurrency=1, **settings)


def judged_on(planned, n):
    entry = planned.folder.attempts()["t1", 1]
    assert entry.try_ == n
    trace = TraceFolder.open(planned.folder.try_path("t1", 1, n), entry.trace_key)
    assert trace.trace.outcome.status == entry.status
    assert trace.trace.outcome.answer is None
    assert trace.steps[0].calls[0].name == "click"
    return entry


def test_an_agent_that_closes_its_browser_earns_no_other_try(benchmark, carry_out):
    benchmark("close", "a")
    planned, executed, _ = go(carry_out)
    assert executed.statuses == {"agent_error": 1, "finished": 1}
    entry = judged_on(planned, 1)
    assert entry.reason == "the agent closed its browser"
    assert entry.wall_s < 5


def test_an_agent_that_closes_its_browser_when_it_is_done_keeps_what_it_reported(
    benchmark, carry_out
):
    benchmark("close and go")
    planned, executed, _ = go(carry_out)
    assert executed.statuses == {"finished": 1}
    entry = planned.folder.attempts()["t1", 1]
    trace = TraceFolder.open(planned.folder.try_path("t1", 1, 1), entry.trace_key)
    assert trace.trace.outcome.answer == "done"


@pytest.mark.parametrize("way", ["kill", "kill and look"])
def test_a_browser_that_dies_on_every_try_while_one_without_an_agent_lives_is_the_agents_error(
    benchmark, carry_out, way
):
    """Also where the recorder is looking at the very moment: it stays in the denominator."""
    benchmark(way, "a")
    planned, executed, _ = go(carry_out, retries=1)
    assert executed.statuses == {"agent_error": 1, "finished": 1}
    assert executed.n_retries == 1
    entry = judged_on(planned, 2)
    assert entry.reason == "the browser died on each of 2 tries, and one without an agent lives"


def test_a_browser_that_died_once_is_tried_again(benchmark, carry_out):
    benchmark("kill once")
    planned, executed, _ = go(carry_out)
    assert executed.statuses == {"finished": 1}
    first, second = planned.folder.entries()
    assert (first.status, first.reason) == ("infrastructure", "the browser died")
    assert (second.status, second.try_) == ("finished", 2)


def test_deaths_are_counted_over_commands_and_one_alone_is_owed_again(benchmark, carry_out):
    benchmark("kill")
    _, executed, _ = go(carry_out, retries=0)
    assert executed.statuses == {"infrastructure": 1}
    planned, executed, _ = go(carry_out, retries=0)
    assert executed.statuses == {"agent_error": 1}
    judged_on(planned, 2)
    _, executed, _ = go(carry_out, retries=0)
    assert executed.statuses == {}


class Mortal(LocalChromium):
    """No browser lives long on this machine."""

    name = "mortal"

    async def _start(self, request, stack):
        session = await super()._start(request, stack)
        owned = self._running[session.ws_url]
        asyncio.get_running_loop().call_later(0.7, os.killpg, owned.pgid, signal.SIGKILL)
        return session


def test_where_no_browser_lives_it_is_not_the_agents_error(benchmark, carry_out):
    benchmark("hang")
    _, executed, _ = carry_out(
        agent="tests.runs.doubles:InBrowser",
        browser="tests.runs.test_browser_death:Mortal",
        retries=1,
    )
    assert executed.statuses == {"infrastructure": 1}
