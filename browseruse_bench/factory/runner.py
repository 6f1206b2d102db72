"""Runs one stage: resume, concurrency, journal, budget, progress, counts.

What is kept or dropped is final; what failed is owed again. An outcome counts when its line is
on disk; lines that settle together are synced together.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from browseruse_bench.errors import BenchError, BudgetError, StageError, StoreError, boundary
from browseruse_bench.factory.context import Context, accounting
from browseruse_bench.factory.stage import Dropped, Flow, Fold, Kept, Stage, checked_reason
from browseruse_bench.factory.stage_folder import Drop, Entry, StageFolder, keys_hash
from browseruse_bench.models.base import PendingError
from browseruse_bench.records.base import Record
from browseruse_bench.records.trace import Usage, summed
from browseruse_bench.store.journal import Journal

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
    usage_now: tuple[Usage, ...]
    """What it asked of models for them, by model."""
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
        units: all units that ever came in; those that settled are passed over.
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
    wanted = {unit.key: unit for unit in units}
    settled = folder.index(stage.version).statuses
    _note_input(folder, source, wanted, settled, ctx.clock())
    owed = [unit for key, unit in wanted.items() if settled.get(key, "failed") == "failed"]
    work = _Work(stage, ctx, folder, len(owed), on_settled)
    try:
        async with _writer(folder) as write:
            await work.through(iter(owed), write, in_flight, stop or asyncio.Event())
    except* OSError as errors:
        error = errors.exceptions[0]
        raise StoreError(
            f"{folder.journal_path}: cannot be written: {error}; then the same command goes on"
        ) from error
    return _settled(stage, folder, wanted, work, time.monotonic() - start)


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
    wanted = {unit.key: unit for unit in units}
    prior = {
        entry.unit: _outcome(fold, entry)
        for entry in folder.entries(fold.version)
        if entry.status != "failed" and entry.unit in wanted
    }
    _note_input(folder, source, wanted, dict.fromkeys(prior, "kept"), ctx.clock())
    found: list[Entry] = []
    with boundary(StageError, f"stage {fold.name}"):
        for key, outcome in fold.fold(wanted.values(), prior, ctx):
            found.append(_entry(fold, key, outcome, ctx.clock()))
    problem = _coverage(set(wanted) - set(prior), [entry.unit for entry in found])
    if problem:
        raise StageError(f"stage {fold.name}: {problem}")
    with Journal(folder.journal_path) as journal:
        journal.append_all(entry.as_json() for entry in found)
    work = _Work(fold, ctx, folder, len(found), lambda progress: None)
    work.n_now = len(found)
    return _settled(fold, folder, wanted, work, time.monotonic() - start)


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


def _note_input(
    folder: StageFolder,
    source: str,
    wanted: dict[str, Record],
    settled: dict[str, Any],
    at: str,
) -> None:
    """A line of inputs.jsonl, if something new came in."""
    n_new = sum(key not in settled for key in wanted)
    if not n_new:
        return
    drop = Drop(
        source=source,
        n_units=len(wanted),
        n_new=n_new,
        keys_sha256=keys_hash(list(wanted)),
        at=at,
    )
    with Journal(folder.inputs_path) as journal:
        journal.append(drop.as_json())


class _Work:
    """The units of one call while they are settled."""

    def __init__(
        self,
        step: Unitwise,
        ctx: Context,
        folder: StageFolder,
        n_owed: int,
        on_settled: Callable[[Progress], None],
    ) -> None:
        self.step = step
        self.ctx = ctx
        self.folder = folder
        self.n_owed = n_owed
        self.n_now = 0
        self.usage: list[Usage] = []
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
                entry = await self._entry(unit)
                if entry is None:
                    continue
                # What was paid for is written down also if this is cancelled meanwhile.
                await asyncio.shield(write(entry))
                self._settled(entry)

        async with asyncio.TaskGroup() as group:
            for _ in range(min(in_flight, self.n_owed)):
                group.create_task(worker())

    async def _entry(self, unit: Record) -> Entry | None:
        """What becomes of a unit; None: nothing yet."""
        assert isinstance(self.step, Stage)
        begun = time.monotonic()
        with accounting() as uses:
            try:
                with boundary(StageError, f"stage {self.step.name}, unit {unit.key[:12]}"):
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
        return entry.model_copy(
            update={"usage": summed(uses), "seconds": round(time.monotonic() - begun, 3)}
        )

    def _settled(self, entry: Entry) -> None:
        self.n_now += 1
        self.usage += entry.usage
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


def _settled(
    step: Unitwise, folder: StageFolder, wanted: dict[str, Record], work: _Work, seconds: float
) -> Settled:
    flow = flow_of(step, folder, wanted)
    folder.derive(step.version)
    return Settled(
        flow=flow,
        n_now=work.n_now,
        usage_now=summed(work.usage),
        seconds=seconds,
        over_budget=work.over_budget,
    )


def flow_of(step: Unitwise, folder: StageFolder, wanted: Iterable[str]) -> Flow:
    """Where these units are now, by the journal."""
    keys = set(wanted)
    reasons: Counter[str] = Counter()
    statuses: Counter[str] = Counter()
    for entry in folder.entries(step.version):
        if entry.unit in keys:
            statuses[entry.status] += 1
            if entry.status == "dropped":
                reasons[entry.reason or ""] += 1
    return Flow(
        n_in=len(keys),
        kept=statuses["kept"],
        dropped=dict(sorted(reasons.items())),
        failed=statuses["failed"],
        pending=len(keys) - statuses.total(),
    )
