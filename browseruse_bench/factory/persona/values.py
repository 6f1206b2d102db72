"""Which value of a persona stands for each target of a plan."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from random import Random

from browseruse_bench.factory.persona.canonical import canonical, is_cjk
from browseruse_bench.factory.persona.dates import age_on, rewritten, year_in
from browseruse_bench.factory.persona.names import fullest, parts, renamed
from browseruse_bench.factory.persona.proposal import Someone, Target
from browseruse_bench.factory.persona.substitute import RefusedError, Replacement
from browseruse_bench.factory.personas import (
    CARDS,
    COUNTRIES,
    EMPLOYERS,
    SCHEMES,
    VIN,
    Address,
    Country,
    Person,
    load,
)


@dataclass(frozen=True)
class Cast:
    """Who stands for whom in one text."""

    country: Country
    domain: str
    today: date
    rng: Random
    people: dict[str, Person]
    addresses: dict[str, Address]
    minors: frozenset[str]


def cast(
    persons: Sequence[Someone],
    targets: Sequence[Target],
    country: Country,
    *,
    domain: str,
    today: date,
    rng: Random,
) -> Cast:
    """A persona for each person: of its gender, none twice, one family name where they share it.

    Raises:
        RefusedError: there are more people than personas.
    """
    left = list(country.persons)
    rng.shuffle(left)
    people: dict[str, Person] = {}
    families = _families(persons, targets, country)
    for someone in persons or (Someone(id="p1", gender="n", minor=False),):
        fits = [person for person in left if person.gender == someone.gender]
        fits += [person for person in left if person.gender == "n" and person not in fits]
        if someone.gender == "n":
            fits += [person for person in left if person not in fits]
        if not fits:
            raise RefusedError("two_people_one_value", "NAME", "more people than personas")
        person = fits[0]
        left.remove(person)
        people[someone.id] = _with_family(person, _full(targets, someone.id), families, country)
    places = list(country.addresses)
    rng.shuffle(places)
    addresses = {who: places[index % len(places)] for index, who in enumerate(people)}
    minors = frozenset(someone.id for someone in persons if someone.minor)
    return Cast(country, domain, today, rng, people, addresses, minors)


def _families(
    persons: Sequence[Someone], targets: Sequence[Target], country: Country
) -> dict[str, Person | None]:
    """Family names of the text; whose family name stands for it is filled in with the first."""
    fulls = (_full(targets, someone.id) for someone in persons)
    return {" ".join(family): None for full in fulls if (family := parts(full, country)[1])}


def _with_family(
    person: Person, full: str, families: dict[str, Person | None], country: Country
) -> Person:
    """The person under the family name that stands for that of the text."""
    given, family = parts(full, country)
    name = " ".join(family or given)
    if name not in families:
        return person
    other = families[name] or person
    families[name] = other
    related = _related(person, other)
    # A single word that is a family name of the text (Mrs. Miller beside Robert Miller).
    return related if family else related.model_copy(update={"given": related.family})


def _related(person: Person, other: Person) -> Person:
    """The person under the family name of another one."""
    native = person.native
    if native and other.native:
        native = native.model_copy(update={"family": other.native.family})
    email = f"{person.email.partition('.')[0]}.{other.email.partition('.')[2]}"
    return person.model_copy(update={"family": other.family, "native": native, "email": email})


def _full(targets: Sequence[Target], person: str, like: str = "") -> str:
    """The fullest name of a person, in the script of another form of it."""
    names = [t.verbatim for t in targets if t.kind == "NAME" and t.person == person]
    native = any(is_cjk(char) for char in like)
    return fullest([name for name in names if not like or any(map(is_cjk, name)) == native])


def replacements(targets: Sequence[Target], who: Cast) -> list[Replacement]:
    """The plan for `substitute`.

    Raises:
        RefusedError: a persona has no value of that kind or form.
    """
    found: list[Replacement] = []
    for target in targets:
        value = _value(target, targets, who)
        if value is None:
            raise RefusedError("invalid_value", target.kind, "no persona has one")
        found.append(
            Replacement(target.verbatim, value, target.kind, target.person, target.occurrences)
        )
    return found


def _value(target: Target, targets: Sequence[Target], who: Cast) -> str | None:
    person, address = who.people[target.person], who.addresses[target.person]
    old = target.verbatim
    match target.kind:
        case "NAME":
            return renamed(old, _full(targets, target.person, old), person, who.country)
        case "DOB" | "AGE":
            return _dated(target, person, who)
        case "CARD" | "CARD_LAST4" | "IBAN" | "NATIONAL_ID" | "BANK":
            return _number(target, who)
        case "PASSPORT" | "PLATE":
            own = who.country.passport if target.kind == "PASSPORT" else who.country.plate
            first = target.person == next(iter(who.people))
            fits = first and len(canonical(own).solid[0]) == len(canonical(old).solid[0])
            return own if fits else shaped(old, who.rng)
        case "PASSWORD":
            return shaped(old, who.rng) if old.isdigit() else "Kestrel-Lamp-42!"
        case "ORDER_ID" | "LOYALTY" | "CARD_CVV":
            return shaped(old, who.rng)
        case "COMPANY":
            return _employer(old, targets)
        case _:
            return {
                "EMAIL": f"{person.email}@{who.domain}",
                "PHONE": person.phone,
                "ADDRESS": address.line,
                "STREET": address.street,
                "CITY": address.city,
                "REGION": address.region,
                "ZIP": address.postal,
                "USERNAME": f"{person.email.replace('.', '_')}88",
                "CARD_EXP": re.sub(r"\d+$", lambda m: "2031"[-len(m.group()) :], old),
                "VIN": VIN,
                "IP": "198.51.100.24",
                "URL": ("https://" if "://" in old else "") + f"{person.email}.{who.domain}",
            }[target.kind] or None


def _employer(old: str, targets: Sequence[Target]) -> str | None:
    """One company for one employer, however it is written (Humana, Humana Inc.); None: there are
    more employers than companies.
    """
    groups: list[list[str]] = []
    for target in targets:
        if target.kind != "COMPANY":
            continue
        name = canonical(target.verbatim).text
        same = next((g for g in groups if any(_is_part(name, other) for other in g)), None)
        if same is None:
            groups.append([name])
        else:
            same.append(name)
    place = next(i for i, group in enumerate(groups) if canonical(old).text in group)
    return EMPLOYERS[place] if place < len(EMPLOYERS) else None


def _is_part(one: str, other: str) -> bool:
    """Whether the words of one name begin the other one."""
    shorter, longer = sorted((one.split(), other.split()), key=len)
    return longer[: len(shorter)] == shorter


def shaped(old: str, rng: Random) -> str:
    """Other digits for digits and other letters for letters."""
    letters, digits = "ABCDEFGHJKLMNPRSTUVWXYZ", "0123456789"
    out = ""
    for char in old:
        pool = digits if char.isdigit() else letters if char.isalpha() else char
        pool = pool.lower() if char.islower() else pool
        choices = [other for other in pool if other != char] or [char]
        out += rng.choice(choices)
    return out


def _dated(target: Target, person: Person, who: Cast) -> str | None:
    minor = target.person in who.minors
    birth = person.birth_date
    if target.kind == "DOB":
        year = year_in(target.verbatim)
        if minor:
            if year is None:
                return None
            birth = birth.replace(year=year)
            if not 0 <= age_on(birth, who.today) < 18:
                return None
        return rewritten(target.verbatim, birth, who.country.date_order, who.country.languages)
    found = re.search(r"\d+", target.verbatim)
    if found is None:
        return None
    old = int(found.group())
    age = (old - 1 if old > 1 else 2) if old < 18 else age_on(birth, who.today)
    return target.verbatim[: found.start()] + str(age) + target.verbatim[found.end() :]


def _number(target: Target, who: Cast) -> str | None:
    old = target.verbatim
    digits = canonical(old).solid[0]
    given = who.people[target.person].given
    index = [person.given for person in who.country.persons].index(given)
    if target.kind == "CARD":
        fits = [c for c in CARDS if c[0] == digits[0] and len(c) == len(digits) and c != digits]
        return fits[0] if fits else None
    if target.kind == "CARD_LAST4":
        return CARDS[0][-4:] if digits != CARDS[0][-4:] else CARDS[1][-4:]
    if target.kind == "IBAN":
        code = digits[:2].upper()
        return (
            load(code).iban
            if code in COUNTRIES and target.person == next(iter(who.people))
            else None
        )
    if target.kind == "BANK":
        return who.country.bank.get("routing") if _is_routing(digits) else shaped(old, who.rng)
    schemes = [s for s, is_valid in SCHEMES.items() if is_valid(canonical(old).text.upper())]
    for country in (who.country, *(load(code) for code in COUNTRIES)):
        for scheme in schemes:
            if scheme in country.persons[0].ids:
                return country.persons[index % len(country.persons)].ids[scheme]
    return shaped(old, who.rng)


def _is_routing(digits: str) -> bool:
    if len(digits) != 9 or not digits.isdigit():
        return False
    return sum(int(d) * w for d, w in zip(digits, (3, 7, 1) * 3, strict=True)) % 10 == 0
