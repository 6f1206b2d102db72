"""The sink of one attempt: each action becomes a step with the state that followed it."""

from __future__ import annotations

import time
from collections.abc import Callable

from browseruse_bench.agents.base import Stopped
from browseruse_bench.browsers.recorder import Recorder
from browseruse_bench.records.trace import Call, Limits, Page, Step, Thought, Usage
from browseruse_bench.runs.budget import over
from browseruse_bench.store.redact import Redaction, Redactor


class RecordingSink:
    """Collects the steps of one attempt; times are seconds since it was made."""

    def __init__(
        self,
        recorder: Recorder | None,
        limits: Limits,
        *,
        redaction: Redaction | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Record through `recorder`; None for an attempt without a browser.

        What the agent says is kept as `redaction` leaves it; the recorder has the same one.
        """
        self._recorder = recorder
        self._redaction = redaction or Redaction(Redactor.of(()))
        self._limits = limits
        self._clock = clock
        self._start = clock()
        self._last_page: Page | None = None
        self._usage: dict[str, Usage] = {}
        self.steps: list[Step] = []
        self.last_target: str | None = None
        self.fault: Exception | None = None
        """What went wrong in the harness itself while it recorded: never the agent's fault."""
        self.last_sign = self._start
        """When the agent last gave a sign of life, on the sink's clock."""
        self.spent: str | None = None
        """Why the attempt's limit in USD is reached, or cannot be kept."""
        self._spent_at: float | None = None
        self.counted: tuple[Usage, ...] | None = None
        """What the gateway counted; None: nobody counts but the agent."""

    def now(self) -> float:
        """Seconds since the attempt started."""
        return self._clock() - self._start

    def alive(self) -> None:
        """Note a sign of life."""
        self.last_sign = self._clock()

    async def action(
        self, call: Call, *, target_id: str | None = None, native_index: int | None = None
    ) -> None:
        """Record the state after an action, as a step.

        Raises:
            Stopped: this action was one more than the limit, or came after the limit in USD;
                it is recorded all the same.
        """
        self.alive()
        call = self._clean(call)
        self.last_target = target_id or self.last_target
        t1 = self.now()
        self.steps.append(
            await self._step(
                index=len(self.steps) + 1,
                native_index=native_index,
                t0=call.t0 if call.t0 is not None else t1,
                t1=call.t1 if call.t1 is not None else t1,
                calls=(call,),
            )
        )
        self.alive()
        if self.n_counted > self._limits.max_steps:
            raise Stopped("step_limit")
        self._stop_if_spent()

    @property
    def n_counted(self) -> int:
        """What the step limit counts: turns of the agent's framework, or else actions."""
        turns = {step.native_index for step in self.steps if step.native_index is not None}
        return len(turns) + sum(step.native_index is None for step in self.steps)

    async def thought(self, text: str, *, native_index: int | None = None) -> None:
        """Attach a thought to the first step of a turn, or to the last step."""
        self.alive()
        text = str(self._redaction.said(text))
        for place, step in enumerate(self.steps):
            if native_index is None or step.native_index == native_index:
                found = place if native_index is not None else len(self.steps) - 1
                self.steps[found] = self.steps[found].model_copy(
                    update={"thought": Thought(text=text)}
                )
                return

    def usage(self, usage: Usage) -> None:
        """Replace what is known about a model's use.

        Raises:
            Stopped: the attempt's limit in USD is reached, or this use has no price.
        """
        self.alive()
        self._usage[usage.model] = usage
        self._stop_if_spent()

    def count(self, usage: tuple[Usage, ...], spent: str | None = None) -> None:
        """Take this for the attempt's use from now on: what the agent itself says of it is kept
        beside. `spent` says why nothing further is paid for, where that is so.
        """
        self.alive()
        self.counted = usage
        if spent is not None and self.spent is None:
            self.spent, self._spent_at = spent, self._clock()

    def _stop_if_spent(self) -> None:
        if self.counted is None:
            self.spent = over(self._usage.values(), self._limits.cost_usd)
        if self.spent is not None:
            self._spent_at = self._spent_at or self._clock()
            raise Stopped("budget_limit")

    @property
    def spent_s(self) -> float | None:
        """Seconds since the limit in USD was reached; None: it is not."""
        return None if self._spent_at is None else self._clock() - self._spent_at

    @property
    def silent_s(self) -> float:
        """Seconds since the agent's last sign of life."""
        return self._clock() - self.last_sign

    @property
    def all_usage(self) -> tuple[Usage, ...]:
        """The last word on each model's use."""
        return self.reported if self.counted is None else self.counted

    @property
    def reported(self) -> tuple[Usage, ...]:
        """What the agent itself said of each model's use."""
        return tuple(self._usage.values())

    def _clean(self, call: Call) -> Call:
        said = call.model_dump()
        clean = self._redaction.said(said)
        return call if clean == said else Call.model_validate(clean)

    async def final(self) -> Step:
        """The state now, as the step behind the last."""
        now = self.now()
        return await self._step(
            index=len(self.steps) + 1, native_index=None, t0=now, t1=now, calls=()
        )

    async def _step(
        self, *, index: int, native_index: int | None, t0: float, t1: float, calls: tuple[Call, ...]
    ) -> Step:
        before = self._last_page
        if self._recorder is None:
            return Step(index=index, native_index=native_index, t0=t0, t1=t1, calls=calls)
        try:
            seen = await self._recorder.observe(self.last_target)
        except Exception as error:
            self.fault = error
            raise
        self._last_page = seen.page
        return Step(
            index=index,
            native_index=native_index,
            t0=t0,
            t1=t1,
            target_id=seen.page.target_id,
            calls=calls,
            page_before=before,
            page_after=seen.page,
            observations=seen.observations,
            errors=tuple(map(self._redaction.redactor.said, seen.errors)),
        )
