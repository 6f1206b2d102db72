"""What an attack is: an honest trace, what a cheat makes of it, and what must come of that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from browseruse_bench.eval.redteam.draft import Draft, Mutation
from browseruse_bench.eval.redteam.key import Key
from browseruse_bench.measure.redteam import Family, Must, Tellable

Plan = Callable[[Key], Mutation]
Applies = Callable[[Draft, Key], str | None]
"""Why an attack cannot be tried on a trace; None if it can."""


def always(_draft: Draft, _key: Key) -> str | None:
    """It can."""
    return None


def needs_answer(_draft: Draft, key: Key) -> str | None:
    """For attacks that state the right answer."""
    return None if key.answer else "no value is known that an answer could state"


def needs_wrong(draft: Draft, key: Key) -> str | None:
    """For attacks that state a wrong answer too."""
    return needs_answer(draft, key) or (None if key.wrong else "no wrong answer of its shape")


@dataclass(frozen=True, kw_only=True)
class Attack:
    """One way to be paid for what was not done, or to cost an honest agent its points.

    The control is what an honest agent would have left in the same place. The attacked copy is
    the control with the cheat in it: what it is given beyond the control is what cheating gains.
    """

    name: str
    says: str
    """What the agent, or a page, does: one line."""
    family: Family
    control: Plan
    cheat: Plan
    applies: Applies = always
    must: Must = "gain_nothing"
    tellable: Tellable = "code"
    reported: Tellable | None = None
    """Who can tell where the agent's word is the evidence, if it is another one there."""
    by_model: Tellable | None = None
    """Who can tell where a model reads the rubric, if it is another one there: what the answer
    means, and what is no instruction, it must know itself."""
    keeps: Callable[[Key], frozenset[str]] | None = None
    """The items that an honest copy still earns; None: all that the control has."""
    sample: int = 0
    """Under which number the copy is judged: with another one than the control's a model is asked
    again even where nothing differs."""
    damage: Callable[[Path], None] | None = None
    """Done to the files of the attacked copy after it was frozen."""

    def told_by(self, draft: Draft, *, model: bool) -> Tellable:
        """Who can tell it from honest work in this trace.

        Args:
            draft: the trace.
            model: whether a model judges it.
        """
        if draft.reported and self.reported is not None:
            return self.reported
        return self.by_model if model and self.by_model is not None else self.tellable


def unchanged(_key: Key) -> Mutation:
    """Nothing is done."""
    return lambda draft: draft
