"""The worker protocol: JSON lines between the harness and the process of one attempt.

    harness                                   worker
                                              ready  {protocol, agent, versions, pid}
    attempt {attempt, task, cdp_url, ...}
                                              action {n, call, focus, ...}
    recorded {n, stop}
                                              step   {n, index, thought, native}
    recorded {n, stop}
                                              usage | heartbeat
                                              end    {status, answer, ...}
    exit

The worker numbers its `action` and `step` messages from 1; the harness answers each with
`recorded` once the state of the browser is on disk, and the worker waits for that. The
worker's standard output is a private descriptor (its fd 1 points to stderr), so a library's
print cannot tear a line. End of its standard input means: exit at once.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from browseruse_bench.records.base import Record
from browseruse_bench.records.task import TaskView
from browseruse_bench.records.trace import Call, OutcomeStatus, Usage

MAX_LINE_BYTES = 64 * 2**20


class Ready(Record):
    """The worker has started."""

    type: Literal["ready"] = "ready"
    protocol: Literal[1]
    agent: str
    versions: dict[str, str] = {}
    import_cpu_s: float | None = None
    pid: int | None = None


class Action(Record):
    """The worker has done one action and waits for its state to be recorded."""

    type: Literal["action"] = "action"
    n: int = Field(ge=1)
    call: Call
    """Its t0 and t1 count from the moment the worker got its order."""
    focus: str | None = None
    """CDP target that the agent works in."""
    index: int | None = None
    """Step of the agent's framework that the action belongs to."""


class StepDone(Record):
    """A step of the agent's framework is complete."""

    type: Literal["step"] = "step"
    n: int = Field(ge=1)
    index: int
    thought: str | None = None
    native: dict[str, Any] | None = None
    """The framework's own record of the step; goes to native/steps.jsonl as it is."""


class UsageSoFar(Record):
    """What a model was asked for, up to now."""

    type: Literal["usage"] = "usage"
    usage: Usage


class Heartbeat(Record):
    """The worker lives."""

    type: Literal["heartbeat"] = "heartbeat"


class End(Record):
    """The attempt is over; nothing follows."""

    type: Literal["end"] = "end"
    status: OutcomeStatus
    answer: str | None = None
    claimed_success: bool | None = None
    reason: str = ""
    usage: tuple[Usage, ...] = ()
    errors: tuple[str, ...] = ()
    wall_s: float | None = None
    cpu_s: float | None = None


FromWorker = Annotated[
    Ready | Action | StepDone | UsageSoFar | Heartbeat | End, Field(discriminator="type")
]

FROM_WORKER: TypeAdapter[FromWorker] = TypeAdapter(FromWorker)


class WorkerLimits(Record):
    """What ends the attempt, for the framework's own settings."""

    steps: int
    seconds: float
    step_s: float
    cost_usd: float | None = None


class Attempt(Record):
    """The work: everything that a worker gets to know."""

    type: Literal["attempt"] = "attempt"
    attempt: str
    task: TaskView
    cdp_url: str | None
    ws_url: str | None
    target_id: str | None
    model: str | None
    work: str
    """Folder for temporary files."""
    files: str
    """Folder for deliverables."""
    native: str
    """Folder for the framework's own record."""
    attachments: str
    downloads: str | None = None
    """Folder where the browser's downloads belong."""
    settings: dict[str, Any] = {}
    """What the agent's own class tells its worker, besides."""
    limits: WorkerLimits


class Recorded(Record):
    """The state after message `n` is on disk."""

    type: Literal["recorded"] = "recorded"
    n: int
    stop: str | None = None
    """A limit that was reached; the worker ends."""


class Exit(Record):
    """The worker may go."""

    type: Literal["exit"] = "exit"
