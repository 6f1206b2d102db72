import pytest
from hypothesis import given, settings

from browseruse_bench.benchmarks.overlap import overlaps
from browseruse_bench.records.rubric import Rubric
from tests.benchmarks.labelled import overlap_figures
from tests.benchmarks.publishers import oracle
from tests.benchmarks.requirements_by_hand import APART, GATHERED, SAME
from tests.records.made_rubrics import rubrics


def rubric(*requirements, facts=(), **fields):
    """Items A1, A2, ... of these requirements; `fields` gives each a value in turn."""
    items = [
        {"id": f"A{n}", "requirement": text, "weight": f"100/{len(requirements)}",
         **{name: values[n - 1] for name, values in fields.items()}}
        for n, text in enumerate(requirements, 1)
    ]  # fmt: skip
    return Rubric.model_validate({"task_id": "t", "items": items, "facts": facts})


def found(*requirements, **fields):
    return {overlap.items for overlap in overlaps(rubric(*requirements, **fields))}


@pytest.mark.parametrize("pair", APART)
def test_different_things_do_not_overlap(pair):
    assert found(*pair) == set()


@pytest.mark.parametrize("pair", SAME)
def test_the_same_in_other_words_overlaps(pair):
    assert found(*pair) == {("A1", "A2")}


@pytest.mark.parametrize("three", GATHERED)
def test_an_item_that_gathers_the_others_overlaps_with_each(three):
    assert found(*three) == {("A1", "A3"), ("A2", "A3")}
    assert found(*three[:2]) == set()


FACT = {"id": "F1", "claim": "The kettle costs 31.90.", "values": [31.9]}
ROW = {"id": "F1", "claim": "The kettle: 31.90, 1.7 l.", "values": ["31.90", "1.7 l"]}
ANSWER = {"kind": "answer", "match": "text"}


def test_one_value_under_two_items_overlaps():
    texts = "Names the kettle.", "Works out the total."
    both = [["F1"], ["F1"]]
    assert {o.items for o in overlaps(_citing(texts, [FACT], both))} == {("A1", "A2")}
    assert overlaps(_citing(texts, [FACT], [["F1"], []])) == ()


def _citing(texts, facts, cited):
    items = [
        {"id": f"A{n}", "requirement": text, "weight": 50, "facts": ids}
        for n, (text, ids) in enumerate(zip(texts, cited, strict=True), 1)
    ]
    return Rubric.model_validate({"task_id": "t", "items": items, "facts": facts})


def test_a_row_of_a_table_may_serve_items_about_its_different_values():
    apart = "Says that it costs 31.90.", "Says that it holds 1.7 l."
    assert overlaps(_citing(apart, [ROW], [["F1"], ["F1"]])) == ()
    same = "Says that it costs 31.90.", "The total counts 31.90 for it."
    (overlap,) = overlaps(_citing(same, [ROW], [["F1"], ["F1"]]))
    assert overlap.reason == "both stand on “31.90” of fact F1"


URL = {"kind": "url", "host": "shop.test", "path": "/cart"}


@pytest.mark.parametrize(
    ("one", "other", "overlap"),
    [
        (URL, URL, True),
        (URL, {**URL, "when": "any"}, True),
        (URL, {**URL, "path": "/order"}, False),
        ({**ANSWER, "values": ["31.90"]}, {**ANSWER, "values": ["31.90", "blue"]}, True),
        ({**ANSWER, "values": ["Blue"]}, {**ANSWER, "values": ["blue"]}, True),
        ({**ANSWER, "values": ["31.90"]}, {**ANSWER, "values": ["blue"]}, False),
        ({**ANSWER, "values": ["31.90"]}, URL, False),
    ],
)
def test_checks_that_one_thing_meets_overlap(one, other, overlap):
    texts = "Goes to the cart.", "Says which kettle is best."
    assert bool(found(*texts, check=[one, other])) is overlap


@settings(max_examples=30)
@given(rubrics())
def test_any_rubric_is_read_the_same_each_time_and_a_pair_is_named_once(made):
    pairs = [overlap.items for overlap in overlaps(made)]
    assert len(pairs) == len(set(pairs))
    assert pairs == [overlap.items for overlap in overlaps(made)]
    ids = [item.id for item in made.items]
    assert all(ids.index(one) < ids.index(other) for one, other in pairs)


def test_there_are_enough_examples():
    assert len(APART) + len(GATHERED) >= 12
    assert len(SAME) + 2 * len(GATHERED) >= 12


@oracle.needed
@pytest.mark.oracle
@pytest.mark.parametrize(
    ("part", "figures"),
    [("development", (27, 7, 19, 508)), ("held_out", (25, 4, 6, 352))],
)
def test_the_rules_agree_with_what_was_labelled_by_reading(part, figures):
    """(found and overlapping, found and not, missed, rightly passed), over pairs of items."""
    assert overlap_figures(part) == figures
