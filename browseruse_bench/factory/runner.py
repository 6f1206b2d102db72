"""Runs one stage: resume, concurrency, journal, budget, progress, counts.

What is kept or dropped is final; what failed is owed again. An outcome counts when its line is
on disk; lines that settle together are synced together.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from browseruse_bench.errors import BenchError, BudgetError, StageError, StoreError, boundary
from browseruse_bench.factory.context import Context, accounting
from browseruse_bench.factory.entry import Drop, Entry
from browseruse_bench.factory.stage import Dropped, Flow, Fold, Kept, Stage, checked_reason
from browseruse_bench.factory.stage_folder import StageFolder
from browseruse_bench.factory.standing import Standing
from browseruse_bench.models.base import PendingError
from browseruse_bench.records.base import Record
from browseruse_bench.records.trace import Usage, summed
from browseruse_bench.store.journal import Journal, read_journal

IN_FLIGHT = 64
"""Units that are worked on at a time. It bounds memory only: what is scarce limits itself."""


Unitwise = Stage[Any, Any] | Fold[Any, Any]
"""What is journalled unit by unit."""


@dataclass(frozen=True, kw_only=True)
class Settled:
    """What one call did."""

    flow: Flow
    n_now: int
    """Units that this call settled."""
    n_merged: int = 0
    """Units that came in beside another of the same key: they are one unit of work."""
    n_withdrawn: int = 0
    """Units that settled once and do not come in any more: they are not kept any more either."""
    usage_now: tuple[Usage, ...]
    """What was paid to models for them, by model; what the ledger answered is not in it."""
    seconds: float
    over_budget: str = ""
    """Why nothing further was started."""


@dataclass(frozen=True, kw_only=True)
class Progress:
    """Told each time a unit has settled."""

    stage: str
    entry: Entry
    n_now: int
    n_owed: int
    """Units that were owed when the call began."""


async def run_stage(
    stage: Stage[Any, Any],
    units: Iterable[Record],
    folder: StageFolder,
    ctx: Context,
    *,
    source: str,
    in_flight: int = IN_FLIGHT,
    on_settled: Callable[[Progress], None] = lambda progress: None,
    stop: asyncio.Event | None = None,
) -> Settled:
    """Every unit has settled, or is counted as failed or pending.

    Args:
        stage: what settles them.
        units: all units that come in now; those that settled are passed over, those that
            settled once and are not among them count no more.
        folder: claimed by this stage.
        ctx: handed to the stage.
        source: where the units came from, for inputs.jsonl.
        in_flight: units at a time.
        on_settled: called when an outcome is on disk.
        stop: when set, nothing further starts.

    Raises:
        DataError: the journal is damaged.
        StoreError: it cannot be written.
    """
    start = time.monotonic()
    with Standing(stage, folder, units) as standing:
        _note_input(standing, source, ctx.clock())
        work = _Work(stage, ctx, standing.n_owed, on_settled)
        try:
            async with _writer(folder) as write:
                await work.through(standing.owed(), write, in_flight, stop or asyncio.Event())
        except* OSError as errors:
            error = errors.exceptions[0]
            raise StoreError(
                f"{folder.journal_path}: cannot be written: {error}; then the same command goes on"
            ) from error
        return _settled(standing, work, time.monotonic() - start)


async def run_fold(
    fold: Fold[Any, Any],
    units: Iterable[Record],
    folder: StageFolder,
    ctx: Context,
    *,
    source: str,
) -> Settled:
    """Every unit has an outcome; those of earlier calls stand.

    Raises:
        StageError: the fold raised, left a unit out, or named one that is not there.
    """
    start = time.monotonic()
    with Standing(fold, folder, units) as standing:
        _note_input(standing, source, ctx.clock())
        found: list[Entry] = []
        with boundary(StageError, f"stage {fold.name}"):
            for key, outcome in fold.fold(_Again(standing), _Prior(fold, standing), ctx):
                found.append(_entry(fold, key, outcome, ctx.clock()))
        owed = {unit.key for unit in standing.owed()}
        if problem := _coverage(owed, [entry.unit for entry in found]):
            raise StageError(f"stage {fold.name}: {problem}")
        with Journal(folder.journal_path) as journal:
            journal.append_all(entry.as_json() for entry in found)
        work = _Work(fold, ctx, len(found), lambda progress: None)
        work.n_now = len(found)
        return _settled(standing, work, time.monotonic() - start)


@dataclass(frozen=True)
class _Again:
    """All units, as often as they are asked for."""

    standing: Standing

    def __iter__(self) -> Iterator[Record]:
        return self.standing.units()


@dataclass(frozen=True)
class _Prior(Mapping[str, Kept[Any] | Dropped]):
    """Outcomes that stand, read one at a time."""

    fold: Fold[Any, Any]
    standing: Standing

    def __getitem__(self, key: str) -> Kept[Any] | Dropped:
        entry = self.standing.entry(key) if self.standing.is_in(key) else None
        if entry is None or entry.status == "failed":
            raise KeyError(key)
        return _outcome(self.fold, entry)

    def __iter__(self) -> Iterator[str]:
        return (entry.unit for entry in self.standing.outcomes() if entry.status != "failed")

    def __len__(self) -> int:
        return self.standing.n_units - self.standing.n_owed


def _coverage(wanted: set[str], given: list[str]) -> str:
    """How the outcomes differ from one for each unit."""
    if len(set(given)) < len(given):
        return f"{len(given) - len(set(given))} units have two outcomes"
    missing, strange = wanted - set(given), set(given) - wanted
    parts = [f"{len(missing)} units have no outcome"] if missing else []
    parts += [f"{len(strange)} outcomes are of no unit"] if strange else []
    return "; ".join(parts)


def _outcome(step: Unitwise, entry: Entry) -> Kept[Any] | Dropped:
    if entry.status == "dropped":
        return Dropped(entry.reason or "", entry.evidence or {})
    return Kept(step.gives.model_validate(entry.value))


def _note_input(standing: Standing, source: str, at: str) -> None:
    """A line of inputs.jsonl, if other units came in than the last time."""
    path, keys = standing.folder.inputs_path, standing.keys_sha256
    before = read_journal(path)
    if before[-1]["keys_sha256"] == keys if before else not standing.n_units:
        return
    drop = Drop(
        source=source,
        n_units=standing.n_units,
        n_new=standing.n_new,
        n_withdrawn=standing.n_withdrawn,
        keys_sha256=keys,
        at=at,
    )
    with Journal(path) as journal:
        journal.append(drop.as_json())


class _Work:
    """The units of one call while they are settled."""

    def __init__(
        self,
        step: Unitwise,
        ctx: Context,
        n_owed: int,
        on_settled: Callable[[Progress], None],
    ) -> None:
        self.step = step
        self.ctx = ctx
        self.n_owed = n_owed
        self.n_now = 0
        self.usage: tuple[Usage, ...] = ()
        self.over_budget = ""
        self._on_settled = on_settled

    async def through(
        self,
        owed: Iterator[Record],
        write: Callable[[Entry], asyncio.Future[None]],
        in_flight: int,
        stop: asyncio.Event,
    ) -> None:
        async def worker() -> None:
            for unit in owed:
                if stop.is_set() or self.over_budget:
                    return
                done = await self._entry(unit)
                if done is None:
                    continue
                entry, paid = done
                # What was paid for is written down also if this is cancelled meanwhile.
                await asyncio.shield(write(entry))
                self._settled(entry, paid)

        async with asyncio.TaskGroup() as group:
            for _ in range(min(in_flight, self.n_owed)):
                group.create_task(worker())

    async def _entry(self, unit: Record) -> tuple[Entry, list[Usage]] | None:
        """(what becomes of a unit, what was paid for it now); None: nothing yet."""
        assert isinstance(self.step, Stage)
        begun = time.monotonic()
        with accounting() as uses:
            try:
                with boundary(StageError, f"stage {self.step.name}, unit {unit.key[:12]}"):
                    async with self.ctx.resources.hold(*self.step.needs(unit)):
                        outcome = await self.step.settle(unit, self.ctx)
                    entry = _entry(self.step, unit.key, outcome, self.ctx.clock())
            except BudgetError as error:
                self.over_budget = str(error)
                return None
            except PendingError:
                return None
            except BenchError as error:
                entry = Entry(
                    unit=unit.key,
                    version=self.step.version,
                    status="failed",
                    error=f"{type(error).__name__}: {error}"[:2000],
                    at=self.ctx.clock(),
                )
        whole = entry.model_copy(
            update={
                "usage": tuple(use.usage for use in uses),
                "calls": tuple(use.call for use in uses),
                "seconds": round(time.monotonic() - begun, 3),
            }
        )
        return whole, [use.usage for use in uses if use.is_new]

    def _settled(self, entry: Entry, paid: list[Usage]) -> None:
        self.n_now += 1
        self.usage = summed([*self.usage, *paid])
        self._on_settled(
            Progress(stage=self.step.name, entry=entry, n_now=self.n_now, n_owed=self.n_owed)
        )


def _entry(step: Unitwise, key: str, outcome: Kept[Any] | Dropped, at: str) -> Entry:
    checked = checked_reason(step, outcome)
    if isinstance(checked, Dropped):
        return Entry(
            unit=key,
            version=step.version,
            status="dropped",
            reason=checked.reason,
            evidence=dict(checked.evidence),
            at=at,
        )
    value: Record = checked.value
    return Entry(
        unit=key,
        version=step.version,
        status="kept",
        value=value.as_json(),
        out=value.key,
        at=at,
    )


@asynccontextmanager
async def _writer(folder: StageFolder) -> AsyncGenerator[Callable[[Entry], asyncio.Future[None]]]:
    """Gives a function that puts an entry into the journal; its future ends when it is on disk.

    While one sync goes on, what comes meanwhile is gathered for the next.
    """
    waiting: list[tuple[Entry, asyncio.Future[None]]] = []
    more = asyncio.Event()
    closing = False
    loop = asyncio.get_running_loop()

    def write(entry: Entry) -> asyncio.Future[None]:
        future: asyncio.Future[None] = loop.create_future()
        waiting.append((entry, future))
        more.set()
        return future

    async def go(journal: Journal) -> None:
        while not closing or waiting:
            await more.wait()
            more.clear()
            batch, waiting[:] = waiting[:], []
            if not batch:
                continue
            try:
                lines = [entry.as_json() for entry, _ in batch]
                await asyncio.to_thread(journal.append_all, lines)
            except OSError as error:
                for _, future in batch:
                    if not future.done():
                        future.set_exception(error)
                continue
            for _, future in batch:
                if not future.done():
                    future.set_result(None)

    with Journal(folder.journal_path) as journal:
        going = asyncio.create_task(go(journal))
        try:
            yield write
        finally:
            closing = True
            more.set()
            await asyncio.shield(going)


def _settled(standing: Standing, work: _Work, seconds: float) -> Settled:
    standing.refresh()
    standing.derive()
    return Settled(
        flow=standing.flow(),
        n_now=work.n_now,
        n_merged=standing.n_merged,
        n_withdrawn=standing.n_withdrawn,
        usage_now=work.usage,
        seconds=seconds,
        over_budget=work.over_budget,
    )
