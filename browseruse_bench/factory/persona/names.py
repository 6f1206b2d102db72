"""The forms of one person's name: which part of it each is, and the same part of a persona's.

`Robert Miller`, `Bob`, `R. Miller`, `Mr. Miller`, `Miller, Robert` and `RM` are one person: each
stands for the given name, the family name, or both, and so does what replaces it. An honorific
and a suffix (Jr., PhD) stay; a middle name that stands by itself counts as given name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from browseruse_bench.factory.persona.canonical import canonical, is_cjk
from browseruse_bench.factory.persona.shapes import PARTICLES
from browseruse_bench.factory.personas import Country, Person

HONORIFICS = frozenset(
    [
        "mr",
        "mrs",
        "ms",
        "miss",
        "mx",
        "dr",
        "prof",
        "sir",
        "madam",
        "herr",
        "frau",
        "mme",
        "mlle",
        "monsieur",
        "madame",
        "sr",
        "sra",
        "srta",
        "señor",
        "señora",
        "don",
        "doña",
        "sig",
        "signor",
        "signora",
        "dott",
        "dhr",
        "mevr",
        "meneer",
        "mevrouw",
        "pan",
        "pani",
        "senhor",
        "senhora",
        "dona",
    ]
)
SUFFIXES = frozenset(["jr", "sr", "ii", "iii", "iv", "phd", "md", "esq"])
_TWO_FAMILY_NAMES = frozenset({"ES", "MX", "BR"})
_PARTICLES = PARTICLES | {"de", "di", "da", "la", "le", "dos", "du", "ten", "ter", "al"}


@cache
def _nicknames() -> tuple[frozenset[str], ...]:
    lines = Path(__file__).with_name("nicknames.txt").read_text(encoding="utf-8").splitlines()
    return tuple(frozenset(line.split()) for line in lines)


def nicknames(given: str) -> frozenset[str]:
    """What somebody of a given name is called as well, in small letters, without the name."""
    plain = _bare(given)
    groups = [group for group in _nicknames() if plain in group]
    return frozenset[str]().union(*groups) - {plain}


def _bare(word: str) -> str:
    return canonical(word).text.strip(".,' ")


def is_initial(word: str) -> bool:
    """Whether a word is one letter, with or without a full stop."""
    return len(_bare(word)) == 1 and not is_cjk(_bare(word))


def core(name: str) -> tuple[list[str], list[str], list[str]]:
    """(honorifics, the name's own words, suffixes), as they are written."""
    words = name.split()
    start, end = 0, len(words)
    while start < end - 1 and _bare(words[start]) in HONORIFICS:
        start += 1
    while end > start + 1 and _bare(words[end - 1]) in SUFFIXES:
        end -= 1
    return words[:start], words[start:end], words[end:]


def fullest(names: Sequence[str]) -> str:
    """The form that tells most of a name; empty: there is none."""

    def told(name: str) -> tuple[int, int, int]:
        words = core(name)[1]
        return sum(not is_initial(word) for word in words), len(words), len(name)

    return max(names, key=told, default="")


def parts(full: str, country: Country) -> tuple[list[str], list[str]]:
    """(given and middle names, family names) of a full name, in small letters; one word is given."""
    raw = core(full)[1]
    words = [_bare(word) for word in raw]
    if len(words) < 2:
        return words, []
    if raw[0].endswith(","):
        return words[1:], words[:1]
    if country.name_order == "family_given":
        return words[1:], words[:1]
    at = len(words) - 1
    if country.country in _TWO_FAMILY_NAMES and len(words) > 2:
        at = 1 if len(words) == 3 else 2
    while at > 1 and words[at - 1] in _PARTICLES:
        at -= 1
    return words[:at], words[at:]


def is_form(short: str, full: str, country: Country) -> bool:
    """Whether a name can be a shorter form, an initial or a nickname of a full one."""
    given, family = parts(full, country)
    known = {*given, *family} | nicknames(given[0] if given else "")
    starts = {word[0] for word in (*given, *family)}
    words = [_bare(word) for word in core(short)[1]]
    told = [word for word in words if len(word) > 1]
    return bool(told) and all(w in known if len(w) > 1 else w in starts for w in words if w)


def renamed(old: str, full: str, person: Person, country: Country) -> str | None:
    """The part of a persona's name that a form of a full name is; None: it cannot be told."""
    if person.native and any(is_cjk(char) for char in old):
        return _native(old, full, person.native.given, person.native.family)
    before, words, after = core(old)
    given, family = parts(full, country)
    letters = _letters(words, given, family, person)
    if letters is not None:
        return " ".join([*before, letters, *after])
    is_family = [_is_family(index, words, given, family) for index in range(len(words))]
    first = next((w for w, of in zip(words, is_family, strict=True) if not of), None)
    last = next((w for w, of in zip(words, is_family, strict=True) if of), None)
    told: list[tuple[int, str]] = []
    if first is not None:
        told.append((words.index(first), _like(first, person.given)))
    if last is not None:
        told.append((words.index(last), _like(last, person.family)))
    new = [word for _, word in sorted(told)]
    if len(new) == 2 and words[0].endswith(","):
        new[0] += ","
    return " ".join([*before, *new, *after])


def _is_family(index: int, words: list[str], given: list[str], family: list[str]) -> bool:
    word, end = _bare(words[index]), len(words) - 1
    if word in family:
        return True
    if is_initial(words[index]):
        known = any(_bare(other) in family for other in words)
        of_family = bool(family) and word == family[-1][0]
        alone = len(words) == 1 and word != (given[0][0] if given else "")
        return not known and of_family and (alone or (index == end and index > 0))
    if word in _PARTICLES and index < end and _bare(words[index + 1]) in family:
        return True
    # Another family name, a maiden name: the end of several words that the full name has not.
    unknown = word not in given and not any(_bare(other) in family for other in words)
    return bool(family) and unknown and index == end > 0


def _letters(words: list[str], given: list[str], family: list[str], person: Person) -> str | None:
    """Initials that are written together: RM, R.M., RJM."""
    if len(words) != 1 or not given or not family or not words[0].isupper():
        return None
    written = re.findall(r"\w", words[0].casefold())
    whole = [word[0] for word in (*given, *family)]
    if len(written) < 2 or written not in (whole, [given[0][0], family[-1][0]]):
        return None
    mark = "." if "." in words[0] else ""
    end = "." if words[0].endswith(".") else ""
    return f"{person.given[0]}{mark}{person.family[0]}{end}"


def _like(old: str, value: str) -> str:
    """The persona's part, as an initial if the old one is."""
    return value[0] + old[1:].rstrip(",") if is_initial(old) else value


def _native(old: str, full: str, given: str, family: str) -> str | None:
    if " " in full:
        words = full.split()
        if " " in old:
            return f"{family} {given}"
        return family if old == words[0] else given
    if old == full:
        return f"{family}{given}"
    return family if full.startswith(old) else given if full.endswith(old) else None
