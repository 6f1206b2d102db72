"""Carry out a plan: every owed attempt, its tries, and the journal of what settled."""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import Callable, Generator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from browseruse_bench.errors import ConfigError
from browseruse_bench.records.run import AttemptEntry
from browseruse_bench.records.trace import OutcomeStatus
from browseruse_bench.runs import ENGINES
from browseruse_bench.runs.attempt import Owed, Setting, attempt_once
from browseruse_bench.runs.engine import Capacity, Engine
from browseruse_bench.runs.plan import Plan
from browseruse_bench.sites.process import SitePool
from browseruse_bench.store.journal import Journal
from browseruse_bench.store.processes import reap


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
        OSError: the store cannot write.
    """
    with _locked(plan.folder.path):
        reaped = reap(plan.folder.path)
        plan.folder.write_run(plan.run)
        statuses: dict[OutcomeStatus, int] = {}
        sites = SitePool(plan.folder.path, plan.run.identity.sites, seed=0)
        try:
            with Journal(plan.folder.attempts_path) as journal:
                setting = _setting(plan, sites)
                carrier: Engine = ENGINES.get(engine)()
                n_done = 0

                async def work(owed: Owed) -> AttemptEntry:
                    return await _with_retries(setting, owed, journal, plan.retries, stop)

                settling = carrier.map(work, plan.owed, capacity=capacity_of(plan), stop=stop)
                async with aclosing(settling):
                    async for settled in settling:
                        entry = settled.value
                        n_done += 1
                        statuses[entry.status] = statuses.get(entry.status, 0) + 1
                        on_settled(Progress(entry=entry, n_done=n_done))
        finally:
            await asyncio.shield(sites.close())
    return Executed(statuses=statuses, n_stopped=len(plan.owed) - n_done, reaped=reaped)


def _setting(plan: Plan, sites: SitePool) -> Setting:
    return Setting(
        run=plan.run,
        folder=plan.folder,
        benchmark=plan.benchmark,
        agent=plan.agent,
        backend=plan.backend,
        sites=sites,
        fence=plan.fence,
        storage_state=plan.storage_state,
    )


async def _with_retries(
    setting: Setting, owed: Owed, journal: Journal, retries: int, stop: asyncio.Event
) -> AttemptEntry:
    """Try until the outcome is not an infrastructure failure; each try is journalled."""
    entry = await _journalled(setting, owed, journal)
    for _ in range(retries):
        if entry.status != "infrastructure" or stop.is_set():
            break
        entry = await _journalled(setting, owed, journal)
    return entry


async def _journalled(setting: Setting, owed: Owed, journal: Journal) -> AttemptEntry:
    attempts = setting.folder.try_path(owed.task.task_id, owed.attempt, 1).parent
    entry = await attempt_once(setting, owed, _next_try(attempts))
    # The line is written without an await in between: a cancellation cannot part the frozen
    # trace from its line.
    journal.append(entry.as_json())
    return entry


def _next_try(attempts: Path) -> int:
    """One more than any try on disk, settled or torn: nothing is overwritten."""
    numbers = [
        int(number)
        for path in (attempts.iterdir() if attempts.is_dir() else ())
        if (number := path.name.removeprefix("try-")).isdigit()
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
