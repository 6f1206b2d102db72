"""The nop agent, and the table of agents."""

import pytest

from browseruse_bench import __version__
from browseruse_bench.agents import AGENTS
from browseruse_bench.agents.base import Agent, AgentSetup
from browseruse_bench.errors import ConfigError
from browseruse_bench.records.task import TaskView
from browseruse_bench.records.trace import Limits


class NoSink:
    """Fails on whatever is told to it."""

    def __getattr__(self, name):
        raise AssertionError(f"nop told the sink: {name}")


async def test_nop_does_nothing_and_answers_nothing():
    agent = AGENTS.get("nop")(AgentSetup())
    view = TaskView(task_id="t", text="Find the price.")
    report = await agent.attempt(view, None, Limits(), NoSink(), None)
    assert (report.status, report.answer, report.claimed_success) == ("finished", None, None)
    assert report.usage == ()
    assert (agent.identity().name, agent.identity().version) == ("nop", __version__)


@pytest.mark.parametrize("name", ["browser-use", "nop", "oracle"])
def test_every_agent_of_the_table_can_be_loaded(name):
    agent = AGENTS.get(name)
    assert issubclass(agent, Agent)
    assert agent.name == name


def test_unknown_agent_names_all_and_the_nearest():
    with pytest.raises(ConfigError, match="did you mean 'oracle'"):
        AGENTS.get("orakle")
