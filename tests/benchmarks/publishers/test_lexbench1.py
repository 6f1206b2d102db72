import json
from fractions import Fraction

import pytest

from browseruse_bench.benchmarks.publishers.lexbench1 import rubric
from browseruse_bench.errors import DataError
from browseruse_bench.eval.findings.prompts import rubric_text
from tests.benchmarks.publishers import oracle


def row(items, total=100, threshold=65, **reference):
    scoring = {"total": total, "items": items}
    whole = {"steps": ["Go.", "Look."], "key_points": ["No login."],
             "common_mistakes": ["Sorted by price."], **reference, "scoring": scoring}  # fmt: skip
    return {"id": 5, "reference_answer": whole, "score_threshold": threshold}


def scored(name, score, description="All of it."):
    return {"name": name, "score": score, "description": description}


def judged(made):
    return rubric_text(made, made.items, ())


def published(rubric):
    """The publisher's reference answer, made again from the rubric's fields alone."""
    steps = rubric.paths[0].text.split("\n") if rubric.paths else []
    return {
        "steps": [step.partition(". ")[2] for step in steps],
        "key_points": [r.text for r in rubric.rulings if r.id.startswith("K")],
        "common_mistakes": [failure.text for failure in rubric.failures],
        "scoring": {
            "total": 100,
            "items": [
                {"name": i.requirement, "score": i.weight, "description": i.verification or ""}
                for i in rubric.items
            ],
        },
    }


def test_scored_items_become_weights_and_nothing_is_lost():
    source = row([scored("Price", 60), scored("Name", 40)])
    made = rubric(source)
    assert [(i.id, i.weight) for i in made.items] == [("S1", 60), ("S2", 40)]
    assert published(made) == source["reference_answer"]
    assert json.loads(made.text) == source["reference_answer"]
    assert (made.task_id, made.success_at) == ("5", 65)


def test_scores_of_another_total_are_scaled_exactly_and_so_is_the_threshold():
    made = rubric(row([scored("A", 1), scored("B", 2)], total=3, threshold=2))
    assert [i.weight for i in made.items] == [Fraction(100, 3), Fraction(200, 3)]
    assert made.success_at == pytest.approx(200 / 3)


def test_a_decimal_score_is_what_its_digits_say():
    made = rubric(row([scored("A", 33.3), scored("B", 66.7)]))
    assert [i.weight for i in made.items] == [Fraction("33.3"), Fraction("66.7")]


@pytest.mark.parametrize("score", [None, 0])
def test_an_item_without_a_score_becomes_a_ruling(score):
    made = rubric(row([scored("A", 100), scored("B", score)]))
    assert [i.id for i in made.items] == ["S1"]
    assert made.rulings[-1].text == "Not scored: B: All of it."


def test_a_judge_sees_no_score():
    seen = judged(rubric(row([scored("Price", 61), scored("Name", 39)])))
    assert "Sorted by price." in seen
    assert "All of it." in seen
    assert not any(figure in seen for figure in ("61", "39", "65"))


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        (row([scored("A", 60)]), "the scores sum to 60, but the total is 100"),
        (row([scored("A", 110), scored("B", -10)]), "items[1].score: is below 0"),
        (row([scored("A", True)]), "items[0].score"),
        (row([scored("A", "100")]), "items[0].score"),
        (row([scored("", 100)]), "items[0].name"),
        (row([]), "reference_answer.scoring.items"),
        (row([scored("A", 100)], hints=["x"]), "reference_answer.hints: Extra inputs"),
        (row([scored("A", 100)], threshold="65"), "score_threshold: is a number"),
        (row([scored("A", 100)], threshold=0), "success_at"),
    ],
)
def test_what_cannot_be_kept_whole_is_refused_with_its_place(source, problem):
    with pytest.raises(DataError, match="^") as caught:
        rubric(source)
    assert problem in str(caught.value)


def test_a_row_without_scoring_brings_none():
    assert rubric({"id": 1, "reference_answer": "42"}) is None


@oracle.needed
@pytest.mark.oracle
def test_all_rubrics_of_lexbench_1_load_and_can_be_made_back():
    rows = oracle.json_lines("lexbench/task.jsonl")
    rubrics = [rubric(row) for row in rows]
    assert (len(rubrics), sum(len(r.items) for r in rubrics)) == (210, 1292)
    for source, made in zip(rows, rubrics, strict=True):
        assert all(i.weight.denominator == 1 for i in made.items)
        assert made.success_at == source["score_threshold"]
        kept = published(made) == source["reference_answer"]
        assert kept, made.task_id
