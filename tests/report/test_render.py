import io
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from browseruse_bench.report.render import (
    Table,
    clean,
    counts,
    markdown_table,
    money,
    number,
    percent,
    plain_table,
    show,
    with_bounds,
)


def test_a_plain_table_is_aligned_and_has_no_markup():
    table = Table(
        title="T",
        headers=("name", "n"),
        rows=(("[red]a[/red]", "1"), ("b", "10")),
        right=frozenset({1}),
    )
    assert plain_table(table) == "T\nname           n\n[red]a[/red]   1\nb             10\n"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_in_a_terminal_text_is_drawn_as_it_is_without_control_sequences():
    out = Terminal()
    table = Table(title="", headers=("h",), rows=(("[bold]x[/bold]\x1b[31m",),))
    show([table], out)
    assert "[bold]x[/bold]" in out.getvalue()
    assert "\x1b[31m" not in out.getvalue()


def test_elsewhere_it_is_plain():
    out = io.StringIO()
    show([Table(title="", headers=("h",), rows=(("x",),))], out)
    assert out.getvalue() == "h\nx\n"


@settings(deadline=None)
@given(st.text(), st.text())
def test_no_text_breaks_a_markdown_table_or_becomes_html(a, b):
    text = markdown_table(Table(title="", headers=("x", "y"), rows=((a, b),)))
    lines = text.split("\n")
    assert len(lines) == 4
    assert len(re.findall(r"(?<!\\)(?:\\\\)*\|", lines[2])) == 3
    assert "<" not in text
    assert "://" not in text


@settings(deadline=None)
@given(st.text())
def test_clean_text_is_one_line_of_printable_characters(text):
    assert clean(text).isprintable()
    assert clean(clean(text)) == clean(text)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((0.0, 0, 0), "$0.00"),
        ((1.234, 1.234, 0), "$1.23"),
        ((0.0012, 0.0012, 0), "$0.0012"),
        ((None, 1.5, 2), ">= $1.50, 2 unknown"),
        ((None, 0, 2), "unknown"),
        ((None, 0, 0), "-"),
    ],
)
def test_what_a_cost_does_not_know_it_says(arguments, text):
    assert money(*arguments) == text


def test_missing_numbers_are_a_sign_not_a_number():
    assert (number(None), percent(None), with_bounds(None, None, None)) == ("-", "-", "-")
    assert with_bounds(50, 25, 75) == "50.0 [25.0, 75.0]"
    assert with_bounds(0.5, 0.5, 0.5, scale=100) == "50.0"
    assert (counts({}), counts({"login": 1, "pending": 2})) == ("0", "3 (login 1, pending 2)")
