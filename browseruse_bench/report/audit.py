"""What a benchmark gives an attempt that does nothing: no step, no answer."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from pydantic import Field

from browseruse_bench.benchmarks.load import Benchmark
from browseruse_bench.measure.scoring import score
from browseruse_bench.records.base import Record
from browseruse_bench.records.judgement import Judgement
from browseruse_bench.records.run import Attempt
from browseruse_bench.report.render import NOTHING, Table, number
from browseruse_bench.store.run_folder import RunFolder

Worth = Literal["nothing", "points", "needs_model", "no_reference", "not_judged", "not_attempted"]
"""`points` is what must not be. `needs_model`: the rubric has items without a check, and no
judge was named. `no_reference`: nothing says what is right. `not_judged`: the judging failed or
waits. `not_attempted`: left out of runs, or the machinery failed."""
WORDS: dict[Worth, str] = {
    "nothing": "earn nothing",
    "points": "earn points",
    "needs_model": "need a model",
    "no_reference": "have nothing to be judged by",
    "not_judged": "were not judged",
    "not_attempted": "were not attempted",
}
NO_JUDGE = "its rubric has items without a check: name a model with --judge"


class IdleTask(Record):
    """What doing nothing earns at one task."""

    task_id: str
    worth: Worth
    points: float | None = Field(default=None, ge=0, le=100)
    """Before integrity flags; None: not known."""
    met: tuple[str, ...] = ()
    """Items that it meets."""
    protocol: str | None = None
    """Who judged."""
    why: str = ""


class Audit(Record):
    """What doing nothing earns at the tasks of one split."""

    benchmark: str
    split: str
    revision: str
    tasks: tuple[IdleTask, ...]

    def of(self, *worths: Worth) -> tuple[IdleTask, ...]:
        """The tasks at which it is worth one of these."""
        return tuple(task for task in self.tasks if task.worth in worths)


def audit(
    folder: RunFolder,
    benchmark: Benchmark,
    *,
    task_ids: Collection[str],
    left_out: Collection[str] = (),
    pending: Collection[Attempt] = (),
) -> Audit:
    """What an idle run, judged, says of a benchmark.

    Args:
        folder: a run of `nop` with one attempt per task.
        benchmark: the run's benchmark and split.
        task_ids: the tasks to tell of; each is told of, whatever became of it.
        left_out: those that need a login, which no run without one attempts.
        pending: attempts whose calls wait in a batch.
    """
    judgements = {judgement.task_id: judgement for judgement in folder.judgements()}
    reasons = {entry.task_id: entry.reason for entry in folder.attempts().values()}
    waiting = {task_id for task_id, _ in pending}

    def told(task_id: str) -> IdleTask:
        found = judgements.get(task_id)
        if found is not None:
            return _idle(found, benchmark)
        if task_id in waiting:
            return IdleTask(task_id=task_id, worth="not_judged", why="waits for a batch")
        why = "needs a login" if task_id in left_out else reasons.get(task_id) or "did not settle"
        return IdleTask(task_id=task_id, worth="not_attempted", why=why)

    return Audit(
        benchmark=benchmark.name,
        split=benchmark.split,
        revision=benchmark.revision,
        tasks=tuple(told(task_id) for task_id in task_ids),
    )


def _idle(judgement: Judgement, benchmark: Benchmark) -> IdleTask:
    task_id = judgement.task_id
    if judgement.status == "ungraded":
        if judgement.reason == "not_judged":
            return IdleTask(task_id=task_id, worth="needs_model", why=NO_JUDGE)
        worth: Worth = "no_reference" if judgement.reason == "no_reference" else "not_judged"
        return IdleTask(
            task_id=task_id, worth=worth, protocol=judgement.protocol, why=judgement.message
        )
    found = score(judgement, benchmark.rubric(task_id), success_at=benchmark.info.success_at)
    # A flag that makes an idle attempt 0 does not mend a rubric that gave it points.
    earns = found.raw_points > 0 or found.success
    return IdleTask(
        task_id=task_id,
        worth="points" if earns else "nothing",
        points=found.raw_points,
        met=tuple(f.item for f in judgement.findings or () if f.status == "met"),
        protocol=judgement.protocol,
        why="counts as a success" if found.success else "",
    )


def tables(found: Audit) -> list[Table]:
    """What is not as it should be, a row each, and how many tasks there are of each kind."""
    rows = tuple(
        (
            task.task_id,
            WORDS[task.worth],
            number(task.points),
            ", ".join(task.met) or NOTHING,
            task.why,
        )
        for task in found.tasks
        if task.worth != "nothing"
    )
    summary = Table(
        title="",
        headers=("doing nothing", f"{found.benchmark}, split {found.split}"),
        rows=tuple((WORDS[worth], str(len(found.of(worth)))) for worth in WORDS),
    )
    if not rows:
        return [summary]
    headers = ("task", "what", "points", "items met", "why")
    return [Table(title="", headers=headers, rows=rows, right=frozenset([2])), summary]
