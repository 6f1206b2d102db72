"""What is wrong with a benchmark folder: one line each, with its place."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong, and where."""

    file: str
    """Task files below data/ by their own name; all others below the benchmark's folder."""
    index: int | None
    """Position in the file, from 0; None: the file as a whole."""
    field: str
    """Dotted path of the field; empty: the row or file as a whole."""
    text: str
    """What is wrong, and what would be right."""

    @property
    def line(self) -> str:
        """The problem as one line: `tasks.json[17].task_id: duplicate of [3], 'x'`."""
        index = "" if self.index is None else f"[{self.index}]"
        field = f".{self.field}" if self.field else ""
        text = " ".join(self.text.split())
        return f"{self.file}{index}{field}: {text}"

    def as_json(self) -> dict[str, Any]:
        """The problem as plain JSON values, its line included."""
        parts = {"file": self.file, "index": self.index, "field": self.field, "text": self.text}
        return {**parts, "line": self.line}


def lines(problems: Iterable[Problem]) -> tuple[str, ...]:
    """The problems as lines."""
    return tuple(problem.line for problem in problems)


def from_validation(error: ValidationError, file: str) -> list[Problem]:
    """What pydantic found, each with the path of its field."""
    errors = error.errors(include_url=False, include_input=False)
    places = [e["loc"] for e in errors]
    return [
        Problem(file, None, _dotted(e["loc"]), e["msg"].removeprefix("Value error, "))
        for e in errors
        # pydantic counts only the sound items: a list that is too short by its wrong ones.
        if e["type"] != "too_short" or not any(_is_below(place, e["loc"]) for place in places)
    ]


def _is_below(place: tuple[int | str, ...], other: tuple[int | str, ...]) -> bool:
    return len(place) > len(other) and place[: len(other)] == other


def _dotted(location: Iterable[int | str]) -> str:
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text.removeprefix(".")
