"""Dates in text. A date that can be read in two ways counts only where both agree.

| written | read as |
|---|---|
| `2026-05-03` `2026/5/3` `2026-05-03T10:00` | 3 May 2026 |
| `May 3, 2026` `3 May 2026` `Sunday, 3rd of May 2026` `3-May-2026` | 3 May 2026 |
| `25/12/2026` `12/25/2026` `25.12.2026` | 25 December 2026 |
| `05/03/2026` | 3 May or 5 March; the order of another date in the text with the same mark decides, if it can be read in one way only |
| `3.5.2026` | 3 May: with points the day comes first |
| `May 3` `3 May` | 3 May, no year |
| `May 2026` | May 2026, no day |

Two-digit years are 2000 to 2099.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from typing import NamedTuple

_MONTHS = [
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
]  # fmt: skip
_MONTH_OF = {name[:n]: i for i, name in enumerate(_MONTHS, 1) for n in (3, len(name))} | {"sept": 9}
_M = r"(?P<month>" + "|".join(sorted(_MONTH_OF, key=len, reverse=True)) + r")\.?(?![a-z])"
_D = r"(?P<day>[0-3]?[0-9])(?:st|nd|rd|th)?"
_Y = r"(?P<year>[12][0-9]{3})(?![0-9])"
_PATTERNS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?<![\w.,/-])(?P<year>[12][0-9]{3})(?P<mark>[-/.])(?P<month>[01]?[0-9])(?P=mark)"
        r"(?P<day>[0-3]?[0-9])(?![0-9])(?:t(?=[0-9]{2}:))?",
        r"(?<![\w.,/-])(?P<one>[0-3]?[0-9])(?P<mark>[-/.])(?P<two>[0-3]?[0-9])(?P=mark)"
        r"(?P<year>[12][0-9]{3}|[0-9]{2})(?![\w/-])(?!\.[0-9])",
        rf"(?<![\w.]){_M}[ -]?{_D}(?![\w:])(?:,? ?-?{_Y})",
        rf"(?<![\w.,/]){_D}[ -]?(?:of )?{_M},?[ -]?{_Y}",
        rf"(?<![\w.]){_M} ?{_D}(?![\w:])(?!,[0-9])",
        rf"(?<![\w.,/]){_D} ?(?:of )?{_M}",
        rf"(?<![\w.]){_M},? {_Y}",
    )
)


class Day(NamedTuple):
    """A calendar date; what is not stated is None."""

    year: int | None
    month: int
    day: int | None


class Dated(NamedTuple):
    """A date in a text."""

    readings: tuple[Day, ...]
    """What it can mean; one, or two for a date such as 05/03/2026."""
    written: str
    start: int
    end: int


def _day(year: int | None, month: int, day: int | None) -> Day | None:
    if not 1 <= month <= 12:
        return None
    try:
        # 2024 is a leap year: 29 February without a year is a date.
        datetime.date(year or 2024, month, day if day is not None else 1)
    except ValueError:
        return None
    return Day(year, month, day)


def dates(text: str) -> list[Dated]:
    """The dates in a normal text, in order; the longest reading of each place."""
    found: list[Dated] = []
    taken = [False] * (len(text) + 1)
    for pattern in _PATTERNS:
        for match in pattern.finditer(text):
            readings = tuple(_readings(match.groupdict()))
            if readings and not any(taken[match.start() : match.end()]):
                taken[match.start() : match.end()] = [True] * (match.end() - match.start())
                found.append(Dated(readings, match[0], match.start(), match.end()))
    return _settled(sorted(found, key=lambda date: date.start))


def _readings(parts: dict[str, str | None]) -> Iterator[Day]:
    written_year = parts.get("year")
    year = int(written_year) if written_year else None
    if year is not None and year < 100:
        year += 2000
    one, two = parts.get("one"), parts.get("two")
    if one is not None and two is not None:
        orders = [(int(two), int(one))]
        if parts["mark"] != ".":
            orders.insert(0, (int(one), int(two)))
        seen = {day: None for month, of_month in orders if (day := _day(year, month, of_month))}
        yield from seen
        return
    month = parts["month"] or ""
    number = int(month) if month.isdigit() else _MONTH_OF[month.casefold()]
    day = parts.get("day")
    if (read := _day(year, number, int(day) if day else None)) is not None:
        yield read


def _settled(found: list[Dated]) -> list[Dated]:
    """Let a numeric date that has one reading fix the order of the others with its mark."""
    orders: dict[str, set[int]] = {}
    for date in found:
        parts = re.fullmatch(r"([0-9]{1,2})([-/])([0-9]{1,2})\2[0-9]+", date.written)
        if parts and len(date.readings) == 1 and parts[1] != parts[3]:
            month_first = int(parts[1]) == date.readings[0].month
            orders.setdefault(parts[2], set()).add(0 if month_first else 1)
    return [_in_order(date, orders) for date in found]


def _in_order(date: Dated, orders: dict[str, set[int]]) -> Dated:
    mark = re.search(r"[-/]", date.written)
    order = orders.get(mark[0] if mark else "", set())
    if len(date.readings) == 2 and len(order) == 1:
        return date._replace(readings=(date.readings[next(iter(order))],))
    return date


def agrees(wanted: Day, found: Day) -> bool:
    """Whether a date states what is wanted: its month, its day, and no other year.

    A wanted day must be stated; beside it the year may be left out on either side. A wanted
    month of a year must be stated with the year.
    """
    if wanted.month != found.month:
        return False
    if wanted.day is None:
        return wanted.year == found.year
    if wanted.day != found.day:
        return False
    return wanted.year is None or found.year is None or wanted.year == found.year


def states(wanted: Dated, found: Dated) -> bool:
    """Whether a date in an answer states the wanted one, whichever way both are read.

    A date that is written exactly as the wanted one states it, ambiguous or not.
    """
    if len(wanted.readings) > 1 and wanted.written == found.written:
        return True
    return all(agrees(a, b) for a in wanted.readings for b in found.readings)
