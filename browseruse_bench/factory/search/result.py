"""What a search came to: the ledger of its versions, the decision, and figures on both parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from browseruse_bench.factory.search.bench import Answer, Bench, Limits
from browseruse_bench.factory.search.decision import Decision, Scored, decide
from browseruse_bench.factory.search.examples import Example
from browseruse_bench.factory.search.figures import (
    Difference,
    Figures,
    Rate,
    figures,
    other_tasks,
    right,
    same_tasks,
)
from browseruse_bench.factory.search.labelled import People
from browseruse_bench.records.base import Record


class Settings(Record):
    """All that makes a search another one; its key is the search's id."""

    method: str
    seed: int
    labeller: str
    """Key of the model."""
    proposer: str
    examples: str
    """Digest of the labels, texts and parts."""
    first: str
    """Key of the first prompt."""
    limits: Limits
    """Without the number of versions, which may grow."""

    @property
    def id(self) -> str:
        """What people call the search."""
        return self.key[:12]


class Version(Record):
    """A line of versions.jsonl: one version of the prompt."""

    id: str
    text: str
    parent: str | None
    change: str
    by: str
    agreement: Rate
    """On the selection part."""
    found: Rate
    """Of the suitable tasks, those that it calls so."""
    n_silent: int
    cost_usd: float | None
    """Of its labels; None: not known."""
    given_up: bool
    """It was clearly worse, and not asked about all."""


def version_of(scored: Scored, n_examples: int) -> Version:
    """A line of the ledger."""
    return Version(
        id=scored.id,
        text=scored.text,
        parent=scored.parent,
        change=scored.change,
        by=scored.by,
        agreement=Rate.of_counts(scored.n_right, len(scored.right)),
        found=Rate.of_counts(scored.n_found, scored.n_suitable),
        n_silent=scored.n_silent,
        cost_usd=scored.cost_usd,
        given_up=len(scored.right) < n_examples,
    )


class Outcome(Record):
    """The chosen version, and the one that the search began with."""

    id: str
    selection: Figures
    validation: Figures
    drop: Difference | None
    """Selection minus validation; None: a part is empty."""
    first_id: str
    first_validation: Figures
    gain: Difference | None
    """On validation, the chosen one minus the first; None: they are the same, or it is empty."""

    @property
    def overfitted(self) -> bool:
        """Whether it is shown to agree less where nothing was chosen by the labels."""
        return self.drop is not None and self.drop.shown and self.drop.difference > 0

    @property
    def drop_sentence(self) -> str:
        """What validation says of the selection figure."""
        if self.drop is None:
            return "no validation labels: whether the prompt is fitted to its labels is not known"
        told = (
            "the prompt is fitted to the labels that it was chosen by: believe the validation figure"
            if self.overfitted
            else "the selection figure is that of a winner, so believe the validation figure"
        )
        return f"selection against validation: {self.drop.sentence}; {told}"

    @property
    def gain_sentence(self) -> str:
        """What the search gained over the first version, on validation."""
        if self.gain is None:
            return ""
        return f"chosen against first version, on validation: {self.gain.sentence}"


class Result(Record):
    """result.json."""

    id: str
    method: str
    labeller: str
    """Label of the model."""
    proposer: str
    counts: dict[str, dict[str, int]]
    """Part -> verdict -> labelled tasks."""
    n_split: int
    """Tasks left out, because their labellers differ without a majority."""
    people: People
    decision: Decision
    versions: tuple[Version, ...]
    outcome: Outcome | None
    """None: no version was chosen."""
    n_proposals: int
    n_proposals_silent: int
    """Replies of the proposer that gave nothing to use."""
    cost_usd: float | None
    """Of all answers that the search rests on, whenever they were paid; None: not known."""


def outcome(
    bench: Bench,
    decision: Decision,
    answers: Callable[[str, Sequence[Example]], list[Answer]],
) -> Outcome | None:
    """The figures of the chosen and the first version.

    Args:
        bench: with the versions.
        decision: which one was chosen.
        answers: what is known of (version, examples): selection and validation of both.
    """
    chosen = next((v for v in bench.versions if v.id == decision.chosen), None)
    if chosen is None:
        return None
    validation = bench.examples.part("validation")
    first = bench.versions[0]
    said, first_said = answers(chosen.text, validation), answers(first.text, validation)
    selection = figures(bench.selection, answers(chosen.text, bench.selection))
    found = figures(validation, said)
    gain = same_tasks(right(validation, said), right(validation, first_said))
    return Outcome(
        id=chosen.id,
        selection=selection,
        validation=found,
        drop=other_tasks(selection.agreement, found.agreement),
        first_id=first.id,
        first_validation=figures(validation, first_said),
        gain=None if chosen is first else gain,
    )


def decided(bench: Bench) -> Decision:
    """The decision over all versions of a bench."""
    return decide(bench.versions, len(bench.selection), recall_floor=bench.limits.recall_floor)
