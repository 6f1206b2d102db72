"""Odysseys and LexBench 2.0: items of a requirement and a verification, all worth the same."""

import json
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from browseruse_bench.benchmarks.publishers import PUBLISHERS
from browseruse_bench.errors import DataError
from browseruse_bench.eval.findings.prompts import rubric_text
from tests.benchmarks.publishers import oracle

NAMES = ["odysseys", "lexbench2"]


def entry(requirement="It is so.", **changes):
    return {"requirement": requirement, "verification": "Look at it.", **changes}


def published(rubric):
    """The publisher's object, made again from the rubric's items alone."""
    return {
        item.id: {"requirement": item.requirement, "verification": item.verification}
        for item in rubric.items
    }


@pytest.mark.parametrize("name", NAMES)
@given(n=st.integers(1, 12), as_text=st.booleans())
def test_nothing_is_lost_and_all_items_weigh_exactly_the_same(name, n, as_text):
    entries = {f"R{i}": entry(f"No {i} is so.\n ") for i in range(1, n + 1)}
    given = json.dumps(entries) if as_text else entries
    rubric = PUBLISHERS.get(name)({"task_id": "t", "rubrics": given})
    assert published(rubric) == entries
    assert list(published(rubric)) == list(entries)
    assert json.loads(rubric.text) == entries
    assert {item.weight for item in rubric.items} == {Fraction(100, n)}
    assert sum(item.weight for item in rubric.items) == 100


def test_the_text_is_kept_character_by_character():
    text = '{ "R1":  {"requirement":"Caf\\u00e9.", "verification": "Look."}}'
    assert PUBLISHERS.get("odysseys")({"task_id": "t", "rubrics": text}).text == text


def judged(made):
    return rubric_text(made, made.items, ())


def test_a_judge_sees_each_verification():
    rubric = PUBLISHERS.get("odysseys")({"task_id": "t", "rubrics": {"R1": entry()}})
    assert "how to see it: Look at it." in judged(rubric)
    assert judged(rubric).count("It is so.") == 1


def test_the_id_may_have_the_publishers_name_and_be_a_number():
    assert PUBLISHERS.get("lexbench2")({"id": 7, "rubrics": {"R1": entry()}}).task_id == "7"


def test_a_row_without_rubrics_brings_none():
    assert PUBLISHERS.get("odysseys")({"task_id": "t"}) is None


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"rubrics": {"R1": entry()}}, "task_id: missing"),
        ({"task_id": "t", "rubrics": "{"}, "rubrics: not JSON"),
        ({"task_id": "t", "rubrics": {}}, "rubrics: empty"),
        ({"task_id": "t", "rubrics": []}, "rubrics: "),
        ({"task_id": "t", "rubrics": {"R1": entry(note="x")}}, "rubrics.R1.note: Extra inputs"),
        ({"task_id": "t", "rubrics": {"R1": {"verification": "x"}}},
         "rubrics.R1.requirement: Field required"),
        ({"task_id": "t", "rubrics": {"R 1": entry()}}, "items[0].id: "),
        ({"task_id": "t", "rubrics": '{"R1": {"requirement": "a"}, "R1": {"requirement": "b"}}'},
         "'R1' occurs twice"),
    ],
)  # fmt: skip
def test_what_cannot_be_kept_whole_is_refused_with_its_place(row, problem):
    with pytest.raises(DataError) as caught:
        PUBLISHERS.get("odysseys")(row)
    assert any(problem in line for line in caught.value.problems), caught.value.problems


def test_all_problems_of_a_row_are_listed_at_once():
    with pytest.raises(DataError) as caught:
        PUBLISHERS.get("odysseys")({"task_id": "t", "rubrics": {"R1": {}, "R2": {"x": 1}}})
    assert len(caught.value.problems) == 3


@oracle.needed
@pytest.mark.oracle
def test_all_rubrics_of_odysseys_load_with_exact_weights():
    rows = json.loads((oracle.PUBLIC / "odysseys" / "odysseys.json").read_text())
    expected = json.loads((oracle.PUBLIC / "expected.json").read_text())["odysseys"]
    rubrics = [PUBLISHERS.get("odysseys")(row) for row in rows]
    assert len(rubrics) == expected["tasks"]
    assert sum(len(rubric.items) for rubric in rubrics) == expected["rubric_items"]
    assert expected["rubric_items"] / expected["tasks"] == expected["mean_items"]
    # The figure of the format's specification: item counts that do not divide 100.
    assert sum(rubric.items[0].weight.denominator != 1 for rubric in rubrics) == 141
    for row, rubric in zip(rows, rubrics, strict=True):
        assert sum(item.weight for item in rubric.items) == 100
        source = row["rubrics"]
        whole = json.loads(source) if isinstance(source, str) else source
        kept = published(rubric) == whole
        assert kept, rubric.task_id


@oracle.needed
@pytest.mark.oracle
@pytest.mark.parametrize(
    ("file", "n_tasks", "n_items", "n_fractions"),
    [("task.jsonl", 150, 848, 79), ("task_challenge_100.jsonl", 100, 564, 52)],
)
def test_all_rubrics_of_lexbench_2_load_with_exact_weights(file, n_tasks, n_items, n_fractions):
    rows = oracle.json_lines(f"lexbench2/{file}")
    rubrics = [PUBLISHERS.get("lexbench2")(row) for row in rows]
    assert (len(rubrics), sum(len(r.items) for r in rubrics)) == (n_tasks, n_items)
    assert sum(r.items[0].weight.denominator != 1 for r in rubrics) == n_fractions
    for row, rubric in zip(rows, rubrics, strict=True):
        kept = published(rubric) == row["rubrics"]
        assert kept, rubric.task_id
