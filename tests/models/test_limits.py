"""How fast a key is used: never faster than its limits, in order, and by all callers together."""

import asyncio
import contextlib
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from browseruse_bench.models.limits import WINDOW_S, Limiter, Limits, limiter_for
from tests.models.pretended_time import PretendedTime


def limiter(time, **limits):
    return Limiter(Limits(**limits), clock=time.clock, sleep=time.sleep)


CALLS = st.lists(
    st.tuples(
        st.floats(0, 30),  # when it comes
        st.floats(0, 20),  # how long it takes
        st.integers(0, 60),  # tokens estimated
        st.integers(0, 60),  # tokens really
    ),
    min_size=1,
    max_size=14,
)


@settings(max_examples=80)
@given(
    CALLS,
    st.none() | st.integers(1, 4),
    st.none() | st.integers(1, 5),
    st.none() | st.integers(40, 120),
)
def test_no_limit_is_ever_passed_in_any_window_and_everybody_is_served(calls, at_once, rpm, tpm):
    time = PretendedTime()
    limited = limiter(time, concurrency=at_once, requests_per_minute=rpm, tokens_per_minute=tpm)
    starts, active, most = [], 0, 0

    async def call(comes, takes, estimated, really):
        nonlocal active, most
        await time.sleep(comes)
        async with limited.slot(estimated) as slot:
            active += 1
            most = max(most, active)
            starts.append((time.now, max(estimated, really), estimated))
            # More than was estimated is counted from when it is known, so it is known at once.
            slot.used(max(estimated, really))
            await time.sleep(takes)
            active -= 1

    asyncio.run(time.run(*(call(*given_call) for given_call in calls)))
    assert len(starts) == len(calls)
    assert limited.n_active == limited.n_waiting == 0
    assert at_once is None or most <= at_once
    for first, (t0, *_) in enumerate(starts):
        window = [tokens for t, *tokens in starts[first:] if t < t0 + WINDOW_S - 1e-6]
        assert rpm is None or len(window) <= rpm
        # Let in by its estimate, beside what the others really took.
        known = sum(really for really, _ in window[:-1]) + window[-1][1]
        assert tpm is None or known <= tpm or len(window) == 1


@given(st.lists(st.integers(0, 50), min_size=2, max_size=10), st.integers(1, 3))
def test_who_came_first_is_served_first_whatever_it_asks_for(tokens, at_once):
    time = PretendedTime()
    limited = limiter(time, concurrency=at_once, requests_per_minute=3, tokens_per_minute=60)
    served = []

    async def call(number, estimated):
        async with limited.slot(estimated):
            served.append(number)
            await time.sleep(1)

    asyncio.run(time.run(*(call(n, t) for n, t in enumerate(tokens))))
    assert served == list(range(len(tokens)))


async def test_a_request_greater_than_the_limit_waits_for_an_empty_minute_and_is_let_through():
    time = PretendedTime()
    limited = limiter(time, tokens_per_minute=100)

    async def call(tokens):
        async with limited.slot(tokens):
            return time.now

    assert await time.run(call(10), call(500), call(10)) == [0, 60, 120]


async def test_an_estimate_that_was_too_high_makes_room_when_the_slot_ends():
    time = PretendedTime()
    limited = limiter(time, tokens_per_minute=100)

    async def call(estimated, really):
        async with limited.slot(estimated) as slot:
            started = time.now
            await time.sleep(5)
            slot.used(really)
        return started

    assert await time.run(call(100, 10), call(80, 80)) == [0, 5]


async def test_a_pause_holds_all_callers_of_the_key_and_the_longest_counts():
    time = PretendedTime()
    limited = limiter(time)

    async def call():
        async with limited.slot():
            return time.now

    limited.pause(20)
    limited.pause(5)
    assert limited.paused_s == 20
    assert await time.run(*(call() for _ in range(3))) == [20, 20, 20]
    assert limited.paused_s == 0


async def test_a_pause_that_comes_while_others_wait_holds_them_too():
    time = PretendedTime()
    limited = limiter(time, requests_per_minute=1)

    async def call():
        async with limited.slot():
            return time.now

    async def retry_after():
        await time.sleep(30)
        limited.pause(100)

    assert (await time.run(call(), call(), retry_after()))[:2] == [0, 130]


@given(st.lists(st.booleans(), min_size=1, max_size=8), st.integers(0, 8))
def test_whoever_is_cancelled_waiting_or_served_leaves_no_gap(cancelled, n_turns):
    time = PretendedTime()
    limited = limiter(time, concurrency=1)
    served = []

    async def call(number):
        async with limited.slot():
            served.append(number)
            await time.sleep(1)

    async def all_of_them():
        tasks = [asyncio.create_task(call(n)) for n in range(len(cancelled))]
        for _ in range(n_turns):
            await asyncio.sleep(0)
        for task, goes in zip(tasks, cancelled, strict=True):
            if goes:
                task.cancel()
        stay = [t for t, goes in zip(tasks, cancelled, strict=True) if not goes]
        await time.run(*stay)
        for task in tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task

    asyncio.run(all_of_them())
    assert set(served) >= {n for n, goes in enumerate(cancelled) if not goes}
    assert limited.n_active == limited.n_waiting == 0


async def test_one_that_fails_in_its_slot_frees_it():
    limited = Limiter(Limits(concurrency=1))
    with pytest.raises(ZeroDivisionError):
        async with limited.slot():
            raise ZeroDivisionError
    async with asyncio.timeout(5), limited.slot():
        assert limited.n_active == 1


def test_a_key_has_one_limiter_in_this_process_and_another_key_or_place_another():
    one = limiter_for("openai", "test-limits-a", Limits(concurrency=4))
    assert limiter_for("openai", "test-limits-a") is one
    assert limiter_for("openai", "test-limits-b") is not one
    assert limiter_for("http://localhost/v1", "test-limits-a") is not one
    assert "test-limits-a" not in repr(vars(one))


def test_limits_that_differ_for_one_key_all_hold():
    one = limiter_for("openai", "test-limits-c", Limits(concurrency=4, tokens_per_minute=10))
    limiter_for("openai", "test-limits-c", Limits(concurrency=2, requests_per_minute=7))
    limiter_for("openai", "test-limits-c", Limits(concurrency=9))
    assert one.limits == Limits(concurrency=2, requests_per_minute=7, tokens_per_minute=10)


async def test_a_key_of_which_nobody_says_how_often_is_used_eight_times_at_once():
    unsaid = limiter_for("openai", "test-limits-d")
    said = limiter_for("openai", "test-limits-e", Limits(concurrency=20))

    async def hold(limited, go_on):
        async with limited.slot():
            await go_on.wait()

    for limited, most in ((unsaid, 8), (said, 20)):
        go_on = asyncio.Event()
        tasks = [asyncio.create_task(hold(limited, go_on)) for _ in range(30)]
        await asyncio.sleep(0.01)
        assert limited.n_active == most
        go_on.set()
        await asyncio.gather(*tasks)


def test_callers_in_several_threads_and_loops_share_the_limit():
    limited = Limiter(Limits(concurrency=2))
    active, most, lock = 0, 0, threading.Lock()

    async def call():
        nonlocal active, most
        async with limited.slot():
            with lock:
                active += 1
                most = max(most, active)
            await asyncio.sleep(0.002)
            with lock:
                active -= 1

    async def several():
        async with asyncio.timeout(20):
            await asyncio.gather(*(call() for _ in range(20)))

    threads = [threading.Thread(target=asyncio.run, args=(several(),)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 2
    assert limited.n_active == limited.n_waiting == 0


@pytest.mark.parametrize("name", ["concurrency", "requests_per_minute", "tokens_per_minute"])
@pytest.mark.parametrize("value", [0, -1])
def test_a_limit_that_lets_nothing_through_is_refused(name, value):
    with pytest.raises(ValueError, match=name):
        Limits(**{name: value})
