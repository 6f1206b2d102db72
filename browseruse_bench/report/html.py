"""One file that a browser shows from anywhere: tables and pictures, no script, nothing loaded.

Every text goes through `pictures.text`, so that what comes from outside stays text; should that
ever fail, the page's policy lets no script run and nothing be loaded.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from typing import Literal

from browseruse_bench.report.bars import bar, bar_of, bars_of
from browseruse_bench.report.compare import Comparison
from browseruse_bench.report.compare import tables as comparison_tables
from browseruse_bench.report.leaderboard import Group, Leaderboard, Row, group_tables, group_title
from browseruse_bench.report.pictures import Dot, bars, scatter, text
from browseruse_bench.report.render import Table
from browseruse_bench.report.summary import Summary, tables

_STYLE = """
:root{color-scheme:light dark;--ink:#1b1f24;--pale:#66707c;--line:#d5dae0;--mark:#0b62c4;
--band:#f0c36d;--back:#fff}
@media (prefers-color-scheme:dark){:root{--ink:#e6e9ed;--pale:#9aa4b0;--line:#3a424c;
--mark:#6cb2ff;--band:#8a6a21;--back:#15191e}}
body{font:15px/1.45 system-ui,sans-serif;color:var(--ink);background:var(--back);margin:2rem auto;
max-width:76rem;padding:0 1rem}
h1{font-size:1.5rem}h2{font-size:1.1rem;margin-top:2.2rem}h3{font-size:1rem}
.wide{overflow-x:auto}table{border-collapse:collapse;font-size:.87rem;margin:.6rem 0}
th,td{padding:.25rem .6rem;border-bottom:1px solid var(--line);text-align:left;vertical-align:top}
th{font-weight:600}th,td{white-space:nowrap}td.long{white-space:normal;min-width:18rem}.right{text-align:right;font-variant-numeric:tabular-nums}
.note{color:var(--pale);max-width:50rem}
svg{display:block;width:100%;max-width:54rem;height:auto;margin:.6rem 0;font-size:12px}
svg text{fill:var(--ink)}.grid{stroke:var(--line)}.tick{text-anchor:middle;fill:var(--pale)}
.name,.side{text-anchor:end}.side{fill:var(--pale)}.dot{fill:var(--mark)}.mark{font-size:11px}
.interval{stroke:var(--mark);stroke-width:3}.thin{stroke-width:1.5}.bounds{fill:var(--band)}
""".strip()
_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
POLICY = f"default-src 'none'; style-src 'sha256-{_HASH}'; base-uri 'none'; form-action 'none'"
"""Content security policy of every page."""

_LONG = 40
"""Characters of a cell from which on its text is broken into lines."""
_LEGEND = (
    "Dot: mean of what has a verdict. Line: 95 % interval for new tasks of the same kind. Band: "
    "where the mean would be if all that has no verdict had 0, or 100 points."
)


def leaderboard_page(board: Leaderboard) -> str:
    """The leaderboard as one HTML file."""
    parts = [section for group in board.groups for section in _group(group)]
    if board.problems:
        parts += ["<h2>Not shown</h2>", *(_note(problem) for problem in board.problems)]
    parts.append(
        _note(
            "Ranked by the lower bound, within a group only: runs of unlike tasks, revisions, "
            "protocols, judges or evidence are in groups of their own. Ranks whose intervals "
            "overlap are not shown to differ: `bubench compare` says whether two runs do."
        )
    )
    return page("Leaderboard", parts)


def _group(group: Group) -> list[str]:
    rows = group.rows
    scores, *others = group_tables(group)
    parts = [f"<h2>{text(group_title(group.terms))}</h2>"]
    parts += [bars([bar_of(row) for row in rows], title="Points"), _note(_LEGEND)]
    parts += _table(scores, "")
    for x_label, dots in (
        ("USD per attempt", [_dot(n, row, row.effort.cost_usd) for n, row in enumerate(rows, 1)]),
        (
            "seconds per attempt",
            [_dot(n, row, row.effort.seconds) for n, row in enumerate(rows, 1)],
        ),
    ):
        parts += _scatter([dot for dot in dots if dot is not None], x_label)
    for table in others:
        parts += _table(table)
    return [*parts, *(_note(f"Note: {note}") for note in group.notes)]


def _scatter(dots: Sequence[Dot], x_label: str) -> list[str]:
    """The picture where there is something to see in it."""
    if not any(dot.x > 0 for dot in dots):
        return []
    title = f"Points against {x_label}"
    return [f"<h3>{text(title)}</h3>", scatter(dots, title=title, x_label=x_label)]


def _dot(number: int, row: Row, x: float | None) -> Dot | None:
    interval = row.estimates.points
    if x is None or row.figures.mean is None:
        return None
    return Dot(
        number=number,
        label=bar_of(row).label,
        x=x,
        y=row.figures.mean,
        low=interval.low if interval else None,
        high=interval.high if interval else None,
    )


def report_page(summary: Summary) -> str:
    """The report of one run as one HTML file."""
    identity = summary.identity
    first, *others = tables(summary)
    parts = [bars(bars_of(summary), title="Points"), _note(_LEGEND), *_table(first)]
    seconds = [
        Dot(label=f"{task.task_id} #{row.attempt}", x=row.wall_s, y=row.points)
        for task in summary.tasks
        for row in task.attempts
        if row.points is not None and row.wall_s is not None
    ]
    costs = [
        Dot(label=f"{task.task_id} #{row.attempt}", x=row.cost_usd, y=row.points)
        for task in summary.tasks
        for row in task.attempts
        if row.points is not None and row.cost_usd is not None
    ]
    parts += _scatter(costs, "USD per attempt") + _scatter(seconds, "seconds per attempt")
    for table in others:
        parts += _table(table)
    name = identity.agent.name
    return page(f"{name} on {identity.benchmark}, split {identity.split}", parts)


def comparison_page(comparison: Comparison) -> str:
    """A comparison as one HTML file."""
    rows = [bar(side.label, side.figures, side.estimates.points) for side in comparison.sides]
    parts = [*(f"<p>{text(line)}</p>" for line in comparison.sentences)]
    parts += [bars(rows, title="Points"), _note(_LEGEND)]
    for table in comparison_tables(comparison):
        parts += _table(table)
    parts += [_note(f"Note: {note}") for note in comparison.notes]
    return page(f"{comparison.sides[0].label} and {comparison.sides[1].label}", parts)


def _note(content: str) -> str:
    return f'<p class="note">{text(content)}</p>'


def _table(table: Table, title: str | None = None) -> list[str]:
    heading = table.title if title is None else title
    head = "".join(_cell("th", cell, i in table.right) for i, cell in enumerate(table.headers))
    body = "".join(
        f"<tr>{''.join(_cell('td', cell, i in table.right) for i, cell in enumerate(row))}</tr>\n"
        for row in table.rows
    )
    drawn = f'<div class="wide"><table><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table></div>'
    return [f"<h3>{text(heading)}</h3>", drawn] if heading else [drawn]


def _cell(kind: Literal["th", "td"], content: str, at_right: bool) -> str:
    style = ' class="right"' if at_right else ' class="long"' if len(content) > _LONG else ""
    return f"<{kind}{style}>{text(content)}</{kind}>"


def page(title: str, parts: Sequence[str]) -> str:
    """A whole page.

    Args:
        title: plain text.
        parts: HTML, in which every text from outside has been through `pictures.text`.
    """
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{text(title)}</title>\n<style>{_STYLE}</style></head>\n<body>\n"
        f"<h1>{text(title)}</h1>\n" + "\n".join(parts) + "\n</body></html>\n"
    )
