"""What an agent typed, put together as a field shows it.

Keys come one by one, texts in pieces, the end before the beginning, with the cursor moved by keys
or clicks, and with characters that are deleted again. Where exactly the cursor was is not known:
in doubt a value that could have come about so did.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

from browseruse_bench.eval.dates import Day
from browseruse_bench.eval.matcher import Target
from browseruse_bench.eval.wording import normal

_SHIFT = re.compile(r"(?:(?:shift|altgr|altgraph)\+)*", re.IGNORECASE)
_CHARACTER = re.compile(
    r"(?:digit|numpad|num|kp_)([0-9])|key([a-z])|(?:space|minus|hyphen|period|dot|comma|slash|equal"
    r"|semicolon|colon|quote|apostrophe|plus|underscore|dollar|percent|asterisk|backslash"
    r"|(?:paren|bracket)(?:left|right)|numpad(?:decimal|subtract|divide|add|multiply))",
    re.IGNORECASE,
)
_SIGN = " "
"""Signs part words and numbers; which one it is makes no difference to what is compared."""
_SHORTCUT = re.compile(r"(?:(?:control|ctrl|meta|command|cmd|alt|option|shift)\+)+\S+", re.I)
_DELETES = re.compile(r"(?:\S+\+)?(?:backspace|delete|del)|(?:control|ctrl|meta|cmd)\+x", re.I)
_KEY = re.compile(
    r"enter|return|tab|esc|escape|(?:arrow)?(?:up|down|left|right)|home|end|page_?(?:up|down)"
    r"|insert|f[0-9]{1,2}|capslock|numlock|contextmenu|shift|control|ctrl|alt|meta|command|cmd|fn",
    re.IGNORECASE,
)
_FAR = 4
"""A value of so many characters hardly comes about by chance from what stands in other fields,
or from a longer text by leaving out any of its characters."""

MAX_CHUNK = 200
"""How much of what was typed key by key is kept as one text."""


class _Run:
    """Single keys, one after the other in one field."""

    def __init__(self) -> None:
        self.keys: list[tuple[int, str]] = []
        self.moved = False


class Typed:
    """Everything that was typed, in order."""

    def __init__(self) -> None:
        """Start with nothing."""
        self._pieces: list[tuple[int, str]] = []
        self._chunks: list[tuple[int, str]] = []
        self._texts: list[tuple[int, str]] = []
        self._singles: list[tuple[int, str]] = []
        self._runs = [_Run()]
        self._n_deleted = 0
        self._by_key = False

    def add(self, position: int, text: str) -> None:
        """Take a text or a key."""
        character = as_character(text)
        if character is not None:
            self._take(position, character, key=True)
        elif _DELETES.fullmatch(text):
            self._n_deleted += 1000 if "+" in text else 1
            self._by_key = False
        elif _KEY.fullmatch(text) or _SHORTCUT.fullmatch(text):
            self._runs[-1].moved = True
            self._by_key = False
        else:
            self.move()
            self._take(position, text, key=False)

    def move(self) -> None:
        """Another field may have the focus now."""
        self._by_key = False
        if self._runs[-1].keys:
            self._runs.append(_Run())

    def _take(self, position: int, text: str, *, key: bool) -> None:
        bare = bare_text(text)
        self._pieces.append((position, bare))
        if key:
            self._runs[-1].keys.append((position, bare))
            self._singles.append((position, bare))
            if self._by_key:
                # What it was before stays a chunk of its own: the field showed that too.
                bare = (self._chunks[-1][1] + bare)[-MAX_CHUNK:]
        else:
            self._texts.append((position, bare))
        self._chunks.append((position, bare))
        self._by_key = key

    def first(self, target: Target) -> int | None:
        """Where a value was complete; None: it cannot have been typed."""
        # Key by key, "isn't" is not brought into the form "is not".
        plain = unicodedata.normalize("NFKC", target.text).casefold()
        ways = dict.fromkeys((bare_text(target.text), re.sub(r"[\W_]", "", plain)))
        found = [
            look(bare)
            for bare in ways
            for look in (
                self._pieced,
                self._assembled,
                self._completed,
                self._scattered,
                self._cut_down,
            )
        ]
        if target.date is not None:
            digits = {way for day in target.date.readings for way in _date_digits(day)}
            found += [at for at, text in self._chunks if text in digits][:1]
        return min((at for at in found if at is not None), default=None)

    def _assembled(self, wanted: str) -> int | None:
        """Where the last text came of those that a value can be put together from.

        In whatever order: the cursor may have been anywhere. Single keys are left out, because of
        them almost anything can be put together.
        """
        keys = set(self._singles)
        chunks = [
            (at, text)
            for at, text in self._chunks
            if text and text != wanted and text in wanted and (at, text) not in keys
        ]
        reached = {0: 0}
        for start in range(len(wanted)):
            if start not in reached:
                continue
            for at, text in chunks:
                if wanted.startswith(text, start):
                    end = start + len(text)
                    last = max(reached[start], at)
                    reached[end] = min(reached.get(end, last), last)
        return reached.get(len(wanted)) if wanted else None

    def _completed(self, wanted: str) -> int | None:
        """Where single keys had given what a text lacked of a value, the cursor being moved."""
        if not any(run.moved for run in self._runs):
            return None
        found: list[int] = []
        for at, text in self._texts:
            if not (len(wanted) / 2 <= len(text) < len(wanted) and text in wanted):
                continue
            missing = Counter(wanted) - Counter(text)
            for position, key in self._singles:
                missing -= Counter(key)
                if not missing:
                    found.append(max(at, position))
                    break
        return min(found, default=None)

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

    def _scattered(self, wanted: str) -> int | None:
        """Where single keys had given every character of a value, the cursor being moved."""
        runs = [run.keys for run in self._runs if run.moved]
        if len(wanted) >= _FAR and len(self._runs) > 1:
            runs.append([key for run in self._runs for key in run.keys])
        found: list[int] = []
        for keys in runs if len(wanted) > 1 else []:
            missing = Counter(wanted)
            for at, key in keys:
                missing -= Counter(key)
                if not missing:
                    found.append(at)
                    break
        return min(found, default=None)

    def _cut_down(self, wanted: str) -> int | None:
        """Where a longer text was typed of which a value is left once enough was deleted."""
        most = 3 if len(wanted) >= _FAR else 1 if len(wanted) == _FAR - 1 else 0
        n_more = min(self._n_deleted, most)
        chunks = (at for at, text in self._chunks if n_more and _is_left(wanted, text, n_more))
        return next(chunks, None)


def _is_left(wanted: str, text: str, n_more: int) -> bool:
    """Whether a value stands in a text with up to so many characters in between."""
    starts = (n for n, character in enumerate(text) if character == wanted[0])
    for start in starts:
        rest = iter(text[start : start + len(wanted) + n_more])
        if all(character in rest for character in wanted):
            return True
    return False


def as_character(key: str) -> str | None:
    """The character that a key with a name gives: `a`, `Digit4`, `Shift+KeyA`, `Numpad4`, `Space`.

    None: it is no name of a key that gives a character.
    """
    found = _SHIFT.match(key)
    name = key[found.end() :] if found else key
    if len(name) == 1:
        return name
    code = _CHARACTER.fullmatch(name)
    return None if code is None else code[1] or code[2] or _SIGN


def bare_text(text: str) -> str:
    """The letters and digits of a text."""
    return re.sub(r"[\W_]", "", normal(text).casefold())


def _date_digits(day: Day) -> list[str]:
    """The ways to type a date into a field that puts the signs in between itself."""
    if day.day is None or day.year is None:
        return []
    d, m = f"{day.day:02}", f"{day.month:02}"
    years = (f"{day.year:04}", f"{day.year % 100:02}")
    return [way for y in years for way in (m + d + y, d + m + y, y + m + d)]
