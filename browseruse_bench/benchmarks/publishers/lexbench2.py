"""LexBench-Browser 2.0: `rubrics` is {"R1": {"requirement", "verification"}, ...}."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from browseruse_bench.benchmarks.publishers.requirements import from_requirements
from browseruse_bench.records.rubric import Rubric


def rubric(row: Mapping[str, Any]) -> Rubric | None:
    """The rubric of a row of LexBench-Browser 2.0's task.jsonl.

    The publisher names no weights: all items weigh the same, exactly.

    Raises:
        DataError: what it brings is no such rubric.
    """
    return from_requirements(row)
