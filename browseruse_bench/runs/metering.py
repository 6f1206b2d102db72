"""The gateway of a run: each try gets a token of its own, and what it asks is counted here.

What a provider said is counted where the harness itself heard it. So the gateway's count is the
one of the trace; what the agent says of its use is kept beside it, and never decides.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from browseruse_bench.models.gateway.endpoint import Endpoint
from browseruse_bench.models.gateway.meter import Meter
from browseruse_bench.models.gateway.server import Access, Gateway
from browseruse_bench.models.ledger import Ledger
from browseruse_bench.models.spec import ModelSpec
from browseruse_bench.models.spending import Budget
from browseruse_bench.records.trace import Outcome, OutcomeStatus
from browseruse_bench.runs.recording import RecordingSink

OUTAGE = "the model's provider failed"
"""Begins the reason of a try that ended because its model could not be asked."""
_BY_OUTAGE: tuple[OutcomeStatus, ...] = ("agent_error", "time_limit")
"""How an agent ends whose model gives nothing."""
_BY_MONEY: tuple[OutcomeStatus, ...] = ("finished", "gave_up", "budget_limit", "agent_error")


@dataclass
class Metering:
    """The way to the model of a run, for all its attempts."""

    gateway: Gateway
    spec: ModelSpec
    run: Budget
    """What all attempts together may cost."""
    limit_usd: float | None
    """What each may cost."""
    ledger: Ledger
    reached: Callable[[str], None]
    """Told when a call was refused for the run's limit."""
    answered_at: float = float("-inf")
    """When the provider last answered any attempt, on `time.monotonic`."""

    @asynccontextmanager
    async def attempt(self, scope: str, sink: RecordingSink) -> AsyncGenerator[Metered]:
        """A token for one try, which counts for `sink`; taken back when the block is left."""
        own = None
        if self.limit_usd is not None:
            own = Budget(self.limit_usd, name="--max-cost-usd")
        metered = Metered(self, sink)
        meter = Meter(
            self.spec,
            scope=scope,
            run=self.run,
            attempt=own,
            ledger=self.ledger,
            changed=metered.changed,
        )
        sink.count(())
        metered.access = self.gateway.open(meter)
        try:
            yield metered
        finally:
            await metered.settle()


@dataclass
class Metered:
    """One try's way to its model."""

    metering: Metering
    sink: RecordingSink
    access: Access = field(init=False)

    @property
    def endpoint(self) -> Endpoint:
        """Where the agent asks."""
        return self.access.endpoint

    def changed(self, meter: Meter) -> None:
        """Hand on what the meter counted."""
        if meter.answered_at is not None:
            self.metering.answered_at = max(self.metering.answered_at, meter.answered_at)
        spent = meter.spent
        self.sink.count(meter.usage, None if spent is None else spent.reason)
        self.sink.fault = self.sink.fault or meter.fault
        if spent is not None and spent.by == "run":
            self.metering.reached(spent.reason)

    async def settle(self) -> None:
        """Take the token back; when this returns all of its calls are counted."""
        await self.metering.gateway.close(self.access)

    def outcome(self, outcome: Outcome) -> Outcome:
        """How the try ended, knowing how its calls did.

        Where the run's limit ended it, it is owed again: how much of that was left is no
        property of the agent. So is one that ended because its model could not be asked. But
        an agent must not earn another try by making its provider fail: where others were
        answered meanwhile, the provider had not failed.
        """
        meter = self.access.grant.meter
        if meter.spent is not None and outcome.status in _BY_MONEY:
            status = "budget_limit" if meter.spent.by == "attempt" else "infrastructure"
            return Outcome(status=status, reason=meter.spent.reason)
        failing = meter.failing
        if failing is None or outcome.status not in _BY_OUTAGE:
            return outcome
        if failing.kind == "down" and self.metering.answered_at > failing.since:
            return outcome
        return Outcome(status="infrastructure", reason=f"{OUTAGE}: {failing.why}")


@asynccontextmanager
async def metering(
    spec: ModelSpec,
    calls: Path,
    *,
    run: Budget,
    limit_usd: float | None,
    reached: Callable[[str], None],
) -> AsyncGenerator[Metering]:
    """The way to a run's model.

    Args:
        spec: the model.
        calls: folder of the calls.
        run: the run's budget.
        limit_usd: of each attempt.
        reached: told when a call was refused for the run's limit.
    """
    async with Gateway() as gateway:
        ledger = Ledger(calls, keep_requests=True)
        yield Metering(gateway, spec, run, limit_usd, ledger, reached)
