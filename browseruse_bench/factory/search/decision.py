"""Which version of a prompt is the best one, and whether the labels show it.

Two claims are kept apart, for they need different evidence.

- *Chosen* is the version that agrees with most labels: the best guess that there is.
- *Shown to be the best* it is only if it beats the next best one by McNemar's exact test at
  5 percent. That is a test of a winner that was selected by the same labels; it holds its level
  whatever the number of versions, because it must win against the strongest of the others
  (Gutmann and Maymin, Is the selected population the best?, Ann. Stat. 15 (1987) 456-461).

For each pair of versions the p is corrected for all pairs (Holm, Scand. J. Stat. 6 (1979) 65-70).
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from statistics import NormalDist

from pydantic import Field

from browseruse_bench.measure import paired
from browseruse_bench.measure.intervals import LEVEL, wilson
from browseruse_bench.measure.paired import POWER
from browseruse_bench.records.base import Record
from browseruse_bench.records.label import Verdict

RECALL_FLOOR = 0.5
"""Share of the suitable tasks that a version must find; one that is shown to find fewer is never
chosen. Where few tasks are suitable, rejecting all of them agrees with most labels."""
HOPELESS = 0.001
"""One-sided p at which a version is given up after a part of the labels."""

mcnemar = lru_cache(maxsize=1 << 14)(paired.mcnemar)
"""The same few counts are compared again and again."""

Right = tuple[bool, ...]
"""For each example, in order: whether the version says what people said."""


@dataclass(frozen=True, kw_only=True)
class Scored:
    """One version with what it said of the selection part."""

    id: str
    text: str
    right: Right
    """Shorter than the selection part where the version was given up."""
    n_suitable: int
    """Of these examples, those that people call suitable."""
    n_found: int
    """Of those, the ones that the version calls suitable."""
    n_silent: int = 0
    """Examples on which the model gave no label; they count as wrong."""
    cost_usd: float | None = None
    """Of these labels; None: not known."""
    seconds: float = 0
    parent: str | None = None
    change: str = ""
    """What the proposer says that it changed."""
    by: str = "own"

    @cached_property
    def bits(self) -> int:
        """`right` as a number, the first example in its lowest bit: compared by the thousand."""
        return int("0" + "".join("1" if right else "0" for right in reversed(self.right)), 2)

    @cached_property
    def n_right(self) -> int:
        """Examples on which it agrees with people."""
        return self.bits.bit_count()

    @property
    def share(self) -> float:
        """Agreement with people, 0..1."""
        return self.n_right / len(self.right) if self.right else 0.0


def scored(
    id: str,
    text: str,
    said: Sequence[Verdict | None],
    truths: Sequence[Verdict],
    **more: object,
) -> Scored:
    """A version by what it said of the first `len(said)` examples."""
    of = truths[: len(said)]
    pairs = list(zip(said, of, strict=True))
    made: dict[str, object] = {
        "id": id,
        "text": text,
        "right": tuple(one == truth for one, truth in pairs),
        "n_suitable": sum(truth == "suitable" for truth in of),
        "n_found": sum(one == truth == "suitable" for one, truth in pairs),
        "n_silent": sum(one is None for one in said),
        **more,
    }
    return Scored(**made)  # type: ignore[arg-type]


class Rival(Record):
    """Another version, against the chosen one, on the examples that both were asked about."""

    version: str
    n: int
    only_chosen: int
    """Examples on which only the chosen one is right."""
    only_rival: int
    difference: float
    """Of the agreements, chosen minus this one, -1..1."""
    low: float
    high: float
    """Interval of the difference, of one pair by itself."""
    p: float
    """McNemar's exact test, two-sided, of this pair by itself."""
    p_all: float
    """Corrected for all pairs of versions."""

    @property
    def told_apart(self) -> bool:
        """Whether this pair is shown to differ, all pairs considered."""
        return self.p_all < 1 - LEVEL


class Decision(Record):
    """The outcome of a search."""

    chosen: str | None
    """None: no version may be chosen."""
    shown: bool
    """Whether the labels show that no other version is better."""
    p_next: float | None
    """Of the test against the next best one."""
    next_best: str | None
    n: int
    """Labels of the selection part."""
    n_versions: int
    n_pairs: int
    """For which `p_all` is corrected."""
    rivals: tuple[Rival, ...]
    """All others that were scored in full, the best first."""
    given_up: tuple[str, ...]
    """Versions that were not asked about all examples."""
    too_few_found: tuple[str, ...]
    """Shown to find fewer of the suitable tasks than the floor."""
    recall_floor: float = Field(ge=0, le=1)
    smallest_seen: float | None
    """The true lead over the next best one that so many labels show with probability POWER."""

    @property
    def not_told_apart(self) -> tuple[str, ...]:
        """Versions of which each may be as good as the chosen one."""
        return tuple(rival.version for rival in self.rivals if not rival.told_apart)

    @property
    def sentence(self) -> str:
        """The outcome in words."""
        if self.chosen is None:
            return (
                "no version is chosen: each is shown to find fewer than "
                f"{100 * self.recall_floor:.0f}% of the suitable tasks"
                if self.too_few_found
                else "no version was scored in full, so none is chosen"
            )
        if self.next_best is None or self.p_next is None:
            return f"{self.chosen} is the only version that was scored in full"
        what = f"{p_text(self.p_next)} against the next best one, {self.next_best}"
        if self.shown:
            return f"{self.chosen} is shown to be the best of {self.n_versions} versions ({what})"
        seen = (
            ""
            if self.smallest_seen is None
            else f"; so many labels show a lead of {100 * self.smallest_seen:.0f} points or more"
        )
        return (
            f"{self.chosen} agrees with most labels, but {self.n} labels cannot tell whether it "
            f"is the best ({what}): {len(self.not_told_apart)} of {len(self.rivals)} others are "
            f"not told apart from it{seen}"
        )


def decide(
    versions: Sequence[Scored], n_examples: int, *, recall_floor: float = RECALL_FLOOR
) -> Decision:
    """The best version and what is shown of it; the same whatever the order of the versions.

    Args:
        versions: each once.
        n_examples: size of the selection part.
        recall_floor: of the suitable tasks, in 0..1.
    """
    full = [version for version in versions if len(version.right) == n_examples and n_examples]
    few = [version for version in full if misses_too_many(version, recall_floor)]
    able = sorted((version for version in full if version not in few), key=rank)
    pairs = {
        (one.id, other.id): _counts(one, other)
        for one, other in itertools.combinations(sorted(full, key=rank), 2)
    }
    adjusted = holm({pair: mcnemar(*counts) for pair, counts in pairs.items()})
    best = able[0] if able else None
    rivals = [] if best is None else _rivals(best, full, adjusted)
    by_id = {rival.version: rival for rival in rivals}
    # The next best one is that which the chosen one has most trouble to beat.
    nearest = max((by_id[v.id] for v in able[1:]), key=lambda r: (r.p, r.version), default=None)
    return Decision(
        chosen=best.id if best else None,
        shown=nearest is not None and nearest.p < 1 - LEVEL,
        p_next=nearest.p if nearest else None,
        next_best=nearest.version if nearest else None,
        n=n_examples,
        n_versions=len(full),
        n_pairs=len(pairs),
        rivals=tuple(rivals),
        given_up=tuple(sorted(v.id for v in versions if len(v.right) < n_examples)),
        too_few_found=tuple(sorted(v.id for v in few)),
        recall_floor=recall_floor,
        smallest_seen=smallest_lead(nearest) if nearest else None,
    )


def rank(version: Scored) -> tuple[float, float, int, str]:
    """Best first; what agrees alike is ordered by cost, length and content, never by its turn."""
    cost = math.inf if version.cost_usd is None else version.cost_usd
    digest = hashlib.sha256(version.text.encode()).hexdigest()
    return (-version.share, cost, len(version.text), digest)


def misses_too_many(version: Scored, floor: float) -> bool:
    """Whether it is shown, at 95 percent, to find fewer of the suitable tasks than `floor`."""
    if not version.n_suitable:
        return False
    return wilson(version.n_found, version.n_suitable)[1] < floor


def hopeless(version: Scored, best: Scored) -> bool:
    """Whether, on what it was asked so far, a version is clearly worse than the best one.

    Giving up can only keep a version from being chosen, so it takes nothing from what is said
    of the chosen one.
    """
    only_version, only_best = _counts(version, best)
    return only_version < only_best and mcnemar(only_version, only_best) / 2 < HOPELESS


def survivors(versions: Sequence[Scored], n_examples: int, *, most: int) -> list[Scored]:
    """Versions from which further ones are made: the best, and those not shown to be worse than
    it, by a test of their own each; best first.
    """
    full = sorted((v for v in versions if len(v.right) == n_examples), key=rank)
    return [
        version
        for version in full
        if version is full[0] or mcnemar(*_counts(full[0], version)) >= 1 - LEVEL
    ][:most]


def holm(ps: Mapping[tuple[str, str], float]) -> dict[tuple[str, str], float]:
    """Each p corrected for all of them.

    Source: Holm, A simple sequentially rejective multiple test procedure, Scand. J. Stat. 6
    (1979) 65-70.
    """
    ordered = sorted(ps, key=lambda pair: (ps[pair], pair))
    found: dict[tuple[str, str], float] = {}
    highest = 0.0
    for index, pair in enumerate(ordered):
        highest = max(highest, min(1.0, (len(ordered) - index) * ps[pair]))
        found[pair] = highest
    return found


def paired_interval(
    only_first: int, only_second: int, n: int, *, level: float = LEVEL
) -> tuple[float, float]:
    """An interval of the difference of two shares of the same n examples.

    Source: Bonett and Price, J. Educ. Behav. Stat. 37 (2012) 479-488.
    """
    first, second = (only_first + 1) / (n + 2), (only_second + 1) / (n + 2)
    half = NormalDist().inv_cdf((1 + level) / 2) * math.sqrt(
        (first + second - (first - second) ** 2) / (n + 2)
    )
    return max(-1.0, first - second - half), min(1.0, first - second + half)


def independent_interval(
    first: tuple[int, int], second: tuple[int, int], *, level: float = LEVEL
) -> tuple[float, float]:
    """An interval of the difference of two shares of different examples.

    Args:
        first: (right, examples), at least one example.
        second: the same of the other.
        level: in (0, 1).

    Source: Newcombe, Interval estimation for the difference between independent proportions,
    Stat. Med. 17 (1998) 873-890, method 10.
    """
    one, other = first[0] / first[1], second[0] / second[1]
    low_1, high_1 = wilson(*first, level=level)
    low_2, high_2 = wilson(*second, level=level)
    difference = one - other
    return (
        difference - math.hypot(one - low_1, high_2 - other),
        difference + math.hypot(high_1 - one, other - low_2),
    )


def smallest_lead(rival: Rival) -> float | None:
    """The true difference that McNemar's test shows with probability POWER on as many examples
    that differ as often; None: no example differs.
    """
    differing = rival.only_chosen + rival.only_rival
    if not differing:
        return None
    z = NormalDist().inv_cdf((1 + LEVEL) / 2) + NormalDist().inv_cdf(POWER)
    return min(1.0, z * math.sqrt(differing) / rival.n)


def p_text(p: float) -> str:
    """As in `p = 0.031`; a small one is `p < 0.001`, never 0."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def _counts(one: Scored, other: Scored) -> tuple[int, int]:
    """Examples on which only the one, and only the other, is right; of those both were asked."""
    both = (1 << min(len(one.right), len(other.right))) - 1
    return (
        (one.bits & ~other.bits & both).bit_count(),
        (other.bits & ~one.bits & both).bit_count(),
    )


def _rivals(
    best: Scored, full: Sequence[Scored], adjusted: Mapping[tuple[str, str], float]
) -> list[Rival]:
    found: list[Rival] = []
    for other in sorted((v for v in full if v is not best), key=rank):
        mine, theirs = _counts(best, other)
        n = len(best.right)
        low, high = paired_interval(mine, theirs, n)
        pair = (best.id, other.id)
        found.append(
            Rival(
                version=other.id,
                n=n,
                only_chosen=mine,
                only_rival=theirs,
                difference=(mine - theirs) / n,
                low=low,
                high=high,
                p=mcnemar(mine, theirs),
                p_all=adjusted[pair if pair in adjusted else (other.id, best.id)],
            )
        )
    return found
