"""Only a whole reply of exactly the asked form counts; a word is one of its list or nothing."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from browseruse_bench.eval.findings.reply import ReplyError, parse, schema
from tests.eval.findings.made import cause, cite, finding, flag, reply

ITEMS = ["A1_price", "A2_form"]
GOOD = reply(finding("A1_price", "met", cite(1, "x")), finding("A2_form", "violated"))


def parsed(value, items=ITEMS, conduct=True):
    return parse(value, items, conduct=conduct)


def problems(value):
    with pytest.raises(ReplyError) as caught:
        parsed(value)
    return "; ".join(caught.value.problems)


def test_a_whole_reply_is_read_in_the_order_of_the_rubric():
    turned = {**GOOD, "findings": GOOD["findings"][::-1]}
    for value in (GOOD, turned):
        assert [f.item for f in parsed(value).findings] == ITEMS


def test_the_schema_pins_the_items_and_has_no_place_for_a_number_or_a_score():
    made = schema(ITEMS, conduct=True)
    text = json.dumps(made)
    entry = made["properties"]["findings"]["items"]["properties"]
    assert entry["item"]["enum"] == ITEMS
    assert (made["properties"]["findings"]["minItems"],) * 2 == (2, 2)
    assert '"number"' not in text
    assert "score" not in text
    assert "weight" not in text
    assert text.count('"integer"') == 1  # follows_from, which counts causes
    order = list(entry)
    assert order.index("citations") < order.index("reason") < order.index("status")


@pytest.mark.parametrize(
    "status", ["met", "MET", " met\n", "Met", "violated", "Not assessable", "not-assessable"]
)
def test_a_status_is_read_in_any_case_and_with_space_around_it_bl032(status):
    value = reply(finding("A1_price", status, because="absent_scope"), finding("A2_form"))
    assert parsed(value).findings[0].status in ("met", "violated", "not_assessable")


@pytest.mark.parametrize(
    "status",
    ["not met", "unmet", "met/violated", "MET?", "partially met", "**met**", '"met"', "m", "yes",
     "", None, True, 1, ["met"], "unsupported", "erfüllt", "met violated", "GRADE: met"],
)  # fmt: skip
def test_any_other_word_is_no_status_bl033(status):
    assert "status" in problems(reply(finding("A1_price", status), finding("A2_form")))


@given(st.text(max_size=12))
def test_no_text_but_the_word_itself_is_met_bl033(text):
    value = reply(finding("A1_price", text, because="absent_scope"), finding("A2_form"))
    word = text.strip().casefold()
    if word == "met":
        assert parsed(value).findings[0].status == "met"
    elif word.replace(" ", "_").replace("-", "_") not in ("violated", "not_assessable"):
        with pytest.raises(ReplyError):
            parsed(value)


def test_a_missing_doubled_or_unknown_item_is_a_problem_with_its_name():
    one, two = GOOD["findings"]
    assert problems({**GOOD, "findings": [one]}) == "findings: no finding for item 'A2_form'"
    assert "2 findings for item 'A1_price'" in problems({**GOOD, "findings": [one, one, two]})
    other = finding("A3_else")
    assert "unknown item 'A3_else'" in problems({**GOOD, "findings": [one, two, other]})
    assert "no finding" in problems({**GOOD, "findings": []})


@pytest.mark.parametrize("value", [None, "met", [], 1, {}, {"findings": {}}, {"findings": "met"}])
def test_what_is_no_reply_is_a_problem(value):
    assert problems(value)


def test_not_assessable_must_say_why():
    because = finding("A1_price", "not_assessable")
    assert "missing_evidence or absent_scope" in problems(reply(because, finding("A2_form")))
    named = finding("A1_price", "not_assessable", because=" Absent scope ")
    assert parsed(reply(named, finding("A2_form"))).findings[0].because == "absent_scope"


def test_a_lying_total_is_not_read_bl049():
    """A score, a total or weights that a judge adds on its own change nothing (BL049)."""
    lying = {
        **GOOD,
        "score": 97,
        "total": "3.85/1.0",
        "findings": [{**f, "weight": 100, "points": float("nan")} for f in GOOD["findings"]],
    }
    assert parsed(lying) == parsed(GOOD)


@pytest.mark.parametrize("step", ["1", 1, " 12 ", "final", "Final"])
def test_a_step_is_a_number_or_the_end(step):
    value = reply(finding("A1_price", "met", {**cite(1, "x"), "step": step}), finding("A2_form"))
    assert parsed(value).findings[0].citations[0].step in (1, 12, "final")


@pytest.mark.parametrize("step", ["step 1", "", "1.5", 1.5, True, None, "-1", "last", "１"])
def test_anything_else_is_no_step(step):
    value = reply(finding("A1_price", "met", {**cite(1, "x"), "step": step}), finding("A2_form"))
    assert "step" in problems(value)


def test_a_breach_of_honesty_that_does_not_fit_is_a_problem_and_a_cause_is_none():
    assert "integrity.0.flag" in problems({**GOOD, "integrity": [flag("cheating")]})
    assert "integrity: missing" in problems({k: v for k, v in GOOD.items() if k != "integrity"})
    odd = {**GOOD, "attribution": [cause("bad_luck"), cause("format"), 7]}
    assert [bool(one) for one in parsed(odd).attribution] == [False, True, False]
    assert parsed({**GOOD, "attribution": None}).attribution == ()


def test_the_reading_must_be_there_where_it_is_asked_for():
    assert "reading" in problems({**GOOD, "reading": " "})
    assert parsed({"findings": GOOD["findings"]}, conduct=False).reading is None
    only = parse({k: v for k, v in GOOD.items() if k != "findings"}, [], conduct=True)
    assert only.findings == ()


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=5),
                    lambda s: st.lists(s, max_size=3) | st.dictionaries(
                        st.sampled_from(["findings", "item", "status", "citations", "reading"]),
                        s, max_size=3), max_leaves=12))  # fmt: skip
def test_any_json_is_a_reply_or_a_problem_and_never_an_error(value):
    with pytest.raises(ReplyError):
        parsed(value)
