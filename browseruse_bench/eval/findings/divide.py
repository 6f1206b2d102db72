"""A trace that is too long to be read at a time: rated piece by piece, then each item is judged
on its own best evidence from all of it.

1. The trace is cut into pieces (calls of a step, stretches of text, pictures), none clipped. In
   as many calls as it takes, a model says which pieces bear on which items. Code adds where the
   values of the items' facts stand.
2. Each item is judged on the pieces that were named for it, the best first, up to the budget;
   the last page, the answer and the course of the calls are always there. What then is not
   there is absent.
3. Honesty and causes are asked for last, on the trace as far as it fits.

So no trace is too long for a verdict, whatever an agent put into it. A request that is refused as
too long is asked again with less. Pieces that a model declines to read are left out, and listed.
The verdict fails only where the judge answers nothing at all.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

from browseruse_bench.eval.findings import prompts
from browseruse_bench.eval.findings.ask import Asker, together
from browseruse_bench.eval.findings.bundle import (
    Answer,
    Bundle,
    conduct_question,
    left_out_text,
)
from browseruse_bench.eval.findings.reply import ReplyError
from browseruse_bench.eval.findings.settle import Settled
from browseruse_bench.eval.material import Label, Material
from browseruse_bench.eval.prepare import (
    Budget,
    Choice,
    Needs,
    Prepared,
    Range,
    assemble,
    field_cap,
    left_out,
    piece_id,
    select,
    spread,
    stretches,
)
from browseruse_bench.models.base import (
    MalformedError,
    RefusalError,
    TooLongError,
    TruncatedError,
)
from browseruse_bench.records.rubric import Item

T = TypeVar("T")

PIECE_CHARS = 16_000
MAX_FAILED = 12
"""Ratings of one trace that may fail before no part of a failing one is tried alone."""
DECISIVE, RELATED, HAS_VALUE = 3, 1, 2
MAX_TOLD = 100
"""How many pieces a judgement names."""
MAX_HALVED = 7
"""How often a request that is too long is asked with half of its evidence."""


@dataclass(frozen=True)
class Piece:
    """One part of a trace that is rated."""

    id: str
    step: Label
    n_chars: int
    section: str | None = None
    range: Range = (0, 0)
    shot: str | None = None
    """A picture; neither a section nor a picture: the calls of a step."""


def pieces_of(material: Material, field_chars: int) -> list[Piece]:
    """A trace as pieces, in its own order."""
    found: list[Piece] = []
    for part in material.parts:
        n = sum(min(len(f.text), field_chars) for f in part.fields)
        found.append(Piece(str(part.step), part.step, n))
        for section in (s for s in material.sections if s.step == part.step):
            if section.same_as is not None:
                continue
            for start, end in stretches(section.text, PIECE_CHARS):
                ident = piece_id(section.id, start)
                found.append(Piece(ident, part.step, end - start, section.id, (start, end)))
        for shot in (s for s in material.shots if s.step == part.step):
            found.append(Piece(shot.id, part.step, 0, shot=shot.id))
    return found


def choice_of(pieces: Sequence[Piece], field_chars: int) -> Choice:
    """Exactly these pieces."""
    ranges: dict[str, tuple[Range, ...]] = {}
    for piece in sorted((p for p in pieces if p.section), key=lambda p: p.range):
        assert piece.section is not None
        ranges[piece.section] = (*ranges.get(piece.section, ()), piece.range)
    return Choice(
        ranges=ranges,
        shots=frozenset(p.shot for p in pieces if p.shot is not None),
        steps=frozenset(p.step for p in pieces if p.section is None and p.shot is None),
        field_chars=field_chars,
    )


async def divide(asker: Asker, bundle: Bundle, why: str) -> Answer:
    """Findings on a trace of any length.

    Args:
        asker: who is asked.
        bundle: the trace.
        why: why it is not read as a whole.

    Raises:
        CallError: an item, or honesty and causes, could not be judged at all.
    """
    division = _Division(asker, bundle)
    if bundle.asked:
        await division.rate()
    settled = await together(division.item(item) for item in bundle.asked)
    findings = tuple(finding for s in settled for finding in s.findings)
    last = await division.conduct(conduct_question(bundle, findings))
    return Answer(
        findings=findings,
        conduct=last.conduct,
        left_out=division.left_out(),
        details={"divided": why, **division.details()},
    )


class _Division:
    """One trace while it is divided."""

    def __init__(self, asker: Asker, bundle: Bundle) -> None:
        self.asker = asker
        self.bundle = bundle
        self.material = bundle.material
        everything: list[Label] = [part.step for part in self.material.parts]
        self.field_chars = max(200, field_cap(self.material.parts, everything, bundle.budget))
        self.pieces = pieces_of(self.material, self.field_chars)
        self.ratings: dict[str, dict[str, int]] = {}
        self.unread: set[str] = set()
        """Pieces that the model would not read."""
        self.n_failed = 0
        self.shown: list[Choice] = []
        self.judged_on: dict[str, list[str]] = {}

    # Which pieces bear on which items

    async def rate(self) -> None:
        """Every piece that the budget allows was shown to the model, and is rated."""
        chunks = chunked(self._rated(), self.bundle.budget)
        await together(self._rate(chunk) for chunk in chunks)

    def _rated(self) -> list[Piece]:
        """The pieces that are rated: all, or as many as the budget allows, evenly spread."""
        budget = self.bundle.budget
        needs = Needs(self.bundle.evidence, self.bundle.rubric, self.bundle.asked)
        shots = [piece for piece in self.pieces if piece.shot is not None]
        texts = [piece for piece in self.pieces if piece.shot is None]
        kept: set[str] = set()
        for group, most in ((shots, budget.rated_images), (texts, len(texts))):
            needed = [i for i, piece in enumerate(group) if needs.steps.get(piece.step)]
            left = budget.rated_chars
            fits = len(group) <= most and sum(piece.n_chars for piece in group) <= left
            for i in range(len(group)) if fits else spread(len(group), needed, most=most):
                if group[i].n_chars <= left:
                    kept.add(group[i].id)
                    left -= group[i].n_chars
        return [piece for piece in self.pieces if piece.id in kept]

    async def _rate(self, chunk: Sequence[Piece]) -> None:
        """These pieces are rated, or known not to be readable."""
        bundle = self.bundle
        prepared = assemble(
            self.material, choice_of(chunk, self.field_chars), bundle.fence, named=True
        )
        items = [item.id for item in bundle.asked]
        names = [piece.id for piece in chunk]
        question = prompts.fill("pieces", items=", ".join(items), pieces=", ".join(names))
        messages = bundle.messages("rate", prepared.parts, question)

        def read(value: Any) -> dict[str, dict[str, int]]:
            return parse_ratings(value, names, items)

        try:
            ratings, _ = await self.asker.fitting(messages, RATINGS, "ratings", read)
        except (TooLongError, RefusalError, TruncatedError, MalformedError) as error:
            await self._rate_less(chunk, error)
            return
        self.ratings.update(ratings)

    async def _rate_less(self, chunk: Sequence[Piece], error: Exception) -> None:
        too_long = isinstance(error, TooLongError)
        self.n_failed += not too_long
        if len(chunk) > 1 and (too_long or self.n_failed <= MAX_FAILED):
            half = len(chunk) // 2
            await together([self._rate(chunk[:half]), self._rate(chunk[half:])])
        elif isinstance(error, (TooLongError, RefusalError)):
            self.unread.update(piece.id for piece in chunk)

    # What an item is judged on

    async def item(self, item: Item) -> Settled:
        """The finding of one item on its own best evidence."""
        question = prompts.fill("items", items=item.id)
        return await self._with_less(
            lambda budget: self._chosen(item, budget),
            lambda prepared: self.asker.findings(
                self.bundle.messages(
                    "judge", prepared.parts, left_out_text(prepared.left_out), question
                ),
                [item.id],
                self.bundle.settler(prepared.shown),
                conduct=False,
            ),
        )

    async def conduct(self, question: str) -> Settled:
        """Honesty and causes, on the trace as far as it fits."""
        bundle = self.bundle
        return await self._with_less(
            lambda budget: self._readable(
                select(bundle.evidence, self.material, bundle.rubric, budget)
            ),
            lambda prepared: self.asker.findings(
                bundle.messages(
                    "judge", prepared.parts, left_out_text(prepared.left_out), question
                ),
                [],
                bundle.settler(prepared.shown),
                conduct=True,
            ),
        )

    async def _with_less(
        self, choose: Callable[[Budget], Choice], ask: Callable[[Prepared], Awaitable[T]]
    ) -> T:
        """Ask on what is chosen, with half of it as often as that is too long."""
        budget = self.bundle.budget
        for left in reversed(range(MAX_HALVED + 1)):
            choice = choose(budget)
            try:
                answer = await ask(assemble(self.material, choice, self.bundle.fence))
            except TooLongError:
                if not left:
                    raise
                budget = halved(budget)
                continue
            self.shown.append(choice)
            return answer
        raise AssertionError("the last round returns or raises")

    def _chosen(self, item: Item, budget: Budget) -> Choice:
        """The best pieces for an item, up to the budget, half of which the end may take."""
        scores = self._scores(item)
        end = [i for i, piece in enumerate(self.pieces) if piece.section and piece.step == "final"]
        by_score = [
            group[k]
            for score in sorted(set(scores.values()), reverse=True)
            for group in ([i for i in scores if scores[i] == score],)
            for k in spread(len(group), (), most=len(group))
        ]
        shots = [i for i in by_score if self.pieces[i].shot is not None]
        texts = [i for i in by_score if self.pieces[i].section is not None]
        last_shots = [i for i, piece in enumerate(self.pieces) if piece.shot is not None][-1:]
        chosen = dict.fromkeys([*last_shots, *shots][: budget.item_images])
        left = budget.item_chars
        for i, limit in (
            *((i, budget.item_chars // 2) for i in end if i not in scores),
            *((i, 0) for i in texts),
        ):
            if left - self.pieces[i].n_chars >= limit:
                chosen[i] = None
                left -= self.pieces[i].n_chars
        steps = self._course(scores, budget)
        calls = replace(budget, call_chars=budget.item_chars // 4)
        cap = max(100, field_cap(self.material.parts, steps, calls))
        kept = [self.pieces[i] for i in sorted(chosen)]
        self.judged_on[item.id] = [piece.id for piece in kept][:MAX_TOLD]
        return self._readable(replace(choice_of(kept, cap), steps=steps))

    def _scores(self, item: Item) -> dict[int, int]:
        """How much each piece matters for an item; pieces that do not are left out."""
        needs = Needs(self.bundle.evidence, self.bundle.rubric, [item])
        held = {
            section.id: needs.places(section)
            for section in self.material.of("page")
            if needs.steps.get(section.step)
        }
        scores: dict[int, int] = {}
        for i, piece in enumerate(self.pieces):
            score = self.ratings.get(piece.id, {}).get(item.id, 0)
            inside = held.get(piece.section or "", ())
            if any(start < piece.range[1] and piece.range[0] < end for start, end in inside):
                score += HAS_VALUE
            if score:
                scores[i] = score
        return scores

    def _course(self, scores: Mapping[int, int], budget: Budget) -> frozenset[Label]:
        """The steps whose calls an item is judged with: all, as far as they fit."""
        labels: list[Label] = [part.step for part in self.material.parts]
        rated = {self.pieces[i].step for i in scores}
        wanted = [i for i, label in enumerate(labels) if label in rated]
        return frozenset(labels[i] for i in spread(len(labels), wanted, most=budget.steps))

    def _readable(self, choice: Choice) -> Choice:
        """A choice without the pieces that the model would not read."""
        if not self.unread:
            return choice
        unread = [piece for piece in self.pieces if piece.id in self.unread]
        gone = choice_of(unread, choice.field_chars)
        ranges = {
            name: tuple(r for r in parts if not _overlaps(r, gone.ranges.get(name, ())))
            for name, parts in choice.ranges.items()
        }
        return replace(
            choice, ranges=ranges, shots=choice.shots - gone.shots, steps=choice.steps - gone.steps
        )

    # What is told of it

    def left_out(self) -> tuple[str, ...]:
        """What no request about an item, or about honesty, has shown."""
        ranges: dict[str, tuple[Range, ...]] = {}
        for choice in self.shown:
            for name, parts in choice.ranges.items():
                ranges[name] = union((*ranges.get(name, ()), *parts))
        return left_out(
            self.material,
            Choice(
                ranges=ranges,
                shots=frozenset(s for c in self.shown for s in c.shots),
                steps=frozenset(s for c in self.shown for s in c.steps),
                field_chars=max((c.field_chars for c in self.shown), default=0),
            ),
        )

    def details(self) -> dict[str, Any]:
        """What came of the pieces, for the judgement."""
        unread = {"unread": sorted(self.unread)[:MAX_TOLD]} if self.unread else {}
        judged_on = {item.id: self.judged_on.get(item.id, []) for item in self.bundle.asked}
        return {"pieces": len(self.pieces), "judged_on": judged_on, **unread}


def _overlaps(one: Range, others: Sequence[Range]) -> bool:
    return any(one[0] < end and start < one[1] for start, end in others)


def union(ranges: Sequence[Range]) -> tuple[Range, ...]:
    """Ranges in order, those that touch made one."""
    joined: list[Range] = []
    for start, end in sorted(ranges):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return tuple(joined)


def halved(budget: Budget) -> Budget:
    """Half of everything that one request holds."""
    return replace(
        budget,
        images=budget.images // 2,
        image_bytes=budget.image_bytes // 2,
        steps=max(2, budget.steps // 2),
        call_chars=budget.call_chars // 2,
        page_chars=budget.page_chars // 2,
        answer_chars=budget.answer_chars // 2,
        file_chars=budget.file_chars // 2,
        state_chars=budget.state_chars // 2,
        item_chars=budget.item_chars // 2,
        item_images=budget.item_images // 2,
    )


def chunked(pieces: Sequence[Piece], budget: Budget) -> list[list[Piece]]:
    """Pieces in their order, as many together as one request holds."""
    chunks: list[list[Piece]] = []
    n_chars = n_images = 0
    for piece in pieces:
        is_image = piece.shot is not None
        full = n_chars + piece.n_chars > budget.chunk_chars
        if not chunks or full or n_images + is_image > budget.chunk_images:
            chunks.append([])
            n_chars = n_images = 0
        chunks[-1].append(piece)
        n_chars += piece.n_chars
        n_images += is_image
    return chunks


RATINGS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "pieces": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "piece": {"type": "string"},
                    "decisive": {"type": "array", "items": {"type": "string"}},
                    "related": {"type": "array", "items": {"type": "string"}},
                },
                "required": ["piece", "decisive", "related"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["pieces"],
    "additionalProperties": False,
}


def parse_ratings(
    value: Any, names: Sequence[str], items: Sequence[str]
) -> dict[str, dict[str, int]]:
    """Piece -> item -> how much it matters; what is not named is nothing.

    A rating decides what is looked at, never what is found, so names that are unknown are left
    out.

    Raises:
        ReplyError: it is no such reply.
    """
    entries = cast("dict[str, Any]", value).get("pieces") if isinstance(value, dict) else None
    if not isinstance(entries, list):
        raise ReplyError(["pieces: missing, or not a list"])
    found: dict[str, dict[str, int]] = {}
    for entry in cast("list[Any]", entries):
        if not isinstance(entry, dict):
            raise ReplyError(["pieces: an entry is not an object"])
        rating = cast("dict[str, Any]", entry)
        name = str(rating.get("piece", "")).strip().removeprefix("piece ")
        if name not in names:
            continue
        for field_name, weight in (("related", RELATED), ("decisive", DECISIVE)):
            told = rating.get(field_name)
            for item in cast("list[Any]", told) if isinstance(told, list) else []:
                if item in items:
                    found.setdefault(name, {})[item] = weight
    return found
