"""A trace: what one attempt did, and what the harness saw of it. Frozen when it settles."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from pydantic import Field

from browseruse_bench.records.base import Record

SCHEMA = 1

OutcomeStatus = Literal[
    "finished",
    "gave_up",
    "step_limit",
    "time_limit",
    "budget_limit",
    "agent_error",
    "infrastructure",
]
EvidencePolicy = Literal["harness", "agent_reported"]
"""Who tells what was seen: our harness, or the agent itself, whose word is all there is."""
GuardLevel = Literal["none", "fence", "flags", "confined", "layered", "observed"]


class Usage(Record):
    """What one model was asked for during an attempt."""

    model: str
    uncached_tokens: int = Field(default=0, ge=0)
    cached_tokens: int = Field(default=0, ge=0)
    reasoning_tokens: int = Field(default=0, ge=0)
    output_tokens: int = Field(default=0, ge=0)
    cost_usd: float | None = Field(default=None, ge=0)
    """None: unknown. Never 0 for unknown."""
    price_source: str | None = None


def summed(usages: Iterable[Usage]) -> tuple[Usage, ...]:
    """One use per model and price source, in the order in which they first occur. A cost that
    is unknown for a part is unknown for the sum.
    """
    sums: dict[tuple[str, str | None], Usage] = {}
    for usage in usages:
        key = (usage.model, usage.price_source)
        if key not in sums:
            sums[key] = usage
            continue
        one = sums[key]
        costs = (one.cost_usd, usage.cost_usd)
        sums[key] = Usage(
            model=usage.model,
            uncached_tokens=one.uncached_tokens + usage.uncached_tokens,
            cached_tokens=one.cached_tokens + usage.cached_tokens,
            reasoning_tokens=one.reasoning_tokens + usage.reasoning_tokens,
            output_tokens=one.output_tokens + usage.output_tokens,
            cost_usd=None if None in costs else sum(cost or 0 for cost in costs),
            price_source=usage.price_source,
        )
    return tuple(sums.values())


class Page(Record):
    """The address bar and the tabs at one moment."""

    target_id: str | None = None
    url: str = ""
    title: str = ""
    tabs: tuple[str, ...] = ()
    """Addresses of all open tabs."""
    document_id: str | None = None
    """The browser's id of the loaded document (loaderId in CDP): another one after each load,
    the same one when a script only rewrites the page or its address."""


class Observation(Record):
    """One piece of evidence."""

    kind: Literal["screenshot", "text", "aria", "html", "download", "state", "probe"]
    ref: str
    """File in evidence/."""
    timing: Literal["before", "after"] = "after"
    captured_by: Literal["harness", "agent"] = "harness"
    url: str | None = None
    """Address of the page it shows; for `state` the host name of the site."""
    name: str | None = None
    """Name of a probe or of a downloaded file."""
    n_chars: int | None = None
    """Length of a text that had to be clipped, before it was."""


class Thought(Record):
    """What the agent said to itself."""

    text: str
    kind: str = "thought"


class Call(Record):
    """One action of the agent."""

    name: str
    native_name: str | None = None
    arguments: dict[str, Any] = {}
    target: str | None = None
    result: str | None = None
    error: str | None = None
    t0: float | None = None
    """Seconds since the attempt started, like every t of a trace."""
    t1: float | None = None


class Step(Record):
    """One action, and the state of the browser after it."""

    index: int = Field(ge=1)
    native_index: int | None = None
    """The step of the agent's own framework that this action belonged to."""
    t0: float | None = None
    """None: not told (imported)."""
    t1: float | None = None
    target_id: str | None = None
    thought: Thought | None = None
    calls: tuple[Call, ...] = ()
    page_before: Page | None = None
    page_after: Page | None = None
    observations: tuple[Observation, ...] = ()
    errors: tuple[str, ...] = ()


class AgentId(Record):
    """Which agent: all that makes two runs of it alike or not."""

    name: str
    version: str
    model: str | None = None
    parameters: dict[str, Any] = {}


class BrowserId(Record):
    """Which browser, as the harness found it."""

    kind: str
    version: str | None = None
    viewport: tuple[int, int] | None = None


class Limits(Record):
    """What ends an attempt."""

    max_steps: int = Field(default=100, ge=1)
    timeout_s: float = Field(default=600, gt=0)
    step_timeout_s: float = Field(default=120, gt=0)
    """The longest silence of an agent between two actions."""
    cost_usd: float | None = Field(default=None, gt=0)
    memory_gb: float | None = Field(default=None, gt=0)
    """What the agent's own processes may use together, in GB (10^9 bytes)."""


class GuardHit(Record):
    """Something that was asked for and is not allowed: refused, or seen and turned away."""

    by: Literal["browser", "worker"]
    address: str
    """Without user, password, query and fragment; at most 200 characters."""
    why: str
    n: int = Field(default=1, ge=1)
    """How often."""


class Guard(Record):
    """What kept an attempt's browser and worker from what they must not reach."""

    level: GuardLevel
    """`fence` and `none` are of runs before there was a guard; `none` also without a browser."""
    mechanism: str = ""
    reason: str = ""
    """Why no better level was taken."""
    probes: dict[str, Literal["blocked", "reached"]] | None = None
    """Canary -> what came of it when it was tried from inside, before the agent started."""
    hits: tuple[GuardHit, ...] | None = None
    """At most 100 distinct ones; of a trace only, like `n_hits`."""
    n_hits: int | None = Field(default=None, ge=0)


class Outcome(Record):
    """How an attempt ended."""

    status: OutcomeStatus
    reason: str = ""
    answer: str | None = None
    self_reported_success: bool | None = None
    """What the agent claimed; never used as a score."""


class Trace(Record):
    """trace.json: everything but the steps and the files."""

    schema_version: Literal[1] = SCHEMA
    run_id: str
    benchmark: str
    split: str
    task_id: str
    attempt: int = Field(ge=1)
    try_: int = Field(default=1, ge=1, alias="try")
    task_key: str
    agent: AgentId
    browser: BrowserId
    limits: Limits
    sites: dict[str, str] = {}
    """Host -> "module:Site" that answered for it."""
    stand_in: bool = False
    """Whether a site of this run stood in for a public host."""
    guard: Guard
    evidence_policy: EvidencePolicy = "harness"
    started_at: str | None = None
    """Wall clock, ISO 8601 in UTC; None: not told (imported)."""
    wall_s: float | None = Field(default=None, ge=0)
    """Monotonic seconds that the agent had its browser; starting sites is not in them. None: not
    told (imported)."""
    n_steps: int = Field(ge=0)
    outcome: Outcome
    usage: tuple[Usage, ...] = ()
    usage_by: Literal["gateway"] | None = None
    """Who counted `usage`; None: the agent itself."""
    reported_usage: tuple[Usage, ...] | None = None
    """What the agent said of its use, where somebody else counted."""
    final: Step
    """The state when the attempt settled, with probes and snapshots."""
    errors: tuple[str, ...] = ()
