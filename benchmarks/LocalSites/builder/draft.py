"""What the builder's modules give: tasks with their rubric, solution and one wrong way."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Wrong:
    """A plausible wrong attempt, and what the rubric says that it is worth."""

    why: str
    """What is wrong with it, in one sentence."""
    solution: list[dict[str, Any]]
    """Actions, in the form of records.solution."""
    points: int
    """0..99: what the rubric gives it."""


@dataclass(frozen=True, kw_only=True)
class Draft:
    """One task before it is written to files; all values are plain JSON."""

    task_id: str
    """`<site>-<template>-<number>`, for instance `flights-count-2`."""
    template: str
    """Tasks of one template differ in their values only; at most 6 share one."""
    task: str
    website: str
    """Host name (of the main site), for instance `shop.test`."""
    start_url: str
    category: str
    difficulty: str
    """easy (<= 5 steps), medium, or hard (>= 15 steps of the shortest oracle path)."""
    items: list[dict[str, Any]]
    """Rubric items in the form of records.rubric; weights sum to 100; each has a check."""
    facts: list[dict[str, Any]]
    """Facts in the form of records.rubric; how="site", checked_on the builder's date."""
    solution: list[dict[str, Any]]
    wrong: Wrong
    expected_result: str | None = None
    requires_login: bool = False
    failures: list[dict[str, Any]] = field(default_factory=list)
