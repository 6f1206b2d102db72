"""LexBench-Browser 1.0: `reference_answer` holds steps, key points, mistakes and scored items."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

from pydantic import Field, JsonValue, StrictFloat, StrictInt

from browseruse_bench.benchmarks.publishers.rows import read, rubric_of, task_id
from browseruse_bench.errors import DataError
from browseruse_bench.records.base import Record
from browseruse_bench.records.rubric import Rubric


class _Scored(Record):
    name: str = Field(min_length=1)
    description: str = ""
    score: StrictInt | StrictFloat | None = None


class _Scoring(Record):
    total: StrictInt | StrictFloat = Field(default=100, gt=0)
    items: tuple[_Scored, ...] = Field(min_length=1)


class _Reference(Record):
    steps: tuple[str, ...] = ()
    key_points: tuple[str, ...] = ()
    common_mistakes: tuple[str, ...] = ()
    scoring: _Scoring


def rubric(row: Mapping[str, Any]) -> Rubric | None:
    """The rubric of a row of LexBench-Browser 1.0's task.jsonl.

    Every item with a score above 0 becomes an item S1, S2, ... in the publisher's order: its
    name is the requirement, its description the verification, and its weight is exactly
    100 x score / total. Items without a score become rulings U1, U2, ... Steps become the path,
    key points rulings K1, K2, ..., common mistakes failures, and `score_threshold` the points
    from which the task is done. `text` keeps `reference_answer` as it came.

    Raises:
        DataError: it has another form, a score is below 0, or the scores do not sum to the
            total, so that it is open what they are shares of.
    """
    published: JsonValue = row.get("reference_answer")
    if not isinstance(published, dict) or "scoring" not in published:
        return None
    reference = read(_Reference, published, "reference_answer")
    scoring = reference.scoring
    _check_scores(scoring)
    total = _exact(scoring.total)
    steps = "\n".join(f"{n}. {step}" for n, step in enumerate(reference.steps, 1))
    threshold = row.get("score_threshold")
    return rubric_of(
        {
            "task_id": task_id(row),
            "paths": [{"text": steps}] if steps else [],
            "failures": [{"text": text} for text in reference.common_mistakes],
            "rulings": [*_rulings(reference)],
            "items": [
                {
                    "id": f"S{n}",
                    "requirement": item.name,
                    "verification": item.description or None,
                    "weight": 100 * _exact(item.score or 0) / total,
                }
                for n, item in enumerate((i for i in scoring.items if i.score), 1)
            ],
            "success_at": None if threshold is None else _threshold(threshold, total),
            "text": json.dumps(published, ensure_ascii=False),
        }
    )


def _check_scores(scoring: _Scoring) -> None:
    below = [n for n, item in enumerate(scoring.items) if (item.score or 0) < 0]
    if below:
        places = [f"reference_answer.scoring.items[{n}].score: is below 0" for n in below]
        raise DataError(places)
    found = sum((_exact(item.score or 0) for item in scoring.items), Fraction(0))
    if found != _exact(scoring.total):
        raise DataError(
            f"reference_answer.scoring: the scores sum to {float(found):g}, "
            f"but the total is {scoring.total:g}"
        )


def _rulings(reference: _Reference) -> Iterator[dict[str, str]]:
    for n, point in enumerate(reference.key_points, 1):
        yield {"id": f"K{n}", "text": point}
    unscored = (item for item in reference.scoring.items if not item.score)
    for n, item in enumerate(unscored, 1):
        described = f": {item.description}" if item.description else ""
        yield {"id": f"U{n}", "text": f"Not scored: {item.name}{described}"}


def _exact(number: int | float) -> Fraction:
    """A number as its decimal digits say it."""
    return Fraction(Decimal(str(number)))


def _threshold(value: object, total: Fraction) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise DataError(f"score_threshold: is a number, not {value!r}")
    return float(100 * _exact(value) / total)
