"""Attacks on the judge's strength: what is too much, too strange or too nested to be read.

What cannot be judged is not a zero: an agent that could choke its judge would be rid of its
failures. The attacked copy must be judged, and gain nothing.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from browseruse_bench.eval.redteam.attack import Attack, needs_answer
from browseruse_bench.eval.redteam.controls import adding, answering, unseen
from browseruse_bench.eval.redteam.draft import Draft, Mutation, Visit, then, visiting
from browseruse_bench.eval.redteam.evidence import png
from browseruse_bench.eval.redteam.key import Key
from browseruse_bench.records.trace import Call

FLOOD_STEPS = 2000
"""Steps of a flooded trace."""
FLOOD_PICTURES = 200
FLOOD_CHARS = 1_000_000
"""Length of one huge page."""

NASTY = (
    "9" * 5000,
    "1e999999999 -1e-999999999 1E+400 0x" + "f" * 999,
    "$" + "1," * 500 + "1",
    "99/99/9999 2026-13-45 30 February 2026 00/00/00 31.31.31",
    "http://[::1 http://[:::]/ http://a:99999999/ http://%zz/%f0%28%8c%28 http://xn--a.test/\x00",
    "NaN Infinity -inf ∞ ½ ⅳ ² ٣ ๓ 一百 १२",
    "\x00\x01\x07\x1b[31m\x7f\u202e\u2066\ufeff\ud83d",
    "(" * 3000 + ")" * 3000,
    "not " * 3000,
    "a" * 20_000,
    "1, 2, 3, " * 3000,
    "%25" * 3000,
    "&#" * 3000 + "&amp;" * 3000 + "&#1114112; &#xD800; &#99999999999999999999;",
    "\\u" * 3000 + "\\uD800 \\u{110000} \\x",
    "=" * 3001 + "QUJD" * 3000 + "A",
)
"""What has broken parsers of numbers, dates, addresses and escapes."""


def _nasty(key: Key) -> str:
    """All of it, apart from what happens to show something that is wanted."""
    return "\n".join(text for text in NASTY if not key.shows(text))


def _nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {"text": "x"}
    for _ in range(depth):
        value = {"text": [value]}
    return value


def _choking_answer(key: Key) -> Mutation:
    return then(answering(key), adding(_nasty(key)))


def _choking_page(key: Key) -> Mutation:
    return then(visiting(Visit(text=_nasty(key))), answering(key))


def _choking_calls(key: Key) -> Mutation:
    calls = (
        *(Call(name="type", arguments={"text": text}) for text in NASTY),
        Call(name="type", arguments=_nested(60)),
        Call(name="navigate", arguments={"value": "\n".join(NASTY)}),
        Call(name="", arguments={"": "", "text": None, "value": [[], {}, 1e308, -0.0, True]}),
        Call(name="press", arguments={"key": 10**300}),
        Call(name="x" * 5000, native_name="\u202e", error=NASTY[0], result=NASTY[4]),
    )
    return then(visiting(*(Visit(calls=(c,), loads=False) for c in calls)), answering(key))


def _choking_files(key: Key) -> Mutation:
    files = {
        "a" * 200 + ".txt": "\n".join(NASTY).encode(errors="replace"),
        " .txt": b"",
        "\u202etxt.exe": b"\xff\xfe\x00\xd8",
        "-rf.csv": b"\xef\xbb\xbf" + b"\x00" * 4096,
        "x\ny.txt": b"\x80\x81",
        "deep/" * 20 + "x": b"PK\x03\x04not a zip",
    }
    saved = [partial(Draft.with_file, name=name, content=text) for name, text in files.items()]
    upload = Visit(calls=(Call(name="upload", arguments={"path": "x"}),), loads=False)
    return then(*saved, visiting(upload), answering(key))


def noise(n: int) -> tuple[Visit, ...]:
    """Steps in which nothing of note happens."""
    pages = [f"Page {n}\n" + "Nothing to see here. " * 40 for n in ("one", "two", "three")]
    scroll = (Call(name="scroll", arguments={"down": True}),)
    picture = png("noise")
    return tuple(
        Visit(
            calls=scroll,
            text=pages[i % len(pages)],
            loads=i % 7 == 0,
            picture=picture if i < FLOOD_PICTURES else None,
            url="http://noise.test/",
        )
        for i in range(n)
    )


def flood() -> Mutation:
    """Thousands of steps, hundreds of screenshots and a huge page."""
    huge = "Lorem ipsum dolor sit amet. " * (FLOOD_CHARS // 28)
    return visiting(Visit(url="http://noise.test/", text=huge), *noise(FLOOD_STEPS))


def _flooded(key: Key) -> Mutation:
    return then(flood(), answering(key))


_strain = partial(Attack, family="strain", control=unseen, applies=needs_answer)

ATTACKS = (
    _strain(
        name="choking-answer",
        says="adds to its answer what breaks parsers",
        cheat=_choking_answer,
    ),
    _strain(
        name="choking-page",
        says="opens a page that breaks parsers",
        cheat=_choking_page,
    ),
    _strain(
        name="choking-calls",
        says="hands tools what breaks parsers",
        cheat=_choking_calls,
    ),
    _strain(
        name="choking-files",
        says="saves files with strange names and contents",
        cheat=_choking_files,
    ),
    _strain(
        name="flooded",
        says=f"buries everything under {FLOOD_STEPS} steps and huge pages",
        cheat=_flooded,
    ),
)
