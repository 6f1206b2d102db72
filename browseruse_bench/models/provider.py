"""A model at a provider: asked, tried again, asked again, and believed only if it fits.

    model = ProviderModel(model_spec("openai:gpt-5-mini"))
    reply = await model.ask(Request(messages=(...), schema={...}), purpose="judge")

The schema goes the best way that a probe found the endpoint to hold to: its own field, a tool,
or words in the prompt. Whatever way it went, the reply is read by `models.parse` and checked
here. A reply that is not one clear value is asked for again with its problem named; what was
paid for all of it is in the reply's usage, or in that of the error.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
import time
import weakref
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from string import Template
from typing import Protocol

from browseruse_bench.errors import BenchError, ConfigError
from browseruse_bench.models.base import (
    CallError,
    Clearance,
    MalformedError,
    Message,
    ModelId,
    Params,
    RefusalError,
    Reply,
    Request,
    TruncatedError,
)
from browseruse_bench.models.failures import Failure, Patience, RejectedError, failure
from browseruse_bench.models.parse import Parsed, Unclear, parse, parse_arguments
from browseruse_bench.models.prices import added, used
from browseruse_bench.models.probe import ABILITIES, Ability, Capabilities, ProbeFile, probe
from browseruse_bench.models.schema import check_schema
from browseruse_bench.models.spec import ModelSpec
from browseruse_bench.models.wire import How, Said, Wire, system_text
from browseruse_bench.records.trace import Usage

AGAIN = Path(__file__).with_name("again.md")
IMAGE_TOKENS = 1000
"""What a picture is taken to be in an estimate before it is sent."""
REPLY_TOKENS = 1000
"""What a reply is taken to be where the request does not bound it."""


class Slot(Protocol):
    """One request that is under way."""

    def used(self, tokens: int) -> None:
        """Put what it really took in place of the estimate."""
        ...


class Limiter(Protocol):
    """Lets the requests of one key through."""

    def slot(self, tokens: int = 0) -> AbstractAsyncContextManager[Slot]:
        """Wait for the turn of one request that will take about so many tokens."""
        ...

    def pause(self, seconds: float) -> None:
        """Let nothing start for so long."""
        ...


class _Unused:
    def used(self, tokens: int) -> None:
        del tokens


class Unlimited:
    """Lets everything through at once."""

    def slot(self, tokens: int = 0) -> AbstractAsyncContextManager[Slot]:
        """No wait."""
        del tokens
        return contextlib.nullcontext(_Unused())

    def pause(self, seconds: float) -> None:
        """Nobody else waits."""
        del seconds


@dataclass(frozen=True, kw_only=True)
class Timing:
    """Time and chance, which tests bring along."""

    clock: Callable[[], float] = time.monotonic
    now: Callable[[], float] = time.time
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    rng: random.Random = field(default_factory=random.Random)


@dataclass
class _Asked:
    """What one `ask` has come to so far."""

    usages: list[Usage] = field(default_factory=list[Usage])
    n: int = 0
    raw: str = ""


class ProviderModel:
    """Asks one model of a provider. Safe to be asked by many tasks and in several loops."""

    def __init__(
        self,
        spec: ModelSpec,
        *,
        limiter: Limiter | None = None,
        patience: Patience | None = None,
        n_again: int = 2,
        timing: Timing | None = None,
        cache: Path | None = None,
        wire: Wire | None = None,
    ) -> None:
        """Nothing is loaded or asked yet.

        Args:
            spec: which model, where, with which key.
            limiter: lets its requests through; default all at once.
            patience: how long a request is tried again.
            n_again: how often a reply that cannot be used is asked for again.
            timing: clocks, sleep and random numbers.
            cache: folder of what probes found; default in the user's cache.
            wire: what requests are sent with; default one of its own.
        """
        self.spec = spec
        self.id: ModelId = spec.id
        self._limiter: Limiter = limiter or Unlimited()
        self._patience = patience or Patience()
        self._n_again = n_again
        self._timing = timing or Timing()
        self._wire = wire or Wire(spec)
        self._file = ProbeFile(spec, cache)
        self._capabilities: Capabilities | None = None
        self._fresh: set[Ability] = set()
        """What was probed by this process, and need not be doubted."""
        self._locks: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = (
            weakref.WeakKeyDictionary()
        )

    @property
    def may_see(self) -> Clearance:
        """What text it is cleared for."""
        return self.spec.asking.may_see

    async def ask(self, request: Request, *, purpose: str, restricted: bool = False) -> Reply:
        """As `models.base.Model.ask`.

        Raises:
            CallError: nothing came that can be used; its subclass says why, and it has what was
                paid all the same.
            ConfigError: the text is restricted and the model is not cleared for it, it does not
                read pictures, or the schema or a parameter cannot be used. Nothing was paid.
        """
        del purpose
        if restricted and self.may_see != "restricted":
            raise ConfigError(
                f"model {self.spec.label} is not cleared for restricted text; if it is, say "
                'may_see = "restricted" in its [models.NAME] of bubench.toml'
            )
        if request.schema_ is not None:
            check_schema(request.schema_)
        started, asked = self._timing.clock(), _Asked()
        try:
            reply = await self._reply(request, asked)
        except CallError as error:
            if error.usage is not None:
                asked.usages.append(error.usage)
            error.usage = added(asked.usages, self.spec.label) if asked.usages else None
            error.raw = error.raw or asked.raw
            raise
        seconds = max(0.0, self._timing.clock() - started)
        return reply.model_copy(update={"seconds": seconds})

    async def probe(self) -> Capabilities:
        """All that the endpoint supports, asked anew and kept.

        Raises:
            CallError: the endpoint does not answer.
        """
        async with self._lock():
            return await self._probe(ABILITIES, Capabilities())

    async def said(self, messages: Sequence[Message], how: How) -> Said:
        """One reply as it came, after as many tries as it took.

        Raises:
            CallError: there is none.
            ConfigError: the request cannot be made.
        """
        spent = 0.0
        for n in itertools.count(1):
            async with self._limiter.slot(_estimate(messages, how)) as slot:
                began = self._timing.clock()
                outcome = await self._once(messages, how)
                spent += self._timing.clock() - began
                if isinstance(outcome, Said):
                    slot.used(outcome.counted.total)
                    return outcome
            wait = self._patience.wait_s(n, self._timing.rng, outcome.retry_after_s)
            if not outcome.again or n > self._patience.retries:
                raise _given_up(self.spec, outcome, n)
            if spent + wait > self._patience.total_s:
                raise _given_up(self.spec, outcome, n, f"; the next try would be in {wait:.0f} s")
            if outcome.retry_after_s is not None or outcome.limited:
                self._limiter.pause(wait)
            spent += wait
            await self._timing.sleep(wait)
        raise AssertionError

    async def _once(self, messages: Sequence[Message], how: How) -> Said | Failure:
        """One request."""
        self._wire.ready()
        try:
            async with asyncio.timeout(self.spec.asking.timeout_s):
                return await self._wire.say(messages, how)
        except BenchError:
            raise
        # The libraries behind it raise what they stumble over in types of their own.
        except Exception as error:  # noqa: BLE001
            return failure(error, self.spec, now=self._timing.now())

    async def _reply(self, request: Request, asked: _Asked) -> Reply:
        """The first reply that fits. If the endpoint does not do what a probe once found, it is
        probed again, once, and asked in another way if it is to be.
        """
        how = await self._how(request, asked, frozenset())
        try:
            return await self._fitting(request, how, asked)
        except (RejectedError, _NoJsonError) as error:
            mended = await self._how(request, asked, self._doubted(request, how, error))
            if mended == how:
                raise
        return await self._fitting(request, mended, asked)

    async def _fitting(self, request: Request, how: How, asked: _Asked) -> Reply:
        """The first of a few replies that fits the schema."""
        messages: tuple[Message, ...] = request.messages
        n_values, problem = 0, ""
        for _ in range(1 + self._n_again):
            said = await self.said(messages, how)
            asked.n += 1
            asked.raw = said.raw
            asked.usages.append(used(self.spec, said.counted, served=said.served))
            _check_end(self.spec, said, how)
            found = _value(request, how, said)
            if isinstance(found, Parsed):
                return Reply(
                    value=found.value,
                    raw=said.raw,
                    finish=said.finish,
                    usage=added(asked.usages, self.spec.label),
                    n_asked=asked.n,
                )
            n_values, problem = n_values + found.n_values, found.problem
            messages = (*messages, *_once_more(said, problem))
        kind = MalformedError if n_values else _NoJsonError
        n = 1 + self._n_again
        raise kind(f"{self.spec.label}: no usable reply in {n} tries; the last one: {problem}")

    async def _how(self, request: Request, asked: _Asked, doubted: frozenset[Ability]) -> How:
        """How this endpoint is asked for this; what is not known of it is found out first.

        Raises:
            ConfigError: the request has pictures and the model reads none.
        """
        mode, system = "prompted", bool(system_text(request.messages))
        async with self._lock():
            if request.images and await self._can("images", asked, doubted) is False:
                note = self._known().notes.get("images", "as bubench.toml says")
                raise ConfigError(
                    f"{self.spec.label} reads no pictures ({note}); if it does, say images = true "
                    "in its [models.NAME] of bubench.toml"
                )
            fold = system and await self._can("system", asked, doubted) is False
            for way in ("native", "tool") if request.schema_ is not None else ():
                if await self._can(way, asked, doubted):
                    mode = way
                    break
        return How(
            schema=request.schema_,
            mode=mode,
            name=request.schema_name,
            params=_over(self.spec.asking.params, request.params),
            fold_system=fold,
        )

    async def _can(
        self, ability: Ability, asked: _Asked, doubted: frozenset[Ability]
    ) -> bool | None:
        """Whether the endpoint has it; None: asking did not tell."""
        known = self._known().known(ability)
        if ability not in self._fresh and (known is None or ability in doubted):
            found = await self._probe((ability,), self._capabilities or Capabilities())
            if found.usage is not None:
                asked.usages.append(found.usage)
            known = self._known().known(ability)
        return known

    def _known(self) -> Capabilities:
        """What the configuration says, else what a probe found."""
        if self._capabilities is None:
            self._capabilities = self._file.read()
        return self._capabilities.given(self.spec.asking)

    async def _probe(self, what: Sequence[Ability], known: Capabilities) -> Capabilities:
        found = await probe(self, what, known)
        self._capabilities = found
        self._fresh.update(what)
        await asyncio.to_thread(self._file.write, found)
        return found

    def _doubted(self, request: Request, how: How, error: CallError) -> frozenset[Ability]:
        """What this error speaks against, of what was used and is not the configuration's word."""
        asking = self.spec.asking
        used_now: set[Ability] = set()
        if request.schema_ is not None and how.mode != "prompted" and asking.schema_ is None:
            used_now.add(how.mode)
        if isinstance(error, RejectedError):
            if request.images and asking.images is None:
                used_now.add("images")
            if system_text(request.messages) and not how.fold_system and asking.system is None:
                used_now.add("system")
        return frozenset(used_now - self._fresh)

    def _lock(self) -> asyncio.Lock:
        loop = asyncio.get_running_loop()
        return self._locks.setdefault(loop, asyncio.Lock())


class _NoJsonError(MalformedError):
    """No reply had any JSON value in it: the endpoint does not hold to the schema at all."""


def _value(request: Request, how: How, said: Said) -> Parsed | Unclear:
    if request.schema_ is None:
        return Parsed(None)
    if how.mode == "tool":
        return parse_arguments(said.arguments, said.text, request.schema_, asked=request.text)
    return parse(said.text, request.schema_, asked=request.text)


def _check_end(spec: ModelSpec, said: Said, how: How) -> None:
    """Raise unless the reply came to its end."""
    if said.finish == "refusal":
        words = " ".join((said.refusal or said.text).split())[:200]
        raise RefusalError(f"{spec.label}: declined ({said.finish_word or 'refusal'}): {words}")
    if said.finish == "length":
        limit = how.params.max_tokens
        by = f"max_tokens = {limit}" if limit else "the model's own limit"
        written = said.counted.output + said.counted.reasoning
        raise TruncatedError(f"{spec.label}: cut short after {written} tokens, by {by}")
    if said.finish == "other" and how.schema is not None:
        raise TruncatedError(f"{spec.label}: ended with '{said.finish_word}', not by itself")


def _once_more(said: Said, problem: str) -> tuple[Message, ...]:
    """The turns that ask for a reply again."""
    words = Template(AGAIN.read_text(encoding="utf-8")).substitute(problem=problem).strip()
    again = Message(role="user", parts=(words,))
    # An empty turn of the assistant is refused by some providers.
    return (Message(role="assistant", parts=(said.raw,)), again) if said.raw.strip() else (again,)


def _given_up(spec: ModelSpec, last: Failure, n: int, why: str = "") -> CallError:
    tries = f" (asked {n} times)" if n > 1 else ""
    return last.kind(f"{spec.label}: {last.message}{tries}{why}", raw=last.raw)


def _over(general: Params, special: Params) -> Params:
    """What the request says, else what the configuration says."""
    return general.model_copy(update=special.model_dump(exclude_none=True))


def _estimate(messages: Sequence[Message], how: How) -> int:
    """About how many tokens a request and its reply take."""
    n_chars = sum(len(message.text) for message in messages)
    n_images = sum(not isinstance(part, str) for message in messages for part in message.parts)
    reply = how.params.max_tokens or REPLY_TOKENS
    return n_chars // 4 + n_images * IMAGE_TOKENS + min(reply, 4 * REPLY_TOKENS)
