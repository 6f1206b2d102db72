"""How much of the spread of scores comes from tasks, how much from runs, how much from the judge.

    y = mean + task + attempt at the task + regrade of the attempt

Three random effects, one inside the other. The judge's variance is that between regrades of one
frozen trace; the run's is that between attempts at one task, beyond the judge's; the task's is
that between tasks, beyond both.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from browseruse_bench.records.base import Record

Nested = Mapping[str, Mapping[str, Sequence[float]]]
"""Task -> attempt -> the values of its graded regrades. What is ungraded is not there."""


class Components(Record):
    """Variances in squared units of the values. None: the design cannot tell."""

    task: float | None
    """Between tasks. None: not told apart from the run's (no task has two attempts), or there is
    one task."""
    run: float | None
    """Between attempts at one task. None: no task has two attempts."""
    task_and_run: float | None
    """Sum of both where they cannot be told apart, else None."""
    judge: float | None
    """Between regrades of one trace. None: no trace has two."""
    truncated: tuple[str, ...]
    """Components whose estimate came out below 0, as those of a small one do half the time; they
    are given as 0."""
    n_tasks: int
    n_attempts: int
    n_regrades: int
    df_run: int
    """Degrees of freedom of the run's variance: attempts beyond the first of each task."""
    df_judge: int
    """The same of the judge's: regrades beyond the first of each attempt."""
    mean: float | None
    """Over tasks of the mean over attempts of the mean over regrades."""

    def of_mean(self, n_tasks: int, n_attempts: int, n_regrades: int) -> float | None:
        """Variance of a mean over so many tasks, attempts at each, regrades of each.

        None: some component that it needs is unknown.
        """
        if self.judge is None:
            return None
        judge = self.judge / (n_tasks * n_attempts * n_regrades)
        if self.task is not None and self.run is not None:
            return self.task / n_tasks + self.run / (n_tasks * n_attempts) + judge
        if self.task_and_run is not None and n_attempts == 1:
            return self.task_and_run / n_tasks + judge
        return None


def components(values: Nested) -> Components:
    """The variance components of a design that need not be balanced.

    The mean squares of the nested analysis of variance are set equal to what they are expected to
    be (the method of moments; Henderson's method 1), so the estimates are unbiased whatever the
    distributions are, before those below 0 are set to 0.

    Source: Searle, Casella and McCulloch, Variance Components, 1992, section 5.5 and appendix F.
    """
    tasks = [
        kept
        for attempts in values.values()
        if (kept := [list(regrades) for regrades in attempts.values() if regrades])
    ]
    attempts = [attempt for task in tasks for attempt in task]
    n = sum(map(len, attempts))
    df_run, df_judge = len(attempts) - len(tasks), n - len(attempts)
    judge = _sum_of_squares(attempts) / df_judge if df_judge else None
    run = _run(tasks, judge, df_run)
    task, both = _task(tasks, run, judge)
    found = {"task": task, "run": run, "task_and_run": both, "judge": judge}
    kept = {name: None if each is None else max(0.0, each) for name, each in found.items()}
    means = [math.fsum(map(_mean, task)) / len(task) for task in tasks]
    return Components(
        task=kept["task"],
        run=kept["run"],
        task_and_run=kept["task_and_run"],
        judge=kept["judge"],
        truncated=tuple(name for name, each in found.items() if each is not None and each < 0),
        n_tasks=len(tasks),
        n_attempts=len(attempts),
        n_regrades=n,
        df_run=df_run,
        df_judge=df_judge,
        mean=_mean(means) if means else None,
    )


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _sum_of_squares(groups: Sequence[Sequence[float]]) -> float:
    """Around the mean of each group."""
    return math.fsum(
        (value - mean) ** 2 for group in groups for mean in [_mean(group)] for value in group
    )


def _run(tasks: Sequence[Sequence[Sequence[float]]], judge: float | None, df: int) -> float | None:
    """The variance of attempts; without two regrades of any it holds the judge's as well, and is
    unknown.
    """
    if not df or judge is None:
        return None
    squares, factor = 0.0, 0.0
    for task in tasks:
        n = sum(map(len, task))
        mean = math.fsum(math.fsum(attempt) for attempt in task) / n
        squares += math.fsum(len(attempt) * (_mean(attempt) - mean) ** 2 for attempt in task)
        factor += n - sum(len(attempt) ** 2 for attempt in task) / n
    return (squares - df * judge) / factor


def _task(
    tasks: Sequence[Sequence[Sequence[float]]], run: float | None, judge: float | None
) -> tuple[float | None, float | None]:
    """(between tasks, None), or (None, between tasks and attempts) where no task has two."""
    if len(tasks) < 2 or judge is None:
        return None, None
    sizes = [sum(map(len, task)) for task in tasks]
    n = sum(sizes)
    mean = math.fsum(value for task in tasks for attempt in task for value in attempt) / n
    squares = math.fsum(
        size * (math.fsum(math.fsum(attempt) for attempt in task) / size - mean) ** 2
        for task, size in zip(tasks, sizes, strict=True)
    )
    of_task = n - sum(size**2 for size in sizes) / n
    left = squares - (len(tasks) - 1) * judge
    if run is None:
        return None, left / of_task
    each = [sum(len(attempt) ** 2 for attempt in task) for task in tasks]
    of_run = math.fsum(e / s for e, s in zip(each, sizes, strict=True)) - sum(each) / n
    return (left - of_run * run) / of_task, None
