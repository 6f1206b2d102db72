"""The contract of an agent: attempt one task in one browser and report."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal, Protocol

from browseruse_bench.browsers.base import Session
from browseruse_bench.models.gateway.endpoint import Endpoint
from browseruse_bench.models.spec import ModelSpec
from browseruse_bench.records.solution import Solution
from browseruse_bench.records.task import TaskView
from browseruse_bench.records.trace import AgentId, Call, Limits, OutcomeStatus, Usage


class Stopped(Exception):  # noqa: N818  it is a signal to the agent, not an error
    """The attempt reached a limit; an agent lets this pass."""

    def __init__(self, status: Literal["step_limit", "time_limit", "budget_limit"]) -> None:
        """Name the limit that was reached."""
        super().__init__(status)
        self.status: Literal["step_limit", "time_limit", "budget_limit"] = status


class Sink(Protocol):
    """Where an agent tells what it did. The harness alone writes the trace."""

    async def action(
        self, call: Call, *, target_id: str | None = None, native_index: int | None = None
    ) -> None:
        """Tell of one finished action; returns when the state after it has been recorded.

        Raises:
            Stopped: a limit was reached; the agent ends.
        """
        ...

    async def thought(self, text: str, *, native_index: int | None = None) -> None:
        """Attach a thought to the actions of a native step."""
        ...

    def alive(self) -> None:
        """Note a sign of life between two actions."""
        ...

    def usage(self, usage: Usage) -> None:
        """Replace what is known about the model's use, per model.

        Raises:
            Stopped: a limit was reached; the agent ends.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class Workspace:
    """What one attempt works with: the folders that an agent may write to, and its model."""

    files: Path
    """Deliverables; kept."""
    native: Path
    """The framework's own record; kept as it is."""
    scratch: Path
    """Temporary files; removed afterwards."""
    attachments: Path
    """The task's attachments, by their names."""
    downloads: Path | None = None
    """Where the browser puts downloads, which the harness keeps; an agent that has downloads go
    elsewhere hides them from the judge."""
    owner: Path
    """The run folder, under which an agent's processes are recorded."""
    endpoint: Endpoint | None = None
    """Where the agent asks its model; None: at the provider, with its own key."""


@dataclass(frozen=True, kw_only=True)
class AgentReport:
    """What an agent says about its attempt; none of it is evidence."""

    status: OutcomeStatus
    answer: str | None = None
    claimed_success: bool | None = None
    reason: str = ""
    usage: tuple[Usage, ...] = ()
    errors: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class AgentSetup:
    """What an agent is made from."""

    model: str | None = None
    solution_of: Callable[[str], Solution] | None = None
    """Reference solutions by task id; used by the oracle alone, inside the harness."""
    solutions_key: str | None = None
    """Identity of all reference solutions, so that a changed one makes another run."""


class Agent(ABC):
    """A browser agent. Made once per run; attempts may go on at the same time."""

    name: ClassVar[str]
    per_core: int = 4
    """How many attempts a core carries at once, for `--concurrency auto`."""
    needs_browser: ClassVar[bool] = True
    plays_solutions: ClassVar[bool] = False
    """Whether it is given the reference solutions: only the oracle is."""

    def __init__(self, setup: AgentSetup) -> None:
        """Check that everything needed is there, before anything is spent.

        Raises:
            ConfigError: a model, a key or an installation is missing; says which.
        """
        self.setup = setup

    def secrets(self) -> Mapping[str, str]:
        """The variables with the one key that this agent needs; none by default. Their values
        are taken out of whatever is written.
        """
        return {}

    def asks(self) -> ModelSpec | None:
        """The model that it asks over a wire, at whatever address it is told: then the harness
        leads its calls through the gateway. None: it asks none, or only at its own.
        """
        return None

    def priced(self) -> bool | None:
        """Whether the cost of its model's use will be known; None: that shows only in use."""
        return True if self.setup.model is None else None

    @abstractmethod
    def identity(self) -> AgentId:
        """Name, version, model and parameters: what makes two runs alike."""

    @abstractmethod
    async def attempt(
        self, view: TaskView, session: Session, limits: Limits, sink: Sink, workspace: Workspace
    ) -> AgentReport:
        """Try the task once. An exception is an `agent_error` of this attempt."""
