"""Intervals of means over tasks that stay honest where all values are alike.

An interval says how far the mean would move if other tasks of the same kind had been drawn,
or if the same tasks were attempted again. What is missing is not in it: that is what the bounds
of `tally.Figures` say.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import Literal

from browseruse_bench.records.base import Record

LEVEL = 0.95
"""The share of samples whose interval holds the true mean."""

Target = Literal["new tasks", "new attempts"]
"""What is inferred: the mean over tasks of the kind of which these are a sample, or the mean
over further attempts at exactly these tasks."""
Method = Literal["wilson", "bounded", "stratified", "paired"]


_NODE = 0.3
"""Distance of the nodes of the trapezoidal rule: errors below 1e-8 of the result."""


class Interval(Record):
    """Where the true mean is, in the unit of the mean."""

    low: float
    high: float
    level: float
    target: Target
    method: Method
    """`wilson`: one yes or no per task; `bounded`: Gaffke's bound on the task means;
    `stratified`: Wilson's on the effective number of attempts; `paired`: adjusted t.
    """
    n_effective: float
    """So many unclustered attempts would tell as much."""


def mean_interval(
    by_task: Sequence[Sequence[float]], *, top: float, target: Target, level: float = LEVEL
) -> Interval | None:
    """The interval of the mean over tasks of the mean over a task's attempts.

    Attempts at the same task are clustered: for new tasks only the tasks count as drawn
    independently. For new attempts the tasks are fixed and only the spread within them counts;
    where most tasks have a single attempt that spread is unknown, and the interval of new tasks,
    which is never too short for it, is given.

    Args:
        by_task: the values of each task's graded attempts, 0..top; tasks without any are left
            out.
        top: the highest value.
        target: what is inferred.
        level: in (0, 1).

    Returns:
        None where nothing can be inferred: a single attempt, or for new tasks a single task.

    Raises:
        ValueError: a value outside 0..top.

    Source: clustering by task as in Miller, Adding Error Bars to Evals, 2024, section 2.2;
    Wilson, J. Am. Stat. Assoc. 22 (1927); Gaffke, see `bounded`.
    """
    tasks = [tuple(value / top for value in values) for values in by_task if values]
    if any(not 0 <= value <= 1 for values in tasks for value in values):
        raise ValueError(f"a value is outside 0..{top:g}")
    means = [math.fsum(values) / len(values) for values in tasks]
    if target == "new attempts" and is_repeated(tasks):
        found = _stratified(tasks, means, level)
    elif len(tasks) < 2:
        found = None
    elif all(len(values) == 1 and values[0] in (0, 1) for values in tasks):
        n = len(tasks)
        found = (*wilson(math.fsum(means), n, level=level), "wilson", float(n))
    else:
        found = (*bounded(means, level=level), "bounded", n_effective(tasks))
    if found is None:
        return None
    low, high, method, n = found
    mean = math.fsum(means) / len(means)
    return Interval(
        low=top * min(low, mean),
        high=top * max(high, mean),
        level=level,
        target=target,
        method=method,
        n_effective=n,
    )


def is_repeated(tasks: Sequence[Sequence[float]]) -> bool:
    """Whether the spread within tasks is known: at least half of them have several values."""
    return 2 * sum(len(values) > 1 for values in tasks) >= len(tasks) > 0


def wilson(
    successes: float, n: float, *, level: float = LEVEL, quantile: float | None = None
) -> tuple[float, float]:
    """Wilson's score interval of a share, 0..1.

    Args:
        successes: 0..n.
        n: trials, above 0; an effective number need not be whole.
        level: in (0, 1).
        quantile: used instead of the normal one.

    Source: Wilson, Probable inference, the law of succession, and statistical inference,
    J. Am. Stat. Assoc. 22 (1927) 209-212; Newcombe, Stat. Med. 17 (1998) 857-872, method 3.
    """
    z = NormalDist().inv_cdf((1 + level) / 2) if quantile is None else quantile
    share = successes / n
    centre = share + z * z / (2 * n)
    half = z * math.sqrt(share * (1 - share) / n + (z / (2 * n)) ** 2)
    scale = 1 + z * z / n
    low = 0.0 if share == 0 else max(0.0, (centre - half) / scale)
    return low, 1.0 if share == 1 else min(1.0, (centre + half) / scale)


def n_effective(tasks: Sequence[Sequence[float]]) -> float:
    """Attempts divided by the design effect: how many unclustered ones would tell as much.

    The design effect is the variance of the mean with tasks as clusters over its variance if
    all attempts were independent. It is kept between the number of tasks and that of attempts;
    without any spread nothing is known of it, and only the tasks count.

    Args:
        tasks: values per task, none empty; at least one task.

    Source: Kish, Survey Sampling, 1965, section 8.2.
    """
    pooled = [value for values in tasks for value in values]
    n, m = len(pooled), len(tasks)
    if n == m:
        return float(n)
    naive = variance(pooled) / n
    if m < 2 or naive <= 0:
        return float(m)
    clustered = variance([math.fsum(values) / len(values) for values in tasks]) / m
    return float(n) if clustered <= 0 else min(float(n), max(float(m), n * naive / clustered))


def variance(values: Sequence[float]) -> float:
    """The unbiased sample variance; at least two values."""
    mean = math.fsum(values) / len(values)
    return math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)


def _stratified(
    tasks: Sequence[Sequence[float]], means: Sequence[float], level: float
) -> tuple[float, float, Method, float]:
    """Wilson's interval with as many trials as give the variance within the tasks.

    One more task of full spread is counted in, so that tasks whose attempts happened to agree
    do not make the interval vanish; full spread is also that of a task with a single value.
    """
    n, m = sum(map(len, tasks)), len(tasks)
    share = math.fsum(means) / m
    prior = (math.fsum(value for values in tasks for value in values) + 2) / (n + 4)
    full = prior * (1 - prior)
    within = [variance(values) / len(values) if len(values) > 1 else full for values in tasks]
    of_mean = (math.fsum(within) + full * m / n) / (m * (m + 1))
    effective = share * (1 - share) / of_mean
    effective = max(effective, float(m)) if effective > 0 else float(n)
    low, high = wilson(
        share * effective, effective, quantile=t_quantile((1 + level) / 2, n - m), level=level
    )
    return low, high, "stratified", effective


@lru_cache(maxsize=256)
def t_quantile(p: float, df: int) -> float:
    """The p-quantile of Student's t, p in (0.5, 1), for a whole number of degrees of freedom.

    Source: the finite series of Abramowitz and Stegun, 1964, 26.7.3 and 26.7.4, inverted by
    bisection; above 300 degrees the expansion 26.7.5.
    """
    if df > 300:
        z = NormalDist().inv_cdf(p)
        first = (z**3 + z) / 4
        second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
        return z + first / df + second / df**2
    low, high = 0.0, math.pi / 2
    for _ in range(60):
        angle = (low + high) / 2
        low, high = (low, angle) if _t_share(angle, df) > 2 * p - 1 else (angle, high)
    return math.tan(low) * math.sqrt(df)


def _t_share(angle: float, df: int) -> float:
    """P(|t| < tan(angle) * sqrt(df))."""
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = df % 2
    term = cosine if odd else 1.0
    total = term if df > 1 else 0.0
    for k in range(2 + odd, df - 1, 2):
        term *= cosine**2 * (k - 1) / k
        total += term
    return 2 / math.pi * (angle + sine * total) if odd else sine * total


def bounded(values: Sequence[float], *, level: float = LEVEL) -> tuple[float, float]:
    """An interval of the mean of independent values in 0..1 that needs nothing else of them.

    The lower end is the quantile (1 - level) / 2 of the mean of the values and one 0 under
    weights drawn uniformly from the simplex; the upper end likewise with one 1. With values of
    0 and 1 only it is the interval of Clopper and Pearson; with all values alike it has a width;
    the order of the values does not matter. That it is never too short is a conjecture without
    a known counterexample; tests/measure/test_coverage.py looks at it.

    Args:
        values: at least one.
        level: in (0, 1).

    Source: Gaffke, Three test statistics for a nonparametric one-sided hypothesis on the mean
    of a nonnegative variable, Math. Methods Stat. 14 (2005) 451-467; Learned-Miller and Thomas,
    A new confidence interval for the mean of a bounded random variable, 2020. They draw the
    weights; we compute the quantile (see `share_below`).
    """
    tail = (1 - level) / 2
    counts = Counter(round(value, 12) for value in values)
    mirrored = Counter({round(1 - value, 12): n for value, n in counts.items()})
    return _lower(counts, tail), 1 - _lower(mirrored, tail)


def _lower(counts: Mapping[float, int], tail: float) -> float:
    """The `tail` quantile of the mean of these values and one 0 under uniform weights."""
    n = sum(counts.values())
    if len(counts) == 1:
        # The weight of the 0 is Beta(1, n).
        return next(iter(counts)) * tail ** (1 / n)
    with_zero = {**counts, 0.0: counts.get(0.0, 0) + 1}
    mean = math.fsum(value * k for value, k in with_zero.items()) / (n + 1)
    spread = math.fsum(k * (value - mean) ** 2 for value, k in with_zero.items()) / (n + 1)
    step = math.sqrt(spread / (n + 2))
    low, high, guess = 0.0, mean, mean - 2 * step
    aim = math.log(tail)
    for _ in range(40):
        if not low < guess < high:
            guess = (low + high) / 2
        share, slope = share_below(with_zero, guess)
        excess = math.log(share) - aim
        low, high = (low, guess) if excess > 0 else (guess, high)
        if abs(excess) < 1e-6 or high - low < 1e-9:
            break
        # The logarithm of the share has nearly this slope, so a few steps suffice.
        guess -= excess / slope
    return guess


def share_below(values: Mapping[float, float], point: float) -> tuple[float, float]:
    """P(mean under uniform weights <= point), and about the slope of its logarithm.

    Uniform weights are independent exponentials over their sum, so this is the probability
    that sum((value - point) * exponential) <= 0: an integral over the moment generating
    function along the vertical through its saddle point, where it falls off fastest. The
    trapezoidal rule converges geometrically on it.

    Args:
        values: value -> how often, which need not be whole (the weights are then of a Dirichlet
            distribution with these parameters); at least two, on both sides of the point.
        point: below the mean.

    Source: Lugannani and Rice, Adv. Appl. Prob. 12 (1980) 475-490, section 2.
    """
    terms = [(value - point, n) for value, n in values.items()]
    saddle = _saddle(terms)
    rates = [(a / (1 - saddle * a), n) for a, n in terms]
    height = math.exp(-math.fsum(n * math.log(1 - saddle * a) for a, n in terms))
    sigma = math.sqrt(math.fsum(n * rate * rate for rate, n in rates))
    total, part, u = 0.5 / saddle, 1.0, 0.0
    while part > 1e-10 * abs(total) and u < 120:
        u += _NODE
        # Few values have slow tails: the distance of the nodes grows with the hyperbolic cosine.
        y = math.sinh(u) / sigma
        product = complex(saddle, y)
        for rate, n in rates:
            factor = complex(1, -y * rate)
            product *= factor if n == 1 else factor**n
        value = math.cosh(u) / product
        part = abs(value)
        total += value.real
    share = -height * total * _NODE / (sigma * math.pi)
    slope = -saddle * math.fsum(n / (1 - saddle * a) for a, n in terms)
    return max(share, 1e-300), slope


def _saddle(terms: Sequence[tuple[float, float]]) -> float:
    """The s < 0 where the derivative of -sum(n * log(1 - s * a)) is 0.

    Args:
        terms: (a, n) with both signs among the a, and a sum of n * a above 0.
    """
    low, high = 1 / min(a for a, _ in terms), 0.0
    s = -math.fsum(n * a for a, n in terms) / math.fsum(n * a * a for a, n in terms)
    for _ in range(60):
        if not low < s < high:
            s = (low + high) / 2
        rates = [(a / (1 - s * a), n) for a, n in terms]
        first = math.fsum(n * rate for rate, n in rates)
        low, high = (low, s) if first > 0 else (s, high)
        move = first / math.fsum(n * rate * rate for rate, n in rates)
        if abs(move) <= 1e-9 * abs(s):
            break
        s -= move
    return s
