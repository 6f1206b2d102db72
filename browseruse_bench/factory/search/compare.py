"""Several models with one prompt on the same labels: who agrees with people, at what cost."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path

from browseruse_bench.errors import ConfigError
from browseruse_bench.factory.search.bench import Answer
from browseruse_bench.factory.search.book import Book
from browseruse_bench.factory.search.decision import holm, p_text
from browseruse_bench.factory.search.examples import Example
from browseruse_bench.factory.search.figures import (
    Difference,
    Figures,
    figures,
    right,
    same_tasks,
)
from browseruse_bench.factory.search.labelled import People
from browseruse_bench.factory.search.labeller import Prompt
from browseruse_bench.factory.search.report import figures_table, leanings, people_sentence
from browseruse_bench.factory.search.run import alone, refuse_uncleared
from browseruse_bench.measure.intervals import LEVEL
from browseruse_bench.models.base import Model
from browseruse_bench.records.base import Record
from browseruse_bench.report.render import Table


class Compared(Record):
    """One model."""

    model: str
    figures: Figures


class Pair(Record):
    """Two models on the same tasks."""

    first: str
    second: str
    difference: Difference
    p_all: float
    """McNemar's exact test, corrected for all pairs (Holm)."""

    @property
    def told_apart(self) -> bool:
        """Whether the two are shown to differ, all pairs considered."""
        return self.p_all < 1 - LEVEL


class Comparison(Record):
    """Several models with one prompt."""

    prompt: str
    """Id of the version."""
    parts: tuple[str, ...]
    tuned_for: str | None
    """Label of the model for which the prompt was searched; None: for none."""
    models: tuple[Compared, ...]
    """The one that agrees most first."""
    pairs: tuple[Pair, ...]
    people: People


async def compare(
    folder: Path,
    models: Sequence[Model],
    prompt: Prompt,
    examples: Sequence[Example],
    people: People,
    *,
    tuned_for: str | None = None,
    tell: Callable[[str], None] = lambda text: None,
    asking: Callable[[int, int], None] = lambda done, of: None,
) -> Comparison:
    """The models, each asked about all of these examples.

    Args:
        folder: restricted/search of the workspace.
        models: at least one, with labels that differ.
        prompt: the version that all get.
        examples: at least one.
        people: how far they agree among themselves.
        tuned_for: label of the model for which the prompt was searched.
        tell: told of each model.
        asking: told how many of how many tasks a model was asked about.

    Raises:
        ConfigError: there is nothing to compare, or a model is not cleared.
        IncompleteError: a provider did not answer; the same command goes on later.
        BudgetError: the budget was reached; likewise.
    """
    labels = [model.id.label for model in models]
    if len(set(labels)) < len(labels) or not labels:
        raise ConfigError(f"{', '.join(labels) or 'no model'}: name each model once")
    if not examples:
        raise ConfigError("no labelled task is in this part: label more, or name another part")
    refuse_uncleared(*models)
    said: dict[str, list[Answer]] = {}
    with alone(folder):
        book = Book(folder)
        for model in models:
            said[model.id.label] = await book.label(model, prompt.text, examples, tell=asking)
            n_right = sum(right(examples, said[model.id.label]))
            tell(f"{model.id.label}: agrees on {n_right} of {len(examples)}")
    return Comparison(
        prompt=prompt.id,
        parts=tuple(sorted({example.part for example in examples})),
        tuned_for=tuned_for,
        models=tuple(
            sorted(
                (
                    Compared(model=m, figures=figures(examples, answers))
                    for m, answers in said.items()
                ),
                key=lambda found: (-(found.figures.agreement.rate or 0), found.model),
            )
        ),
        pairs=_pairs(examples, said),
        people=people,
    )


def _pairs(examples: Sequence[Example], said: dict[str, list[Answer]]) -> tuple[Pair, ...]:
    rights = {model: right(examples, answers) for model, answers in said.items()}
    # The better one first, so that differences are not below 0.
    ordered = sorted(rights, key=lambda model: (-sum(rights[model]), model))
    found: dict[tuple[str, str], Difference] = {}
    for one, other in itertools.combinations(ordered, 2):
        difference = same_tasks(rights[one], rights[other])
        assert difference is not None
        found[one, other] = difference
    adjusted = holm({pair: d.p or 0.0 for pair, d in found.items()})
    return tuple(
        Pair(first=one, second=other, difference=difference, p_all=adjusted[one, other])
        for (one, other), difference in found.items()
    )


def tables(found: Comparison) -> list[Table]:
    """The tables of a comparison."""
    made = [figures_table("Models", [(m.model, m.figures) for m in found.models])]
    if found.pairs:
        made.append(
            Table(
                title="Pairs, in points of agreement",
                headers=("first", "second", "difference", "p", "p, all pairs", "told apart"),
                rows=tuple(
                    (
                        pair.first,
                        pair.second,
                        f"{100 * pair.difference.difference:.1f} ({100 * pair.difference.low:.1f} "
                        f"to {100 * pair.difference.high:.1f})",
                        p_text(pair.difference.p or 0).removeprefix("p = "),
                        p_text(pair.p_all).removeprefix("p = "),
                        "yes" if pair.told_apart else "no",
                    )
                    for pair in found.pairs
                ),
                right=frozenset({2, 3, 4}),
            )
        )
    return made


def sentences(found: Comparison) -> list[str]:
    """A comparison in words."""
    best = found.models[0]
    untold = [p.second for p in found.pairs if p.first == best.model and not p.told_apart]
    told = (
        f"{best.model} agrees most, and the labels cannot tell it from {', '.join(untold)}: "
        "there, cost may decide."
        if untold
        else f"{best.model} agrees most, and is told apart from all others."
        if found.pairs
        else f"{best.model} is the only model."
    )
    made = [told, *(f"{p.first} and {p.second}: {p.difference.sentence}." for p in found.pairs)]
    made += leanings([(m.model, m.figures) for m in found.models])
    if found.tuned_for is not None:
        made.append(
            f"The prompt was searched for {found.tuned_for}, on the development labels: other "
            "models may do better with one that is searched for them."
        )
    return [*made, people_sentence(found.people)]
