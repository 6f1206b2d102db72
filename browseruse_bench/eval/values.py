"""The values that an item's facts carry: what a quote must hold to carry the item."""

from __future__ import annotations

from dataclasses import dataclass

from browseruse_bench.errors import GraderError
from browseruse_bench.eval.matcher import Target, options_of, state
from browseruse_bench.records.rubric import Item, Rubric, Value


@dataclass(frozen=True)
class Wanted:
    """A value, and the ways to state it: its alternatives."""

    value: Value
    options: tuple[Target, ...]

    def unclaimed(self, answer: str | None) -> str | None:
        """Why an answer that mentions the value does not claim it (denied, a guess, taken back);
        None if it does. What else it lists does not count.
        """
        missing = state((self.value,), answer, kind="list").details["missing"]
        return next(iter(missing.values()), None)


def wanted_values(rubric: Rubric, item: Item) -> tuple[Wanted, ...]:
    """The values of the item's facts, each as what is looked for.

    Facts of kind `absent` are left out: what is nowhere can be quoted from nowhere.

    Raises:
        GraderError: a value cannot be looked for (it is blank); names the fact.
    """
    facts = {fact.id: fact for fact in rubric.facts}
    found: list[Wanted] = []
    for fact in (facts[name] for name in item.facts):
        if fact.kind == "absent":
            continue
        for value in fact.values:
            try:
                found.append(Wanted(value, options_of(value)))
            except ValueError as error:
                where = f"rubric of task '{rubric.task_id}': facts.{fact.id}.values"
                raise GraderError(f"{where}: {error}") from error
    return tuple(found)
