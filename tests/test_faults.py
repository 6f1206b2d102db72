"""docs/faults.md is true: each test that it names exists, and each id is in one of them."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "faults.md").read_text()
ROWS = re.findall(r"^\|.*`tests/.*$", PAGE, re.MULTILINE)
WITH_ID = [row for row in ROWS if re.match(r"\| \[BL\d{3}\]", row)]


@cache
def claims_in(file):
    """Name -> name and docstring of each test function of a file."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {
        node.name: f"{node.name}\n{ast.get_docstring(node) or ''}"
        for node in ast.walk(ast.parse((ROOT / file).read_text()))
        if isinstance(node, functions) and node.name.startswith("test_")
    }


def named(row):
    return re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", row)


def test_the_page_has_its_rows():
    assert len(WITH_ID) >= 8
    assert len(ROWS) > len(WITH_ID)
    assert sum(row.count("`tests/") for row in ROWS) == sum(len(named(row)) for row in ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[2:60])
def test_every_test_that_the_page_names_exists(row):
    assert [f"{file}::{name}" for file, name in named(row) if name not in claims_in(file)] == []


@pytest.mark.parametrize("row", WITH_ID, ids=lambda row: row[3:8])
def test_every_id_of_the_page_is_in_a_test_that_it_names(row):
    fault = row[3:8].lower()
    assert any(fault in claims_in(file)[name].lower() for file, name in named(row)), fault
