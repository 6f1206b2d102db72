"""A judgement holds statuses or a number in its range, never both and never anything else."""

import pytest
from pydantic import ValidationError

from browseruse_bench.records.judgement import Finding, Judgement

COMMON = {
    "protocol": "p",
    "task_id": "t",
    "attempt": 1,
    "task_key": "k",
    "trace_key": "k",
    "judge_key": "k",
    "at": "2026-01-01T00:00:00Z",
    "status": "graded",
}
FINDING = {"item": "A1", "claim": "c", "status": "met"}


def judged(**fields):
    return Judgement.model_validate(COMMON | fields)


@pytest.mark.parametrize("status", ["MET ", "not met", "unmet", "MET?", "CI", "8", 8, 1, True, ""])
def test_a_status_is_one_of_four_words_exactly_bl048(status):
    """BL048, BL033: nothing is clamped, stripped or read as something else."""
    with pytest.raises(ValidationError):
        Finding.model_validate(FINDING | {"status": status})


@pytest.mark.parametrize("score", [105, 124, 100.0001, -1, float("nan"), float("inf")])
def test_a_score_outside_0_to_100_is_refused_not_clamped_bl048(score):
    """BL048."""
    with pytest.raises(ValidationError, match="score"):
        judged(basis="evaluator", label=1, score=score)


@pytest.mark.parametrize("score", [0, 0.0, 42.5, 100])
def test_both_ends_of_the_scale_are_scores(score):
    assert judged(basis="matcher", score=score).score == score


@pytest.mark.parametrize("number", [{"score": 97}, {"label": 1}])
def test_a_total_beside_findings_is_refused_bl049(number):
    """BL049: a judge's own total is never taken; code adds the weights up."""
    with pytest.raises(ValidationError, match="no score and no label"):
        judged(basis="findings", findings=[FINDING], **number)


def test_an_ungraded_judgement_says_why_and_a_graded_one_has_no_excuse():
    with pytest.raises(ValidationError, match="reason"):
        judged(basis="matcher", status="ungraded")
    with pytest.raises(ValidationError, match="reason"):
        judged(basis="matcher", score=1, reason="judge_fault")
    with pytest.raises(ValidationError, match="reason"):
        judged(basis="matcher", status="ungraded", reason="zero")


@pytest.mark.parametrize("basis", ["evaluator", "matcher", "imported"])
def test_a_graded_judgement_without_a_score_is_refused(basis):
    with pytest.raises(ValidationError, match="score: missing"):
        judged(basis=basis, label=1)
