"""What the importers share: the id of a row, and records that are read or refused whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from browseruse_bench.benchmarks.problems import from_validation
from browseruse_bench.errors import DataError, boundary
from browseruse_bench.records.rubric import Rubric

_Model = TypeVar("_Model", bound=BaseModel)


def task_id(row: Mapping[str, Any]) -> str:
    """The id of a row, under our name or under `id`; numbers as text.

    Raises:
        DataError: there is none.
    """
    for name in ("task_id", "id"):
        value = row.get(name)
        if isinstance(value, (str, int)) and not isinstance(value, bool) and str(value):
            return str(value)
    raise DataError("task_id: missing, and so is id")


def read(model: type[_Model], value: Any, place: str) -> _Model:
    """The value as a record of this kind.

    Raises:
        DataError: it is none; each problem names its place, below `place`.
    """
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise DataError([*_lines(error, place)]) from None


def imported(
    rubric_of: Callable[[Mapping[str, Any]], object], row: Mapping[str, Any]
) -> Rubric | None:
    """What a publisher's function makes of a row.

    Raises:
        DataError: it raised anything, or returned something else than a rubric.
    """
    with boundary(DataError, "its importer"):
        made = rubric_of(row)
    if made is None or isinstance(made, Rubric):
        return made
    raise DataError(f"its importer returned {type(made).__name__}, not a Rubric or None")


def rubric_of(fields: Mapping[str, Any]) -> Rubric:
    """The rubric that these fields make.

    Raises:
        DataError: they make none.
    """
    try:
        return Rubric.model_validate(fields)
    except ValidationError as error:
        raise DataError([*_lines(error, "")]) from None


def _lines(error: ValidationError, place: str) -> Iterator[str]:
    for problem in from_validation(error, place):
        yield problem.line.removeprefix(".").removeprefix(": ")
