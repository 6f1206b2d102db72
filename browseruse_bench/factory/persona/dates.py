"""A persona's birth date, written as another one is written."""

from __future__ import annotations

import re
from datetime import date
from typing import Literal

_NUMERIC = re.compile(r"(\d{1,4})([/.\-])(\d{1,2})\2(\d{1,4})")
_WORDS = re.compile(r"[^\W\d_]{3,}\.?")


def age_on(birth: date, day: date) -> int:
    """Full years."""
    return day.year - birth.year - ((day.month, day.day) < (birth.month, birth.day))


def year_in(written: str) -> int | None:
    """The year of a written date; None: it has none of four digits."""
    found = re.search(r"(?<!\d)(?:19|20)\d\d(?!\d)", written)
    return int(found.group()) if found else None


def rewritten(
    written: str, new: date, order: Literal["mdy", "dmy", "ymd"], languages: tuple[str, ...]
) -> str | None:
    """`new` in the form of `written`; None: that form is not known."""
    numeric = _NUMERIC.fullmatch(written.strip())
    if numeric:
        return _numeric(numeric, new, order)
    return _worded(written, new, languages)


def _numeric(match: re.Match[str], new: date, order: str) -> str:
    first, mark, second, third = match.groups()
    if len(first) == 4:
        parts = (new.year, new.month, new.day)
    elif order == "mdy" and int(first) <= 12 or int(second) > 12:
        parts = (new.month, new.day, new.year)
    else:
        parts = (new.day, new.month, new.year)
    widths = [
        len(part) if part.startswith("0") or len(part) > 1 else 0 for part in (first, second, third)
    ]
    return mark.join(
        f"{part:0{width}d}"[-width or None :] for part, width in zip(parts, widths, strict=True)
    )


def _worded(written: str, new: date, languages: tuple[str, ...]) -> str | None:
    from babel import Locale

    for word in _WORDS.findall(written):
        for language in dict.fromkeys((*languages, "en")):
            months = Locale(language).months["format"]
            for width in ("wide", "abbreviated"):
                names = {n: str(name).rstrip(".").casefold() for n, name in months[width].items()}
                if word.rstrip(".").casefold() in names.values():
                    return _filled(written, word, str(months[width][new.month]), new)
    return None


def _filled(written: str, word: str, month: str, new: date) -> str:
    name = month.rstrip(".") + ("." if word.endswith(".") else "")
    name = name.capitalize() if word[0].isupper() else name
    before, _, after = written.partition(word)

    def digits(part: str) -> str:
        part = re.sub(r"(?<!\d)(?:19|20)\d\d(?!\d)", "\0", part)
        part = re.sub(r"\d{1,2}(st|nd|rd|th)?", lambda m: _ordinal(new.day, m.group(1)), part)
        return part.replace("\0", str(new.year))

    return digits(before) + name + digits(after)


def _ordinal(day: int, suffix: str | None) -> str:
    if suffix is None:
        return str(day)
    last = "th" if 10 < day < 20 else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")
    return f"{day}{last}"
