"""The matcher says what an answer states, no more and no less."""

from __future__ import annotations

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
