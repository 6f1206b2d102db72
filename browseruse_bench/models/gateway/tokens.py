"""Tokens: each opens this gateway for one model and one attempt, until it is taken back."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager

from browseruse_bench.models.gateway.call import Denied
from browseruse_bench.models.gateway.forward import Way
from browseruse_bench.models.gateway.meter import Meter

PREFIX = "sk-bubench-"
"""Looks like a key of a provider: some clients want that, and what is written loses it by its
shape."""
_BYTES = 32
MAX_CALLS = 8
"""Calls of one token at a time; an agent that makes more is told to wait."""


class Grant:
    """What one token opens."""

    def __init__(self, meter: Meter, way: Way) -> None:
        """Open the way to the meter's model."""
        self.meter = meter
        self.way = way
        self.revoked = False
        self._calls: set[asyncio.Task[None]] = set()
        self.n_open = 0
        """Requests that have a place."""

    @contextmanager
    def place(self) -> Generator[None]:
        """One of a few requests at a time, from before its body is read.

        Raises:
            Denied: there is no place.
        """
        if self.n_open >= MAX_CALLS:
            why = f"{MAX_CALLS} calls of this token are under way"
            raise Denied(429, why, "rate_limit", retry_after_s=1)
        self.n_open += 1
        try:
            yield
        finally:
            self.n_open -= 1

    @property
    def n_calls(self) -> int:
        """How many of its calls are under way."""
        return len(self._calls)

    def add(self, call: asyncio.Task[None]) -> None:
        """A call is under way, until its task is done."""
        self._calls.add(call)
        call.add_done_callback(self._calls.discard)

    async def close(self, grace_s: float) -> None:
        """Let nothing further begin; end what is under way after a grace, and wait until it has
        been counted.
        """
        self.revoked = True
        if self._calls:
            await asyncio.wait(self._calls, timeout=grace_s)
        for call in self._calls:
            if not call.cancelling():  # it may be writing down its end
                call.cancel()
        if self._calls:
            await asyncio.wait(self._calls)


class Grants:
    """The tokens that are open. Only their hashes are kept, and looked up: how long a look
    takes tells nothing about a token.
    """

    def __init__(self) -> None:
        """None is open."""
        self._open: dict[bytes, Grant] = {}

    def issue(self, grant: Grant) -> str:
        """A new token for a grant; nobody can guess it."""
        token = PREFIX + secrets.token_hex(_BYTES)
        self._open[_digest(token)] = grant
        return token

    def revoke(self, grant: Grant) -> None:
        """Take back the tokens of a grant."""
        self._open = {key: other for key, other in self._open.items() if other is not grant}

    def all(self) -> list[Grant]:
        """The grants that are open."""
        return list(self._open.values())

    def find(self, given: Sequence[str]) -> Grant | None:
        """The grant of the token that a request shows; None where it shows none, an unknown
        one, or two that differ.
        """
        if len(set(given)) != 1:
            return None
        return self._open.get(_digest(given[0]))


def shown(headers: Iterable[tuple[bytes, bytes]], query: Iterable[tuple[str, str]]) -> list[str]:
    """Every token that a request shows, wherever a client of any wire puts it."""
    found: list[str] = []
    for name, value in headers:
        text = value.decode("latin-1").strip()
        if name == b"authorization":
            scheme, _, token = text.partition(" ")
            found.append(token.strip() if scheme.lower() == "bearer" else text)
        elif name in (b"x-api-key", b"api-key", b"x-goog-api-key"):
            found.append(text)
    found += [value for name, value in query if name in ("key", "api_key", "api-key")]
    return [text for text in found if text]


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="replace")).digest()
