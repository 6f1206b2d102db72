"""What an agent itself put into pages and addresses, and when: none of it is a finding.

A page that shows what was typed into it proves nothing about the world. The texts of an agent
are all text arguments of its calls (typed text, addresses with their parameters, the source of
its scripts), apart from calls that only read or point (`POINTING`), and the text of its files
once it uploads; of numbers, those that were entered. Escapes are decoded (`decoding`), and text
that was typed in several pieces, down to single keys, is put together: in whatever order, with
the cursor moved in between, and without what was deleted again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, cast

from browseruse_bench.eval.dates import agrees
from browseruse_bench.eval.decoding import forms, texts_of
from browseruse_bench.eval.matcher import Read, Target, places
from browseruse_bench.eval.scripting import names, strings
from browseruse_bench.eval.typed import Typed, as_character
from browseruse_bench.eval.wording import find_phrase, phrase
from browseruse_bench.records.trace import Call

POINTING = frozenset(
    [
        "back",
        "click",
        "close_tab",
        "done",
        "download",
        "extract",
        "find_text",
        "hover",
        "screenshot",
        "scroll",
        "switch_tab",
        "wait",
    ]
)
"""Calls whose arguments name an element, wait for a text or state a result: nothing of that
enters a page."""

_LOAD = re.compile(r"navigate|goto|go_?to|open_?(?:url|page|tab)|new_?tab|reload|refresh|^open$")
_TYPING = re.compile(r"type|input|key|press|fill|send|write|select")


def loads(call: Call) -> bool:
    """Whether a call asks the browser for an address."""
    return call.error is None and bool(_LOAD.search(names(call)))


_CONTENT = re.compile("text|value|content|query|input|key|option|term|number|amount|quantity")
_LOCATOR = re.compile("into|target|selector|locator|element|index|^in$|^css$|^ref$")


def _entered(value: Any, name: str = "", *, numbers: bool) -> Iterator[str]:
    """The texts, or the numbers, of a call that are what was entered; a locator is none."""
    if isinstance(value, dict):
        for key, inner in cast("dict[str, Any]", value).items():
            if not _LOCATOR.search(key.casefold()):
                yield from _entered(inner, key, numbers=numbers)
    elif isinstance(value, (list, tuple)):
        for inner in cast("Sequence[Any]", value):
            yield from _entered(inner, name, numbers=numbers)
    elif isinstance(value, str):
        if not numbers and _CONTENT.search(name.casefold()):
            yield value
    elif (
        numbers
        and isinstance(value, (int, float))
        and not isinstance(value, bool)
        and _CONTENT.search(name.casefold())
    ):
        yield str(value)


class Provided:
    """The agent's texts in order; each has the position of the event that it came with."""

    def __init__(self) -> None:
        """Start with nothing."""
        self._texts: list[tuple[int, Read]] = []
        self._typed = Typed()

    def add_call(self, position: int, call: Call) -> None:
        """Take the texts of a call."""
        if call.name in POINTING:
            self._typed.move()
            return
        texts = tuple(strings(call.arguments))
        numbers = tuple(_entered(call.arguments, numbers=True))
        for text in (*texts, *numbers):
            self.add_text(position, text)
        if _TYPING.search(names(call)):
            typed = tuple(_entered(call.arguments, numbers=False)) or texts
            for text in (*typed, *numbers):
                self._typed.add(position, text)
                if len(text) > 1 and (character := as_character(text)) is not None:
                    self.add_text(position, character)

    def add_text(self, position: int, text: str) -> None:
        """Take one text, as it is and with its escapes decoded."""
        for form in forms(text):
            plain = form.replace("://", " ")
            for way in dict.fromkeys((plain, re.sub(r"[/?&=#+_]", " ", plain))):
                self._texts.append((position, Read(way)))

    def add_file(self, position: int, content: bytes) -> None:
        """Take what stands in a file, also within a zip file, as office documents are."""
        for text in texts_of(content):
            self.add_text(position, text)

    def first(self, target: Target) -> int | None:
        """The position of the first text with a value; None if the agent never gave it."""
        found = [position for position, read in self._texts if _gives(read, target)]
        made = self._typed.first(target)
        return min([*found, *([] if made is None else [made])], default=None)


def _gives(read: Read, target: Target) -> bool:
    """Whether a page could make the value from a text: in doubt it could."""
    if target.form == "address":
        bare = target.text.partition("://")[2]
        return next(find_phrase(phrase(bare), read.words), None) is not None
    if target.date is not None:
        wanted = target.date.readings
        return any(agrees(a, b) for date in read.dates for a in wanted for b in date.readings)
    return bool(places(target, read))
