"""The agent that does nothing: whatever it earns, a benchmark gives away for free."""

from __future__ import annotations

from browseruse_bench import __version__
from browseruse_bench.agents.base import Agent, AgentReport, Sink, Workspace
from browseruse_bench.browsers.base import Session
from browseruse_bench.records.task import TaskView
from browseruse_bench.records.trace import AgentId, Limits


class NopAgent(Agent):
    """Ends at once, without an action and without an answer."""

    name = "nop"
    needs_browser = False

    def identity(self) -> AgentId:
        return AgentId(name=self.name, version=__version__)

    async def attempt(
        self, view: TaskView, session: Session, limits: Limits, sink: Sink, workspace: Workspace
    ) -> AgentReport:
        return AgentReport(status="finished")
