"""What one run came to: derived from its journals, and the same bytes each time."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal

from browseruse_bench.benchmarks.load import Benchmark
from browseruse_bench.eval.evaluate import references
from browseruse_bench.measure.estimates import Effort, Estimates, effort, estimates
from browseruse_bench.measure.tally import (
    Figures,
    Placed,
    Reference,
    figures,
    is_mixed,
    judges,
    place,
)
from browseruse_bench.records.base import Record, content_key
from browseruse_bench.records.run import (
    Attempt,
    AttemptEntry,
    NotRunReason,
    Run,
    RunIdentity,
    Selection,
)
from browseruse_bench.records.task import Task
from browseruse_bench.records.trace import Guard
from browseruse_bench.report.beside import effort_facts, estimate_facts, repeats_table
from browseruse_bench.report.render import (
    NOTHING,
    Table,
    counts,
    markdown_table,
    markdown_text,
    money,
    number,
    percent,
    with_bounds,
)
from browseruse_bench.store.files import write_atomic
from browseruse_bench.store.run_folder import RunFolder


class AttemptRow(Record):
    """How one attempt ended and what it was worth."""

    attempt: int
    where: Literal["graded", "ungraded", "infrastructure", "not_run"]
    reason: str | None
    message: str
    status: str | None
    """How the agent's work ended; None: it was not run."""
    points: float | None
    raw_points: float | None
    """Before integrity flags."""
    success: bool | None
    flags: tuple[str, ...]
    n_steps: int | None
    wall_s: float | None
    cost_usd: float | None


class TaskRow(Record):
    """One task of the run."""

    task_id: str
    difficulty: str | None
    category: str | None
    figures: Figures
    attempts: tuple[AttemptRow, ...]


class Cost(Record):
    """What the attempts cost."""

    cost_usd: float | None
    """None: that of at least one attempt is unknown."""
    known_usd: float
    n_unknown: int


class Evidence(Record):
    """How well the findings are founded."""

    n_citations: int
    hold: float | None
    """Share of the citations that hold; None: there are none."""
    n_unsupported: int
    """Items that were claimed to be met without a citation that holds."""


class Summary(Record):
    """summary.json."""

    schema_version: Literal[1] = 1
    run_id: str
    identity: RunIdentity
    started_at: str
    guard: Guard
    stand_in: bool
    """Whether a site stood in for a public host."""
    evidence_policies: tuple[str, ...]
    benchmark_sha256: str
    versions: dict[str, str]
    commit: str | None
    selections: tuple[Selection, ...]
    task_set: str
    """Identity of the set of the selected task ids."""
    n_selected_tasks: int
    n_total_tasks: int | None
    """Tasks of the split without the excluded ones; None: the benchmark is not at hand."""
    success_at: float | None
    """Points from which an attempt is a success; None: the benchmark is not at hand."""
    protocol: str | None
    """Declared by the benchmark."""
    protocols: tuple[str, ...]
    """Of the judgements that count."""
    judges: tuple[tuple[str, str], ...]
    """(basis, judge key) of the judgements that count."""
    mixed_judges: bool
    """Whether the mean is taken over verdicts of unlike judges."""
    statuses: dict[str, int]
    """How the agent's work ended -> attempts."""
    figures: Figures
    estimates: Estimates
    effort: Effort
    integrity: dict[str, int]
    """Flag -> graded attempts that carry it."""
    evidence: Evidence
    n_steps: int
    wall_s: float | None
    """None: that of at least one attempt is not known."""
    """Sum over the attempts."""
    cost: Cost
    by_difficulty: dict[str, Figures]
    by_category: dict[str, Figures]
    tasks: tuple[TaskRow, ...]
    notes: tuple[str, ...]

    @property
    def is_partial(self) -> bool:
        """Whether fewer tasks were selected than the split has."""
        return self.n_total_tasks is not None and self.n_selected_tasks < self.n_total_tasks

    @property
    def is_complete(self) -> bool:
        """Whether every selected attempt has a verdict."""
        return self.figures.accounting.graded == self.figures.accounting.selected


def report_run(folder: RunFolder, benchmark: Benchmark | None, *, note: str = "") -> Summary:
    """The run's summary, also written to summary.json and report.md in its folder."""
    summary = summarise(folder, benchmark, note=note)
    text = json.dumps(summary.model_dump(mode="json", by_alias=True), indent=2, sort_keys=True)
    write_atomic(folder.path / "summary.json", text + "\n")
    write_atomic(folder.path / "report.md", markdown(summary))
    return summary


def summarise(folder: RunFolder, benchmark: Benchmark | None, *, note: str = "") -> Summary:
    """What the run's journals say.

    Args:
        folder: the run.
        benchmark: its benchmark and split as they are now; verdicts that rest on another
            task text or reference do not count. None: it is not at hand.
        note: put before the summary's own notes.

    Raises:
        DataError: run.json, a journal or a rubric is damaged.
    """
    run = folder.read_run()
    known = references(benchmark) if benchmark else None
    return summary_of(run, placed_of(folder, run, benchmark, known), benchmark, note=note)


def placed_of(
    folder: RunFolder,
    run: Run,
    benchmark: Benchmark | None,
    known: Mapping[str, Reference] | None,
) -> tuple[Placed, ...]:
    """Each selected attempt of the run in its place.

    Args:
        folder: the run.
        run: its run.json.
        benchmark: as for `summarise`.
        known: `references(benchmark)`; None: it is not at hand.

    Raises:
        DataError: a journal is damaged.
    """
    tasks = {task.task_id: task for task in benchmark.tasks} if benchmark else {}
    success_at = benchmark.info.success_at if benchmark else None
    return place(
        wanted=run.wanted,
        entries=folder.attempts(),
        judgements=folder.judgements(),
        references=known,
        not_run=_not_run(run, tasks),
        success_at=100 if success_at is None else success_at,
    )


def summary_of(
    run: Run,
    placed: Sequence[Placed],
    benchmark: Benchmark | None,
    *,
    note: str = "",
    with_tasks: bool = True,
) -> Summary:
    """What these attempts of a run come to.

    Args:
        run: run.json.
        placed: all its selected attempts.
        benchmark: as for `summarise`.
        note: put before the summary's own notes.
        with_tasks: whether the summary lists tasks, difficulties and categories.
    """
    tasks = {task.task_id: task for task in benchmark.tasks} if benchmark and with_tasks else {}
    found = judges(placed)
    settled = [p.entry for p in placed if p.entry is not None]
    selected = list(dict.fromkeys(p.task_id for p in placed))
    return Summary(
        run_id=run.run_id,
        identity=run.identity,
        started_at=run.started_at,
        guard=run.guard,
        stand_in=bool(run.stand_in_hosts),
        evidence_policies=_policies(run, placed),
        benchmark_sha256=run.benchmark_sha256,
        versions=run.versions,
        commit=run.commit,
        selections=run.selections,
        task_set=content_key(sorted(selected)),
        n_selected_tasks=len(selected),
        n_total_tasks=_n_total(benchmark),
        success_at=benchmark.info.success_at if benchmark else None,
        protocol=benchmark.info.protocol if benchmark else None,
        protocols=_protocols(placed),
        judges=found,
        mixed_judges=is_mixed(found),
        statuses=dict(sorted(Counter(e.status for e in settled).items())),
        figures=figures(placed),
        estimates=estimates(placed),
        effort=effort(placed),
        integrity=_integrity(placed),
        evidence=_evidence(placed),
        n_steps=sum(e.n_steps for e in settled),
        wall_s=_seconds(settled),
        cost=_cost([e.cost_usd for e in settled]),
        by_difficulty=_by(placed, lambda p: _field(tasks, p, "difficulty")),
        by_category=_by(placed, lambda p: _field(tasks, p, "category")),
        tasks=_task_rows(placed, selected, tasks) if with_tasks else (),
        notes=_notes(placed, note, is_mixed(found)),
    )


def _not_run(run: Run, tasks: Mapping[str, Task]) -> dict[Attempt, NotRunReason]:
    """Why an attempt that has not settled was not made: for want of a login, or because the
    last command was stopped or its budget reached; no reason otherwise.
    """
    login = not run.settings.get("storage_state")
    reasons: dict[Attempt, NotRunReason] = {}
    for attempt in run.wanted:
        task = tasks.get(attempt[0])
        if login and task is not None and task.requires_login:
            reasons[attempt] = "login"
        elif run.settings.get("stopped"):
            reasons[attempt] = "stopped"
        elif run.settings.get("over_budget"):
            reasons[attempt] = "budget"
    return reasons


def _n_total(benchmark: Benchmark | None) -> int | None:
    if benchmark is None:
        return None
    excluded = set(benchmark.info.exclude)
    return sum(task.task_id not in excluded for task in benchmark.tasks)


def _seconds(settled: Sequence[AttemptEntry]) -> float | None:
    known = [entry.wall_s for entry in settled if entry.wall_s is not None]
    return round(sum(known), 3) if len(known) == len(settled) else None


def _policies(run: Run, placed: Iterable[Placed]) -> tuple[str, ...]:
    found = {
        str(p.judgement.details.get("evidence_policy", "harness"))
        for p in placed
        if p.judgement is not None
    }
    return tuple(sorted(found)) or (run.evidence_policy,)


def _protocols(placed: Iterable[Placed]) -> tuple[str, ...]:
    given = (p.judgement for p in placed if p.judgement is not None and p.reason != "not_judged")
    return tuple(sorted({j.protocol for j in given}))


def _integrity(placed: Iterable[Placed]) -> dict[str, int]:
    flags = Counter(flag for p in placed if p.score is not None for flag in set(p.score.flags))
    return dict(sorted(flags.items()))


def _evidence(placed: Iterable[Placed]) -> Evidence:
    findings = [
        finding
        for p in placed
        if p.where == "graded" and p.judgement is not None
        for finding in p.judgement.findings or ()
    ]
    citations = [citation for finding in findings for citation in finding.citations]
    holding = sum(citation.holds for citation in citations)
    return Evidence(
        n_citations=len(citations),
        hold=holding / len(citations) if citations else None,
        n_unsupported=sum(finding.status == "unsupported" for finding in findings),
    )


def _cost(costs: Sequence[float | None]) -> Cost:
    known = [cost for cost in costs if cost is not None]
    total = round(sum(known), 6)
    n_unknown = len(costs) - len(known)
    return Cost(
        cost_usd=total if costs and not n_unknown else None, known_usd=total, n_unknown=n_unknown
    )


def _field(
    tasks: Mapping[str, Task], placed: Placed, name: Literal["difficulty", "category"]
) -> str | None:
    task = tasks.get(placed.task_id)
    return None if task is None else getattr(task, name)


def _by(placed: Sequence[Placed], label: Callable[[Placed], str | None]) -> dict[str, Figures]:
    """Figures per label; attempts without one are left out."""
    groups: dict[str, list[Placed]] = {}
    for p in placed:
        name = label(p)
        if name is not None:
            groups.setdefault(name, []).append(p)
    return {name: figures(groups[name]) for name in sorted(groups)}


def _task_rows(
    placed: Sequence[Placed], selected: Sequence[str], tasks: Mapping[str, Task]
) -> tuple[TaskRow, ...]:
    by_task: dict[str, list[Placed]] = {task_id: [] for task_id in selected}
    for p in placed:
        by_task[p.task_id].append(p)
    return tuple(
        TaskRow(
            task_id=task_id,
            difficulty=_field(tasks, attempts[0], "difficulty"),
            category=_field(tasks, attempts[0], "category"),
            figures=figures(attempts),
            attempts=tuple(_attempt_row(p) for p in attempts),
        )
        for task_id, attempts in sorted(by_task.items())
    )


def _attempt_row(p: Placed) -> AttemptRow:
    entry, points = p.entry, p.score
    return AttemptRow(
        attempt=p.attempt,
        where=p.where,
        reason=p.reason,
        message=p.message,
        status=entry.status if entry else None,
        points=points.points if points else None,
        raw_points=points.raw_points if points else None,
        success=points.success if points else None,
        flags=points.flags if points else (),
        n_steps=entry.n_steps if entry else None,
        wall_s=entry.wall_s if entry else None,
        cost_usd=entry.cost_usd if entry else None,
    )


def _notes(placed: Sequence[Placed], note: str, mixed: bool) -> tuple[str, ...]:
    stale = Counter(p.message for p in placed if p.reason == "not_judged" and p.message)
    notes = [note] if note else []
    if mixed:
        notes.append("mixed judges: the verdicts come from unlike judges; `bubench eval` mends it")
    notes += [f"{n} not judged: {message}" for message, n in sorted(stale.items())]
    return tuple(notes)


def facts(summary: Summary) -> Table:
    """What the run was and what it came to, one fact a line."""
    identity, f = summary.identity, summary.figures
    total = "?" if summary.n_total_tasks is None else str(summary.n_total_tasks)
    rows = [
        ("run", summary.run_id),
        ("benchmark", f"{identity.benchmark}, split {identity.split}"),
        ("revision", identity.revision),
        ("agent", f"{identity.agent.name} {identity.agent.version}"),
        ("model", identity.agent.model or NOTHING),
        ("browser", identity.browser),
        ("guard", summary.guard.level),
        ("stand-in", "yes" if summary.stand_in else "no"),
        ("evidence", ", ".join(summary.evidence_policies)),
        ("protocol", ", ".join(filter(None, (summary.protocol, *summary.protocols))) or NOTHING),
        ("tasks", f"{summary.n_selected_tasks} of {total}"),
        ("attempts", f.accounting.sentence),
        ("ended", counts(summary.statuses)),
        ("points", f"{with_bounds(f.mean, f.lower, f.upper)} (n {f.n})"),
        (
            "success",
            with_bounds(f.success, f.success_lower, f.success_upper, scale=100)
            + ("" if f.success is None else " %"),
        ),
        *estimate_facts(summary.estimates),
        ("flags", counts(summary.integrity)),
        ("citations", _citations(summary.evidence)),
        ("steps", str(summary.n_steps)),
        ("seconds", number(summary.wall_s)),
        ("cost", money(summary.cost.cost_usd, summary.cost.known_usd, summary.cost.n_unknown)),
        *effort_facts(summary.effort),
        *(("note", text) for text in summary.notes),
    ]
    return Table(title="", headers=("what", "value"), rows=tuple(rows))


def _citations(evidence: Evidence) -> str:
    if evidence.hold is None:
        return NOTHING
    unsupported = f", {evidence.n_unsupported} items unsupported" if evidence.n_unsupported else ""
    return f"{percent(evidence.hold)} of {evidence.n_citations} hold{unsupported}"


def breakdown(label: str, groups: Mapping[str, Figures]) -> Table:
    """Figures per difficulty, category or the like."""
    return Table(
        title=f"By {label}",
        headers=(label, "points", "success %", "n", "selected", "not graded"),
        rows=tuple(
            (
                name,
                with_bounds(f.mean, f.lower, f.upper),
                with_bounds(f.success, f.success_lower, f.success_upper, scale=100),
                str(f.n),
                str(f.accounting.selected),
                str(f.accounting.selected - f.accounting.graded),
            )
            for name, f in groups.items()
        ),
        right=frozenset({3, 4, 5}),
    )


def attempts_table(summary: Summary) -> Table:
    """One line per attempt."""
    return Table(
        title="Attempts",
        headers=(
            "task",
            "attempt",
            "points",
            "verdict",
            "ended",
            "steps",
            "seconds",
            "cost",
            "why",
        ),
        rows=tuple(
            (
                task.task_id,
                str(row.attempt),
                number(row.points),
                _verdict(row),
                row.status or NOTHING,
                NOTHING if row.n_steps is None else str(row.n_steps),
                number(row.wall_s),
                money(row.cost_usd, n_unknown=0 if row.status is None else 1),
                ", ".join((*row.flags, row.message) if row.message else row.flags),
            )
            for task in summary.tasks
            for row in task.attempts
        ),
        right=frozenset({1, 2, 5, 6, 7}),
    )


def _verdict(row: AttemptRow) -> str:
    if row.where == "graded":
        return "success" if row.success else "no success"
    return f"{row.where}: {row.reason}" if row.reason else row.where


def tables(summary: Summary) -> tuple[Table, ...]:
    """All tables of a report, for a terminal."""
    found = [facts(summary)]
    if summary.estimates.pass_k:
        found.append(repeats_table(summary.estimates))
    if len(summary.by_difficulty) > 1:
        found.append(breakdown("difficulty", summary.by_difficulty))
    if len(summary.by_category) > 1:
        found.append(breakdown("category", summary.by_category))
    return (*found, attempts_table(summary))


def markdown(summary: Summary) -> str:
    """report.md."""
    identity = summary.identity
    title = f"{identity.agent.name} on {identity.benchmark}, split {identity.split}"
    parts = [f"# {markdown_text(title)}\n"]
    for table in tables(summary):
        if table.title:
            parts.append(f"## {table.title}\n")
        parts.append(markdown_table(table))
    parts.append(
        "Bounds in brackets: all attempts without a verdict as 0, and as 100 points. 95 %: where "
        "the mean over the verdicts would be for new tasks of the same kind, or for new attempts "
        "at these tasks.\n"
    )
    return "\n".join(parts)
