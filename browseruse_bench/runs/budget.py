"""What a run may cost in all, and what an attempt may: dollars that are known, or an end."""

from __future__ import annotations

from collections.abc import Iterable

from browseruse_bench.models import spending as calls
from browseruse_bench.models.spending_log import Spending
from browseruse_bench.records.run import AttemptEntry
from browseruse_bench.records.trace import Usage

SCOPE = "agents"
"""Under what the gateway writes down what the calls of a run cost."""


class Budget:
    """Adds up what the tries of a run cost; `reached` says why nothing further may start.

    Calls that went through the gateway are added up where they are written, call by call, also
    those of tries that never settled. Of all other tries their journal says what they cost.
    """

    def __init__(
        self,
        limit_usd: float | None,
        entries: Iterable[AttemptEntry] = (),
        called: Spending | None = None,
    ) -> None:
        """Begin with what earlier commands spent on the run.

        Args:
            limit_usd: what it may cost in all; None: anything.
            entries: tries that settled earlier.
            called: what was spent through the gateway; None: nothing ever was.
        """
        self.limit_usd = limit_usd
        self.reached: str | None = None
        self._told_usd = 0.0
        self._called = called
        for entry in entries:
            self._take(entry)
        self._look()

    @property
    def spent_usd(self) -> float:
        """What is known to be spent; of a call that was cut off, the most that it can cost."""
        calls = self._for_calls
        return self._told_usd + (calls.spent.charged_usd if calls else 0.0)

    @property
    def for_calls(self) -> calls.Budget:
        """The limit as each call through the gateway is held to it."""
        assert self._for_calls is not None
        return self._for_calls

    @property
    def _for_calls(self) -> calls.Budget | None:
        if self._called is None:
            return None
        left = None if self.limit_usd is None else max(0.0, self.limit_usd - self._told_usd)
        name = "what is left of --budget-usd," if self._told_usd else "--budget-usd"
        return calls.Budget(left, self._called, scope=SCOPE, name=name)

    def add(self, entry: AttemptEntry) -> None:
        """Add the cost of one try."""
        self._take(entry)
        self._look()

    def stop(self, reason: str) -> None:
        """Nothing further may start: a call was refused for the limit."""
        self.reached = self.reached or reason

    def _take(self, entry: AttemptEntry) -> None:
        if entry.usage_by == "gateway":
            return
        if entry.cost_usd is not None:
            self._told_usd += entry.cost_usd
        elif self.limit_usd is not None:
            self.stop(
                f"what {entry.task_id} #{entry.attempt} cost is not known, "
                f"so --budget-usd {self.limit_usd:g} cannot be kept"
            )

    def _look(self) -> None:
        if self.limit_usd is None:
            return
        if self.spent_usd >= self.limit_usd:
            self.stop(f"--budget-usd {self.limit_usd:g} is reached: {self.spent_usd:.4f} USD spent")
        elif (calls := self._for_calls) is not None and (reason := calls.reached) is not None:
            self.stop(reason)


def over(usage: Iterable[Usage], limit_usd: float | None) -> str | None:
    """Why an attempt with this limit ends, if it does; a use without a price cannot be limited."""
    given = tuple(usage)
    if limit_usd is None:
        return None
    if (reason := unpriced(given, limit_usd)) is not None:
        return reason
    total = sum(use.cost_usd or 0.0 for use in given)
    return f"{total:.4f} of {limit_usd:g} USD" if total >= limit_usd else None


def unpriced(usage: Iterable[Usage], limit_usd: float | None) -> str | None:
    """Which use cannot be limited, if there is one and a limit."""
    for use in usage:
        if limit_usd is not None and use.cost_usd is None:
            return f"no price is known for {use.model}, so {limit_usd:g} USD cannot be kept"
    return None
