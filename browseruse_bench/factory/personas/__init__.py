"""Dummy personas, one curated file a country, each value checked by its own validator when read.

    personas = load("DE", domain="example.com")

Numbers have the form and the check digits that a site asks for. Where a country reserves numbers
for fiction or never issues them (US and Canadian 555-01xx, GB 020 7946 0xxx, 0117 and 0114 496 0xxx,
AU 0491 570 1xx, FR 01 99 00, 02 61 91 and 03 53 01, DE 030 23125, 040 66969 and 0221 4710, SSN 987-65-432x, SIN 0.., NHS 999, NINO QQ) these are used; elsewhere
none is reserved, and the numbers are sequences that were made up.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from functools import lru_cache
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, ValidationError, model_validator

from browseruse_bench.errors import ConfigError, DataError
from browseruse_bench.factory.personas.forms import PASSPORTS, PLATES, bank_problems, is_of
from browseruse_bench.records.base import Record

FOLDER = Path(__file__).parent
COUNTRIES = tuple(sorted(path.stem for path in FOLDER.glob("*.json")))
CARDS = ("4242424242424242", "5555555555554444", "378282246310005", "6011111111111117")
"""Numbers that payment providers publish for tests, one of each brand."""
VIN = "1M8GDM9AXKP042788"
"""The example of its check digit's definition."""

EMPLOYERS = ("Example Industries", "Example Services", "Example Trading", "Example Works")
"""Companies that nobody has: named as the domains that are reserved for documentation."""

Gender = Literal["f", "m", "n"]


class Native(Record):
    """A name in the country's own script."""

    given: str = Field(min_length=1)
    family: str = Field(min_length=1)


class Person(Record):
    """Who stands for a person of a text."""

    given: str = Field(min_length=1)
    family: str = Field(min_length=1)
    gender: Gender
    """n: a name that says neither."""
    birth_date: date
    email: str
    """Local part; the domain is the workspace's."""
    phone: str = Field(pattern=r"^\+\d{8,15}$")
    ids: dict[str, str]
    """Scheme -> a number of it."""
    native: Native | None = None


class Address(Record):
    """A bundle whose parts belong together."""

    street: str = Field(min_length=1)
    city: str = Field(min_length=1)
    region: str
    postal: str = Field(min_length=1)
    line: str
    """All of it as it is written there."""
    phone_prefix: str | None = Field(default=None, pattern=r"^\+\d{3,10}$")
    """How the phone numbers of this place begin; None: the numbers of persons are of no place."""

    def phone_of(self, person: Person) -> str:
        """The person's number as one of this place, E.164."""
        if self.phone_prefix is None:
            return person.phone
        return self.phone_prefix + person.phone[len(self.phone_prefix) :]


class Country(Record):
    """The personas of one country."""

    country: str = Field(pattern=r"^[A-Z]{2}$")
    languages: tuple[str, ...]
    date_order: Literal["mdy", "dmy", "ymd"]
    name_order: Literal["given_family", "family_given"]
    persons: tuple[Person, ...] = Field(min_length=4)
    addresses: tuple[Address, ...] = Field(min_length=2)
    bank: dict[str, str]
    passport: str
    plate: str
    iban: str | None = None

    @model_validator(mode="after")
    def _valid(self) -> Self:
        problems = _problems(self)
        if problems:
            raise ValueError("; ".join(problems))
        return self


def _luhn(number: str) -> bool:
    from stdnum import luhn

    return luhn.is_valid(re.sub(r"\D", "", number))


def _stdnum(module: str) -> Callable[[str], bool]:
    def check(number: str) -> bool:
        from importlib import import_module

        return import_module(f"stdnum.{module}").is_valid(number)

    return check


def _form(pattern: str) -> Callable[[str], bool]:
    return lambda number: re.fullmatch(pattern, number) is not None


SCHEMES: dict[str, Callable[[str], bool]] = {
    "ssn": _form(r"(?!000|666)\d{3}[- ]?(?!00)\d{2}[- ]?(?!0000)\d{4}"),
    "sin": lambda number: len(re.sub(r"\D", "", number)) == 9 and _luhn(number),
    "nhs": _stdnum("gb.nhs"),
    "nino": _form(r"[A-Z]{2} ?\d{2} ?\d{2} ?\d{2} ?[A-D]"),
    "tfn": _stdnum("au.tfn"),
    "aadhaar": _stdnum("in_.aadhaar"),
    "pan": _stdnum("in_.pan"),
    "idnr": _stdnum("de.idnr"),
    "nir": _stdnum("fr.nir"),
    "dni": _stdnum("es.dni"),
    "nie": _stdnum("es.nie"),
    "codicefiscale": _stdnum("it.codicefiscale"),
    "bsn": _stdnum("nl.bsn"),
    "pesel": _stdnum("pl.pesel"),
    "cpf": _stdnum("br.cpf"),
    "curp": _stdnum("mx.curp"),
    "mynumber": _stdnum("jp.in_"),
    "rrn": _stdnum("kr.rrn"),
}
"""Numbers by which states know people -> whether a text is one."""
POSTAL = {
    "US": r"\d{5}(-\d{4})?", "CA": r"[A-Z]\d[A-Z] ?\d[A-Z]\d", "AU": r"\d{4}", "IN": r"\d{6}",
    "GB": r"[A-Z]{1,2}\d[A-Z\d]? ?\d[A-Z]{2}", "NL": r"\d{4} ?[A-Z]{2}", "PL": r"\d{2}-\d{3}",
    "BR": r"\d{5}-\d{3}", "JP": r"\d{3}-\d{4}", "DE": r"\d{5}", "FR": r"\d{5}", "ES": r"\d{5}",
    "IT": r"\d{5}", "MX": r"\d{5}", "KR": r"\d{5}",
}  # fmt: skip


def _problems(country: Country) -> list[str]:
    """What is not valid, value by value."""
    from email_validator import EmailNotValidError, validate_email

    problems: list[str] = []
    for person in country.persons:
        phones = {person.phone, *(address.phone_of(person) for address in country.addresses)}
        problems += _person_problems(person, phones, country.country)
        try:
            validate_email(f"{person.email}@example.com", check_deliverability=False)
        except EmailNotValidError as error:
            problems.append(f"{person.email}: {error}")
    for address in country.addresses:
        if not re.fullmatch(POSTAL[country.country], address.postal):
            problems.append(f"{address.postal}: no postal code of {country.country}")
        missing = [
            p for p in (address.street, address.city, address.postal) if p not in address.line
        ]
        problems += [f"{address.line}: lacks {part}" for part in missing]
    problems += _papers_problems(country)
    for what in ("email", "phone", "given", "family"):
        values = [getattr(person, what) for person in country.persons]
        if len(set(values)) < len(values):
            problems.append(f"two persons share one {what}")
    return problems


def _papers_problems(country: Country) -> list[str]:
    from stdnum import iban

    code, problems = country.country, bank_problems(country.country, country.bank, country.iban)
    if country.iban is not None and not (
        country.iban.startswith(code) and iban.is_valid(country.iban)
    ):
        problems.append(f"{country.iban}: no IBAN of {code}")
    if not is_of(PASSPORTS, code, country.passport):
        problems.append(f"{country.passport}: no passport number of {code}")
    if not is_of(PLATES, code, country.plate):
        problems.append(f"{country.plate}: no number plate of {code}")
    return problems


def _person_problems(person: Person, phones: set[str], region: str) -> list[str]:
    import phonenumbers

    problems: list[str] = []
    for phone in sorted(phones):
        if not phonenumbers.is_valid_number_for_region(phonenumbers.parse(phone), region):
            problems.append(f"{phone}: no phone number of {region}")
    for scheme, value in person.ids.items():
        if scheme not in SCHEMES or not SCHEMES[scheme](value):
            problems.append(f"{value}: no {scheme}")
    if not 18 <= (date(2026, 1, 1) - person.birth_date).days / 365.25 <= 70:
        problems.append(f"{person.birth_date}: no adult of working age")
    return problems


@lru_cache(maxsize=64)
def load(country: str) -> Country:
    """The personas of a country.

    Raises:
        ConfigError: there is no file of it.
        DataError: a value of the file is not valid; all that are not are said.
    """
    path = FOLDER / f"{country}.json"
    if country not in COUNTRIES:
        raise ConfigError(f"no personas for {country}; there are: {', '.join(COUNTRIES)}")
    try:
        return Country.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise DataError(
            [f"{path}: {'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()]
        ) from error
