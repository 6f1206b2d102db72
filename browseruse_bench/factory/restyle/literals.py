"""What of a text must be found in every rewriting of it, and what a rewriting may not add.

Numbers and codes, addresses, quoted text, amounts of money, names, and how many things are
forbidden or excepted. Markers of a list (1. 2. 3.) are formatting, not numbers.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Literal, NamedTuple

from browseruse_bench.factory.persona.canonical import canonical
from browseruse_bench.factory.restyle.negations import n_negations

Kind = Literal["url", "email", "quoted", "number", "code", "money", "name", "negation"]
_URL = re.compile(
    r"https?://[^\s<>\"'”]+|www\.[^\s<>\"'”]+|\b(?:[a-z0-9-]+\.)+[a-z]{2,}(?:/[^\s<>\"'”]*)?\b",
    re.I,
)
_EMAIL = re.compile(r"[\w.+%-]+@[\w-]+(?:\.[\w-]+)+")
_QUOTED = re.compile(
    r"\"([^\"\n]+)\"|“([^”\n]+)”|«([^»\n]+)»|「([^」\n]+)」|(?<!\w)['‘]([^'’\n]+)['’](?!\w)"
)
_NUMBER = re.compile(r"\d+(?:[.,:/\-–]\d+)*")
_CODE = re.compile(r"\b(?=\w*\d)(?=\w*[A-Z])\w{3,}\b")
_MONEY = re.compile(r"[$£€¥₹₩]")
_MARKER = re.compile(r"(?<!\d)(\d{1,2})[.)](?=\s*[A-Z])")
_WORD = re.compile(r"[^\W\d_][\w'’.&-]*")
_SENTENCE = re.compile(r"(?:^|[.!?:;\n*•]|\d[.)])\s*[\"'“«(\-–]*$")
_NO_NAMES = frozenset(["i", "i'm", "i'd", "i've", "i'll", "ok", "please"])


class Lost(NamedTuple):
    """One thing that a rewriting lost or added."""

    kind: Kind
    value: str


def without_markers(text: str) -> str:
    """The text without the numbers of a list that counts 1, 2, 3."""
    found = list(_MARKER.finditer(text))
    if len(found) < 2 or [int(m.group(1)) for m in found] != list(range(1, len(found) + 1)):
        return text
    for match in reversed(found):
        text = f"{text[: match.start()]} {text[match.end() :]}"
    return text


def literals(text: str) -> Counter[Lost]:
    """What of a text is literal, with how often."""
    text = without_markers(text)
    found: Counter[Lost] = Counter()
    for match in _QUOTED.finditer(text):
        found[Lost("quoted", next(group for group in match.groups() if group))] += 1
    emails = [match.span() for match in _EMAIL.finditer(text)]
    found.update(Lost("email", text[a:b].casefold()) for a, b in emails)
    for match in _URL.finditer(text):
        if not any(a <= match.start() < b for a, b in emails):
            found[Lost("url", match.group().rstrip(".,;:!?)"))] += 1
    patterns: tuple[tuple[Kind, re.Pattern[str]], ...] = (
        ("number", _NUMBER), ("code", _CODE), ("money", _MONEY),
    )  # fmt: skip
    for kind, pattern in patterns:
        found.update(Lost(kind, match.group()) for match in pattern.finditer(text))
    found.update(Lost("name", name) for name in _names(text))
    if n := n_negations(text):
        found[Lost("negation", "something is forbidden or excepted")] = n
    return found


def _words(text: str) -> list[tuple[str, str, int]]:
    """(as it stands, as it is compared, where) of each word, without possessive and full stop."""
    found: list[tuple[str, str, int]] = []
    for match in _WORD.finditer(text):
        word = re.sub(r"(?:['’]s)?[.'’-]*$", "", match.group())
        found.append((word, canonical(word).text, match.start()))
    return found


def _names(text: str) -> list[str]:
    """Words with a capital that no beginning of a sentence explains."""
    return [
        plain
        for word, plain, at in _words(text)
        if word[:1].isupper() and plain not in _NO_NAMES and not _SENTENCE.search(text[:at])
    ]


def differences(original: str, rewritten: str) -> tuple[list[Lost], list[Lost]]:
    """(lost, gained): a literal of either text that the other does not hold as often.

    A name counts as there if its word is anywhere in the other text; something gained only if it
    was not in the original at all. Of prohibitions there must be as many in both.
    """
    before, after = literals(original), literals(rewritten)
    lost = [item for item, n in before.items() if not _holds(rewritten, after, item, n)]
    gained = [
        item
        for item, n in after.items()
        if not _holds(original, before, item, n if item.kind == "negation" else 1)
    ]
    return sorted(lost), sorted(gained)


def _holds(text: str, found: Counter[Lost], item: Lost, n: int) -> bool:
    if item.kind == "name":
        return item.value in {plain for _, plain, _ in _words(text)}
    if item.kind in ("quoted", "url"):
        return text.count(item.value) >= min(n, 1)
    return found[item] >= n
