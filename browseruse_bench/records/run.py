"""A run: which attempts were asked for, how, and how each of them settled."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from browseruse_bench.records.base import Record, content_key
from browseruse_bench.records.trace import (
    AgentId,
    EvidencePolicy,
    Guard,
    GuardLevel,
    Limits,
    OutcomeStatus,
    Usage,
)

Mode = Literal["all", "first_n", "sample_n", "ids"]
NotRunReason = Literal["login", "stopped", "budget", "pending"]
Attempt = tuple[str, int]
"""(task id, number of the attempt)."""


class Selection(Record):
    """One selection of tasks, as it was asked for and as it came out."""

    mode: Mode = "all"
    count: int | None = Field(default=None, ge=1)
    seed: int = 0
    category: tuple[str, ...] = ()
    difficulty: tuple[str, ...] = ()
    task_ids: tuple[str, ...] = ()
    """The exact ids that were selected, in order."""
    repeat: int = Field(default=1, ge=1)


class RunIdentity(Record):
    """What must be equal for two commands to go on with the same run."""

    benchmark: str
    revision: str
    """Revision of the benchmark: declared, or the hash of what agents see of its tasks."""
    split: str
    agent: AgentId
    browser: str
    limits: Limits
    sites: dict[str, str] = {}
    network: Literal["sites", "public"] = "public"
    guard: GuardLevel | None = None
    """The level that was taken, whatever was asked for; None: a run before there was a guard."""

    @property
    def run_id(self) -> str:
        """The default run id."""
        return "run-" + content_key(self.as_json())[:12]


class Machine(Record):
    """Where a run took place: no host name, no user, no address."""

    system: str
    python: str
    n_cores: int
    memory_gb: float


class Run(Record):
    """run.json. `selections` grows when the same run is asked for more."""

    schema_version: Literal[1] = 1
    run_id: str
    identity: RunIdentity
    benchmark_dir: str
    """Where the benchmark folder was found."""
    benchmark_sha256: str
    """Content of the benchmark folder when the run was last gone on with."""
    stand_in_hosts: tuple[str, ...] = ()
    guard: Guard
    versions: dict[str, str] = {}
    commit: str | None = None
    evidence_policy: EvidencePolicy = "harness"
    """Of all its traces: those of an imported run are `agent_reported`."""
    machine: Machine | None = None
    """None: not known (imported)."""
    settings: dict[str, Any] = {}
    """What does not make the run another one: concurrency, storage state given or not."""
    selections: tuple[Selection, ...] = Field(min_length=1)
    excluded: tuple[str, ...] = ()
    started_at: str

    @property
    def wanted(self) -> tuple[Attempt, ...]:
        """The union of all selections × repeats, in order."""
        repeats: dict[str, int] = {}
        for selection in self.selections:
            for task_id in selection.task_ids:
                repeats[task_id] = max(repeats.get(task_id, 0), selection.repeat)
        return tuple((t, n) for t, k in repeats.items() for n in range(1, k + 1))


class Tokens(Record):
    """Tokens by kind, over all models that were asked."""

    uncached: int = Field(default=0, ge=0)
    cached: int = Field(default=0, ge=0)
    reasoning: int = Field(default=0, ge=0)
    output: int = Field(default=0, ge=0)

    @classmethod
    def of(cls, usages: Iterable[Usage]) -> Tokens:
        """The sums over these usages."""
        given = tuple(usages)
        return cls(
            uncached=sum(usage.uncached_tokens for usage in given),
            cached=sum(usage.cached_tokens for usage in given),
            reasoning=sum(usage.reasoning_tokens for usage in given),
            output=sum(usage.output_tokens for usage in given),
        )


class AttemptEntry(Record):
    """One line of attempts.jsonl: how one attempt settled. The newest line of an attempt
    counts; `infrastructure` is owed again.
    """

    task_id: str
    attempt: int = Field(ge=1)
    try_: int = Field(ge=1, alias="try")
    task_key: str
    trace_key: str
    status: OutcomeStatus
    reason: str = ""
    n_steps: int = Field(ge=0)
    wall_s: float | None = Field(default=None, ge=0)
    """None: not known (imported)."""
    cost_usd: float | None = None
    """None: unknown."""
    tokens: Tokens | None = None
    """None: unknown."""
    usage_by: Literal["gateway"] | None = None
    """Who counted tokens and cost; None: the agent itself."""
    at: str


class Accounting(Record):
    """The identity that always holds: every selected attempt is in exactly one place."""

    selected: int = Field(ge=0)
    graded: int = Field(ge=0)
    ungraded: dict[str, int] = {}
    """Reason -> attempts that ran and have no verdict."""
    infrastructure: int = Field(default=0, ge=0)
    not_run: dict[str, int] = {}
    """Reason -> attempts that did not run."""

    @model_validator(mode="after")
    def _identity(self) -> Self:
        parts = (
            self.graded
            + sum(self.ungraded.values())
            + self.infrastructure
            + sum(self.not_run.values())
        )
        if self.selected != parts:
            raise ValueError(
                f"selected {self.selected} != graded + ungraded + infrastructure + not_run {parts}"
            )
        return self

    @property
    def sentence(self) -> str:
        """The identity as one line for people."""
        return (
            f"selected {self.selected} = graded {self.graded}"
            f" + ungraded {_count(self.ungraded)}"
            f" + infrastructure {self.infrastructure}"
            f" + not run {_count(self.not_run)}"
        )


def _count(parts: dict[str, int]) -> str:
    reasons = ", ".join(f"{reason} {n}" for reason, n in sorted(parts.items()) if n)
    return f"{sum(parts.values())}" + (f" ({reasons})" if reasons else "")
