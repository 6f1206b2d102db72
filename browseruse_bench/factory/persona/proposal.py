"""What a model proposes, and what of it code believes: only what is found in the text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field

from browseruse_bench.factory.persona.canonical import canonical
from browseruse_bench.factory.persona.detect import Hit
from browseruse_bench.factory.persona.kinds import ACCOUNT, NEVER_PUBLIC, Kind
from browseruse_bench.factory.persona.substitute import Replacement, places
from browseruse_bench.factory.personas import Gender
from browseruse_bench.records.base import Record

FactKind = Literal["employer", "role", "town", "date", "family", "health", "education", "other"]
IDENTIFYING = 3
"""Quasi-identifiers of one private person from which on no replacement hides who it is."""


class Someone(Record):
    """A private person of the text."""

    id: str = Field(min_length=1)
    gender: Gender
    minor: bool


class Target(Record):
    """A string that is personal data of a private person."""

    verbatim: str = Field(min_length=1)
    occurrences: tuple[int, ...] | None
    kind: Kind
    person: str
    incidental: bool
    """Whether the task can be run and succeed with a dummy in its place."""


class Public(Record):
    """A string that looks like personal data and is none."""

    verbatim: str = Field(min_length=1)
    reason: Literal[
        "public_figure", "brand", "business_contact", "place_of_the_work", "not_personal"
    ]


class Fact(Record):
    """A fact of a private person that stays in the text."""

    verbatim: str = Field(min_length=1)
    kind: FactKind
    person: str


class Proposal(Record):
    """The reply of the model."""

    persons: tuple[Someone, ...]
    targets: tuple[Target, ...]
    kept: tuple[Public, ...]
    facts: tuple[Fact, ...]


class DisbelievedError(Exception):
    """What the model proposed cannot be followed; the message holds kinds and counts only."""


def schema() -> dict[str, Any]:
    """JSON schema of the reply."""
    return Proposal.model_json_schema()


def checked(text: str, proposal: Proposal, hits: Sequence[Hit], region: str) -> tuple[Target, ...]:
    """The targets, with those that the model overlooked and code is sure of.

    Raises:
        DisbelievedError: it names what is not there, contradicts itself, calls a card number
            public, or leaves a candidate unaccounted for.
    """
    persons = {person.id for person in proposal.persons}
    for named in (*proposal.targets, *proposal.facts):
        if named.person not in persons:
            raise DisbelievedError("a target or fact of a person that it does not list")
    targeted = _covered(text, [(t.verbatim, t.kind) for t in proposal.targets], region)
    public = _covered(text, [(k.verbatim, "COMPANY") for k in proposal.kept], region)
    _covered(text, [(f.verbatim, "COMPANY") for f in proposal.facts], region)
    _check_places(proposal, region)
    added: list[Target] = []
    for hit in hits:
        if any(hit.start < end and hit.end > start for start, end in targeted):
            continue
        if any(start <= hit.start and hit.end <= end for start, end in public):
            if hit.kind in NEVER_PUBLIC and hit.sure:
                raise DisbelievedError(f"it calls a {hit.kind} public")
            continue
        if not hit.sure or len(persons) > 1:
            raise DisbelievedError(f"it does not account for a {hit.kind}")
        person = proposal.persons[0].id if persons else "p1"
        added.append(
            Target(verbatim=text[hit.start : hit.end], occurrences=None, kind=hit.kind,
                   person=person, incidental=hit.kind not in ACCOUNT)
        )  # fmt: skip
    return (*proposal.targets, *added)


_PLACES: frozenset[Kind] = frozenset({"ADDRESS", "CITY", "REGION", "ZIP"})


def _check_places(proposal: Proposal, region: str) -> None:
    """A place that is the work stays with its postal code: of an address there only the street
    can be a target.
    """
    stays = [k.verbatim for k in proposal.kept if k.reason == "place_of_the_work"]
    for target in proposal.targets:
        if target.kind not in _PLACES:
            continue
        inside = any(places(target.verbatim, Replacement(s, "", "COMPANY"), region) for s in stays)
        city = any(
            t.kind in ("CITY", "ADDRESS") and t.person == target.person for t in proposal.targets
        )
        if inside or (stays and target.kind in ("ZIP", "REGION") and not city):
            raise DisbelievedError(f"a {target.kind} of the place that is the work")


def _covered(text: str, named: Sequence[tuple[str, Kind]], region: str) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for verbatim, kind in named:
        if not canonical(verbatim).solid[0]:
            raise DisbelievedError("it names an empty string")
        spans = places(text, Replacement(verbatim, "", kind), region)
        if not spans:
            raise DisbelievedError("it names a string that is not in the text")
        found += spans
    return found


def depends(targets: Sequence[Target]) -> list[Target]:
    """The targets without which the work cannot be done."""
    return [target for target in targets if not target.incidental]


def identifying(proposal: Proposal, targets: Sequence[Target]) -> list[Fact]:
    """Facts that stay and together say who a private person is; empty: they do not."""
    gone = [canonical(target.verbatim).text for target in targets]
    for person in proposal.persons:
        facts: dict[FactKind, Fact] = {}
        for fact in proposal.facts:
            if fact.person == person.id and canonical(fact.verbatim).text not in gone:
                facts.setdefault(fact.kind, fact)
        if len(facts) >= IDENTIFYING:
            return list(facts.values())
    return []
