"""Regrades the frozen traces of a run: which ones, how often, and into which journal.

The run's own judgements, and so its score and its place in a leaderboard, stay as they are.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from browseruse_bench.benchmarks.load import Benchmark
from browseruse_bench.errors import ConfigError, DataError
from browseruse_bench.eval.evaluate import utc_now
from browseruse_bench.eval.judges import Judge
from browseruse_bench.eval.regrading import Owed, Regraded, Regrading, Specimen, regrading
from browseruse_bench.records.judgement import Judgement
from browseruse_bench.records.run import Attempt
from browseruse_bench.store.files import read_json, write_json
from browseruse_bench.store.run_folder import RunFolder

SAMPLES = 5
"""Regrades of each trace. Five of 120 traces are 300 comparisons."""
TRACES = 120
"""So many traces, regraded SAMPLES times without a flip, show a rate below LIMIT."""
LIMIT = 0.01
"""The pooled flip rate that the RL-environments post reports to be below."""
THRESHOLD = 0.05
"""Items with a higher rate are listed for rewording: so much is what a single flip comes to that
is seen among few comparisons; less could not be told from it."""


Parameters = Mapping[str, Mapping[str, Any]]
_PARAMETERS: TypeAdapter[dict[str, dict[str, Any]]] = TypeAdapter(dict[str, dict[str, Any]])


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """The traces of a run that are regraded."""

    specimens: tuple[Specimen, ...]
    n_fit: int
    """Traces that could be."""
    skipped: Mapping[Attempt, str]
    """Cannot be, and why."""

    @property
    def reasons(self) -> dict[str, int]:
        """Why traces cannot be regraded -> how many."""
        return dict(Counter(self.skipped.values()))


def journal_of(folder: RunFolder) -> Path:
    """Where the regrades of a run are."""
    return folder.path / "stability.jsonl"


def judges_of(folder: RunFolder) -> Parameters:
    """Who regraded a run: judge key -> the models and how they were asked.

    Raises:
        DataError: the file is damaged.
    """
    path = _judges_path(folder)
    if not path.exists():
        return {}
    mend = "remove it and name the judges with --judge again: their regrades are kept"
    try:
        return _PARAMETERS.validate_python(read_json(path))
    except (DataError, ValidationError) as error:
        raise DataError(f"{path}: damaged ({error}); {mend}") from error


def _judges_path(folder: RunFolder) -> Path:
    return folder.path / "stability.json"


def choose(
    folder: RunFolder, benchmark: Benchmark, *, traces: int | None = None, seed: int = 0
) -> Chosen:
    """The settled traces of a run that a rubric can be read against, or some of them.

    First one trace of each task, then a second one of each that has two, and so on, in an order
    that the seed decides: a greater number takes the same traces and more, and the order of
    files does not matter.

    Args:
        folder: the run.
        benchmark: its benchmark and split.
        traces: how many; None: all.
        seed: of the order.

    Raises:
        ConfigError: the benchmark has an evaluator of its own, or no trace fits.
        DataError: a journal is damaged.
    """
    if benchmark.evaluator is not None:
        raise ConfigError(
            f"{benchmark.name}: its own evaluator grades it, so there are no findings to compare"
        )
    tasks = {task.task_id: task for task in benchmark.tasks}
    skipped: dict[Attempt, str] = {}
    by_task: dict[str, list[Specimen]] = {}
    for attempt, entry in folder.attempts().items():
        task, rubric = tasks.get(entry.task_id), benchmark.rubric(entry.task_id)
        if entry.status == "infrastructure":
            skipped[attempt] = "the infrastructure ended it"
        elif task is None or task.view.key != entry.task_key:
            skipped[attempt] = "the task was changed since it was attempted"
        elif rubric is None:
            skipped[attempt] = "the task has no rubric"
        else:
            specimen = Specimen(
                task=task,
                rubric=rubric,
                attempt=entry.attempt,
                path=folder.try_path(entry.task_id, entry.attempt, entry.try_),
                trace_key=entry.trace_key,
                cost_usd=entry.cost_usd,
            )
            by_task.setdefault(entry.task_id, []).append(specimen)
    if not by_task:
        reasons = "; ".join(sorted(set(skipped.values()))) or "no attempt has settled"
        raise ConfigError(f"{folder.path}: no trace to regrade: {reasons}")
    ranked = [
        (rank, _draw(seed, specimen.task.task_id), specimen)
        for specimens in by_task.values()
        for rank, specimen in enumerate(
            sorted(specimens, key=lambda s: _draw(seed, s.task.task_id, s.attempt))
        )
    ]
    ordered = [specimen for _, _, specimen in sorted(ranked, key=lambda r: r[:2])]
    return Chosen(specimens=tuple(ordered[:traces]), n_fit=len(ordered), skipped=skipped)


def _draw(seed: int, *what: object) -> str:
    return hashlib.sha256(repr((seed, *what)).encode()).hexdigest()


async def regrade_run(
    folder: RunFolder,
    specimens: Sequence[Specimen],
    judges: Sequence[Judge],
    *,
    samples: int = SAMPLES,
    parameters: Parameters | None = None,
    retry_ungraded: bool = False,
    concurrency: int = 2,
    on_judged: Callable[[Judgement], None] | None = None,
    now: Callable[[], str] = utc_now,
) -> Regraded:
    """Each trace has `samples` regrades by each judge in the run's stability.jsonl.

    Args:
        folder: the run.
        specimens: of `choose`.
        judges: one, or two that are compared.
        samples: at least 2; they are the samples 0, 1, ....
        parameters: judge key -> the model and how it is asked, to be kept beside the journal.
        retry_ungraded: ask once more, under numbers that were never used, for each regrade that
            has no grade. Those without a grade stay in the journal and are counted.
        concurrency: gradings at a time.
        on_judged: called with each new judgement after it is on disk.
        now: the clock.

    Raises:
        ConfigError: fewer than 2 samples, the judges are the same, one gives no findings, or
            another process regrades this run.
        DataError: the journal is damaged.
    """
    if samples < 2:
        raise ConfigError(f"--samples {samples}: a comparison takes two regrades at least")
    keys = [judge.judge_key for judge in judges]
    if len(set(keys)) != len(keys):
        raise ConfigError("the two judges are the same one: name another model")
    async with regrading(
        journal_of(folder), concurrency=concurrency, on_judged=on_judged, now=now
    ) as journal:
        if parameters:
            write_json(_judges_path(folder), {**judges_of(folder), **parameters})
        return await journal.settle(
            Owed(
                specimen=specimen,
                judge=judge,
                samples=_numbers(journal, specimen, judge, samples, retry=retry_ungraded),
            )
            for specimen in specimens
            for judge in judges
        )


def _numbers(
    journal: Regrading, specimen: Specimen, judge: Judge, samples: int, *, retry: bool
) -> tuple[int, ...]:
    """The sample numbers that are wanted of a trace."""
    first = tuple(range(samples))
    if not retry:
        return first
    given = journal.given(specimen, judge.judge_key)
    missing = sum(number not in given for number in first)
    graded = sum(judgement.status == "graded" for judgement in given.values())
    following = max((*given, samples - 1)) + 1
    return (*first, *range(following, following + max(0, samples - graded - missing)))
