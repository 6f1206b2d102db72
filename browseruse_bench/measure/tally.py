"""Counts every selected attempt once, and takes means that say what is missing in them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from browseruse_bench.measure.scoring import score
from browseruse_bench.records.base import Record
from browseruse_bench.records.judgement import Judgement, UngradedReason
from browseruse_bench.records.rubric import Rubric
from browseruse_bench.records.run import Accounting, Attempt, AttemptEntry, NotRunReason
from browseruse_bench.records.score import Score

Where = Literal["graded", "ungraded", "infrastructure", "not_run"]


@dataclass(frozen=True, kw_only=True)
class Reference:
    """What a task is compared with in the benchmark as it is now."""

    task_key: str
    rubric_key: str | None
    rubric: Rubric | None


@dataclass(frozen=True, kw_only=True)
class Placed:
    """One selected attempt in the one place where it is counted."""

    task_id: str
    attempt: int
    where: Where
    reason: UngradedReason | NotRunReason | None = None
    """Why it is ungraded or was not run."""
    message: str = ""
    """The same for people."""
    entry: AttemptEntry | None = None
    judgement: Judgement | None = None
    """The one that counts, also where it is ungraded."""
    score: Score | None = None
    """Given exactly if it is graded."""


class Figures(Record):
    """Counts and means of some attempts. A mean is None where nothing is graded."""

    accounting: Accounting
    n: int
    """Graded attempts."""
    n_tasks: int
    """Tasks with a graded attempt."""
    mean: float | None
    """Points, 0..100: the mean over tasks of the mean over a task's graded attempts."""
    lower: float | None
    """The mean over all selected attempts if all that is not graded had 0 points."""
    upper: float | None
    """The same if all that is not graded had 100 points."""
    success: float | None
    """Share of successes, 0..1, taken like the mean."""
    success_lower: float | None
    """With all that is not graded as failures."""
    success_upper: float | None
    """With all that is not graded as successes."""


def place(
    *,
    wanted: Iterable[Attempt],
    entries: Mapping[Attempt, AttemptEntry],
    judgements: Iterable[Judgement],
    references: Mapping[str, Reference] | None,
    not_run: Mapping[Attempt, NotRunReason],
    success_at: float,
) -> tuple[Placed, ...]:
    """Each wanted attempt in its place, in the order of `wanted`.

    The judgement that counts is the newest one of the attempt's present trace. It does not
    count if the task or what it is compared with is another one now.

    Args:
        wanted: the selected attempts; each is counted once.
        entries: how the attempts settled.
        judgements: all of the run, oldest first.
        references: by task id, of the benchmark as it is now; None: it is not at hand, so
            what rests on findings cannot be scored and counts as not judged.
        not_run: why an attempt has no entry; `pending` where nothing is said.
        success_at: points from which an attempt counts as a success.
    """
    newest = {(j.task_id, j.attempt, j.trace_key): j for j in judgements}
    placed: list[Placed] = []
    for task_id, number in dict.fromkeys(wanted):
        entry = entries.get((task_id, number))
        if entry is None:
            reason = not_run.get((task_id, number), "pending")
            placed.append(Placed(task_id=task_id, attempt=number, where="not_run", reason=reason))
        elif entry.status == "infrastructure":
            placed.append(
                Placed(
                    task_id=task_id,
                    attempt=number,
                    where="infrastructure",
                    message=entry.reason,
                    entry=entry,
                )
            )
        else:
            judgement = newest.get((task_id, number, entry.trace_key))
            placed.append(_judged(entry, judgement, references, success_at))
    return tuple(placed)


def _judged(
    entry: AttemptEntry,
    judgement: Judgement | None,
    references: Mapping[str, Reference] | None,
    success_at: float,
) -> Placed:
    """The place of an attempt that ran."""

    def ungraded(reason: UngradedReason, message: str) -> Placed:
        return Placed(
            task_id=entry.task_id,
            attempt=entry.attempt,
            where="ungraded",
            reason=reason,
            message=message,
            entry=entry,
            judgement=judgement,
        )

    if judgement is None:
        return ungraded("not_judged", "")
    stale = _stale(judgement, references)
    if stale:
        return ungraded("not_judged", stale)
    if judgement.reason is not None:
        return ungraded(judgement.reason, judgement.message)
    rubric = None if references is None else references[entry.task_id].rubric
    return Placed(
        task_id=entry.task_id,
        attempt=entry.attempt,
        where="graded",
        entry=entry,
        judgement=judgement,
        score=score(judgement, rubric, success_at=success_at),
    )


def _stale(judgement: Judgement, references: Mapping[str, Reference] | None) -> str:
    """Why a judgement must not be used; empty if it may."""
    if references is None:
        if judgement.basis == "findings" and judgement.status == "graded":
            return "the benchmark is not at hand, so its findings cannot be scored"
        return ""
    reference = references.get(judgement.task_id)
    if judgement.basis == "imported":
        return ""
    if reference is None:
        return "the task is no longer in the benchmark"
    if reference.task_key != judgement.task_key:
        return "the task was changed since it was attempted"
    if reference.rubric_key != judgement.rubric_key:
        return "it was judged by a reference that is no longer the task's"
    return ""


def figures(placed: Sequence[Placed]) -> Figures:
    """Counts and means of these attempts."""
    graded = {index: p.score for index, p in enumerate(placed) if p.score is not None}
    points = {index: score.points for index, score in graded.items()}
    success = {index: float(score.success) for index, score in graded.items()}
    mean, lower, upper = _mean_and_bounds(placed, points, 100)
    rate, rate_lower, rate_upper = _mean_and_bounds(placed, success, 1)
    return Figures(
        accounting=accounting(placed),
        n=len(graded),
        n_tasks=len({p.task_id for p in placed if p.score is not None}),
        mean=mean,
        lower=lower,
        upper=upper,
        success=rate,
        success_lower=rate_lower,
        success_upper=rate_upper,
    )


def accounting(placed: Sequence[Placed]) -> Accounting:
    """How many of these attempts are in each place."""
    where = Counter(p.where for p in placed)
    ungraded = Counter(str(p.reason) for p in placed if p.where == "ungraded")
    not_run = Counter(str(p.reason) for p in placed if p.where == "not_run")
    return Accounting(
        selected=len(placed),
        graded=where["graded"],
        ungraded=dict(sorted(ungraded.items())),
        infrastructure=where["infrastructure"],
        not_run=dict(sorted(not_run.items())),
    )


def _mean_and_bounds(
    placed: Sequence[Placed], values: Mapping[int, float], top: float
) -> tuple[float | None, float | None, float | None]:
    """Mean over tasks of the mean over a task's attempts, and its bounds.

    Args:
        placed: all attempts.
        values: of the graded ones, by their position in `placed`.
        top: the highest value.
    """
    if not values:
        return None, None, None
    by_task: dict[str, list[int]] = {}
    for index, p in enumerate(placed):
        by_task.setdefault(p.task_id, []).append(index)
    means: list[float] = []
    lowers: list[float] = []
    uppers: list[float] = []
    for attempts in by_task.values():
        known = [values[index] for index in attempts if index in values]
        total = math.fsum(known)
        lowers.append(total / len(attempts))
        uppers.append((total + top * (len(attempts) - len(known))) / len(attempts))
        if known:
            means.append(total / len(known))
    mean = math.fsum(means) / len(means)
    # Rounding must not put the mean outside its own bounds.
    lower = min(mean, math.fsum(lowers) / len(by_task))
    upper = max(mean, math.fsum(uppers) / len(by_task))
    return mean, lower, upper


def judges(placed: Iterable[Placed]) -> tuple[tuple[str, str], ...]:
    """(basis, judge key) of each judgement that counts, sorted, each once."""
    given = (p.judgement for p in placed if p.judgement is not None and p.reason != "not_judged")
    return tuple(sorted({(j.basis, j.judge_key) for j in given}))


def is_mixed(found: Sequence[tuple[str, str]]) -> bool:
    """Whether these judges must not be averaged over.

    Code checks and the matcher may stand side by side, for tasks with and without a rubric;
    two judges of one basis, or an evaluator or an import beside any other, may not.
    """
    bases = [basis for basis, _ in found]
    return len(set(bases)) != len(bases) or (
        len(bases) > 1 and not set(bases) <= {"findings", "matcher"}
    )
