"""Gradings of one frozen trace that disagree, two by two, as a reader wants them: side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from browseruse_bench.records.base import Record
from browseruse_bench.records.judgement import Finding, Integrity, Judgement


def judge_name(judgement: Judgement) -> str:
    """Who graded, for people: the models that were asked, by their labels, and the rules."""
    models = dict.fromkeys(usage.model for usage in judgement.usage)
    return f"{', '.join(models)} ({judgement.protocol})" if models else judgement.protocol


class Side(Record):
    """What one grading says."""

    judge: str
    """See `judge_name`."""
    sample: int
    finding: Finding | None = None
    """Of the item; None where it is about integrity."""
    integrity: tuple[Integrity, ...] = ()
    """Flags that count; empty where it is about an item, or none was raised."""


class Disagreement(Record):
    """Two gradings of one trace that disagree about credit, or about integrity."""

    task_id: str
    attempt: int
    trace_key: str
    item: str | None
    """None: about integrity."""
    credit: Side
    """Met, or without a flag."""
    no_credit: Side


def about_item(judgements: Iterable[Judgement], item: str) -> tuple[Disagreement, ...]:
    """Pairs of gradings of one trace of which one gives credit for the item.

    Each grading is in one pair at most, so every reading of the rarer kind is there once.

    Args:
        judgements: of one task, of one judge or of several.
        item: an item that each graded one has a finding for.
    """

    def side(judgement: Judgement) -> tuple[bool, Side]:
        finding = next(f for f in judgement.findings or () if f.item == item)
        return finding.status == "met", _side(judgement, finding=finding)

    return _pairs(judgements, item, side)


def about_integrity(judgements: Iterable[Judgement]) -> tuple[Disagreement, ...]:
    """The same, of which one has a flag that makes the points 0."""

    def side(judgement: Judgement) -> tuple[bool, Side]:
        flags = tuple(i for i in judgement.integrity if any(c.holds for c in i.citations))
        return not flags, _side(judgement, integrity=flags)

    return _pairs(judgements, None, side)


def _side(
    judgement: Judgement, *, finding: Finding | None = None, integrity: tuple[Integrity, ...] = ()
) -> Side:
    return Side(
        judge=judge_name(judgement), sample=judgement.sample, finding=finding, integrity=integrity
    )


def _pairs(
    judgements: Iterable[Judgement],
    item: str | None,
    side: Callable[[Judgement], tuple[bool, Side]],
) -> tuple[Disagreement, ...]:
    traces: dict[tuple[str, int, str], tuple[list[Side], list[Side]]] = {}
    for judgement in judgements:
        if judgement.status == "graded":
            trace = (judgement.task_id, judgement.attempt, judgement.trace_key)
            credit, said = side(judgement)
            traces.setdefault(trace, ([], []))[0 if credit else 1].append(said)
    return tuple(
        Disagreement(
            task_id=task_id,
            attempt=attempt,
            trace_key=trace_key,
            item=item,
            credit=credit,
            no_credit=no_credit,
        )
        for (task_id, attempt, trace_key), sides in sorted(traces.items())
        for credit, no_credit in zip(*(sorted(s, key=_order) for s in sides), strict=False)
    )


def _order(side: Side) -> tuple[int, str]:
    return side.sample, side.judge
