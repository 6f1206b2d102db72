"""A score: what code makes of a judgement and its rubric. It is never stored."""

from __future__ import annotations

from pydantic import Field

from browseruse_bench.records.base import Record


class Score(Record):
    """Points of one judged attempt."""

    raw_points: float = Field(ge=0, le=100)
    """Sum of the weights of the met items, before integrity."""
    points: float = Field(ge=0, le=100)
    """What counts: 0 where an integrity flag holds, else the raw points."""
    reward: float = Field(ge=0, le=1)
    success: bool
    flags: tuple[str, ...] = ()
