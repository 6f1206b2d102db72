"""From what a model wrote to the one value that it means, or why that is not clear.

Models put a value between sentences or into a code fence, write raw line ends into its texts,
think aloud before it, and repeat the form that they were shown. All of that is read. What is
not clearly one value is none:

- What stands in `<think>` and the like is a draft, whatever it looks like. A block that is never
  closed leaves no value; one that is only closed began before the reply.
- Of several values the last counts, and only if the ones before it do not fit the schema, are
  equal to it, or were copied from the request. It must not itself be such a copy, nor may
  anything behind it begin another value.
- A value is whole JSON: no comma at an end (an entry may be missing there), no name twice in an
  object, no NaN or Infinity, no half of a surrogate pair. Line ends and other control
  characters in texts are allowed.
- It must fit the schema exactly; nothing is converted.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from browseruse_bench.models.schema import Schema, problems, root_type
from browseruse_bench.records.base import canonical_json

_TAG = re.compile(
    r"<(?P<end>/)?(?P<name>think|thinking|thoughts?|reasoning|reflection|analysis|scratchpad)"
    r"(?:\s[^<>]{0,200})?>",
    re.IGNORECASE,
)
_BEGIN = {
    "object": re.compile(r"\{|\[(?=\s*[\[{])"),
    "array": re.compile(r"[\[{]"),
}
"""What begins a value. Where an object is wanted, `[1]` in a sentence is none."""
_FENCED = re.compile(r"\A\s*```[\w-]*[ \t]*\n(?P<inner>.*?)\n?\s*```\s*\Z", re.DOTALL)
_BRACKET = re.compile(r"[\[\]{}]")
_BRACKET_OR_QUOTED = re.compile(r'[\[\]{}]|"(?:[^"\\]|\\.)*"', re.DOTALL)


@dataclass(frozen=True)
class Parsed:
    """The one value that was meant; it fits the schema."""

    value: Any


@dataclass(frozen=True)
class Unclear:
    """Why there is none, in words that the model can be told."""

    problem: str
    n_values: int = 0
    """How many whole JSON values there were outside of reasoning."""


@dataclass(frozen=True)
class _Piece:
    """Something at the top level of a reply that is a value or began like one."""

    source: str
    value: Any = None
    problems: tuple[str, ...] = ()
    whole: bool = True

    @property
    def fits(self) -> bool:
        return self.whole and not self.problems

    def is_in(self, packed: str) -> bool:
        return _packed(self.source) in packed


class _Broken(ValueError):
    """Not JSON, or JSON that is not one clear value."""


def parse(text: str, schema: Schema, *, asked: str = "") -> Parsed | Unclear:
    """The value of a reply.

    Args:
        text: the reply, reasoning in its tags included.
        schema: what the value must fit.
        asked: the text of the request; a value that only repeats it does not count where there
            is another.
    """
    kind = root_type(schema)
    if kind in ("object", "array"):
        pieces = _pieces(text, schema, _BEGIN[kind])
        return pieces if isinstance(pieces, Unclear) else _chosen(pieces, asked)
    said = _without_reasoning(text)
    if isinstance(said, Unclear):
        return said
    fenced = _FENCED.match(said)
    piece = _read((fenced["inner"] if fenced else said).strip(), schema)
    return Parsed(piece.value) if piece.fits else Unclear("; ".join(piece.problems))


def parse_arguments(
    arguments: Sequence[str], text: str, schema: Schema, *, asked: str = ""
) -> Parsed | Unclear:
    """The value that was given as the arguments of tool calls; `text` came beside them.

    Several calls, or a call and a value in the text, must agree.
    """
    given = [parse(one, schema, asked="") for one in arguments]
    unclear = next((one for one in given if isinstance(one, Unclear)), None)
    if unclear is not None:
        return unclear
    beside = parse(text, schema, asked=asked) if text.strip() else None
    values = [one.value for one in (*given, beside) if isinstance(one, Parsed)]
    if not values:
        return Unclear("no answer was given")
    if len({canonical_json(value) for value in values}) > 1:
        return Unclear(f"{len(values)} answers that differ", len(values))
    return Parsed(values[0])


def _chosen(pieces: Sequence[_Piece], asked: str) -> Parsed | Unclear:
    """The last piece, if nothing speaks against it."""
    if not pieces:
        return Unclear("there is no JSON value in the reply")
    *others, last = pieces
    n_values = sum(piece.whole for piece in pieces)
    if not last.fits:
        return Unclear("; ".join(last.problems), n_values)
    meant = canonical_json(last.value)
    others = [p for p in others if not p.whole or canonical_json(p.value) != meant]
    if not others:
        return Parsed(last.value)
    packed = _packed(asked)
    if any(piece.fits and not piece.is_in(packed) for piece in others):
        return Unclear("there are answers that differ; give one", n_values)
    if last.is_in(packed):
        return Unclear("the last JSON value is a copy from the request", n_values)
    return Parsed(last.value)


def _pieces(text: str, schema: Schema, begins: re.Pattern[str]) -> list[_Piece] | Unclear:
    """The values at the top level of a reply, outside of reasoning, and what began like one."""
    pieces: list[_Piece] = []
    position = 0
    tag = _TAG.search(text)
    while True:
        if tag is not None and tag.start() < position:
            tag = _TAG.search(text, position)
        begin = begins.search(text, position)
        if begin is not None and (tag is None or begin.start() < tag.start()):
            piece, position = _piece_at(text, begin.start(), schema)
            pieces.append(piece)
        elif tag is None:
            return pieces
        elif tag["end"]:
            # Where the prompt opened the block, only its end is in the reply.
            pieces.clear()
            position = tag.end()
        elif (closed := _end_of_reasoning(text, tag)) is not None:
            position = closed
        else:
            return Unclear(f"the {tag[0]} block is never closed")


def _end_of_reasoning(text: str, opened: re.Match[str]) -> int | None:
    """Where the block that was opened ends; blocks in it are counted. None: nowhere."""
    depth, name = 1, opened["name"].lower()
    for tag in _TAG.finditer(text, opened.end()):
        if tag["name"].lower() == name:
            depth += -1 if tag["end"] else 1
            if depth == 0:
                return tag.end()
    return None


def _without_reasoning(text: str) -> str | Unclear:
    position, kept = 0, ""
    while (tag := _TAG.search(text, position)) is not None:
        kept = "" if tag["end"] else kept + text[position : tag.start()]
        closed = tag.end() if tag["end"] else _end_of_reasoning(text, tag)
        if closed is None:
            return Unclear(f"the {tag[0]} block is never closed")
        position = closed
    return kept + text[position:]


def _piece_at(text: str, start: int, schema: Schema) -> tuple[_Piece, int]:
    """What begins at `start`, and where to go on."""
    try:
        value, end = _DECODER.raw_decode(text, start)
        _check_values(value)
    except (ValueError, RecursionError) as error:
        end = _end_of_broken(text, start)
        problem = f"the JSON is broken: {_words(error)}"
        return _Piece(text[start:end], problems=(problem,), whole=False), end
    return _Piece(text[start:end], value, tuple(problems(value, schema))), end


def _read(source: str, schema: Schema) -> _Piece:
    """A text that is a value as a whole."""
    try:
        value = _DECODER.decode(source)
        _check_values(value)
    except (ValueError, RecursionError) as error:
        problem = f"the reply is not one JSON value: {_words(error)}"
        return _Piece(source, problems=(problem,), whole=False)
    return _Piece(source, value, tuple(problems(value, schema)))


def _words(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at character {error.pos + 1}"
    return "too deep" if isinstance(error, RecursionError) else str(error)


def _end_of_broken(text: str, start: int) -> int:
    """Where what began at `start` ends at the latest: a value in it is not at the top level.

    Brackets are counted twice, with those in quoted texts and without; the later end counts,
    since in broken JSON one cannot tell what was meant as a text.
    """
    return max(_balance(text, start, tokens) for tokens in (_BRACKET, _BRACKET_OR_QUOTED))


def _balance(text: str, start: int, tokens: re.Pattern[str]) -> int:
    """Behind the bracket that closes the one at `start`; the end of the text if none does."""
    depth = 0
    for match in tokens.finditer(text, start):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(match[0], 0)
        if depth == 0:
            return match.end()
    return len(text)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _Broken(f"'{twice[:60]}' stands twice in an object")
    return found


def _no_constant(name: str) -> Any:
    raise _Broken(f"{name} is no JSON number")


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise _Broken(f"{text[:20]} is too large a number")
    return value


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_constant=_no_constant, parse_float=_number, strict=False
)


def _check_values(value: Any) -> None:
    """Raise if a text cannot be written down."""
    for text in _texts(value):
        if not text.isascii() and any("\ud800" <= c <= "\udfff" for c in text):
            raise _Broken("half a surrogate pair in a text")


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, inner in cast("dict[str, Any]", value).items():
            yield name
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in cast("list[Any]", value):
            yield from _texts(inner)


def _packed(text: str) -> str:
    """The text without white space: a copy may be indented otherwise."""
    return "".join(text.split())
