"""Text of any origin as Markdown that shows exactly this text: it can neither begin a heading
nor end a quotation.
"""

from __future__ import annotations

import re

_INLINE = re.compile(r"[\\`*\[<~]|(?<!\S)#|(?<![^\W_])_|_(?![^\W_])|&(?=#?\w+;)")
_LINE_START = re.compile(r"^(?:[>+=|-]|(\d+)(?=[.)]))")
_LINES = re.compile(r"[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+")


def inline(text: str) -> str:
    """The text within a line, runs of white space as one space."""
    return _escaped(" ".join(text.split()))


def block(text: str, indent: str = "") -> str:
    """The text as one paragraph that keeps its line breaks; blank lines are dropped.

    Args:
        text: any text.
        indent: stands before every line but the first, as in a list.
    """
    lines = [_at_start(inline(line)) for line in _LINES.split(text)]
    return f"\n{indent}".join(line for line in lines if line)


def quotation(text: str) -> str:
    """The text as a block quotation."""
    return f"> {block(text, '> ')}"


def verbatim(text: str, language: str = "text") -> str:
    """The text as a fenced block, character by character."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def _escaped(line: str) -> str:
    return _INLINE.sub(lambda found: f"\\{found.group()}", line)


def _at_start(line: str) -> str:
    start = _LINE_START.match(line)
    if start is None:
        return line
    # An ordered list begins with digits and a point: the point is what can be escaped.
    at = start.end() if start[1] else 0
    return f"{line[:at]}\\{line[at:]}"
