import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from browseruse_bench.benchmarks.rubric_lint import RULES, WAIVABLE, lint
from browseruse_bench.records.rubric import Rubric
from browseruse_bench.records.task import Task
from tests.records.made_rubrics import released, rubrics

TASK = Task(task_id="kettle", task="Find a kettle on shop.test for at most 35 euros.",
            start_url="http://shop.test/")  # fmt: skip


def rules(rubric, task=TASK):
    return [remark.rule for remark in lint(rubric, task) if remark.waiver is None]


def one(requirement="It says which kettle is best.", **item):
    made = {"id": "A1", "requirement": requirement, "weight": 100, "evidence": "page", **item}
    return Rubric.model_validate({"task_id": "kettle", "items": [made]})


def test_a_sound_rubric_has_no_remark():
    assert lint(Rubric.model_validate(released()), TASK) == ()


IDLE = [
    "The agent does not log in.", "No purchase is made.", "The agent never leaves the site.",
    "Do not submit the form.", "The agent avoids paid listings.",
    "The list does not contain duplicates.", "The answer does not mention a competitor.",
    "If a pop-up appears, it is closed.", "Nothing is added to the cart.",
    "The report doesn't exceed the budget.", "The agent refrains from guessing.",
    "When the page asks for a language, English is chosen.", "The session isn't ended early.",
    "Unless the flight is sold out, it is booked.", "Without signing in.",
]  # fmt: skip
BUSY = [
    "Says that the kettle is not in stock.", "The answer states that no refund is given.",
    "If the item is sold out, the answer says so; otherwise it gives the price.",
    "Names a hotel that does not allow pets.", "Reports that the museum never opens on Mondays.",
    "Gives the title of the film that was not released in Japan.",
    "The cart holds one lamp and nothing else.", "Order LK-1 is cancelled.",
    "Records 'not shown' where a price is missing.", "Find a flight with no stops.",
    "The summary explains why the plan cannot be cancelled.", "Confirms that nobody is signed in.",
    "“Parents” is no longer in the address book.",
]  # fmt: skip


@pytest.mark.parametrize("requirement", IDLE)
def test_what_an_attempt_that_does_nothing_may_meet_is_found(requirement):
    assert "nothing_done" in rules(one(requirement))


@pytest.mark.parametrize("requirement", BUSY)
def test_a_claim_that_something_is_not_so_is_something_done(requirement):
    assert "nothing_done" not in rules(one(requirement))


STATE = {"kind": "state", "site": "shop.test", "sql": "SELECT 1"}


@pytest.mark.parametrize(("equals", "found"), [([], True), ([[0]], False)])
def test_a_check_for_no_rows_is_found(equals, found):
    assert ("empty_check" in rules(one(check={**STATE, "equals": equals}))) is found


@pytest.mark.parametrize(
    ("check", "found"),
    [
        ({"host": "shop.test"}, True),
        ({"host": "shop.test", "path": "/"}, True),
        ({"host": "shop.test", "path": "/cart"}, False),
        ({"host": "shop.test", "query": {"q": "kettle"}}, False),
        ({"host": "docs.test"}, False),
    ],
)
def test_a_check_that_the_start_page_meets_is_found(check, found):
    made = one(check={"kind": "url", **check})
    assert ("start_page" in rules(made)) is found
    assert "start_page" not in rules(made, None)


@pytest.mark.parametrize(
    ("values", "found"),
    [
        (["kettle"], True),
        (["Kettle|OR|pot"], True),
        (["kettle", "Blue"], False),
        (["kettles"], False),
        (["35"], False),
        (["yes"], False),
        (["shop.test"], True),
    ],
)
def test_an_answer_that_the_task_gives_away_is_found(values, found):
    made = one(check={"kind": "answer", "values": values})
    assert ("given_away" in rules(made)) is found
    assert "given_away" not in rules(made, None)


@pytest.mark.parametrize(("seen", "found"), [(None, True), (["kettle"], True), (["31.90"], False)])
def test_a_choice_that_needs_other_words_seen_is_not_given_away(seen, found):
    made = one(check={"kind": "answer", "values": ["kettle"], "seen": seen})
    assert ("given_away" in rules(made)) is found


def test_a_fact_that_the_task_gives_away_is_found():
    facts = [{"id": "F1", "claim": "It is a kettle.", "values": ["kettle"]},
             {"id": "F2", "claim": "The kettle costs 31.90.", "values": ["kettle", 31.9]}]  # fmt: skip
    items = [{"id": "A1", "requirement": "So.", "weight": 100, "evidence": "page",
              "facts": ["F1", "F2"]}]  # fmt: skip
    made = Rubric.model_validate({"task_id": "kettle", "facts": facts, "items": items})
    assert [(r.rule, r.ids) for r in lint(made, TASK)] == [("given_away", ("F1",))]


CANARY = "BUB-CANARY-0123456789abcdef"


@pytest.mark.parametrize(
    "changes",
    [
        {"answers": [{"text": f"31.90 {CANARY}"}]},
        {"rulings": [{"id": "R1", "text": CANARY.lower()}]},
        {"paths": [{"text": "BUB-CANARY- 0123 4567 89ab cdef"}]},
        {"failures": [{"text": "So.", "looks_like": "BUB-CANARY-ffffffffffffffff"}]},
        {"text": f"x{CANARY}x"},
    ],
)
def test_a_canary_in_any_text_of_the_rubric_is_found(changes):
    assert "canary" in rules(Rubric.model_validate(released(**changes)))


def test_a_publishers_canary_in_an_item_is_found():
    items = [{**released()["items"][0], "requirement": "Say tok-123456.", "weight": 100}]
    made = Rubric.model_validate(released(canary="tok-123456", items=items, facts=[
        released()["facts"][0]]))  # fmt: skip
    assert rules(made) == ["canary"]


def test_an_item_must_say_its_kind_of_evidence_unless_code_checks_it():
    silent = [{k: v for k, v in item.items() if k != "evidence"} for item in released()["items"]]
    assert rules(Rubric.model_validate(released(items=silent))) == ["no_evidence"]
    half = [silent[0], released()["items"][1]]
    (remark,) = lint(Rubric.model_validate(released(items=half)), TASK)
    assert (remark.rule, remark.ids) == ("no_evidence", ("A1_price",))
    silent[0]["check"] = {"kind": "url", "host": "shop.test", "path": "/kettle"}
    silent[1]["evidence"] = "visual"
    assert rules(Rubric.model_validate(released(items=silent))) == []


def test_a_fact_that_nothing_stands_on_is_found():
    items = [{**item, "facts": []} for item in released()["items"]]
    made = released(items=items, false_claims=[{"text": "It costs 29.90.", "facts": ["F1"]}],
                    answers=[{"text": "31.90", "facts": ["F2"]}])  # fmt: skip
    (remark,) = lint(Rubric.model_validate(made), TASK)
    assert (remark.rule, remark.ids) == ("uncited", ("F2",))


def test_an_item_that_leans_on_another_is_found():
    items = released()["items"]
    items[1]["requirement"] = "The kettle of A1_price is the cheapest."
    (remark,) = lint(Rubric.model_validate(released(items=items)), TASK)
    assert (remark.rule, remark.ids) == ("refers", ("A2_warranty", "A1_price"))
    items[1]["requirement"] = "The kettle of A1_prices is the cheapest."
    assert rules(Rubric.model_validate(released(items=items))) == []


def compound(**waiver):
    items = released()["items"]
    items[0]["requirement"] = "States the price and the colour of the kettle."
    made = {"rule": "compound", "items": ["A1_price"], "reason": "They are one label.", **waiver}
    return Rubric.model_validate(released(items=items, waivers=[made]))


def test_a_waiver_keeps_its_remark_in_sight_and_answers_it():
    (remark,) = lint(compound(), TASK)
    assert remark.rule == "compound"
    assert remark.waiver is not None
    assert remark.waiver.reason == "They are one label."


@pytest.mark.parametrize(
    "waiver",
    [{"rule": "overlap"}, {"items": ["A2_warranty"]}, {"items": ["A1_price", "A2_warranty"]}],
)
def test_a_waiver_of_another_remark_answers_nothing_and_is_one_itself(waiver):
    assert rules(compound(**waiver)) == ["compound", "stale_waiver"]


@pytest.mark.parametrize("rule", ["canary", "uncited", "nonsense"])
def test_what_is_certain_cannot_be_waived(rule):
    waiver = {"rule": rule, "items": ["F9"], "reason": "No."}
    facts = [*released()["facts"], {"id": "F9", "claim": "So."}]
    made = Rubric.model_validate(released(facts=facts, waivers=[waiver]))
    assert "stale_waiver" in rules(made)
    assert "uncited" in rules(made)
    assert rule not in WAIVABLE


@settings(max_examples=30)
@given(rubrics(), st.integers(0, 99))
def test_any_rubric_is_read_and_the_order_of_its_items_adds_no_remark(made, seed):
    found = lint(made, TASK)
    assert found == lint(made, TASK)
    assert {remark.rule for remark in found} <= set(RULES)
    single = ("compound", "nothing_done", "uncited", "canary", "empty_check")
    items = list(made.items)
    random.Random(seed).shuffle(items)
    other = lint(made.model_copy(update={"items": tuple(items)}), TASK)
    for rule in single:
        assert sorted(r.ids for r in found if r.rule == rule) == sorted(
            r.ids for r in other if r.rule == rule
        )
