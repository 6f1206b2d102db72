"""What stands beside a mean, as text: intervals, repeats, rates and effort."""

from __future__ import annotations

from browseruse_bench.measure.estimates import Effort, Estimates
from browseruse_bench.measure.intervals import Interval
from browseruse_bench.report.render import (
    NOTHING,
    Table,
    money,
    number,
    percent,
    span,
    with_bounds,
)


def interval_span(interval: Interval | None, *, scale: float = 1) -> str:
    """As in `70.1 to 92.0`, or the sign for none."""
    return NOTHING if interval is None else span(interval.low, interval.high, scale=scale)


REPEATS_HEADERS = ("k", "pass@k %", "95 %", "pass^k %", "95 %", "tasks", "short")
"""`short`: tasks with fewer than k verdicts; they count in the bounds only."""


def repeats_cells(found: Estimates) -> list[tuple[str, ...]]:
    """A line for each k, in the order of REPEATS_HEADERS."""
    return [
        (
            str(each.k),
            *(
                cell
                for share in (each.any, each.all)
                for cell in (
                    with_bounds(share.mean, share.lower, share.upper, scale=100)
                    if share.mean is not None
                    else f"{NOTHING} [{number(100 * share.lower)}, {number(100 * share.upper)}]",
                    interval_span(share.interval, scale=100),
                )
            ),
            str(each.n_tasks),
            str(each.n_short),
        )
        for each in found.pass_k
    ]


def estimate_facts(found: Estimates) -> list[tuple[str, str]]:
    """The intervals, each with its target, and the rates."""
    rows = [
        (f"{what} 95 %", f"{interval_span(interval, scale=scale)} for {interval.target} (n {n})")
        for what, scale, intervals in (
            ("points", 1, (found.points, found.points_again)),
            ("success", 100, (found.success, found.success_again)),
        )
        for interval in intervals
        if interval is not None
        for n in [f"effective {interval.n_effective:.0f}, {interval.method}"]
    ]
    if found.rates is not None:
        rates = found.rates
        rows.append(
            (
                "rates",
                f"graded {percent(rates.graded)}, ungraded {percent(rates.ungraded)}, "
                f"infrastructure {percent(rates.infrastructure)}, "
                f"not run {percent(rates.not_run)} of the selected attempts",
            )
        )
    return rows


def effort_facts(effort: Effort) -> list[tuple[str, str]]:
    """What the attempts took."""
    tokens = effort.tokens
    return [
        (
            "per attempt",
            f"{number(effort.steps)} steps, {number(effort.seconds)} seconds, "
            f"cost {money(effort.cost_usd, n_unknown=effort.n_attempts)}",
        ),
        (
            "tokens",
            f"in {tokens.uncached}, cached {tokens.cached}, out {tokens.output}, "
            f"reasoning {tokens.reasoning}"
            if tokens
            else "unknown",
        ),
        ("judge's cost", _judge_cost(effort)),
    ]


def _judge_cost(effort: Effort) -> str:
    """In all, and what it comes to by task and by finding."""
    parts = [money(effort.judge_cost_usd, n_unknown=1)]
    for usd, what in (
        (effort.judge_usd_per_task, "task"),
        (effort.judge_usd_per_finding, "finding"),
    ):
        if usd is not None:
            parts.append(f"{money(usd)} a {what}")
    return ", ".join(parts)


def repeats_table(found: Estimates) -> Table:
    """pass@k and pass^k of a run."""
    return Table(
        title="Repeats: pass@k (any of k attempts) and pass^k (all of k)",
        headers=REPEATS_HEADERS,
        rows=tuple(repeats_cells(found)),
        right=frozenset({0, 5, 6}),
    )
