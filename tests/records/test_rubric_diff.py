import json

import pytest
from hypothesis import given, settings
from markdown_it import MarkdownIt

from browseruse_bench.records.rubric import Rubric
from browseruse_bench.records.rubric_diff import changes, diff_lines, diff_markdown
from tests.records.made_rubrics import released, rubrics


def changed(**fields):
    before, after = Rubric.model_validate(released()), Rubric.model_validate(released(**fields))
    return [(c.kind, c.place) for c in changes(before, after)]


def items(**first):
    one, other = released()["items"]
    return {"items": [{**one, **first}, {**other, "weight": 100 - first.get("weight", 60)}]}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, []),
        (items(requirement="States what the kettle costs."),
         [("reworded", "items.A1_price.requirement")]),
        (items(weight=70), [("reweighted", "items.A1_price.weight"),
                            ("reweighted", "items.A2_warranty.weight")]),
        (items(evidence="visual"), [("changed", "items.A1_price.evidence")]),
        (items(facts=[]), [("changed", "items.A1_price.facts")]),
        (items(check={"kind": "url", "host": "a"}), [("added", "items.A1_price.check")]),
        (items(verification="Look."), [("added", "items.A1_price.verification")]),
        (items(id="A9_price"), [("renamed", "items.A1_price.id")]),
        (items(id="A9_price", requirement="So."),
         [("removed", "items.A1_price"), ("added", "items.A9_price")]),
        ({"items": released()["items"][::-1]}, [("moved", "items")]),
        ({"facts": [*released()["facts"], {"id": "F3", "claim": "So."}]}, [("added", "facts.F3")]),
        ({"facts": [{**released()["facts"][0], "quote": "Kettle 31.90"}, released()["facts"][1]]},
         [("changed", "facts.F1.quote")]),
        ({"rulings": [{"id": "R1", "text": "So."}]}, [("added", "rulings.R1")]),
        ({"answers": [{"text": "31.90"}]}, [("added", "answers")]),
        ({"revision": 2}, [("changed", "revision")]),
        ({"canary": None}, [("removed", "canary")]),
        ({"text": "So."}, [("added", "text")]),
        ({"waivers": [{"rule": "compound", "items": ["A1_price"], "reason": "One."}]},
         [("added", "waivers")]),
    ],
)  # fmt: skip
def test_each_change_is_named_with_its_place(fields, expected):
    assert changed(**fields) == expected


def test_both_values_of_a_weight_are_told_exactly():
    before = Rubric.model_validate(released(items=[
        {"id": "A", "requirement": "So.", "weight": "100/3", "facts": ["F1"]},
        {"id": "B", "requirement": "So.", "weight": "200/3", "facts": ["F2"]}]))  # fmt: skip
    after = Rubric.model_validate(released(items=[
        {"id": "A", "requirement": "So.", "weight": 40, "facts": ["F1"]},
        {"id": "B", "requirement": "So.", "weight": 60, "facts": ["F2"]}]))  # fmt: skip
    first = changes(before, after)[0]
    assert (first.before, first.after) == ("100/3", "40")
    assert diff_lines([first]) == ["reweighted items.A.weight", "  - 100/3", "  + 40"]


@settings(max_examples=20)
@given(rubrics(), rubrics())
def test_there_is_no_change_exactly_if_the_rubrics_are_equal(one, other):
    assert changes(one, one) == ()
    assert bool(changes(one, other)) == (one != other)
    json.dumps([change.as_json() for change in changes(one, other)])
    found = changes(one, other)
    headings = [t for t in MarkdownIt().parse(diff_markdown(one, other, found)) if t.tag == "h2"]
    assert len(headings) == 2 * len(found)


def test_no_difference_is_said():
    rubric = Rubric.model_validate(released())
    assert diff_lines(changes(rubric, rubric)) == ["no difference"]
    assert diff_markdown(rubric, rubric, ()).endswith("No difference.\n")
