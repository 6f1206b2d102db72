"""Labels of people, as what a prompt is searched, selected and validated on."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from browseruse_bench.records.base import content_key
from browseruse_bench.records.label import Verdict

Part = Literal["search", "selection", "validation"]
PARTS: tuple[Part, ...] = ("search", "selection", "validation")
"""`search`: its texts and reasons are shown to the proposer; `selection`: versions are scored on
it; `validation`: only reported. What is sealed never comes here."""


@dataclass(frozen=True, kw_only=True)
class Example:
    """One task, and what people said of it."""

    key: str
    """Key of the task."""
    text: str
    truth: Verdict
    part: Part
    reasons: tuple[str, ...] = ()
    """What labellers wrote, in the order of their names."""
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Examples:
    """All that may be looked at, in an order that says nothing."""

    all: tuple[Example, ...]
    n_split: int = 0
    """Tasks that were left out: their labellers differ, and no verdict has most of them."""

    @classmethod
    def of(cls, examples: Iterable[Example], *, seed: int = 0, n_split: int = 0) -> Examples:
        """Ordered by a hash, so that any beginning of a part is a random sample of it."""
        ordered = sorted(
            examples, key=lambda e: hashlib.sha256(f"{seed}\0{e.key}".encode()).hexdigest()
        )
        return cls(all=tuple(ordered), n_split=n_split)

    def part(self, part: Part) -> tuple[Example, ...]:
        """Those of one part."""
        return tuple(example for example in self.all if example.part == part)

    @property
    def digest(self) -> str:
        """Identity of everything that a search depends on."""
        return content_key(
            sorted(
                [e.key, e.text, e.truth, e.part, list(e.reasons), list(e.tags)] for e in self.all
            )
        )

    @property
    def counts(self) -> dict[str, dict[str, int]]:
        """Part -> verdict -> tasks."""
        found: dict[str, dict[str, int]] = {part: {} for part in PARTS}
        for example in self.all:
            of = found[example.part]
            of[example.truth] = of.get(example.truth, 0) + 1
        return found


def majority(verdicts: Sequence[Verdict]) -> Verdict | None:
    """What more labellers say than any other verdict; None: there is no such."""
    kinds = set(verdicts)
    most = max(map(verdicts.count, kinds), default=0)
    found: list[Verdict] = [kind for kind in kinds if verdicts.count(kind) == most]
    return found[0] if len(found) == 1 else None
