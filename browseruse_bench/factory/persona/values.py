"""Which value of a persona stands for each target of a plan."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from random import Random

from browseruse_bench.factory.persona.canonical import canonical, is_cjk
from browseruse_bench.factory.persona.dates import age_on, rewritten, year_in
from browseruse_bench.factory.persona.fit import E164
from browseruse_bench.factory.persona.names import fullest, parts, renamed
from browseruse_bench.factory.persona.proposal import Someone, Target
from browseruse_bench.factory.persona.substitute import RefusedError, Replacement
from browseruse_bench.factory.personas import (
    CARDS,
    COUNTRIES,
    EMPLOYERS,
    POSTAL,
    SCHEMES,
    VIN,
    Address,
    Country,
    Person,
    load,
)
from browseruse_bench.factory.personas.forms import BANKS, PASSPORTS, PLATES, is_of

_DRAWS = 200
"""Tries to draw a number of a form that not all letters and digits make."""


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
    place_stays: bool = False
    """Whether the place is what the work is about, and stays: then only streets are replaced."""


def cast(
    persons: Sequence[Someone],
    targets: Sequence[Target],
    country: Country,
    *,
    domain: str,
    today: date,
    rng: Random,
    place_stays: bool = False,
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
    return Cast(country, domain, today, rng, people, addresses, minors, place_stays)


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
            return _paper(target, who)
        case "PHONE":
            return _phone(old, person, address, who)
        case "ADDRESS":
            whole = "," in old or any(is_cjk(c) or c == "\n" for c in old) or _has_postal(old, who)
            return address.line if whole else address.street
        case "PASSWORD":
            return shaped(old, who.rng) if old.isdigit() else "Kestrel-Lamp-42!"
        case "ORDER_ID" | "LOYALTY" | "CARD_CVV":
            return shaped(old, who.rng)
        case "COMPANY":
            return _employer(old, targets)
        case _:
            return {
                "EMAIL": f"{person.email}@{who.domain}",
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


def _has_postal(address: str, who: Cast) -> bool:
    return re.search(rf"(?<!\w)(?:{POSTAL[who.country.country]})(?!\w)", address[3:]) is not None


def _phone(old: str, person: Person, address: Address, who: Cast) -> str:
    """A number of the bundle's place; where the place of the text stays and every area has numbers
    that are reserved (US, CA), one of the old area.
    """
    import phonenumbers

    number = E164.of(old, who.country.country)
    if who.place_stays and number and who.country.country in ("US", "CA"):
        area, rest = number.e164[:5], person.phone[5:]
        usual = phonenumbers.PhoneNumberType.FIXED_LINE_OR_MOBILE
        here = phonenumbers.parse(number.e164)
        if phonenumbers.number_type(here) == usual and area + rest != number.e164:
            return area + rest
    return address.phone_of(person)


def _paper(target: Target, who: Cast) -> str | None:
    """A passport or plate: the country's own for the first person if the old one has that form,
    else another one of the form of the old one.
    """
    old, code = target.verbatim, who.country.country
    forms, own = (
        (PASSPORTS, who.country.passport) if target.kind == "PASSPORT" else (PLATES, who.country.plate)
    )  # fmt: skip
    size = len(canonical(own).solid[0])
    first = target.person == next(iter(who.people))
    if first and is_of(forms, code, old) and size == len(canonical(old).solid[0]):
        return own
    homes = [c for c in (code, *forms) if is_of(forms, c, old)]
    drawn = (shaped(old, who.rng) for _ in range(_DRAWS))
    return next((new for new in drawn if not homes or is_of(forms, homes[0], new)), None)


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
        # A letter of another script says where a plate is from: it is part of the form.
        plain = char.isascii() or char.isdigit()
        pool = digits if char.isdigit() else letters if char.isalpha() and plain else char
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
        return _bank(target, digits, who)
    schemes = [s for s, is_valid in SCHEMES.items() if is_valid(canonical(old).text.upper())]
    for country in (who.country, *(load(code) for code in COUNTRIES)):
        for scheme in schemes:
            if scheme in country.persons[0].ids:
                return country.persons[index % len(country.persons)].ids[scheme]
    return shaped(old, who.rng)


def _bank(target: Target, digits: str, who: Cast) -> str | None:
    """A code of a bank stays such a code, with its check digit; an account keeps its length."""
    for country in (who.country, *(load(code) for code in ("US", "MX"))):
        for scheme, is_valid in BANKS.items():
            if scheme in country.bank and is_valid(target.verbatim.strip()):
                return country.bank[scheme]
    account = who.country.bank["account"]
    first = target.person == next(iter(who.people))
    return account if first and len(account) == len(digits) else shaped(target.verbatim, who.rng)
