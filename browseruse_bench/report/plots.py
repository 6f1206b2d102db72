"""The pictures of a report as PNG or SVG files, drawn by matplotlib (the extra `plots`)."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from browseruse_bench.errors import ConfigError
from browseruse_bench.report.bars import bar_of, bars_of
from browseruse_bench.report.leaderboard import Leaderboard, group_title
from browseruse_bench.report.pictures import Bar, short
from browseruse_bench.report.render import clean
from browseruse_bench.report.summary import Summary

FORMATS = (".png", ".svg")


def plot_leaderboard(board: Leaderboard, path: Path) -> None:
    """Every group of the leaderboard as a picture of scores, below each other, in one file.

    Raises:
        ConfigError: as `_figure`.
    """
    groups = [
        (group_title(group.terms), [bar_of(row) for row in group.rows]) for group in board.groups
    ]
    _plot(groups, path)


def plot_report(summary: Summary, path: Path) -> None:
    """The scores of a run as a picture.

    Raises:
        ConfigError: as `_figure`.
    """
    identity = summary.identity
    title = f"{identity.agent.name} on {identity.benchmark}, split {identity.split}"
    _plot([(title, bars_of(summary))], path)


def _plot(groups: Sequence[tuple[str, Sequence[Bar]]], path: Path) -> None:
    drawn = _figure(path)
    heights = [len(rows) + 2 for _, rows in groups]
    figure = drawn(figsize=(9, 0.3 * sum(heights) + 0.6), layout="constrained")
    axes = figure.subplots(len(groups), 1, squeeze=False, height_ratios=heights)[:, 0]
    for axis, (title, rows) in zip(axes, groups, strict=True):
        _draw(axis, title, rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    # Without a date, the same data give the same bytes.
    metadata = {"Date": None} if path.suffix.lower() == ".svg" else {"Software": None}
    figure.savefig(path, format=path.suffix[1:].lower(), metadata=metadata, dpi=150)


def _figure(path: Path) -> Any:
    """Matplotlib's Figure.

    Raises:
        ConfigError: the file's name ends otherwise than in .png or .svg, or matplotlib is not
            installed.
    """
    if path.suffix.lower() not in FORMATS:
        raise ConfigError(f"--plot {path}: the name must end in {' or '.join(FORMATS)}")
    try:
        matplotlib: Any = importlib.import_module("matplotlib")
        figure: Any = importlib.import_module("matplotlib.figure")
    except ImportError as error:
        raise ConfigError(
            f"--plot needs matplotlib ({error}): pip install 'browseruse-bench[plots]'; "
            "--html draws without it"
        ) from error
    matplotlib.rcParams["svg.hashsalt"] = "browseruse-bench"
    return figure.Figure


def _draw(axis: Any, title: str, rows: Sequence[Bar]) -> None:
    """Scores below each other: a dot, a line for the interval, a band for bounds."""
    # Text of others is never read as mathematics: "$\\x$" would end in an error.
    axis.set_title(clean(title), fontsize=9, loc="left", parse_math=False)
    for y, row in enumerate(rows):
        if row.lower is not None and row.upper is not None:
            axis.barh(y, row.upper - row.lower, left=row.lower, height=0.5, color="#f0c36d")
        if row.low is not None and row.high is not None:
            axis.plot([row.low, row.high], [y, y], color="#0b62c4", linewidth=2)
        if row.value is not None:
            axis.plot([row.value], [y], "o", color="#0b62c4")
    axis.set_yticks(range(len(rows)), [short(row.label) for row in rows], parse_math=False)
    axis.set_ylim(len(rows) - 0.5, -0.5)
    axis.set_xlim(-1, 101)
    axis.grid(axis="x", alpha=0.3)
    axis.tick_params(labelsize=8)
