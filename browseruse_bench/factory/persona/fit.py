"""A persona's value in the form in which the original was written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from browseruse_bench.factory.persona.canonical import canonical
from browseruse_bench.factory.persona.kinds import NUMBERS, Kind


@dataclass(frozen=True)
class E164:
    """A phone number, and where it stands."""

    e164: str
    forms: tuple[str, ...]
    """Its digits as they are dialled: national, international, with 00, without the trunk."""
    span: tuple[int, int] = (0, 0)

    @classmethod
    def of(cls, written: str, region: str) -> E164 | None:
        """The number of a written form; None: it is none of this country or with a prefix."""
        import phonenumbers

        try:
            number = phonenumbers.parse(canonical(written).text, region)
        except phonenumbers.NumberParseException:
            return None
        return cls.of_number(number, (0, len(written)))

    @classmethod
    def of_number(cls, number: object, span: tuple[int, int]) -> E164:
        """A number of the library, at its place."""
        import phonenumbers

        assert isinstance(number, phonenumbers.PhoneNumber)
        e164 = phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)
        national = phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.NATIONAL)
        forms = (_digits(national), e164[1:], f"00{e164[1:]}", phonenumbers.national_significant_number(number))  # fmt: skip
        return cls(e164, forms, span)


def _digits(text: str) -> str:
    return re.sub(r"\D", "", text)


def phone_numbers(text: str, region: str) -> Iterator[E164]:
    """Every number in a text that can be one, with or without a prefix."""
    import phonenumbers

    possible = phonenumbers.Leniency.POSSIBLE
    for match in phonenumbers.PhoneNumberMatcher(text, region, leniency=possible):
        number = re.sub(r"(?i)\s*[,;]?\s*(?:x|ext\.?|extension|#)[\s.:]*\d+$", "", match.raw_string)
        yield E164.of_number(
            match.number, (match.start, match.start + len(re.sub(r"\D+$", "", number)))
        )


def fitted(kind: Kind, old: str, value: str, region: str) -> str | None:
    """The value as `old` is written; None: it cannot be, or what comes is not valid."""
    if kind == "PHONE":
        return _phone(old, value, region)
    if kind in NUMBERS:
        if len(canonical(old).solid[0]) != len(canonical(value).solid[0]):
            return value if kind in ("PLATE", "PASSPORT", "NATIONAL_ID", "BANK") else None
        return _cased(old, regrouped(old, value))
    if kind in ("NAME", "COMPANY"):
        return _name(old, value)
    if kind in ("EMAIL", "CITY", "STREET", "ADDRESS", "USERNAME", "URL"):
        letters = [char for char in old if char.isalpha()]
        return value.upper() if len(letters) > 3 and old == old.upper() else value
    return value


def regrouped(old: str, value: str) -> str:
    """The letters and digits of a value, grouped as the old ones are; both have as many."""
    left = iter(char for char in value if char.isalnum())
    return "".join(next(left, "") if char.isalnum() else char for char in old)


def _cased(old: str, new: str) -> str:
    return new.lower() if old == old.lower() and old != old.upper() else new


def _phone(old: str, value: str, region: str) -> str | None:
    import phonenumbers

    source, new = E164.of(old, region), E164.of(value, region)
    if new is None or not phonenumbers.is_valid_number(phonenumbers.parse(value, region)):
        return None
    written = canonical(old).text
    digits = _digits(written)
    written_with = old.lstrip()[:1] in ("+", "＋") or digits.startswith("00")
    form = next((f for s, f in zip(source.forms, new.forms, strict=True) if s == digits), None) if source else None  # fmt: skip
    if form is None:
        form = new.forms[1] if written_with else new.forms[0]
    if len(form) == len(digits) and (not written_with or _same_prefix(source, new)):
        result = regrouped(old, form)
    else:
        shape = phonenumbers.PhoneNumberFormat
        number = phonenumbers.parse(value, region)
        result = phonenumbers.format_number(
            number, shape.INTERNATIONAL if written_with else shape.NATIONAL
        )
    again = E164.of(result, region)
    return result if again and again.e164 == new.e164 else None


def _same_prefix(source: E164 | None, new: E164) -> bool:
    """Whether both country codes have as many digits, so that one grouping fits both."""
    sizes = {len(n.forms[1]) - len(n.forms[3]) for n in (source, new) if n is not None}
    return len(sizes) == 1


def _name(old: str, value: str) -> str:
    words, values = old.split(), value.split()
    if len(words) != len(values):
        return _cased_word(old, value)
    cased = (_cased_word(*pair) for pair in zip(words, values, strict=True))
    return re.sub(r"\S+", lambda _: next(cased), value)


def _cased_word(old: str, value: str) -> str:
    letters = [char for char in old if char.isalpha() and char.lower() != char.upper()]
    if len(letters) > 1 and all(char.isupper() for char in letters):
        return value.upper()
    if letters and all(char.islower() for char in letters):
        return value.lower()
    return value
