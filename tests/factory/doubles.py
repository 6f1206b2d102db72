"""Units, stages and a ledger of payments for tests of the runner."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from browseruse_bench.factory.context import Context
from browseruse_bench.factory.stage import Dropped, Fold, Kept, Stage
from browseruse_bench.models.base import Message, Request
from browseruse_bench.models.scripted import ScriptedModel
from browseruse_bench.records.base import Record


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


class Asks(Halve):
    """Asks a model for every unit, and keeps what it says."""

    name = "asks"

    async def settle(self, unit, ctx):
        request = Request(messages=(Message(role="user", parts=(str(unit.n),)),))
        reply = await ctx.model("judge").ask(request, purpose=self.name)
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


class Pays(Stage[Number, Doubled]):
    """Pays once for each unit, through a ledger on disk, as stages do."""

    name = "pays"
    version = 1
    takes, gives = Number, Doubled
    reasons = frozenset()

    async def settle(self, unit, ctx):
        paid = ctx.workspace / "paid" / unit.key
        if not paid.exists():
            await asyncio.sleep(0.002)
            # What a ledger does: the receipt is there whole, or not at all.
            paid.parent.mkdir(exist_ok=True)
            with (ctx.workspace / "payments.log").open("a") as log:
                receipt = paid.with_suffix(f".{os.getpid()}")
                receipt.write_text("")
                receipt.rename(paid)
                log.write(f"{unit.key}\n")
        return Kept(Doubled(n=unit.n))


def context(root: Path, answer=lambda text, sample: text, **more) -> Context:
    model = ScriptedModel(answer)
    return Context(
        workspace=root,
        folder=root,
        open_model=lambda role: {"judge": model}[role],
        clock=lambda: "2026-01-01T00:00:00+00:00",
        **more,
    )


def numbers(*values: int) -> list[Number]:
    return [Number(n=value) for value in values]
