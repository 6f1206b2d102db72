"""What a stage is handed to work with; nothing of it is a global."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import random
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from weakref import WeakKeyDictionary

from browseruse_bench.errors import ConfigError
from browseruse_bench.models.base import CallError, Clearance, Model, ModelId, Reply, Request
from browseruse_bench.records.trace import Usage


class Use(NamedTuple):
    """One call for a unit."""

    call: str
    """Its key in the ledger; empty: it is in none."""
    usage: Usage
    is_new: bool
    """Whether it was paid for now; the ledger answered otherwise."""


_spent: ContextVar[list[Use] | None] = ContextVar("_spent", default=None)


@contextlib.contextmanager
def accounting() -> Generator[list[Use]]:
    """The uses of models that are made inside, in this task and those that it starts."""
    uses: list[Use] = []
    token = _spent.set(uses)
    try:
        yield uses
    finally:
        _spent.reset(token)


class AccountedModel:
    """Asks a model, and books what it costs on the unit for which it is asked."""

    def __init__(self, inner: Model) -> None:
        """Ask `inner`."""
        self._inner = inner

    @property
    def id(self) -> ModelId:
        """Of the model that is asked."""
        return self._inner.id

    @property
    def may_see(self) -> Clearance:
        """Of the model that is asked."""
        return self._inner.may_see

    async def ask(self, request: Request, *, purpose: str, restricted: bool = False) -> Reply:
        """As the model that is asked; raises what it raises."""
        try:
            reply = await self._inner.ask(request, purpose=purpose, restricted=restricted)
        except CallError as error:
            _book(error.call, error.usage, is_new=True)
            raise
        _book(reply.call, reply.usage, is_new=not reply.from_ledger)
        return reply


def _book(call: str | None, usage: Usage | None, *, is_new: bool) -> None:
    uses = _spent.get()
    if uses is not None and usage is not None:
        uses.append(Use(call or "", usage, is_new))


class Resources:
    """Places at what is scarce: browsers, a website's host. A stage has no limit of its own."""

    def __init__(self, places: Mapping[str, int]) -> None:
        """`places`: name -> how many may hold it at a time; what is not named is not scarce."""
        self._places = dict(places)
        self._loops: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, asyncio.Semaphore]] = (
            WeakKeyDictionary()
        )

    @contextlib.asynccontextmanager
    async def hold(self, *names: str) -> AsyncGenerator[None]:
        """Wait for a place at each, and keep them until the end of the block.

        They are taken in one order by all, so that no two wait for each other.
        """
        loop = asyncio.get_running_loop()
        if loop not in self._loops:
            made = {name: asyncio.Semaphore(n) for name, n in self._places.items()}
            self._loops[loop] = made
        places = self._loops[loop]
        async with contextlib.AsyncExitStack() as held:
            for name in sorted(set(names)):
                if name in places:
                    await held.enter_async_context(places[name])
            yield


@dataclass(frozen=True, kw_only=True)
class Context:
    """Handed to every `settle` and `fold`."""

    workspace: Path
    """Root of the workspace; a stage writes in its own folder only."""
    folder: Path
    """The stage's own folder."""
    open_model: Callable[[str], Model]
    """Role of workspace.toml -> the model that plays it, under ledger and budget."""
    clock: Callable[[], str]
    """The time, ISO 8601 in UTC."""
    seed: int = 0
    resources: Resources = field(default_factory=lambda: Resources({}))

    def rng(self, key: str) -> random.Random:
        """Chance that is the same for one key each time, whatever else goes on."""
        digest = hashlib.sha256(f"{self.seed}\0{key}".encode()).digest()
        return random.Random(int.from_bytes(digest[:8], "big"))

    def model(self, role: str) -> Model:
        """The model that plays a role.

        Raises:
            ConfigError: workspace.toml names none, or it cannot be had.
        """
        try:
            return AccountedModel(self.open_model(role))
        except KeyError:
            raise ConfigError(f"workspace.toml: [roles] names no {role}") from None
