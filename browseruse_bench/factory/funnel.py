"""The funnel: what became of everything that came in, stage by stage, and what it cost."""

from __future__ import annotations

import hashlib
import heapq
import json
from collections.abc import Iterator, Sequence
from itertools import pairwise

from browseruse_bench.factory.entry import Entry
from browseruse_bench.factory.pipeline import Pipeline
from browseruse_bench.factory.stage import Flow, Source, Step
from browseruse_bench.records.base import Record
from browseruse_bench.records.run import Tokens
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
    withdrawn: int
    """Units that settled here once and do not come in any more; they are in no other figure of
    the flow."""
    cost_usd: float | None
    """What the calls for its units cost, those that failed, older versions and withdrawn units
    too, each call once, at the prices of then; None: not known in full."""
    known_usd: float
    kept_usd: float | None
    """The same for each unit that it keeps; None: not known, or nothing is kept."""
    so_far_usd: float | None
    """What this and all stages before it cost for each unit that it keeps."""
    tokens: Tokens
    seconds: float
    """Sum over its units, which are worked on at the same time; of a source, how long it ran."""


class Sample(Record):
    """One dropped unit, for a person to look at."""

    unit: str
    reason: str
    evidence: str
    """As JSON."""


def funnel(pipeline: Pipeline) -> tuple[Row, ...]:
    """One row for each stage of the pipeline, in order."""
    rows: list[Row] = []
    before: float | None = 0.0
    for step in pipeline.steps:
        made = row(pipeline, step)
        before = None if made.cost_usd is None or before is None else before + made.cost_usd
        rows.append(made.model_copy(update={"so_far_usd": _each(before, made.flow.kept)}))
    return tuple(rows)


def row(pipeline: Pipeline, step: Step) -> Row:
    """The figures of one stage, by its journal; `so_far_usd` is the funnel's to say."""
    if isinstance(step, Source):
        flow, usage, withdrawn = pipeline.flow(step), (), 0
        seconds = pipeline.folder(step).seconds
    elif pipeline.before(step) is None or not pipeline.ran(step):
        with pipeline.folder(step).index(step.version) as index:
            flow, usage, withdrawn = Flow(), index.usage, index.n_settled
            seconds = index.seconds
    else:
        with pipeline.standing(step) as standing:
            flow, usage, withdrawn = standing.flow(), standing.usage, standing.n_withdrawn
            seconds = standing.seconds
    costs = [use.cost_usd for use in usage]
    known = [cost for cost in costs if cost is not None]
    cost_usd = sum(known) if len(known) == len(costs) else None
    return Row(
        stage=step.name,
        version=step.version,
        flow=flow,
        withdrawn=withdrawn,
        cost_usd=cost_usd,
        known_usd=sum(known),
        kept_usd=_each(cost_usd, flow.kept),
        so_far_usd=None,
        tokens=Tokens.of(usage),
        seconds=round(seconds, 1),
    )


def _each(cost_usd: float | None, n: int) -> float | None:
    return None if cost_usd is None or not n else cost_usd / n


def broken_boundaries(rows: Sequence[Row]) -> list[str]:
    """Where a stage does not take exactly what the one before it keeps; empty: nowhere."""
    return [
        f"{after.stage} takes {after.flow.n_in}, and {before.stage} keeps {before.flow.kept}"
        for before, after in pairwise(rows)
        if after.flow.n_in != before.flow.kept
    ]


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
    if isinstance(step, Source) or pipeline.before(step) is None or not pipeline.ran(step):
        return
    with pipeline.standing(step) as standing:
        yield from standing.outcomes()


def _chance(key: str) -> str:
    return hashlib.sha256(f"sample\0{key}".encode()).hexdigest()


def funnel_table(rows: Sequence[Row]) -> Table:
    """The funnel, one line a stage."""
    return Table(
        title="Funnel",
        headers=(
            *("stage", "in", "kept", "dropped", "failed", "pending", "withdrawn"),
            *("cost", "each kept", "all so far, each", "seconds"),
        ),
        rows=tuple(
            (
                row.stage,
                str(row.flow.n_in),
                count_and_share(row.flow.kept, row.flow.n_in),
                counts(row.flow.dropped),
                str(row.flow.failed),
                str(row.flow.pending),
                str(row.withdrawn),
                money(row.cost_usd, row.known_usd, 1),
                _money(row.kept_usd),
                _money(row.so_far_usd),
                number(row.seconds),
            )
            for row in rows
        ),
        right=frozenset({1, 4, 5, 6, 7, 8, 9, 10}),
    )


def _money(usd: float | None) -> str:
    return "not known" if usd is None else money(usd)


def stage_report(pipeline: Pipeline, step: Step) -> str:
    """report.md of a stage: counts by reason, cost, seconds, sampled drops with their evidence."""
    found = row(pipeline, step)
    facts = Table(
        title="",
        headers=("what", "value"),
        rows=(
            ("units", found.flow.sentence),
            ("withdrawn", f"{found.withdrawn} units that settled here do not come in any more"),
            ("version", str(found.version)),
            ("cost", money(found.cost_usd, found.known_usd, 1)),
            ("cost for each unit kept", _money(found.kept_usd)),
            (
                "tokens",
                f"in {found.tokens.uncached}, cached {found.tokens.cached}, "
                f"out {found.tokens.output}, reasoning {found.tokens.reasoning}",
            ),
            ("seconds", number(found.seconds)),
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
