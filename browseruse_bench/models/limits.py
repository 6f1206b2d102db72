"""How fast one key of a provider may be used, by everything in this process that uses it.

    limiter = limiter_for(identity, Limits(concurrency=8, requests_per_minute=500))
    async with limiter.slot(tokens=12_000) as slot:
        ...                          # one request to the provider
        slot.used(tokens=9_300)      # what it really was
    limiter.pause(20)                # the provider said Retry-After: 20

Who came first is served first, whatever it asks for. A caller that is cancelled while it waits
leaves no gap, one that is cancelled in its slot frees it. Callers may live in different event
loops and threads.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import threading
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

CONCURRENCY = 8
"""Requests of one key at a time, where nobody says how many."""
WINDOW_S = 60.0
"""The minute that is meant is the one before any moment, not a calendar minute."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What one key may be used for at a time and in any 60 seconds. None: no limit."""

    concurrency: int | None = None
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    """Of prompts and replies. A request that alone is greater waits until nothing else is in
    its minute, and is then let through."""

    def __post_init__(self) -> None:
        """A limit below 1 would let nothing through."""
        for name, value in vars(self).items():
            if value is not None and value < 1:
                raise ValueError(f"{name}: {value} lets nothing through; give 1 or more")

    def tighter(self, other: Limits) -> Limits:
        """The smaller of each."""
        pairs = {name: (value, getattr(other, name)) for name, value in vars(self).items()}
        known = {name: [v for v in pair if v is not None] for name, pair in pairs.items()}
        return Limits(**{name: min(values) for name, values in known.items() if values})


@dataclass
class Slot:
    """One request that is under way."""

    started: float
    tokens: int
    """Estimated before, then as it was."""

    def used(self, tokens: int) -> None:
        """Put what it really took in place of the estimate."""
        self.tokens = max(0, tokens)


@dataclass(eq=False)
class _Waiting:
    tokens: int
    loop: asyncio.AbstractEventLoop
    woken: asyncio.Event = field(default_factory=asyncio.Event)

    def wake(self) -> None:
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self.woken.set)


class Limiter:
    """Lets requests of one key through, in the order in which they came."""

    def __init__(
        self,
        limits: Limits | None = None,
        *,
        at_once: int | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Coroutine[Any, Any, None]] = asyncio.sleep,
    ) -> None:
        """Start with an empty minute.

        Args:
            limits: what to keep to.
            at_once: the concurrency where the limits have none.
            clock: seconds, in any scale that only goes forward.
            sleep: waits in the same scale.
        """
        self.limits = limits or Limits()
        self._at_once = at_once
        self._clock = clock
        self._sleep = sleep
        self._lock = threading.Lock()
        self._queue: deque[_Waiting] = deque()
        self._recent: deque[Slot] = deque()
        self._n_active = 0
        self._paused_until = float("-inf")

    @property
    def n_active(self) -> int:
        """How many requests are under way."""
        return self._n_active

    @property
    def n_waiting(self) -> int:
        """How many callers wait for their turn."""
        return len(self._queue)

    @property
    def paused_s(self) -> float:
        """For how many seconds nothing will start."""
        return max(0.0, self._paused_until - self._clock())

    @contextlib.asynccontextmanager
    async def slot(self, tokens: int = 0) -> AsyncGenerator[Slot]:
        """Wait for the turn of one request that will take about so many tokens."""
        taken = await self._take(max(0, tokens))
        try:
            yield taken
        finally:
            with self._lock:
                self._n_active -= 1
                self._wake_first()

    def pause(self, seconds: float) -> None:
        """Let nothing start for so long; what is under way goes on. The longest pause counts."""
        with self._lock:
            self._paused_until = max(self._paused_until, self._clock() + seconds)

    def tighten(self, limits: Limits) -> None:
        """Keep to these limits, too."""
        with self._lock:
            self.limits = self.limits.tighter(limits)

    async def _take(self, tokens: int) -> Slot:
        waiting = _Waiting(tokens, asyncio.get_running_loop())
        with self._lock:
            self._queue.append(waiting)
        try:
            while True:
                with self._lock:
                    waiting.woken.clear()
                    first = self._queue[0] is waiting
                    delay = self._delay(tokens) if first else None
                    if delay == 0:
                        return self._start(tokens)
                await self._wait(waiting.woken, delay)
        finally:
            with self._lock:
                self._queue.remove(waiting)
                self._wake_first()

    def _start(self, tokens: int) -> Slot:
        slot = Slot(self._clock(), tokens)
        if self.limits.requests_per_minute or self.limits.tokens_per_minute:
            self._recent.append(slot)
        self._n_active += 1
        return slot

    def _delay(self, tokens: int) -> float | None:
        """Seconds until the first in the queue may start; None: when another one ends."""
        limits, now = self.limits, self._clock()
        at_once = limits.concurrency or self._at_once
        if at_once is not None and self._n_active >= at_once:
            return None
        while self._recent and self._recent[0].started <= now - WINDOW_S:
            self._recent.popleft()
        delay = max(0.0, self._paused_until - now)
        n_over = len(self._recent) + 1 - (limits.requests_per_minute or len(self._recent) + 1)
        if n_over > 0:
            delay = max(delay, self._recent[n_over - 1].started + WINDOW_S - now)
        if limits.tokens_per_minute is not None:
            delay = max(delay, self._until_tokens(tokens, limits.tokens_per_minute, now))
        return delay

    def _until_tokens(self, tokens: int, limit: int, now: float) -> float:
        """Seconds until enough of the minute's tokens are older than a minute."""
        over = sum(slot.tokens for slot in self._recent) + tokens - limit
        until = 0.0
        for slot in self._recent:
            if over <= 0:
                break
            over -= slot.tokens
            until = slot.started + WINDOW_S - now
        return max(0.0, until)

    async def _wait(self, woken: asyncio.Event, delay: float | None) -> None:
        """Return when woken, or after `delay` seconds."""
        if delay is None:
            await woken.wait()
            return
        events: set[asyncio.Future[Any]] = {
            asyncio.ensure_future(woken.wait()),
            asyncio.ensure_future(self._sleep(delay)),
        }
        try:
            await asyncio.wait(events, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for event in events:
                event.cancel()
            await asyncio.gather(*events, return_exceptions=True)

    def _wake_first(self) -> None:
        if self._queue:
            self._queue[0].wake()


_LIMITERS: dict[str, Limiter] = {}
_LIMITERS_LOCK = threading.Lock()


def limiter_for(place: str, key: str | None, limits: Limits | None = None) -> Limiter:
    """The one limiter of this process for a key at a place; limits that differ all hold, and
    CONCURRENCY does where none is given.

    Args:
        place: provider or base URL: equal keys of two places are two keys.
        key: the secret; only its hash is kept.
        limits: what to keep to.
    """
    identity = hashlib.sha256(f"{place}\0{key or ''}".encode()).hexdigest()
    with _LIMITERS_LOCK:
        limiter = _LIMITERS.setdefault(identity, Limiter(at_once=CONCURRENCY))
    if limits is not None:
        limiter.tighten(limits)
    return limiter
