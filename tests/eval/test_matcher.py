"""The matcher says what an answer states, no more and no less."""

from __future__ import annotations

import datetime
import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from browseruse_bench.eval.matcher import match, state


def holds(expected, answer) -> bool:
    found = match(expected, answer)
    json.dumps(found.details, allow_nan=False)
    assert found.holds == (found.share == 1)
    return found.holds


RIGHT = [
    # numbers
    (10, "10"),
    (10, "The answer is 10."),
    (10, "10.0"),
    (0, "0"),
    ("0", "There are 0 reviews."),
    ("1234.5", "1,234.50"),
    ("1234.5", "1.234,50"),
    ("1234", "1 234"),
    ("1234", "1\u202f234 items"),
    ("1,234", "1234"),
    ("$1,299", "It costs 1299 dollars"),
    ("$1,299", "1,299.00 USD"),
    ("1299", "$1,299"),
    ("5 km", "5 kilometres"),
    ("5 km", "5"),
    ("12%", "12 percent"),
    ("12%", "12 % of all"),
    ("5000", "5k"),
    ("2000000", "2 million"),
    ("$3,000,000", "$3M"),
    (-5, "It is -5 °C"),
    (-5, "\u22125"),
    (1.5, "1,5"),
    (58665, "In 2013 United had 58,665 flights, 17% of the 336,776 flights."),
    (58665, "Between January and March 2013 (90 days) there were 58,665 flights."),
    (5, "I found 6 results on page 1, of which 5 match."),
    ("5 km", "5 km or 3.1 miles"),
    (4.5, "Rated 4.5/5 by 120 people"),
    (5, "about 5"),
    (5, "not 6 but 5"),
    (5, "The answer is not 6. The answer is 5."),
    (5, "5 or 5.0"),
    (5, "It costs 5. (Answer: 5)"),
    (3, "1. Opened the page\n2. Counted the rows\nThe number is 3"),
    (5, "Not only 5 rows were found"),
    ("65 |OR| 3", "3"),
    ("65 |OR| 3", "It has 65 points"),
    # dates
    ("2026-05-03", "May 3, 2026"),
    ("2026-05-03", "on 3 May 2026."),
    ("2026-05-03", "Sunday, 3rd of May, 2026"),
    ("May 3, 2026", "2026-05-03"),
    ("2026-05-03", "3.5.2026"),
    ("2026-12-25", "25/12/2026"),
    ("2026-12-25", "12/25/2026"),
    ("2026-10-10", "10/10/2026"),
    ("05/03/2026", "05/03/2026"),
    ("2026-05-03", "It ran from 04/28/2026 and ended on 05/03/2026"),
    ("May 2026", "May 3, 2026"),
    ("2026-05-03", "May 3"),
    # text
    ("Ann", "ANN"),
    ("Ann", "It was Ann's idea"),
    ("Form submission successful", "The form submission was successful."),
    ("Form submission successful", "form  SUBMISSION\u00a0successful!"),
    ("don't panic", "Don\u2019t Panic"),
    ("e-mail", "e\u2011mail"),
    ("Caf\u00e9", "Cafe\u0301"),
    ("Blue Kettle", "\u200bBlue\u200b Kettle"),
    ("color", "colour"),
    ("170: cancelled", "Order number 170 is Canceled, total $365.42"),
    ("N123AA, A320-232", "The aircraft is N123AA, model A320-232."),
    ("Delta, 18 minutes", "Delta Air Lines; the delay is 18 minutes"),
    ("Ann", "Options were Ann or Bob; it is Ann."),
    ("\u5317\u4eac", "\u7b54\u6848\u662f\u5317\u4eac\u3002"),
    ("C++", "It is written in C++."),
    ("007", "Agent 007"),
    ("not available", "It is not available"),
    ("yes", "Yes, it is."),
    ("No", "The answer is no."),
    ("No", "No. There is no such flight."),
    # addresses
    ("https://x.test/a/viewed", "See https://X.test:443/a/viewed/."),
    ("https://x.test/a/viewed", "http://x.test/a/viewed"),
    ("https://x.test/a?b=1&c=2", "https://x.test/a?c=2&b=1"),
    # lists
    (["UA", "AA"], "AA and UA"),
    (["UA", "AA"], "The carriers are UA and AA, which fly most."),
    (["UA", "AA"], "- AA\n- UA"),
    (["UA", "AA"], '["UA", "AA"]'),
    ([5, 6], "6 and 5"),
    (["Ann Lee", "Ann"], "Ann Lee, Ann"),
]

WRONG = [
    (10, "110"),
    (10, "10.5"),
    (10, "The flight took off at 10:30"),
    (10, "10 May 2026"),
    (10, "COVID-10"),
    (10, "A10"),
    (10, "10th"),
    (10, "-10"),
    (10, "https://x.test/10"),
    (0, "10"),
    ("0", "0.5"),
    ("5 km", "5 miles"),
    ("$5", "5 euros"),
    ("12%", "12 km"),
    ("5", "5k"),
    ("5000000", "5 m"),
    ("1.234", "1,234"),
    # denied, bounded, guessed
    (5, "not 5"),
    (5, "The answer is not 5."),
    (5, "It isn't 5"),
    (5, "5 is wrong"),
    (5, "more than 5"),
    (5, "at least 5"),
    (5, "5 or more"),
    (5, "5+ results"),
    (5, "<5"),
    (5, "either 5 or 6"),
    (5, "5 or 6"),
    (6, "5 or 6"),
    (5, "5/6"),
    (5, "5-6"),
    (5, "between 5 and 6"),
    (5, "5, 6, 7, 8"),
    (5, "5\n6\n7"),
    (5, "5 6 7"),
    (5, "5 flights or 6 flights"),
    (5, "The answer is 5. The answer is 6."),
    (5, "Answer: 5\nAnswer: 6"),
    (5, "Maybe 5. Maybe 6."),
    (5, "It could be 5. Or it could be 6."),
    (5, "Option A: 5. Option B: 6."),
    ("5 km", "5 km or 6 km"),
    ("65 |OR| 3", "3.1 stars"),
    # dates
    ("2026-05-03", "05/03/2026"),
    ("2026-05-03", "May 4, 2026"),
    ("2026-05-03", "May 3, 2025"),
    ("2026-05-03", "May 2026"),
    ("2026-05-03", "not May 3, 2026"),
    ("2026-05-03", "May 3 or May 4, 2026"),
    # text
    ("Ann", "Annapolis"),
    ("Ann", "Joann"),
    ("Ann", "\u0410nn"),
    ("cancelled", "The order is not cancelled"),
    ("cancelled", "It was never canceled"),
    ("cancelled", "The order is no longer cancelled"),
    ("cancelled", "It hasn't been cancelled"),
    ("successful", "unsuccessful"),
    ("Form submission successful", "Form submission was not successful"),
    ("Form submission successful", "form not submitted"),
    ("Ann", "Ann or Bob"),
    ("Bob", "either Ann or Bob"),
    ("Ann", "The answer is Ann or the answer is Bob"),
    ("Ann", "Ann/Bob"),
    ("Ann", "Ann, Bob, Carol, Dave"),
    ("Carol", "Ann\nBob\nCarol\nDave\nEve"),
    ("170: cancelled", "Order 170 is shipped.\nOrder 171 is cancelled."),
    ("007", "7"),
    ("C", "C++"),
    ("yes", "No, yes is wrong"),
    ("yes", "Yes. No."),
    ("no", "There is no flight"),
    ("available", "not available"),
    # addresses: BL038
    ("https://x.test/a/viewed", "https://x.test/a/viewedasdf"),
    ("https://x.test/a/viewed", "https://x.test/a/viewed?x=1"),
    ("https://x.test/a/viewed", "https://x.test/a/VIEWED"),
    ("https://x.test/a/viewed", "https://x.test.evil.test/a/viewed"),
    ("https://x.test/a/viewed", "https://x.test@evil.test/a/viewed"),
    ("https://x.test/a/viewed", "https://x.test:8443/a/viewed"),
    ("https://x.test/a", "https://x.test/a or https://x.test/b"),
    # lists
    (["UA", "AA"], "UA"),
    (["UA", "AA"], "UA, AA, DL"),
    (["UA", "AA"], "The carriers are UA, AA, DL and B6."),
    ([5, 6], "5, 6 and 7"),
    (["Ann Lee", "Ann"], "Ann Lee"),
    (10, ""),
    (10, None),
    ("Ann", "   "),
]


@pytest.mark.parametrize(("expected", "answer"), RIGHT)
def test_a_right_answer_matches_bl038_bl039_bl041(expected, answer):
    assert holds(expected, answer), match(expected, answer).details


@pytest.mark.parametrize(("expected", "answer"), WRONG)
def test_a_wrong_answer_does_not_match_bl038_bl039_bl041(expected, answer):
    assert not holds(expected, answer)


@pytest.mark.parametrize(
    ("expected", "answer", "share"),
    [
        (["UA", "AA", "DL"], "UA and DL", 2 / 3),
        (["UA", "AA"], "UA, AA, DL, B6", 1 / 2),
        ([5, 6], "5, 6, 7", 2 / 3),
        ([5, 6], "", 0),
        ("170: cancelled", "170", 1 / 2),
        (["Paris", 3], "Paris has 3 airports", 1),
        (10, "10", 1),
    ],
)
def test_the_share_counts_what_is_stated_over_what_is_wanted_and_extra(expected, answer, share):
    assert match(expected, answer).share == pytest.approx(share)


@pytest.mark.parametrize("expected", ["", "  ", [], "|OR|", ["a", ""], True, "..."])
def test_nothing_to_look_for_is_refused(expected):
    with pytest.raises(ValueError, match=r"expected|look for"):
        match(expected, "anything")


@pytest.mark.parametrize(
    ("values", "kind"), [(["many"], "number"), (["5 or 6"], "number"), (["soon"], "date")]
)
def test_a_value_that_is_not_of_its_kind_is_refused(values, kind):
    with pytest.raises(ValueError, match="is not a"):
        state(values, "5", kind=kind)


@pytest.mark.parametrize(("answer", "right"), [("10.5", True), ("9.5", True), ("10.51", False)])
def test_tolerance_is_absolute_and_inclusive(answer, right):
    assert state([10], answer, kind="number", tolerance=0.5).holds is right


def test_several_values_of_a_check_are_no_rivals_of_each_other():
    assert state([5, 6], "5 and 6", kind="number").holds
    assert not state([5, 6], "5, 6 or 7", kind="number").holds


def test_prose_after_a_list_is_no_extra():
    assert match(["UA", "AA"], "UA and AA, as the table at the end shows").holds


@given(st.text(max_size=60))
def test_any_text_is_read_without_an_error(text):
    assert not match("BUB7QX", text).holds or "bub7qx" in text.casefold()
    match(["5", "a b"], text)
    match("2026-05-03", text)


@given(st.integers(-(10**9), 10**9))
def test_a_number_matches_itself_in_every_usual_form_and_no_neighbour(n):
    for form in (f"{n}", f"{n:,}", f"The answer is {n:,}.", f"{n}.0", f"${n}"):
        assert match(n, form).holds
        assert not match(n + 1, form).holds
        assert not match(n * 10 + 3, form).holds


@given(st.decimals(0, 10**6, places=2))
def test_both_decimal_marks_are_read(value):
    english = f"{value:,}"
    german = english.translate(str.maketrans(",.", ".,"))
    assert match(str(value), english).holds
    assert match(str(value), german).holds


@given(st.integers(0, 999), st.integers(0, 999), st.sampled_from([" or ", ", ", "/", " - ", "\n"]))
def test_two_guesses_never_pass_for_one_number(a, b, joint):
    if a != b and b not in (5, 10, 100):
        assert not match(a, f"{a}{joint}{b}").holds
        assert not match(b, f"either {a}{joint}{b}").holds


@given(st.dates(datetime.date(1000, 1, 1), datetime.date(2999, 12, 31)))
def test_a_date_matches_itself_in_every_usual_form_and_no_other_day(day):
    iso = day.isoformat()
    for form in (iso, f"{day:%B} {day.day}, {day.year}", f"{day.day} {day:%b} {day.year}"):
        assert match(iso, f"It was on {form}.").holds
        other = day.replace(day=day.day % 28 + 1)
        if other != day:
            assert not match(other.isoformat(), f"It was on {form}.").holds


WORDS = st.lists(st.sampled_from(["ann", "bob", "lee", "kettle", "zinc"]), min_size=1, max_size=3)


@given(WORDS, st.sampled_from(["{}", "It is {}.", "THE {}!", "({})"]))
def test_a_text_matches_itself_in_a_sentence(names, frame):
    text = " ".join(names)
    assert match(text, frame.format(text.title())).holds
    assert not match(text, frame.format(text + "opolis")).holds
    assert not match(text, f"It is not {text}").holds


@given(st.permutations(["Ann", "Bob", "Carol", "Dave"]))
def test_the_order_of_a_list_does_not_count(names):
    assert match(["Ann", "Bob", "Carol", "Dave"], ", ".join(names)).holds


@given(st.lists(st.sampled_from(["Ann", "Bob", "Carol", "Dave", "Eve"]), unique=True))
def test_more_right_items_never_lower_the_share(names):
    wanted = ["Ann", "Bob", "Carol"]
    missing = [name for name in wanted if name not in names]
    before = match(wanted, ", ".join(names)).share
    assert 0 <= before <= 1
    if missing:
        assert match(wanted, ", ".join([*names, missing[0]])).share >= before


@pytest.fixture(scope="module")
def webarena():
    root = os.environ.get("BUBENCH_ORACLE_DATA")
    if root is None:
        pytest.skip("BUBENCH_ORACLE_DATA is not set: the public WebArena tasks are not here")
    rows = json.loads((Path(root) / "webarena" / "test.raw.json").read_text())
    expected = json.loads((Path(root) / "expected.json").read_text())["webarena"]
    return rows, expected


def references(rows):
    for row in rows:
        answers = row["eval"].get("reference_answers") or {}
        for kind in ("exact_match", "must_include"):
            if kind in answers:
                value = answers[kind]
                yield row["task_id"], value if isinstance(value, list) else [value]


@pytest.mark.oracle
def test_every_public_reference_matches_itself_and_not_its_denial(webarena):
    rows, expected = webarena
    assert len(rows) == expected["tasks"]
    n = 0
    for task_id, values in references(rows):
        firsts = [value.split("|OR|")[0].strip() for value in values]
        assert match(values, "\n".join(firsts)).holds, task_id
        assert not match(values, "I could not find that out.").holds, task_id
        if len(values) == 1 and firsts[0].lower() not in ("yes", "no"):
            assert not match(values[0], f"It is not {firsts[0]}").holds, task_id
        n += 1
    assert n > 200


@pytest.mark.oracle
def test_the_public_corner_cases_are_right_bl039(webarena):
    rows, expected = webarena
    by_id = dict(references(rows))
    (marked,) = (by_id[i] for i in expected["or_marker_tasks"])
    assert match(marked, "65").holds
    assert match(marked, "It has 3 stars").holds
    assert not match(marked, "3.1 stars").holds
    (zero,) = by_id[expected["zero_reference_task"]]
    assert match(zero, "$0.00").holds
    assert not match(zero, "$10.00").holds


@pytest.mark.parametrize(
    ("value", "answer", "right"),
    [
        ("60 h", "It lasts 60 hours", True),
        ("3 years", "a 3-year warranty", True),
        ("60 h", "60 minutes", False),
        ("1305", "1,305", True),
        ("10", "10.5", False),
        ("007", "7", False),
        ("https://x.test/a", "https://x.test/a/", True),
        ("https://x.test/a", "https://x.test/ab", False),
        ("https://x.test/a", "https://x.test/a/b", False),
        ("2013-01-05", "2013-01-05", True),
        ("A320-211", "model A320-211.", True),
        ("A320-211", "model A320-2110", False),
    ],
)
def test_a_check_for_text_takes_words_addresses_and_units_as_they_are_bl038(value, answer, right):
    assert state([value], answer, kind="text").holds is right


@pytest.mark.parametrize(
    "answer",
    [
        "The pop-up said: You are late, aren't you?",
        'It said "You are late, aren\'t you?" and closed.',
        "You are late, aren't you?",
    ],
)
def test_a_value_that_is_a_question_is_stated_by_telling_it(answer):
    assert match("You are late, aren't you?", answer).share == 1


def test_a_question_about_a_value_still_states_nothing():
    assert match("You are late", "Was it: You are late?").share == 0
    assert match("You are late, aren't you?", "It never said you are late, aren't you?").share == 0
