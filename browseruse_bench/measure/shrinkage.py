"""Rates of many items that were each seen a few times, drawn towards what items are like.

The raw rate of an item that was compared twice is 0, 50 or 100 %. Ranked by it, chance is at both
ends. A beta distribution says how rates are spread over items; an item's estimate is the mean of
what that leaves possible once its own comparisons are seen.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pydantic import Field

from browseruse_bench.records.base import Record

_STRENGTHS = tuple(2 ** (k / 2) for k in range(-1, 17))
"""Strengths that are tried, 0.7 to 256."""
LEAST_ITEMS = 20
"""With fewer items nothing is learned of how they are spread."""


class Prior(Record):
    """Beta(mean * strength, (1 - mean) * strength), the spread of rates over items."""

    mean: float = Field(gt=0, lt=1)
    strength: float = Field(gt=0)
    """So many comparisons of an item weigh as much as the prior."""
    fitted: bool = False

    def shrunk(self, rate: float, n: float) -> float:
        """The estimate of an item with this rate in n comparisons."""
        return (self.mean * self.strength + rate * n) / (self.strength + n)


DEFAULT = Prior(mean=0.01, strength=10)
"""The flip rate that the RL-environments post reports of rubrics that were reworked, with the
weight of ten comparisons."""


def fit_prior(items: Sequence[tuple[float, float]]) -> Prior:
    """The prior under which these items are least surprising; `DEFAULT` for a few items.

    The mean is the pooled rate with DEFAULT counted in as one item more, so that it is never 0;
    the strength is the one of 0.7, 1, 1.4, ..., 256 with the highest beta-binomial likelihood.

    Args:
        items: (rate, comparisons) of each; comparisons need not be whole.

    Source: Casella, An introduction to empirical Bayes data analysis, Am. Stat. 39 (1985) 83-87.
    """
    seen = [(rate, n) for rate, n in items if n > 0]
    if len(seen) < LEAST_ITEMS:
        return DEFAULT
    flips = math.fsum(rate * n for rate, n in seen) + DEFAULT.mean * DEFAULT.strength
    mean = flips / (math.fsum(n for _, n in seen) + DEFAULT.strength)
    strength = max(_STRENGTHS, key=lambda s: _log_likelihood(seen, mean * s, (1 - mean) * s))
    return Prior(mean=mean, strength=strength, fitted=True)


def _log_likelihood(items: Sequence[tuple[float, float]], a: float, b: float) -> float:
    """Of these rates under Beta(a, b), without what does not depend on it."""
    return math.fsum(
        _log_beta(a + rate * n, b + (1 - rate) * n) - _log_beta(a, b) for rate, n in items
    )


def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
