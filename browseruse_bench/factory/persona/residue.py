"""The gate behind the substitution: what is left that must not be.

It compares by bytes, by whole words, by what looks alike, and runs the detection again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from browseruse_bench.factory.persona.canonical import canonical
from browseruse_bench.factory.persona.confusables import is_mixed, skeleton
from browseruse_bench.factory.persona.detect import detect
from browseruse_bench.factory.persona.names import nicknames
from browseruse_bench.factory.persona.shapes import PARTICLES
from browseruse_bench.factory.persona.substitute import COMMON_WORDS, Substituted

LONG = 6
"""Characters from which on a value is looked for by bytes; a shorter one as a whole word."""


def leaked(values: Iterable[str], content: bytes) -> list[int]:
    """Which of the values, by their index, are found in a content, in any case."""
    text = content.decode("utf-8", errors="replace").casefold()
    found: list[int] = []
    for index, value in enumerate(values):
        plain = value.casefold()
        there = (
            plain in text
            if len(plain) >= LONG
            else re.search(rf"(?<!\w){re.escape(plain)}(?!\w)", text) is not None
        )
        if there:
            found.append(index)
    return found


def _nicknamed(text: str, words: Iterable[str]) -> set[str]:
    """Nicknames of the names that are gone, as names are written, that stand in a text."""
    wanted = {nickname for word in words for nickname in nicknames(word)}
    shown = {
        canonical(word).text for word in re.findall(r"\b[^\W\d_]+\b", text) if word[0].isupper()
    }
    return wanted & shown


def residue(result: Substituted, kept: Sequence[str], country: str) -> list[str]:
    """What is wrong with a result, by kind; empty: nothing was found."""
    problems: list[str] = []
    text = result.text
    stays = [canonical(value).text for value in kept]
    gone = [edit.old for edit in result.edits]
    stayed = {canonical(target).text for target in result.stayed}
    for index in leaked(gone, text.encode()):
        # A word that the plan left alone elsewhere (the car, not the wife) is still there.
        if canonical(gone[index]).text not in stayed:
            problems.append(f"value of kind {result.edits[index].kind}")
    words = {w for e in result.edits if e.kind == "NAME" for w in canonical(e.old).text.split() if len(w.rstrip(".")) > 2}  # fmt: skip
    own_words = {w for e in result.edits for w in canonical(e.new).text.split()}
    # A word of a name by itself: `ann` after `Ann Delacroix` became another. Months, brands and
    # other words that names are as well stay, or no text with an April would pass.
    long = sorted(words - stayed - COMMON_WORDS - PARTICLES - own_words)
    if leaked(long, canonical(text).text.encode()):
        problems.append("part of a name")
    if _nicknamed(text, words) - stayed - COMMON_WORDS - own_words - set(stays):
        problems.append("nickname of a name")
    shapes = {skeleton(word) for word in words}
    for word in re.findall(r"\w+", text):
        if is_mixed(word) or (skeleton(word) in shapes and canonical(word).text not in words):
            problems.append("look-alike of a name")
    own = [(edit.new_start, edit.new_end) for edit in result.edits]
    for hit in detect(text, country):
        value = canonical(text[hit.start : hit.end]).text
        ours = any(hit.start < end and hit.end > start for start, end in own)
        if not ours and not any(value in stay for stay in stays):
            problems.append(f"a {hit.kind} by the detection")
    return sorted(set(problems))
