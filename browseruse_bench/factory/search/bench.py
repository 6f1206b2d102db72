"""Where versions of the prompt are scored, and what a search may see: never the validation part.

    bench = Bench(examples, label, propose, first=shipped().text, limits=Limits())
    await OwnSearch().search(bench)
    decide(bench.versions, len(bench.selection))

A search only decides which texts are tried. Whoever proposed them, all versions are scored here,
on the same examples in the same order, and the decision is the same.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Protocol

from pydantic import Field

from browseruse_bench.errors import ConfigError
from browseruse_bench.factory.search.decision import Scored, hopeless, rank, scored
from browseruse_bench.factory.search.examples import Example, Examples
from browseruse_bench.factory.search.labeller import Prompt
from browseruse_bench.records.base import Record
from browseruse_bench.records.label import Verdict

LONGEST = 20_000
"""Characters of a version; a longer one costs more than the tasks that it reads."""
EARLY = 4
"""After each part of 1 / EARLY of the examples a version that is clearly worse is given up."""


class Answer(NamedTuple):
    """What a labeller says of one example."""

    verdict: Verdict | None
    """None: it gave no label that can be used."""
    reason: str = ""
    cost_usd: float | None = None
    seconds: float = 0


class Mistake(NamedTuple):
    """An example of the search part on which a version differs from people."""

    example: Example
    answer: Answer


class Proposal(NamedTuple):
    """A text that a proposer would try."""

    text: str
    change: str
    """What it changes, in words."""


@dataclass(frozen=True, kw_only=True)
class Brief:
    """What a proposer is told."""

    turn: int
    """From 1; another turn asks anew even where all else is equal."""
    n_variants: int
    parent: Scored
    mistakes: tuple[Mistake, ...]
    right: tuple[Example, ...]
    """Some of the search part on which the parent agrees."""
    n_asked: int
    """Examples of the search part that the parent was asked about for this."""
    tried: tuple[Scored, ...]
    """All versions so far, best first."""


class Limits(Record):
    """How far a search goes."""

    versions: int = Field(default=21, ge=1)
    """In all, the first one included."""
    variants: int = Field(default=4, ge=1, le=20)
    """That a proposer is asked for at a time."""
    look: int = Field(default=60, ge=1)
    """Examples of the search part on which mistakes are looked for before each proposal."""
    shown: int = Field(default=24, ge=1)
    """Mistakes that a proposer is shown."""
    parents: int = Field(default=3, ge=1)
    """Versions at a time from which others are made."""
    dry: int = Field(default=2, ge=1)
    """Proposals in a row without anything new after which a search ends."""
    recall_floor: float = Field(default=0.5, ge=0, le=1)
    """See `decision.RECALL_FLOOR`."""


Label = Callable[[str, Sequence[Example]], Awaitable[list[Answer]]]
"""(version, examples) -> an answer for each, in order."""
Propose = Callable[[Brief], Coroutine[Any, Any, list[Proposal]]]


class PromptSearch(Protocol):
    """A way to come to versions."""

    name: ClassVar[str]

    async def search(self, bench: Bench, *, seed: int = 0) -> None:
        """Versions were added to the bench until it has room for none, or nothing new came.

        The same answers lead to the same versions, so that a search that was stopped goes on by
        being run again: what was asked before is answered from the books.
        """
        ...


@dataclass(kw_only=True)
class Bench:
    """The versions that were tried, and the examples that they are tried on."""

    examples: Examples
    label: Label
    """Books each answer: what was answered once is not paid again."""
    propose: Propose
    first: str
    """The version to begin with."""
    limits: Limits = field(default_factory=Limits)
    tell: Callable[[str], None] = lambda text: None
    added: Callable[[Bench], None] = lambda bench: None
    """Called with the bench when a version was scored."""
    _scored: dict[str, Scored] = field(default_factory=dict[str, Scored])

    def __post_init__(self) -> None:
        """Look at the parts.

        Raises:
            ConfigError: a part has no labels.
        """
        self.search = self.examples.part("search")
        self.selection = self.examples.part("selection")
        self.truths: tuple[Verdict, ...] = tuple(example.truth for example in self.selection)
        for part in ("search", "selection"):
            if not getattr(self, part):
                raise ConfigError(
                    f"no labelled task is in the {part} part, so no prompt can be searched: label "
                    "more tasks with `bubench factory label`"
                )

    @property
    def versions(self) -> tuple[Scored, ...]:
        """In the order in which they were tried."""
        return tuple(self._scored.values())

    @property
    def room(self) -> int:
        """How many versions may still be tried."""
        return max(0, self.limits.versions - len(self._scored))

    @property
    def best(self) -> Scored | None:
        """Of those that were scored in full, the one that agrees most."""
        full = [v for v in self.versions if len(v.right) == len(self.selection)]
        return min(full, key=rank, default=None)

    def get(self, text: str) -> Scored | None:
        """The version with this text; None: it was not tried."""
        return self._scored.get(Prompt(text=text).id)

    def admits(self, text: str) -> bool:
        """Whether a text can be tried: it is new, no longer than LONGEST, and there is room."""
        return bool(text) and len(text) <= LONGEST and self.room > 0 and self.get(text) is None

    async def add(
        self,
        text: str,
        *,
        by: str,
        parent: str | None = None,
        change: str = "",
        give_up: bool = True,
    ) -> Scored | None:
        """A version that is now scored; None: nothing new, no room, or no prompt at all.

        Args:
            text: the version.
            by: which search adds it.
            parent: id of the version that it was made from.
            change: what it changes, in words.
            give_up: stop asking once it is clearly worse than the best one.
        """
        text = text.strip()
        if not self.admits(text):
            return None
        id = Prompt(text=text).id
        made = {"parent": parent, "change": change, "by": by}
        n, best = len(self.selection), self.best
        looks = EARLY if give_up and best is not None else 1
        answers: list[Answer] = []
        found = self._version(id, text, answers, made)
        for upto in (math.ceil(n * look / looks) for look in range(1, looks + 1)):
            answers += await self.label(text, self.selection[len(answers) : upto])
            found = self._version(id, text, answers, made)
            if best is not None and upto < n and hopeless(found, best):
                break
        self._scored[id] = found
        self.added(self)
        told = "" if len(found.right) == n else f", given up after {len(found.right)}"
        self.tell(
            f"version {len(self._scored)}/{self.limits.versions} {id}: agrees on "
            f"{found.n_right} of {len(found.right)}{told}"
        )
        return found

    def _version(
        self, id: str, text: str, answers: Sequence[Answer], made: dict[str, str | None]
    ) -> Scored:
        costs = [answer.cost_usd for answer in answers]
        known = [cost for cost in costs if cost is not None]
        return scored(
            id,
            text,
            [answer.verdict for answer in answers],
            self.truths,
            cost_usd=math.fsum(known) if len(known) == len(costs) else None,
            seconds=math.fsum(answer.seconds for answer in answers),
            **made,
        )

    async def brief(self, parent: Scored, turn: int, n_variants: int) -> Brief:
        """What to tell a proposer of a version: where it was wrong on some of the search part.

        Each turn looks at the next examples of the part, and begins again at its end.
        """
        n = min(self.limits.look, len(self.search))
        start = (turn - 1) * n % len(self.search)
        looked = (self.search + self.search)[start : start + n]
        answers = await self.label(parent.text, looked)
        return self.told(parent, list(zip(looked, answers, strict=True)), turn, n_variants)

    def told(
        self, parent: Scored, seen: Sequence[tuple[Example, Answer]], turn: int, n_variants: int
    ) -> Brief:
        """The brief of what was seen of a version."""
        wrong = [Mistake(e, a) for e, a in seen if a.verdict != e.truth]
        right = [e for e, a in seen if a.verdict == e.truth]
        return Brief(
            turn=turn,
            n_variants=n_variants,
            parent=parent,
            mistakes=tuple(_mixed(wrong)[: self.limits.shown]),
            right=tuple(right[: self.limits.shown // 3]),
            n_asked=len(seen),
            tried=tuple(sorted(self.versions, key=rank)),
        )


def _mixed(mistakes: Sequence[Mistake]) -> list[Mistake]:
    """In turn one of each kind of mistake, so that a frequent kind does not hide the others."""
    kinds: dict[tuple[str, str | None], list[Mistake]] = {}
    for mistake in mistakes:
        kinds.setdefault((mistake.example.truth, mistake.answer.verdict), []).append(mistake)
    longest = max(map(len, kinds.values()), default=0)
    return [of[i] for i in range(longest) for of in kinds.values() if i < len(of)]
