"""Odysseys: `rubrics` is the JSON, as text, of {"R1": {"requirement", "verification"}, ...}."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from browseruse_bench.benchmarks.publishers.requirements import from_requirements
from browseruse_bench.records.rubric import Rubric


def rubric(row: Mapping[str, Any]) -> Rubric | None:
    """The rubric of a row of odysseys.json.

    The paper scores a task by the share of its items that hold, so all weigh the same: exact
    rationals, since most item counts do not divide 100.

    Raises:
        DataError: what it brings is no such rubric.
    """
    return from_requirements(row)
