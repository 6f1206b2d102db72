"""Whether a value fits a JSON schema: the part of JSON Schema that requests are written in.

A schema that says something this module does not know is refused before anything is asked, so
that no word of a schema is ever skipped in silence. That, and five packages less to install, is
why it is not the `jsonschema` library. Two rules are stricter than the standard's: `true` is no
integer, and `1.0` is none either.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from typing import Any, cast

from browseruse_bench.errors import ConfigError
from browseruse_bench.records.base import canonical_json

Schema = dict[str, Any]

_SAYS_NOTHING = frozenset(
    ("title", "description", "default", "examples", "$schema", "$id", "$comment", "format",
     "deprecated", "readOnly", "writeOnly", "discriminator", "$defs", "definitions")
)  # fmt: skip
"""Words for readers; `format` is one of them in JSON Schema, too."""
_OF_OBJECTS = frozenset(
    ("properties", "required", "additionalProperties", "minProperties", "maxProperties")
)
_OF_LISTS = frozenset(("items", "prefixItems", "minItems", "maxItems", "uniqueItems"))
_OF_TEXTS = frozenset(("minLength", "maxLength", "pattern"))
_OF_NUMBERS = frozenset(
    ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
)
_OF_ANY = frozenset(("type", "enum", "const", "anyOf", "oneOf", "allOf", "not", "$ref"))
_KNOWN = _SAYS_NOTHING | _OF_OBJECTS | _OF_LISTS | _OF_TEXTS | _OF_NUMBERS | _OF_ANY

_TYPES: dict[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
}
MAX_PROBLEMS = 5
"""More than a model, or a person, would mend at a time."""


def check_schema(schema: Schema) -> None:
    """Return if every word of it is known.

    Raises:
        ConfigError: one is not, or a reference leads nowhere; says where.
    """
    for place, part in _parts(schema, "schema"):
        if unknown := sorted(part.keys() - _KNOWN):
            raise ConfigError(f"{place}: cannot hold a value to {', '.join(map(repr, unknown))}")
        for name in _types_of(part):
            if name not in _TYPES:
                raise ConfigError(f"{place}.type: no such type: {name!r}")
        if "pattern" in part:
            try:
                re.compile(part["pattern"])
            except re.error as error:
                raise ConfigError(f"{place}.pattern: {error}") from error
        _followed(part, schema, place)


def root_type(schema: Schema) -> str | None:
    """`object`, `array` or another type that every fitting value has; None: it does not say."""
    kind = _followed(schema, schema, "schema").get("type")
    return kind if isinstance(kind, str) else None


def problems(value: Any, schema: Schema) -> list[str]:
    """Why a JSON value does not fit, each with its place; at most MAX_PROBLEMS; [] if it fits.

    Args:
        value: what `json.loads` gives.
        schema: one that `check_schema` lets through.
    """
    return list(itertools.islice(_Check(schema).problems(schema, value, ""), MAX_PROBLEMS))


def _types_of(part: Schema) -> list[str]:
    types: Any = part.get("type", [])
    return cast("list[str]", types if isinstance(types, list) else [types])


def _parts(schema: Schema, place: str) -> Iterator[tuple[str, Schema]]:
    """The schema and each schema in it, with its place."""
    yield place, schema
    for name in ("properties", "$defs", "definitions"):
        for key, inner in cast("dict[str, Any]", schema.get(name, {})).items():
            yield from _part(inner, f"{place}.{name}.{key}")
    for name in ("items", "additionalProperties", "not"):
        if name in schema:
            yield from _part(schema[name], f"{place}.{name}")
    for name in ("anyOf", "oneOf", "allOf", "prefixItems"):
        for n, inner in enumerate(cast("list[Any]", schema.get(name, []))):
            yield from _part(inner, f"{place}.{name}[{n}]")


def _part(inner: Any, place: str) -> Iterator[tuple[str, Schema]]:
    if isinstance(inner, dict):
        yield from _parts(cast("Schema", inner), place)
    elif not isinstance(inner, bool):
        raise ConfigError(f"{place}: {inner!r} is no schema")


def _followed(part: Schema, root: Schema, place: str) -> Schema:
    """The schema that a reference leads to, in the end; itself if it is none."""
    seen: set[str] = set()
    while "$ref" in part:
        reference = part["$ref"]
        if reference in seen:
            raise ConfigError(f"{place}: {reference} leads to itself")
        seen.add(reference)
        found: Any = root
        for name in reference.removeprefix("#/").split("/"):
            found = cast("dict[str, Any]", found).get(name) if isinstance(found, dict) else None
        if not reference.startswith("#/") or not isinstance(found, dict):
            raise ConfigError(f"{place}: {reference} leads nowhere")
        part = cast("Schema", found)
    return part


class _Check:
    """Looks for what does not fit; a place is written as in `findings[2].status`."""

    def __init__(self, root: Schema) -> None:
        self._root = root

    def problems(self, schema: Schema | bool, value: Any, place: str) -> Iterator[str]:
        if isinstance(schema, bool):
            if not schema:
                yield f"{_at(place)}is not wanted"
            return
        if "$ref" in schema:
            yield from self.problems(_followed(schema, self._root, "schema"), value, place)
        if "type" in schema:
            names = _types_of(schema)
            if not any(_TYPES[name](value) for name in names):
                yield f"{_at(place)}{_short(value)} is no {' or '.join(names)}"
                return
        yield from _choice_problems(schema, value, place)
        yield from self._alternatives(schema, value, place)
        if isinstance(value, dict):
            yield from self._of_object(schema, cast("dict[str, Any]", value), place)
        elif isinstance(value, list):
            yield from self._of_list(schema, cast("list[Any]", value), place)
        elif isinstance(value, str):
            yield from _text_problems(schema, value, place)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield from _number_problems(schema, value, place)

    def _fits(self, schema: Schema | bool, value: Any) -> bool:
        return next(self.problems(schema, value, ""), None) is None

    def _alternatives(self, schema: Schema, value: Any, place: str) -> Iterator[str]:
        for inner in schema.get("allOf", []):
            yield from self.problems(inner, value, place)
        if "anyOf" in schema and not any(self._fits(one, value) for one in schema["anyOf"]):
            yield from self._nearest(schema["anyOf"], value, place)
        if "oneOf" in schema:
            n_fitting = sum(self._fits(one, value) for one in schema["oneOf"])
            if n_fitting == 0:
                yield from self._nearest(schema["oneOf"], value, place)
            elif n_fitting > 1:
                yield f"{_at(place)}{_short(value)} fits {n_fitting} alternatives, not one"
        if "not" in schema and self._fits(schema["not"], value):
            yield f"{_at(place)}{_short(value)} is not wanted"

    def _nearest(self, alternatives: list[Schema], value: Any, place: str) -> Iterator[str]:
        """What is wrong by the alternative whose type fits, else that none does."""
        for one in alternatives:
            kind = _followed(one, self._root, "schema").get("type")
            if isinstance(kind, str) and _TYPES[kind](value) and len(alternatives) <= 2:
                yield from self.problems(one, value, place)
                return
        yield f"{_at(place)}{_short(value)} fits none of {len(alternatives)} alternatives"

    def _of_object(self, schema: Schema, value: dict[str, Any], place: str) -> Iterator[str]:
        known: dict[str, Any] = schema.get("properties", {})
        for name in schema.get("required", []):
            if name not in value:
                yield f"{_at(place)}'{name}' is missing"
        rest = schema.get("additionalProperties", True)
        for name, inner in value.items():
            where = f"{place}.{name}" if place else name
            if name in known:
                yield from self.problems(known[name], inner, where)
            elif rest is False:
                yield f"{_at(place)}there is no field '{name[:60]}'"
            else:
                yield from self.problems(rest, inner, where)
        yield from _size_problems(schema, len(value), place, "Properties", "fields")

    def _of_list(self, schema: Schema, value: list[Any], place: str) -> Iterator[str]:
        yield from _size_problems(schema, len(value), place, "Items", "entries")
        first: list[Any] = schema.get("prefixItems", [])
        for n, inner in enumerate(value):
            one = first[n] if n < len(first) else schema.get("items", True)
            yield from self.problems(one, inner, f"{place}[{n}]")
        if schema.get("uniqueItems") and len({canonical_json(v) for v in value}) < len(value):
            yield f"{_at(place)}an entry occurs twice"


def _choice_problems(schema: Schema, value: Any, place: str) -> Iterator[str]:
    # As JSON: to Python, True is 1 and 1 is 1.0.
    if "const" in schema and canonical_json(value) != canonical_json(schema["const"]):
        yield f"{_at(place)}{_short(value)} is not {_short(schema['const'])}"
    if "enum" in schema:
        allowed = cast("list[Any]", schema["enum"])
        if canonical_json(value) not in {canonical_json(one) for one in allowed}:
            names = ", ".join(_short(one) for one in allowed[:20])
            yield f"{_at(place)}{_short(value)} is not one of {names}"


def _text_problems(schema: Schema, value: str, place: str) -> Iterator[str]:
    yield from _size_problems(schema, len(value), place, "Length", "characters")
    if "pattern" in schema and re.search(schema["pattern"], value) is None:
        yield f"{_at(place)}{_short(value)} does not match {schema['pattern']}"


def _number_problems(schema: Schema, value: float, place: str) -> Iterator[str]:
    bounds: tuple[tuple[str, Callable[[float, float], bool], str], ...] = (
        ("minimum", lambda v, bound: v >= bound, "below"),
        ("maximum", lambda v, bound: v <= bound, "above"),
        ("exclusiveMinimum", lambda v, bound: v > bound, "not above"),
        ("exclusiveMaximum", lambda v, bound: v < bound, "not below"),
        ("multipleOf", lambda v, bound: v % bound == 0, "no multiple of"),
    )
    for name, holds, words in bounds:
        if name in schema and not holds(value, schema[name]):
            yield f"{_at(place)}{value} is {words} {schema[name]}"


def _size_problems(schema: Schema, n: int, place: str, what: str, words: str) -> Iterator[str]:
    if n < schema.get(f"min{what}", 0):
        yield f"{_at(place)}{n} {words}, at least {schema[f'min{what}']} are wanted"
    if n > schema.get(f"max{what}", n):
        yield f"{_at(place)}{n} {words}, at most {schema[f'max{what}']} are wanted"


def _at(place: str) -> str:
    return f"{place}: " if place else ""


def _short(value: Any) -> str:
    text = canonical_json(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
