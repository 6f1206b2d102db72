"""What looks alike: two strings with one skeleton cannot be told apart by eye.

A curated part of what Unicode TR39 lists: the letters of other scripts that stand for Latin ones.
"""

from __future__ import annotations

from browseruse_bench.factory.persona.canonical import canonical

_ALIKE = {
    "a": "аαɑ⍺", "b": "ьвβƅ", "c": "сϲᴄⅽ", "d": "ԁɗ", "e": "еєҽ℮ε", "f": "ғϝſ", "g": "ɡց",
    "h": "һհнη", "i": "іıιɩӏ", "j": "јϳ", "k": "кκ", "l": "ⅼǀӏ", "m": "мⅿ", "n": "пոν", "o": "оοօσ",
    "p": "рρ", "q": "ԛգ", "r": "гᴦ", "s": "ѕꜱ", "t": "тτ", "u": "υսц", "v": "ѵν", "w": "ԝա", "x": "хχ",
    "y": "уүγ", "z": "ᴢ",
}  # fmt: skip
# By eye these are one each: capital I, small l and 1; O and 0.
_SKELETON = {
    **{ord(other): plain for plain, others in _ALIKE.items() for other in others},
    **dict.fromkeys(map(ord, "1lӏ"), "i"),
    ord("0"): "o",
}


def skeleton(text: str) -> str:
    """What a text looks like."""
    return canonical(canonical(text).text.translate(_SKELETON)).text.translate(_SKELETON)


def is_mixed(word: str) -> bool:
    """Whether a word has Latin letters and letters of another script that look like such."""
    plain = canonical(word).text
    foreign = any(ord(char) in _SKELETON and ord(char) > 0x2AF for char in plain)
    return foreign and any("a" <= char <= "z" for char in plain)
