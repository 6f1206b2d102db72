"""The queue of gradings: what was accepted is graded once, also over a crash.

    <folder>/traces/<trace_key>/   every trace that was sent, frozen
    <folder>/orders.jsonl          what was accepted, written before anybody is told so
    <folder>/results.jsonl         what came of it, written before anybody is told so

A grading's id is made of all that decides: task, trace, evidence policy, rubric, judge, sample.
The same request meets the grading that is under way, or its result. Without a result it is owed,
and an opened service goes on with it. A failed grading has a result without a reward; asking for
it again grades again, as the next sample of the judge, since the ledger would give back the reply
that failed.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from browseruse_bench.benchmarks.load import Benchmark
from browseruse_bench.errors import BudgetError, DataError
from browseruse_bench.eval.judges import (
    Case,
    Judge,
    Keys,
    Kind,
    NoModelJudge,
    judgement_of,
    kind_of,
    rubric_key,
    verdict_on,
)
from browseruse_bench.export.reward.fresh import Freshness
from browseruse_bench.export.reward.intake import Intake, Taken
from browseruse_bench.export.reward.wire import MAX_SAMPLE, Graded, Refused, TaskState
from browseruse_bench.measure.scoring import score
from browseruse_bench.models.base import PendingError
from browseruse_bench.records.base import Record, content_key
from browseruse_bench.records.judgement import Judgement
from browseruse_bench.records.task import Task
from browseruse_bench.records.trace import EvidencePolicy
from browseruse_bench.store.journal import Journal, read_journal

GRACE_S = 10.0
"""How long gradings under way may go on when the service ends; what did not end is owed."""


class Order(Record):
    """One accepted grading."""

    id: str
    task_id: str
    trace_key: str
    policy: EvidencePolicy
    sample: int
    rubric_key: str | None = None
    judge_key: str
    at: str


class Result(Record):
    """What came of an order. The last result of an id counts."""

    id: str
    try_: int
    judgement: Judgement


@dataclass
class _Work:
    order: Order
    taken: Taken
    done: asyncio.Future[Judgement]


@dataclass
class _Index:
    """Where each id's last result is in results.jsonl: judgements are not kept in memory."""

    path: Path
    places: dict[str, tuple[int, int, bool]] = field(
        default_factory=dict[str, tuple[int, int, bool]]
    )
    tries: dict[str, int] = field(default_factory=dict[str, int])

    def load(self) -> None:
        """Read it whole, once.

        Raises:
            DataError: a line is damaged.
        """
        if not self.path.exists():
            return
        offset = 0
        *lines, _torn = self.path.read_bytes().split(b"\n")
        for number, line in enumerate(lines, 1):
            try:
                result = Result.model_validate_json(line)
            except ValidationError as error:
                raise DataError(f"{self.path}: line {number} is damaged") from error
            self.note(result, offset, len(line))
            offset += len(line) + 1

    def note(self, result: Result, offset: int, length: int) -> None:
        self.places[result.id] = (offset, length, result.judgement.status == "graded")
        self.tries[result.id] = result.try_

    def read(self, id: str) -> Judgement:
        offset, length, _ = self.places[id]
        with self.path.open("rb") as file:
            file.seek(offset)
            return Result.model_validate_json(file.read(length)).judgement


class Service:
    """Grades traces of one benchmark by one set of judges."""

    def __init__(
        self,
        benchmark: Benchmark,
        judges: Mapping[Kind, Judge],
        folder: Path,
        intake: Intake,
        *,
        fresh: Freshness,
        now: Callable[[], str],
        concurrency: int = 2,
        max_queue: int = 64,
    ) -> None:
        """Nothing is read until it is entered."""
        self.benchmark = benchmark
        self.intake = intake
        self._judges = judges
        self._folder = folder
        self._fresh = fresh
        self._now = now
        self._concurrency = concurrency
        self._max_queue = max_queue
        self._tasks = {task.task_id: task for task in benchmark.tasks}
        self._index = _Index(folder / "results.jsonl")
        self._orders: dict[str, Order] = {}
        self._working: dict[str, _Work] = {}
        self._queue: asyncio.Queue[_Work] = asyncio.Queue()
        self._writing = asyncio.Lock()
        self._seconds: deque[float] = deque(maxlen=50)
        self._n_grading = 0
        self._workers: list[asyncio.Task[None]] = []
        self.closing = False
        self.n_resumed = 0
        self.lost: list[tuple[Order, str]] = []
        """Owed gradings whose trace is not to be had, and why."""
        self.faults: list[Exception] = []

    async def __aenter__(self) -> Service:
        """Go on with what is owed.

        Raises:
            DataError: a journal is damaged.
        """
        await asyncio.to_thread(self._read)
        self._stack = contextlib.ExitStack()
        self._order_journal = self._stack.enter_context(Journal(self._folder / "orders.jsonl"))
        self._result_journal = self._stack.enter_context(Journal(self._index.path))
        for order in self._orders.values():
            if order.id not in self._index.places and self._current(order):
                await self._resume(order)
        self._workers = [asyncio.create_task(self._work()) for _ in range(self._concurrency)]
        return self

    async def __aexit__(self, *_: object) -> None:
        """What is under way may end within GRACE_S; what waits is owed."""
        self.closing = True
        busy = [work.done for work in self._working.values()]
        while not self._queue.empty():
            busy.remove(self._queue.get_nowait().done)
        if busy:
            await asyncio.wait(busy, timeout=GRACE_S)
        for worker in self._workers:
            worker.cancel()
        await asyncio.gather(*self._workers, return_exceptions=True)
        for work in self._working.values():
            if not work.done.done():
                work.done.set_exception(self._ending())
                work.done.exception()
        self._stack.close()

    async def _resume(self, order: Order) -> None:
        open_ = self.intake.open
        try:
            taken = await asyncio.to_thread(open_, order.trace_key, order.sample, None)
        except Refused as refused:
            self.lost.append((order, str(refused)))
            return
        if taken.policy != order.policy:
            self.lost.append((order, "another harness is known to have recorded it now"))
            return
        self._enqueue(order, taken)
        self.n_resumed += 1

    def _read(self) -> None:
        self._index.load()
        path = self._folder / "orders.jsonl"
        try:
            orders = [Order.model_validate(line) for line in read_journal(path)]
        except ValidationError as error:
            raise DataError(f"{path}: a line is no order: {error}") from error
        self._orders = {order.id: order for order in orders}

    def tasks(self) -> list[TaskState]:
        """Every task, and whether it can be graded now."""
        return [self._state(task) for task in self._tasks.values()]

    def _state(self, task: Task) -> TaskState:
        kind = self._kind(task)
        rubric = self.benchmark.rubric(task.task_id)
        why = None
        if kind == "matcher" and task.expected_result is None:
            why = "it has no evaluator, no rubric and no expected_result"
        elif isinstance(self._judges[kind], NoModelJudge):
            why = "its rubric has items without a code check: name a model with --judge"
        return TaskState(
            task_id=task.task_id,
            task_key=task.view.key,
            rubric_key=rubric_key(kind, task, rubric),
            graded_by=self._judges[kind].protocol,
            stale=None if rubric is None else self._fresh.problem(rubric),
            not_gradable=why,
        )

    def _kind(self, task: Task) -> Kind:
        return kind_of(
            self.benchmark.rubric(task.task_id),
            evaluator=self.benchmark.evaluator is not None,
            model=not isinstance(self._judges["model"], NoModelJudge),
        )

    def _current(self, order: Order) -> bool:
        """Whether today's task, rubric and judge are those of the order."""
        task = self._tasks.get(order.task_id)
        if task is None:
            return False
        rubric = self.benchmark.rubric(order.task_id)
        kind = self._kind(task)
        return (order.rubric_key, order.judge_key) == (
            rubric_key(kind, task, rubric),
            self._judges[kind].judge_key,
        )

    def _task(self, taken: Taken) -> Task:
        """The task of a trace, which can be graded now.

        Raises:
            Refused: it is unknown, has changed, its rubric is stale, or nothing grades it.
        """
        trace = taken.trace.trace
        task = self._tasks.get(trace.task_id)
        if task is None:
            raise Refused(404, "unknown_task", f"{self.benchmark.name} has no such task here")
        if trace.task_key != task.view.key:
            raise Refused(409, "stale_task", "the task's text is not the one that was attempted")
        if trace.outcome.status == "infrastructure":
            why = "the infrastructure ended this attempt; it is owed again, not judged"
            raise Refused(422, "infrastructure", why)
        state = self._state(task)
        if taken.rubric_key not in (None, state.rubric_key):
            raise Refused(409, "stale", "the rubric is not the one that is wanted")
        if state.stale is not None:
            raise Refused(409, "stale", state.stale)
        if state.not_gradable is not None:
            raise Refused(422, "not_gradable", state.not_gradable)
        return task

    def _order(self, taken: Taken, task: Task) -> Order:
        kind = self._kind(task)
        parts = {
            "trace_key": taken.trace.key,
            "policy": taken.policy,
            "sample": taken.sample,
            "rubric_key": rubric_key(kind, task, self.benchmark.rubric(task.task_id)),
            "judge_key": self._judges[kind].judge_key,
        }
        id = content_key({**parts, "task_key": task.view.key, "task_id": task.task_id})
        return Order.model_validate({**parts, "id": id, "task_id": task.task_id, "at": self._now()})

    async def submit(self, taken: Taken) -> str:
        """The id of the grading of this trace; it is under way, done, or accepted now.

        Raises:
            Refused: it cannot be graded, or the queue is full.
        """
        order = self._order(taken, self._task(taken))
        if order.id in self._working:
            return order.id
        if self._index.places.get(order.id, (0, 0, False))[2]:
            await self._note(order)
            return order.id
        if self.closing:
            raise self._ending()
        if self._queue.qsize() >= self._max_queue:
            why = f"{self._max_queue} gradings are waiting"
            raise Refused(429, "busy", why, retry_s=self._wait_s())
        work = self._enqueue(order, taken, start=False)
        try:
            await self._note(order)
        except BaseException:  # cancelled, too, nobody may wait for it in vain
            why = "the server could not note it down"
            self._end(work, Refused(500, "server", why, id=order.id))
            raise
        self._queue.put_nowait(work)
        return order.id

    async def _note(self, order: Order) -> None:
        """The order is on disk."""
        if order.id not in self._orders:
            async with self._writing:
                await asyncio.to_thread(self._order_journal.append, order.as_json())
            self._orders[order.id] = order

    def _enqueue(self, order: Order, taken: Taken, *, start: bool = True) -> _Work:
        work = _Work(order, taken, asyncio.get_running_loop().create_future())
        self._working[order.id] = work
        if start:
            self._queue.put_nowait(work)
        return work

    async def outcome(self, id: str, wait_s: float) -> Graded | None:
        """The reward of a grading; None: it has none yet.

        Raises:
            Refused: there is no such grading, its rubric is stale, or it failed.
        """
        order = self._orders.get(id)
        work = self._working.get(id)
        if work is not None:
            await asyncio.wait({work.done}, timeout=wait_s)
            if not work.done.done():
                return None
            return self._graded(work.order, work.done.result())
        if order is None:
            raise Refused(404, "unknown_grading", "no such grading")
        if id in self._index.places:
            return self._graded(order, await asyncio.to_thread(self._index.read, id))
        if not self._current(order):
            why = "the task, its rubric or the judge is no longer the one that it was accepted for"
            raise Refused(409, "stale", why, id=id)
        raise Refused(402, "owed", "it is owed: send it again", id=id)

    def _graded(self, order: Order, judgement: Judgement) -> Graded:
        if judgement.status == "ungraded":
            why = f"{judgement.reason}: {judgement.message}"
            raise Refused(502, "judge_failed", why, id=order.id)
        task = self._tasks.get(order.task_id)
        if task is None or not self._current(order):
            why = "the task, its rubric or the judge is no longer the one of this grading"
            raise Refused(409, "stale", why, id=order.id)
        rubric = self.benchmark.rubric(order.task_id)
        if rubric is not None and (why := self._fresh.problem(rubric)):
            raise Refused(409, "stale", why, id=order.id)
        made = score(judgement, rubric, success_at=self.benchmark.info.success_at)
        return Graded(
            id=order.id,
            task_id=order.task_id,
            task_key=judgement.task_key,
            trace_key=judgement.trace_key,
            rubric_key=judgement.rubric_key,
            judge_key=judgement.judge_key,
            protocol=judgement.protocol,
            sample=order.sample,
            evidence_policy=order.policy,
            reward=made.reward,
            points=made.points,
            raw_points=made.raw_points,
            success=made.success,
            flags=made.flags,
            findings=judgement.findings,
            integrity=judgement.integrity,
            attribution=judgement.attribution,
            details=judgement.details,
            usage=judgement.usage,
            at=judgement.at,
        )

    async def _work(self) -> None:
        while True:
            work = await self._queue.get()
            self._n_grading += 1
            began = time.monotonic()
            try:
                judgement = await self._grade(work)
            except (BudgetError, PendingError) as error:
                # No result is written: it is owed, and is asked again by who wants it.
                self._end(work, Refused(402, "budget", str(error), id=work.order.id))
            except Exception as error:  # noqa: BLE001  one grading must not end the worker
                self.faults.append(error)
                why = f"the server failed: {type(error).__name__}: {error}"
                self._end(work, Refused(500, "server", why, id=work.order.id))
            else:
                self._seconds.append(time.monotonic() - began)
                self._working.pop(work.order.id, None)
                work.done.set_result(judgement)
            finally:
                self._n_grading -= 1

    def _end(self, work: _Work, refused: Refused) -> None:
        self._working.pop(work.order.id, None)
        work.done.set_exception(refused)
        work.done.exception()  # nobody may be waiting for it

    async def _grade(self, work: _Work) -> Judgement:
        """Grade, and have the result on disk."""
        order, taken = work.order, work.taken
        task = self._tasks[order.task_id]
        rubric = self.benchmark.rubric(order.task_id)
        judge = self._judges[self._kind(task)]
        try_ = self._index.tries.get(order.id, 0) + 1
        sample = order.sample + (try_ - 1) * (MAX_SAMPLE + 1)
        case = Case(
            task=task, rubric=rubric, trace=taken.trace, cost_usd=taken.cost_usd, sample=sample
        )
        keys = Keys(
            task_id=order.task_id,
            attempt=taken.trace.trace.attempt,
            task_key=task.view.key,
            trace_key=order.trace_key,
            rubric_key=order.rubric_key,
            sample=sample,
        )
        judgement = judgement_of(judge, await verdict_on(judge, case), keys, self._now())
        result = Result(id=order.id, try_=try_, judgement=judgement)
        async with self._writing:
            await asyncio.shield(asyncio.to_thread(self._keep, result))
        return judgement

    def _keep(self, result: Result) -> None:
        offset = self._index.path.stat().st_size
        self._result_journal.append(result.as_json())
        length = self._index.path.stat().st_size - offset - 1
        self._index.note(result, offset, length)

    def _wait_s(self) -> float:
        """About when the queue will have room."""
        each = sum(self._seconds) / len(self._seconds) if self._seconds else 1.0
        return max(1.0, min(600.0, each * self._max_queue / self._concurrency / 2))

    def _ending(self) -> Refused:
        return Refused(503, "ending", "the server is ending; ask again", retry_s=5)

    def load(self) -> dict[str, int]:
        """How much is waiting and under way."""
        return {"waiting": self._queue.qsize(), "grading": self._n_grading}


def retry_after(seconds: float) -> str:
    """The value of the header."""
    return str(max(1, math.ceil(seconds)))
