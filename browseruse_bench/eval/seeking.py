"""The first place of a value in a long text, without reading all of it.

Gives what `matcher.places` would give first, but reads only the lines, for a phrase only the
stretches, that can hold the value: a trace has many long pages, and most of them do not.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

from browseruse_bench.eval.matcher import Read, Target, places
from browseruse_bench.eval.wording import find_phrase, words

_MARK = r"[.,' ]?"


def first_place(read: Read, target: Target) -> tuple[int, int] | None:
    """Where a value stands first, as (start, end) in the normal text; None if nowhere."""
    if target.form == "address":
        return next(iter(places(target, read)), None)
    if target.form in ("number", "date"):
        for start, line in _lines(read.text, _look(target)):
            for place in places(target, Read(line)):
                return start + place[0], start + place[1]
        return None
    return next(_phrase_places(read.text, target.phrase or (target.text,)), None)


def holds_words(read: Read, wanted: tuple[str, ...]) -> bool:
    """Whether the words stand in a text one right after the other, none left out."""
    return next(word_places(read.text, wanted), None) is not None


def word_places(text: str, wanted: tuple[str, ...]) -> Iterator[tuple[int, int]]:
    """Where the words stand in a normal text one right after the other, none left out."""
    for start in _beginnings(text, wanted[0]):
        end = 0
        # Word by word, because almost every place differs in the first one.
        found = words(text[start : start + 100 + 60 * len(wanted)])
        for word in wanted:
            here = next(found, None)
            if here is None or here.word != word or (not end and here.start):
                break
            end = here.end
        else:
            yield start, start + end


@functools.lru_cache(maxsize=4096)
def _look(target: Target) -> re.Pattern[str]:
    """A pattern that every line with the value matches."""
    if target.quantity is not None and not target.tolerance:
        value = abs(target.quantity.value)
        digits = "".join(map(str, value.normalize().as_tuple().digits))
        whole = format(value.normalize(), "f").replace(".", "").lstrip("0") or "0"
        return re.compile(f"{_MARK.join(whole)}|{_MARK.join(digits)} ?[a-z]", re.IGNORECASE)
    if target.date is not None:
        # A day stands alone, as `3` or `03`; of a date without one the year tells.
        days = {
            f"(?<![0-9])0?{day.day}(?![0-9])" if day.day else f"{str(day.year)[-2:]}(?![0-9])"
            for day in target.date.readings
        }
        return re.compile("|".join(sorted(days)))
    return re.compile("[0-9]")


def _lines(text: str, pattern: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    """The lines in which a pattern occurs, each once, with their places."""
    at = 0
    while found := pattern.search(text, at):
        start = text.rfind("\n", 0, found.start()) + 1
        stop = text.find("\n", found.start())
        stop = len(text) if stop < 0 else stop
        yield start, text[start:stop]
        at = max(stop, found.start() + 1)


def _beginnings(text: str, word: str) -> Iterator[int]:
    """Where a word may begin: every spelling of it begins with the same two letters; digits may
    be grouped.
    """
    n = 2 if word[0].isalpha() else 1
    begins = re.compile(rf"(?<!\w)(?<![0-9][.,:/'-])-?{re.escape(word[:n])}", re.IGNORECASE)
    return (found.start() for found in begins.finditer(text))


def _phrase_places(text: str, wanted: tuple[str, ...]) -> Iterator[tuple[int, int]]:
    for at in _beginnings(text, wanted[0]):
        stretch = text[at : at + 100 + 60 * len(wanted)]
        first = next(words(stretch), None)
        if first is None or first.start or first.word != wanted[0]:
            continue
        for start, end in find_phrase(wanted, list(words(stretch))):
            if start == 0:
                yield at, at + end
            break
