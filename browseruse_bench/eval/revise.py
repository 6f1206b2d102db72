"""The revision loop: items that flip go back to the rubric's author until they hold still.

    grade everything; while items flip and rounds are left:
        the author rewords each of them as a decision rule, from its disagreeing pairs
        grade again what was reworded, only that
    gate:    grade everything afresh; a task that flips still is dropped
    figure:  grade everything afresh once more; only this is ever published

Choosing by a measured rate makes that rate too small: what was measured low by luck is what is
kept. So no regrade that decided anything is part of the published figure. Gate and figure have
sample numbers that were never used before, so no ledger answers them from earlier calls.

Between two rounds the judge reads a rubric of the reworded items alone, with everything else that
is known about the task. That costs a fraction of the whole and only steers; gate and figure read
the whole rubric, as the deployed judge does.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

from pydantic import Field

from browseruse_bench.errors import ConfigError, DataError, GraderError, boundary
from browseruse_bench.eval.disagreements import Disagreement, about_item
from browseruse_bench.eval.stability import LIMIT, SAMPLES, THRESHOLD
from browseruse_bench.measure.flips import (
    Claim,
    Flips,
    ItemFlips,
    Pooled,
    Regrade,
    claim,
    flips,
    graded,
    item_flips,
    met_against_violated,
    pairs_of,
    pooled,
    shrink,
)
from browseruse_bench.measure.shrinkage import DEFAULT, Prior
from browseruse_bench.records.base import Record
from browseruse_bench.records.judgement import Judgement
from browseruse_bench.records.rubric import Item, Rubric

ROUNDS = 3
GATE_SAMPLES = 10
"""Regrades of each trace that decide whether a task is kept. Of an item that gives credit wrongly
once in 200 gradings, three traces pass in 99 of 100 cases; of one that does so once in 9, in 13."""


class Rewording(Record):
    """What an author makes of an item that flips."""

    requirement: str | None = Field(default=None, min_length=1)
    """The new text; None: no text would decide it."""
    reason: str = Field(min_length=1)


Author = Callable[[Rubric, Item, tuple[Disagreement, ...]], Awaitable[Rewording]]
"""Rewords one item of a rubric, given gradings that disagree about it side by side."""
Grade = Callable[[Rubric, Sequence[int]], Awaitable[Sequence[Judgement]]]
"""Grades all traces of the task by this rubric under these sample numbers."""


class Change(Record):
    """One item that an author was asked about."""

    round: int
    rubric_key: str
    """Of the rubric that it was asked about."""
    revision: int
    """Of the rubric that came of it."""
    item: str
    before: str
    after: str | None
    """None: the author sees no text that would decide it."""
    reason: str
    measured: ItemFlips
    """What it was asked for."""


@dataclass(frozen=True, kw_only=True)
class Terms:
    """How items are measured, and when they flip too often."""

    samples: int = SAMPLES
    """Regrades of each trace in each round."""
    gate_samples: int = GATE_SAMPLES
    figure_samples: int = SAMPLES
    threshold: float = THRESHOLD
    """An item above it goes back; one above it at the gate drops the task."""
    rounds: int = ROUNDS
    prior: Prior = DEFAULT
    """What rates are drawn towards before they are compared with the threshold."""
    success_at: float = 100

    def __post_init__(self) -> None:
        """Refuse what measures nothing."""
        if min(self.samples, self.gate_samples, self.figure_samples) < 2:
            raise ConfigError("a comparison takes two regrades at least")
        if not 0 < self.threshold < 1 or self.rounds < 0:
            raise ConfigError("the threshold is between 0 and 1, the rounds are at least 0")


@dataclass(frozen=True, kw_only=True)
class Revised:
    """What came of one task's rubric."""

    verdict: Literal["kept", "dropped", "incomplete"]
    reason: str
    """Why it is not kept."""
    rubric: Rubric
    """The last revision."""
    compared: tuple[str, ...]
    """Items that a judge decides."""
    changes: tuple[Change, ...]
    measured: tuple[tuple[ItemFlips, ...], ...]
    """What each grading before the gate came to. It steered, and is too small: not a figure."""
    gate: tuple[ItemFlips, ...] = ()
    """Of the last gate. It decided, and is no figure either."""
    gate_integrity: Flips | None = None
    released: tuple[Judgement, ...] = ()
    """Of the figure: every published rate comes from these alone. Empty unless kept."""
    n_judged: int = 0
    n_ungraded: int = 0


async def revise(
    rubric: Rubric,
    *,
    grade: Grade,
    author: Author,
    terms: Terms | None = None,
    fixed: Collection[str] = (),
    first_sample: int = 0,
    known: Iterable[Change] = (),
    on_change: Callable[[Change], None] = lambda change: None,
    on_rubric: Callable[[Rubric], None] = lambda rubric: None,
) -> Revised:
    """What comes of a rubric whose items go back to their author while they flip.

    Given the same gradings and the same changes it does the same again, so a caller that keeps
    both goes on where it was interrupted.

    Args:
        rubric: the first revision.
        grade: grades the task's frozen traces with the deployed judge, under sample numbers that
            go up from `first_sample` and are used once.
        author: called for one item at a time.
        terms: how items are measured.
        fixed: items that no judge decides (code does): they are not measured.
        first_sample: above every number under which these traces were ever graded by this judge.
        known: what the author answered before an interruption; it is not asked again.
        on_change: called with each answer of the author as soon as it is there.
        on_rubric: called with each revision, the first one included, before it is graded.

    Raises:
        GraderError: the author failed, or a grading is not of the rubric's items.
        Exception: what `grade` raises: a budget that is reached, calls that wait in a batch.
    """
    loop = _Loop(
        rubric=rubric,
        grade=grade,
        author=author,
        terms=terms or Terms(),
        fixed=frozenset(fixed),
        next_sample=first_sample,
        known={(change.rubric_key, change.item): change for change in known},
        on_change=on_change,
        on_rubric=on_rubric,
    )
    try:
        return await loop.run()
    except _IncompleteError as error:
        return loop.end("incomplete", str(error))


def released_figure(revised: Iterable[Revised], limit: float = LIMIT) -> tuple[Pooled, Claim]:
    """The flip rate of the kept tasks, from regrades that decided nothing, and whether it is shown
    to be below `limit`.
    """
    kept = [each for each in revised if each.verdict == "kept"]
    items = {each.rubric.task_id: each.compared for each in kept}
    traces = graded(
        Regrade.of(judgement, each.rubric, success_at=100)
        for each in kept
        for judgement in each.released
    )
    credit = pairs_of(traces, items)
    post = pairs_of(traces, items, differ=met_against_violated)
    return pooled(credit, post, items), claim(credit, limit)


def reworked(rubric: Rubric, texts: dict[str, str]) -> Rubric:
    """The next revision: these items have new requirements, all else stays."""
    items = tuple(
        item.model_copy(update={"requirement": texts.get(item.id, item.requirement)})
        for item in rubric.items
    )
    return Rubric.model_validate({**dict(rubric), "items": items, "revision": rubric.revision + 1})


def refuse_other_changes(before: Rubric, after: Rubric, items: Collection[str]) -> None:
    """Between two revisions nothing changed but the requirements of these items.

    Raises:
        DataError: something else did: ids, order, weights, facts, evidence, checks, rulings, ...;
            all of it is named.
    """
    problems: list[str] = []
    if [item.id for item in before.items] != [item.id for item in after.items]:
        problems.append("items: their ids or their order changed")
    for name in Rubric.model_fields:
        if name not in ("items", "revision") and getattr(before, name) != getattr(after, name):
            problems.append(f"{name}: changed")
    if after.revision <= before.revision:
        problems.append(f"revision: {after.revision} does not follow {before.revision}")
    for old, new in zip(before.items, after.items, strict=False):
        problems += [
            f"items.{old.id}.{name}: changed"
            for name in Item.model_fields
            if name not in ("id", *(("requirement",) if old.id in items else ()))
            and getattr(old, name) != getattr(new, name)
        ]
    if problems:
        raise DataError([f"rubric of task '{before.task_id}': {line}" for line in problems])


def only(rubric: Rubric, items: Collection[str]) -> Rubric:
    """The rubric with these items alone, their weights scaled to 100; no judge sees weights."""
    kept = [item for item in rubric.items if item.id in items]
    total = sum((item.weight for item in kept), Fraction(0))
    scaled = tuple(item.model_copy(update={"weight": item.weight * 100 / total}) for item in kept)
    return Rubric.model_validate({**dict(rubric), "items": scaled})


_Purpose = Literal["steer", "gate", "figure"]


class _IncompleteError(Exception):
    """Some item could not be compared."""


@dataclass(frozen=True, kw_only=True)
class _Block:
    """One grading of all traces."""

    purpose: _Purpose
    judgements: Sequence[Judgement]
    rates: tuple[ItemFlips, ...]


@dataclass(kw_only=True)
class _Loop:
    rubric: Rubric
    grade: Grade
    author: Author
    terms: Terms
    fixed: frozenset[str]
    next_sample: int
    known: dict[tuple[str, str], Change]
    on_change: Callable[[Change], None]
    on_rubric: Callable[[Rubric], None]
    n_rounds: int = 0
    changes: list[Change] = field(default_factory=list[Change])
    measured: list[tuple[ItemFlips, ...]] = field(default_factory=list[tuple[ItemFlips, ...]])
    n_judged: int = 0
    n_ungraded: int = 0

    async def run(self) -> Revised:
        """Until the task is kept or dropped."""
        terms = self.terms
        self.on_rubric(self.rubric)
        block = await self._block(self.rubric, "steer")
        while True:
            over = [flip for flip in block.rates if (flip.shrunk or 0) > terms.threshold]
            if not over:
                if block.purpose == "gate":
                    break
                block = await self._block(self.rubric, "gate")
                continue
            names = ", ".join(flip.item for flip in over)
            gate = block.rates if block.purpose == "gate" else ()
            if self.n_rounds == terms.rounds:
                why = f"still flipping after {self.n_rounds} rounds of rewording: {names}"
                return self.end("dropped", why, gate=gate)
            refused = await self._reword(over, block.judgements)
            if refused:
                why = f"its author sees no rule that would decide: {', '.join(refused)}"
                return self.end("dropped", why, gate=gate)
            block = await self._block(only(self.rubric, [f.item for f in over]), "steer")
        integrity = _integrity(block.judgements)
        rate = integrity.share.rate or 0
        if terms.prior.shrunk(rate, integrity.share.n_effective) > terms.threshold:
            why = "integrity flags flip"
            return self.end("dropped", why, gate=block.rates, integrity=integrity)
        figure = await self._block(self.rubric, "figure")
        return self.end(
            "kept", "", gate=block.rates, integrity=integrity, released=figure.judgements
        )

    async def _block(self, rubric: Rubric, purpose: _Purpose) -> _Block:
        """All traces graded by this rubric under numbers that were never used."""
        samples = {
            "steer": self.terms.samples,
            "gate": self.terms.gate_samples,
            "figure": self.terms.figure_samples,
        }[purpose]
        numbers = range(self.next_sample, self.next_sample + samples)
        self.next_sample += samples
        judgements = await self.grade(rubric, numbers)
        self.n_judged += len(judgements)
        self.n_ungraded += sum(judgement.status == "ungraded" for judgement in judgements)
        with boundary(GraderError, f"regrades of task '{rubric.task_id}'"):
            regrades = [
                Regrade.of(judgement, rubric, success_at=self.terms.success_at)
                for judgement in judgements
            ]
        items = [item.id for item in rubric.items if item.id not in self.fixed]
        rates = item_flips(graded(regrades), {rubric.task_id: items})
        n_traces = len({judgement.trace_key for judgement in judgements})
        if not n_traces or any(each.n_traces < n_traces for each in rates):
            raise _IncompleteError(
                "a trace has fewer than two graded regrades under samples "
                f"{numbers.start} to {numbers.stop - 1}"
            )
        rates = shrink(rates, self.terms.prior)
        if purpose == "steer":
            self.measured.append(rates)
        return _Block(purpose=purpose, judgements=judgements, rates=rates)

    async def _reword(
        self, over: Sequence[ItemFlips], judgements: Sequence[Judgement]
    ) -> list[str]:
        """The rubric is its next revision, or some items have no text that would decide them."""
        self.n_rounds += 1
        made = [await self._change(flip, judgements) for flip in over]
        texts = {change.item: change.after for change in made if change.after is not None}
        refused = [change.item for change in made if change.after is None]
        if not refused:
            after = reworked(self.rubric, texts)
            refuse_other_changes(self.rubric, after, texts)
            self.rubric = after
            self.on_rubric(after)
        return refused

    async def _change(self, flip: ItemFlips, judgements: Sequence[Judgement]) -> Change:
        change = self.known.get((self.rubric.key, flip.item))
        if change is None:
            item = next(item for item in self.rubric.items if item.id == flip.item)
            pairs = about_item(judgements, item.id)
            with boundary(GraderError, f"author of task '{self.rubric.task_id}', {item.id}"):
                said = await self.author(self.rubric, item, pairs)
            same = said.requirement is not None and _same(said.requirement, item.requirement)
            change = Change(
                round=self.n_rounds,
                rubric_key=self.rubric.key,
                revision=self.rubric.revision + 1,
                item=item.id,
                before=item.requirement,
                after=None if same else said.requirement,
                reason=f"the same words again; {said.reason}" if same else said.reason,
                measured=flip,
            )
            self.on_change(change)
        self.changes.append(change)
        return change

    def end(
        self,
        verdict: Literal["kept", "dropped", "incomplete"],
        reason: str,
        *,
        gate: tuple[ItemFlips, ...] = (),
        integrity: Flips | None = None,
        released: Sequence[Judgement] = (),
    ) -> Revised:
        """What has come of it."""
        return Revised(
            verdict=verdict,
            reason=reason,
            rubric=self.rubric,
            compared=tuple(i.id for i in self.rubric.items if i.id not in self.fixed),
            changes=tuple(self.changes),
            measured=tuple(self.measured),
            gate=gate,
            gate_integrity=integrity,
            released=tuple(released),
            n_judged=self.n_judged,
            n_ungraded=self.n_ungraded,
        )


def _same(one: str, other: str) -> bool:
    return one.casefold().split() == other.casefold().split()


def _integrity(judgements: Iterable[Judgement]) -> Flips:
    """How often pairs disagree on whether the points are 0 by a flag."""
    traces: dict[str, list[bool]] = {}
    for judgement in judgements:
        if judgement.status == "graded":
            flagged = any(c.holds for i in judgement.integrity for c in i.citations)
            traces.setdefault(judgement.trace_key, []).append(flagged)
    return flips(traces.values())
