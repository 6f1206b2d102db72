"""A limit in USD that no model call begins to pass, and the model that keeps to it.

    budget = Budget(5.0, scope=run_id)
    model = BudgetModel(provider, budget, cost=most_usd)

What a call can cost at most is held before it is sent, and what it did cost takes its place
afterwards. So calls that run at the same time, in several processes too, cannot pass the limit
together, and a command that comes later goes on from what was spent.
"""

from __future__ import annotations

import asyncio
import contextlib
import string
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from browseruse_bench.errors import BenchError, BudgetError, ConfigError
from browseruse_bench.models import prices
from browseruse_bench.models.base import CallError, Clearance, Model, ModelId, Reply, Request
from browseruse_bench.models.limits import Limiter, Slot
from browseruse_bench.models.spec import ModelSpec
from browseruse_bench.models.spending_log import Outcome, Spending, Totals, What
from browseruse_bench.records.base import canonical_json
from browseruse_bench.records.trace import Usage

IMAGE_TOKENS = 5_000
"""The most that a picture takes, whatever its size, but for the models below."""
IMAGE_TOKENS_OF = {"gpt-4o-mini": 50_000}
"""Counts pictures some thirty times as its siblings do, at a thirtieth of their price."""
_MESSAGE_TOKENS = 16
"""What a provider's own marks around a message take, at most."""
_LIGHT = (string.ascii_letters + " ").encode()
_LONG_RUN = 25
_AGAIN_TOKENS = 512
"""What is said when a model is asked once more, beside its last reply."""

_FIRST_WAIT_S = 0.01
_LONGEST_WAIT_S = 0.5

Cost = Callable[[int, int], float | None]
"""(tokens of the prompt, tokens of the reply) -> the most USD that they can cost; None: no
price is known."""


class Budget:
    """A limit over what is spent in a scope.

    A call that does not fit beside what is under way waits for it; one that does not fit beside
    what is spent is refused. Where a call costs more than was held for it, it counts in full:
    then, and only then, the limit is passed, by that much, and nothing further begins.
    """

    def __init__(
        self,
        limit_usd: float | None,
        spending: Spending | None = None,
        *,
        scope: str | None = None,
        name: str = "--budget-usd",
        sleep: Callable[[float], Coroutine[Any, Any, None]] = asyncio.sleep,
    ) -> None:
        """Keep to `limit_usd`.

        Args:
            limit_usd: the most that the scope may have cost, by earlier commands too; None:
                only write down.
            spending: where it is written; None: in memory, until `bind`.
            scope: what counts, and under what it is written; None: everything in `spending`.
            name: what the user called the limit, for messages.
            sleep: waits between two looks at what is under way.
        """
        self.limit_usd = limit_usd
        self.spending = spending or Spending()
        self.scope = scope
        self.name = name
        self._sleep = sleep
        self._turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = (
            WeakKeyDictionary()
        )

    def bind(self, spending: Spending) -> None:
        """Write to `spending` from now on.

        Raises:
            ConfigError: it already writes somewhere else: one limit, one place.
        """
        if self.spending is spending:
            return
        if self.spending.path is not None or not self.spending.is_new:
            raise ConfigError(
                f"{self.name}: one budget is kept for the calls of one folder, not for "
                f"{self.spending.path} and {spending.path}"
            )
        self.spending = spending

    @property
    def spent(self) -> Totals:
        """What its scope has spent, by all commands."""
        with self.spending.deciding(self.scope) as (spent, _):
            return spent

    @property
    def reached(self) -> str | None:
        """Why nothing further may begin, whatever it costs; None: something may."""
        return self._refusal(self.spent, 0.0)

    async def begin(self, most_usd: float | None, *, purpose: str, model: str) -> str:
        """Hold the most that a call can cost, as soon as it fits; who came first is first.

        Returns:
            The id with which `spending.end` ends the call.

        Raises:
            BudgetError: it cannot fit any more.
            ConfigError: what it can cost is not known, and there is a limit.
        """
        what = What(self.scope or "", purpose, model)
        if self.limit_usd is None:
            return self.spending.begin(what, most_usd)
        known = self._known(most_usd, f"a call of {model} for {purpose}")
        turn = self._turns.setdefault(asyncio.get_running_loop(), asyncio.Lock())
        wait_s = _FIRST_WAIT_S
        async with turn:
            while (id := self._try(what, known)) is None:
                await self._sleep(wait_s)
                wait_s = min(2 * wait_s, _LONGEST_WAIT_S)
        return id

    def hold(
        self, most_usd: float | None, *, purpose: str, model: str, id: str | None = None
    ) -> str:
        """Hold what something can cost that begins now or not at all.

        Args:
            most_usd: the most that it can cost.
            purpose: what it is for.
            model: label of the model.
            id: given: it is held until somebody ends it, also beyond the life of this process.

        Returns:
            The id with which `spending.end` ends it.

        Raises:
            BudgetError: it does not fit beside what is spent and under way.
            ConfigError: what it can cost is not known, and there is a limit.
        """
        what = What(self.scope or "", purpose, model)
        with self.spending.deciding(self.scope) as (spent, held):
            if self.limit_usd is not None:
                known = self._known(most_usd, id or f"a call of {model} for {purpose}")
                under_way = self._known(held, "what is under way")
                if refusal := self._refusal(spent, under_way + known):
                    raise BudgetError(refusal)
            return self.spending.begin(what, most_usd, id=id)

    def _known(self, most_usd: float | None, what: str) -> float:
        if most_usd is None:
            raise ConfigError(
                f"{self.name} {self.limit_usd:g} cannot be kept: what {what} can cost is not known"
            )
        return most_usd

    def _try(self, what: What, most_usd: float) -> str | None:
        """The id of the call, begun; None: it does not fit beside what is under way."""
        assert self.limit_usd is not None
        with self.spending.deciding(self.scope) as (spent, held):
            # Nobody waits for a batch: it may take a day.
            lasting = self._known(
                self.spending.lasting_usd(self.scope), "a batch that is under way"
            )
            if refusal := self._refusal(spent, most_usd, lasting):
                raise BudgetError(refusal)
            if held is None or spent.charged_usd + held + most_usd > self.limit_usd:
                return None
            return self.spending.begin(what, most_usd)

    def _refusal(self, spent: Totals, most_usd: float, lasting_usd: float = 0.0) -> str | None:
        """Why something that can cost so much does not fit beside what is spent, and beside what
        is under way and cannot be waited for.
        """
        if self.limit_usd is None:
            return None
        limit = f"{self.name} {self.limit_usd:g}"
        if spent.n_unbounded:
            return f"what {spent.n_unbounded} earlier calls cost is not known, so {limit} cannot be kept"
        lost = spent.charged_usd - spent.known_usd
        spent_text = f"{spent.charged_usd:.4f} USD spent" + (
            f" (up to {lost:.4f} of it on {spent.n_unpriced} calls of unknown end)" if lost else ""
        )
        if lasting_usd:
            spent_text += f", {lasting_usd:.4f} held for batches under way"
        if spent.charged_usd >= self.limit_usd:
            return f"{limit} is reached: {spent_text}"
        if spent.charged_usd + lasting_usd + most_usd > self.limit_usd:
            return f"{limit} would be passed: {spent_text}, the next can cost {most_usd:.4f}"
        return None


class BudgetModel:
    """Asks a model within a budget, and writes down what each call cost."""

    def __init__(
        self,
        inner: Model,
        budget: Budget,
        *,
        cost: Cost,
        max_tokens: int | None = None,
        image_tokens: int | None = None,
    ) -> None:
        """Ask `inner`.

        Args:
            inner: what is asked. If it sends several requests for one reply that it pays for,
                it is to send them through a `HoldingLimiter`.
            budget: what it may cost.
            cost: its price.
            max_tokens: the longest reply to a request that sets none.
            image_tokens: the most that a picture takes; None: as is known of the model.
        """
        self._inner = inner
        self.budget = budget
        self._cost = cost
        self._max_tokens = max_tokens
        self._image_tokens = image_tokens or IMAGE_TOKENS_OF.get(inner.id.name, IMAGE_TOKENS)

    @property
    def id(self) -> ModelId:
        """That of the model that is asked."""
        return self._inner.id

    @property
    def may_see(self) -> Clearance:
        """As the model that is asked."""
        return self._inner.may_see

    async def ask(self, request: Request, *, purpose: str, restricted: bool = False) -> Reply:
        """Ask, if what it can cost fits.

        Raises:
            BudgetError: it does not; nothing was asked, or nothing further after a reply that
                could not be used.
            ConfigError: what it can cost is not known, and there is a limit; nothing was asked.
        """
        most = self.most_usd(request)
        if self.budget.limit_usd is not None and most is None:
            raise ConfigError(self._why_unknown(request, purpose))
        ask = _Ask(self, request, purpose)
        ask.ids.append(await self.budget.begin(most, purpose=purpose, model=self.id.label))
        token = _ASK.set(ask)
        try:
            reply = await self._inner.ask(request, purpose=purpose, restricted=restricted)
        except CallError as error:
            ask.end("released" if error.usage is None else "failed", error.usage)
            raise
        except BenchError:
            ask.end("lost" if ask.n_paid else "released")
            raise
        except BaseException:
            # Cut off in the middle: whether the provider bills it is not known.
            ask.end("lost")
            raise
        finally:
            _ASK.reset(token)
        if reply.from_ledger:
            ask.end("released")
        else:
            ask.end("answered", reply.usage)
        return reply

    def most_usd(self, request: Request, *, n_before: int = 0) -> float | None:
        """The most that one request can cost, after replies that could not be used; None: not
        known.
        """
        return most_usd(
            request,
            self._cost,
            max_tokens=self._max_tokens,
            n_before=n_before,
            image_tokens=self._image_tokens,
        )

    def _why_unknown(self, request: Request, purpose: str) -> str:
        limit = f"{self.budget.name} {self.budget.limit_usd:g} cannot be kept"
        if self._cost(1, 1) is None:
            return (
                f"{limit}: no price is known for {self.id.label}; give it in bubench.toml: "
                "[models.NAME] usd_per_million = {input = ..., output = ...}"
            )
        return (
            f"{limit}: a request for {purpose} sets no max_tokens, so a reply can cost anything; "
            "give params = {max_tokens = ...} to the model in bubench.toml"
        )


@dataclass
class _Ask:
    """One ask under way, which may take several requests."""

    model: BudgetModel
    request: Request
    purpose: str
    ids: list[str] = field(default_factory=list[str])
    """What is held: for what was paid, and for the request to come."""
    n_paid: int = 0

    def before_request(self) -> None:
        """What the next request can cost is held, too. It never waits: whoever holds something
        and waits for more could wait for somebody who does the same.

        Raises:
            BudgetError: it does not fit.
        """
        if len(self.ids) > self.n_paid:
            return
        most = self.model.most_usd(self.request, n_before=self.n_paid)
        label = self.model.id.label
        self.ids.append(self.model.budget.hold(most, purpose=self.purpose, model=label))

    def end(self, outcome: Outcome, usage: Usage | None = None) -> None:
        """It is over: what it took stands in place of what was held."""
        spending = self.model.budget.spending
        first, *others = self.ids
        for id in others:
            spending.end(id, "lost" if outcome == "lost" else "released")
        spending.end(first, outcome, usage)


_ASK: ContextVar[_Ask | None] = ContextVar("browseruse_bench_ask", default=None)


class HoldingLimiter:
    """The limiter of a key, that also holds what each further request of an ask can cost."""

    def __init__(self, inner: Limiter) -> None:
        """Let through what `inner` lets through."""
        self._inner = inner

    @contextlib.asynccontextmanager
    async def slot(self, tokens: int = 0) -> AsyncGenerator[HeldSlot]:
        """Wait for the turn of one request that will take about so many tokens.

        Raises:
            BudgetError: what it can cost does not fit.
        """
        ask = _ASK.get()
        async with self._inner.slot(tokens) as slot:
            if ask is not None:
                ask.before_request()
            yield HeldSlot(slot, ask)

    def pause(self, seconds: float) -> None:
        """Let nothing start for so long."""
        self._inner.pause(seconds)


@dataclass
class HeldSlot:
    """One request that is under way."""

    _slot: Slot
    _ask: _Ask | None

    def used(self, tokens: int) -> None:
        """It was answered, and took so many tokens."""
        self._slot.used(tokens)
        if self._ask is not None:
            self._ask.n_paid += 1


def cost_of(spec: ModelSpec) -> Cost:
    """What tokens of a model cost at most, however the provider counts them: read or put into
    its cache for an hour, said or thought.
    """

    def most(prompt: int, reply: int) -> float | None:
        ways = (
            prices.Counted(uncached=prompt, output=reply),
            prices.Counted(written=prompt, reasoning=reply),
            prices.Counted(written=prompt, written_1h=prompt, output=reply),
        )
        amounts = [prices.cost(spec, way).usd for way in ways]
        known = [amount for amount in amounts if amount is not None]
        return max(known) if len(known) == len(amounts) else None

    return most


def most_usd(
    request: Request,
    cost: Cost,
    *,
    max_tokens: int | None = None,
    n_before: int = 0,
    image_tokens: int = IMAGE_TOKENS,
) -> float | None:
    """The most that a request can cost: a long estimate of the prompt, and the longest reply.

    Args:
        request: what is asked.
        cost: the price.
        max_tokens: the longest reply to a request that sets none.
        n_before: replies that could not be used, which are in the prompt when it asks again.
        image_tokens: the most that a picture takes.

    Returns:
        USD; None: no price is known, or the reply has no longest (and is not free).
    """
    prompt = most_tokens(request, image_tokens=image_tokens)
    reply = request.params.max_tokens or max_tokens
    if reply is None:
        # A price of nothing is the same for any length.
        return 0.0 if cost(prompt, 1_000_000) == 0 else None
    return cost(prompt + n_before * (reply + _AGAIN_TOKENS), reply)


def most_tokens(request: Request, *, image_tokens: int = IMAGE_TOKENS) -> int:
    """More tokens than a prompt takes: half a token for each letter and space, one for each
    other byte and for all of a run of `_LONG_RUN` characters without a space (an address, a
    hash), a constant for a picture.
    """
    texts = [request.text]
    if request.schema_ is not None:
        texts.append(canonical_json(request.schema_))
    written = "\n".join(texts).encode(errors="replace")
    dense = b"".join(run for run in written.split() if len(run) >= _LONG_RUN)
    n_light = _n_light(written) - _n_light(dense)
    return (
        len(written)
        - n_light // 2
        + len(request.images) * image_tokens
        + (len(request.messages) + 1) * _MESSAGE_TOKENS
    )


def _n_light(written: bytes) -> int:
    """How many letters and spaces there are."""
    return len(written) - len(written.translate(None, _LIGHT))
