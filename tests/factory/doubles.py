"""Units, stages and a ledger of payments for tests of the runner."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from browseruse_bench.factory.context import Context
from browseruse_bench.factory.stage import Dropped, Fold, Kept, Stage
from browseruse_bench.models.base import Message, ModelId, Reply, Request
from browseruse_bench.models.ledger import Ledger, LedgerModel, call_key
from browseruse_bench.models.scripted import ScriptedModel
from browseruse_bench.records.base import Record
from browseruse_bench.records.trace import Usage


class Number(Record):
    n: int

    @property
    def key(self) -> str:
        return f"n{self.n:05}"


class Doubled(Record):
    n: int


class Halve(Stage[Number, Doubled]):
    """Keeps even numbers; drops multiples of five; fails on those in `broken`."""

    name = "halve"
    version = 1
    takes, gives = Number, Doubled
    reasons = frozenset({"odd", "five"})

    def __init__(self, *, threshold: int = 1, broken: frozenset[int] = frozenset()) -> None:
        self.threshold = threshold
        self.broken = broken
        self.seen: list[int] = []

    def settings(self):
        return {"threshold": self.threshold, "pair": (1, 2)}

    async def settle(self, unit, ctx):
        self.seen.append(unit.n)
        await asyncio.sleep(0)
        if unit.n in self.broken:
            raise ValueError("no luck")
        if unit.n % 5 == 0:
            return Dropped("five", {"n": unit.n})
        if unit.n % 2:
            return Dropped("odd")
        return Kept(Doubled(n=unit.n // 2))


def asked(number: int) -> Request:
    return Request(messages=(Message(role="user", parts=(str(number),)),))


class Asks(Halve):
    """Asks a model for every unit, and keeps what it says."""

    name = "asks"

    async def settle(self, unit, ctx):
        reply = await ctx.model("judge").ask(asked(unit.n), purpose=self.name)
        return Kept(Doubled(n=int(reply.raw)))


class First(Fold[Number, Doubled]):
    """Keeps the smallest of each ten."""

    name = "first"
    version = 1
    takes, gives = Number, Doubled
    reasons = frozenset({"later"})

    def fold(self, units, prior, ctx):
        taken = {outcome.value.n // 10 for outcome in prior.values() if isinstance(outcome, Kept)}
        for unit in sorted(units, key=lambda unit: unit.n):
            if unit.key in prior:
                continue
            if unit.n // 10 in taken:
                yield unit.key, Dropped("later")
            else:
                taken.add(unit.n // 10)
                yield unit.key, Kept(Doubled(n=unit.n))


class Billed:
    """A provider whose bill is outside of the process that asks: a line for each request that
    reached it, whatever becomes of whoever asked.
    """

    may_see = "clean"
    id = ModelId(label="billed", provider="scripted", name="billed")

    def __init__(self, bill: Path, *, cost_usd: float = 0.01) -> None:
        self._bill = os.open(bill, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._cost_usd = cost_usd

    async def ask(self, request, *, purpose, restricted=False):
        os.write(self._bill, f"{request.text}\n".encode())
        await asyncio.sleep(0.002)
        usage = Usage(model=self.id.label, cost_usd=self._cost_usd, price_source="test")
        return Reply(raw=request.text, usage=usage)


def billed_context(root: Path, **more) -> Context:
    """A context whose model is a provider with a bill, behind a real ledger on disk."""
    model = LedgerModel(Billed(root / "bill"), Ledger(root / "calls"))
    return context(root, **more, open_model=lambda role: {"judge": model}[role])


def billed_key(number: int) -> str:
    """Key in the ledger of the call that `Asks` makes for a number."""
    return call_key(Billed.id.key, asked(number))


def context(root: Path, answer=lambda text, sample: text, **more) -> Context:
    model = ScriptedModel(answer)
    more.setdefault("open_model", lambda role: {"judge": model}[role])
    return Context(
        workspace=root,
        folder=root,
        clock=lambda: "2026-01-01T00:00:00+00:00",
        **more,
    )


def numbers(*values: int) -> list[Number]:
    return [Number(n=value) for value in values]
