"""The report on labels, and what a look came to, for people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from browseruse_bench.factory.labels.gate import CANNOT, Look
from browseruse_bench.factory.labels.report import LabelReport, Pair
from browseruse_bench.measure.agreement import Agreement, Coefficient
from browseruse_bench.measure.ratios import Share
from browseruse_bench.records.label import VERDICTS
from browseruse_bench.report.render import NOTHING, Table, number, percent, span

FEW = 10
"""With fewer suitable tasks a recall of 100 % has an interval of 30 points and more."""


def tables(found: LabelReport) -> list[Table]:
    """All of a report."""
    return [
        _labellers(found),
        _parts(found),
        *([pair_table(found.pairs, found.alpha)] if found.pairs else []),
        *(confusion(f"{p.one} (rows) and {p.other}", p.agreement) for p in found.pairs),
        *_corpus(found),
        *_sources(found),
        *_tags(found),
        *_differences(found),
    ]


def _labellers(found: LabelReport) -> Table:
    return Table(
        title="Labellers, without what is sealed",
        headers=("labeller", "labels", *VERDICTS, "hard", "not blind", "median s"),
        rows=tuple(
            (
                each.name,
                str(each.n),
                *(str(each.by_verdict[verdict]) for verdict in VERDICTS),
                str(each.n_hard),
                str(each.n_not_blind),
                number(each.median_s),
            )
            for each in found.labellers
        ),
        right=frozenset(range(1, 8)),
    )


def _parts(found: LabelReport) -> Table:
    return Table(
        title="Labelled tasks by part, by what most of their labellers say",
        headers=("part", "tasks", *VERDICTS, "no majority"),
        rows=tuple(
            (
                each.part,
                str(each.n_tasks),
                *(
                    NOTHING if each.by_verdict is None else str(each.by_verdict[verdict])
                    for verdict in VERDICTS
                ),
                NOTHING if each.n_split is None else str(each.n_split),
            )
            for each in found.parts
        ),
        right=frozenset(range(1, 6)),
    )


def pair_table(pairs: Sequence[Pair], among: Coefficient | None) -> Table:
    """How far each two people agree."""
    rows = [
        (
            pair.one,
            pair.other,
            str(pair.agreement.n),
            share(pair.agreement.accuracy),
            coefficient(pair.agreement.kappa),
        )
        for pair in pairs
    ]
    if among is not None and len(pairs) > 1:
        rows.append(("all", "(alpha)", NOTHING, NOTHING, coefficient(among)))
    return Table(
        title="Agreement of people on tasks that both labelled blind, in parentheses 95 %",
        headers=("one", "other", "tasks", "agree", "kappa"),
        rows=tuple(rows),
        right=frozenset({2, 3, 4}),
    )


def confusion(title: str, found: Agreement) -> Table:
    """Who said what where the other said what."""
    return Table(
        title=title,
        headers=("", *found.classes),
        rows=tuple(
            (label, *map(str, row))
            for label, row in zip(found.classes, found.confusion, strict=True)
        ),
        right=frozenset(range(1, 1 + len(found.classes))),
    )


def _corpus(found: LabelReport) -> Iterable[Table]:
    if found.corpus is None:
        return
    corpus = found.corpus
    rows = [
        (s.name, str(s.n_all), str(s.n_drawn), f"{s.suitable.could:.0f}", share(s.suitable))
        for s in corpus.strata
    ]
    if len(rows) > 1:
        n_all = sum(s.n_all for s in corpus.strata)
        n_drawn = sum(s.n_drawn for s in corpus.strata)
        n = str(n_drawn - corpus.n_unlabelled)
        rows.append(("the corpus, weighted", str(n_all), str(n_drawn), n, share(corpus.suitable)))
    lacking = (
        f"; nothing is known of {', '.join(corpus.strata_unlabelled)}"
        if corpus.strata_unlabelled
        else ""
    )
    yield Table(
        title=f"Suitable tasks of the corpus, by the drawn sample{lacking}",
        headers=("stratum", "tasks", "drawn", "known", "suitable"),
        rows=tuple(rows),
        right=frozenset({1, 2, 3, 4}),
    )


def _sources(found: LabelReport) -> Iterable[Table]:
    if found.sources:
        yield Table(
            title="Suitable tasks by source: a prompt can learn the source instead of the label",
            headers=("source", "known", "suitable"),
            rows=tuple(
                (s.source or NOTHING, f"{s.suitable.could:.0f}", share(s.suitable))
                for s in found.sources
            ),
            right=frozenset({1, 2}),
        )


def _tags(found: LabelReport) -> Iterable[Table]:
    if found.tags:
        yield Table(
            title="Reason tags, labels by verdict",
            headers=("tag", *VERDICTS),
            rows=tuple(
                (tag, *(str(counts[verdict]) for verdict in VERDICTS))
                for tag, counts in found.tags.items()
            ),
            right=frozenset({1, 2, 3}),
        )


def _differences(found: LabelReport) -> Iterable[Table]:
    if found.differences:
        yield Table(
            title="Tasks of which people say different things",
            headers=("task", "text", "said"),
            rows=tuple(
                (
                    each.task[:12],
                    each.text[:80],
                    ", ".join(f"{who}: {verdict}" for who, verdict in each.said.items()),
                )
                for each in found.differences
            ),
        )


def look_tables(found: Look) -> list[Table]:
    """What a look came to."""
    result = found.result.agreement
    rows = [
        ("tasks", str(result.n)),
        ("agreement, in parentheses 95 %", share(result.accuracy)),
        ("kappa", coefficient(result.kappa)),
        *(
            (f"recall of {verdict}", share(result.of(verdict).recall))
            for verdict in result.classes
            if result.of(verdict).recall.rate is not None
        ),
        ("without a verdict of the model", str(result.missing.verdict)),
        ("left out: labellers differ", str(found.result.n_split)),
        ("looked at before", str(found.result.n_before)),
        ("receipt", f"{found.receipt.n}:{found.receipt.chain}"),
        ("noted outside", str(found.witness or "nowhere: it could not be written")),
    ]
    title = f"Sealed labels, {found.opened.candidate.name} with {found.opened.candidate.model}"
    return [
        Table(title=title, headers=("", ""), rows=tuple(rows)),
        confusion("Labels (rows) and the model", result),
    ]


def look_sentences(found: Look) -> list[str]:
    """What goes with it."""
    first = (
        "This is the first look at these labels."
        if not found.result.n_before
        else f"This is not a first look: {found.result.n_before} of these labels had been looked "
        "at before, and what was chosen since may have been chosen by them."
    )
    n = round(found.result.agreement.of("suitable").truth_rate.happened)
    few = (
        [
            f"Only {n} of the {found.result.agreement.n} sealed tasks are suitable: too few to tell "
            "how many of the suitable ones are found."
        ]
        if n < FEW
        else []
    )
    return [
        first,
        *few,
        "Keep the receipt: it shows later that the record was not cut off.",
        CANNOT,
    ]


def share(found: Share) -> str:
    """As in `96.7% (91.7 to 98.7)`."""
    if found.rate is None:
        return NOTHING
    return f"{percent(found.rate)} ({span(found.low, found.high, scale=100)})"


def coefficient(found: Coefficient) -> str:
    """As in `0.897 (0.8 to 1.0)`."""
    if found.value is None:
        return NOTHING
    if found.low is None or found.high is None:
        return number(found.value, 3)
    return f"{number(found.value, 3)} ({number(found.low, 2)} to {number(found.high, 2)})"
