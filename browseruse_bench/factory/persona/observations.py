"""What a text shows, without a model, of why it may not be repeatable: an account, a past date or
year, an answer that moves (today's, latest), somebody who must be asked on the way.

Nothing is dropped for it: that is for suitability and for the model to say. It is noted with its
place, so that a person who reviews a unit sees it.
"""

from __future__ import annotations

import re
from datetime import date, timedelta
from typing import Literal, NamedTuple

_ACCOUNT = re.compile(
    r"\b(?:log|sign)(?:ged)?[ -]?in(?:to)?\b"
    r"|\bmy (?:\w+ ){0,2}(?:account|calendar|inbox|e-?mails?|mailbox|drive|docs?|orders?|cart|"
    r"profile|bills?|meetings?|messages|subscription)\b"
    r"|\b(?:open|check|on|in|use) (?:my )?(?:gmail|outlook|google (?:calendar|drive|docs))\b",
    re.IGNORECASE,
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
_NAMED = re.compile(
    rf"\b(?:(?P<d>{_DAY})(?: of)? (?P<m>{_MONTH})"
    rf"|(?P<m2>{_MONTH}) (?:{_DAY}? ?[-–] ?)?(?P<d2>{_DAY})),? (?P<y>20\d\d)\b",
    re.IGNORECASE,
)
_OF_MONTH = re.compile(rf"\b(?P<m>{_MONTH}),? (?P<y>20\d\d)\b", re.IGNORECASE)
_YEAR = re.compile(r"(?<![\w.,$€£#/-])(20\d\d)(?:[-–/](?:20)?\d\d)?(?![\w%/-]|[.,]\d)")
_MOVING = re.compile(
    r"\b(?:today(?:['’]s)?|tonight(?:['’]s)?|tomorrow(?:['’]s)?|yesterday(?:['’]s)?|this (?:week|"
    r"weekend|month|season|year)(?:['’]s)?|of the (?:day|week|month)|right now|at the moment|"
    r"currently?|latest|newest|most recent|upcoming|trending)\b",
    re.IGNORECASE,
)
_INTERACTIVE = re.compile(
    r"\b(?:ask me|(?:check|confirm|clarify) with me|wait for (?:me|my)|(?:get|need|with) my "
    r"(?:approval|confirmation|ok)|until i (?:say|confirm|answer)|if (?:anything is|it is|it's|"
    r"you(?:['’]re| are)) (?:unclear|unsure|not sure|in doubt)|your (?:\w+ )?(?:score|result|answers?"
    r"|opinion|favou?rite)|take (?:the|a|this) quiz)\b",
    re.IGNORECASE,
)
_ISO = re.compile(r"\b(20\d\d)-(\d\d)-(\d\d)\b")


class Observation(NamedTuple):
    """One thing that was seen."""

    kind: Literal["account", "past_date", "past_year", "moving", "interactive"]
    start: int
    end: int


def observations(text: str, today: date) -> tuple[Observation, ...]:
    """What was seen, in order: accounts, answers that move, questions to the user, and dates,
    months and years that are over by `today`.
    """
    found = [Observation("account", *match.span()) for match in _ACCOUNT.finditer(text)]
    found += [Observation("moving", *match.span()) for match in _MOVING.finditer(text)]
    found += [Observation("interactive", *match.span()) for match in _INTERACTIVE.finditer(text)]
    dated: list[tuple[int, int]] = []
    for pattern in (_NAMED, _ISO, _OF_MONTH):
        for match in pattern.finditer(text):
            day = _day(match)
            if day is None or any(a <= match.start() < b for a, b in dated):
                continue
            dated.append(match.span())
            if day < today:
                found.append(Observation("past_date", *match.span()))
    for match in _YEAR.finditer(text):
        if int(match[1]) < today.year and not any(a <= match.start() < b for a, b in dated):
            found.append(Observation("past_year", *match.span()))
    return tuple(sorted(found, key=lambda seen: seen.start))


def _day(match: re.Match[str]) -> date | None:
    """The last day that is meant; None: it is no date."""
    if match.re is _ISO:
        year, month, day = (int(group) for group in match.groups())
    else:
        groups = match.groupdict()
        name = (groups["m"] or groups["m2"])[:3].lower()
        year, month = int(groups["y"]), _MONTHS.index(name) + 1
        if match.re is _OF_MONTH:
            return date(year + month // 12, month % 12 + 1, 1) - timedelta(days=1)
        day = int(re.sub(r"\D", "", groups["d"] or groups["d2"]))
    try:
        return date(year, month, day)
    except ValueError:
        return None  # 31 February is no date
