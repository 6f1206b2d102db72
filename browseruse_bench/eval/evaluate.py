"""Judges the settled attempts of one run and appends the judgements to its journal."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
from collections.abc import (
    AsyncGenerator,
    Callable,
    Collection,
    Generator,
    Iterable,
    Mapping,
)
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from browseruse_bench.benchmarks.load import Benchmark
from browseruse_bench.errors import (
    BudgetError,
    ConfigError,
    DataError,
)
from browseruse_bench.eval.evaluator_process import EvaluatorJudge, EvaluatorSpec
from browseruse_bench.eval.judges import (
    Case,
    CodeJudge,
    Judge,
    Keys,
    Kind,
    MatcherJudge,
    NoModelJudge,
    Verdict,
    damaged,
    judgement_of,
    kind_of,
    rubric_key,
    verdict_on,
)
from browseruse_bench.measure.tally import Reference
from browseruse_bench.models.base import Model, PendingError
from browseruse_bench.records.judgement import Judgement
from browseruse_bench.records.rubric import Rubric
from browseruse_bench.records.run import Attempt, AttemptEntry
from browseruse_bench.records.task import Task
from browseruse_bench.store.journal import Journal
from browseruse_bench.store.run_folder import RunFolder
from browseruse_bench.store.trace_folder import TraceFolder


def utc_now() -> str:
    """The time now, ISO 8601 in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


@dataclass(frozen=True, kw_only=True)
class Judged:
    """What one call of `evaluate_run` did."""

    new: tuple[Judgement, ...]
    """Appended, in the order in which they were given."""
    kept: tuple[Attempt, ...]
    """Had a judgement with the same keys already."""
    skipped: Mapping[Attempt, str]
    """Cannot be judged with the benchmark as it is now, and why."""
    notes: tuple[str, ...]
    over_budget: str = ""
    """Why judging ended before all was judged."""
    pending: tuple[Attempt, ...] = ()
    """Their calls wait in a batch; the same command goes on once it is answered."""


@dataclass(frozen=True, kw_only=True)
class Asking:
    """How attempts are judged."""

    judge: Judge | None = None
    """Reads rubrics; None: code checks them where it can, the others stay ungraded."""
    model: Model | None = None
    """What a benchmark's own evaluator may ask."""
    concurrency: int = 2
    """How many are judged at a time."""
    timeout_s: float = 120
    """The longest that a custom evaluator may take for one attempt, beside what it asks."""


@dataclass(frozen=True, kw_only=True)
class _Plan:
    """One attempt that will be judged."""

    entry: AttemptEntry
    task: Task
    rubric: Rubric | None
    kind: Kind
    sample: int

    def keys(self, judges: Mapping[Kind, Judge]) -> tuple[str, str, str | None, str | None, str]:
        """The reuse key of the judgement that it will have, without the sample number."""
        return (
            self.entry.task_key,
            self.entry.trace_key,
            rubric_key(self.kind, self.task, self.rubric),
            None,
            judges[self.kind].judge_key,
        )


def references(benchmark: Benchmark) -> dict[str, Reference]:
    """What each task of the benchmark, as it is now, is compared with, by task id.

    Raises:
        DataError: a rubric is damaged.
    """
    found: dict[str, Reference] = {}
    for task in benchmark.tasks:
        rubric = benchmark.rubric(task.task_id)
        kind = kind_of(rubric, evaluator=benchmark.evaluator is not None)
        found[task.task_id] = Reference(
            task_key=task.view.key, rubric_key=rubric_key(kind, task, rubric), rubric=rubric
        )
    return found


async def evaluate_run(
    folder: RunFolder,
    benchmark: Benchmark,
    *,
    force: bool = False,
    only_ungraded: bool = False,
    task_ids: Collection[str] | None = None,
    asking: Asking | None = None,
    on_judged: Callable[[Judgement], None] | None = None,
    now: Callable[[], str] = utc_now,
) -> Judged:
    """Every settled attempt of the run has a judgement with the keys of today.

    Attempts that ended by infrastructure are never judged. An attempt that has a judgement
    with equal keys keeps it, graded or not. Judgements are appended and synced one by one:
    a crash loses at most those in flight.

    Args:
        folder: the run.
        benchmark: its benchmark and split.
        force: judge again in any case; the new judgement has the next sample number.
        only_ungraded: judge again what is ungraded, and nothing that is graded.
        task_ids: leave all other tasks as they are; None: all tasks.
        asking: who judges, and how.
        on_judged: called with each new judgement after it is on disk.
        now: the clock.

    Raises:
        ConfigError: the evaluator cannot be loaded, a task id is not of this run, the run is
            being judged by another process, or two arguments exclude each other.
        DataError: run.json, a journal or a rubric is damaged.
    """
    if force and only_ungraded:
        raise ConfigError("--force and --only-ungraded exclude each other")
    _refuse_unknown(folder, task_ids)
    async with evaluation(folder, benchmark, asking or Asking(), on_judged, now) as judging:
        entries = [
            entry
            for entry in folder.attempts().values()
            if task_ids is None or entry.task_id in task_ids
        ]
        await judging.settle(
            entries,
            ask_again=lambda old: force or (only_ungraded and old.status == "ungraded"),
        )
        return judging.judged()


@contextlib.asynccontextmanager
async def evaluation(
    folder: RunFolder,
    benchmark: Benchmark,
    asking: Asking,
    on_judged: Callable[[Judgement], None] | None = None,
    now: Callable[[], str] = utc_now,
) -> AsyncGenerator[Evaluation]:
    """Judging of one run: everything that can be wrong with its judges is known on entry.

    Raises:
        ConfigError: the evaluator cannot be loaded, or another process judges this run.
        DataError: a journal is damaged.
    """
    async with contextlib.AsyncExitStack() as stack:
        stack.enter_context(exclusive(folder.judgements_path))
        own = await _own_evaluator(benchmark, stack, asking)
        judges: dict[Kind, Judge] = {
            "checks": CodeJudge(),
            "matcher": MatcherJudge(),
            "model": asking.judge or NoModelJudge(),
        }
        if own is not None:
            judges["evaluator"] = own[0]
        journal = stack.enter_context(Journal(folder.judgements_path))
        yield Evaluation(
            folder,
            benchmark,
            judges,
            journal,
            asking=asking,
            notes=own[1] if own else (),
            on_judged=on_judged,
            now=now,
        )


async def _own_evaluator(
    benchmark: Benchmark, stack: contextlib.AsyncExitStack, asking: Asking
) -> tuple[Judge, tuple[str, ...]] | None:
    """The benchmark's own evaluator, loaded, and what is to be said about it."""
    if benchmark.evaluator is None:
        return None
    spec = EvaluatorSpec(
        target=benchmark.evaluator,
        fallback=benchmark.path / "evaluator.py",
        timeout_s=asking.timeout_s,
    )
    judge = EvaluatorJudge(spec, n_processes=asking.concurrency, model=asking.model)
    stack.push_async_callback(judge.close)
    loaded = await judge.start()
    return judge, ((loaded.note,) if loaded.note else ())


class Evaluation:
    """Judges attempts of one run, and keeps account of what came of each."""

    def __init__(
        self,
        folder: RunFolder,
        benchmark: Benchmark,
        judges: Mapping[Kind, Judge],
        journal: Journal,
        *,
        asking: Asking,
        notes: tuple[str, ...],
        on_judged: Callable[[Judgement], None] | None,
        now: Callable[[], str],
    ) -> None:
        """Made by `evaluation`."""
        self._folder = folder
        self._benchmark = benchmark
        self._judges = judges
        self._journal = journal
        self._asking = asking
        self._notes = notes
        self._on_judged = on_judged
        self._now = now
        self._tasks = {task.task_id: task for task in benchmark.tasks}
        self._given: dict[Attempt, list[Judgement]] = {}
        for judgement in folder.judgements():
            self._given.setdefault((judgement.task_id, judgement.attempt), []).append(judgement)
        self._slots = asyncio.Semaphore(asking.concurrency)
        self._new: list[Judgement] = []
        self._kept: list[Attempt] = []
        self._pending: list[Attempt] = []
        self._skipped: dict[Attempt, str] = {}
        self._over_budget = ""

    def judged(self) -> Judged:
        """What was done so far."""
        return Judged(
            new=tuple(self._new),
            kept=tuple(self._kept),
            skipped=self._skipped,
            notes=self._notes,
            over_budget=self._over_budget,
            pending=tuple(self._pending),
        )

    async def settle(
        self,
        entries: Iterable[AttemptEntry],
        *,
        ask_again: Callable[[Judgement], bool] = lambda old: False,
    ) -> None:
        """Each of these attempts has its judgement in the journal, or is accounted for; a free
        slot takes the next one.

        Args:
            entries: newest entries of attempts.
            ask_again: whether a judgement with the same keys does not do.
        """
        plans = [plan for e in entries if (plan := self._plan(e, ask_again)) is not None]
        owed = iter(plans)

        async def slot() -> None:
            for plan in owed:
                async with self._slots:
                    await self._judge(plan)

        async with asyncio.TaskGroup() as group:
            for _ in range(min(self._asking.concurrency, len(plans))):
                group.create_task(slot())

    def _plan(self, entry: AttemptEntry, ask_again: Callable[[Judgement], bool]) -> _Plan | None:
        """What is to be judged. None: it cannot be, or it has its judgement, which is repeated
        in the journal if one of other keys came after it.
        """
        attempt = (entry.task_id, entry.attempt)
        if entry.status == "infrastructure":
            return None
        task = self._tasks.get(entry.task_id)
        if task is None or task.view.key != entry.task_key:
            self._skipped[attempt] = _changed(entry.task_id, self._benchmark, gone=task is None)
            return None
        rubric = self._benchmark.rubric(task.task_id)
        kind = kind_of(
            rubric,
            evaluator=self._benchmark.evaluator is not None,
            model=self._asking.judge is not None,
        )
        plan = _Plan(entry=entry, task=task, rubric=rubric, kind=kind, sample=0)
        given = self._given.get(attempt, [])
        same = [j for j in given if j.reuse_key[:5] == plan.keys(self._judges)]
        if same and not ask_again(same[-1]):
            self._kept.append(attempt)
            if [j for j in given if j.trace_key == entry.trace_key][-1] is not same[-1]:
                self._journal.append(same[-1].as_json())
            return None
        return replace(plan, sample=max((j.sample for j in same), default=-1) + 1)

    async def _judge(self, plan: _Plan) -> None:
        if self._over_budget:
            return
        judge = self._judges[plan.kind]
        try:
            verdict = await _verdict(plan, self._folder, judge)
        except BudgetError as error:
            self._over_budget = str(error)
            return
        except PendingError:
            self._pending.append((plan.entry.task_id, plan.entry.attempt))
            return
        keys = Keys(
            task_id=plan.entry.task_id,
            attempt=plan.entry.attempt,
            task_key=plan.entry.task_key,
            trace_key=plan.entry.trace_key,
            rubric_key=rubric_key(plan.kind, plan.task, plan.rubric),
            sample=plan.sample,
        )
        judgement = judgement_of(judge, verdict, keys, self._now())
        self._journal.append(judgement.as_json())
        self._new.append(judgement)
        if self._on_judged is not None:
            self._on_judged(judgement)


def _refuse_unknown(folder: RunFolder, task_ids: Collection[str] | None) -> None:
    known = {task_id for task_id, _ in folder.read_run().wanted}
    unknown = [task_id for task_id in task_ids or () if task_id not in known]
    if unknown:
        names = ", ".join(f"'{task_id}'" for task_id in unknown)
        raise ConfigError(f"{folder.path}: no task {names} in this run")


@contextlib.contextmanager
def exclusive(path: Path) -> Generator[None]:
    """Hold the file's lock, so that two processes never judge one run at the same time.

    Raises:
        ConfigError: another process holds it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConfigError(
                f"{path}: another process is judging this run; wait until it has ended"
            ) from None
        yield


def _changed(task_id: str, benchmark: Benchmark, *, gone: bool) -> str:
    what = "is no longer there" if gone else "was changed since it was attempted"
    return (
        f"task '{task_id}' of {benchmark.name}, split {benchmark.split}, {what}: judge it with "
        "the revision that the run was made on, or run it again"
    )


async def _verdict(plan: _Plan, folder: RunFolder, judge: Judge) -> Verdict:
    entry = plan.entry
    path = folder.try_path(entry.task_id, entry.attempt, entry.try_)
    try:
        trace = await asyncio.to_thread(TraceFolder.open, path, entry.trace_key)
    except (DataError, OSError) as error:
        return damaged(error)
    case = Case(
        task=plan.task,
        rubric=plan.rubric,
        trace=trace,
        cost_usd=entry.cost_usd,
        sample=plan.sample,
    )
    return await verdict_on(judge, case)
