"""The stability of a run's verdicts, as tables and as Markdown with disagreements side by side."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import groupby

from browseruse_bench.eval.disagreements import Disagreement, Side
from browseruse_bench.measure.flips import Claim, Flips
from browseruse_bench.measure.ratios import Share
from browseruse_bench.measure.variance import Components
from browseruse_bench.records.base import canonical_json
from browseruse_bench.records.judgement import Citation
from browseruse_bench.report.findings import place_of
from browseruse_bench.report.regraded import JudgeRow
from browseruse_bench.report.render import (
    NOTHING,
    Table,
    counts,
    markdown_table,
    markdown_text,
    money,
    number,
)
from browseruse_bench.report.stability import Between, Stability

ITEMS_SHOWN = 20
"""In a terminal; Markdown and JSON have all that flip."""
PAIRS_SHOWN = 3
"""Side by side for one item, in Markdown; JSON has all."""


def tables(found: Stability) -> list[Table]:
    """What a terminal shows."""
    made = [_facts(found)]
    for row in found.judges:
        made += _judge_tables(row, found, n_items=ITEMS_SHOWN)
    if found.between is not None:
        made.append(_between_table(found.between))
    return made


def markdown(found: Stability) -> str:
    """All tables, and the disagreements side by side."""
    lines = [f"# Stability of {markdown_text(found.run_id)}", "", markdown_table(_facts(found))]
    for row in found.judges:
        for table in _judge_tables(row, found, n_items=None):
            lines += [f"## {markdown_text(table.title)}", "", markdown_table(table)]
    if found.between is not None:
        table = _between_table(found.between)
        lines += [f"## {markdown_text(table.title)}", "", markdown_table(table)]
    if found.disagreements:
        lines += ["## Disagreements side by side", "", *_side_by_side(found)]
    return "\n".join(lines).rstrip() + "\n"


def _facts(found: Stability) -> Table:
    agent = found.agent + (f", {found.model}" if found.model else "")
    rows = [
        ("run", f"{found.run_id} of {agent} on {found.benchmark}, split {found.split}"),
        (
            "traces",
            f"{found.n_traces} of {found.n_fit}, of {found.n_tasks} tasks, seed {found.seed}",
        ),
        *([("not regraded", counts(found.skipped))] if found.skipped else []),
        *(
            [("not compared", f"{found.n_idle} traces in which the agent did nothing")]
            if found.n_idle
            else []
        ),
        *(
            [("decided by code", f"{found.n_by_code} items: not compared")]
            if found.n_by_code
            else []
        ),
        *(("note", note) for note in found.notes),
    ]
    return Table(title="", headers=("what", "value"), rows=tuple(rows))


def _judge_tables(row: JudgeRow, found: Stability, *, n_items: int | None) -> list[Table]:
    return [
        _judge_facts(row),
        *_items(row, found.threshold, n_items),
        _flags(row),
    ]


def _judge_facts(row: JudgeRow) -> Table:
    pooled = row.pooled
    success = f"{_rate(row.success.share)} ({_of_pairs(row.success)})"
    rows = [
        ("regrades", f"{row.n_graded} graded, without a grade {counts(row.ungraded)}"),
        *([("too few", f"{row.n_short} traces with fewer than two grades")] if row.n_short else []),
        (
            "flip rate",
            f"{_rate(pooled.here)} of {pooled.n_pairs} item pairs ({pooled.n_items} items, "
            f"{pooled.n_traces} traces, {row.claim.n_comparisons:.0f} independent comparisons)",
        ),
        ("95 %", f"{_span(pooled.here)} for further regrades of these traces"),
        ("95 %", f"{_span(pooled.new_tasks)} for other tasks ({pooled.n_tasks} tasks)"),
        ("met to violated", f"{_rate(pooled.post)} (95 % {_span(pooled.post)})"),
        ("claim", claim_sentence(row.claim)),
        ("flags", f"{_rate(row.flags[0].flips.share)} (95 % {_span(row.flags[0].flips.share)})"),
        ("success flips", success),
        ("points apart", f"{number(row.points_apart, 2)} between two regrades, on average"),
        *_variance(row.variance),
        ("prior", _prior(row)),
        ("judge's cost", _cost(row)),
        ("judge key", row.judge_key),
        *([("asked", canonical_json(row.parameters))] if row.parameters else []),
    ]
    return Table(title=f"Judge {row.judge}", headers=("what", "value"), rows=tuple(rows))


def claim_sentence(claim: Claim) -> str:
    """Whether the pooled rate is shown to be below the limit, and what it would take."""
    below = f"below {_percent(claim.limit)}"
    if claim.upper is None:
        return f"nothing was compared; {claim.more_regrades} regrades could show {below}"
    if claim.shown:
        words = f"{below}: shown for these traces (at most {_percent(claim.upper, up=True)})"
    elif claim.ungraded > claim.limit:
        share = _percent(claim.ungraded)
        return f"{below}: not claimed, {share} of the regrades have no grade"
    elif claim.more_regrades is None:
        return f"{below}: not so, as far as can be seen"
    else:
        words = (
            f"{below}: not shown (at most {_percent(claim.upper, up=True)}); "
            f"{claim.more_regrades} more regrades of these traces would show it if the rate stays"
        )
    if claim.more_tasks is None:
        return f"{words}; for other tasks not so, as far as can be seen"
    if claim.more_tasks:
        return f"{words}; for other tasks it takes {claim.more_tasks} more tasks"
    return f"{words}, and for other tasks"


def _variance(found: Components) -> list[tuple[str, str]]:
    """As standard deviations, which are in points."""
    parts = [
        (name, value)
        for name, value in (
            ("judge", found.judge),
            ("run", found.run),
            ("task", found.task),
            ("task and run together", found.task_and_run),
        )
        if value is not None
    ]
    if not parts:
        return [("spread of points", f"{NOTHING}: it takes two graded regrades of a trace")]
    said = ", ".join(f"{name} {math.sqrt(value):.2f}" for name, value in parts)
    cut = f"; below 0 and set to 0: {', '.join(found.truncated)}" if found.truncated else ""
    alone = "" if found.run is not None else "; the run's alone takes two attempts at a task"
    return [("spread of points", f"standard deviations: {said}{cut}{alone}")]


def _prior(row: JudgeRow) -> str:
    prior = row.prior
    how = "fitted to these items" if prior.fitted else "default, too few items to fit one"
    return (
        f"rates of items are drawn towards {_percent(prior.mean)} with the weight of "
        f"{prior.strength:.3g} comparisons (beta-binomial, {how})"
    )


def _cost(row: JudgeRow) -> str:
    total = money(row.cost.cost_usd, row.cost.known_usd, row.cost.n_unknown)
    if not row.cost.cost_usd or not row.n_regrades:
        return total
    return f"{total}, ${row.cost.cost_usd / row.n_regrades:.4f} a regrade"


def _items(row: JudgeRow, threshold: float, n_items: int | None) -> list[Table]:
    flipping = [item for item in row.items if item.flips.credit.n_disagreeing]
    if not flipping:
        return []
    shown = flipping[:n_items]
    n_over = sum(item.over for item in row.items)
    more = f", the first {len(shown)}" if len(shown) < len(flipping) else ""
    title = (
        f"{len(flipping)} of {len(row.items)} items flipped{more}; {n_over} above "
        f"{_percent(threshold)}, to be reworded"
    )
    rows = tuple(
        (
            item.flips.task_id,
            item.flips.item,
            f"{item.weight:g}",
            _percent(item.flips.shrunk),
            _rate(item.flips.credit.share),
            _of_pairs(item.flips.credit),
            _span(item.flips.credit.share),
            _percent(item.flips.post.share.rate),
            "reword" if item.over else "",
        )
        for item in shown
    )
    headers = (
        "task",
        "item",
        "weight",
        "rate, drawn",
        "as seen",
        "flips of pairs",
        "95 %",
        "met to violated",
        "",
    )
    return [Table(title=title, headers=headers, rows=rows, right=frozenset(range(2, 8)))]


def _flags(row: JudgeRow) -> Table:
    rows = tuple(
        (
            flag.flag,
            str(flag.n_raised),
            _percent(flag.flips.share.rate),
            _of_pairs(flag.flips),
            _span(flag.flips.share),
        )
        for flag in row.flags
    )
    return Table(
        title="Integrity flags, worth 100 points each",
        headers=("flag", "raised", "rate", "flips of pairs", "95 %"),
        rows=rows,
        right=frozenset({1, 2, 3, 4}),
    )


def _between_table(found: Between) -> Table:
    pooled = found.pooled
    rows = [
        ("disagree", f"{_rate(pooled.here)} of {pooled.n_pairs} item pairs"),
        ("95 %", f"{_span(pooled.here)} for further regrades of these traces"),
        ("95 %", f"{_span(pooled.new_tasks)} for other tasks"),
        ("each with itself", f"{_percent(found.within)}, on average"),
        ("met to violated", _rate(pooled.post)),
        ("flags", f"{_rate(found.flags)} (95 % {_span(found.flags)})"),
        *(
            (f"{item.task_id} {item.item}", f"{_rate(item.share)} (95 % {_span(item.share)})")
            for item in found.items[:ITEMS_SHOWN]
        ),
    ]
    return Table(title="Between the two judges", headers=("what", "value"), rows=tuple(rows))


def _side_by_side(found: Stability) -> Iterable[str]:
    requirements = {
        (item.flips.task_id, item.flips.item): item.requirement
        for row in found.judges
        for item in row.items
    }
    for (task_id, item), group in groupby(found.disagreements, lambda d: (d.task_id, d.item)):
        pairs = list(group)
        yield f"### {markdown_text(task_id)}: {markdown_text(item or 'integrity')}"
        yield ""
        if item is not None:
            yield markdown_text(requirements.get((task_id, item), ""))
            yield ""
        for pair in pairs[:PAIRS_SHOWN]:
            yield markdown_table(side_by_side(pair))
        if len(pairs) > PAIRS_SHOWN:
            yield f"{len(pairs) - PAIRS_SHOWN} more pairs are in the JSON."
            yield ""


def side_by_side(pair: Disagreement) -> Table:
    """Two gradings that disagree, one in each column."""
    sides = (pair.credit, pair.no_credit)
    rows: list[tuple[str, ...]] = [("graded by", *(f"{s.judge}, #{s.sample}" for s in sides))]
    if pair.item is None:
        rows.append(("flags", *(_flags_said(side) for side in sides)))
    else:
        said = [side.finding for side in sides if side.finding is not None]
        rows += [
            ("status", *(finding.status for finding in said)),
            ("claim", *(finding.claim for finding in said)),
            ("reason", *(finding.reason or NOTHING for finding in said)),
            ("citations", *(_citations(finding.citations) for finding in said)),
        ]
    return Table(
        title=f"{pair.task_id} #{pair.attempt}",
        headers=(f"attempt {pair.attempt}", "credit", "no credit"),
        rows=tuple(rows),
    )


def _flags_said(side: Side) -> str:
    said = [f"{i.flag}: {i.claim} ({_citations(i.citations)})" for i in side.integrity]
    return "; ".join(said) or "none"


def _citations(citations: Sequence[Citation]) -> str:
    return "; ".join(place_of(citation) for citation in citations) or NOTHING


def _percent(share: float | None, *, up: bool = False) -> str:
    """A share with as many digits as a small one needs; `up`: never too small."""
    if share is None:
        return NOTHING
    value = math.ceil(share * 1e4) / 100 if up else 100 * share
    return f"{value:.2f}%" if value < 10 else f"{value:.1f}%"


def _rate(share: Share) -> str:
    return _percent(share.rate)


def _span(share: Share) -> str:
    if share.low is None or share.high is None:
        return NOTHING
    return f"{_percent(share.low)} to {_percent(share.high, up=True)}"


def _of_pairs(flips: Flips) -> str:
    return f"{flips.n_disagreeing} of {flips.n_pairs}"
