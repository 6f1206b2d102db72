"""Runs side by side, in groups of those that may be compared; nothing is ranked across groups."""

from __future__ import annotations

import gc
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from browseruse_bench.benchmarks.load import Benchmark
from browseruse_bench.errors import DataError
from browseruse_bench.eval.evaluate import references
from browseruse_bench.measure.estimates import Effort, Estimates
from browseruse_bench.measure.tally import Figures, Reference
from browseruse_bench.records.base import Record
from browseruse_bench.records.run import Run
from browseruse_bench.records.trace import Limits
from browseruse_bench.report.beside import REPEATS_HEADERS, interval_span, repeats_cells
from browseruse_bench.report.find import benchmark_of
from browseruse_bench.report.render import (
    NOTHING,
    Table,
    count_and_share,
    markdown_table,
    markdown_text,
    money,
    number,
    with_bounds,
)
from browseruse_bench.report.summary import Cost, Summary, placed_of, summary_of
from browseruse_bench.store.run_folder import RunFolder, find_runs


class Terms(Record):
    """What must be equal for two runs to be ranked together."""

    benchmark: str
    revision: str
    split: str
    task_set: str
    n_tasks: int
    success_at: float | None
    protocol: str | None
    """Declared by the benchmark."""
    protocols: tuple[str, ...]
    """Of the judgements."""
    judges: tuple[tuple[str, str], ...]
    evidence_policies: tuple[str, ...]
    stand_in: bool


class Row(Record):
    """One run in its group."""

    rank: int | None
    """By the lower bound, so that a missing verdict never helps; equal bounds share a rank.
    None: nothing is graded, or the judges are mixed.
    """
    run_id: str
    folder: str
    """Below the experiments folder."""
    agent: str
    agent_version: str
    model: str | None
    browser: str
    guard: str
    limits: Limits
    started_at: str
    figures: Figures
    estimates: Estimates
    effort: Effort
    cost: Cost
    marks: tuple[str, ...]
    """What a reader must know: incomplete, partial, mixed judges, flags."""


class Group(Record):
    """Runs that may be ranked together."""

    terms: Terms
    rows: tuple[Row, ...]
    notes: tuple[str, ...]
    """In what the runs differ although they are ranked together."""


class Leaderboard(Record):
    """All groups, and the runs that could not be read."""

    groups: tuple[Group, ...]
    problems: tuple[str, ...]


@dataclass(frozen=True)
class _AtHand:
    """A benchmark that several runs rest on, and what its tasks are compared with."""

    benchmark: Benchmark | None
    note: str
    references: Mapping[str, Reference] | None

    @classmethod
    def of(cls, benchmark: Benchmark | None, note: str) -> _AtHand:
        return cls(benchmark, note, references(benchmark) if benchmark else None)


def build(
    root: Path,
    *,
    benchmark: str | None = None,
    load: Callable[[Run], tuple[Benchmark | None, str]] = benchmark_of,
) -> Leaderboard:
    """The leaderboard of an experiments folder. A run that is damaged drops only itself.

    Args:
        root: the experiments folder.
        benchmark: only the runs of this benchmark; None: all.
        load: gives the benchmark of a run, or None and why it is not at hand.
    """
    with _no_collection():
        groups, problems = _read(root, benchmark, load)
    ordered = sorted(groups.items(), key=lambda pair: (pair[0].benchmark, pair[0].as_line()))
    return Leaderboard(
        groups=tuple(_group(terms, runs, root) for terms, runs in ordered),
        problems=tuple(problems),
    )


@contextmanager
def _no_collection() -> Generator[None]:
    """Python does not look for cycles: records have none, and looking through so many new ones
    is a third of the time.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _read(
    root: Path,
    benchmark: str | None,
    load: Callable[[Run], tuple[Benchmark | None, str]],
) -> tuple[dict[Terms, list[tuple[RunFolder, Summary]]], list[str]]:
    """(the runs by their terms, what could not be read)."""
    at_hand: dict[tuple[str, str, str], _AtHand] = {}
    groups: dict[Terms, list[tuple[RunFolder, Summary]]] = {}
    problems: list[str] = []
    for folder in find_runs(root):
        try:
            run = folder.read_run()
            identity = run.identity
            if benchmark is not None and identity.benchmark != benchmark:
                continue
            which = (identity.benchmark, run.benchmark_dir, identity.split)
            if which not in at_hand:
                at_hand[which] = _AtHand.of(*load(run))
            place = at_hand[which]
            placed = placed_of(folder, run, place.benchmark, place.references)
            summary = summary_of(run, placed, place.benchmark, note=place.note, with_tasks=False)
        except (DataError, OSError) as error:
            why = error.problems[0] if isinstance(error, DataError) else error
            problems.append(f"{folder.path.relative_to(root)}: left out: {why}")
            continue
        groups.setdefault(_terms(summary), []).append((folder, summary))
    return groups, problems


def _terms(summary: Summary) -> Terms:
    identity = summary.identity
    return Terms(
        benchmark=identity.benchmark,
        revision=identity.revision,
        split=identity.split,
        task_set=summary.task_set,
        n_tasks=summary.n_selected_tasks,
        success_at=summary.success_at,
        protocol=summary.protocol,
        protocols=summary.protocols,
        judges=summary.judges,
        evidence_policies=summary.evidence_policies,
        stand_in=summary.stand_in,
    )


def _group(terms: Terms, runs: Sequence[tuple[RunFolder, Summary]], root: Path) -> Group:
    lows = [_lower(summary) for _, summary in runs]
    rows = [
        _row(folder.path.relative_to(root), summary, _rank(low, lows))
        for (folder, summary), low in zip(runs, lows, strict=True)
    ]
    rows.sort(
        key=lambda row: (row.rank is None, row.rank or 0, row.agent, row.model or "", row.folder)
    )
    notes = tuple(
        f"the runs differ in their {name}"
        for name, values in (
            ("limits", {row.limits.key for row in rows}),
            ("guard", {row.guard for row in rows}),
            ("network", {summary.identity.network for _, summary in runs}),
        )
        if len(values) > 1
    )
    causes = dict.fromkeys(note for _, summary in runs for note in summary.notes)
    return Group(terms=terms, rows=tuple(rows), notes=(*notes, *causes))


def _lower(summary: Summary) -> float | None:
    """What a run is ranked by; None: it is not ranked."""
    return None if summary.mixed_judges else summary.figures.lower


def _rank(low: float | None, lows: Sequence[float | None]) -> int | None:
    return None if low is None else 1 + sum(other is not None and other > low for other in lows)


def _row(folder: Path, summary: Summary, rank: int | None) -> Row:
    agent = summary.identity.agent
    return Row(
        rank=rank,
        run_id=summary.run_id,
        folder=folder.as_posix(),
        agent=agent.name,
        agent_version=agent.version,
        model=agent.model,
        browser=summary.identity.browser,
        guard=summary.guard.level,
        limits=summary.identity.limits,
        started_at=summary.started_at,
        figures=summary.figures,
        estimates=summary.estimates,
        effort=summary.effort,
        cost=summary.cost,
        marks=_marks(summary),
    )


def _marks(summary: Summary) -> tuple[str, ...]:
    marks: list[str] = []
    if not summary.is_complete:
        missing = summary.figures.accounting.selected - summary.figures.accounting.graded
        marks.append(f"incomplete: {missing} without a verdict")
    if summary.is_partial:
        marks.append(f"partial: {summary.n_selected_tasks} of {summary.n_total_tasks} tasks")
    if summary.mixed_judges:
        marks.append("mixed judges")
    marks += [f"{flag}: {n}" for flag, n in summary.integrity.items()]
    return tuple(marks)


def group_title(terms: Terms) -> str:
    """One line that says what the runs of a group share."""
    parts = [
        f"{terms.benchmark}, split {terms.split}, revision {terms.revision[:12]}",
        f"{terms.n_tasks} tasks (set {terms.task_set[:8]})",
        ", ".join(dict.fromkeys(filter(None, (terms.protocol, *terms.protocols)))) or "not judged",
    ]
    if terms.evidence_policies != ("harness",):
        parts.append(f"evidence {', '.join(terms.evidence_policies)}")
    if terms.stand_in:
        parts.append("stand-in sites")
    return "; ".join(parts)


def group_table(group: Group) -> Table:
    """The scores of a group, ranked."""
    return Table(
        title=group_title(group.terms),
        headers=(
            *("#", "agent", "model", "browser", "points", "95 %", "success %", "95 %", "n"),
            *("ungraded", "infra", "not run", "cost", "run", "marks"),
        ),
        rows=tuple(_cells(row) for row in group.rows),
        right=frozenset({0, 8, 9, 10, 11, 12}),
    )


def group_tables(group: Group) -> tuple[Table, ...]:
    """All tables of a group: scores, effort, and repeats where there are any."""
    found = [group_table(group), _effort_table(group)]
    if any(row.estimates.pass_k for row in group.rows):
        found.append(_repeats_table(group))
    return tuple(found)


def _cells(row: Row) -> tuple[str, ...]:
    f = row.figures
    places = f.accounting
    points, success = row.estimates.points, row.estimates.success
    return (
        NOTHING if row.rank is None else str(row.rank),
        row.agent,
        row.model or NOTHING,
        row.browser,
        with_bounds(f.mean, f.lower, f.upper),
        interval_span(points),
        with_bounds(f.success, f.success_lower, f.success_upper, scale=100),
        interval_span(success, scale=100),
        str(f.n),
        count_and_share(sum(places.ungraded.values()), places.selected),
        count_and_share(places.infrastructure, places.selected),
        count_and_share(sum(places.not_run.values()), places.selected),
        money(row.cost.cost_usd, row.cost.known_usd, row.cost.n_unknown),
        row.run_id,
        "; ".join(row.marks),
    )


def _effort_table(group: Group) -> Table:
    return Table(
        title="Per attempt, and what the points rest on",
        headers=(
            *("agent", "model", "tasks", "attempts", "effective n", "steps", "seconds", "cost"),
            *("tokens in", "cached", "out", "reasoning", "judge", "run"),
        ),
        rows=tuple(_effort_cells(row) for row in group.rows),
        right=frozenset(range(2, 13)),
    )


def _effort_cells(row: Row) -> tuple[str, ...]:
    effort, tokens = row.effort, row.effort.tokens
    kinds = (tokens.uncached, tokens.cached, tokens.output, tokens.reasoning) if tokens else None
    n = max(1, effort.n_attempts)
    return (
        row.agent,
        row.model or NOTHING,
        str(row.figures.n_tasks),
        str(row.figures.n),
        number(row.estimates.n_effective),
        number(effort.steps),
        number(effort.seconds),
        money(effort.cost_usd, n_unknown=effort.n_attempts),
        *(("unknown",) * 4 if kinds is None else (number(kind / n, 0) for kind in kinds)),
        money(effort.judge_cost_usd, n_unknown=1),
        row.run_id,
    )


def _repeats_table(group: Group) -> Table:
    """pass@k and pass^k of every run."""
    return Table(
        title="Repeats: pass@k (any of k attempts) and pass^k (all of k)",
        headers=("agent", "model", *REPEATS_HEADERS),
        rows=tuple(
            (row.agent, row.model or NOTHING, *cells)
            for row in group.rows
            for cells in repeats_cells(row.estimates)
        ),
        right=frozenset({2, 7, 8}),
    )


def markdown(board: Leaderboard) -> str:
    """The leaderboard as Markdown."""
    parts = ["# Leaderboard\n"]
    for group in board.groups:
        parts.append(f"## {markdown_text(group_title(group.terms))}\n")
        scores, *others = group_tables(group)
        parts.append(markdown_table(scores))
        for table in others:
            parts += [f"### {markdown_text(table.title)}\n", markdown_table(table)]
        parts += [f"Note: {markdown_text(note)}\n" for note in group.notes]
    parts += [f"Problem: {markdown_text(problem)}\n" for problem in board.problems]
    parts.append(
        "In brackets the bounds (all attempts without a verdict as failed, and as full); 95 %: "
        "interval for new tasks of the same kind. Ranked by the lower bound, within a group only; "
        "`bubench compare` says whether two runs differ.\n"
    )
    return "\n".join(parts)
