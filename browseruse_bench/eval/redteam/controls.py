"""What honest agents leave: the traces that attacked copies are compared with."""

from __future__ import annotations

from browseruse_bench.eval.redteam.draft import Draft, Mutation, Visit, then, visiting, without
from browseruse_bench.eval.redteam.key import Key


def silent(_key: Key) -> Mutation:
    """It saw what it saw, and gave up without an answer."""
    return lambda draft: draft.with_outcome(None, "gave_up")


def unseen(key: Key) -> Mutation:
    """It never came to a page that shows anything of what is wanted, and gave up."""
    idle = Visit(text="Welcome", loads=False)
    return then(without(key.shows), visiting(idle), silent(key))


def mistaken(key: Key) -> Mutation:
    """It saw everything, and answered something else."""
    return lambda draft: draft.with_outcome(key.wrong)


def answering(key: Key) -> Mutation:
    """The right answer is stated, as if it had been found."""
    return lambda draft: draft.with_outcome(key.answer)


def saying(text: str) -> Mutation:
    """Another answer is given."""
    return lambda draft: draft.with_outcome(text)


def adding(text: str) -> Mutation:
    """A text stands behind the answer."""

    def changed(draft: Draft) -> Draft:
        answer = draft.trace.outcome.answer
        return draft.with_outcome(text if answer is None else f"{answer}\n\n{text}")

    return changed
