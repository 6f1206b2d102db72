"""What was typed is put together as a field shows it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from browseruse_bench.eval.matcher import options_of
from browseruse_bench.eval.typed import Typed, as_character


def first(keys, value="1299"):
    """Where a value was complete; "click" moves the focus."""
    typed = Typed()
    for position, key in enumerate(keys, 1):
        if key == "click":
            typed.move()
        else:
            typed.add(position, key)
    return typed.first(options_of(value)[0])


@pytest.mark.parametrize(
    ("keys", "at"),
    [
        (["1", "2", "9", "9"], 4),
        (["12", "99"], 2),
        (["Digit1", "Digit2", "Numpad9", "KP_9"], 4),
        (["99", "Home", "12"], 3),
        (["299", "Home", "1"], 3),
        (["299", "Home", "$1,"], 3),
        (["9", "Home", "9", "Home", "2", "Home", "1"], 7),
        (["9", "ArrowLeft", "1", "2", "End", "9"], 6),
        (["9", "click", "9", "click", "2", "click", "1"], 7),
        (["1", "Control+Shift+K", "2", "9", "9"], 5),
        (["1x299", "ArrowLeft", "Backspace"], 1),
        (["12x9y9", "Delete", "Delete"], 1),
    ],
)
def test_a_value_that_came_about_by_keys_was_typed(keys, at):
    assert first(keys) == at


@pytest.mark.parametrize(
    "keys",
    [
        [],
        ["1", "2", "9"],
        ["1", "2", "Enter", "9"],
        ["99", "click", "kettle"],
        ["1x299"],
        ["12x9y9", "Delete"],
        ["1xxxxxxxx299", "Control+Backspace"],
        ["kettle", "Control+A", "Backspace", "cup"],
    ],
)
def test_a_value_that_cannot_have_come_about_was_not_typed(keys):
    assert first(keys) is None


def test_digits_in_other_fields_are_not_taken_for_a_short_value():
    assert first(["2", "click", "4"], "42") is None
    assert first(["2", "Home", "4"], "42") == 3


def test_a_year_that_was_typed_is_no_shorter_number():
    assert first(["2012", "Control+A", "Backspace", "kettle"], "12") is None


@pytest.mark.parametrize("digits", ["05032026", "03052026", "20260503", "050326", "030526"])
def test_the_digits_of_a_date_field_are_its_date(digits):
    assert first([digits], "May 3, 2026") == 1
    assert first(list(digits), "2026-05-03") == len(digits)
    assert first([digits], "May 4, 2026") is None


@pytest.mark.parametrize(
    ("key", "character"),
    [
        ("a", "a"),
        ("Digit4", "4"),
        ("Shift+KeyA", "A"),
        ("KeyB", "B"),
        ("Shift+ArrowLeft", None),
        ("Space", " "),
        ("Minus", " "),
        ("Enter", None),
        ("Control+a", None),
        ("Kettle", None),
        ("F4", None),
        ("", None),
    ],
)
def test_a_key_gives_the_character_that_its_name_says(key, character):
    assert as_character(key) == character


@given(st.lists(st.sampled_from([*"129x", "Home", "ArrowLeft", "Backspace", "click", "12"])))
def test_more_typing_never_takes_back_that_a_value_was_typed(keys):
    places = [first(keys[:n]) for n in range(len(keys) + 1)]
    for earlier, later in zip(places, places[1:], strict=False):
        assert earlier is None or (later is not None and later <= earlier)


def test_a_contraction_is_known_key_by_key():
    value = "You aren't late, are you?"
    assert first(list(value), value) is not None
    assert first([value[5:], "Home", value[:5]], value) == 3
