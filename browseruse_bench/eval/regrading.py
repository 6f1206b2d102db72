"""Grades frozen traces again and again, and keeps every grading in a journal of its own.

What the journal holds is not asked again: it is known by the keys of task, trace, rubric, judge
and by the sample number. A crash loses at most what was in flight.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from browseruse_bench.errors import BudgetError, ConfigError, DataError
from browseruse_bench.eval.evaluate import exclusive, utc_now
from browseruse_bench.eval.judges import (
    Case,
    Judge,
    Keys,
    Verdict,
    damaged,
    judgement_of,
    verdict_on,
)
from browseruse_bench.models.base import PendingError
from browseruse_bench.records.judgement import Judgement
from browseruse_bench.records.rubric import Rubric
from browseruse_bench.records.task import Task
from browseruse_bench.store.journal import Journal, read_journal
from browseruse_bench.store.trace_folder import TraceFolder


@dataclass(frozen=True, kw_only=True)
class Specimen:
    """A frozen trace, and what it is graded by."""

    task: Task
    rubric: Rubric
    attempt: int
    path: Path
    trace_key: str
    cost_usd: float | None = None
    """What the attempt cost; None: unknown."""

    def keys(self, judge_key: str) -> tuple[str, str, str | None, str | None, str]:
        """The reuse key of its judgements by a judge, without the sample number."""
        return (self.task.view.key, self.trace_key, self.rubric.key, None, judge_key)


@dataclass(frozen=True, kw_only=True)
class Owed:
    """Gradings of one trace that are wanted."""

    specimen: Specimen
    judge: Judge
    samples: tuple[int, ...]


@dataclass
class Regraded:
    """What was done."""

    n_new: int = 0
    n_kept: int = 0
    """Were in the journal."""
    n_pending: int = 0
    """Wait in a batch."""
    over_budget: str = ""
    """Why it ended before all was graded."""
    n_left: int = 0
    """Not graded for that reason."""


def read_judgements(path: Path) -> list[Judgement]:
    """All gradings of a journal, oldest first.

    Raises:
        DataError: a line is damaged.
    """
    try:
        return [Judgement.model_validate(line) for line in read_journal(path)]
    except ValidationError as error:
        raise DataError(f"{path}: {error}") from error


@contextlib.asynccontextmanager
async def regrading(
    path: Path,
    *,
    concurrency: int = 2,
    on_judged: Callable[[Judgement], None] | None = None,
    now: Callable[[], str] = utc_now,
) -> AsyncGenerator[Regrading]:
    """A journal at `path` that gradings are added to, by this process alone.

    Args:
        path: the journal; need not exist.
        concurrency: gradings at a time.
        on_judged: called with each new judgement after it is on disk.
        now: the clock.

    Raises:
        ConfigError: another process writes it.
        DataError: a line is damaged.
    """
    if concurrency < 1:
        raise ConfigError(f"concurrency: {concurrency} is below 1")
    with exclusive(path), Journal(path) as journal:
        yield Regrading(
            journal, read_judgements(path), concurrency=concurrency, on_judged=on_judged, now=now
        )


class Regrading:
    """Made by `regrading`."""

    def __init__(
        self,
        journal: Journal,
        judgements: Iterable[Judgement],
        *,
        concurrency: int,
        on_judged: Callable[[Judgement], None] | None,
        now: Callable[[], str],
    ) -> None:
        """Go on from `judgements`, all that the journal holds, oldest first."""
        self._journal = journal
        self._concurrency = concurrency
        self._slots = asyncio.Semaphore(concurrency)
        self._on_judged = on_judged
        self._now = now
        self._by_keys: dict[tuple[str | None, ...], dict[int, Judgement]] = {}
        for judgement in judgements:
            self._keep(judgement)

    def _keep(self, judgement: Judgement) -> None:
        by_sample = self._by_keys.setdefault(judgement.reuse_key[:5], {})
        by_sample[judgement.sample] = judgement

    def given(self, specimen: Specimen, judge_key: str) -> dict[int, Judgement]:
        """Sample number -> grading, of this trace by this rubric and judge."""
        return dict(sorted(self._by_keys.get(specimen.keys(judge_key), {}).items()))

    async def settle(self, owed: Iterable[Owed]) -> Regraded:
        """Everything that is owed is in the journal, or is accounted for.

        The first grading of a trace goes alone and the others follow together, so that they find
        its evidence in the provider's cache.

        Raises:
            ConfigError: a judge gives no findings.
        """
        done = Regraded()
        left: list[Owed] = []
        for each in owed:
            if each.judge.basis != "findings":
                raise ConfigError(f"{each.judge.protocol}: it gives no findings to compare")
            given = self.given(each.specimen, each.judge.judge_key)
            samples = tuple(s for s in each.samples if s not in given)
            done.n_kept += len(each.samples) - len(samples)
            if samples:
                left.append(Owed(specimen=each.specimen, judge=each.judge, samples=samples))
        following = iter(left)

        async def work() -> None:
            for each in following:
                await self._settle_one(each, done)

        async with asyncio.TaskGroup() as group:
            for _ in range(min(len(left), self._concurrency)):
                group.create_task(work())
        return done

    async def _settle_one(self, owed: Owed, done: Regraded) -> None:
        specimen = owed.specimen
        trace: TraceFolder | Exception
        try:
            trace = await asyncio.to_thread(TraceFolder.open, specimen.path, specimen.trace_key)
        except (DataError, OSError) as error:
            trace = error
        first, *others = owed.samples
        await self._grade(owed, trace, first, done)
        async with asyncio.TaskGroup() as group:
            for sample in others:
                group.create_task(self._grade(owed, trace, sample, done))

    async def _grade(
        self, owed: Owed, trace: TraceFolder | Exception, sample: int, done: Regraded
    ) -> None:
        """One grading, in the journal or accounted for."""
        async with self._slots:
            if done.over_budget:
                done.n_left += 1
                return
            try:
                verdict = await _verdict(owed, trace, sample)
            except BudgetError as error:
                done.over_budget = str(error)
                done.n_left += 1
                return
            except PendingError:
                done.n_pending += 1
                return
        keys = Keys(
            task_id=owed.specimen.task.task_id,
            attempt=owed.specimen.attempt,
            task_key=owed.specimen.task.view.key,
            trace_key=owed.specimen.trace_key,
            rubric_key=owed.specimen.rubric.key,
            sample=sample,
        )
        judgement = judgement_of(owed.judge, verdict, keys, self._now())
        self._journal.append(judgement.as_json())
        self._keep(judgement)
        done.n_new += 1
        if self._on_judged is not None:
            self._on_judged(judgement)


async def _verdict(owed: Owed, trace: TraceFolder | Exception, sample: int) -> Verdict:
    if isinstance(trace, Exception):
        return damaged(trace)
    case = Case(
        task=owed.specimen.task,
        rubric=owed.specimen.rubric,
        trace=trace,
        cost_usd=owed.specimen.cost_usd,
        sample=sample,
    )
    return await verdict_on(owed.judge, case)
