"""The lines of pictures of scores."""

from __future__ import annotations

from typing import Literal

from browseruse_bench.measure.intervals import Interval, mean_interval
from browseruse_bench.measure.tally import Figures
from browseruse_bench.report.leaderboard import Row
from browseruse_bench.report.pictures import Bar
from browseruse_bench.report.summary import Summary

_Kind = Literal["difficulty", "category"]


def bar(label: str, f: Figures, interval: Interval | None) -> Bar:
    """Points with their interval and bounds."""
    return Bar(
        label=label,
        value=f.mean,
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        lower=f.lower,
        upper=f.upper,
    )


def bar_of(row: Row) -> Bar:
    """A run of a leaderboard."""
    label = f"{row.agent}, {row.model}" if row.model else row.agent
    return bar(label, row.figures, row.estimates.points)


def bars_of(summary: Summary) -> list[Bar]:
    """The points of a run, and by difficulty and category."""
    found = [bar("all tasks", summary.figures, summary.estimates.points)]
    kinds: tuple[tuple[_Kind, dict[str, Figures]], ...] = (
        ("difficulty", summary.by_difficulty),
        ("category", summary.by_category),
    )
    for name, groups in kinds:
        if len(groups) > 1:
            found += [
                bar(f"{name} {label}", each, _interval_of(summary, name, label))
                for label, each in groups.items()
            ]
    return found


def _interval_of(summary: Summary, name: _Kind, label: str) -> Interval | None:
    """Of the tasks with this difficulty or category."""
    points = [
        [row.points for row in task.attempts if row.points is not None]
        for task in summary.tasks
        if getattr(task, name) == label
    ]
    return mean_interval(points, top=100, target="new tasks")
