"""BU Bench: from V2 on a rubric in plain text with weights beside it; before, one ground truth."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import ConfigDict, Field, StrictInt

from browseruse_bench.benchmarks.publishers.rows import read, rubric_of, task_id
from browseruse_bench.errors import DataError
from browseruse_bench.records.base import Record
from browseruse_bench.records.rubric import Rubric

_MARKS = r"[ \t]{0,3}(?:[-*+][ \t]+|#{1,6}[ \t]+|\d+[.)][ \t]+)?[*_`]{0,3}"
_ITEM = re.compile(rf"{_MARKS}(?P<id>[A-Za-z][A-Za-z0-9_]*)[*`]{{0,3}}(?=[\s:.,()\[\]–—-]|$)")
_ID_FORM = re.compile(r"A\d+_\w+")
_RULING = re.compile(
    r"[*_]{0,3}(?P<id>[A-Z][A-Z0-9 /&()'’_-]*[A-Z0-9)])[*_]{0,3}:[*_]{0,3}(?=\s|$)"
)
_HEADING = re.compile(r"[ \t]{0,3}(?:#{1,6}(?=[ \t]|$)|={3,}[ \t]*$|-{3,}[ \t]*$)")
_CONTINUES = re.compile(r"[ \t]+\S|[-*+•][ \t]+\S")
_AFTER_ID = re.compile(r"[\s:.,–—-]*")


@dataclass(frozen=True)
class Part:
    """A run of lines of a rubric's text; the parts of a text, put together, are the text."""

    kind: Literal["item", "ruling", "prose"]
    id: str
    """Of the item or the ruling; empty for prose."""
    raw: str
    """Its lines as they came."""
    body: str
    """What it says, without its id."""


class _Row(Record):
    model_config = ConfigDict(extra="ignore")

    rubric: str = Field(min_length=1)
    weights: dict[str, StrictInt] = Field(min_length=1)
    canary: str | None = None


def rubric(row: Mapping[str, Any]) -> Rubric | None:
    """The rubric of a row of BU Bench.

    From V2 on: each key of `weights` is an item, in the order of the weights; its requirement
    is all that the text says under lines that begin with its id. Lines that begin with
    `UPPERCASE WORDS:` are rulings. `text` keeps the whole text: facts are in it, which the
    publisher dates in prose.

    V1 and Stealth Bench: `answer` is the ground truth, and the one item is that it holds; a row
    without it brings no rubric.

    Raises:
        DataError: an item has a weight and no line, or a line and no weight.
    """
    if "rubric" not in row:
        return _ground_truth(row)
    published = read(_Row, {k: v for k, v in row.items() if k in _Row.model_fields}, "")
    found = parts(published.rubric, frozenset(published.weights))
    said: dict[str, list[str]] = {}
    for part in found:
        if part.kind == "item":
            said.setdefault(part.id, []).append(part.body)
    _check_ids(published, said)
    return rubric_of(
        {
            "task_id": task_id(row),
            "canary": published.canary,
            "items": [
                {"id": id_, "requirement": "\n".join(said[id_]), "weight": weight}
                for id_, weight in published.weights.items()
            ],
            "rulings": [*_rulings(found)],
            "text": published.rubric,
        }
    )


def parts(text: str, item_ids: Set[str]) -> tuple[Part, ...]:
    """The text of a rubric as items, rulings and prose; nothing is left out.

    An item or ruling begins at the start of a line and goes on to the next one, to a heading,
    or to a blank line that is followed by neither an indented line nor a list.
    """
    lines = text.splitlines(keepends=True)
    runs: list[tuple[Literal["item", "ruling", "prose"], str, list[str]]] = []
    after_blank = False
    for line in lines:
        kind, id_ = _head(line, item_ids)
        ends = kind == "prose" and (
            _HEADING.match(line) or (after_blank and line.strip() and not _CONTINUES.match(line))
        )
        if kind != "prose" or ends or not runs:
            runs.append((kind, id_, [line]))
        else:
            runs[-1][2].append(line)
        after_blank = not line.strip()
    return tuple(_part(kind, id_, "".join(run)) for kind, id_, run in runs)


def _head(line: str, item_ids: Set[str]) -> tuple[Literal["item", "ruling", "prose"], str]:
    item = _ITEM.match(line)
    if item is not None and (item["id"] in item_ids or _ID_FORM.fullmatch(item["id"])):
        return "item", item["id"]
    ruling = _RULING.match(line)
    if ruling is not None and len(re.findall(r"[A-Z]", ruling["id"])) > 1:
        return "ruling", ruling["id"]
    return "prose", ""


def _part(kind: Literal["item", "ruling", "prose"], id_: str, raw: str) -> Part:
    if kind == "prose":
        return Part("prose", "", raw, raw.strip())
    rest = raw[raw.index(id_) + len(id_) :].lstrip("*_`")
    separator = _AFTER_ID.match(rest) if kind == "item" else re.match(r":[*_]*\s*", rest)
    body = rest[separator.end() :].strip() if separator else rest.strip()
    if kind == "ruling" and not body:
        # "ITEMS:" on a line of its own is a heading.
        return Part("prose", "", raw, raw.strip())
    return Part(kind, id_, raw, body)


def _check_ids(published: _Row, said: Mapping[str, list[str]]) -> None:
    problems = [
        f"rubric: no line begins with '{id_}', which has a weight"
        for id_ in published.weights
        if id_ not in said
    ]
    problems += [
        f"weights: '{id_}' begins a line of the rubric and has no weight"
        for id_ in said
        if id_ not in published.weights
    ]
    problems += [
        f"rubric: '{id_}' says nothing"
        for id_ in published.weights
        if id_ in said and not any(said[id_])
    ]
    if problems:
        raise DataError(problems)


def _rulings(found: tuple[Part, ...]) -> Iterator[dict[str, str]]:
    n_of: dict[str, int] = {}
    for part in found:
        if part.kind == "ruling":
            n = n_of[part.id] = n_of.get(part.id, 0) + 1
            yield {"id": part.id if n == 1 else f"{part.id} {n}", "text": part.body}


def _ground_truth(row: Mapping[str, Any]) -> Rubric | None:
    answer = row.get("answer")
    if answer is None:
        return None
    if not isinstance(answer, str) or not answer.strip():
        raise DataError("answer: is not a text")
    requirement = f"The result agrees with the publisher's ground truth: {answer}"
    return rubric_of(
        {
            "task_id": task_id(row),
            "answers": [{"text": answer}],
            "items": [{"id": "A1_ground_truth", "requirement": requirement, "weight": 100}],
            "text": answer,
        }
    )
