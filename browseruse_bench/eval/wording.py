"""Text as the graders compare it: what looks the same is the same, and words are whole."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

from browseruse_bench.records.rubric import MARKER

_LOOKS_LIKE = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u00b4`", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d", "-"),
        "\u2044": "/",
        "\r": "\n",
        "\u2028": "\n",
        "\u2029": "\n",
    }
)
_IDEOGRAPH = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]")
_SPACES = re.compile(r"[^\S\n\t]+")
_NOT = re.compile(r"\b(?:ca|wo)?n't\b|(?<=[a-z])n't\b|\bcannot\b", re.IGNORECASE)


def normal(text: str) -> str:
    """NFKC, without invisible characters, with plain quotes and hyphens and single spaces.

    Line ends and tabs stay, because they separate cells and items; letters keep their case.
    Ideographs and kana become words of one character each. "isn't" becomes "is not".
    """
    text = unicodedata.normalize("NFKC", text).translate(_LOOKS_LIKE)
    if not text.isascii():
        text = "".join(c for c in text if unicodedata.category(c) != "Cf")
        text = _IDEOGRAPH.sub(r" \g<0> ", text)
    return _SPACES.sub(" ", _NOT.sub(" not", text))


def alternatives(reference: str) -> tuple[str, ...]:
    """The texts of a reference "a |OR| b", of which any one is right.

    This is the one parser of the marker: every check and every matcher that takes a
    reference calls it. Empty alternatives are left out.
    """
    parts = (part.strip() for part in reference.split(MARKER))
    return tuple(part for part in parts if part)


class Word(NamedTuple):
    """One word or number of a normal text."""

    word: str
    """In canonical form: case folded, American spelling, digits without group marks."""
    start: int
    end: int


_WORD = re.compile(
    r"(?:(?<![\w.)])-(?=[0-9]))?[0-9]+(?:[.,:/'-][0-9]+)*(?:%|\w*)|[^\W0-9]\w*[+#]*|\w+"
)
_GROUPED = re.compile(r"-?[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?%?")


def words(text: str) -> Iterator[Word]:
    """The words of a normal text. A number is one word: "10.5" does not hold "10"."""
    for found in _WORD.finditer(text):
        yield Word(canonical(found[0]), found.start(), found.end())


_SPELLINGS = {
    "catalogue": "catalog",
    "dialogue": "dialog",
    "analogue": "analog",
    "grey": "gray",
    "programme": "program",
    "programmes": "programs",
    "jewellery": "jewelry",
    "aluminium": "aluminum",
    "judgement": "judgment",
    "enrol": "enroll",
    "fulfil": "fulfill",
    "licence": "license",
    "defence": "defense",
    "offence": "offense",
    "ageing": "aging",
    "mould": "mold",
    "plough": "plow",
    "theatre": "theater",
    "centre": "center",
    "metre": "meter",
    "litre": "liter",
    "fibre": "fiber",
    "theatres": "theaters",
    "centres": "centers",
    "metres": "meters",
    "litres": "liters",
    "fibres": "fibers",
    "kilometre": "kilometer",
    "kilometres": "kilometers",
    "centimetre": "centimeter",
    "centimetres": "centimeters",
}
_OUR = re.compile(
    r"(col|fav|behavi|hon|lab|neighb|flav|harb|hum|rum|sav|vap|od|arm|endeav)our(?=\w*$)"
)
_ISE = re.compile(r"(?<=\w{3})[iy]s(?=(?:e|ed|es|er|ers|ing|ation|ations)$)")
_DOUBLE_L = re.compile(r"(?<=\w{2}[aeiou])ll(?=(?:ed|ing|er|ers)$)")


@functools.lru_cache(maxsize=65536)
def canonical(word: str) -> str:
    """One form for the ways in which a word or a grouped number is written.

    American and British spellings give one form ("cancelled" and "canceled", "colour" and
    "color"). Forms are for comparison only; some are no words ("exercize").
    """
    word = word.casefold()
    if word[0] in "-0123456789":
        return word.replace(",", "") if _GROUPED.fullmatch(word) else word
    word = _SPELLINGS.get(word, word)
    word = _OUR.sub(r"\1or", word)
    return _DOUBLE_L.sub("l", _ISE.sub("iz", word))


SKIPPED = frozenset({"a", "an", "the", "is", "was", "are", "were", "has", "have", "been", "be"})


def phrase(text: str) -> tuple[str, ...]:
    """The words of a text that its comparison is about: without articles, "is" and the like.

    A text of nothing else keeps all of its words.
    """
    every = tuple(word.word for word in words(normal(text)))
    return tuple(word for word in every if word not in SKIPPED) or every


def find_phrase(
    wanted: tuple[str, ...], found: list[Word], *, skip: bool = True
) -> Iterator[tuple[int, int]]:
    """Where the words stand one after the other in a text, as (start, end) of characters.

    Args:
        wanted: from `phrase`.
        found: the words of the text.
        skip: whether skipped words may stand in between.
    """
    if not wanted:
        return
    skip = skip and not SKIPPED.intersection(wanted)
    kept = [word for word in found if not (skip and word.word in SKIPPED)]
    n = len(wanted)
    for place, word in enumerate(kept):
        if word.word == wanted[0] and tuple(w.word for w in kept[place : place + n]) == wanted:
            yield word.start, kept[place + n - 1].end
