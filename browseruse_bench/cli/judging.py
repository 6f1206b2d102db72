"""What `eval`, `report` and `demo` share: judge a run, and the words at the end."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Collection
from pathlib import Path

import click

from browseruse_bench.benchmarks.folder import find
from browseruse_bench.benchmarks.load import Benchmark, load_place
from browseruse_bench.cli.judges import CALLS, JudgeOptions, spent_words
from browseruse_bench.errors import BudgetError, IncompleteError
from browseruse_bench.eval.evaluate import Judged, evaluate_run
from browseruse_bench.records.judgement import Judgement
from browseruse_bench.records.run import Run
from browseruse_bench.report.find import agent_name, find_run
from browseruse_bench.report.render import Table, clean, counts, show, with_bounds
from browseruse_bench.report.summary import Summary, report_run
from browseruse_bench.store.run_folder import RunFolder

TELL_S = 2.0
"""The least time between two words about progress."""


def judge_and_print(
    *,
    agent: str,
    benchmark: str,
    split: str | None,
    model: str | None,
    run_id: str | None,
    task_ids: Collection[str],
    force: bool,
    only_ungraded: bool,
    judging: JudgeOptions,
    concurrency: int,
    timeout_s: float,
    experiments: Path,
    as_json: bool,
) -> None:
    """Judge the run that is meant, write and print its summary.

    Raises:
        BudgetError: the judges' budget was reached before all was judged.
        IncompleteError: something that was to be judged has no grade.
    """
    place = find(benchmark)
    loaded = load_place(place, split)
    folder, run = find_run(
        experiments,
        benchmark=loaded.name,
        split=loaded.split,
        agent=agent_name(agent),
        model=model,
        run_id=run_id,
    )
    click.echo(f"judging {which(folder, run)}", err=True)
    for note in (*place.notes, *changes(run, loaded)):
        click.echo(f"note: {note}", err=True)
    asking = judging.asking(
        scope=run.run_id, experiments=experiments, concurrency=concurrency, timeout_s=timeout_s
    )
    judged = asyncio.run(
        evaluate_run(
            folder,
            loaded,
            force=force,
            only_ungraded=only_ungraded,
            task_ids=task_ids or None,
            asking=asking,
            on_judged=_Teller().tell,
        )
    )
    announce(judged, experiments / CALLS)
    summary = report_run(folder, loaded)
    if as_json:
        click.echo(json.dumps(summary.model_dump(mode="json", by_alias=True), indent=2))
    else:
        show([result(summary)])
        click.echo(f"report: {folder.path / 'report.md'}")
    if judged.over_budget:
        raise BudgetError(f"{len(judged.new)} were judged; {judged.over_budget}")
    refuse_incomplete(summary, task_ids, pending=judged.pending)


def which(folder: RunFolder, run: Run) -> str:
    """One line that says which run it is."""
    identity = run.identity
    model = f", model {identity.agent.model}" if identity.agent.model else ""
    return clean(
        f"run {run.run_id} of {identity.agent.name}{model} on {identity.benchmark}, split "
        f"{identity.split}, started {run.started_at}, in {folder.path}"
    )


def changes(run: Run, benchmark: Benchmark) -> list[str]:
    """What is no longer as it was when the run was made."""
    if run.identity.revision == benchmark.revision:
        return []
    return [
        f"{benchmark.name} is at revision {benchmark.revision[:12]}, the run was made on "
        f"{run.identity.revision[:12]}; tasks that changed are not judged"
    ]


class _Teller:
    """Tells on stderr of each attempt without a grade, and at times of the progress."""

    def __init__(self) -> None:
        self._n = 0
        self._told = time.monotonic()

    def tell(self, judgement: Judgement) -> None:
        """Tell of one new judgement."""
        self._n += 1
        what = f"{judgement.task_id} #{judgement.attempt}"
        if judgement.reason is not None:
            click.echo(clean(f"{what} {judgement.reason}: {judgement.message}"), err=True)
        elif time.monotonic() - self._told >= TELL_S:
            self._told = time.monotonic()
            click.echo(clean(f"{self._n} judged, the last one {what}"), err=True)


def announce(judged: Judged, calls: Path) -> None:
    """Tell on stderr what came of judging, and what its calls cost that are kept in `calls`."""
    for note in judged.notes:
        click.echo(f"note: {note}", err=True)
    for (task_id, number), why in judged.skipped.items():
        click.echo(clean(f"{task_id} #{number} not judged: {why}"), err=True)
    click.echo(f"{len(judged.new)} judged, {len(judged.kept)} judged earlier", err=True)
    if calls.is_dir():
        for line in spent_words(calls):
            click.echo(clean(line), err=True)
    if judged.pending:
        click.echo(
            f"{len(judged.pending)} wait for a batch: submit or answer it (`bubench models "
            "batch`), then the same command goes on",
            err=True,
        )
    if judged.over_budget:
        click.echo(
            f"{judged.over_budget}; what was not judged is owed: raise it, and the same command "
            "goes on",
            err=True,
        )


def result(summary: Summary) -> Table:
    """What a run came to, in few lines."""
    f = summary.figures
    success = with_bounds(f.success, f.success_lower, f.success_upper, scale=100)
    rows = [
        ("attempts", f.accounting.sentence),
        ("ended", counts(summary.statuses)),
        ("points", f"{with_bounds(f.mean, f.lower, f.upper)} (n {f.n})"),
        ("success %", success),
        *(("note", note) for note in summary.notes),
    ]
    return Table(title="", headers=("run", summary.run_id), rows=tuple(rows))


def refuse_incomplete(
    summary: Summary,
    task_ids: Collection[str] = (),
    *,
    pending: Collection[tuple[str, int]] = (),
) -> None:
    """Nothing that was to be judged lacks a grade. Tasks left out for want of a login are
    counted, but were left out knowingly.

    Raises:
        IncompleteError: something lacks one; says what to type.
    """
    missing = [
        ((task.task_id, row.attempt), row)
        for task in summary.tasks
        if not task_ids or task.task_id in task_ids
        for row in task.attempts
        if row.where != "graded" and row.reason != "login"
    ]
    if not missing:
        return
    rows = [row for attempt, row in missing if attempt not in pending]
    n_waiting = len(missing) - len(rows)
    kinds = {"waiting for a batch": n_waiting} if n_waiting else {}
    for row in rows:
        kind = row.reason or row.where
        kinds[kind] = kinds.get(kind, 0) + 1
    hints: list[str] = []
    if n_waiting:
        hints.append("`bubench models batch` submits or answers it, then the same command goes on")
    if any(row.where == "ungraded" for row in rows):
        hints.append("`bubench eval --only-ungraded` tries again what is ungraded")
    if any(row.where != "ungraded" for row in rows):
        hints.append("the same `bubench run` goes on with what did not settle")
    raise IncompleteError(
        f"without a grade: {counts(kinds)} of {summary.figures.accounting.selected} attempts; "
        + "; ".join(hints)
    )
