"""The values that an item's facts carry: what a quote must hold to carry the item."""

from __future__ import annotations

from browseruse_bench.errors import GraderError
from browseruse_bench.eval.matcher import Target, options_of
from browseruse_bench.records.rubric import Item, Rubric

Options = tuple[Target, ...]
"""The ways to state one value: its alternatives."""


def wanted_values(rubric: Rubric, item: Item) -> tuple[Options, ...]:
    """The values of the item's facts, each as what is looked for.

    Facts of kind `absent` are left out: what is nowhere can be quoted from nowhere.

    Raises:
        GraderError: a value cannot be looked for (it is blank); names the fact.
    """
    facts = {fact.id: fact for fact in rubric.facts}
    found: list[Options] = []
    for fact in (facts[name] for name in item.facts):
        if fact.kind == "absent":
            continue
        for value in fact.values:
            try:
                found.append(options_of(value))
            except ValueError as error:
                where = f"rubric of task '{rubric.task_id}': facts.{fact.id}.values"
                raise GraderError(f"{where}: {error}") from error
    return tuple(found)
