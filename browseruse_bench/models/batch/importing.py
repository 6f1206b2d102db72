"""What came back for a batch, put where the requests are looked for: in the ledger.

Each line is read and checked as a live reply. A line that is not an answer to what was asked of
this model is refused by name, and costs only itself. What has no answer is owed as before.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from browseruse_bench.models.base import CallError, OutageError, Reply, Request
from browseruse_bench.models.batch.export import ledgers_of
from browseruse_bench.models.batch.folder import BatchFolder, Part, Queued, Refused, utc_now
from browseruse_bench.models.batch.form import Answer, Codec, Json, answer_of, settled
from browseruse_bench.models.config import SchemaMode
from browseruse_bench.models.failures import RejectedError
from browseruse_bench.models.ledger import (
    Call,
    Ledger,
    RequestDigest,
    answered_call,
    failed_call,
)
from browseruse_bench.models.spec import ModelSpec
from browseruse_bench.models.spending import cost_of, most_usd
from browseruse_bench.models.spending_log import Spending, What
from browseruse_bench.records.trace import Usage

_DATED = re.compile(r"-(?:\d{8}|\d{4}-\d{2}-\d{2})")


@dataclass(kw_only=True)
class Imported:
    """What came of the lines of answers."""

    n_lines: int = 0
    n_answered: int = 0
    """Now in the ledger."""
    n_refused: int = 0
    """Gave nothing to use (cut short, declined, not fitting): the next ask is told so."""
    n_gone: int = 0
    """Were not asked, or met an outage: owed as before."""
    n_known: int = 0
    """Answered before."""
    n_owed: int = 0
    """Wait still, after this."""
    cost_usd: float | None = 0.0
    """Of these answers, known ones too; None: not known in full."""
    problems: list[str] = field(default_factory=list[str])
    """Lines that are no answer to what was asked, by name."""

    def paid(self, usage: Usage | None) -> None:
        """Count the cost of one in."""
        if usage is None or self.cost_usd is None:
            return
        self.cost_usd = None if usage.cost_usd is None else self.cost_usd + usage.cost_usd


@dataclass(frozen=True, kw_only=True)
class Terms:
    """By which terms answers are taken."""

    also_served: tuple[str, ...] = ()
    """Names of models that may have answered beside the one that was asked."""
    price_factor: float | None = None
    """Which part of the ordinary price they cost; None: not known."""


async def import_answers(
    folder: BatchFolder,
    spec: ModelSpec,
    paths: Iterable[Path],
    *,
    spending: Spending,
    terms: Terms,
) -> Imported:
    """Every line that answers what waits is in the ledger, and waits no more.

    To be called by whoever is alone with the folder. May be repeated at any time: what it took
    before is not taken twice.

    Args:
        folder: the batch.
        spec: the model, as bubench.toml has it.
        paths: files of answers.
        spending: where the cost is written down.
        terms: by which answers are taken.
    """
    modes = _modes(folder, folder.parts())
    taking = _Taking(folder, spec, modes, spending, terms)
    for path in paths:
        await taking.take(path)
    taking.done.n_owed = sum(queued.refused is None for queued in folder.waiting())
    return taking.done


def _modes(folder: BatchFolder, parts: Iterable[Part]) -> dict[str, SchemaMode]:
    """Key -> how the request went out, when it went out last."""
    return {key: part.mode for part in parts for key in folder.part_keys(part)}


class _Taking:
    def __init__(
        self,
        folder: BatchFolder,
        spec: ModelSpec,
        modes: Mapping[str, SchemaMode],
        spending: Spending,
        terms: Terms,
    ) -> None:
        self._folder = folder
        self._spec = spec
        self._modes = modes
        self._codecs = {mode: Codec(settled(spec, mode)) for mode in set(modes.values())}
        self._spending = spending
        self._terms = terms
        self._ledgers = ledgers_of(folder)
        self._cost = cost_of(spec)
        self._model_key = folder.info.model.key
        self.done = Imported()

    async def take(self, path: Path) -> None:
        """Take the lines of one file; two answers to one request that differ are none."""
        doubled = _doubled(path)
        for number, line in _lines(path):
            self.done.n_lines += 1
            where = f"{path.name}: line {number}"
            try:
                answer = answer_of(line)
            except ValueError as error:
                self.done.problems.append(f"{where}: {error}: refused")
                continue
            if answer.key in doubled:
                others = ", ".join(str(n) for n in doubled[answer.key] if n != number)
                self.done.problems.append(
                    f"{where}: request {answer.key[:12]} has another answer in line {others}: "
                    "both refused"
                )
                continue
            if problem := await self._take(answer):
                self.done.problems.append(f"{where}: {problem}: refused")
        self.done.problems.extend(f"{path.name}: {p}: refused" for p in _not_json(path))

    async def _take(self, answer: Answer) -> str | None:
        """Take one answer; why it is refused, if it is."""
        key = answer.key
        mode, queued = self._modes.get(key), self._folder.queued(key)
        if mode is None:
            return f"custom_id {key[:80]!r} was never asked in this batch"
        if queued is None:
            self._known(key)
            return None
        if answer.gone is not None:
            self.done.n_gone += 1
            return None
        if answer.status == 200 and (problem := self._other_model(answer)):
            return problem
        ledger = self._ledgers[queued.restricted]
        async with ledger.flight(key):
            if ledger.find(key) is not None:
                self._known(key)
                self._folder.remove(key)
                return None
            await self._keep(ledger, queued, answer, self._codecs[mode])
        return None

    def _known(self, key: str) -> None:
        """It was answered before."""
        self.done.n_known += 1
        call = next((c for ledger in self._ledgers if (c := ledger.find(key))), None)
        self.done.paid(call.usage if call is not None and call.via == "batch" else None)

    async def _keep(self, ledger: Ledger, queued: Queued, answer: Answer, codec: Codec) -> None:
        request = self._folder.request(queued)
        draft = Call(
            id=queued.id,
            model=self._spec.label,
            model_key=self._model_key,
            purpose=queued.purpose,
            scope=queued.scope,
            via="batch",
            request=RequestDigest.of(request),
            raw="",
            asked_at=queued.queued_at,
            at="",
        )
        ledger.note_model(self._folder.info.model)
        try:
            reply = await codec.reply(request, answer)
        except CallError as error:
            self._fail(ledger, draft, queued, request, error)
            return
        usage = self._priced(reply.usage)
        self._pay(draft, request, usage, failed=False)
        ledger.put(answered_call(draft, _with(reply, usage), utc_now()))
        self._folder.remove(queued.id)
        self.done.n_answered += 1

    def _fail(
        self, ledger: Ledger, draft: Call, queued: Queued, request: Request, error: CallError
    ) -> None:
        """Keep what gave nothing to use, for the next ask; an outage is owed as before."""
        if isinstance(error, OutageError) and not isinstance(error, RejectedError):
            self.done.n_gone += 1
            return
        if queued.refused is not None:
            self.done.n_known += 1
            self.done.paid(queued.refused.usage)
            return
        error.usage = None if error.usage is None else self._priced(error.usage)
        self._pay(draft, request, error.usage, failed=True)
        call = failed_call(draft, error, utc_now())
        name = ledger.put_failed(call)
        refused = Refused(
            status=call.status,
            error=call.error or "",
            raw=call.raw,
            usage=call.usage,
            call=name,
        )
        self._folder.write_queued(queued.model_copy(update={"refused": refused}))
        self.done.n_refused += 1

    def _pay(self, draft: Call, request: Request, usage: Usage | None, *, failed: bool) -> None:
        self.done.paid(usage)
        if usage is None:
            return
        most = most_usd(request, self._cost, max_tokens=self._spec.asking.params.max_tokens)
        what = What(draft.scope, draft.purpose, draft.model)
        id = self._spending.begin(what, most)
        self._spending.end(id, "failed" if failed else "answered", usage)

    def _priced(self, usage: Usage) -> Usage:
        """What it cost in a batch."""
        factor = self._terms.price_factor
        if factor == 1 or usage.cost_usd == 0:
            return usage
        if factor is None:
            source = "unknown: who answered the batch, and at which price, was not said"
            return usage.model_copy(update={"cost_usd": None, "price_source": source})
        cost = None if usage.cost_usd is None else usage.cost_usd * factor
        source = f"{usage.price_source}; batch, {factor:g} of it"
        return usage.model_copy(update={"cost_usd": cost, "price_source": source})

    def _other_model(self, answer: Answer) -> str | None:
        names = (self._spec.name, *self._terms.also_served)
        if answer.served is None:
            return f"request {answer.key[:12]}: the answer does not say which model gave it"
        if any(same_model(name, answer.served) for name in names):
            return None
        return (
            f"request {answer.key[:12]}: answered by {answer.served!r}, not {self._spec.name!r} "
            "(--accept-model takes it all the same)"
        )


def same_model(asked: str, served: str) -> bool:
    """Whether the name of a served model is the asked one, or it with the date of a version."""
    base = asked.removesuffix("-latest")
    return served == asked or (
        served.startswith(base) and _DATED.fullmatch(served[len(base) :]) is not None
    )


def _with(reply: Reply, usage: Usage) -> Reply:
    return reply.model_copy(update={"usage": usage})


def _lines(path: Path) -> Iterator[tuple[int, Json]]:
    """(number, object) of each line that is one."""
    with path.open("rb") as file:
        for number, content in enumerate(file, 1):
            if (line := _object(content)) is not None:
                yield number, line


def _object(content: bytes) -> Json | None:
    try:
        value: Any = json.loads(content)
    except ValueError:
        return None
    return cast("Json", value) if isinstance(value, dict) else None


def _not_json(path: Path) -> Iterator[str]:
    """Lines that are no JSON objects; blank ones are none at all."""
    with path.open("rb") as file:
        for number, content in enumerate(file, 1):
            if content.strip() and _object(content) is None:
                yield f"line {number}: not a JSON object"


def _doubled(path: Path) -> dict[str, list[int]]:
    """Key -> lines, of requests with answers that differ; equal lines are one."""
    seen: dict[str, dict[bytes, int]] = {}
    for number, line in _lines(path):
        key = line.get("custom_id")
        if isinstance(key, str):
            said = json.dumps([line.get("response"), line.get("result"), line.get("error")])
            digest = hashlib.sha256(said.encode()).digest()
            seen.setdefault(key, {}).setdefault(digest, number)
    return {key: list(lines.values()) for key, lines in seen.items() if len(lines) > 1}
