"""Grade one frozen trace, by itself: from a folder to judgements."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, replace
from pathlib import Path

from browseruse_bench.errors import ConfigError, DataError
from browseruse_bench.eval.judges import Case, Judge, Keys, judgement_of, verdict_on
from browseruse_bench.records.judgement import Judgement
from browseruse_bench.records.rubric import Rubric
from browseruse_bench.records.task import Task
from browseruse_bench.store.run_folder import RunFolder
from browseruse_bench.store.trace_folder import TraceFolder


@dataclass(frozen=True)
class Place:
    """A frozen trace, and the run that it is part of, if it lies in one."""

    trace: TraceFolder
    run: RunFolder | None
    cost_usd: float | None
    """What the attempt cost; None: unknown."""

    @classmethod
    def at(cls, path: Path) -> Place:
        """Open a trace; one that lies in a run must be as the run's journal recorded it.

        Raises:
            ConfigError: there is no trace.
            DataError: it is damaged, or not the one that the run recorded.
        """
        if not path.is_dir():
            raise ConfigError(f"{path}: no such folder; give the folder of a trace (.../try-1)")
        above = path.resolve().parents
        # <run>/tasks/<task id>/<attempt>/try-<n>
        if len(above) < 4 or not (above[3] / "run.json").is_file():
            return cls(TraceFolder.open(path), None, None)
        run = RunFolder(above[3])
        trace = TraceFolder.open(path)
        of_trace = (trace.trace.task_id, trace.trace.attempt, trace.trace.try_)
        for entry in run.entries():
            if (entry.task_id, entry.attempt, entry.try_) == of_trace:
                if entry.trace_key != trace.key:
                    raise DataError(f"{path}: the trace is not the one that the run recorded")
                return cls(trace, run, entry.cost_usd)
        raise DataError(f"{path}: the run's journal does not know this trace: it never settled")


def case_of(place: Place, task: Task, rubric: Rubric) -> Case:
    """The case of a trace.

    Raises:
        ConfigError: task, rubric and trace do not belong together.
    """
    trace = place.trace.trace
    problems = [
        f"the {what} is of task '{found}', the trace of '{trace.task_id}'"
        for what, found in (("rubric", rubric.task_id), ("task", task.task_id))
        if found != trace.task_id
    ]
    if task.view.key != trace.task_key:
        problems.append("the task was changed since it was attempted")
    if rubric.task_key is not None and rubric.task_key != trace.task_key:
        problems.append("the rubric is for another text of the task")
    if trace.outcome.status == "infrastructure":
        problems.append("the infrastructure ended this attempt; it is owed again, not judged")
    if problems:
        raise ConfigError(f"{place.trace.path}: {'; '.join(problems)}")
    return Case(task=task, rubric=rubric, trace=place.trace, cost_usd=place.cost_usd)


async def grade(
    case: Case, judge: Judge, *, samples: int, now: Callable[[], str]
) -> AsyncGenerator[Judgement]:
    """The judgements of samples 0, 1, ..., each as soon as it is there.

    Args:
        case: from `case_of`.
        judge: who grades.
        samples: how often.
        now: the clock, ISO 8601 in UTC.

    Raises:
        BudgetError: the judge may ask nothing further.
        PendingError: its calls wait in a batch.
    """
    trace = case.trace.trace
    assert case.rubric is not None
    for sample in range(samples):
        keys = Keys(
            task_id=trace.task_id,
            attempt=trace.attempt,
            task_key=trace.task_key,
            trace_key=case.trace.key,
            rubric_key=case.rubric.key,
            sample=sample,
        )
        verdict = await verdict_on(judge, replace(case, sample=sample))
        yield judgement_of(judge, verdict, keys, now())
