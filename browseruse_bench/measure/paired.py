"""Whether two runs differ, by the tasks that both have."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from statistics import NormalDist
from typing import Literal

from browseruse_bench.measure.intervals import (
    LEVEL,
    Interval,
    Target,
    is_repeated,
    n_effective,
    t_quantile,
    variance,
)
from browseruse_bench.records.base import Record

POWER = 0.8
"""How often a difference that is there should be seen."""
DRAWS = 20_000
"""Of the signs, where they are too many to be counted."""
_MOST_SUMS = 4_000
_GRAIN = 1e-6
"""Differences of shares are compared to so much."""

Values = Mapping[str, Sequence[float]]
"""Task id -> the values of its graded attempts."""


class Paired(Record):
    """The difference of one run from another, first minus second."""

    n_tasks: int
    """Tasks with graded attempts in both."""
    n_attempts: tuple[int, int]
    """Graded attempts at them, of each run."""
    n_only_first: int
    """Tasks that only the first run has graded attempts at; they are not compared."""
    n_only_second: int
    means: tuple[float, float] | None
    """Over the common tasks; None: there are none."""
    difference: float | None
    interval: Interval | None
    """None: fewer than two common tasks."""
    p: float | None
    """Two-sided."""
    p_method: Literal["sign flips, counted", "sign flips, drawn"] | None
    p_mcnemar: float | None
    """Where each common task has one attempt of 0 or the full value in each run."""
    n_better: int
    """Common tasks on which the first run has the higher mean."""
    n_worse: int
    spread: float | None
    """Standard deviation of the differences per task, that of the interval."""

    @property
    def differs(self) -> bool:
        """Whether a difference is shown: the interval leaves 0 out, and p is below 1 - level."""
        return (
            self.interval is not None
            and self.p is not None
            and not self.interval.low <= 0 <= self.interval.high
            and self.p < 1 - self.interval.level
        )

    def tasks_to_see(self, difference: float) -> int | None:
        """How many common tasks show a true difference of this size with probability POWER.

        Args:
            difference: above 0, in the unit of the means.

        Source: the normal approximation, as in Miller, Adding Error Bars to Evals, 2024,
        section 5.
        """
        if self.spread is None or self.interval is None:
            return None
        return math.ceil((_quantiles(self.interval.level) * self.spread / difference) ** 2)

    @property
    def smallest_seen(self) -> float | None:
        """The true difference that so many tasks show with probability POWER."""
        if self.spread is None or self.interval is None:
            return None
        return _quantiles(self.interval.level) * self.spread / math.sqrt(self.n_tasks)


def _quantiles(level: float) -> float:
    return NormalDist().inv_cdf((1 + level) / 2) + NormalDist().inv_cdf(POWER)


def paired(
    first: Values,
    second: Values,
    *,
    top: float,
    rng: random.Random,
    target: Target = "new tasks",
    level: float = LEVEL,
) -> Paired:
    """The difference of the means over tasks, on the common tasks only.

    The tasks are the pairs; attempts at the same task are averaged first. The interval is that
    of Student's t with one more task each on which the one and the other run has all and the
    other nothing, so it has a width also where no task differs. For new attempts the variance
    within the tasks takes the place of that between them, where most common tasks were attempted
    more than once by both; a task of a single attempt counts with full spread.

    Args:
        first: values of the first run, 0..top.
        second: of the second.
        top: the highest value.
        rng: draws signs where they cannot be counted; a fixed seed gives the same p each time.
        target: what is inferred.
        level: in (0, 1).

    Source: Bonett and Price, Adjusted Wald confidence intervals for a difference of binomial
    proportions based on paired data, J. Educ. Behav. Stat. 37 (2012) 479-488, of which this is
    the case of one attempt with a score of all or nothing, but for t in place of the normal
    quantile.
    """
    has = {task: values for task, values in first.items() if values}
    other = {task: values for task, values in second.items() if values}
    common = [task for task in has if task in other]
    pairs = [(_mean(has[task]) / top, _mean(other[task]) / top) for task in common]
    differences = [a - b for a, b in pairs]
    spread, interval = _interval(common, has, other, differences, top, target, level)
    p, method = sign_flips(differences, rng)
    return Paired(
        n_tasks=len(common),
        n_attempts=(sum(len(has[t]) for t in common), sum(len(other[t]) for t in common)),
        n_only_first=len(has) - len(common),
        n_only_second=len(other) - len(common),
        means=(top * _mean([a for a, _ in pairs]), top * _mean([b for _, b in pairs]))
        if pairs
        else None,
        difference=top * _mean(differences) if pairs else None,
        interval=interval,
        p=p,
        p_method=method,
        p_mcnemar=_mcnemar_of(common, has, other, top),
        n_better=sum(d > _GRAIN for d in differences),
        n_worse=sum(d < -_GRAIN for d in differences),
        spread=spread,
    )


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _interval(
    common: Sequence[str],
    first: Values,
    second: Values,
    differences: Sequence[float],
    top: float,
    target: Target,
    level: float,
) -> tuple[float | None, Interval | None]:
    """(standard deviation of one task's difference, interval), in units of the values."""
    m = len(differences)
    if m < 2:
        return None, None
    tasks = [(first[task], second[task]) for task in common]
    mean = _mean(differences)
    adjusted = math.fsum(differences) / (m + 2)
    between = (math.fsum(d * d for d in differences) + 2) / (m + 2) - adjusted**2
    df = m - 1
    squared = between
    if target == "new attempts" and all(is_repeated(run) for run in zip(*tasks, strict=True)):
        within = (
            variance(values) / len(values) / top**2 if len(values) > 1 else 0.25
            for pair in tasks
            for values in pair
        )
        squared = (math.fsum(within) + 2) / (m + 2)
        df = sum(len(a) + len(b) - 2 for a, b in tasks)
    half = t_quantile((1 + level) / 2, df) * math.sqrt(squared / (m + 2))
    n = min(n_effective(run) for run in zip(*tasks, strict=True))
    return top * math.sqrt(squared), Interval(
        low=top * max(-1.0, min(mean, adjusted - half)),
        high=top * min(1.0, max(mean, adjusted + half)),
        level=level,
        target=target,
        method="paired",
        n_effective=n,
    )


def sign_flips(
    differences: Sequence[float], rng: random.Random, *, draws: int = DRAWS
) -> tuple[float | None, Literal["sign flips, counted", "sign flips, drawn"] | None]:
    """The two-sided p of the hypothesis that each difference could as well have the other sign.

    All ways to set the signs are counted, by the sums that they lead to, while these are few;
    else signs are drawn, and the p is never below 1 / (draws + 1).

    Args:
        differences: one per task.
        rng: draws the signs.
        draws: how many, where they are drawn.

    Returns:
        (None, None) without differences.

    Source: Fisher, The Design of Experiments, 1935, section 21; Phipson and Smyth, Permutation
    p-values should never be zero, Stat. Appl. Genet. Mol. Biol. 9 (2010), article 39.
    """
    if not differences:
        return None, None
    units = [abs(round(d / _GRAIN)) for d in differences]
    moved = sorted((unit for unit in units if unit), reverse=True)
    seen = abs(sum(round(d / _GRAIN) for d in differences))
    # Equal shares such as thirds differ by rounding, one grain each.
    seen -= len(moved)
    sums = {0: 1}
    for unit in moved:
        grown: dict[int, int] = {}
        for total, ways in sums.items():
            grown[total + unit] = grown.get(total + unit, 0) + ways
            grown[total - unit] = grown.get(total - unit, 0) + ways
        sums = grown
        if len(sums) > _MOST_SUMS:
            return _drawn(moved, seen, rng, draws), "sign flips, drawn"
    extreme = sum(ways for total, ways in sums.items() if abs(total) >= seen)
    return extreme / 2 ** len(moved), "sign flips, counted"


def _drawn(units: Sequence[int], seen: int, rng: random.Random, draws: int) -> float:
    everything = sum(units)
    extreme = 0
    for _ in range(draws):
        signs = rng.getrandbits(len(units))
        up = sum(unit for i, unit in enumerate(units) if signs >> i & 1)
        extreme += abs(2 * up - everything) >= seen
    return (extreme + 1) / (draws + 1)


def mcnemar(n_first: int, n_second: int) -> float:
    """The exact two-sided p of McNemar's test.

    Args:
        n_first: pairs in which only the first succeeds.
        n_second: pairs in which only the second does.

    Source: McNemar, Psychometrika 12 (1947) 153-157, with the exact binomial distribution.
    """
    n = n_first + n_second
    tail = sum(math.comb(n, i) for i in range(min(n_first, n_second) + 1))
    return min(1.0, 2 * tail / 2**n)


def _mcnemar_of(common: Sequence[str], first: Values, second: Values, top: float) -> float | None:
    pairs = [(first[task], second[task]) for task in common]
    if not pairs or any(
        len(values) != 1 or values[0] not in (0, top) for pair in pairs for values in pair
    ):
        return None
    return mcnemar(sum(a[0] > b[0] for a, b in pairs), sum(b[0] > a[0] for a, b in pairs))
