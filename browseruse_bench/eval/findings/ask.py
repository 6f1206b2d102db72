"""Asking a model until its reply can be used: what fits is kept, what does not is asked once
more, and everything that it cost is on one account.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from browseruse_bench.errors import BudgetError, ModelError, boundary
from browseruse_bench.eval.findings import prompts
from browseruse_bench.eval.findings.reply import ReplyError, Said, parse, schema
from browseruse_bench.eval.findings.settle import Settled, merged
from browseruse_bench.models.base import (
    CallError,
    MalformedError,
    Message,
    Model,
    Params,
    PendingError,
    RefusalError,
    Reply,
    Request,
    TruncatedError,
)
from browseruse_bench.records.trace import Usage, summed

T = TypeVar("T")
PURPOSE = "judge"
MAX_RAW = 20_000
"""How much of a raw reply is kept in a judgement where no ledger keeps it."""


@dataclass
class Account:
    """What one judgement has cost so far, and where its replies are."""

    usages: list[Usage] = field(default_factory=list[Usage])
    n_calls: int = 0
    n_malformed: int = 0
    """Replies that did not fit and were asked for once more."""
    n_open: int = 0
    """Replies with places that did not hold and were asked for once more."""
    n_citations: int = 0
    n_holding: int = 0
    """Citations of the replies that were used, and how many of them hold."""
    n_first_citations: int = 0
    n_first_holding: int = 0
    """The same before anything was asked again."""
    raw_ref: str | None = None
    """Key of the last call in the ledger."""
    refs: list[str] = field(default_factory=list[str])
    """Keys of all calls in the ledger."""
    raw: str = ""
    """The last raw reply."""

    @property
    def usage(self) -> tuple[Usage, ...]:
        """One use per model."""
        return summed(self.usages)

    def take(self, reply: Reply) -> None:
        """Add a reply."""
        self.n_calls += 1
        self.usages.append(reply.usage)
        self._keep(reply.call, reply.raw)

    def take_failure(self, error: CallError) -> None:
        """Add a call that gave nothing."""
        self.n_calls += 1
        if error.usage is not None:
            self.usages.append(error.usage)
        self._keep(error.call, error.raw)

    def _keep(self, ref: str | None, raw: str) -> None:
        self.raw_ref, self.raw = ref, raw
        if ref is not None:
            self.refs.append(ref)

    def take_settled(self, first: Settled, last: Settled) -> None:
        """Add the citations of a reply, as it was first and as it was used."""
        self.n_first_citations += first.n_citations
        self.n_first_holding += first.n_holding
        self.n_citations += last.n_citations
        self.n_holding += last.n_holding


@dataclass(frozen=True, kw_only=True)
class Asker:
    """Who is asked for one judgement, and how."""

    model: Model
    params: Params
    sample: int
    restricted: bool
    account: Account

    async def reply(self, messages: Sequence[Message], schema: dict[str, Any], name: str) -> Reply:
        """One whole reply.

        Raises:
            CallError: nothing came that can be used; it is on the account.
            BudgetError: the budget does not allow it.
        """
        request = Request(
            messages=tuple(messages),
            schema=schema,
            schema_name=name,
            params=self.params,
            sample=self.sample,
        )
        try:
            with boundary(ModelError, f"judge model {self.model.id.label}"):
                reply = await self.model.ask(request, purpose=PURPOSE, restricted=self.restricted)
        except PendingError:
            raise
        except CallError as error:
            self.account.take_failure(error)
            raise
        self.account.take(reply)
        if reply.finish != "stop":
            raise _unfinished(reply)
        return reply

    async def fitting(
        self,
        messages: Sequence[Message],
        schema: dict[str, Any],
        name: str,
        read: Callable[[Any], T],
    ) -> tuple[T, tuple[Message, ...]]:
        """What a reply says, and the conversation up to it; asked once more if it does not fit.

        Raises:
            MalformedError: neither reply fits; nothing of them is used.
        """
        reply = await self.reply(messages, schema, name)
        said = (*messages, _assistant(reply))
        try:
            return read(reply.value), said
        except ReplyError as error:
            self.account.n_malformed += 1
            problems = "\n".join(f"- {problem}" for problem in error.problems)
        said = (*said, _user(prompts.fill("malformed", problems=problems)))
        reply = await self.reply(said, schema, name)
        try:
            return read(reply.value), (*said, _assistant(reply))
        except ReplyError as error:
            malformed = MalformedError(f"the judge's reply does not fit: {error}", raw=reply.raw)
            malformed.call = reply.call
            raise malformed from error

    async def findings(
        self,
        messages: Sequence[Message],
        items: Sequence[str],
        settle: Callable[[Said], Awaitable[Settled]],
        *,
        conduct: bool,
    ) -> Settled:
        """Checked findings; the judge is asked once more about places that do not hold.

        Args:
            messages: up to the question.
            items: what is asked about.
            settle: looks up the places.
            conduct: whether honesty and causes are asked for as well.

        Raises:
            MalformedError: a reply does not fit, or a breach of honesty is claimed twice
                without a place that shows it.
            CallError: another call gave nothing.
        """
        form = schema(items, conduct=conduct)

        def read(value: Any) -> Said:
            return parse(value, items, conduct=conduct)

        said, conversation = await self.fitting(messages, form, "findings", read)
        first = last = await settle(said)
        if first.is_open:
            self.account.n_open += 1
            failures = "\n".join(first.failures)
            asked = (*conversation, _user(prompts.fill("again", failures=failures)))
            said, _ = await self.fitting(asked, form, "findings", read)
            last = merged(first, await settle(said))
        if last.open_flags:
            flags = ", ".join(last.open_flags)
            message = f"the judge claims {flags}, and no place that it cites shows it"
            error = MalformedError(message, raw=self.account.raw)
            error.call = self.account.raw_ref
            raise error
        self.account.take_settled(first, last)
        return last


def _unfinished(reply: Reply) -> CallError:
    if reply.finish == "refusal":
        error: CallError = RefusalError("the judge declined to answer", raw=reply.raw)
    else:
        error = TruncatedError(
            f"the judge's reply was cut short (finish reason: {reply.finish})", raw=reply.raw
        )
    error.call = reply.call
    return error


def _assistant(reply: Reply) -> Message:
    return Message(role="assistant", parts=(reply.raw.strip() or "(nothing)",))


def _user(text: str) -> Message:
    return Message(role="user", parts=(text,))


async def together(calls: Iterable[Awaitable[T]]) -> list[T]:
    """The results of calls that run at the same time, in their order.

    All of them come to an end first: requests that wait in a batch are all put there, and what
    was answered is in the ledger. What went wrong is then raised, a spent budget first.
    """
    results = await asyncio.gather(*calls, return_exceptions=True)
    failures = [result for result in results if isinstance(result, BaseException)]
    if failures:
        raise min(failures, key=_rank)
    return [result for result in results if not isinstance(result, BaseException)]


def _rank(failure: BaseException) -> int:
    first = (asyncio.CancelledError, BudgetError, PendingError)
    return next((n for n, kind in enumerate(first) if isinstance(failure, kind)), len(first))
