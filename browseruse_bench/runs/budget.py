"""What a run may cost in all, and what an attempt may: dollars that are known, or an end."""

from __future__ import annotations

from collections.abc import Iterable

from browseruse_bench.records.run import AttemptEntry
from browseruse_bench.records.trace import Usage


class Budget:
    """Adds up what the tries of a run cost; `reached` says why nothing further may start."""

    def __init__(self, limit_usd: float | None, spent_usd: float | None) -> None:
        """Begin with what earlier commands spent on the run; None: not known in full."""
        self.limit_usd = limit_usd
        self.spent_usd = spent_usd or 0.0
        self.reached: str | None = None
        if spent_usd is None:
            self._unknown("an earlier attempt of this run")
        self._look()

    def add(self, entry: AttemptEntry) -> None:
        """Add the cost of one try."""
        if entry.cost_usd is None:
            self._unknown(f"{entry.task_id} #{entry.attempt}")
        else:
            self.spent_usd += entry.cost_usd
        self._look()

    def _unknown(self, what: str) -> None:
        if self.limit_usd is not None and self.reached is None:
            self.reached = (
                f"what {what} cost is not known, so --budget-usd {self.limit_usd:g} cannot be kept"
            )

    def _look(self) -> None:
        if self.limit_usd is not None and self.spent_usd >= self.limit_usd:
            self.reached = (
                f"--budget-usd {self.limit_usd:g} is reached: {self.spent_usd:.4f} USD spent"
            )


def spent(entries: Iterable[AttemptEntry]) -> float | None:
    """USD of all tries, also of those that were made again; None if one is unknown."""
    total = 0.0
    for entry in entries:
        if entry.cost_usd is None:
            return None
        total += entry.cost_usd
    return total


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
