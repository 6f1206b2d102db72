import asyncio
from contextlib import aclosing

from browseruse_bench.runs.capacity import auto_concurrency
from browseruse_bench.runs.engine import Capacity
from browseruse_bench.runs.local import LocalEngine


def capacity(slots, per_host=99, host_of=lambda item: None):
    return Capacity(slots=slots, host_of=host_of, per_host=per_host)


async def run(work, items, limits, stop=None):
    settling = LocalEngine().map(work, items, capacity=limits, stop=stop or asyncio.Event())
    async with aclosing(settling):
        return [settled async for settled in settling]


async def test_every_item_settles_once_and_never_more_than_the_slots_run():
    running = peak = 0

    async def work(item):
        nonlocal running, peak
        running += 1
        peak = max(peak, running)
        await asyncio.sleep(0.001 * (item % 3))
        running -= 1
        return item * 2

    settled = await run(work, list(range(20)), capacity(3))
    assert sorted(s.value for s in settled) == [2 * n for n in range(20)]
    assert peak == 3


async def test_a_slow_item_does_not_hold_the_others_up():
    """No barrier: a slot that is free takes the next item."""

    async def work(item):
        await asyncio.sleep(0.2 if item == 0 else 0)
        return item

    settled = await run(work, list(range(9)), capacity(2))
    assert [s.item for s in settled][-1] == 0


async def test_one_host_never_has_more_than_its_places():
    running = {"a": 0, "b": 0}

    async def work(item):
        host = item[0]
        running[host] += 1
        assert running[host] <= 1
        await asyncio.sleep(0.005)
        running[host] -= 1
        return item

    items = ["a1", "a2", "a3", "b1", "b2"]
    settled = await run(work, items, capacity(4, per_host=1, host_of=lambda item: item[0]))
    assert len(settled) == 5
    assert all(s.error is None for s in settled)


async def test_an_error_is_the_items_own():
    async def work(item):
        if item == 1:
            raise OSError("disk full")
        return item

    settled = await run(work, [0, 1, 2], capacity(1))
    assert [(s.item, type(s.error)) for s in settled] == [
        (0, type(None)),
        (1, OSError),
        (2, type(None)),
    ]


async def test_after_a_stop_nothing_starts_and_what_runs_ends():
    """peers: Ctrl-C still launches the rest."""
    stop = asyncio.Event()
    started = []

    async def work(item):
        started.append(item)
        if item == 1:
            stop.set()
        await asyncio.sleep(0.02)
        return item

    settled = await run(work, list(range(10)), capacity(2), stop)
    assert started == [0, 1]
    assert sorted(s.item for s in settled) == [0, 1]


async def test_leaving_the_iteration_cancels_what_runs():
    cancelled = []

    async def work(item):
        try:
            await asyncio.sleep(0 if item == 0 else 60)
        except asyncio.CancelledError:
            cancelled.append(item)
            raise

    settling = LocalEngine().map(work, [0, 1, 2], capacity=capacity(3), stop=asyncio.Event())
    async with aclosing(settling):
        async for _ in settling:
            break
    assert sorted(cancelled) == [1, 2]


def test_concurrency_follows_cores_and_is_capped_by_memory():
    assert auto_concurrency(4, cores=2, free_gb=100) == 8
    assert auto_concurrency(4, cores=2, free_gb=1.9) == 3
    assert auto_concurrency(4, cores=1, free_gb=0.1) == 1
