"""Seeking gives the first of all places, whatever the text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from browseruse_bench.eval.matcher import Read, places, target_of
from browseruse_bench.eval.seeking import first_place

VALUES = [
    5, 0, 10, 1234.5, 5000, 0.5, -5, "1,305 rows", "$1,299", "5 km", "2026-05-03", "May 2026",
    "05/03/2026", "Ann", "Blue Kettle", "colour", "grey -5 box", "C++", "007", "\u5317\u4eac",
]  # fmt: skip
PIECES = [
    "5", "10", "0", "1,234.50", "1 234.5", "5k", "5,000", "5 thousand", "0.005 M", ".5", "0,5", "-5",
    "1,305 rows", "1305 rows", "$1,299", "1299 USD", "5 km", "5 miles", "2026-05-03", "May 3, 2026",
    "3 May", "May 2026", "05/03/2026", "Ann", "Annapolis", "ann's", "the BLUE", "kettle", "Blue Kettle",
    "color", "Colour", "gray", "grey", "box", "C++", "007", "10.5", "x5", "\u5317\u4eac", "is", ".", ",",
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES)
@given(
    pieces=st.lists(st.sampled_from(PIECES), max_size=12),
    gap=st.sampled_from([" ", "\t", " a ", " | "]),
)
def test_seeking_finds_the_first_place_of_all(value, pieces, gap):
    read = Read(gap.join(pieces))
    target = target_of(value)
    assert first_place(read, target) == next(iter(sorted(places(target, read))), None)


def test_a_place_in_a_later_line_is_counted_from_the_beginning():
    read = Read("first line\nthen 5 km\nand 6")
    place = first_place(read, target_of("5 km"))
    assert read.text[slice(*place)] == "5 km"
