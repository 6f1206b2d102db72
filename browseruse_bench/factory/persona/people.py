"""Who of a proposal is who: one person for all forms of a name, of the gender that the text shows."""

from __future__ import annotations

import re
from collections.abc import Sequence

from browseruse_bench.factory.persona.names import core, fullest, is_form, is_initial
from browseruse_bench.factory.persona.proposal import DisbelievedError, Proposal, Someone
from browseruse_bench.factory.persona.substitute import RefusedError, Replacement, places
from browseruse_bench.factory.personas import Country, Gender

_TITLES: dict[Gender, str] = {
    "m": "mr|mister|sir|herr|herrn|monsieur|señor|signor|senhor|meneer|husband|son|brother|father|dad|uncle"
    "|nephew|grandfather|grandpa|grandson|boyfriend",
    "f": "mrs|ms|miss|madam|frau|mme|madame|mlle|sra|srta|señora|señorita|signora|senhora|mevrouw|wife"
    "|daughter|sister|mother|mom|mum|aunt|niece|grandmother|grandma|granddaughter|girlfriend",
}
_TITLE: dict[Gender, re.Pattern[str]] = {
    gender: re.compile(rf"(?i)(?<!\w)(?:{words})\.?,?\s+(?:dr\.?\s+|prof\.?\s+)?$")
    for gender, words in _TITLES.items()
}


def settled(text: str, proposal: Proposal, country: Country) -> Proposal:
    """The proposal with one person for all forms of a name, and genders as titles show them.

    Raises:
        DisbelievedError: a short form fits two people, or a title says another gender.
    """
    return _united(_gendered(text, proposal, country.country), country)


def _gendered(text: str, proposal: Proposal, region: str) -> Proposal:
    persons: list[Someone] = []
    for someone in proposal.persons:
        seen: set[Gender] = set()
        for target in proposal.targets:
            if target.kind == "NAME" and target.person == someone.id:
                item = Replacement(target.verbatim, "", "NAME", "", target.occurrences)
                seen |= _titles(text, item, region)
        if len(seen) > 1 or (seen and someone.gender != "n" and someone.gender not in seen):
            raise DisbelievedError("a title that is not of the gender of its person")
        persons.append(someone.model_copy(update={"gender": seen.pop()}) if seen else someone)
    return proposal.model_copy(update={"persons": tuple(persons)})


def _titles(text: str, item: Replacement, region: str) -> set[Gender]:
    try:
        found = places(text, item, region)
    except RefusedError:
        return set()  # nothing to be found: that is said where the targets are checked
    chosen = range(len(found)) if item.occurrences is None else item.occurrences
    befores = [text[: found[i][0]][-40:] for i in chosen if i < len(found)]
    inside = " ".join(core(item.target)[0]) + " "
    return {g for g, title in _TITLE.items() for b in (*befores, inside) if title.search(b)}


def _united(proposal: Proposal, country: Country) -> Proposal:
    """Short forms that a model gave to a person of their own go to the person of the full name."""
    names = {
        person.id: [t.verbatim for t in proposal.targets if t.kind == "NAME" and t.person == person.id]
        for person in proposal.persons
    }  # fmt: skip
    whole = {who: fullest(forms) for who, forms in names.items() if _is_full(fullest(forms))}
    genders: dict[str, Gender] = {person.id: person.gender for person in proposal.persons}
    same: dict[str, str] = {}
    for who, forms in names.items():
        if not forms or who in whole:
            continue
        fits = [
            other
            for other, full in whole.items()
            if all(is_form(form, full, country) for form in forms)
            and ("n" in (genders[who], genders[other]) or genders[who] == genders[other])
        ]
        if len(fits) > 1:
            raise DisbelievedError("a short form of a name fits two people")
        if fits:
            same[who] = fits[0]
    if not same:
        return proposal
    minors = {person.id for person in proposal.persons if person.minor}
    persons = [
        p.model_copy(update={"gender": _known([p.id, *(w for w, o in same.items() if o == p.id)], genders),
                             "minor": p.id in minors or any(o == p.id and w in minors for w, o in same.items())})
        for p in proposal.persons
        if p.id not in same
    ]  # fmt: skip
    return proposal.model_copy(
        update={
            "persons": tuple(persons),
            "targets": tuple(
                t.model_copy(update={"person": same.get(t.person, t.person)})
                for t in proposal.targets
            ),
            "facts": tuple(
                f.model_copy(update={"person": same.get(f.person, f.person)})
                for f in proposal.facts
            ),
        }
    )


def _known(ids: Sequence[str], genders: dict[str, Gender]) -> Gender:
    told: list[Gender] = [genders[who] for who in ids if genders[who] != "n"]
    return told[0] if told else "n"


def _is_full(name: str) -> bool:
    return sum(not is_initial(word) for word in core(name)[1]) > 1
