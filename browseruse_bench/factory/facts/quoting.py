"""Whether a text shows a quote, and what it shows instead."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from functools import lru_cache

from browseruse_bench.eval.wording import normal
from browseruse_bench.records.rubric import Fact

_MAX_SHOWN = 300
_MAX_LINES = 5_000
_SPACES = re.compile(r"\s+")


def sought(fact: Fact) -> tuple[str, ...]:
    """What is looked for: the quote or, without one, every value."""
    if fact.quote and fact.quote.strip():
        return (fact.quote,)
    return tuple(str(value) for value in fact.values if str(value).strip())


def shows(text: str, quote: str) -> bool:
    """Whether a text holds a quote as whole words and numbers.

    Spaces, line ends, case and typographic variants do not count; signs do: "€18.90" is not
    "$18.90", and "14.5" is in neither "14.50" nor "114.5".
    """
    wanted = flat(quote)
    return bool(wanted) and bool(_pattern(wanted).search(flat(text)))


def flat(text: str) -> str:
    """A text as one line, in the form in which texts are compared."""
    return _SPACES.sub(" ", normal(text)).strip().casefold()


@lru_cache(maxsize=4096)
def _pattern(wanted: str) -> re.Pattern[str]:
    before = r"(?<!\w)" if wanted[0].isalnum() else ""
    after = r"(?!\w)" if wanted[-1].isalnum() else ""
    if wanted[0].isdigit():
        before += r"(?<!\d[.,])"
    if wanted[-1].isdigit():
        after += r"(?![.,]\d)"
    return re.compile(before + re.escape(wanted) + after)


def instead(now: str, quote: str, before: str | None = None) -> str | None:
    """The lines of a text that stand where the quote stood.

    Args:
        now: the text as it is.
        quote: what it does not show.
        before: the text as it was; with it the lines around the quote count, too.

    Returns:
        None for a text in which nothing is like it.
    """
    lines = _lines(now)
    if not lines:
        return None
    old = _around(_lines(before or ""), quote)
    wanted = (old[0], flat(old[1]) if old[1] else flat(quote), old[2])
    best, best_score = None, 0.0
    for place, line in enumerate(lines):
        around = (lines[place - 1] if place else "", line, "".join(lines[place + 1 : place + 2]))
        score = _score(around, wanted)
        if score > best_score:
            best, best_score = place, score
    if best is None or best_score < 0.35:
        return None
    return lines[best][:_MAX_SHOWN]


def excerpt(text: str, quote: str) -> str | None:
    """The line of a text that shows the quote, or the quote itself where it runs over several."""
    line = next((line for line in _lines(text) if shows(line, quote)), None)
    if line is None:
        return quote if shows(text, quote) else None
    return line[:_MAX_SHOWN]


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()][:_MAX_LINES]


def _around(lines: Sequence[str], quote: str) -> tuple[str, str, str]:
    for place, line in enumerate(lines):
        if shows(line, quote):
            before = lines[place - 1] if place else ""
            return flat(before), line, flat("".join(lines[place + 1 : place + 2]))
    return "", "", ""


def _score(around: tuple[str, str, str], wanted: tuple[str, str, str]) -> float:
    """0..1: how much a line and its neighbours are like those that are wanted."""
    weights = (0.2, 0.6, 0.2) if any((wanted[0], wanted[2])) else (0.0, 1.0, 0.0)
    total = 0.0
    for weight, text, like in zip(weights, around, wanted, strict=True):
        if weight and like:
            matcher = difflib.SequenceMatcher(None, flat(text), like, autojunk=False)
            if matcher.real_quick_ratio() > 0.3 and matcher.quick_ratio() > 0.3:
                total += weight * matcher.ratio()
    return total
