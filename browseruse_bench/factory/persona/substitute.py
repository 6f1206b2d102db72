"""One pass over the original text: each target at its place, everything else as it was.

    substitute(text, [Replacement("Ann Delacroix", "Jane Harper", "NAME", "p1"), ...])

Longest first, one owner for each character, nothing that was put in is read again. Whatever is
not certain refuses the whole plan (`RefusedError`, with its `Refusal`); a part is never applied.
Messages of refusals hold kinds and counts, never the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from browseruse_bench.factory.persona.canonical import Canonical, canonical, is_cjk
from browseruse_bench.factory.persona.fit import E164, fitted, phone_numbers
from browseruse_bench.factory.persona.kinds import NUMBERS, SHORT_CUES, Kind

Refusal = Literal[
    "empty",
    "absent",
    "occurrence",
    "two_values",
    "two_people_one_value",
    "already_there",
    "ambiguous",
    "overlap",
    "derived_form",
    "residue",
    "invalid_value",
    "unlisted_initial",
    "short_form",
]


class RefusedError(Exception):
    """Nothing was replaced."""

    def __init__(self, refusal: Refusal, kind: Kind, detail: str = "") -> None:
        """Say why, without the text."""
        super().__init__(f"{refusal}: {kind}{': ' if detail else ''}{detail}")
        self.refusal: Refusal = refusal
        self.kind: Kind = kind


@dataclass(frozen=True)
class Replacement:
    """What is to stand in the place of one target."""

    target: str
    value: str
    kind: Kind
    person: str = ""
    occurrences: tuple[int, ...] | None = None
    """Which of its places, from 0 in the order of the text; None: all."""


@dataclass(frozen=True)
class Edit:
    """One place that was replaced."""

    start: int
    end: int
    """In the original."""
    new_start: int
    new_end: int
    """In the result."""
    old: str
    new: str
    kind: Kind
    person: str


@dataclass(frozen=True)
class Substituted:
    """A text with everything replaced."""

    text: str
    edits: tuple[Edit, ...]
    stayed: tuple[str, ...] = ()
    """Targets of which the plan left other places alone."""

    def original(self) -> str:
        """The text as it was, from the result and the edits alone."""
        out: list[str] = []
        at = 0
        for edit in self.edits:
            out += [self.text[at : edit.new_start], edit.old]
            at = edit.new_end
        return "".join([*out, self.text[at:]])


Span = tuple[int, int]
COMMON_WORDS = frozenset(
    Path(__file__).with_name("names_that_are_words.txt").read_text(encoding="utf-8").split()
)
"""Names that are words, months or brands as well: their places are named, or they are refused."""
_IDENTIFIER = re.compile(
    r"https?://\S+|www\.\S+|[^\s@<>(),;]+@[^\s@<>(),;]+|(?:[\w-]+\.)+[a-z]{2,}(?:/\S*)?",
    re.IGNORECASE,
)
_GAP = re.compile(r"[ .\-()/·]{0,3}")


def places(text: str, item: Replacement, region: str) -> list[Span]:
    """Everywhere that a target stands in a text, in order; offsets of the original.

    Raises:
        RefusedError: the target has no letter and no digit.
    """
    form = canonical(text)
    wanted = canonical(item.target)
    if not wanted.solid[0]:
        raise RefusedError("empty", item.kind)
    if item.kind not in NUMBERS:
        return list(_as_words(form, wanted))
    found = set(_as_digits(form, wanted))
    if item.kind == "PHONE":
        number = E164.of(item.target, region)
        if number:
            same = (p.span for p in phone_numbers(text, region) if p.e164 == number.e164)
            found |= {span for span in same if _stands_alone(text, span)}
    return _longest(found)


def _stands_alone(text: str, span: Span) -> bool:
    return not (text[: span[0]][-1:].isalnum() or text[span[1] :][:1].isalnum())


def _longest(spans: set[Span]) -> list[Span]:
    kept: list[Span] = []
    for start, end in sorted(spans, key=lambda span: (span[0] - span[1], span)):
        if all(end <= a or start >= b for a, b in kept):
            kept.append((start, end))
    return sorted(kept)


def _free(form: Canonical, start: int, end: int) -> bool:
    """Whether a part stands by itself: no letter or digit joins it, between CJK apart."""
    text = form.text
    for inside, outside in ((start, start - 1), (end - 1, end)):
        if not 0 <= outside < len(text) or not text[outside].isalnum():
            continue
        if not text[inside].isalnum() or is_cjk(text[inside]) or is_cjk(text[outside]):
            continue
        return False
    return True


def _as_words(form: Canonical, wanted: Canonical) -> Iterator[Span]:
    pattern = r" +".join(re.escape(word) for word in wanted.text.split())
    at = 0
    while match := re.compile(pattern).search(form.text, at):
        at = match.start() + 1
        place = form.place(match.start(), match.end())
        if place and _free(form, match.start(), match.end()):
            yield place
            at = match.end()


def _as_digits(form: Canonical, wanted: Canonical) -> Iterator[Span]:
    """Places with the same letters and digits, however they are grouped."""
    solid, at = form.solid
    plus = wanted.text.lstrip().startswith("+")
    size = len(wanted.solid[0])
    begin = solid.find(wanted.solid[0])
    while begin >= 0:
        inner = at[begin : begin + size]
        start, end = inner[0], inner[-1] + 1
        gaps = (form.text[a + 1 : b] for a, b in zip(inner, inner[1:], strict=False))
        whole = all(_GAP.fullmatch(gap) for gap in gaps)
        if whole and _free(form, start, end) and not _joined(form.text, start, end, size):
            for opening in ("+", "("):
                wants = plus if opening == "+" else form.text[start:end].count(")")
                if wants and start and form.text[start - 1] == opening:
                    start -= 1
            place = form.place(start, end)
            if place:
                yield place
        begin = solid.find(wanted.solid[0], begin + 1)


def _joined(text: str, start: int, end: int, size: int) -> bool:
    """Whether a number is a part of a longer one (1,417; 41.417), by its neighbours."""
    near = r"[.,:/\-]" if size <= 4 else r"[.,]"
    return bool(re.search(rf"\d{near}$", text[:start]) or re.match(rf"{near}\d", text[end:]))


def substitute(text: str, plan: Sequence[Replacement], *, region: str = "US") -> Substituted:
    """The text with the whole plan applied.

    Args:
        text: any text.
        plan: what is to be replaced; at least one for anything to happen.
        region: country whose numbers are written without a prefix (ISO 3166).

    Raises:
        RefusedError: any of it is absent, contradictory or not certain.
    """
    _check_values(text, plan, region)
    _check_forms(plan)
    chosen, stay = _chosen(text, plan, region)
    edits: list[Edit] = []
    out: list[str] = []
    at = shift = 0
    for (start, end), item in _owners(chosen):
        old = text[start:end]
        new = fitted(item.kind, old, item.value, region)
        if new is None:
            raise RefusedError("invalid_value", item.kind, "not in the form of the original")
        out += [text[at:start], new]
        edits.append(
            Edit(
                start,
                end,
                start + shift,
                start + shift + len(new),
                old,
                new,
                item.kind,
                item.person,
            )
        )
        shift += len(new) - len(old)
        at = end
    stayed = tuple(sorted({item.target for _, item in stay}))
    result = Substituted("".join([*out, text[at:]]), tuple(edits), stayed)
    _check_identifiers(text, result.edits)
    _check_initials(text, result.edits)
    _check_residue(result, plan, stay, region)
    return result


def _check_values(text: str, plan: Sequence[Replacement], region: str) -> None:
    by_target: dict[str, str] = {}
    by_value: dict[str, Replacement] = {}
    for item in plan:
        target, value = canonical(item.target).text, canonical(item.value).text
        if by_target.setdefault(target, value) != value:
            raise RefusedError("two_values", item.kind)
        other = by_value.setdefault(value, item)
        if other.person != item.person and canonical(other.target).text != target:
            raise RefusedError("two_people_one_value", item.kind)
        if not value.strip():
            raise RefusedError("empty", item.kind, "its replacement")
        there = Replacement(item.value, "", item.kind)
        if places(text, there, region):
            raise RefusedError("already_there", item.kind)


def _check_forms(plan: Sequence[Replacement]) -> None:
    """A word of somebody's name by itself becomes a word of what the whole name becomes, if no
    other name of its own person has it.
    """
    names = [
        (item, _words(item.target), _words(item.value)) for item in plan if item.kind == "NAME"
    ]
    for short, words, values in names:
        fulls = [f for f in names if len(words) == 1 < len(f[1]) and words[0] in f[1]]
        own = [f for f in fulls if f[0].person == short.person]
        if any(not set(values) <= set(new) for _, _, new in own or fulls):
            raise RefusedError("short_form", "NAME", "another name than its full form has")


def _words(name: str) -> list[str]:
    return canonical(name).text.replace(",", " ").split()


def _chosen(
    text: str, plan: Sequence[Replacement], region: str
) -> tuple[list[tuple[Span, Replacement]], list[tuple[Span, Replacement]]]:
    """The places to be replaced, and those of the same targets that the plan leaves alone."""
    chosen: list[tuple[Span, Replacement]] = []
    stay: list[tuple[Span, Replacement]] = []
    for item in plan:
        found = places(text, item, region)
        if not found:
            raise RefusedError("absent", item.kind)
        wanted = _wanted(text, item, found)
        for index, span in enumerate(found):
            (chosen if index in wanted else stay).append((span, item))
    taken = {span for span, _ in chosen}
    return chosen, [(span, item) for span, item in stay if span not in taken]


def _wanted(text: str, item: Replacement, found: list[Span]) -> set[int]:
    if item.occurrences is not None:
        if not item.occurrences or not set(item.occurrences) <= set(range(len(found))):
            raise RefusedError("occurrence", item.kind, f"of {len(found)}")
        return set(item.occurrences)
    if item.kind in NUMBERS and len(canonical(item.target).solid[0]) <= 4:
        cue = SHORT_CUES.get(item.kind)
        cued = {
            index
            for index, (start, _) in enumerate(found)
            if cue and cue.search(text[max(0, start - 30) : start])
        }
        if not cued:
            raise RefusedError("ambiguous", item.kind, "a short number without a cue")
        return cued
    word = canonical(item.target).text
    if item.kind == "NAME" and word in COMMON_WORDS and len(found) > 1:
        raise RefusedError("ambiguous", item.kind, "a name that is a word as well")
    return set(range(len(found)))


def _owners(chosen: list[tuple[Span, Replacement]]) -> list[tuple[Span, Replacement]]:
    """Each character has one owner: the longest target over it."""
    owned: list[tuple[Span, Replacement]] = []
    for (start, end), item in sorted(chosen, key=lambda c: (c[0][0] - c[0][1], c[0][0])):
        over = [span for span, _ in owned if start < span[1] and end > span[0]]
        if not over:
            owned.append(((start, end), item))
        elif not any(a <= start and end <= b for a, b in over):
            raise RefusedError("overlap", item.kind)
    return sorted(owned, key=lambda owner: owner[0])


def _check_identifiers(text: str, edits: Sequence[Edit]) -> None:
    """A name within an address is no name: the address is a target of its own, or all stops."""
    for match in _IDENTIFIER.finditer(text):
        for edit in edits:
            inside = match.start() <= edit.start and edit.end <= match.end()
            if edit.kind == "NAME" and inside and edit.end - edit.start < len(match.group()):
                raise RefusedError("derived_form", "NAME", "within an address")


_INITIAL = re.compile(r"(?<!\w)(?!I\b)[A-Z]\.?\s?$")


def _check_initials(text: str, edits: Sequence[Edit]) -> None:
    """`A. Delacroix`: an initial that no target names would stay beside another family name."""
    ends = {edit.end for edit in edits if edit.kind == "NAME"}
    for edit in edits:
        if edit.kind != "NAME":
            continue
        before = _INITIAL.search(text[max(0, edit.start - 4) : edit.start])
        if before and "." in before.group() and edit.start - len(before.group()) not in ends:
            raise RefusedError("unlisted_initial", "NAME")
        after = re.match(r"\s[A-Z]\.(?!\w)", text[edit.end :])
        if after and edit.end + 1 not in {other.start for other in edits}:
            raise RefusedError("unlisted_initial", "NAME")


def _check_residue(
    result: Substituted,
    plan: Sequence[Replacement],
    stay: list[tuple[Span, Replacement]],
    region: str,
) -> None:
    """Nothing of any target is left, but at the places that the plan leaves alone."""
    for item in plan:
        left = {_moved(span, result.edits) for span, other in stay if other is item}
        if set(places(result.text, item, region)) - left:
            raise RefusedError("residue", item.kind)
    exempt = {item.target for _, item in stay}
    words = [e.old for e in result.edits if e.kind == "NAME" and e.old not in exempt]
    forms = {form for word in {*words} for form in derived_forms(word)}
    text = canonical(result.text).text
    new = {canonical(edit.new).text for edit in result.edits}
    for match in re.finditer(r"[\w.@+/-]+", text):
        token = re.sub(r"[\W_]", "", match.group())
        parts = set(re.split(r"[@/]", match.group()))
        made = any(form in token if len(form) >= _SURE else form in parts for form in forms)
        if made and match.group() not in new:
            raise RefusedError("derived_form", "NAME", "joined to one word")


_SURE = 5
"""Letters from which on a form of a name is no part of another word by chance."""


def derived_forms(name: str) -> set[str]:
    """User names and slugs that are made of a name: anndelacroix, delacroixann, adelacroix."""
    words = [re.sub(r"[\W_]", "", word) for word in canonical(name).text.split()]
    words = [word for word in words if word]
    if len(words) < 2:
        return set()
    first, last = words[0], words[-1]
    forms = {first + last, last + first, first[0] + last, last + first[0], first + last[0]}
    return {form for form in forms if len(form) >= _SURE - 1}


def _moved(span: Span, edits: Sequence[Edit]) -> Span:
    shift = sum(
        (edit.new_end - edit.new_start) - (edit.end - edit.start)
        for edit in edits
        if edit.end <= span[0]
    )
    return span[0] + shift, span[1] + shift
