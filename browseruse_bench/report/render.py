"""Tables for terminals, files and pipes. What comes from outside never becomes active."""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TextIO

NOTHING = "-"
"""Stands where there is no value: never 0, never NaN."""


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table of plain texts."""

    title: str
    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: frozenset[int] = frozenset()
    """Columns of numbers, which stand at the right."""


def clean(text: str) -> str:
    """One line without control, direction, invisible and unassigned characters."""
    kept = (_visible(c) for c in text)
    return " ".join("".join(kept).split())


def _visible(character: str) -> str:
    category = unicodedata.category(character)
    if category in ("Cc", "Zl", "Zp"):
        return " "
    return "" if category in ("Cf", "Cn", "Co", "Cs") else character


def markdown_text(text: str) -> str:
    """Text that Markdown shows as it is: no markup, no HTML, no link, no new cell."""
    line = clean(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    line = re.sub(r"([\\`*\[\]|~#!])", r"\\\1", line)
    line = re.sub(r"(?<!\w)_|_(?!\w)", r"\\_", line)
    return line.replace("://", ":&#47;&#47;")


def markdown_table(table: Table) -> str:
    """The table as Markdown, without its title."""
    rule = ["--:" if i in table.right else "---" for i in range(len(table.headers))]
    lines = [table.headers, rule, *table.rows]
    escaped = ([cell if line is rule else markdown_text(cell) for cell in line] for line in lines)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in escaped) + "\n"


def plain_table(table: Table) -> str:
    """The table as aligned plain text."""
    lines = [[clean(cell) for cell in line] for line in (table.headers, *table.rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(table.headers))]
    out = [clean(table.title)] if table.title else []
    for line in lines:
        cells = [
            cell.rjust(width) if i in table.right else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        out.append("  ".join(cells).rstrip())
    return "\n".join(out) + "\n"


def show(tables: Sequence[Table], file: TextIO | None = None) -> None:
    """Print tables: drawn in a terminal, plain elsewhere."""
    out = file or sys.stdout
    if not out.isatty():
        out.write("\n".join(plain_table(table) for table in tables))
        return
    from rich.console import Console
    from rich.table import Table as Drawn
    from rich.text import Text

    console = Console(file=out)
    for table in tables:
        drawn = Drawn(title=Text(clean(table.title)), title_justify="left")
        for index, header in enumerate(table.headers):
            justify = "right" if index in table.right else "left"
            drawn.add_column(Text(header), justify=justify, overflow="fold")
        for row in table.rows:
            drawn.add_row(*(Text(clean(cell)) for cell in row))
        console.print(drawn)


def number(value: float | None, digits: int = 1) -> str:
    """A number, or the sign for none."""
    return NOTHING if value is None else f"{value:.{digits}f}"


def percent(share: float | None) -> str:
    """A share of 0..1 in percent, or the sign for none."""
    return NOTHING if share is None else f"{100 * share:.1f}%"


def with_bounds(
    value: float | None, lower: float | None, upper: float | None, *, scale: float = 1
) -> str:
    """As in `83.3 [80.0, 90.0]`; without bounds where nothing is missing."""
    if value is None or lower is None or upper is None:
        return NOTHING
    text = number(value * scale)
    if lower == upper:
        return text
    return f"{text} [{number(lower * scale)}, {number(upper * scale)}]"


def span(low: float | None, high: float | None, *, scale: float = 1) -> str:
    """An interval as in `70.1 to 92.0`; brackets are for bounds."""
    if low is None or high is None:
        return NOTHING
    return f"{number(low * scale)} to {number(high * scale)}"


def count_and_share(count: int, of: int) -> str:
    """As in `3 (1.5%)`; `0` where there are none."""
    return f"{count} ({percent(count / of)})" if count else "0"


def money(cost_usd: float | None, known_usd: float = 0, n_unknown: int = 0) -> str:
    """A cost in dollars; what is unknown is said, never counted as zero."""
    if cost_usd is not None:
        if cost_usd == 0 or cost_usd >= 0.01:
            return f"${cost_usd:.2f}"
        return f"${cost_usd:.4f}" if cost_usd >= 0.0001 else f"${cost_usd:.1g}"
    if known_usd:
        return f">= ${known_usd:.2f}, {n_unknown} unknown"
    return "unknown" if n_unknown else NOTHING


def counts(values: dict[str, int]) -> str:
    """As in `2 (login 1, pending 1)`; `0` where there are none."""
    total = sum(values.values())
    if not total:
        return "0"
    return f"{total} ({', '.join(f'{key} {n}' for key, n in sorted(values.items()))})"
