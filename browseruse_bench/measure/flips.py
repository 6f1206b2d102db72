"""How often two gradings of one frozen trace disagree.

A flip is a disagreement of an unordered pair of regrades about credit: met in one, anything else
in the other. Pairs of one trace share their regrades, so k regrades, which make k * (k - 1) / 2
pairs, count as k / 2 comparisons in every interval. That is never too many: that k regrades all
agree has at most the probability that k / 2 independent pairs do (sums of k-th powers are at most
the k/2-th power of the sum of squares), for one item and for all items of a call together. So
nothing is assumed about how the items of one call hang together.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypeVar

from browseruse_bench.measure.ratios import Part, Share, ratio_interval, share
from browseruse_bench.measure.scoring import score
from browseruse_bench.measure.shrinkage import Prior
from browseruse_bench.records.base import Record
from browseruse_bench.records.judgement import Judgement, Status
from browseruse_bench.records.rubric import Rubric
from browseruse_bench.records.score import Score

_Value = TypeVar("_Value", bound=Hashable)


@dataclass(frozen=True, kw_only=True)
class Regrade:
    """One grading of one frozen trace by one judge."""

    task_id: str
    trace: str
    """Key of the trace."""
    sample: int
    statuses: Mapping[str, Status] | None
    """Item -> status; None: ungraded, which neither agrees nor disagrees."""
    flags: frozenset[str] = frozenset()
    """Integrity flags that count."""
    score: Score | None = None
    """None: ungraded."""

    @classmethod
    def of(cls, judgement: Judgement, rubric: Rubric, *, success_at: float) -> Regrade:
        """What a judgement of findings says.

        Raises:
            ValueError: its findings are not exactly those of the rubric.
        """
        points: Score | None = None
        statuses: dict[str, Status] | None = None
        if judgement.status == "graded":
            statuses = {finding.item: finding.status for finding in judgement.findings or ()}
            points = score(judgement, rubric, success_at=success_at)
        return cls(
            task_id=judgement.task_id,
            trace=judgement.trace_key,
            sample=judgement.sample,
            statuses=statuses,
            flags=frozenset(points.flags) if points else frozenset(),
            score=points,
        )


class Flips(Record):
    """How often pairs of regrades disagree about one thing."""

    n_pairs: int
    n_disagreeing: int
    share: Share
    """Of the pairs that disagree; the interval is for further regrades of these traces, and
    rests on the item's own comparisons alone."""


class ItemFlips(Record):
    """One item of one task."""

    task_id: str
    item: str
    n_traces: int
    """With at least two graded regrades."""
    credit: Flips
    """Met against anything else: what moves the score."""
    post: Flips
    """Met against violated, as the RL-environments post has it, among the same pairs."""
    shrunk: float | None
    """The credit's rate, drawn towards the prior; None: no pair. Items are ranked by it."""


class Pooled(Record):
    """All items together: shares of all item-by-item comparisons."""

    n_items: int
    n_tasks: int
    n_traces: int
    """With at least two graded regrades."""
    n_pairs: int
    """Pairs times items."""
    n_disagreeing: int
    here: Share
    """For further regrades of these traces; a pair of regrades is one cluster, all items in it."""
    new_tasks: Share
    """For other tasks of this kind; a task is one cluster."""
    post: Share
    """Met against violated, for further regrades of these traces."""


class Claim(Record):
    """Whether the pooled rate is shown to be below a limit, for further regrades."""

    limit: float
    shown: bool
    upper: float | None
    """Upper end of the one-sided 95 % interval; None: no comparison."""
    n_comparisons: float
    """Independent ones."""
    ungraded: float
    """Share of the regrades without a grade. Above the limit nothing is shown: what they would
    have said is unknown, and they are no agreement."""
    more_regrades: int | None
    """So many more of these traces would show it if the rate stays what it is; 0 where it is
    shown; None: at this rate no number would."""
    more_tasks: int | None
    """So many more tasks would show it for other tasks; None: at this rate no number would."""


@dataclass(frozen=True, kw_only=True)
class Pairs:
    """Pairs of regrades, each by how many of its items disagree."""

    by_task: Mapping[str, Sequence[Part]]
    """Parts of (items that disagree, items), with the number of such pairs as weight."""
    n_traces: int
    comparisons: float
    """Independent ones that a pair counts as."""

    @property
    def parts(self) -> list[Part]:
        """Of all tasks, with comparisons as weights."""
        return [
            Part(part.happened, part.could, part.weight * self.comparisons)
            for parts in self.by_task.values()
            for part in parts
        ]

    @property
    def tasks(self) -> list[Part]:
        """One part for each task: item pairs that disagree, item pairs."""
        return [Part(*_sums(parts)) for parts in self.by_task.values()]


Items = Mapping[str, Sequence[str]]
"""Task -> the items that are compared."""
Statuses = Mapping[str, Status]
"""Item -> what one grading says of it."""
Traces = Mapping[str, Mapping[str, Sequence[Statuses]]]
"""Task -> trace -> its graded regrades."""
Differ = Callable[[Status, Status], bool]
"""Whether two statuses of an item disagree."""

ONE_SIDED = 0.90
"""Level of the two-sided interval whose upper end is the one-sided 95 % bound."""


def of_credit(one: Status, other: Status) -> bool:
    """Whether exactly one of them gives credit."""
    return (one == "met") != (other == "met")


def met_against_violated(one: Status, other: Status) -> bool:
    """Whether one is met and the other violated."""
    return {one, other} == {"met", "violated"}


def graded(regrades: Iterable[Regrade]) -> Traces:
    """The statuses of graded regrades, by task and trace."""
    by_task: dict[str, dict[str, list[Statuses]]] = {}
    for regrade in regrades:
        if regrade.statuses is not None:
            traces = by_task.setdefault(regrade.task_id, {})
            traces.setdefault(regrade.trace, []).append(regrade.statuses)
    return by_task


def flips(
    traces: Iterable[Sequence[_Value]],
    *,
    differ: Callable[[_Value, _Value], bool] = lambda one, other: one != other,
) -> Flips:
    """How often pairs within a trace differ.

    Args:
        traces: of each frozen trace, what its graded regrades say; one alone makes no pair.
        differ: whether two unlike values disagree.
    """
    kept = [trace for trace in traces if len(trace) > 1]
    pairs = sum(_n_pairs(len(trace)) for trace in kept)
    disagreeing = sum(
        n * m
        for trace in kept
        for (one, n), (other, m) in combinations(Counter(trace).items(), 2)
        if differ(one, other)
    )
    weight = _comparisons(kept)
    parts = (Part(1, 1, disagreeing * weight), Part(0, 1, (pairs - disagreeing) * weight))
    return Flips(n_pairs=pairs, n_disagreeing=disagreeing, share=share(parts))


def _n_pairs(n: int) -> int:
    return n * (n - 1) // 2


def _comparisons(traces: Iterable[Sequence[object]]) -> float:
    """Comparisons that a pair counts as; of traces with unlike numbers of regrades that with the
    most decides, which is never too much.
    """
    return 1 / max(1, max((len(trace) - 1 for trace in traces), default=1))


def item_flips(traces: Traces, items: Items) -> tuple[ItemFlips, ...]:
    """The flips of each item, in the order of `items`; `shrunk` is still the raw rate."""
    return tuple(
        _item(task_id, item, traces.get(task_id, {}).values())
        for task_id, names in items.items()
        for item in names
    )


def _item(task_id: str, item: str, traces: Iterable[Sequence[Statuses]]) -> ItemFlips:
    fallen: list[list[Status]] = [
        [statuses[item] for statuses in trace] for trace in traces if len(trace) > 1
    ]
    credit = flips(fallen, differ=of_credit)
    return ItemFlips(
        task_id=task_id,
        item=item,
        n_traces=len(fallen),
        credit=credit,
        post=flips(fallen, differ=met_against_violated),
        shrunk=credit.share.rate,
    )


def shrink(found: Iterable[ItemFlips], prior: Prior) -> tuple[ItemFlips, ...]:
    """The items with their rates drawn towards the prior."""
    return tuple(
        each.model_copy(update={"shrunk": prior.shrunk(rate, each.credit.share.n_effective)})
        if (rate := each.credit.share.rate) is not None
        else each
        for each in found
    )


def pairs_of(traces: Traces, items: Items, *, differ: Differ = of_credit) -> Pairs:
    """The pairs of regrades of one trace by one judge."""
    found: dict[str, Sequence[Part]] = {}
    kept: list[Sequence[Statuses]] = []
    for task_id, names in items.items():
        pairs = [trace for trace in traces.get(task_id, {}).values() if len(trace) > 1]
        if names and pairs:
            kept += pairs
            met = [meeting for trace in pairs for meeting in _within(trace, names)]
            found[task_id] = _by_unlike(met, len(names), differ)
    return Pairs(by_task=found, n_traces=len(kept), comparisons=_comparisons(kept))


def pairs_across(
    first: Traces, second: Traces, items: Items, *, differ: Differ = of_credit
) -> Pairs:
    """The pairs of a regrade by one judge and one of the same trace by the other.

    n regrades of one and m of the other are min(n, m) comparisons of their n * m pairs. A trace
    that only one judge has graded is left out.
    """
    found: dict[str, Sequence[Part]] = {}
    most, n_traces = 1, 0
    for task_id, names in items.items():
        ours, theirs = first.get(task_id, {}), second.get(task_id, {})
        common = [(ours[trace], theirs[trace]) for trace in ours if trace in theirs]
        if names and common:
            n_traces += len(common)
            most = max(most, *(len(side) for sides in common for side in sides))
            met = [meeting for sides in common for meeting in _across(*sides, names)]
            found[task_id] = _by_unlike(met, len(names), differ)
    return Pairs(by_task=found, n_traces=n_traces, comparisons=1 / most)


_Vector = tuple[Status, ...]
_Meeting = tuple[_Vector, _Vector, int]
"""Two gradings, and how many pairs of them there are."""


def _vectors(trace: Iterable[Statuses], names: Sequence[str]) -> Counter[_Vector]:
    return Counter(tuple(statuses[name] for name in names) for statuses in trace)


def _within(trace: Sequence[Statuses], names: Sequence[str]) -> Iterator[_Meeting]:
    """The pairs of one trace. Gradings that are alike in everything are counted, not compared."""
    kinds = _vectors(trace, names)
    for one, n in kinds.items():
        yield one, one, _n_pairs(n)
    for (one, n), (other, m) in combinations(kinds.items(), 2):
        yield one, other, n * m


def _across(
    ours: Sequence[Statuses], theirs: Sequence[Statuses], names: Sequence[str]
) -> Iterator[_Meeting]:
    for one, n in _vectors(ours, names).items():
        for other, m in _vectors(theirs, names).items():
            yield one, other, n * m


def _by_unlike(met: Iterable[_Meeting], n_items: int, differ: Differ) -> tuple[Part, ...]:
    """Parts by how many of the items disagree."""
    counts: Counter[int] = Counter()
    for one, other, n in met:
        counts[sum(differ(a, b) for a, b in zip(one, other, strict=True))] += n
    return tuple(Part(d, n_items, n) for d, n in sorted(counts.items()) if n)


def pooled(credit: Pairs, post: Pairs, items: Items) -> Pooled:
    """The flip rate over all items.

    Args:
        credit: pairs that disagree about credit.
        post: the same pairs, by met against violated.
        items: those that were compared.
    """
    disagreeing, of = _sums(part for parts in credit.by_task.values() for part in parts)
    return Pooled(
        n_items=sum(len(items[task_id]) for task_id in credit.by_task),
        n_tasks=len(credit.by_task),
        n_traces=credit.n_traces,
        n_pairs=round(of),
        n_disagreeing=round(disagreeing),
        here=share(credit.parts),
        new_tasks=share(credit.tasks),
        post=share(post.parts),
    )


def _sums(parts: Iterable[Part]) -> tuple[float, float]:
    kept = list(parts)
    return (
        math.fsum(part.happened * part.weight for part in kept),
        math.fsum(part.could * part.weight for part in kept),
    )


def claim(pairs: Pairs, limit: float, *, ungraded: float = 0) -> Claim:
    """Whether the pooled rate is shown to be below `limit`, and what else it would take.

    Shown is it where the upper end of the one-sided 95 % interval is below: with no flip that
    takes 299 independent comparisons for 1 % (Hanley and Lippman-Hand, JAMA 249 (1983) 1743).

    Args:
        pairs: of one judge.
        limit: in (0, 1).
        ungraded: share of the regrades without a grade.
    """
    parts = pairs.parts
    n = math.fsum(part.weight for part in parts)
    upper = ratio_interval(parts, level=ONE_SIDED)[1] if n else None
    more, more_tasks = _more(parts, limit), _more(pairs.tasks, limit)
    return Claim(
        limit=limit,
        shown=upper is not None and upper < limit and ungraded <= limit,
        upper=upper,
        n_comparisons=n,
        ungraded=ungraded,
        # A regrade of a trace that has some already is half a comparison more.
        more_regrades=None if more is None else math.ceil(2 * more),
        more_tasks=None if more_tasks is None else math.ceil(more_tasks),
    )


def _more(parts: Sequence[Part], limit: float) -> float | None:
    """Further clusters like these after which the upper end is below the limit; 0: it is now;
    None: the share is not below it.
    """
    happened, could = _sums(parts)
    if not could:
        return math.log((1 - ONE_SIDED) / 2) / math.log1p(-limit)
    if happened / could >= limit:
        return None

    def below(times: float) -> bool:
        scaled = [part._replace(weight=part.weight * times) for part in parts]
        return ratio_interval(scaled, level=ONE_SIDED)[1] < limit

    if below(1):
        return 0.0
    low, high = 1.0, 2.0
    while not below(high):
        low, high = high, 2 * high
        if high > _MOST_TIMES:
            return None
    while high - low > 1e-4 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if below(middle) else (middle, high)
    return (high - 1) * math.fsum(part.weight for part in parts)


_MOST_TIMES = 2**20
"""A rate that is so near to the limit that more would be needed is as good as at it."""
