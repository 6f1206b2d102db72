"""Carry out a plan: every owed attempt, its tries, and the journal of what settled."""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import aclosing, asynccontextmanager, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from browseruse_bench.errors import ConfigError, StoreError
from browseruse_bench.models.spending_log import FILE, Spending
from browseruse_bench.records.run import AttemptEntry
from browseruse_bench.records.trace import OutcomeStatus
from browseruse_bench.runs import ENGINES
from browseruse_bench.runs.attempt import DIED, Owed, Setting, attempt_once
from browseruse_bench.runs.budget import Budget
from browseruse_bench.runs.engine import Capacity, Engine
from browseruse_bench.runs.metering import metering
from browseruse_bench.runs.plan import Plan
from browseruse_bench.runs.workspace import Places
from browseruse_bench.sites.process import SitePool
from browseruse_bench.store.journal import Journal
from browseruse_bench.store.processes import owned_folder, reap


@dataclass(frozen=True, kw_only=True)
class Progress:
    """What is told each time an attempt settles."""

    entry: AttemptEntry
    n_done: int
    """Attempts settled by this command."""


@dataclass(frozen=True, kw_only=True)
class Executed:
    """How a command ended."""

    statuses: dict[OutcomeStatus, int]
    """Of the attempts that this command settled."""
    n_stopped: int
    """Owed attempts that were not made because the command was stopped."""
    reaped: tuple[str, ...]
    """What an earlier, dead command had left running."""
    n_retries: int = 0
    """Tries that this command made again after an infrastructure failure."""
    over_budget: str | None = None
    """Why nothing further was started, where that is for the budget."""


async def execute(
    plan: Plan,
    *,
    on_settled: Callable[[Progress], None],
    stop: asyncio.Event,
    engine: str = "local",
) -> Executed:
    """Make every owed attempt; what settles is on disk before it is told.

    Args:
        plan: from `runs.plan.plan`.
        on_settled: called in the loop for each settled attempt.
        stop: when set, nothing further starts and what runs may end. Cancelling this
            coroutine ends what runs at once; what has settled stays settled.
        engine: name in ENGINES.

    Raises:
        ConfigError: another command goes on in the run's folder.
        StoreError: a file cannot be written. What has settled stays settled.
    """
    try:
        return await _execute(plan, on_settled, stop, engine)
    except BrokenPipeError:
        raise  # whoever is told of what settled has gone away
    except OSError as error:
        place = error.filename or plan.folder.path
        raise StoreError(
            f"{place}: cannot be written: {error.strerror or error}; "
            "then the same command goes on with what has not settled"
        ) from error


async def _execute(
    plan: Plan, on_settled: Callable[[Progress], None], stop: asyncio.Event, engine: str
) -> Executed:
    with _locked(plan.folder.path):
        reaped = reap(plan.folder.path)
        plan.folder.write_run(plan.run)
        with (
            owned_folder(plan.folder.path) as temporary,
            Journal(plan.folder.attempts_path) as journal,
            _called(plan) as called,
        ):
            budget = Budget(plan.budget_usd, plan.earlier, called)
            sites = SitePool(plan.folder.path, plan.run.identity.sites, seed=0, temporary=temporary)
            setting = _setting(plan, sites, Places(temporary, plan.folder.path), stop)
            going = _Going(setting, journal, budget, on_settled)
            try:
                async with going.metering(plan):
                    await going.through(plan, ENGINES.get(engine)())
            finally:
                await asyncio.shield(sites.close())
    n_stopped = len(plan.owed) - going.n_done
    return Executed(
        statuses=going.statuses,
        n_stopped=n_stopped,
        reaped=reaped,
        n_retries=going.n_retries,
        over_budget=going.budget.reached if n_stopped else None,
    )


class _Going:
    """The attempts of one command while they are made."""

    def __init__(
        self,
        setting: Setting,
        journal: Journal,
        budget: Budget,
        on_settled: Callable[[Progress], None],
    ) -> None:
        self.budget = budget
        self.statuses: dict[OutcomeStatus, int] = {}
        self.n_done = 0
        self.n_retries = 0
        self._setting = setting
        self._journal = journal
        self._on_settled = on_settled
        self._halt = asyncio.Event()
        """Set when nothing further may start: the command is stopped, or the budget reached."""

    @asynccontextmanager
    async def metering(self, plan: Plan) -> AsyncGenerator[None]:
        """The gateway runs in this block, where the agent's model is asked through it."""
        if plan.asks is None:
            yield
            return
        async with metering(
            plan.asks,
            plan.folder.calls_path,
            run=self.budget.for_calls,
            limit_usd=plan.run.identity.limits.cost_usd,
            reached=self._reached,
        ) as opened:
            self._setting = replace(self._setting, metering=opened)
            yield

    def _reached(self, reason: str) -> None:
        self.budget.stop(reason)
        self._halt.set()

    async def through(self, plan: Plan, engine: Engine) -> None:
        """Make every owed attempt that may still start."""
        passing_on = asyncio.ensure_future(self._pass_on())
        try:
            await self._made(plan, engine)
        finally:
            passing_on.cancel()

    async def _pass_on(self) -> None:
        await self._setting.stop.wait()
        self._halt.set()

    async def _made(self, plan: Plan, engine: Engine) -> None:
        async def work(owed: Owed) -> AttemptEntry:
            return await self._with_retries(owed, plan.retries)

        if self._setting.stop.is_set() or self.budget.reached:
            self._halt.set()
        settling = engine.map(work, plan.owed, capacity=capacity_of(plan), stop=self._halt)
        async with aclosing(settling):
            async for settled in settling:
                entry = settled.value
                self.n_done += 1
                self.statuses[entry.status] = self.statuses.get(entry.status, 0) + 1
                self._on_settled(Progress(entry=entry, n_done=self.n_done))

    async def _with_retries(self, owed: Owed, retries: int) -> AttemptEntry:
        """Try until the outcome is not an infrastructure failure; each try is journalled."""
        entry = await self._journalled(owed)
        for _ in range(retries):
            if entry.status != "infrastructure" or self._halt.is_set():
                break
            if entry.reason.startswith(DIED):
                owed = replace(owed, n_deaths=owed.n_deaths + 1)
            self.n_retries += 1
            entry = await self._journalled(owed)
        return entry

    async def _journalled(self, owed: Owed) -> AttemptEntry:
        attempts = self._setting.folder.try_path(owed.task.task_id, owed.attempt, 1).parent
        entry = await attempt_once(self._setting, owed, _next_try(attempts))
        # The line is written without an await in between: a cancellation cannot part the
        # frozen trace from its line.
        self._journal.append(entry.as_json())
        self.budget.add(entry)
        if self.budget.reached:
            self._halt.set()
        return entry


@contextmanager
def _called(plan: Plan) -> Generator[Spending | None]:
    """What the run's calls through the gateway cost; None where there never were any."""
    path = plan.folder.calls_path / FILE
    if plan.asks is None and not path.exists():
        yield None
        return
    with closing(Spending(path)) as called:
        yield called


def _setting(plan: Plan, sites: SitePool, places: Places, stop: asyncio.Event) -> Setting:
    return Setting(
        run=plan.run,
        folder=plan.folder,
        benchmark=plan.benchmark,
        agent=plan.agent,
        backend=plan.backend,
        sites=sites,
        fence=plan.fence,
        storage_state=plan.storage_state,
        retries=plan.retries,
        places=places,
        redactor=plan.redactor,
        stop=stop,
    )


def _next_try(attempts: Path) -> int:
    """One more than any try on disk, settled or torn: nothing is overwritten."""
    numbers = [
        int(number)
        for path in (attempts.iterdir() if attempts.is_dir() else ())
        if (number := path.name.removeprefix("try-")).isdecimal()
    ]
    return max(numbers, default=0) + 1


def capacity_of(plan: Plan) -> Capacity[Owed]:
    """The limits of a plan: slots, and places at each public website."""
    sites = plan.run.identity.sites

    def host_of(owed: Owed) -> str | None:
        website = owed.task.start_url or owed.task.website
        if not website:
            return None
        host = urlsplit(website if "//" in website else f"//{website}").hostname
        return None if host is None or host in sites else host

    return Capacity(slots=plan.concurrency, host_of=host_of, per_host=plan.per_host)


@contextmanager
def _locked(folder: Path) -> Generator[None]:
    """Hold the run's folder alone, for as long as this process lives."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / ".lock"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(descriptor, 32).decode(errors="replace").strip()
            raise ConfigError(
                f"{folder}: another run goes on in this folder (process {holder or 'unknown'}); "
                "wait for it, or use another --run-id"
            ) from None
        os.ftruncate(descriptor, 0)
        os.write(descriptor, str(os.getpid()).encode())
        yield
    finally:
        os.close(descriptor)
