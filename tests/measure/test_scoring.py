"""A score is made of findings and weights, by code alone."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from browseruse_bench.measure.scoring import score
from browseruse_bench.records.judgement import Citation, Finding, Integrity, Judgement
from browseruse_bench.records.rubric import Item, Rubric


def rubric_of(*weights) -> Rubric:
    items = tuple(
        Item(id=f"I{n}", requirement="r", weight=weight) for n, weight in enumerate(weights, 1)
    )
    return Rubric(task_id="t", items=items)


def judged(*findings, integrity=(), **fields) -> Judgement:
    common = {
        "basis": "findings",
        "protocol": "p",
        "task_id": "t",
        "attempt": 1,
        "task_key": "k",
        "trace_key": "k",
        "judge_key": "k",
        "at": "2026-01-01T00:00:00Z",
        "status": "graded",
        "integrity": integrity,
    }
    if fields.get("basis", "findings") == "findings" and fields.get("status") != "ungraded":
        common["findings"] = findings
    return Judgement(**common | fields)


def finding(item: str, status: str = "met") -> Finding:
    return Finding(item=item, claim="c", status=status)


def flag(name: str, *, holds: bool = True) -> Integrity:
    return Integrity(
        flag=name, claim="c", citations=(Citation(step="final", source="answer", holds=holds),)
    )


def test_points_are_the_weights_of_met_items_only():
    rubric = rubric_of(40, 30, 20, 10)
    made = score(
        judged(
            finding("I1"),
            finding("I2", "violated"),
            finding("I3", "unsupported"),
            finding("I4", "not_assessable"),
        ),
        rubric,
        success_at=100,
    )
    assert (made.raw_points, made.points, made.reward, made.success) == (40, 40, 0.4, False)


def test_weights_that_do_not_divide_100_sum_exactly():
    rubric = rubric_of("100/3", "100/3", "100/3")
    made = score(judged(*(finding(f"I{n}") for n in (1, 2, 3))), rubric, success_at=100)
    assert made.points == 100
    assert made.success


@pytest.mark.parametrize(
    ("findings", "named"),
    [
        ((finding("I1"),), "no finding for item 'I2'"),
        ((finding("I1"), finding("I2"), finding("I2")), "2 findings for item 'I2'"),
        ((finding("I1"), finding("I2"), finding("I9")), "unknown item 'I9'"),
        ((), "no finding for item 'I1'"),
    ],
)
def test_findings_that_are_not_one_per_item_are_refused_by_name_bl004_bl048(findings, named):
    with pytest.raises(ValueError, match=named):
        score(judged(*findings), rubric_of(50, 50), success_at=100)


def test_an_ungraded_judgement_has_no_score_and_never_a_zero():
    ungraded = judged(status="ungraded", reason="judge_fault")
    with pytest.raises(ValueError, match="judge_fault"):
        score(ungraded, rubric_of(100), success_at=100)


def test_findings_without_their_rubric_are_refused():
    with pytest.raises(ValueError, match="rubric"):
        score(judged(finding("I1")), None, success_at=100)


def test_an_integrity_flag_zeroes_the_points_and_keeps_the_raw_ones():
    made = score(judged(finding("I1"), integrity=(flag("canary"),)), rubric_of(100), success_at=1)
    assert (made.raw_points, made.points, made.reward, made.success) == (100, 0, 0, False)
    assert made.flags == ("canary",)


def test_a_flag_whose_citations_do_not_hold_changes_nothing():
    weak = (flag("lying", holds=False),)
    made = score(judged(finding("I1"), integrity=weak), rubric_of(100), success_at=100)
    assert (made.points, made.success, made.flags) == (100, True, ())


@pytest.mark.parametrize(("success_at", "success"), [(60, True), (60.001, False), (59.999, True)])
def test_success_begins_exactly_at_the_threshold(success_at, success):
    made = score(
        judged(finding("I1"), finding("I2", "violated")), rubric_of(60, 40), success_at=success_at
    )
    assert made.success is success


@pytest.mark.parametrize(("label", "success"), [(1, True), (0, False)])
def test_an_evaluators_label_decides_success_whatever_its_score(label, success):
    made = score(judged(basis="evaluator", label=label, score=70), None, success_at=80)
    assert (made.points, made.success) == (70, success)


@pytest.mark.parametrize(("points", "success"), [(80, True), (79.5, False)])
def test_without_a_label_the_score_decides(points, success):
    made = score(judged(basis="imported", score=points), None, success_at=80)
    assert made.success is success


def test_a_flag_zeroes_an_evaluators_score_too():
    made = score(
        judged(basis="evaluator", label=1, score=100, integrity=(flag("fabrication"),)),
        None,
        success_at=100,
    )
    assert (made.raw_points, made.points, made.success) == (100, 0, False)


STATUSES = st.sampled_from(["met", "violated", "unsupported", "not_assessable"])


@st.composite
def graded(draw):
    parts = draw(st.lists(st.integers(1, 50), min_size=1, max_size=8))
    weights = [str(Fraction(part * 100, sum(parts))) for part in parts]
    weights = [w if "/" in w else int(w) for w in weights]
    statuses = draw(st.lists(STATUSES, min_size=len(parts), max_size=len(parts)))
    return rubric_of(*weights), [finding(f"I{n}", s) for n, s in enumerate(statuses, 1)]


@given(graded(), st.sampled_from([1, 50, 100]))
def test_points_stay_within_0_and_100_and_are_json(case, success_at):
    rubric, findings = case
    made = score(judged(*findings), rubric, success_at=success_at)
    assert 0 <= made.points <= 100
    assert made.reward == pytest.approx(made.points / 100)
    json.dumps(made.as_json(), allow_nan=False)
    if all(f.status == "met" for f in findings):
        assert made.points == 100
    if not any(f.status == "met" for f in findings):
        assert made.points == 0


@given(graded(), st.data())
def test_one_more_met_item_never_lowers_the_points(case, data):
    rubric, findings = case
    place = data.draw(st.integers(0, len(findings) - 1))
    better = [*findings]
    better[place] = finding(findings[place].item, "met")
    before = score(judged(*findings), rubric, success_at=50)
    after = score(judged(*better), rubric, success_at=50)
    assert after.points >= before.points
    assert after.success >= before.success
    if findings[place].status != "met":
        assert after.points > before.points


@given(graded(), st.randoms(use_true_random=False))
def test_the_order_of_items_and_findings_changes_nothing(case, random):
    rubric, findings = case
    items, shuffled = [*rubric.items], [*findings]
    random.shuffle(items)
    random.shuffle(shuffled)
    again = rubric.model_copy(update={"items": tuple(items)})
    assert score(judged(*shuffled), again, success_at=70) == score(
        judged(*findings), rubric, success_at=70
    )
