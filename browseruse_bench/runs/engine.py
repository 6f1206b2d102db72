"""The contract of an engine: where attempts are carried out, and how many at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar, cast

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Capacity(Generic[Item]):
    """Limits belong to resources: slots to the machine, places to a website's host."""

    slots: int
    """Items at once."""
    host_of: Callable[[Item], str | None]
    """The public host that an item visits; None where no limit applies."""
    per_host: int
    """Items at once on one host."""


@dataclass(frozen=True)
class Settled(Generic[Item, Result]):
    """An item and what came of it: exactly one of result and error."""

    item: Item
    result: Result | None = None
    error: BaseException | None = None

    @property
    def value(self) -> Result:
        """The result.

        Raises:
            BaseException: what the work raised.
        """
        if self.error is not None:
            raise self.error
        return cast("Result", self.result)


class Engine(Protocol):
    """Carries items out without barriers: a slot that is free takes the next one."""

    def map(
        self,
        work: Callable[[Item], Awaitable[Result]],
        items: Sequence[Item],
        *,
        capacity: Capacity[Item],
        stop: asyncio.Event,
    ) -> AsyncGenerator[Settled[Item, Result], None]:
        """Yield each item as it settles, in whatever order.

        Once `stop` is set no further item starts; what runs goes on. Closing the iterator
        cancels what runs.
        """
        ...
