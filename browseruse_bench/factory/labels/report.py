"""What the labels come to: who said what, how far people agree, and what it says of the corpus.

Sealed labels are in none of these figures; how many there are is said.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import median

from browseruse_bench.factory.labels.sample import Draw, last_draw
from browseruse_bench.factory.labels.split import PARTS, Part
from browseruse_bench.factory.labels.store import LabelStore
from browseruse_bench.factory.search.examples import majority
from browseruse_bench.measure import ratios
from browseruse_bench.measure.agreement import Agreement, Coefficient, Labelled, agreement, alpha
from browseruse_bench.measure.ratios import Share
from browseruse_bench.records.base import Record
from browseruse_bench.records.label import REASON_TAGS, VERDICTS, Label, Verdict


class Labeller(Record):
    """What one person said."""

    name: str
    n: int
    by_verdict: dict[Verdict, int]
    n_hard: int
    n_not_blind: int
    """Said after being shown what another one said; in no figure of agreement."""
    median_s: float | None
    """None: no time is known."""


class Pair(Record):
    """Two people, on what both labelled blind."""

    one: str
    other: str
    agreement: Agreement


class PartCount(Record):
    """Tasks of a part that somebody labelled."""

    part: Part
    n_tasks: int
    by_verdict: dict[Verdict, int] | None
    """By what most of their labellers say; None: sealed."""
    n_split: int | None
    """Without such a majority."""


class StratumShare(Record):
    """How many of a stratum are suitable."""

    name: str
    n_all: int
    """Tasks of the corpus that are in it."""
    n_drawn: int
    suitable: Share


class CorpusShare(Record):
    """How many tasks of the corpus are suitable, by the sample that was drawn from it."""

    suitable: Share
    """Weighted by stratum."""
    n_unlabelled: int
    """Drawn tasks without a label that can be read: not labelled yet, sealed, or split."""
    strata_unlabelled: tuple[str, ...]
    """Strata of which nothing is labelled: the share says nothing of them."""
    strata: tuple[StratumShare, ...]


class SourceShare(Record):
    """The same for what came from one source."""

    source: str
    suitable: Share


class Difference(Record):
    """A task of which people say different things."""

    task: str
    text: str
    said: dict[str, Verdict]
    reasons: dict[str, str]


class LabelReport(Record):
    """All of it."""

    labellers: tuple[Labeller, ...]
    parts: tuple[PartCount, ...]
    pairs: tuple[Pair, ...]
    alpha: Coefficient | None
    """Of all labellers together; None: no task has two blind labels."""
    corpus: CorpusShare | None
    """None: no sample was drawn, or nothing of it is labelled."""
    sources: tuple[SourceShare, ...]
    """Empty where there is one source only. The label may nearly follow the source."""
    tags: dict[str, dict[Verdict, int]]
    """Reason tag -> verdict -> labels."""
    differences: tuple[Difference, ...]


def label_report(store: LabelStore) -> LabelReport:
    """The report on a folder of labels."""
    store.refresh()
    labels = store.labels()
    truths = _truths(labels)
    draw = last_draw(store)
    return LabelReport(
        labellers=_labellers(labels),
        parts=tuple(_part(store, part, truths) for part in PARTS),
        pairs=pairs(labels),
        alpha=_alpha(labels),
        corpus=_corpus(draw, truths) if draw else None,
        sources=_sources(store, truths),
        tags={
            tag: _verdicts(x.verdict for x in labels if tag in x.tags)
            for tag in REASON_TAGS
            if any(tag in x.tags for x in labels)
        },
        differences=_differences(store, labels),
    )


def pairs(labels: Sequence[Label]) -> tuple[Pair, ...]:
    """Every two labellers who labelled something in common, blind both."""
    by: dict[str, dict[str, Verdict]] = {}
    for label in labels:
        if label.blind:
            by.setdefault(label.labeller, {})[label.task] = label.verdict
    found: list[Pair] = []
    for one, other in itertools.combinations(sorted(by), 2):
        common = by[one].keys() & by[other].keys()
        if common:
            things = [
                Labelled(truth=by[one][key], verdict=by[other][key], cluster=key)
                for key in sorted(common)
            ]
            found.append(Pair(one=one, other=other, agreement=agreement(things, VERDICTS)))
    return tuple(found)


def _alpha(labels: Sequence[Label]) -> Coefficient | None:
    by: dict[str, list[str]] = {}
    for label in labels:
        if label.blind:
            by.setdefault(label.task, []).append(label.verdict)
    several = [(key, said) for key, said in by.items() if len(said) > 1]
    return alpha(several) if several else None


def _truths(labels: Iterable[Label]) -> dict[str, Verdict | None]:
    """Task -> what most of its labellers say; None: there is no majority."""
    by: dict[str, list[Verdict]] = {}
    for label in labels:
        by.setdefault(label.task, []).append(label.verdict)
    return {key: majority(said) for key, said in by.items()}


def _verdicts(said: Iterable[Verdict]) -> dict[Verdict, int]:
    counts = Counter(said)
    return {verdict: counts[verdict] for verdict in VERDICTS}


def _labellers(labels: Sequence[Label]) -> tuple[Labeller, ...]:
    found: list[Labeller] = []
    for name in sorted({label.labeller for label in labels}):
        own = [label for label in labels if label.labeller == name]
        seconds = [label.seconds for label in own if label.seconds is not None]
        found.append(
            Labeller(
                name=name,
                n=len(own),
                by_verdict=_verdicts(label.verdict for label in own),
                n_hard=sum(label.hard is True for label in own),
                n_not_blind=sum(not label.blind for label in own),
                median_s=median(seconds) if seconds else None,
            )
        )
    return tuple(found)


def _part(store: LabelStore, part: Part, truths: Mapping[str, Verdict | None]) -> PartCount:
    tasks = {key for key, _ in store.given() if store.part_of(key) == part}
    if part == "sealed":
        return PartCount(part=part, n_tasks=len(tasks), by_verdict=None, n_split=None)
    said: list[Verdict | None] = [truths[key] for key in tasks]
    return PartCount(
        part=part,
        n_tasks=len(tasks),
        by_verdict=_verdicts(verdict for verdict in said if verdict),
        n_split=said.count(None),
    )


def _corpus(draw: Draw, truths: Mapping[str, Verdict | None]) -> CorpusShare | None:
    known: dict[str, list[Verdict | None]] = {
        name: [truths[key] for key in stratum.keys if truths.get(key)]
        for name, stratum in draw.strata.items()
    }
    # What is labelled of a stratum is a random part of what was drawn of it, and stands for all.
    weighted: list[tuple[Verdict | None, float]] = [
        (verdict, draw.strata[name].n_all / len(said))
        for name, said in known.items()
        for verdict in said
    ]
    if not weighted:
        return None
    return CorpusShare(
        suitable=_suitable(weighted),
        n_unlabelled=sum(len(s.keys) for s in draw.strata.values()) - len(weighted),
        strata_unlabelled=tuple(name for name, said in known.items() if not said),
        strata=tuple(
            StratumShare(
                name=name,
                n_all=stratum.n_all,
                n_drawn=len(stratum.keys),
                suitable=_suitable([(verdict, 1.0) for verdict in known[name]]),
            )
            for name, stratum in draw.strata.items()
        ),
    )


def _suitable(said: Iterable[tuple[Verdict | None, float]]) -> Share:
    """A weighted share with an interval that asks no more than that tasks are independent."""
    return ratios.share(
        ratios.Part(weight * (verdict == "suitable"), weight) for verdict, weight in said
    )


def _sources(store: LabelStore, truths: Mapping[str, Verdict | None]) -> tuple[SourceShare, ...]:
    by: dict[str, list[tuple[Verdict | None, float]]] = {}
    for key, verdict in truths.items():
        if verdict is not None:
            by.setdefault(store.task(key).source, []).append((verdict, 1.0))
    if len(by) < 2:
        return ()
    return tuple(SourceShare(source=name, suitable=_suitable(by[name])) for name in sorted(by))


def _differences(store: LabelStore, labels: Sequence[Label]) -> tuple[Difference, ...]:
    by: dict[str, list[Label]] = {}
    for label in sorted(labels, key=lambda label: (label.task, label.labeller)):
        by.setdefault(label.task, []).append(label)
    return tuple(
        Difference(
            task=key,
            text=store.task(key).text,
            said={label.labeller: label.verdict for label in said},
            reasons={label.labeller: label.reason for label in said},
        )
        for key, said in by.items()
        if len({label.verdict for label in said}) > 1
    )
