"""The local engine: one event loop, a bounded number of items at once."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

from browseruse_bench.runs.engine import Capacity, Item, Result, Settled


class LocalEngine:
    """Carries items out in this process."""

    async def map(
        self,
        work: Callable[[Item], Awaitable[Result]],
        items: Sequence[Item],
        *,
        capacity: Capacity[Item],
        stop: asyncio.Event,
    ) -> AsyncGenerator[Settled[Item, Result], None]:
        """Yield each item as it settles; see `Engine.map`."""
        waiting = deque(items)
        busy: Counter[str] = Counter()
        running: dict[asyncio.Task[Result], Item] = {}
        stopped = asyncio.ensure_future(stop.wait())
        try:
            while True:
                while not stop.is_set() and len(running) < capacity.slots:
                    item = _take(waiting, capacity, busy)
                    if item is None:
                        break
                    running[asyncio.ensure_future(work(item))] = item
                if not running:
                    return
                wake = {*running} if stop.is_set() else {*running, stopped}
                await asyncio.wait(wake, return_when=asyncio.FIRST_COMPLETED)
                for task in [task for task in running if task.done()]:
                    item = running.pop(task)
                    busy[capacity.host_of(item) or ""] -= 1
                    yield _settled(item, task)
        finally:
            stopped.cancel()
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)


def _take(waiting: deque[Item], capacity: Capacity[Item], busy: Counter[str]) -> Item | None:
    """The first waiting item whose host has a place; its place is taken."""
    for index, item in enumerate(waiting):
        host = capacity.host_of(item)
        if host is None or busy[host] < capacity.per_host:
            del waiting[index]
            busy[host or ""] += 1
            return item
    return None


def _settled(item: Item, task: asyncio.Task[Result]) -> Settled[Item, Result]:
    if task.cancelled():
        return Settled(item, error=asyncio.CancelledError())
    error = task.exception()
    if error is not None:
        return Settled(item, error=error)
    return Settled(item, result=task.result())
