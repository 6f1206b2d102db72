"""Pictures of scores as SVG text: drawn here, without scripts, links or anything to load."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass

from browseruse_bench.report.render import clean

_WIDTH = 860
_LEFT, _RIGHT, _ROW = 300, 30, 26
_HEIGHT, _TOP, _BOTTOM, _SIDE = 360, 16, 46, 60
_LABEL = 44
"""Characters of a label; a longer one is shortened, and whole in its tooltip."""


@dataclass(frozen=True, kw_only=True)
class Bar:
    """One line of a picture of scores, all in 0..100."""

    label: str
    value: float | None
    low: float | None = None
    """Interval."""
    high: float | None = None
    lower: float | None = None
    """Bounds of what is missing."""
    upper: float | None = None


@dataclass(frozen=True, kw_only=True)
class Dot:
    """One point of a picture of scores against something."""

    label: str
    number: int | None = None
    """Shown beside it: its line in the table."""
    x: float
    y: float
    low: float | None = None
    high: float | None = None


def text(content: str) -> str:
    """Text for HTML and SVG that is shown as it is: no markup, one line."""
    return html.escape(clean(content))


def short(label: str) -> str:
    """The label, or its beginning."""
    line = clean(label)
    return line if len(line) <= _LABEL else line[: _LABEL - 1] + "…"


def bars(rows: Sequence[Bar], *, title: str) -> str:
    """Scores of 0..100 below each other: a dot, a line for the interval, a band for bounds."""
    height = _TOP + _ROW * len(rows) + _BOTTOM
    bottom = _TOP + _ROW * len(rows)

    def x(value: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * min(100.0, max(0.0, value)) / 100

    parts: list[str] = []
    for tick in range(0, 101, 20):
        at = f"{x(tick):.1f}"
        parts.append(f'<line class="grid" x1="{at}" x2="{at}" y1="{_TOP}" y2="{bottom}"/>')
        parts.append(f'<text class="tick" x="{at}" y="{bottom + 18}">{tick}</text>')
    for number, row in enumerate(rows):
        y = _TOP + _ROW * number + _ROW / 2
        parts.append(
            f'<g><title>{text(row.label)}</title><text class="name" x="{_LEFT - 12}" '
            f'y="{y + 4:.1f}">{text(short(row.label))}</text>'
        )
        if row.lower is not None and row.upper is not None and row.lower < row.upper:
            parts.append(
                f'<rect class="bounds" x="{x(row.lower):.1f}" y="{y - 7:.1f}" '
                f'width="{x(row.upper) - x(row.lower):.1f}" height="14"/>'
            )
        if row.low is not None and row.high is not None:
            parts.append(
                f'<line class="interval" x1="{x(row.low):.1f}" x2="{x(row.high):.1f}" '
                f'y1="{y:.1f}" y2="{y:.1f}"/>'
            )
        if row.value is not None:
            parts.append(f'<circle class="dot" cx="{x(row.value):.1f}" cy="{y:.1f}" r="4.5"/>')
        parts.append("</g>")
    return _picture(parts, height, title)


def scatter(dots: Sequence[Dot], *, title: str, x_label: str, y_label: str = "points") -> str:
    """Scores of 0..100 against something from 0 up."""
    top = nice_ceiling(max((dot.x for dot in dots), default=1))
    width, bottom = _WIDTH - _SIDE - _RIGHT, _HEIGHT - _BOTTOM

    def x(value: float) -> float:
        return _SIDE + width * value / top

    def y(value: float) -> float:
        return bottom - (bottom - _TOP) * min(100.0, max(0.0, value)) / 100

    parts: list[str] = []
    for tick in range(0, 101, 20):
        at = f"{y(tick):.1f}"
        parts.append(
            f'<line class="grid" x1="{_SIDE}" x2="{_WIDTH - _RIGHT}" y1="{at}" y2="{at}"/>'
        )
        parts.append(f'<text class="side" x="{_SIDE - 8}" y="{y(tick) + 4:.1f}">{tick}</text>')
    for step in range(6):
        value = top * step / 5
        at = f"{x(value):.1f}"
        parts.append(f'<line class="grid" x1="{at}" x2="{at}" y1="{_TOP}" y2="{bottom}"/>')
        parts.append(f'<text class="tick" x="{at}" y="{bottom + 18}">{value:g}</text>')
    parts.append(
        f'<text class="tick" x="{_SIDE + width / 2:.0f}" y="{_HEIGHT - 8}">{text(x_label)}</text>'
    )
    parts.append(f'<text class="side" x="{_SIDE - 8}" y="{_HEIGHT - 8}">{text(y_label)}</text>')
    for dot in dots:
        at_x, at_y = f"{x(dot.x):.1f}", f"{y(dot.y):.1f}"
        parts.append(f"<g><title>{text(dot.label)}</title>")
        if dot.low is not None and dot.high is not None:
            parts.append(
                f'<line class="interval thin" x1="{at_x}" x2="{at_x}" y1="{y(dot.low):.1f}" '
                f'y2="{y(dot.high):.1f}"/>'
            )
        parts.append(f'<circle class="dot" cx="{at_x}" cy="{at_y}" r="4.5"/>')
        if dot.number is not None:
            parts.append(
                f'<text class="mark" x="{x(dot.x) + 8:.1f}" y="{at_y}">{dot.number}</text>'
            )
        parts.append("</g>")
    return _picture(parts, _HEIGHT, title)


def nice_ceiling(value: float) -> float:
    """The least of 1, 2, 2.5, 5 and 10 times a power of ten that is not below the value."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 2.5, 5, 10, 20) if step * power >= value)


def _picture(parts: Sequence[str], height: float, title: str) -> str:
    return (
        f'<svg role="img" viewBox="0 0 {_WIDTH} {height:.0f}" xmlns="http://www.w3.org/2000/svg">'
        f"<title>{text(title)}</title>{''.join(parts)}</svg>"
    )
