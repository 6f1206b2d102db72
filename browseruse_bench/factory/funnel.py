"""The funnel: what became of everything that came in, stage by stage, and what it cost."""

from __future__ import annotations

import hashlib
import heapq
import json
from collections.abc import Iterator, Sequence

from browseruse_bench.factory.pipeline import Pipeline
from browseruse_bench.factory.stage import Flow, Source, Step
from browseruse_bench.factory.stage_folder import Entry
from browseruse_bench.records.base import Record
from browseruse_bench.records.run import Tokens
from browseruse_bench.records.trace import Usage, summed
from browseruse_bench.report.render import (
    Table,
    count_and_share,
    counts,
    markdown_table,
    markdown_text,
    money,
    number,
)

SAMPLED = 10
"""Drops that a report shows."""


class Row(Record):
    """One stage of the funnel."""

    stage: str
    version: int
    flow: Flow
    cost_usd: float | None
    """What its models were paid, at the prices of then; None: not known in full."""
    known_usd: float
    tokens: Tokens
    seconds: float
    """Sum over its units; units are worked on at the same time."""


class Sample(Record):
    """One dropped unit, for a person to look at."""

    unit: str
    reason: str
    evidence: str
    """As JSON."""


def funnel(pipeline: Pipeline) -> tuple[Row, ...]:
    """One row for each stage of the pipeline, in order."""
    return tuple(row(pipeline, step) for step in pipeline.steps)


def row(pipeline: Pipeline, step: Step) -> Row:
    """The figures of one stage, by its journal."""
    usage: list[Usage] = []
    seconds = 0.0
    for entry in _entries(pipeline, step):
        usage += entry.usage
        seconds += entry.seconds
    costs = [use.cost_usd for use in summed(usage)]
    known = [cost for cost in costs if cost is not None]
    return Row(
        stage=step.name,
        version=step.version,
        flow=pipeline.flow(step),
        cost_usd=sum(known) if len(known) == len(costs) else None,
        known_usd=sum(known),
        tokens=Tokens.of(usage),
        seconds=round(seconds, 1),
    )


def samples(pipeline: Pipeline, step: Step) -> Sequence[Sample]:
    """Ten dropped units, the same ones for the same journal."""
    drops = (entry for entry in _entries(pipeline, step) if entry.status == "dropped")
    drawn = heapq.nsmallest(SAMPLED, drops, key=lambda entry: _chance(entry.unit))
    return [
        Sample(
            unit=entry.unit,
            reason=entry.reason or "",
            evidence=json.dumps(entry.evidence or {}, ensure_ascii=False, sort_keys=True),
        )
        for entry in drawn
    ]


def _entries(pipeline: Pipeline, step: Step) -> Iterator[Entry]:
    if not isinstance(step, Source):
        yield from pipeline.folder(step).entries(step.version)


def _chance(key: str) -> str:
    return hashlib.sha256(f"sample\0{key}".encode()).hexdigest()


def funnel_table(rows: Sequence[Row]) -> Table:
    """The funnel, one line a stage."""
    return Table(
        title="Funnel",
        headers=("stage", "in", "kept", "dropped", "failed", "pending", "cost", "unit seconds"),
        rows=tuple(
            (
                row.stage,
                str(row.flow.n_in),
                count_and_share(row.flow.kept, row.flow.n_in),
                counts(row.flow.dropped),
                str(row.flow.failed),
                str(row.flow.pending),
                money(row.cost_usd, row.known_usd, 1),
                number(row.seconds),
            )
            for row in rows
        ),
        right=frozenset({1, 4, 5, 6, 7}),
    )


def stage_report(pipeline: Pipeline, step: Step) -> str:
    """report.md of a stage: counts by reason, cost, seconds, sampled drops with their evidence."""
    found = row(pipeline, step)
    facts = Table(
        title="",
        headers=("what", "value"),
        rows=(
            ("units", found.flow.sentence),
            ("version", str(found.version)),
            ("cost", money(found.cost_usd, found.known_usd, 1)),
            (
                "tokens",
                f"in {found.tokens.uncached}, cached {found.tokens.cached}, "
                f"out {found.tokens.output}, reasoning {found.tokens.reasoning}",
            ),
            ("seconds over all units", number(found.seconds)),
        ),
    )
    reasons = Table(
        title="Dropped",
        headers=("reason", "units"),
        rows=tuple((reason, str(n)) for reason, n in found.flow.dropped.items()),
        right=frozenset({1}),
    )
    drawn = Table(
        title="Sampled drops",
        headers=("unit", "reason", "evidence"),
        rows=tuple((s.unit[:12], s.reason, s.evidence[:500]) for s in samples(pipeline, step)),
    )
    parts = [f"# {markdown_text(step.name)}\n", markdown_table(facts)]
    for table in (reasons, drawn):
        if table.rows:
            parts += [f"## {table.title}\n", markdown_table(table)]
    if more := step.report(pipeline.folder(step).path):
        parts.append(more)
    return "\n".join(parts)
