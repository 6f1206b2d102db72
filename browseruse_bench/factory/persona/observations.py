"""What a text shows, without a model, of why it may not be repeatable: an account, a past date.

Nothing is dropped for it: that is for suitability and for the model to say. It is noted with its
place, so that a person who reviews a unit sees it.
"""

from __future__ import annotations

import re
from datetime import date
from typing import Literal, NamedTuple

_ACCOUNT = re.compile(
    r"\b(?:log|sign)(?:ged)?[ -]?in(?:to)?\b"
    r"|\bmy (?:\w+ ){0,2}(?:account|calendar|inbox|e-?mails?|mailbox|drive|docs?|orders?|cart|"
    r"profile|bills?|meetings?|messages|subscription)\b"
    r"|\b(?:open|check|on|in|use) (?:my )?(?:gmail|outlook|google (?:calendar|drive|docs))\b",
    re.IGNORECASE,
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_NAMED = re.compile(
    r"\b(?:(?P<d>\d{1,2})(?:st|nd|rd|th)?(?: of)? (?P<m>[a-z]{3,9})|(?P<m2>[a-z]{3,9}) (?P<d2>\d{1,2})"
    r"(?:st|nd|rd|th)?),? (?P<y>20\d\d)\b",
    re.IGNORECASE,
)
_ISO = re.compile(r"\b(20\d\d)-(\d\d)-(\d\d)\b")


class Observation(NamedTuple):
    """One thing that was seen."""

    kind: Literal["account", "past_date"]
    start: int
    end: int


def observations(text: str, today: date) -> tuple[Observation, ...]:
    """Mentions of an account, and dates before `today`, in order."""
    found = [Observation("account", *match.span()) for match in _ACCOUNT.finditer(text)]
    for match in (*_NAMED.finditer(text), *_ISO.finditer(text)):
        day = _day(match)
        if day is not None and day < today:
            found.append(Observation("past_date", *match.span()))
    return tuple(sorted(found, key=lambda seen: seen.start))


def _day(match: re.Match[str]) -> date | None:
    if match.re is _ISO:
        year, month, day = (int(group) for group in match.groups())
    else:
        name = (match["m"] or match["m2"])[:3].lower()
        if name not in _MONTHS:
            return None
        year, month, day = int(match["y"]), _MONTHS.index(name) + 1, int(match["d"] or match["d2"])
    try:
        return date(year, month, day)
    except ValueError:
        return None  # 31 February is no date
