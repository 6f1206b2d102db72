"""Text in one form for comparison, each character with its place in the original.

Equal after it: NFC and NFD, full-width and ordinary, letters of either case, kinds of spaces,
quotes and hyphens, digits of any script; characters that show nothing are gone. Look-alikes of
other scripts are not equal: those are `confusables`.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from functools import cached_property

_FOLDED = str.maketrans(
    dict.fromkeys("’‘‛ʼ＇`´", "'") | dict.fromkeys("“”„‟", '"') | dict.fromkeys("‐‑‒–—―−﹣－", "-")
)
_HIDDEN = {0x034F, 0x115F, 0x1160, 0x3164, 0xFFA0, *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)}
_VOICED = {0xFF9E, 0xFF9F}
"""Half-width voice marks: NFKC joins them to the character before."""


def is_hidden(char: str) -> bool:
    """Whether nothing is to be seen of it: joiners, direction marks, soft hyphens, selectors."""
    return unicodedata.category(char) == "Cf" or ord(char) in _HIDDEN


def is_cjk(char: str) -> bool:
    """Whether it is of a script that puts no spaces between words."""
    return any(low <= char <= high for low, high in _CJK)


_CJK = (("\u3005", "\u3007"), ("\u3040", "\u30ff"), ("\u3400", "\u9fff"), ("\uac00", "\ud7af"),
        ("\uf900", "\ufaff"), ("\U00020000", "\U0003ffff"))  # fmt: skip


def _extends(char: str) -> bool:
    code = ord(char)
    return (
        unicodedata.category(char)[0] == "M" and not is_hidden(char)
    ) or code in _VOICED or 0x1161 <= code <= 0x11FF  # fmt: skip


def _cluster_end(text: str, start: int) -> int:
    """Where the character that begins at `start` ends, with all that is joined to it."""
    end = start + 1
    while end < len(text):
        ahead = end
        while ahead < len(text) and is_hidden(text[ahead]):
            ahead += 1
        if ahead == len(text) or not _extends(text[ahead]):
            return end
        end = ahead + 1
    return end


def _folded(cluster: str) -> str:
    shown = "".join(char for char in cluster if not is_hidden(char))
    for _ in range(2):  # folding may give what composes again
        shown = unicodedata.normalize("NFKC", shown.translate(_FOLDED)).casefold()
    shown = unicodedata.normalize("NFKC", shown).translate(_FOLDED)
    return "".join(
        " " if char.isspace() else str(digit) if digit is not None else char
        for char in shown
        if not is_hidden(char)
        for digit in (unicodedata.decimal(char, None),)
    )


@dataclass(frozen=True)
class Canonical:
    """A text for comparison."""

    text: str
    places: tuple[tuple[int, int], ...]
    """For each character, where the character of the original that gave it begins and ends."""

    def place(self, start: int, end: int) -> tuple[int, int] | None:
        """Where a part is in the original; None: it begins or ends within one character there."""
        if start >= end:
            return None
        if start and self.places[start - 1] == self.places[start]:
            return None
        if end < len(self.places) and self.places[end - 1] == self.places[end]:
            return None
        return self.places[start][0], self.places[end - 1][1]

    @cached_property
    def solid(self) -> tuple[str, tuple[int, ...]]:
        """Its letters and digits alone, and where each is in `text`."""
        at = tuple(i for i, char in enumerate(self.text) if char.isalnum())
        return "".join(self.text[i] for i in at), at


def canonical(text: str) -> Canonical:
    """A text in the form in which it is compared."""
    out: list[str] = []
    places: list[tuple[int, int]] = []
    start = 0
    while start < len(text):
        if is_hidden(text[start]):
            start += 1
            continue
        end = _cluster_end(text, start)
        for char in _folded(text[start:end]):
            out.append(char)
            places.append((start, end))
        start = end
    return Canonical("".join(out), tuple(places))


def same(one: str, other: str) -> bool:
    """Whether two texts are equal in this form, spaces at the ends and their number apart."""
    return " ".join(canonical(one).text.split()) == " ".join(canonical(other).text.split())
