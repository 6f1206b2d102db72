"""Whether two runs differ, on the tasks that both have; unlike runs are not compared at all."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from browseruse_bench.benchmarks.load import Benchmark
from browseruse_bench.errors import ConfigError
from browseruse_bench.eval.evaluate import references
from browseruse_bench.measure.estimates import Estimates, by_task
from browseruse_bench.measure.intervals import Target
from browseruse_bench.measure.paired import Paired, paired
from browseruse_bench.measure.tally import Figures, Placed, is_mixed, judges
from browseruse_bench.records.base import Record
from browseruse_bench.records.run import Run
from browseruse_bench.report.beside import interval_span
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
from browseruse_bench.report.summary import Summary, placed_of, summary_of
from browseruse_bench.store.run_folder import RunFolder

SEED = 20_240_607
"""Of the signs that are drawn where they cannot be counted: the same p each time."""
_SHOWN = 3


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A run with its attempts in their places."""

    run: Run
    placed: tuple[Placed, ...]
    summary: Summary
    """Without tasks."""


class Side(Record):
    """One of the two runs, with the figures of all its tasks."""

    label: str
    run_id: str
    figures: Figures
    estimates: Estimates
    judge_cost_usd: float | None
    """Of its verdicts; None: unknown."""


class TaskPair(Record):
    """One common task: the mean over its graded attempts, in each run."""

    task_id: str
    points: tuple[float, float]
    n: tuple[int, int]


class Comparison(Record):
    """What two runs that may be compared have to say of each other; first minus second."""

    sides: tuple[Side, Side]
    target: Target
    points: Paired
    success: Paired
    """In shares, 0..1."""
    verdict: Literal["first is better", "second is better", "no difference shown"]
    """By the points."""
    sentences: tuple[str, str]
    """The same in words, for points and success."""
    tasks: tuple[TaskPair, ...]
    """Common tasks, the largest difference first."""
    notes: tuple[str, ...]


def read(folder: RunFolder, run: Run, benchmark: Benchmark | None, *, note: str = "") -> Judged:
    """The run as it stands in its journals.

    Args:
        folder: the run.
        run: its run.json.
        benchmark: as for `summary.summarise`.
        note: put before the summary's own notes.

    Raises:
        DataError: a journal or a rubric is damaged.
    """
    placed = placed_of(folder, run, benchmark, references(benchmark) if benchmark else None)
    summary = summary_of(run, placed, benchmark, note=note, with_tasks=False)
    return Judged(run=run, placed=placed, summary=summary)


def compare(
    first: Judged, second: Judged, *, target: Target = "new tasks", see: float = 5
) -> Comparison:
    """The paired comparison of two runs.

    Args:
        first: one run.
        second: the other.
        target: what is inferred.
        see: a difference in points; the words say how many tasks would show it.

    Raises:
        ConfigError: the runs must not be compared; all reasons are named.
    """
    reasons = unlike(first, second)
    if reasons:
        names = f"{first.run.run_id} and {second.run.run_id}"
        raise ConfigError(f"{names} cannot be compared: " + "; ".join(reasons))
    points, success = zip(by_task(first.placed), by_task(second.placed), strict=True)
    of_points = _paired(points, 100, target)
    of_success = _paired(success, 1, target)
    labels = _labels(first.run, second.run)
    return Comparison(
        sides=(_side(labels[0], first.summary), _side(labels[1], second.summary)),
        target=target,
        points=of_points,
        success=of_success,
        verdict=_verdict(of_points),
        sentences=(
            f"Points: {_sentence(of_points, labels, 1, see)}",
            f"Success: {_sentence(of_success, labels, 100, see)}",
        ),
        tasks=_task_pairs(*points),
        notes=(*_differences(first, second), *_short(of_points, labels), *_causes(first, second)),
    )


def _paired(
    values: tuple[Mapping[str, Sequence[float]], Mapping[str, Sequence[float]]],
    top: float,
    target: Target,
) -> Paired:
    return paired(*values, top=top, rng=random.Random(SEED), target=target)


def unlike(first: Judged, second: Judged) -> list[str]:
    """Why the runs must not be compared; empty if they may be."""
    if first.run.run_id == second.run.run_id and first.run.started_at == second.run.started_at:
        return ["they are the same run"]
    one, two = first.run.identity, second.run.identity
    if one.benchmark != two.benchmark:
        return [f"their benchmarks are {one.benchmark} and {two.benchmark}"]
    found = [
        f"their {what} are {a} and {b}"
        for what, a, b in (
            ("revisions", one.revision[:12], two.revision[:12]),
            ("declared protocols", first.summary.protocol, second.summary.protocol),
            ("marks of success", first.summary.success_at, second.summary.success_at),
        )
        if a != b
    ]
    if bool(first.run.stand_in_hosts) != bool(second.run.stand_in_hosts):
        found.append("one ran on sites that stand in for public ones, the other did not")
    for judged in (first, second):
        if is_mixed(judges(judged.placed)):
            found.append(
                f"the verdicts of {judged.run.run_id} come from unlike judges; "
                "`bubench eval` mends it"
            )
    return [*found, *_unlike_verdicts(first.placed, second.placed)]


def _unlike_verdicts(first: Sequence[Placed], second: Sequence[Placed]) -> list[str]:
    """In what the verdicts differ that common tasks got."""
    ours, theirs = _verdicts(first), _verdicts(second)
    common = [task for task in ours if task in theirs]
    found: list[str] = []
    for place, what in enumerate(
        ("texts of the task", "references", "protocols", "judge keys", "evidence policies")
    ):
        differing = [
            (a, b)
            for task in common
            for a in [sorted({verdict[place] for verdict in ours[task]})]
            for b in [sorted({verdict[place] for verdict in theirs[task]})]
            if a != b
        ]
        if differing:
            a, b = ("/".join(value[:40] for value in values) for values in differing[0])
            found.append(
                f"their {what} differ on {len(differing)} of {len(common)} common tasks "
                f"({a} and {b})"
            )
    return found


def _verdicts(placed: Sequence[Placed]) -> dict[str, set[tuple[str, ...]]]:
    """Task id -> (task, reference, protocol, judge, evidence) of each verdict that is a grade."""
    found: dict[str, set[tuple[str, ...]]] = {}
    for p in placed:
        if p.where == "graded" and p.judgement is not None:
            given = p.judgement
            policy = str(given.details.get("evidence_policy", "harness"))
            found.setdefault(p.task_id, set()).add(
                (
                    given.task_key,
                    given.rubric_key or "none",
                    given.protocol,
                    f"{given.basis} {given.judge_key[:12]}",
                    policy,
                )
            )
    return found


def _labels(first: Run, second: Run) -> tuple[str, str]:
    """Names that tell the two runs apart."""

    def names(run: Run) -> tuple[str, ...]:
        agent = run.identity.agent
        model = f"{agent.name} ({agent.model})" if agent.model else agent.name
        return agent.name, model, f"{model} {agent.version}", f"{model}, {run.run_id}"

    pairs = list(zip(names(first), names(second), strict=True))
    return next((pair for pair in pairs if pair[0] != pair[1]), pairs[-1])


def _side(label: str, summary: Summary) -> Side:
    return Side(
        label=label,
        run_id=summary.run_id,
        figures=summary.figures,
        estimates=summary.estimates,
        judge_cost_usd=summary.effort.judge_cost_usd,
    )


def _verdict(
    found: Paired,
) -> Literal["first is better", "second is better", "no difference shown"]:
    if not found.differs:
        return "no difference shown"
    return "first is better" if (found.difference or 0) > 0 else "second is better"


def _sentence(found: Paired, labels: tuple[str, str], scale: float, see: float) -> str:
    """Whether the runs differ, in words.

    Args:
        found: the comparison.
        labels: of the two runs.
        scale: makes points of the unit of the comparison.
        see: a difference in points.
    """
    if found.difference is None or found.interval is None:
        n = "no task" if not found.n_tasks else "one task only"
        return f"no difference can be shown: {n} has a verdict in both runs."
    low, high = found.interval.low * scale, found.interval.high * scale
    difference = found.difference * scale
    sign = "" if _p(found.p).startswith("<") else "= "
    facts = f"p {sign}{_p(found.p)}, on {found.n_tasks} common tasks"
    if found.differs:
        better = labels[0]
        if difference < 0:
            better, difference, low, high = labels[1], -difference, -high, -low
        return f"{better} is better by {difference:.1f} points [{low:.1f}, {high:.1f}], {facts}."
    return (
        f"no difference shown: {labels[0]} minus {labels[1]} is {difference:.1f} points "
        f"[{low:.1f}, {high:.1f}], {facts}. {_power(found, scale, see)}"
    )


def _power(found: Paired, scale: float, see: float) -> str:
    """What a comparison without a result could have shown."""
    needed = found.tasks_to_see(see / scale)
    smallest = found.smallest_seen
    if needed is None or smallest is None:
        return ""
    if needed <= found.n_tasks:
        return f"A difference of {see:g} points would have been seen four times out of five."
    shown = (
        f"So many tasks show a difference of {smallest * scale:.1f} points four times out of five"
        if smallest * scale < 100
        else "So few tasks show not even a difference of 100 points four times out of five"
    )
    return (
        f"{shown}; about {needed - found.n_tasks} more tasks would be needed to see a difference "
        f"of {see:g}."
    )


def _p(p: float | None) -> str:
    if p is None:
        return NOTHING
    return "< 0.001" if p < 0.001 else f"{p:.3f}" if p < 0.1 else f"{p:.2f}"


def _task_pairs(
    first: Mapping[str, Sequence[float]], second: Mapping[str, Sequence[float]]
) -> tuple[TaskPair, ...]:
    pairs = [
        TaskPair(
            task_id=task,
            points=(sum(first[task]) / len(first[task]), sum(second[task]) / len(second[task])),
            n=(len(first[task]), len(second[task])),
        )
        for task in first
        if task in second
    ]
    return tuple(
        sorted(pairs, key=lambda pair: (-abs(pair.points[0] - pair.points[1]), pair.task_id))
    )


def _differences(first: Judged, second: Judged) -> list[str]:
    """In what else the runs differ; a reader may want to know."""
    one, two = first.run.identity, second.run.identity
    return [
        f"the runs differ in their {what}: {a} and {b}"
        for what, a, b in (
            ("split", one.split, two.split),
            ("browser", one.browser, two.browser),
            ("limits", one.limits.as_line(), two.limits.as_line()),
            ("guard", first.run.guard.level, second.run.guard.level),
            ("network", one.network, two.network),
        )
        if a != b
    ]


def _short(found: Paired, labels: tuple[str, str]) -> list[str]:
    """How many tasks are left out of the comparison."""
    return [
        f"{n} tasks have a verdict in the run of {label} only and are not compared"
        for n, label in zip((found.n_only_first, found.n_only_second), labels, strict=True)
        if n
    ]


def _causes(first: Judged, second: Judged) -> list[str]:
    return list(dict.fromkeys((*first.summary.notes, *second.summary.notes)))


def tables(comparison: Comparison) -> tuple[Table, ...]:
    """The comparison as tables: the two runs, the difference, and the tasks that differ."""
    return _sides_table(comparison), _difference_table(comparison), _tasks_table(comparison)


def _sides_table(comparison: Comparison) -> Table:
    return Table(
        title="All tasks of each run",
        headers=(
            *("run", "agent", "points", "95 %", "success %", "95 %", "n", "ungraded", "infra"),
            "judge's cost",
        ),
        rows=tuple(
            (
                side.run_id,
                side.label,
                with_bounds(f.mean, f.lower, f.upper),
                interval_span(side.estimates.points),
                with_bounds(f.success, f.success_lower, f.success_upper, scale=100),
                interval_span(side.estimates.success, scale=100),
                str(f.n),
                count_and_share(sum(f.accounting.ungraded.values()), f.accounting.selected),
                count_and_share(f.accounting.infrastructure, f.accounting.selected),
                money(side.judge_cost_usd, n_unknown=1),
            )
            for side in comparison.sides
            for f in [side.figures]
        ),
        right=frozenset({6, 7, 8, 9}),
    )


def _difference_table(comparison: Comparison) -> Table:
    first, second = (side.label for side in comparison.sides)
    return Table(
        title=f"Common tasks, for {comparison.target}",
        headers=(
            *("", first, second, "difference", "95 %", "p", "by", "McNemar's p", "tasks"),
            *("better", "equal", "worse"),
        ),
        rows=tuple(
            (
                what,
                *(number(mean * scale) for mean in found.means or ()),
                *(() if found.means else (NOTHING, NOTHING)),
                NOTHING if found.difference is None else number(found.difference * scale),
                interval_span(found.interval, scale=scale),
                _p(found.p),
                found.p_method or NOTHING,
                _p(found.p_mcnemar),
                str(found.n_tasks),
                str(found.n_better),
                str(found.n_tasks - found.n_better - found.n_worse),
                str(found.n_worse),
            )
            for what, scale, found in (
                ("points", 1, comparison.points),
                ("success %", 100, comparison.success),
            )
        ),
        right=frozenset({1, 2, 3, 8, 9, 10, 11}),
    )


def _tasks_table(comparison: Comparison) -> Table:
    first, second = (side.label for side in comparison.sides)
    return Table(
        title="Tasks with unlike points",
        headers=("task", first, second, "difference", "attempts"),
        rows=tuple(
            (
                pair.task_id,
                *(number(points) for points in pair.points),
                number(pair.points[0] - pair.points[1]),
                f"{pair.n[0]} and {pair.n[1]}",
            )
            for pair in comparison.tasks
            if pair.points[0] != pair.points[1]
        ),
        right=frozenset({1, 2, 3}),
    )


def markdown(comparison: Comparison) -> str:
    """The comparison as Markdown."""
    title = " and ".join(side.label for side in comparison.sides)
    parts = [f"# {markdown_text(title)}\n"]
    parts += [f"{markdown_text(sentence)}\n" for sentence in comparison.sentences]
    for table in tables(comparison):
        parts += [f"## {markdown_text(table.title)}\n", markdown_table(table)]
    parts += [f"Note: {markdown_text(note)}\n" for note in comparison.notes]
    return "\n".join(parts)
