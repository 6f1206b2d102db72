"""What labellers and proposers said, written down before it is used.

    answers.jsonl     one answer a line: of one model, by one version, about one task
    proposals.jsonl   one reply of the proposer a line

The call ledger answers equal calls that gave something. The book also knows those that gave
nothing to use, which are as little paid again, and it is read without any model.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import Field, ValidationError

from browseruse_bench.errors import DataError, IncompleteError
from browseruse_bench.factory.search import labeller, proposer
from browseruse_bench.factory.search.bench import Answer, Brief, Proposal
from browseruse_bench.factory.search.examples import Example
from browseruse_bench.factory.search.labeller import Prompt, Said
from browseruse_bench.models.base import (
    CallError,
    MalformedError,
    Model,
    OutageError,
    PendingError,
    RefusalError,
    TooLongError,
    TruncatedError,
)
from browseruse_bench.records.base import Record
from browseruse_bench.store.journal import Journal, read_journal

Kind = TypeVar("Kind", bound=Record)

IN_FLIGHT = 32
"""Tasks that are asked about at a time; what a model's key may do limits itself."""
_TOGETHER = 32
"""Answers that are synced to disk at a time. One that is lost is in the ledger of calls."""

Silence = Literal["truncated", "refusal", "too_long", "malformed"]
_SILENCES: dict[type[CallError], Silence] = {
    TruncatedError: "truncated",
    RefusalError: "refusal",
    TooLongError: "too_long",
    MalformedError: "malformed",
}
"""Failures that are the model's word on this task: asked again it would cost again. What the
provider could not answer is none of them, and is owed."""


class Line(Record):
    """A line of answers.jsonl."""

    prompt: str
    """`labeller.Prompt.key`."""
    model: str
    """Key of the model."""
    task: str
    """Key of the example."""
    said: Said | None = None
    silence: Silence | None = None
    """Why nothing was said."""
    cost_usd: float | None = Field(default=None, ge=0)
    """None: not known."""
    seconds: float = Field(default=0, ge=0)
    call: str | None = None
    at: str

    @property
    def answer(self) -> Answer:
        """As a search uses it."""
        if self.said is None:
            return Answer(None, f"({self.silence})", self.cost_usd, self.seconds)
        return Answer(self.said.verdict, self.said.reason, self.cost_usd, self.seconds)


class Proposed(Record):
    """A line of proposals.jsonl."""

    request: str
    """Key of the request."""
    model: str
    turn: int
    parent: str
    """Id of the version that variants were asked of."""
    variants: tuple[proposer.Variant, ...] = ()
    silence: Silence | None = None
    """Why there are none."""
    cost_usd: float | None = Field(default=None, ge=0)
    at: str

    @property
    def proposals(self) -> list[Proposal]:
        """As a search uses them."""
        return [Proposal(v.text, v.change) for v in self.variants]


class Book:
    """The answers in a folder. One process writes at a time."""

    def __init__(self, folder: Path, *, clock: Callable[[], str] | None = None) -> None:
        """Read what is there.

        Raises:
            DataError: a whole line is damaged.
        """
        self.folder = folder
        self._clock = clock or _utc_now
        self._answers_path = folder / "answers.jsonl"
        self._proposals_path = folder / "proposals.jsonl"
        self._answers = {
            (line.prompt, line.model, line.task): line for line in (_read(Line, self._answers_path))
        }
        self._proposals = {
            (line.request, line.model): line for line in _read(Proposed, self._proposals_path)
        }

    def find(self, prompt: Prompt, model: Model, task: str) -> Line | None:
        """What a model said of a task by a version; None: it was not asked."""
        return self._answers.get((prompt.key, model.id.key, task))

    def costs(self, prompts: Collection[str], model: Model) -> list[float | None]:
        """What each answer of a model to these prompts (by key) cost; None: not known."""
        return [
            line.cost_usd
            for line in self._answers.values()
            if line.model == model.id.key and line.prompt in prompts
        ]

    async def label(
        self,
        model: Model,
        text: str,
        examples: Sequence[Example],
        *,
        tell: Callable[[int, int], None] = lambda done, of: None,
    ) -> list[Answer]:
        """An answer for each example, in order; those that are in the book are not asked.

        Args:
            model: what answers; it may see restricted text.
            text: the version of the prompt.
            examples: what it is asked about.
            tell: told how many of how many were asked.

        Raises:
            IncompleteError: the provider did not answer some; all others are in the book.
            BudgetError: the budget was reached; what was answered is in the book.
        """
        prompt = Prompt(text=text)
        key, model_key = prompt.key, model.id.key
        owed = [e for e in examples if (key, model_key, e.key) not in self._answers]
        if owed:
            await _Asking(self, model, prompt, owed, tell).all()
        return [self._answers[key, model_key, e.key].answer for e in examples]

    async def propose(self, model: Model, brief: Brief) -> Proposed:
        """What a proposer writes for a brief; no variants where its reply could not be used.

        Raises:
            OutageError: the provider did not answer.
            BudgetError: the budget was reached.
        """
        request = proposer.request(brief)
        at = (request.key, model.id.key)
        if at not in self._proposals:
            made: dict[str, Any] = {
                "request": request.key,
                "model": model.id.key,
                "turn": brief.turn,
                "parent": brief.parent.id,
            }
            try:
                reply = await model.ask(request, purpose=proposer.PURPOSE, restricted=True)
                variants = proposer.Variants.model_validate(reply.value).variants
                made |= {"variants": variants, "cost_usd": reply.usage.cost_usd}
            except CallError as error:
                made |= _silence(error)
            line = Proposed.model_validate({**made, "at": self._clock()})
            _append(self._proposals_path, [line])
            self._proposals[at] = line
        return self._proposals[at]

    def write(self, lines: Iterable[Line]) -> None:
        """Keep answers; when this returns they are on disk."""
        kept = list(lines)
        _append(self._answers_path, kept)
        self._answers.update({(line.prompt, line.model, line.task): line for line in kept})

    async def line(self, model: Model, prompt: Prompt, example: Example) -> Line:
        """Ask about one example.

        Raises:
            OutageError, PendingError: the provider did not answer; it is owed.
        """
        made: dict[str, Any] = {"prompt": prompt.key, "model": model.id.key, "task": example.key}
        try:
            said, reply = await labeller.label(model, prompt, example.text)
            made |= {
                "said": said,
                "cost_usd": reply.usage.cost_usd,
                "seconds": reply.seconds,
                "call": reply.call,
            }
        except CallError as error:
            made |= {**_silence(error), "call": error.call}
        return Line.model_validate({**made, "at": self._clock()})


class _Asking:
    """One version's questions under way."""

    def __init__(
        self,
        book: Book,
        model: Model,
        prompt: Prompt,
        owed: Sequence[Example],
        tell: Callable[[int, int], None],
    ) -> None:
        self._book = book
        self._model = model
        self._prompt = prompt
        self._owed = iter(owed)
        self._n = len(owed)
        self._tell = tell
        self._done: list[Line] = []
        self._n_done = 0
        self._outages: list[CallError] = []
        self._stopped = False

    async def all(self) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(IN_FLIGHT, self._n)):
                    group.create_task(self._worker())
        except BaseExceptionGroup as errors:
            # One is enough: the others are of the same kind, or were cut off by it.
            raise errors.exceptions[0] from None
        finally:
            self._flush()
        if self._outages:
            raise IncompleteError(
                f"{self._n - self._n_done} of {self._n} tasks have no answer yet "
                f"({self._outages[0]}); the same command asks them again"
            )

    async def _worker(self) -> None:
        for example in self._owed:
            if self._stopped:
                return
            try:
                line = await self._book.line(self._model, self._prompt, example)
            except (OutageError, PendingError) as error:
                self._outages.append(error)
                # A provider that is away is away for all.
                self._stopped = len(self._outages) >= IN_FLIGHT
                continue
            except BaseException:  # whatever ends one worker, Ctrl-C too, ends the others
                self._stopped = True
                raise
            self._done.append(line)
            self._n_done += 1
            # The ledger has no answer to give for what gave nothing: that is written at once.
            if line.said is None or len(self._done) >= _TOGETHER:
                self._flush()
            self._tell(self._n_done, self._n)

    def _flush(self) -> None:
        done, self._done = self._done, []
        if done:
            self._book.write(done)


def _silence(error: CallError) -> dict[str, Any]:
    """What is kept of a call that gave nothing.

    Raises:
        CallError: it is not the model's word: it is owed.
    """
    kind = next((s for k, s in _SILENCES.items() if isinstance(error, k)), None)
    if kind is None:
        raise error
    cost = error.usage.cost_usd if error.usage is not None else 0.0
    return {"silence": kind, "cost_usd": cost}


def total(costs: Iterable[float | None]) -> float | None:
    """The sum; None: one of them is not known."""
    found = list(costs)
    known = [cost for cost in found if cost is not None]
    return math.fsum(known) if len(known) == len(found) else None


def _read(kind: type[Kind], path: Path) -> list[Kind]:
    lines: list[Kind] = []
    for number, entry in enumerate(read_journal(path), 1):
        try:
            lines.append(kind.model_validate(entry))
        except ValidationError as error:
            raise DataError(
                f"{path}: line {number} is damaged ({error.errors()[0]['msg']}); restore it, or "
                "remove that line"
            ) from error
    return lines


def _append(path: Path, lines: Sequence[Record]) -> None:
    with Journal(path) as journal:
        journal.append_all(line.as_json() for line in lines)


def _utc_now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
