"""What an agent itself put into pages and addresses, and when: none of it is a finding.

A page that shows what was typed into it proves nothing about the world. The texts of an agent
are all text arguments of its calls (typed text, addresses with their parameters, the source of
its scripts), apart from calls that only read or point (`POINTING`), and the text of its files
once it uploads; of numbers, those that were typed. Percent escapes are decoded, and text that
was typed in several pieces, down to single keys, is put together, in whatever order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, cast
from urllib.parse import unquote_plus

from browseruse_bench.eval.dates import agrees
from browseruse_bench.eval.matcher import Read, Target, places
from browseruse_bench.eval.wording import find_phrase, normal, phrase
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

_SCRIPT = re.compile(
    r"eval|script|(?:^|_)js(?:_|$)|exec|run_?code|console|inject|set_?content|set_?html|python"
    r"|devtools|(?:^|_)cdp(?:_|$)"
)
_LOAD = re.compile(r"navigate|goto|go_?to|open_?(?:url|page|tab)|new_?tab|reload|refresh|^open$")
_TYPING = re.compile(r"type|input|key|press|fill|send|write|select")


def _name(call: Call) -> str:
    """A call's names in snake case: `executeJs` and `execute-js` give `execute_js`."""
    names = f"{call.name} {call.native_name or ''}".strip()
    return re.sub(r"[^a-z0-9]+", "_", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", names).casefold())


def runs_script(call: Call) -> bool:
    """Whether a call runs a program of the agent's own in a page."""
    if _SCRIPT.search(_name(call)):
        return True
    return any(re.match(r"\s*javascript:", text, re.I) for text in strings(call.arguments))


def loads(call: Call) -> bool:
    """Whether a call asks the browser for an address."""
    return call.error is None and bool(_LOAD.search(_name(call)))


def strings(value: Any) -> Iterator[str]:
    """Every text in a JSON value; numbers are none, and neither are keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in cast("dict[str, Any]", value).values():
            yield from strings(inner)
    elif isinstance(value, (list, tuple)):
        for inner in cast("Sequence[Any]", value):
            yield from strings(inner)


_CONTENT = re.compile("text|value|content|query|input|key|option|term|number|amount|quantity")


def _typed_numbers(value: Any, name: str = "") -> Iterator[str]:
    """The numbers in a typing call that are what was typed; an index of an element is none."""
    if isinstance(value, dict):
        for key, inner in cast("dict[str, Any]", value).items():
            yield from _typed_numbers(inner, key)
    elif isinstance(value, (list, tuple)):
        for inner in cast("Sequence[Any]", value):
            yield from _typed_numbers(inner, name)
    elif isinstance(value, (int, float)) and value is not True and value is not False:
        yield from (str(value),) if _CONTENT.search(name.casefold()) else ()


class Provided:
    """The agent's texts in order; each has the position of the event that it came with."""

    def __init__(self) -> None:
        """Start with nothing."""
        self._texts: list[tuple[int, Read]] = []
        self._pieces: list[tuple[int, str]] = []
        self._chunks: list[tuple[int, str]] = []
        self._by_key = False

    def add_call(self, position: int, call: Call) -> None:
        """Take the texts of a call."""
        if call.name in POINTING:
            self._by_key = False
            return
        typing = _TYPING.search(_name(call)) is not None
        numbers = _typed_numbers(call.arguments) if typing else ()
        for text in (*strings(call.arguments), *numbers):
            self.add_text(position, text)
            if typing and (len(text) == 1 or not re.fullmatch(r"[A-Z][A-Za-z]+[0-9]*", text)):
                self._pieces.append((position, _bare(text)))
                self._add_chunk(position, text)
            else:
                self._by_key = False  # Home, an arrow: what follows may stand elsewhere

    def _add_chunk(self, position: int, text: str) -> None:
        """Note what was typed in one go: a whole text, or keys one after the other."""
        bare = _bare(text)
        if len(text) == 1 and self._by_key:
            bare = self._chunks.pop()[1] + bare
        self._chunks.append((position, bare))
        self._by_key = len(text) == 1

    def add_text(self, position: int, text: str) -> None:
        """Take one text, as it is and with its escapes decoded."""
        for form in dict.fromkeys((text, unquote_plus(text))):
            plain = form.replace("://", " ")
            for way in dict.fromkeys((plain, re.sub(r"[/?&=#+_]", " ", plain))):
                self._texts.append((position, Read(way)))

    def first(self, target: Target) -> int | None:
        """The position of the first text with a value; None if the agent never gave it."""
        found = [position for position, read in self._texts if _gives(read, target)]
        bare = _bare(target.text)
        made = (self._pieced(bare), self._assembled(bare))
        return min([*found, *(position for position in made if position is not None)], default=None)

    def _assembled(self, wanted: str) -> int | None:
        """Where the last chunk came of those that a value can be put together from.

        In whatever order: the cursor may have been anywhere. Chunks of one character are left
        out, because of them almost anything can be put together.
        """
        chunks = [(at, t) for at, t in self._chunks if 1 < len(t) < len(wanted) and t in wanted]
        reached = {0: 0}
        for start in range(len(wanted)):
            if start not in reached:
                continue
            for at, text in chunks:
                if wanted.startswith(text, start):
                    end = start + len(text)
                    reached[end] = min(reached.get(end, at), max(reached[start], at))
        return reached.get(len(wanted)) if wanted else None

    def _pieced(self, wanted: str) -> int | None:
        """Where a value was complete that was typed in several pieces."""
        if len(wanted) < 2:
            return None
        joined = "".join(piece for _, piece in self._pieces)
        ends: list[tuple[int, int]] = []
        at = 0
        for position, piece in self._pieces:
            at += len(piece)
            ends.append((at, position))
        found = joined.find(wanted)
        while found >= 0:
            stop = found + len(wanted)
            first, last = (next(e for e in ends if e[0] >= x) for x in (found + 1, stop))
            if first != last:
                return last[1]
            found = joined.find(wanted, found + 1)
        return None


def _gives(read: Read, target: Target) -> bool:
    """Whether a page could make the value from a text: in doubt it could."""
    if target.form == "address":
        bare = target.text.partition("://")[2]
        return next(find_phrase(phrase(bare), read.words), None) is not None
    if target.date is not None:
        wanted = target.date.readings
        return any(agrees(a, b) for date in read.dates for a in wanted for b in date.readings)
    return bool(places(target, read))


def _bare(text: str) -> str:
    return re.sub(r"[\W_]", "", normal(text).casefold())
