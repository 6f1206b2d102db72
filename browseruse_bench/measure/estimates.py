"""What stands beside a mean: its intervals, the rates of what has no verdict, and the effort."""

from __future__ import annotations

import math
from collections.abc import Sequence

from browseruse_bench.measure.intervals import Interval, is_repeated, mean_interval, n_effective
from browseruse_bench.measure.passk import PassK, pass_k
from browseruse_bench.measure.tally import Placed
from browseruse_bench.records.base import Record
from browseruse_bench.records.run import Tokens


class Rates(Record):
    """Shares of the selected attempts, 0..1; they add up to 1."""

    graded: float
    ungraded: float
    infrastructure: float
    not_run: float


class Effort(Record):
    """What the attempts took, over those that settled otherwise than by infrastructure."""

    n_attempts: int
    steps: float | None
    """Mean per attempt; None: no attempt settled."""
    seconds: float | None
    """The same of the time in which the agent had its browser: waiting for a free place, and
    starting sites, is not in it."""
    cost_usd: float | None
    """The same; None: that of at least one attempt is unknown."""
    tokens: Tokens | None
    """Sums; None: those of at least one attempt are unknown."""
    judge_cost_usd: float | None
    """Of all verdicts that count, at the prices of when they were given; None: that of at
    least one is unknown."""
    judge_usd_per_task: float | None = None
    """The same by task that has a verdict; None: unknown, or no model judged."""
    judge_usd_per_finding: float | None = None
    """The same by finding."""


class Estimates(Record):
    """How sure the means are. An interval is None where nothing can be inferred."""

    points: Interval | None
    """For new tasks, 0..100."""
    success: Interval | None
    """For new tasks, 0..1."""
    points_again: Interval | None
    """For new attempts at the same tasks."""
    success_again: Interval | None
    n_effective: float | None
    """Of the points: graded attempts divided by the design effect of attempts that share a
    task; None: nothing is graded."""
    pass_k: tuple[PassK, ...]
    """Empty where no task was to be attempted more than once."""
    rates: Rates | None
    """None: nothing was selected."""


def by_task(placed: Sequence[Placed]) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """(points, successes as 0 or 1) of each task's graded attempts."""
    points: dict[str, list[float]] = {}
    success: dict[str, list[float]] = {}
    for p in placed:
        if p.score is not None:
            points.setdefault(p.task_id, []).append(p.score.points)
            success.setdefault(p.task_id, []).append(float(p.score.success))
    return points, success


def estimates(placed: Sequence[Placed]) -> Estimates:
    """The estimates of these attempts."""
    points, success = (tuple(values.values()) for values in by_task(placed))
    of_points, of_points_again = _both(points, 100)
    of_success, of_success_again = _both(success, 1)
    return Estimates(
        points=of_points,
        success=of_success,
        points_again=of_points_again,
        success_again=of_success_again,
        n_effective=n_effective(points) if points else None,
        pass_k=pass_k(placed),
        rates=_rates(placed),
    )


def _both(tasks: Sequence[Sequence[float]], top: float) -> tuple[Interval | None, Interval | None]:
    """The intervals for new tasks and for new attempts."""
    new = mean_interval(tasks, top=top, target="new tasks")
    if new is not None and not is_repeated(tasks):
        # It is the same one: making it is most of the work of a large leaderboard.
        return new, new.model_copy(update={"target": "new attempts"})
    return new, mean_interval(tasks, top=top, target="new attempts")


def _rates(placed: Sequence[Placed]) -> Rates | None:
    if not placed:
        return None
    places = [p.where for p in placed]
    return Rates(
        graded=places.count("graded") / len(places),
        ungraded=places.count("ungraded") / len(places),
        infrastructure=places.count("infrastructure") / len(places),
        not_run=places.count("not_run") / len(places),
    )


def effort(placed: Sequence[Placed]) -> Effort:
    """What these attempts took."""
    entries = [p.entry for p in placed if p.entry is not None and p.where != "infrastructure"]
    tokens = [entry.tokens for entry in entries]
    known = [each for each in tokens if each is not None]
    judged = [p.judgement for p in placed if p.judgement is not None and p.reason != "not_judged"]
    costs = [entry.cost_usd for entry in entries]
    seconds = [entry.wall_s for entry in entries]
    asked = [each for each in judged if each.usage]
    judge_usd = _total([usage.cost_usd for each in asked for usage in each.usage])
    return Effort(
        n_attempts=len(entries),
        steps=_mean([float(entry.n_steps) for entry in entries]),
        seconds=_mean([s for s in seconds if s is not None]) if None not in seconds else None,
        cost_usd=_mean([cost for cost in costs if cost is not None]) if None not in costs else None,
        tokens=_sum(known) if entries and len(known) == len(tokens) else None,
        judge_cost_usd=judge_usd,
        judge_usd_per_task=_by(judge_usd, len({each.task_id for each in asked})),
        judge_usd_per_finding=_by(judge_usd, sum(len(each.findings or ()) for each in asked)),
    )


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def _total(costs: Sequence[float | None]) -> float | None:
    known = [cost for cost in costs if cost is not None]
    return math.fsum(known) if len(known) == len(costs) else None


def _by(total: float | None, n: int) -> float | None:
    return total / n if total is not None and n else None


def _sum(tokens: Sequence[Tokens]) -> Tokens:
    return Tokens(
        uncached=sum(each.uncached for each in tokens),
        cached=sum(each.cached for each in tokens),
        reasoning=sum(each.reasoning for each in tokens),
        output=sum(each.output for each in tokens),
    )
