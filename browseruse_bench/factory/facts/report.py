"""Which rubrics have rotted, since when, and what was and is on the page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from browseruse_bench.factory.facts.quoting import sought
from browseruse_bench.factory.facts.sources import Source
from browseruse_bench.records.fact_check import Standing
from browseruse_bench.records.rubric import Fact


@dataclass(frozen=True, kw_only=True)
class FactState:
    """A fact and what is known of it."""

    fact: Fact
    standing: Standing

    def as_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        known = self.standing
        value: dict[str, Any] = {
            "fact": self.fact.id,
            "claim": self.fact.claim,
            "state": known.state,
            "since": known.since,
            "last_confirmed": known.confirmed,
            "was": " | ".join(sought(self.fact)),
        }
        if known.check is not None:
            value |= {
                "outcome": known.check.outcome,
                "now": known.check.found,
                "reason": known.check.reason,
                "url": known.check.url,
                "pages": list(known.check.pages),
            }
        if known.unsettled is not None:
            value["unsettled"] = {
                "at": known.unsettled.at,
                "outcome": known.unsettled.outcome,
                "reason": known.unsettled.reason,
            }
        return value


@dataclass(frozen=True, kw_only=True)
class RubricState:
    """A rubric and its facts."""

    task_id: str
    facts: tuple[FactState, ...]

    @property
    def rotted(self) -> tuple[FactState, ...]:
        """Those that no longer hold."""
        return tuple(one for one in self.facts if one.standing.state == "rotted")

    @property
    def since(self) -> str | None:
        """The first day on which one of them was seen not to hold."""
        return min((one.standing.since or "" for one in self.rotted), default=None)

    def as_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {
            "task_id": self.task_id,
            "rotted": bool(self.rotted),
            "since": self.since,
            "facts": [one.as_json() for one in self.facts],
        }


def report(sources: Sequence[Source]) -> list[RubricState]:
    """The state of every rubric.

    Raises:
        DataError: checks cannot be read.
    """
    return [
        RubricState(
            task_id=source.rubric.task_id,
            facts=tuple(
                FactState(fact=fact, standing=source.folder.standing(source.rubric, fact))
                for fact in source.facts
            ),
        )
        for source in sources
    ]


def counts(states: Sequence[RubricState]) -> dict[str, int]:
    """How many rubrics and facts are in which state."""
    facts = Counter(one.standing.state for state in states for one in state.facts)
    unsettled = sum(one.standing.unsettled is not None for state in states for one in state.facts)
    return {
        "rubrics": len(states),
        "rubrics_rotted": sum(bool(state.rotted) for state in states),
        "facts": facts.total(),
        "facts_rotted": facts["rotted"],
        "facts_hold": facts["holds"],
        "facts_as_written": facts["as written"],
        "facts_unsettled": unsettled,
    }


def report_json(states: Sequence[RubricState]) -> dict[str, Any]:
    """The report as plain JSON values."""
    return {
        "counts": counts(states),
        "rotted": [state.task_id for state in states if state.rotted],
        "rubrics": [state.as_json() for state in states],
    }


def report_lines(states: Sequence[RubricState]) -> Iterator[str]:
    """The report for people: what has rotted with both quotes, what could not be settled, counts."""
    for state in states:
        if not state.rotted:
            continue
        yield f"{state.task_id}: rotted since {state.since}"
        for one in state.rotted:
            yield from _rotted_lines(one)
    for state in states:
        for one in state.facts:
            last = one.standing.unsettled
            if last is not None:
                yield (
                    f"{state.task_id} {one.fact.id}: not settled on {last.day}: {last.outcome}: "
                    f"{last.reason}"
                )
    n = counts(states)
    yield (
        f"{n['rubrics']} rubrics: {n['rubrics_rotted']} rotted; {n['facts']} facts: "
        f"{n['facts_rotted']} rotted, {n['facts_hold']} hold, "
        f"{n['facts_as_written']} never settled since they were written; "
        f"{n['facts_unsettled']} not settled at their last check"
    )


def _rotted_lines(one: FactState) -> Iterator[str]:
    known = one.standing
    assert known.check is not None
    last = f", last confirmed {known.confirmed}" if known.confirmed else ", never confirmed"
    yield f"  {one.fact.id} since {known.since}{last}: {known.check.outcome}: {known.check.reason}"
    yield f"    page {known.check.url}"
    was = " | ".join(sought(one.fact))
    yield f"    was  {'absent: ' if one.fact.kind == 'absent' else ''}{was}"
    yield f"    now  {known.check.found or 'nothing like it'}"
