"""Numbers in text, with the sign, currency and unit that they are written with.

| written | read as |
|---|---|
| `1,234.50` `1.234,50` `1 234,50` `1'234.50` | 1234.5 |
| `1,234` | 1234: a comma before exactly three digits groups |
| `1.234` | 1.234: a point groups only where there are several, or a comma after it |
| `1,5` `0,123` | 1.5, 0.123: any other single comma is a decimal comma |
| `1,2,3` | three numbers |
| `$1,299` `1299 USD` `US$ 1299` | 1299 with unit USD |
| `5 km` `5km` `12%` `12 percent` | 5 km, 12 % |
| `5k` `1.2M` `$3m` `2 million` | 5000, 1200000, 3000000 USD, 2000000; `5 m` is 5 metres |
| `12:30` `1.2.3` `10.0.0.1` `COVID-19` `N123AA` `5th` | no number: a time, a version, a name |

Dates and web addresses are taken out before. Units are never converted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from typing import NamedTuple

_CURRENCY = {
    "$": "USD", "us$": "USD", "usd": "USD", "dollar": "USD", "dollars": "USD",
    "€": "EUR", "eur": "EUR", "euro": "EUR", "euros": "EUR",
    "£": "GBP", "gbp": "GBP",
    "¥": "JPY", "jpy": "JPY", "yen": "JPY",
    "rmb": "CNY", "cny": "CNY", "yuan": "CNY",
    "₹": "INR", "inr": "INR", "rupees": "INR",
    "chf": "CHF", "cad": "CAD", "aud": "AUD", "krw": "KRW", "₩": "KRW",
}  # fmt: skip
_NAMES = {
    "%": "% percent pct",
    "km": "km kms kilometer kilometers kilometre kilometres",
    "m": "m meter meters metre metres",
    "cm": "cm centimeter centimeters centimetre centimetres",
    "mm": "mm millimeter millimeters millimetre millimetres",
    "mi": "mi mile miles",
    "ft": "ft foot feet",
    "inch": "inch inches",
    "yd": "yd yard yards",
    "km/h": "km/h kmh kph",
    "mph": "mph mi/h",
    "kg": "kg kgs kilogram kilograms",
    "g": "g gram grams",
    "lb": "lb lbs",
    "oz": "oz ounce ounces",
    "l": "l liter liters litre litres",
    "ml": "ml milliliter milliliters millilitre millilitres",
    "ms": "ms millisecond milliseconds",
    "s": "s sec secs second seconds",
    "min": "min mins minute minutes",
    "h": "h hr hrs hour hours",
    "day": "day days",
    "week": "week weeks",
    "month": "month months",
    "year": "year years yrs",
    "°C": "°c celsius",
    "°F": "°f fahrenheit",
    "KB": "kb kilobyte kilobytes",
    "MB": "mb megabyte megabytes",
    "GB": "gb gigabyte gigabytes",
    "TB": "tb terabyte terabytes",
    "kWh": "kwh",
    "km2": "km2",
    "m2": "m2 sqm",
    "star": "star stars",
}
_UNITS = {name: unit for unit, names in _NAMES.items() for name in names.split()} | _CURRENCY
_WORD_FACTORS = {
    "thousand": 10**3,
    "million": 10**6,
    "mn": 10**6,
    "billion": 10**9,
    "bn": 10**9,
    "trillion": 10**12,
}

_BEFORE = r"us\$|[$€£¥₹₩]|(?<![a-z])(?:usd|eur|gbp|jpy|cny|rmb|inr|chf|cad|aud|krw)"
_NUMBER = re.compile(
    rf"""
    (?<![\w.,']) (?<![a-z_]-)
    (?P<sign>[+-])? (?:(?P<before>{_BEFORE})[ ]?)? (?P<sign2>[+-])?
    (?P<digits>
        [0-9]{{1,3}}(?:[ ][0-9]{{3}})+(?![0-9])(?:[.,][0-9]+)?
      | [0-9]+(?:[.,'][0-9]+)*
      | \.[0-9]+
    )
    (?P<exponent>e[+-]?[0-9]+)?
    (?P<after>%|[a-z°µ]+\w*(?:/[a-z]+)?)?
    """,
    re.IGNORECASE | re.VERBOSE,
)
_NEXT = re.compile(r" ?(%|°?[a-z]+(?:/[a-z]+)?2?(?!\w)|[$€£¥₹₩](?! ?[+-]?[0-9]))", re.IGNORECASE)
_TIME = re.compile(r"(?<![\w:])[0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?(?![\w:])")


class Quantity(NamedTuple):
    """A number in a text."""

    value: Decimal
    unit: str | None
    """A currency code, "%" or a unit; None where none is written."""
    start: int
    end: int


def parse_digits(digits: str) -> Decimal | None:
    """The value of digits with group marks and a decimal mark; None if they are no number."""
    digits = digits.replace(" ", "")
    if "'" in digits:
        if not re.fullmatch(r"[0-9]{1,3}(?:'[0-9]{3})+(?:[.,][0-9]+)?", digits):
            return None
        digits = digits.replace("'", "")
    last = max(digits.rfind("."), digits.rfind(","))
    if last >= 0:
        mark = digits[last]
        other = "," if mark == "." else "."
        whole, fraction = digits[:last], digits[last + 1 :]
        if mark in whole or _groups(digits, mark):
            if not _grouped(digits, mark):
                return None
            digits = digits.replace(mark, "")
        else:
            if other in whole and not _grouped(whole, other):
                return None
            digits = f"{whole.replace(other, '') or '0'}.{fraction}"
    try:
        return Decimal(digits)
    except InvalidOperation:
        return None


def _groups(digits: str, mark: str) -> bool:
    """Whether the only mark groups: a comma before exactly three digits."""
    return mark == "," and "." not in digits and _grouped(digits, mark)


def _grouped(digits: str, mark: str) -> bool:
    return re.fullmatch(rf"[1-9][0-9]{{0,2}}(?:{re.escape(mark)}[0-9]{{3}})+", digits) is not None


def quantities(text: str) -> Iterator[Quantity]:
    """The numbers in a normal text, in order.

    Args:
        text: normal; what must not be read (dates, addresses) is blanked out in it.
    """
    text = _TIME.sub(lambda found: "\x00" * len(found[0]), text)
    for found in _NUMBER.finditer(text):
        if found["sign"] and found["sign2"]:
            continue
        yield from _read(text, found)


def _read(text: str, found: re.Match[str]) -> Iterator[Quantity]:
    digits = found["digits"]
    suffix = _suffix(text, found)
    value = parse_digits(digits)
    if value is None:
        # "5,6,7" without spaces lists three numbers; "1,23,456" is left unread.
        if suffix is not None and re.fullmatch(r"[0-9]{1,2}(?:,[0-9]{1,2}){2,}", digits):
            yield from _listed(found)
        return
    if suffix is None:
        return
    factor, unit, end = suffix
    if found["exponent"]:
        value = value.scaleb(max(-400, min(400, int(found["exponent"][1:]))))
    if "-" in (found["sign"], found["sign2"]):
        value = -value
    before = _CURRENCY.get((found["before"] or "").casefold())
    if before and unit and unit != before and unit not in _CURRENCY.values():
        unit, end = None, found.end("digits")
    yield Quantity(value * factor, before or unit, found.start(), end)


def _listed(found: re.Match[str]) -> Iterator[Quantity]:
    for part in re.finditer(r"[0-9]+", found["digits"]):
        start = found.start("digits") + part.start()
        yield Quantity(Decimal(part[0]), None, start, start + len(part[0]))


def _suffix(text: str, found: re.Match[str]) -> tuple[int, str | None, int] | None:
    """(factor, unit, end) of what follows the digits; None if they are part of a name."""
    after, currency = found["after"], found["before"] is not None
    end = found.end()
    factor, unit = 1, None
    if after:
        attached = _attached(after, currency=currency)
        if attached is None:
            return None
        factor, unit = attached
        if unit is not None:
            return factor, unit, end
    elif end < len(text) and text[end] in "°" and not _NEXT.match(text, end):
        return None
    following = _NEXT.match(text, end)
    if following and factor == 1 and following[1].casefold() in _WORD_FACTORS:
        factor, end = _WORD_FACTORS[following[1].casefold()], following.end()
        following = _NEXT.match(text, end)
    if following and following[1].casefold() in _UNITS:
        unit, end = _UNITS[following[1].casefold()], following.end()
    return factor, unit, end


def _attached(after: str, *, currency: bool) -> tuple[int, str | None] | None:
    """(factor, unit) of letters that are attached to a number; None for "th", "x" or a name."""
    if after in ("k", "K"):
        return 1000, None
    if after in ("M", "mn", "Mn") or (after == "m" and currency):
        return 10**6, None
    if after.casefold() == "bn" or (after in ("B", "b") and currency):
        return 10**9, None
    unit = _UNITS.get(after.casefold())
    return None if unit is None else (1, unit)
