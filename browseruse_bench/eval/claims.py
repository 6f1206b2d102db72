"""What an answer claims about the values that it mentions: states, denies, bounds or guesses.

A mention of the wanted value counts only if it is a plain claim. It does not count if

- it is denied: "not 5", "never cancelled", "no longer 5", "rather than 5", "5 is wrong"; or
  asked ("Is it 5?") or supposed ("if it were 5");
- it is a bound: "more than 5", "at least 5", "5 or more", "5+", "almost 5" ("about 5" counts);
- it is one of several: other values of its kind are joined to it by nothing but "or", "and",
  "to", commas, slashes, dashes, bullets or line ends ("5 or 6", "5, 6, 7", "5-6"), or by an
  "or" within four words; "4.5/5" and the like (out of 5, 10 or 100) are ratings;
- it is one guess of several: it and another value follow a word such as "maybe", "option";
- another value stands in the same words: "The answer is 5. The answer is 6."

Another value is one that was not asked for; equal values, and those of another unit (5 km or
3.1 miles), are none. An answer may thus restate the numbers of its question, but must not
leave open which of them it means.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from browseruse_bench.eval.wording import SKIPPED

Why = Literal["denied", "bound", "one of several", "guess", "contradicted"]


@dataclass(frozen=True)
class Mention:
    """A value of one kind in a normal text."""

    start: int
    end: int
    value: object
    """Equal exactly if the values are the same."""
    unit: str | None
    wanted: bool
    """Whether it is one of the values that were asked for."""
    number: float | None = None


_CLAUSE = re.compile(r"[.!?](?=\s|$)|[,;:\n\t()]|\b(?:but|although|though)\b", re.IGNORECASE)
_SENTENCE = re.compile(r"[.!?;](?=\s|$)|\n", re.IGNORECASE)
_DENIED = re.compile(
    r"\b(?:not(?! only\b)|never|neither|nor)\b(?:\W+\w+){0,3}\W*$"
    r"|\b(?:no|without|non|un|no longer|no more)\b\W*$"
    r"|\b(?:instead of|rather than|other than|except|excluding|failed to|unable to)\b(?:\W+\w+)?\W*$",
    re.IGNORECASE,
)
_DENIED_AFTER = re.compile(
    r"\W{0,3}(?:(?:is|was|are|were|seems|would be)\s+)?"
    r"(?:not\s+(?:the\s+)?(?:right|correct|answer|true|it)|wrong|incorrect|false)\b",
    re.IGNORECASE,
)
_SUPPOSED = re.compile(
    r"\b(?:(?:if|unless) (?:it|this|that|the (?:answer|result|value|price|total|number))"
    r"|(?:suppose|supposing|assuming|imagine)\b(?:\W+\w+){0,4})\W+"
    r"(?:were|was|is|are|be|been)\W+(?:(?:the|an?)\W+)?$",
    re.IGNORECASE,
)
_BOUND = re.compile(
    r"(?:\b(?:(?:more|less|fewer|greater|higher|lower|larger|smaller|longer|shorter) than"
    r"|over|under|above|below|exceeds|exceeding|at least|at most|up to|almost|nearly"
    r"|minimum of|maximum of|between)|[<>≤≥]=?)\s*$",
    re.IGNORECASE,
)
_BOUND_AFTER = re.compile(
    r"\+(?!\w)|\s+(?:\w+\s+)?(?:or|and) (?:more|less|fewer|above|over|higher|lower|under|below|up)\b",
    re.IGNORECASE,
)
_MAYBE = (
    r"either|maybe|perhaps|possibly|probably|likely|might be|could be|may be|guess|option"
    r"|candidate|alternatively|possibility"
)
_JOINT = re.compile(
    rf"(?:\s|[,;/|&~*•()-]|\.\.+|…|\b(?:or|and|to|then|also|even|{_MAYBE})\b)*", re.IGNORECASE
)
_OR = re.compile(r"\b(?:or|versus|vs|alternatively)\b", re.IGNORECASE)
_GUESS = re.compile(rf"\b(?:{_MAYBE}|not sure|unsure)\b(?:\W+\w+){{0,3}}\W*$", re.IGNORECASE)
_HEDGES = re.compile(rf"\b(?:{_MAYBE})\b", re.IGNORECASE)
_CLAIM = re.compile(r"\b(?:answer|result|final|guess|solution)\b", re.IGNORECASE)
_RATINGS = (5, 10, 100)
_QUOTES = " \"'”’»)"


def why_not(
    text: str, mentions: Sequence[Mention], place: int, *, listed: bool = False
) -> Why | None:
    """Why a mention does not count as a claim of its value; None if it does.

    Args:
        text: normal.
        mentions: all values of one kind in it, in order.
        place: which of them is asked about.
        listed: whether a list was asked for; then what is joined to a mention does not make
            it a guess.
    """
    mention = mentions[place]
    if denied(text, mention.start, mention.end):
        return "denied"
    if mention.number is not None and _bounded(text, mention):
        return "bound"
    if not listed and joined(text, mentions, place):
        return "one of several"
    others = [m for m in mentions if _rival(mention, m) and not denied(text, m.start, m.end)]
    if _guessed(text, mention) and any(_guessed(text, other) for other in others):
        return "guess"
    if any(_same_frame(text, mention, other) for other in others):
        return "contradicted"
    return None


def denied(text: str, start: int, end: int, *, question: bool = False) -> bool:
    """Whether the words around a place in a normal text deny, ask or suppose what stands there.

    Args:
        text: normal.
        start: where the place begins.
        end: where its last word ends.
        question: what stands there is a question itself: the mark behind it is its own.
    """
    clause = _clause(text, start)
    if _DENIED.search(clause) or _SUPPOSED.search(clause) or _DENIED_AFTER.match(text, end):
        return True
    stop = _SENTENCE.search(text, end)
    if stop is None or stop[0] != "?":
        return False
    if question and not text[end : stop.start()].strip(_QUOTES):
        return False
    # A question that is itself what is stated consists of nothing else.
    around = f"{text[sentence_start(text, start) : start]} {text[end : stop.start()]}"
    return bool(set(re.findall(r"\w+", around.casefold())) - SKIPPED)


def sentence_start(text: str, start: int) -> int:
    """Where the sentence or line of a place begins."""
    return _last(_SENTENCE, text, start)


def _last(boundary: re.Pattern[str], text: str, start: int) -> int:
    window = max(0, start - 300)
    ends = [window + found.end() for found in boundary.finditer(text[window:start])]
    return ends[-1] if ends else window


def _clause(text: str, start: int) -> str:
    return text[_last(_CLAUSE, text, start) : start]


def _bounded(text: str, mention: Mention) -> bool:
    before = text[max(0, mention.start - 40) : mention.start]
    return bool(_BOUND.search(before) or _BOUND_AFTER.match(text, mention.end))


def _rival(mention: Mention, other: Mention) -> bool:
    return not other.wanted and other.value != mention.value and other.unit == mention.unit


def joined(text: str, mentions: Sequence[Mention], place: int) -> list[Mention]:
    """The values beside a mention, unlike it and not asked for, that only joints part from it."""
    mention = mentions[place]
    found: list[Mention] = []
    for chain in (mentions[place:], mentions[place::-1]):
        for here, other in itertools.pairwise(chain):
            if not _tied(text, *sorted((here, other), key=lambda m: m.start)):
                break
            if not other.wanted and other.value != mention.value and _alike(mention, other):
                found.append(other)
    return found


def _alike(mention: Mention, other: Mention) -> bool:
    """Whether units are the same, or one of the two is left out, as in "5 or 6 km"."""
    units = {mention.unit, other.unit}
    return len(units) == 1 or (None in units and "%" not in units)


def _tied(text: str, left: Mention, right: Mention) -> bool:
    gap = text[left.end : right.start]
    if gap.strip() == "/" and right.number in _RATINGS:
        return False
    if _JOINT.fullmatch(gap):
        return True
    short = len(gap) < 60 and len(re.findall(r"\w+", gap)) <= 4
    return short and bool(_OR.search(gap)) and not re.search(r"[.!?\n]\s", gap)


def _guessed(text: str, mention: Mention) -> bool:
    start = sentence_start(text, mention.start)
    return bool(_GUESS.search(text[start : mention.start]))


def _frame(text: str, mention: Mention) -> tuple[str, str]:
    """The words before a mention in its sentence, and up to three behind it."""
    before = _HEDGES.sub(" ", text[sentence_start(text, mention.start) : mention.start])
    after = _SENTENCE.split(text[mention.end : mention.end + 80])[0]
    return (
        " ".join(re.findall(r"[^\W\d]\w*", before.casefold())[-6:]),
        " ".join(re.findall(r"\w+", after.casefold())[:3]),
    )


def _same_frame(text: str, mention: Mention, other: Mention) -> bool:
    before, after = _frame(text, mention)
    before_other, after_other = _frame(text, other)
    if before != before_other:
        return False
    return after == after_other or bool(_CLAIM.search(before))


_LIST = re.compile(r"[,;/|•\n\t]|\b(?:and|or|versus|vs)\b|(?<=\s)-(?=\s)", re.I)
_PARTS = re.compile(rf"{_LIST.pattern}|[.!?](?=\s|$)", re.I)
_LINES = re.compile(rf"{_LIST.pattern}|[.!?](?=[^\S\n]+\S)", re.I)
"""A stop at the end of a line is the line's own."""
_SHORT = re.compile(
    r"(?:\b[a-z]|\b(?:inc|corp|co|ltd|llc|jr|sr|st|dr|mr|mrs|ms|no|vs|etc|bros|ave|rd|blvd))\.$",
    re.IGNORECASE,
)
_HYPHENS = re.compile(r"(?<=[0-9])-(?=[0-9])")
_FILLER = re.compile(rf"\b(?:a|an|the|is|was|are|it|{_MAYBE}|answer|in|final|also)\b", re.I)
GUESSES = 3
"""From so many other members on, a bare list is a list of guesses."""
ASKED = "\x01"


def has_stops(value: str) -> bool:
    """Whether a value is several sentences, or so few words with a full stop that they are none;
    abbreviations, numbers of lines and marks of omission aside.
    """
    marks = [
        mark.end()
        for mark in re.finditer(r"(?<![.0-9])\.(?=\s|$)", value)
        if not _SHORT.search(value[: mark.end()])
    ]
    return bool(marks) and (marks[0] < len(value) or len(value.split()) <= GUESSES)


def is_sentence(value: str) -> bool:
    """Whether a value ends as a sentence does, and not with an abbreviation."""
    bare = value.rstrip(_QUOTES)
    return bare[-1:] in (".", "!", "?") and not _SHORT.search(bare)


def siblings(
    text: str, start: int, end: int, *, n_words: int, stops: bool = False, sentence: bool = False
) -> tuple[list[str], list[str]]:
    """Texts that stand beside a place as its alternatives, and as members of its list.

    Args:
        text: normal, with `ASKED` in the place of everything that was asked for.
        start: where the place begins.
        end: where it ends.
        n_words: the most words that a sibling has; a longer part is prose, and ends the list.
        stops: whether full stops are part of the members, so that they end no list.
        sentence: whether what stands there is a sentence: a sibling is one of its length.

    Returns:
        What was not asked for: (joined by "or" or a slash, joined by commas, "and", bullets or line ends).
    """
    alternatives: list[str] = []
    members: list[str] = []
    marks = _LIST if stops else _LINES if sentence else _PARTS
    least = n_words - 2 if sentence and not stops else 1
    for parts in (_behind(text, end, marks), _before(text, start, marks)):
        for mark, part in parts:
            if ASKED in part:
                continue
            # A number with hyphens (of a phone, an order) is one word.
            whole = _HYPHENS.sub("", _FILLER.sub(" ", part))
            found = re.findall(r"\w+", whole)
            if mark.strip() in (".", "!", "?") or not least <= len(found) <= n_words:
                break
            joined_by_or = mark.casefold() in ("or", "/", "|", "versus", "vs")
            (alternatives if joined_by_or else members).append(" ".join(found))
    return alternatives, members


Parts = list[tuple[str, str]]


def _behind(text: str, end: int, pattern: re.Pattern[str]) -> Parts:
    marks = list(pattern.finditer(text, end))[: 2 * GUESSES + 50]
    own = " \"')*" if pattern is _PARTS else " \"').*!?"
    if not marks or text[end : marks[0].start()].strip(own):
        return []
    ends = [mark.start() for mark in marks[1:]] + [len(text)]
    parts = [(m[0], text[m.end() : stop]) for m, stop in zip(marks, ends, strict=True)]
    return _merged(parts)


def _before(text: str, start: int, pattern: re.Pattern[str]) -> Parts:
    marks = list(pattern.finditer(text, 0, start))
    lead = text[marks[-1].end() : start] if marks else text[:start]
    if not marks or re.sub(r"\W", "", _FILLER.sub("", lead)):
        return []
    starts = [0] + [mark.end() for mark in marks[:-1]]
    parts = [(m[0], text[s : m.start()]) for s, m in zip(starts, marks, strict=True)]
    return _merged(parts[::-1])


def _merged(parts: Parts) -> Parts:
    """Take ", or" for "or": an empty part between two marks is none."""
    kept: Parts = []
    pending = ""
    for mark, part in parts:
        strongest = pending if pending.casefold() in ("or", "/", "|") else mark
        if part.strip(" -*•"):
            kept.append((strongest, part))
            pending = ""
        else:
            pending = pending or mark
    return kept
