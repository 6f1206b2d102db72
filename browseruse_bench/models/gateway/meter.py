"""What the calls of one token cost: held before, counted after, written down, kept below limits.

The provider's own count decides, as it stands in its answers. A call that was cut off before
its count came may have been paid for: its cost is not known, never 0, and limits take it for
the most that it can have been.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal

from browseruse_bench.errors import BudgetError, ConfigError, StoreError
from browseruse_bench.models import prices
from browseruse_bench.models.gateway.bodies import as_kept, prompt_tokens
from browseruse_bench.models.gateway.call import Call, Denied, Outage
from browseruse_bench.models.ledger import Call as Kept
from browseruse_bench.models.ledger import Ledger, RequestDigest, Status
from browseruse_bench.models.prices import Counted
from browseruse_bench.models.spec import ModelSpec
from browseruse_bench.models.spending import Budget
from browseruse_bench.models.spending_log import Outcome
from browseruse_bench.records.base import content_key
from browseruse_bench.records.trace import Usage

PURPOSE = "agent"
OUTPUT_TOKENS = 16_384
"""What an answer may have where neither a request nor bubench.toml says, and money is limited:
the greatest that most models give."""
LEAST_TOKENS = 256
"""Fewer tokens than that are no answer: the call is refused instead."""


By = Literal["attempt", "run"]
"""Whose limit it is: the attempt's own, or one that it shares with others."""


@dataclass(frozen=True)
class Spent:
    """Why no further call of a token is paid for."""

    reason: str
    by: By


@dataclass(frozen=True)
class Failing:
    """Why the provider gives nothing, call after call."""

    kind: Outage
    why: str
    since: float
    """When the first of these calls began, on `time.monotonic`."""


class Meter:
    """Counts the calls of one token, and holds them to its limits."""

    def __init__(
        self,
        spec: ModelSpec,
        *,
        scope: str,
        run: Budget,
        attempt: Budget | None = None,
        ledger: Ledger | None = None,
        changed: Callable[[Meter], None] = lambda _: None,
    ) -> None:
        """Count from 0.

        Args:
            spec: the one model of the token.
            scope: what the calls are a part of: an attempt, say.
            run: what all tokens together may cost, and where that is written.
            attempt: what this one may cost; None: no limit of its own.
            ledger: where calls are kept; None: nowhere.
            changed: told after each call, and when one is refused for its cost.
        """
        self.spec = spec
        self.scope = scope
        self.spent: Spent | None = None
        self.failing: Failing | None = None
        """Why the provider gave nothing at the last call; None: it gave something."""
        self.answered_at: float | None = None
        """When it last did, on `time.monotonic`."""
        self.fault: Exception | None = None
        """What went wrong in the harness itself: what could not be written, say."""
        self.n_calls = 0
        """Calls that were sent to the provider."""
        self.n_replayed = 0
        """Calls that were answered by a recorded answer."""
        own: list[tuple[Budget, By]] = [] if attempt is None else [(attempt, "attempt")]
        self._budgets: list[tuple[Budget, By]] = [*own, (run, "run")]
        self._ledger = ledger
        self._changed = changed
        self._free = _most(spec, b"", 0, 1_000_000) == 0
        self._known: Usage | None = None
        self._lost: Usage | None = None
        self._n_lost = 0
        self._lost_usd: float | None = 0.0
        self._n_alike: Counter[str] = Counter()
        self._longer = 1.0
        """How much greater a prompt was than it could be, at the worst."""

    @property
    def usage(self) -> tuple[Usage, ...]:
        """What was used: one entry for what was counted, one for what was cut off before."""
        counted = () if self._known is None else (self._known,)
        if self._lost is None:
            return counted
        most = "" if self._lost_usd is None else f", at most {self._lost_usd:.4f} USD"
        calls = "1 call was" if self._n_lost == 1 else f"{self._n_lost} calls were"
        source = f"unknown: {calls} cut off before the provider's count came{most}"
        return (*counted, self._lost.model_copy(update={"price_source": source}))

    async def begin(self, call: Call) -> None:
        """Hold what the call can cost, as soon as that fits.

        Raises:
            Denied: it fits no more, or what it costs cannot be bounded.
        """
        limited = [(budget, by) for budget, by in self._budgets if budget.limit_usd is not None]
        call.apart = call.wire.apart(call.body)
        if limited and call.apart is not None:
            raise Denied(
                400,
                f"{call.apart}: is not paid by this call's own tokens alone, so "
                f"{limited[0][0].name} cannot be kept; leave it out",
                "not_priced",
            )
        try:
            n_prompt = prompt_tokens(call.body, self.spec.name)
        except ValueError as error:
            raise Denied(413, str(error), "request_too_large") from None
        call.most_prompt = round(n_prompt * self._longer)
        if limited and not self._free and call.asked.max_output is None:
            self._cap(call, [budget for budget, _ in limited])
        n_output = call.asked.max_output
        if n_output is not None or self._free:
            n_output = (n_output or 0) * call.asked.n_choices
            call.most_usd = _most(self.spec, call.content, call.most_prompt, n_output)
        for budget, by in self._budgets:
            await self._hold(call, budget, by)

    def failed(self, fault: Exception) -> None:
        """The harness itself failed in a call."""
        self.fault = self.fault or fault
        self._changed(self)

    async def end(self, call: Call) -> None:
        """Count the call, keep it, and let go of what was held for it. When this returns it is
        on disk.

        Raises:
            StoreError: it could not be written.
        """
        usage, outcome = self._used(call)
        kept = None if self._ledger is None or call.replayed else self._kept(call, usage)
        held = tuple(call.held)
        call.held.clear()
        try:
            # A disk takes its time, in which the loop has others to serve.
            await asyncio.gather(
                asyncio.to_thread(_let_go, held, usage, outcome),
                asyncio.to_thread(self._keep, kept),
            )
        except OSError as error:
            raise StoreError(f"{error.filename or 'calls'}: {error.strerror or error}") from error
        finally:
            self._count(call, usage, outcome)
            self._changed(self)

    def _keep(self, kept: Kept | None) -> None:
        if kept is None or self._ledger is None:
            return
        self._ledger.note_model(self.spec.id)
        if kept.status == "answered":
            self._ledger.put(kept)
        else:
            self._ledger.put_failed(kept)

    def _count(self, call: Call, usage: Usage | None, outcome: Outcome) -> None:
        if call.replayed:
            self.n_replayed += 1
            return
        if outcome != "released":
            self.n_calls += 1
            self._add(call, usage, outcome)
        if call.capped_by is not None and call.truncated:
            self._spend(f"{call.capped_by} cut an answer off", "attempt")
        self._note(call)

    def _note(self, call: Call) -> None:
        """Whether the provider can be asked, as far as this call shows."""
        if call.outage is not None:
            since = call.began if self.failing is None else self.failing.since
            self.failing = Failing(call.outage, call.why, since)
        elif call.end in ("answered", "refused"):
            self.failing = None
            self.answered_at = time.monotonic()

    async def _hold(self, call: Call, budget: Budget, by: By) -> None:
        try:
            id = await budget.begin(call.most_usd, purpose=PURPOSE, model=self.spec.label)
        except BudgetError as error:
            self._spend(str(error), by)
            self._changed(self)
            raise Denied(402, str(error), "budget_limit") from None
        except ConfigError as error:
            raise Denied(400, str(error), "not_priced") from None
        call.held.append((budget, id))

    def _spend(self, reason: str, by: By) -> None:
        self.spent = self.spent or Spent(reason, by)

    def _cap(self, call: Call, budgets: Sequence[Budget]) -> None:
        """Let the answer have what is usual, or what the limits still pay."""
        usual = self.spec.asking.params.max_tokens or OUTPUT_TOKENS
        prompt = _most(self.spec, call.content, call.most_prompt, 0) or 0.0
        each = ((_most(self.spec, call.content, call.most_prompt, 1000) or 0.0) - prompt) / 1000
        affordable = usual
        for budget in budgets:
            left = (budget.limit_usd or 0.0) - budget.spent.charged_usd - prompt
            if each > 0:
                affordable = min(affordable, int(left / each / call.asked.n_choices))
        tokens = max(LEAST_TOKENS, affordable)
        call.capped_by = f"{budgets[0].name} {budgets[0].limit_usd:g}, which left {tokens} tokens,"
        call.asked = replace(call.asked, max_output=tokens)
        call.change(call.wire.capped(call.sent_body, self.spec, tokens))

    def _used(self, call: Call) -> tuple[Usage | None, Outcome]:
        """What the call took, and what came of it."""
        if not call.sent:
            return None, "released"
        if call.end == "refused":
            return None, "failed"  # no provider bills an error
        whole = call.end == "answered" or call.final
        counted = (
            call.wire.counted(call.usage, self.spec)
            if call.usage is not None
            else Counted(reported=False)
        )
        usage = prices.used(self.spec, counted)
        if not whole:
            return usage.model_copy(update={"cost_usd": None}), "lost"
        if call.apart is not None:
            source = f"unknown: {call.apart} is not paid by tokens alone"
            usage = usage.model_copy(update={"cost_usd": None, "price_source": source})
        n_prompt = counted.total - counted.output - counted.reasoning
        if n_prompt > call.most_prompt > 0:
            self._longer *= n_prompt / call.most_prompt
        return usage, "answered" if call.end == "answered" else "failed"

    def _add(self, call: Call, usage: Usage | None, outcome: Outcome) -> None:
        if outcome == "lost":
            assert usage is not None
            self._n_lost += 1
            self._lost = usage if self._lost is None else _sum(self._lost, usage)
            known = self._lost_usd is not None and call.most_usd is not None
            self._lost_usd = (self._lost_usd or 0.0) + (call.most_usd or 0.0) if known else None
        elif usage is not None:
            self._known = usage if self._known is None else _sum(self._known, usage)

    def _kept(self, call: Call, usage: Usage | None) -> Kept:
        """The call as it is written down, also one that the gateway itself denied."""
        body, media = as_kept(call.body)
        number = self._n_alike[call.id]
        self._n_alike[call.id] += 1
        return Kept(
            id=content_key([self.spec.id.key, call.id, self.scope, number]),
            status=_status(call),
            model=self.spec.label,
            model_key=self.spec.id.key,
            purpose=PURPOSE,
            scope=self.scope,
            request=RequestDigest(
                id=call.id,
                sample=number,
                n_messages=call.n_messages,
                n_chars=len(call.content),
                images=media,
            ),
            kept={"wire": call.wire.name, "path": call.path, "body": body},
            raw=call.reply.decode(errors="replace"),
            finish="length" if call.truncated else None,
            usage=usage,
            seconds=round(call.seconds, 3),
            error=call.why or None,
            asked_at=call.asked_at,
            at=datetime.now(UTC).isoformat(timespec="seconds"),
        )


def _let_go(held: Sequence[tuple[Budget, str]], usage: Usage | None, outcome: Outcome) -> None:
    for budget, id in held:
        budget.spending.end(id, outcome, usage)


def _most(spec: ModelSpec, content: bytes, prompt: int, reply: int) -> float | None:
    """The most USD that a call can cost. Only a request that asks for it is put into a cache,
    which has a price of its own, for an hour a greater one.
    """
    ways = [Counted(uncached=prompt)]
    if b"cache_control" in content:
        ways.append(Counted(written=prompt))
        if b"ttl" in content:
            ways.append(Counted(written=prompt, written_1h=prompt))
    said = [*(replace(way, output=reply) for way in ways), replace(ways[0], reasoning=reply)]
    amounts = [prices.cost(spec, counted).usd for counted in said]
    known = [amount for amount in amounts if amount is not None]
    return max(known) if len(known) == len(amounts) else None


def _sum(one: Usage, other: Usage) -> Usage:
    return prices.added([one, other], one.model)


def _status(call: Call) -> Status:
    if call.end == "answered":
        return "answered"
    return "outage" if call.outage else "failed"
