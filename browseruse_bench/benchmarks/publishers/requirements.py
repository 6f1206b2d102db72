"""Rubrics of the form {"R1": {"requirement", "verification"}, ...}, all items worth the same."""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from pydantic import Field, RootModel

from browseruse_bench.benchmarks.publishers.rows import read, rubric_of, task_id
from browseruse_bench.benchmarks.rows import parse_json
from browseruse_bench.errors import DataError
from browseruse_bench.records.base import Record
from browseruse_bench.records.rubric import Rubric


class _Entry(Record):
    requirement: str = Field(min_length=1)
    verification: str | None = Field(default=None, min_length=1)


class _Entries(RootModel[dict[str, _Entry]]):
    """Item id -> entry, in the publisher's order."""


def from_requirements(row: Mapping[str, Any]) -> Rubric | None:
    """The rubric in the row's `rubrics`: an object, or its JSON as text.

    Ids and order are the publisher's. Each of n items weighs exactly 100/n. `text` keeps the
    object as it came.

    Raises:
        DataError: an entry has another form, or an id occurs twice.
    """
    published = row.get("rubrics")
    if published is None:
        return None
    text = published if isinstance(published, str) else json.dumps(published, ensure_ascii=False)
    try:
        value = parse_json(text)
    except ValueError as error:
        raise DataError(f"rubrics: not JSON: {error}") from None
    entries = read(_Entries, value, "rubrics").root
    if not entries:
        raise DataError("rubrics: empty")
    weight = Fraction(100, len(entries))
    items = [{"id": id_, "weight": weight, **entry.as_json()} for id_, entry in entries.items()]
    return rubric_of({"task_id": task_id(row), "items": items, "text": text})
