"""Intervals of a share whose parts come in clusters, honest where nothing was ever seen to happen.

A cluster brings how often something happened and how often it could have: disagreements and
pairs, right claims and claims. The share is the one sum over the other. Clusters are drawn
independently; what is inside one may hang together as it likes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from browseruse_bench.measure.intervals import LEVEL, share_below
from browseruse_bench.records.base import Record


class Part(NamedTuple):
    """One cluster, or one kind of cluster with how many there are of it."""

    happened: float
    """0..could."""
    could: float
    weight: float = 1
    """How many independent clusters it stands for; need not be whole."""


class Share(Record):
    """A share, 0..1, with its interval; both None where nothing could have happened."""

    rate: float | None
    low: float | None
    high: float | None
    level: float
    happened: float
    could: float
    n_effective: float
    """Independent clusters that it rests on."""


def share(parts: Iterable[Part], *, level: float = LEVEL) -> Share:
    """The share over all parts, with its interval.

    Raises:
        ValueError: a part happened more often than it could, or a number is below 0.
    """
    kept = _merged(parts)
    happened = math.fsum(part.happened * part.weight for part in kept)
    could = math.fsum(part.could * part.weight for part in kept)
    weight = math.fsum(part.weight for part in kept)
    if not kept:
        return Share(
            rate=None, low=None, high=None, level=level, happened=0, could=0, n_effective=0
        )
    rate = happened / could
    low, high = ratio_interval(kept, level=level)
    return Share(
        rate=rate,
        low=min(low, rate),
        high=max(high, rate),
        level=level,
        happened=happened,
        could=could,
        n_effective=weight,
    )


def ratio_interval(parts: Iterable[Part], *, level: float = LEVEL) -> tuple[float, float]:
    """An interval of E[happened] / E[could] that assumes no more than independent clusters.

    A share r is inside if 0 is inside Gaffke's interval of the mean of happened - r * could,
    which lies between -r * most and (1 - r) * most, where `most` is the largest `could`. With
    clusters of one size it is the interval `intervals.bounded` of their shares; if it happened
    nowhere, the upper end is 1 - tail ** (1 / clusters), the rule of three.

    Args:
        parts: with something that could happen in at least one of them.
        level: in (0, 1).

    Source: Gaffke (2005) as in `intervals.bounded`; inverting a test of a linear combination is
    Fieller, J. R. Stat. Soc. B 16 (1954) 175-185.
    """
    kept = _merged(parts)
    if not kept:
        raise ValueError("nothing could have happened: there is no share")
    tail = (1 - level) / 2
    missed = [Part(part.could - part.happened, part.could, part.weight) for part in kept]
    return _lower_end(kept, tail), 1 - _lower_end(missed, tail)


def _merged(parts: Iterable[Part]) -> list[Part]:
    """Parts in which something could happen, each kind once."""
    weights: dict[tuple[float, float], float] = {}
    for happened, could, weight in parts:
        if not 0 <= happened <= could or weight < 0:
            raise ValueError(f"{happened} of {could}, weight {weight}: not a part of a whole")
        if could and weight:
            weights[happened, could] = weights.get((happened, could), 0) + weight
    return [Part(happened, could, weight) for (happened, could), weight in weights.items()]


def _lower_end(parts: list[Part], tail: float) -> float:
    """The smallest r that is not refused at `tail`; the bracket closes from both sides."""
    most = max(part.could for part in parts)
    happened = math.fsum(part.happened * part.weight for part in parts) / most
    could = math.fsum(part.could * part.weight for part in parts) / most
    if happened == 0:
        return 0.0
    if all(part.happened == part.could == most for part in parts):
        return tail ** (1 / math.fsum(part.weight for part in parts))
    aim = math.log(tail)
    low, high = 0.0, happened / (could + 1)
    at_low, at_high = -math.inf, math.log(0.5) - aim
    for _ in range(100):
        if high - low <= 1e-9 + 1e-7 * high:
            break
        guess = (low + high) / 2
        if at_low > -math.inf:
            # The logarithm is nearly straight in log r; kept off the ends, so that both close in.
            slope = math.log(high / low) / (at_high - at_low)
            guess = low * math.exp(-at_low * slope)
            guess = min(max(guess, low + 0.02 * (high - low)), high - 0.02 * (high - low))
        excess = _log_refused(parts, most, guess) - aim
        if excess > 0:
            high, at_high = guess, excess
        else:
            low, at_low = guess, excess
    return low


def _log_refused(parts: list[Part], most: float, r: float) -> float:
    """The logarithm of how likely weights drawn at random put the share below r."""
    values: dict[float, float] = {0.0: 1.0}
    for happened, could, weight in parts:
        value = round((happened - r * could) / most + r, 15)
        values[value] = values.get(value, 0.0) + weight
    return math.log(share_below(values, r)[0])
