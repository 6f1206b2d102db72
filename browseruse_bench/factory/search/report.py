"""A search as people read it: what was shown, what it rests on, what it cost."""

from __future__ import annotations

from collections.abc import Sequence

from browseruse_bench.factory.search.decision import p_text
from browseruse_bench.factory.search.examples import PARTS
from browseruse_bench.factory.search.figures import Figures
from browseruse_bench.factory.search.labelled import People
from browseruse_bench.factory.search.result import Result, Version
from browseruse_bench.measure.agreement import Coefficient
from browseruse_bench.records.label import VERDICTS
from browseruse_bench.records.markdown import verbatim
from browseruse_bench.report.render import (
    NOTHING,
    Table,
    markdown_table,
    markdown_text,
    money,
    number,
)


def tables(result: Result) -> list[Table]:
    """The tables of a search."""
    found = [_labels(result), _versions(result)]
    if result.outcome is not None:
        found.append(
            figures_table(
                "Chosen and first version",
                [
                    (f"{result.outcome.id}, selection", result.outcome.selection),
                    (f"{result.outcome.id}, validation", result.outcome.validation),
                    (f"{result.outcome.first_id}, validation", result.outcome.first_validation),
                ],
            )
        )
    return found


def sentences(result: Result) -> list[str]:
    """What a search came to, in words."""
    found = [result.decision.sentence + "."]
    if result.outcome is not None:
        found.append(_capital(result.outcome.drop_sentence) + ".")
        if result.outcome.gain_sentence:
            found.append(_capital(result.outcome.gain_sentence) + ".")
        found += leanings([(result.outcome.id, result.outcome.selection)])
    if result.decision.too_few_found:
        found.append(
            f"Not to be chosen, as they are shown to find fewer than "
            f"{100 * result.decision.recall_floor:.0f}% of the suitable tasks: "
            f"{', '.join(result.decision.too_few_found)}."
        )
    found.append(people_sentence(result.people))
    if result.n_split:
        found.append(
            f"{result.n_split} tasks are left out: their labellers differ, and no verdict has "
            "a majority."
        )
    if result.n_proposals_silent:
        found.append(
            f"{result.n_proposals_silent} of {result.n_proposals} replies of the proposer could "
            "not be used."
        )
    found.append(
        f"McNemar's exact test; p of pairs is corrected for {result.decision.n_pairs} pairs "
        f"(Holm). Everything that this rests on cost {money(result.cost_usd, n_unknown=1)}."
    )
    return found


def markdown(result: Result) -> str:
    """report.md of a search."""
    parts = [
        f"# Prompt search {result.id}\n",
        f"{result.method}; labeller {markdown_text(result.labeller)}, proposer "
        f"{markdown_text(result.proposer)}.\n",
        *(f"{markdown_text(sentence)}\n" for sentence in sentences(result)),
    ]
    for table in tables(result):
        parts += [f"## {table.title}\n", markdown_table(table)]
    chosen = next((v for v in result.versions if v.id == result.decision.chosen), None)
    if chosen is not None:
        parts += [f"## Version {chosen.id}\n", verbatim(chosen.text) + "\n"]
    return "\n".join(parts)


def people_sentence(people: People) -> str:
    """How far people agree among themselves."""
    if not people.n_pairs:
        return (
            "No task has labels of two people, so how far people agree among themselves, which no "
            "prompt can be held to surpass, is not known."
        )
    return (
        f"People agree with each other on {people.agreement.text} of {people.n_pairs} pairs of "
        f"labels, {people.n_tasks} tasks; alpha {coefficient(people.alpha)}."
    )


def leanings(named: Sequence[tuple[str, Figures]]) -> list[str]:
    """A sentence for each that leans to one side."""
    return [
        f"{name} is {f.leaning}: it rejects {f.n_rejected} tasks that people accept, and accepts "
        f"{f.n_accepted} that people reject ({p_text(f.p_leaning)})."
        for name, f in named
        if f.leaning
    ]


def figures_table(title: str, named: Sequence[tuple[str, Figures]]) -> Table:
    """Figures side by side."""
    return Table(
        title=title,
        headers=(
            "which",
            "tasks",
            "agrees",
            "kappa",
            *(f"finds {verdict}" for verdict in VERDICTS),
            "says suitable",
            "no label",
            "per 1,000 tasks",
            "per 1,000 suitable",
            "s per call",
        ),
        rows=tuple(
            (
                name,
                str(f.agreement.of),
                f.agreement.text,
                coefficient(f.kappa),
                *(f.recall[verdict].text for verdict in VERDICTS),
                f.said_suitable.text,
                str(f.n_silent),
                money(f.usd_per_thousand, n_unknown=1),
                money(f.usd_per_thousand_suitable, n_unknown=1)
                if f.said_suitable.hits
                else NOTHING,
                number(f.seconds, 2),
            )
            for name, f in named
        ),
        right=frozenset({1, 8, 9, 10, 11}),
    )


def coefficient(value: Coefficient) -> str:
    """As in `0.61 (0.48 to 0.73)`."""
    if value.value is None:
        return NOTHING
    if value.low is None or value.high is None:
        return number(value.value, 2)
    return f"{value.value:.2f} ({value.low:.2f} to {value.high:.2f})"


def _labels(result: Result) -> Table:
    return Table(
        title="Labels",
        headers=("part", "tasks", *VERDICTS),
        rows=tuple(
            (
                part,
                str(sum(result.counts[part].values())),
                *(str(result.counts[part].get(verdict, 0)) for verdict in VERDICTS),
            )
            for part in PARTS
        ),
        right=frozenset({1, 2, 3, 4}),
    )


def _versions(result: Result) -> Table:
    return Table(
        title="Versions, as they agree on the selection part",
        headers=(
            "version",
            "parent",
            "agrees",
            "finds suitable",
            "cost",
            "behind chosen",
            "p",
            "p, all pairs",
            "change",
        ),
        rows=tuple(
            (
                version.id,
                version.parent or NOTHING,
                version.agreement.text,
                version.found.text,
                money(version.cost_usd, n_unknown=1),
                *_behind(result, version),
                version.change or NOTHING,
            )
            for version in sorted(
                result.versions,
                key=lambda v: (v.given_up, -(v.agreement.rate or 0), v.id),
            )
        ),
        right=frozenset({4, 5, 6, 7}),
    )


def _behind(result: Result, version: Version) -> tuple[str, str, str]:
    rival = next((r for r in result.decision.rivals if r.version == version.id), None)
    if version.id == result.decision.chosen:
        return ("chosen", NOTHING, NOTHING)
    if rival is None:
        told = f"given up after {version.agreement.of}" if version.given_up else NOTHING
        return (told, NOTHING, NOTHING)
    return (
        f"{100 * rival.difference:.1f} ({100 * rival.low:.1f} to {100 * rival.high:.1f})",
        p_text(rival.p).removeprefix("p = "),
        p_text(rival.p_all).removeprefix("p = "),
    )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
