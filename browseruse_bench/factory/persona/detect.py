"""Candidates for personal data, found without a model: check digits, phone plans, shapes, cues.

It certifies nothing. It misses names that no cue introduces, and it cannot tell a private person
from a public one: that is the model's part, whose plan must account for everything found here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from browseruse_bench.factory.persona import shapes
from browseruse_bench.factory.persona.kinds import Kind
from browseruse_bench.factory.personas import SCHEMES


@dataclass(frozen=True, order=True)
class Hit:
    """One candidate, at its place in the original."""

    start: int
    end: int
    kind: Kind
    sure: bool
    """By check digits or an unmistakable shape, not by the words around it."""


def detect(text: str, country: str = "US") -> tuple[Hit, ...]:
    """Candidates in order, none within another one's place.

    Args:
        text: any text.
        country: whose phone numbers are written without a prefix.
    """
    found = [*_shaped(text), *_cued(text), *_ids(text), *_phones(text, country)]
    kept: list[Hit] = []
    for hit in sorted(found, key=lambda hit: (hit.start - hit.end, not hit.sure, hit.start)):
        if not any(hit.start < other.end and hit.end > other.start for other in kept):
            kept.append(hit)
    for hit in _names(text):
        if not any(hit.start < other.end and hit.end > other.start for other in kept):
            kept.append(hit)
    kept += _again(text, kept)
    return tuple(sorted(kept))


def _shaped(text: str) -> Iterator[Hit]:
    from stdnum import iban, luhn

    for match in shapes.EMAIL.finditer(text):
        yield Hit(*match.span(), "EMAIL", True)
    for match in shapes.IBAN.finditer(text):
        value = match.group()
        while value and not iban.is_valid(value, check_country=False):
            value = value.rpartition(" ")[0]
        if value:
            yield Hit(match.start(), match.start() + len(value), "IBAN", True)
    for match in shapes.CARD.finditer(text):
        digits = re.sub(r"\D", "", match.group())
        if digits[0] in "3456" and luhn.is_valid(digits):
            yield Hit(*match.span(), "CARD", True)
    for pattern in shapes.ADDRESSES:
        for match in pattern.finditer(text):
            yield Hit(
                match.start(), match.start() + len(match.group().rstrip(" ,.")), "ADDRESS", False
            )


def _cued(text: str) -> Iterator[Hit]:
    for kind, pattern in shapes.SHAPED:
        for match in pattern.finditer(text):
            yield Hit(*match.span(1), kind, kind in ("IP", "VIN"))
    for kind, pattern in shapes.CUED:
        for match in pattern.finditer(text):
            start, end = match.span(1)
            while end > start and text[end - 1] in (".," if kind == "PASSWORD" else ".,;:)"):
                end -= 1
            yield Hit(start, end, kind, False)


_TOKEN = re.compile(r"[A-Za-z0-9]+(?:[.\-/][A-Za-z0-9]+)*")
_TELLING = frozenset({"codicefiscale", "curp", "cpf", "nir", "dni", "nie", "pan"})
"""Long or lettered enough to be told without a cue."""


def _ids(text: str) -> Iterator[Hit]:
    tokens = [match.span() for match in _TOKEN.finditer(text)]
    for index, (start, _) in enumerate(tokens):
        for width in range(min(7, len(tokens) - index)):
            end = tokens[index + width][1]
            if width and text[tokens[index + width - 1][1] : tokens[index + width][0]] != " ":
                break
            value = text[start:end]
            size = sum(char.isalnum() for char in value)
            if size > 18:
                break
            if size >= 8 and any(char.isdigit() for char in value):
                yield from _as_id(text, start, end)


def _as_id(text: str, start: int, end: int) -> Iterator[Hit]:
    value = text[start:end]
    for scheme, is_valid in SCHEMES.items():
        cue = shapes.ID_CUES[scheme]
        cued = cue.search(text[max(0, start - 40) : start]) is not None
        telling = scheme in _TELLING and (value == value.upper())
        if (cued or telling) and _checked(is_valid, value):
            yield Hit(start, end, "NATIONAL_ID", True)


def _checked(is_valid: Callable[[str], bool], value: str) -> bool:
    return is_valid(value) and not re.fullmatch(r"(\d)\1+", re.sub(r"\W", "", value))


def _phones(text: str, country: str) -> Iterator[Hit]:
    import phonenumbers

    leniency = phonenumbers.Leniency
    for region, lenient in ((country, leniency.POSSIBLE), ("US", leniency.VALID)):
        for match in phonenumbers.PhoneNumberMatcher(text, region, leniency=lenient):
            before = text[max(0, match.start - 24) : match.start]
            if shapes.NO_PHONE.search(before) or shapes.LIKE_A_DATE.fullmatch(match.raw_string):
                continue
            valid = phonenumbers.is_valid_number(match.number)
            if valid and not (
                region == "US" != country and not shapes.GROUPED.search(match.raw_string)
            ):
                plain = match.raw_string.isdigit() and not shapes.PHONE_CUE.search(before)
                if not plain:
                    yield Hit(match.start, match.end, "PHONE", True)
            elif shapes.PHONE_CUE.search(before) or shapes.TRUNK.match(match.raw_string):
                yield Hit(match.start, match.end, "PHONE", False)


def _names(text: str) -> Iterator[Hit]:
    for pattern in shapes.NAMES:
        for match in pattern.finditer(text):
            value = re.sub(r"(?:['’]s|(?<=\w\w)[.\-]+)$", "", match.group(1))
            words = value.split()
            while words and words[0].casefold() in shapes.NO_NAMES:
                words = []
            if words:
                yield Hit(match.start(1), match.start(1) + len(value), "NAME", False)


def _again(text: str, hits: list[Hit]) -> list[Hit]:
    """Every further mention of a name that was found, as a whole word."""
    words = {
        word
        for hit in hits
        if hit.kind == "NAME"
        for word in re.findall(r"[^\W\d_]{3,}", text[hit.start : hit.end])
    }
    found: list[Hit] = []
    for word in sorted(words - shapes.PARTICLES):
        for match in re.finditer(rf"(?<![\w@/.]){re.escape(word)}(?![\w@/])", text, re.IGNORECASE):
            taken = [*hits, *found]
            product = re.match(r"[ \-](?:[A-Z]?\d|Benz)", text[match.end() : match.end() + 6])
            if not product and not any(
                match.start() < h.end and match.end() > h.start for h in taken
            ):
                found.append(Hit(*match.span(), "NAME", False))
    return found
