"""How far two who label the same things agree: a judge and people, or people among themselves.

Every pair is in the table or is counted as missing, by whose label is missing: a code that is no
class ("cannot tell") leaves nothing out in silence. A figure whose denominator is 0 is None.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from browseruse_bench.measure.intervals import LEVEL, t_quantile
from browseruse_bench.measure.ratios import Part, Share, ratio_interval, share
from browseruse_bench.records.base import Record

Table = Mapping[tuple[str, str], float]
"""(label of one, label of the other) -> how often."""
Confusion = tuple[tuple[int, ...], ...]
"""Rows: the truth's class; columns: the verdict's."""


@dataclass(frozen=True, kw_only=True)
class Labelled:
    """One thing that two labelled."""

    truth: str | None
    """None: missing."""
    verdict: str | None
    cluster: str
    """Things of one cluster (a task) may hang together; clusters are independent."""


class Coefficient(Record):
    """A coefficient of agreement, at most 1; 0 is what chance gives."""

    value: float | None
    """None: chance alone would agree always, as where only one class occurs."""
    low: float | None
    """95 % interval for other clusters of this kind; None: fewer than two."""
    high: float | None


class ClassFigures(Record):
    """One class against all others."""

    label: str
    tp: int
    fp: int
    fn: int
    tn: int
    precision: Share
    """Of the verdicts of this class, those that are true."""
    recall: Share
    """Of the true ones, those that have such a verdict."""
    f1: Share
    """2 tp of 2 tp + fp + fn."""
    truth_rate: Share
    """How often it is the truth."""
    verdict_rate: Share
    """How often it is the verdict."""


class Missing(Record):
    """What is in no table, by whose label is missing."""

    truth: int
    verdict: int
    both: int

    @property
    def total(self) -> int:
        """All of it."""
        return self.truth + self.verdict + self.both


class Agreement(Record):
    """What a table of two labellers comes to."""

    classes: tuple[str, ...]
    confusion: Confusion
    n: int
    """Things that both labelled."""
    n_clusters: int
    missing: Missing
    accuracy: Share
    """How often both say the same."""
    kappa: Coefficient
    alpha: Coefficient
    by_class: tuple[ClassFigures, ...]

    def of(self, label: str) -> ClassFigures:
        """The figures of one class."""
        return self.by_class[self.classes.index(label)]


def agreement(things: Iterable[Labelled], classes: Sequence[str]) -> Agreement:
    """The agreement of two labellers.

    Args:
        things: all that were to be labelled.
        classes: at least two, each once; their order is that of the table.

    Raises:
        ValueError: a label is no class.
    """
    given = list(things)
    known = set(classes)
    if len(classes) < 2 or len(known) != len(classes):
        raise ValueError(f"{list(classes)}: at least two classes, each once")
    unknown = {label for t in given for label in (t.truth, t.verdict)} - known - {None}
    if unknown:
        raise ValueError(f"not of the classes {list(classes)}: {sorted(map(str, unknown))}")
    by_cluster: dict[str, Counter[tuple[str, str]]] = {}
    for thing in given:
        if thing.truth is not None and thing.verdict is not None:
            cluster = by_cluster.setdefault(thing.cluster, Counter())
            cluster[thing.truth, thing.verdict] += 1
    tables = list(by_cluster.values())
    whole = sum(tables, Counter[tuple[str, str]]())
    units = [(t.cluster, (t.truth, t.verdict)) for t in given]
    return Agreement(
        classes=tuple(classes),
        confusion=tuple(tuple(whole[row, column] for column in classes) for row in classes),
        n=whole.total(),
        n_clusters=len(tables),
        missing=_missing(given),
        accuracy=_share(tables, lambda t, v: t == v, lambda t, v: True),
        kappa=_coefficient(tables, _kappa_parts),
        alpha=alpha(units),
        by_class=tuple(_class_figures(label, whole, tables) for label in classes),
    )


def _missing(given: Iterable[Labelled]) -> Missing:
    kinds = Counter((t.truth is None, t.verdict is None) for t in given)
    return Missing(truth=kinds[True, False], verdict=kinds[False, True], both=kinds[True, True])


def _share(
    tables: Iterable[Counter[tuple[str, str]]],
    happened: Callable[[str, str], bool],
    could: Callable[[str, str], bool],
) -> Share:
    """How many of those that could, clustered."""
    return share(
        Part(
            sum(n for pair, n in table.items() if could(*pair) and happened(*pair)),
            sum(n for pair, n in table.items() if could(*pair)),
        )
        for table in tables
    )


def _class_figures(
    label: str, whole: Counter[tuple[str, str]], tables: Sequence[Counter[tuple[str, str]]]
) -> ClassFigures:
    def count(is_true: bool, is_said: bool) -> int:
        return sum(
            n
            for (truth, verdict), n in whole.items()
            if (truth == label) is is_true and (verdict == label) is is_said
        )

    return ClassFigures(
        label=label,
        tp=count(True, True),
        fp=count(False, True),
        fn=count(True, False),
        tn=count(False, False),
        precision=_share(tables, lambda t, v: t == label, lambda t, v: v == label),
        recall=_share(tables, lambda t, v: v == label, lambda t, v: t == label),
        f1=share(_f1_part(label, table) for table in tables),
        truth_rate=_share(tables, lambda t, v: t == label, lambda t, v: True),
        verdict_rate=_share(tables, lambda t, v: v == label, lambda t, v: True),
    )


def _f1_part(label: str, table: Counter[tuple[str, str]]) -> Part:
    both = table[label, label]
    either = sum(n for pair, n in table.items() if label in pair)
    return Part(2 * both, both + either)


def cohen_kappa(table: Table) -> float | None:
    """Agreement beyond that of two who label independently, each with its own frequencies.

    Args:
        table: (label of one, label of the other) -> how many.

    Returns:
        None where chance alone would agree always, or nothing was labelled.

    Source: Cohen, A coefficient of agreement for nominal scales, Educ. Psychol. Meas. 20 (1960)
    37-46.
    """
    return _value(*_kappa_parts(table))


def _kappa_parts(table: Table) -> tuple[float, float]:
    """Observed and expected disagreement; 0 and 0 where nothing was labelled."""
    n = sum(table.values())
    if not n:
        return 0.0, 0.0
    ones: dict[str, float] = {}
    others: dict[str, float] = {}
    for (one, other), k in table.items():
        ones[one] = ones.get(one, 0) + k
        others[other] = others.get(other, 0) + k
    by_chance = sum(k * others.get(label, 0) for label, k in ones.items())
    observed = sum(k for (one, other), k in table.items() if one != other)
    return observed / n, (n * n - by_chance) / (n * n)


def _value(observed: float, expected: float) -> float | None:
    return None if expected <= _NONE else 1 - observed / expected


_NONE = 1e-12
"""Expected disagreement below this is rounding."""


def alpha(units: Iterable[tuple[str, Sequence[str | None]]]) -> Coefficient:
    """Krippendorff's alpha for classes: any number of labellers, of whom some may be missing.

    Args:
        units: (cluster, labels of one thing; None: missing). A thing with fewer than two labels
            tells nothing and is left out.

    Source: Krippendorff, Computing Krippendorff's alpha-reliability, 2011.
    """
    clusters: dict[str, list[Counter[str]]] = {}
    for cluster, labels in units:
        counts = Counter(label for label in labels if label is not None)
        if counts.total() > 1:
            clusters.setdefault(cluster, []).append(counts)
    tables = [_coincidences(things) for things in clusters.values()]
    return _coefficient(tables, _alpha_parts)


def _coincidences(things: Iterable[Counter[str]]) -> dict[tuple[str, str], float]:
    """Ordered pairs of labels of one thing by two labellers; a thing with m labels weighs m."""
    table: dict[tuple[str, str], float] = {}
    for counts in things:
        others = counts.total() - 1
        for one, n in counts.items():
            for other, m in counts.items():
                pairs = n * (m - 1) if one == other else n * m
                table[one, other] = table.get((one, other), 0) + pairs / others
    return table


def _alpha_parts(table: Table) -> tuple[float, float]:
    """Observed and expected disagreement; 0 and 0 where nothing was labelled."""
    n = math.fsum(table.values())
    if n <= 1:
        return 0.0, 0.0
    totals: dict[str, float] = {}
    for (one, _), pairs in table.items():
        totals[one] = totals.get(one, 0) + pairs
    expected = math.fsum(k * (n - k) for k in totals.values()) / (n * (n - 1))
    return _disagreeing(table) / n, expected


def _disagreeing(table: Table) -> float:
    return math.fsum(n for (one, other), n in table.items() if one != other)


def _coefficient(
    tables: Sequence[Table], measure: Callable[[Table], tuple[float, float]]
) -> Coefficient:
    """1 - observed / expected disagreement, with an interval over clusters.

    The interval holds two. One is that of the observed disagreement (`ratios.ratio_interval`)
    over the expected one as it is: it has a width where all agree. The other is Student's with
    the spread that leaving out one cluster at a time shows (Efron and Stein, Ann. Stat. 9 (1981)
    586-596): it knows that the expected disagreement is an estimate too.

    Args:
        tables: one for each cluster; some may be empty.
        measure: (observed, expected) disagreement of a table.
    """
    kinds = Counter(tuple(sorted(table.items())) for table in tables if table)
    whole: dict[tuple[str, str], float] = {}
    for kind, n in kinds.items():
        for pair, k in kind:
            whole[pair] = whole.get(pair, 0) + n * k
    observed, expected = measure(whole)
    value = _value(observed, expected)
    if value is None or kinds.total() < 2:
        return Coefficient(value=value, low=None, high=None)
    low, high = ratio_interval(
        Part(_disagreeing(dict(kind)), math.fsum(k for _, k in kind), n)
        for kind, n in kinds.items()
    )
    half = _jackknife_half(whole, kinds, measure)
    return Coefficient(
        value=value,
        low=max(-1.0, min(1 - high / expected, value - half)),
        high=min(1.0, max(1 - low / expected, value + half)),
    )


def _jackknife_half(
    whole: Table,
    kinds: Counter[tuple[tuple[tuple[str, str], float], ...]],
    measure: Callable[[Table], tuple[float, float]],
) -> float:
    """Half the length of Student's interval; what has no value without a cluster is left out."""
    without: list[tuple[float, int]] = []
    for kind, n in kinds.items():
        left = dict(kind)
        value = _value(*measure({pair: k - left.get(pair, 0) for pair, k in whole.items()}))
        if value is not None:
            without.append((value, n))
    m = sum(n for _, n in without)
    if m < 2:
        return 0.0
    mean = math.fsum(value * n for value, n in without) / m
    spread = (m - 1) / m * math.fsum(n * (value - mean) ** 2 for value, n in without)
    return t_quantile((1 + LEVEL) / 2, m - 1) * math.sqrt(spread)
