"""The one matcher: whether an answer states an expected result. It serves every grader.

**What is expected** is one value, or a list of values that are all wanted. A value "a |OR| b"
is stated if one of its alternatives is (`wording.alternatives`). The form of a value decides
how it is looked for:

| value | looked for as |
|---|---|
| a number, or text that is wholly one (`1,234.50`, `$1,299`, `5 km`, `12%`) | a whole number of the same value (`quantities`); where both state a unit or currency it is the same; nothing is converted or rounded |
| text that is wholly a date (`2026-05-03`, `May 3, 2026`) | the same day (`dates`); a year may be left out |
| `http://…`, `https://…` | the same address by components (`addresses.same`) |
| `yes`, `no`, `true`, `false` | that word at the beginning of a sentence or line or after "answer:", without the opposite |
| any other text | the same words one after the other: whole words, in any case and spelling (`wording`), articles and forms of "is" aside |
| such text with `: `, `, `, `; ` or a line end in it | as above, or each of its parts by its own form; parts around a colon stand in one sentence |

An identifier such as `007` (leading zeros) is text. A mention counts only if the answer claims
it: what is denied, bounded, guessed or one of several does not (`claims`), nor what a reader is
not told or what the answer takes back (`said`). For a text, "one of
several" means that another short text is joined to it by "or" or a slash, or that it is one
of a bare list with three or more others.

**Share and holds.** One value: 1 or 0; text in parts: the share of parts that are stated. A
list: the share of its values that are stated, in any order, over its length plus the extras:
other values of the same kind that are joined to a found one in the same enumeration (texts of
more words than the longest expected one are prose, not extras). `holds` means a share of 1.
An answer that is missing or blank has share 0. What an answer says beside that does not count.

`VERSION` is part of the key of every verdict. It goes up with each change that can change a
share, a `holds`, or what corroborates, of any answer; never for a change of `details`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import Any, Literal

from browseruse_bench.eval import addresses, claims, said
from browseruse_bench.eval.claims import Mention
from browseruse_bench.eval.dates import Dated, dates, states
from browseruse_bench.eval.quantities import Quantity, quantities
from browseruse_bench.eval.wording import (
    Word,
    alternatives,
    find_phrase,
    normal,
    phrase,
    words,
)

VERSION = "6"

LEAD = 6
"""So many words at most stand between "the answer is" and the value that it is about."""

Value = str | int | float
Kind = Literal["number", "date", "text", "list"]
Form = Literal["number", "date", "address", "polar", "text"]


@dataclass(frozen=True)
class Match:
    """How far an answer states what is expected."""

    share: float
    """0..1."""
    holds: bool
    """Whether all of it is stated, and nothing that speaks against it."""
    details: dict[str, Any] = field(default_factory=dict[str, Any])
    """Plain JSON: `found`, `missing` (value -> why its mentions do not count), `extras`."""


@dataclass(frozen=True)
class Target:
    """One way to state a value."""

    form: Form
    text: str
    quantity: Quantity | None = None
    tolerance: Decimal = Decimal(0)
    date: Dated | None = None
    phrase: tuple[str, ...] = ()
    parts: tuple[Target, ...] = ()
    """What a text consists of, if it can also be stated in parts."""
    together: bool = False
    """Whether the parts stand in one sentence."""

    @property
    def is_question(self) -> bool:
        """Whether the value is a question itself."""
        return self.text.rstrip(" \"'”’").endswith("?")


class Read:
    """A text, read once: what it mentions, of each form."""

    def __init__(self, text: str) -> None:
        """Bring the text into normal form; the rest is read when it is asked for."""
        self.text = normal(text)

    @cached_property
    def words(self) -> list[Word]:
        """Its words."""
        return list(words(self.text))

    @cached_property
    def addresses(self) -> list[tuple[int, int, str]]:
        """Its web addresses, with their places."""
        return addresses.in_text(self.text)

    @cached_property
    def dates(self) -> list[Dated]:
        """Its dates."""
        return dates(_blanked(self.text, [(s, e) for s, e, _ in self.addresses]))

    @cached_property
    def quantities(self) -> list[Quantity]:
        """Its numbers, without those in addresses and dates and those that count lines."""
        spans = [(s, e) for s, e, _ in self.addresses] + [(d.start, d.end) for d in self.dates]
        return list(quantities(_blanked(self.text, spans + _line_numbers(self.text))))


def _blanked(text: str, spans: Sequence[tuple[int, int]]) -> str:
    pieces: list[str] = []
    at = 0
    for start, end in sorted(spans):
        if start >= at:
            pieces += [text[at:start], "\x00" * (end - start)]
            at = end
    return "".join([*pieces, text[at:]])


_LINE_NUMBER = re.compile(r"^[ \t]*([0-9]{1,3})[.)](?=\s)", re.MULTILINE)


def _line_numbers(text: str) -> list[tuple[int, int]]:
    found = list(_LINE_NUMBER.finditer(text))
    numbered = [int(f[1]) for f in found] == list(range(1, len(found) + 1))
    return [f.span(1) for f in found] if numbered and len(found) > 1 else []


def target_of(value: Value, *, kind: Kind | None = None, tolerance: float = 0) -> Target:
    """How one value (without alternatives) is looked for.

    Args:
        value: a number or a text that is not blank.
        kind: number and date fix the form; None and list let the value decide; text does so
            only for addresses and for numbers with a unit, and takes the rest as words.
        tolerance: for numbers, absolute and in the value's own unit.

    Raises:
        ValueError: the value is blank, or it is not of the kind.
    """
    text = str(value).strip()
    if isinstance(value, bool) or not text:
        raise ValueError(f"{value!r} is not a value to look for")
    read = Read(text)
    if not isinstance(value, str) or kind == "number":
        return _number(read, text, tolerance)
    if kind == "date":
        if not (whole := _whole_date(read)):
            raise ValueError(f"'{text}' is not a date")
        return Target("date", text, date=whole)
    quantity = _whole_quantity(read)
    if quantity is not None and (quantity.unit or kind != "text") and not _LEADING_ZERO.match(text):
        return Target("number", text, quantity, Decimal(str(tolerance)))
    if kind != "text" and (whole := _whole_date(read)):
        return Target("date", text, date=whole)
    if addresses.parse(text) and not re.search(r"\s", text):
        return Target("address", text)
    return _text(read, text)


_LEADING_ZERO = re.compile(r"0[0-9]")


def _number(read: Read, text: str, tolerance: float) -> Target:
    quantity = _whole_quantity(read)
    if quantity is None:
        raise ValueError(f"'{text}' is not a number")
    return Target("number", text, quantity, Decimal(str(tolerance)))


def _whole_quantity(read: Read) -> Quantity | None:
    found = read.quantities
    whole = len(found) == 1 and (found[0].start, found[0].end) == (0, len(read.text))
    return found[0] if whole else None


def _whole_date(read: Read) -> Dated | None:
    found = read.dates
    whole = len(found) == 1 and (found[0].start, found[0].end) == (0, len(read.text))
    return found[0] if whole else None


_POLAR = {"yes": "no", "no": "yes", "true": "false", "false": "true"}
_PART = re.compile(r"[;\n\t]|[,:](?=\s)")


def _text(read: Read, text: str) -> Target:
    if text.casefold() in _POLAR:
        return Target("polar", text.casefold())
    wanted = phrase(text)
    if not wanted:
        raise ValueError(f"'{text}' has no word to look for")
    pieces = [p.strip() for p in _PART.split(read.text) if phrase(p)]
    parts = tuple(target_of(p) for p in pieces) if len(pieces) > 1 else ()
    together = bool(re.search(r":\s", read.text))
    return Target("text", text, phrase=wanted, parts=parts, together=together)


def _quantity_fits(target: Target, found: Quantity) -> bool:
    wanted = target.quantity
    if wanted is None:
        return False
    if wanted.unit and found.unit and wanted.unit != found.unit:
        return False
    return abs(wanted.value - found.value) <= target.tolerance


def places(target: Target, read: Read) -> list[tuple[int, int]]:
    """Where a text mentions a value, claimed or not, as (start, end) in its normal form."""
    if target.form == "number":
        return [(q.start, q.end) for q in read.quantities if _quantity_fits(target, q)]
    if target.form == "date":
        wanted = target.date
        return [(d.start, d.end) for d in read.dates if wanted and states(wanted, d)]
    if target.form == "address":
        return [(s, e) for s, e, url in read.addresses if addresses.same(target.text, url)]
    return list(find_phrase(target.phrase or (target.text,), read.words))


@dataclass(frozen=True, eq=False)
class _Search:
    """An answer, and everything that was asked for, so that no wanted value is a rival."""

    read: Read
    targets: tuple[Target, ...]
    listed: bool
    also: tuple[Target, ...] = ()
    """What else is wanted of the answer, by others."""

    def mentions(self, form: Form) -> list[Mention]:
        """All values of one form in the answer."""
        if form == "number":
            return [
                Mention(q.start, q.end, q.value, q.unit, self._wanted(q), float(q.value))
                for q in self.read.quantities
            ]
        if form == "date":
            found = [(d.start, d.end, d.readings) for d in self.read.dates]
        else:
            found = [(s, e, addresses.parse(url) or url) for s, e, url in self.read.addresses]
        wanted = {p for t in self.targets if t.form == form for p in places(t, self.read)}
        return [Mention(s, e, value, None, (s, e) in wanted) for s, e, value in found]

    def _wanted(self, quantity: Quantity) -> bool:
        return any(_quantity_fits(target, quantity) for target in self.targets)

    def claimed(self, target: Target) -> tuple[list[tuple[int, int]], str]:
        """The places where a value is claimed, and else why its mentions do not count."""
        if target.form == "polar":
            return _polar(target.text, self.read.text)
        found = self._claimed_text if target.form == "text" else self._claimed_value
        spans, why = found(target)
        good = [span for span in spans if not self._taken_back(target, span)]
        return good, "taken back" if spans and not good else why

    def _taken_back(self, target: Target, span: tuple[int, int]) -> bool:
        """Whether the answer itself takes back what it says at a place."""
        if any(start <= span[0] and span[1] <= end for start, end in self._retracted):
            return True
        if target.form == "text":
            if self._is_rivalled(target, span):
                return True
            final = self._final
            if final is None or span[0] >= final:
                return False
            rest = self.read.text[final:]
            # Several lines answer several questions: each may be as long as the longest value.
            many = (*self.targets, *self.also) if rest.strip().count("\n") else (target,)
            return said.are_short(rest, max(len(t.phrase) for t in many) + 2)
        return self._is_overruled(target, span)

    def _is_rivalled(self, target: Target, span: tuple[int, int]) -> bool:
        """Whether the line of a mention calls something else of its length the answer."""
        text = self.read.text
        first, last = text.rfind("\n", 0, span[0]) + 1, text.find("\n", span[1])
        last = len(text) if last < 0 else last
        for start in (start for start in self._last_words if first <= start < last):
            stop = re.compile(r"[.!?;](?=\s|$)").search(text, start, last)
            end = stop.start() if stop else last
            said_there = Read(text[start:end])
            short = said.are_short(said_there.text, len(target.phrase) + 2)
            wanted = any(places(t, said_there) for t in (*self.targets, *self.also))
            if short and not wanted:
                return True
        return False

    def _is_overruled(self, target: Target, span: tuple[int, int]) -> bool:
        """Whether "the answer is" stands behind a mention, and before another value."""
        mentions = self.mentions(target.form)
        unit = next((m.unit for m in mentions if (m.start, m.end) == span), None)
        for start in (start for start in self._last_words if start > span[0]):
            there = (m for m in mentions if m.start >= start and m.unit in (unit, None))
            first = next(there, None)
            if first is None or len(self.read.text[start : first.start].split()) > LEAD:
                continue
            if not (first.wanted or self._also_wanted(first.start, first.end)):
                return not any(place[0] >= start for place in places(target, self.read))
        return False

    def _also_wanted(self, start: int, end: int) -> bool:
        return any((start, end) in places(target, self.read) for target in self.also)

    @cached_property
    def _last_words(self) -> list[int]:
        return said.last_words(self.read.text)

    @cached_property
    def _retracted(self) -> list[tuple[int, int]]:
        return said.retracted(self.read.text)

    @cached_property
    def _final(self) -> int | None:
        """Where the last word of the answer begins, if nothing that is wanted stands in it."""
        if not self._last_words:
            return None
        final = self._last_words[-1]
        rest = Read(self.read.text[final:])
        return None if any(places(t, rest) for t in (*self.targets, *self.also)) else final

    def _claimed_value(self, target: Target) -> tuple[list[tuple[int, int]], str]:
        mentions = self.mentions(target.form)
        spans = [(m.start, m.end) for m in mentions]
        good: list[tuple[int, int]] = []
        why = "not stated"
        for span in places(target, self.read):
            fault = claims.why_not(self.read.text, mentions, spans.index(span), listed=self.listed)
            if fault is None:
                good.append(span)
            why = fault or why
        return good, why

    def _claimed_text(self, target: Target) -> tuple[list[tuple[int, int]], str]:
        good: list[tuple[int, int]] = []
        why = "not stated"
        for start, end in places(target, self.read):
            if self._inside_longer(target, start, end) or self._is_parameter(start, end):
                continue
            if claims.denied(self.read.text, start, end, question=target.is_question):
                why = "denied"
            elif not self.listed and self._one_of_several(target, start, end):
                why = "one of several"
            else:
                good.append((start, end))
        return good, why

    def _is_parameter(self, start: int, end: int) -> bool:
        """Whether a place is within the parameters or the fragment of an address."""
        for first, last, url in self.read.addresses:
            if first <= start and end <= last:
                return bool(re.search(r"[?#]", url[: start - first]))
        return False

    def _inside_longer(self, target: Target, start: int, end: int) -> bool:
        """Whether a place only is part of a longer text that is wanted too."""
        return any(
            s <= start and end <= e and len(other.phrase) > len(target.phrase)
            for other in self.targets
            if other.form == "text" and target not in other.parts
            for s, e in places(other, self.read)
        )

    def _one_of_several(self, target: Target, start: int, end: int) -> bool:
        n_words, stops = len(target.phrase) + 1, claims.has_stops(target.text)
        either, members = claims.siblings(
            self.masked,
            start,
            end,
            n_words=n_words,
            stops=stops,
            sentence=claims.is_sentence(target.text),
        )
        return bool(either) or len(set(members)) >= claims.GUESSES

    @cached_property
    def masked(self) -> str:
        """The answer with a mark in the place of everything that was asked for."""
        text = self.read.text
        for target in (*self.targets, *self.also):
            for start, end in places(target, self.read):
                text = text[:start] + claims.ASKED * (end - start) + text[end:]
        return text

    def extras(self, target: Target, found: Sequence[tuple[int, int]]) -> set[str]:
        """What stands in one enumeration with a value and was not asked for."""
        text = self.read.text
        if target.form in ("number", "date", "address"):
            mentions = self.mentions(target.form)
            spans = [(m.start, m.end) for m in mentions]
            return {
                text[m.start : m.end].strip()
                for span in found
                for m in claims.joined(text, mentions, spans.index(span))
            }
        n_words = max((len(t.phrase) for t in self.targets), default=1)
        beside = [claims.siblings(self.masked, s, e, n_words=n_words) for s, e in found]
        return {sibling for pair in beside for part in pair for sibling in part}


def _polar(wanted: str, text: str) -> tuple[list[tuple[int, int]], str]:
    said = [
        found
        for found in re.finditer(
            r"(?:^|[.!?\n]\s*|\b(?:answer|result)(?: is)?\W+)\W*(yes|no|true|false)\b(?!\.\s*[0-9])",
            text,
            re.IGNORECASE,
        )
    ]
    spans = [found.span(1) for found in said if found[1].casefold() == wanted]
    if any(found[1].casefold() == _POLAR[wanted] for found in said):
        return [], "contradicted"
    return spans, "not stated"


@dataclass(frozen=True)
class _Found:
    share: float
    target: Target | None
    spans: tuple[tuple[int, int], ...] = ()
    why: str = ""


def _look_for(search: _Search, options: tuple[Target, ...]) -> _Found:
    """The best of a value's alternatives."""
    best = _Found(0, None, why="not stated")
    for target in options:
        spans, why = search.claimed(target)
        if spans:
            return _Found(1, target, tuple(spans))
        if why != "not stated":
            best = _Found(best.share, best.target, best.spans, why)
        elif target.parts and (share := _in_parts(search, target)) > best.share:
            best = _Found(share, target, (), "" if share == 1 else "only in part")
    return best


def _in_parts(search: _Search, target: Target) -> float:
    spans = [search.claimed(part)[0] for part in target.parts]
    stated = sum(bool(part) for part in spans) / len(spans)
    if stated < 1 or not target.together:
        return stated
    text = search.read.text
    shared = {claims.sentence_start(text, start) for start, _ in spans[0]}
    for part in spans[1:]:
        shared &= {claims.sentence_start(text, start) for start, _ in part}
    return 1 if shared else 1 / len(spans)


def options_of(
    value: Value, *, kind: Kind | None = None, tolerance: float = 0
) -> tuple[Target, ...]:
    """The ways to state a value: one per alternative.

    Raises:
        ValueError: the value, or an alternative, is blank or not of the kind.
    """
    texts: tuple[Value, ...] = alternatives(value) if isinstance(value, str) else (value,)
    if not texts:
        raise ValueError(f"{value!r} is not a value to look for")
    return tuple(target_of(text, kind=kind, tolerance=tolerance) for text in texts)


def match(expected: Value | Sequence[Value], answer: str | None) -> Match:
    """How far an answer states an expected result; see the module.

    Args:
        expected: one value, or a list of values that are all wanted.
        answer: the agent's final answer; None if it gave none.

    Raises:
        ValueError: nothing is expected: an empty list or a blank text.
    """
    if isinstance(expected, (str, int, float)):
        return state((expected,), answer, kind=None)
    return state(expected, answer, kind="list")


def state(
    values: Sequence[Value],
    answer: str | None,
    *,
    kind: Kind | None,
    tolerance: float = 0,
    also: Sequence[Value] = (),
) -> Match:
    """How far an answer states all of several values.

    Args:
        values: what it must state; at least one.
        answer: the agent's final answer.
        kind: as in `target_of`. None: each value decides. list:
            each value decides, and extras count against the answer.
        tolerance: for numbers.
        also: what else is wanted of the same answer; a last word that states it takes nothing
            of the rest back.

    Raises:
        ValueError: no value, or one that is blank or not of the kind.
    """
    if not values:
        raise ValueError("nothing is expected")
    elements = [options_of(value, kind=kind, tolerance=tolerance) for value in values]
    listed = kind == "list"
    every = tuple(t for options in elements for t in _with_parts(options))
    others = tuple(t for value in also for t in options_of(value))
    search = _Search(Read(said.told(answer or "")), every, listed, others)
    found = [_look_for(search, options) for options in elements]
    extras: set[str] = set()
    if listed:
        for one in found:
            if one.target is not None and one.spans:
                extras |= search.extras(one.target, one.spans)
    share = sum(one.share for one in found) / (len(values) + len(extras))
    pairs = list(zip(values, found, strict=True))
    details = {
        "found": [str(value) for value, one in pairs if one.share == 1],
        "missing": {str(value): one.why for value, one in pairs if one.share < 1},
        "extras": sorted(extras),
    }
    return Match(share, share == 1, details)


def _with_parts(options: tuple[Target, ...]) -> tuple[Target, ...]:
    return (*options, *(part for option in options for part in option.parts))
