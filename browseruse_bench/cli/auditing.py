"""`bubench benchmark audit`: does a benchmark give points for nothing?"""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

import click

from browseruse_bench.cli.judges import CALLS, JudgeOptions, spent_words
from browseruse_bench.cli.loop import run_loop
from browseruse_bench.errors import BudgetError, DataError, IncompleteError
from browseruse_bench.eval.evaluate import Asking, Judged, evaluate_run
from browseruse_bench.report.audit import Audit, audit, tables
from browseruse_bench.report.render import clean, show
from browseruse_bench.runs.execute import Progress, execute
from browseruse_bench.runs.plan import Plan, RunRequest, plan

if TYPE_CHECKING:
    from browseruse_bench.records.judgement import Judgement

TELL_S = 5.0
"""The least time between two words about progress."""


def audit_and_print(
    benchmark: str,
    *,
    split: str | None,
    task_ids: tuple[str, ...],
    judging: JudgeOptions,
    concurrency: int | None,
    experiments: Path,
    as_json: bool,
) -> None:
    """Let `nop` attempt each task in a folder that is removed, judge that, and print it.

    Raises:
        DataError: doing nothing earns points at a task.
        BudgetError: the judges' budget was reached before all was judged.
        IncompleteError: a task has no verdict although it can have one.
    """
    with tempfile.TemporaryDirectory(prefix="bubench-audit-") as scratch:
        planned = plan(
            RunRequest(
                agent="nop",
                benchmark=benchmark,
                browser="none" if _without_browser(benchmark, split) else "local",
                split=split,
                mode="ids" if task_ids else "all",
                task_ids=task_ids,
                concurrency=concurrency,
                experiments=Path(scratch),
            )
        )
        scope = f"audit of {planned.benchmark.name}, split {planned.benchmark.split}"
        asking = judging.asking(scope=scope, experiments=experiments, concurrency=2)
        judged = run_loop(_attempted_and_judged(planned, asking))
        found = audit(
            planned.folder,
            planned.benchmark,
            task_ids=[task_id for task_id, _ in planned.run.wanted],
            left_out=[task_id for task_id, _ in planned.no_login],
            pending=judged.pending,
        )
    for words in spent_words(experiments / CALLS) if judging.named else ():
        click.echo(clean(words), err=True)
    if as_json:
        click.echo(json.dumps(found.as_json(), indent=2))
    else:
        show(tables(found))
    _refuse(found, judged)


def _without_browser(benchmark: str, split: str | None) -> bool:
    """Whether nothing is judged by what a browser holds: no site of its own, no probe."""
    from browseruse_bench.benchmarks.load import load_benchmark

    info = load_benchmark(benchmark, split).info
    return not info.sites and not info.probes


async def _attempted_and_judged(planned: Plan, asking: Asking) -> Judged:
    teller = _Teller(len(planned.owed))
    await execute(planned, on_settled=teller.attempted, stop=asyncio.Event())
    return await evaluate_run(
        planned.folder, planned.benchmark, asking=asking, on_judged=teller.judged
    )


class _Teller:
    """Tells on stderr of progress, at times."""

    def __init__(self, n: int) -> None:
        self._n = n
        self._n_judged = 0
        self._told = time.monotonic()

    def attempted(self, progress: Progress) -> None:
        """Tell of one settled attempt."""
        self._tell(f"{progress.n_done} of {self._n} tasks attempted by doing nothing")

    def judged(self, judgement: Judgement) -> None:
        """Tell of one judged attempt."""
        self._n_judged += 1
        self._tell(f"{self._n_judged} judged, the last one {judgement.task_id}")

    def _tell(self, words: str) -> None:
        if time.monotonic() - self._told >= TELL_S:
            self._told = time.monotonic()
            click.echo(clean(words), err=True)


def _refuse(found: Audit, judged: Judged) -> None:
    earning = found.of("points")
    if earning:
        name = found.benchmark
        raise DataError(
            f"{name}: doing nothing earns points at {len(earning)} of {len(found.tasks)} tasks "
            f"({_ids([task.task_id for task in earning])}); mend their rubrics or the evaluator"
        )
    if judged.over_budget:
        raise BudgetError(f"{len(judged.new)} were judged; {judged.over_budget}")
    missing = [t for t in found.of("not_judged", "not_attempted") if t.why != "needs a login"]
    if missing:
        raise IncompleteError(
            f"{len(missing)} of {len(found.tasks)} tasks have no verdict "
            f"({_ids([task.task_id for task in missing])}); the same command tries them again"
        )


def _ids(task_ids: Collection[str]) -> str:
    first = ", ".join(list(task_ids)[:5])
    return f"{first}, …" if len(task_ids) > 5 else first
