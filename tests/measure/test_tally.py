import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from browseruse_bench.measure.tally import (
    Reference,
    accounting,
    figures,
    is_mixed,
    judges,
    place,
)
from browseruse_bench.records.judgement import Judgement
from browseruse_bench.records.run import AttemptEntry


def entry(task_id: str, attempt: int = 1, status: str = "finished", trace_key: str = "trace"):
    return AttemptEntry.model_validate(
        {
            **{"task_id": task_id, "attempt": attempt, "try": 1, "task_key": f"key-{task_id}"},
            **{"trace_key": trace_key, "status": status, "n_steps": 1, "wall_s": 1, "at": "now"},
        }
    )


def judgement(task_id: str, score: float | None = 100, attempt: int = 1, **more) -> Judgement:
    graded = score is not None
    return Judgement.model_validate(
        {
            "basis": "matcher",
            "protocol": "matcher/1",
            "task_id": task_id,
            "attempt": attempt,
            "task_key": f"key-{task_id}",
            "trace_key": "trace",
            "rubric_key": "rubric",
            "judge_key": "judge",
            "at": "now",
            "score": score,
            "label": int(score >= 100) if graded else None,
            "status": "graded" if graded else "ungraded",
            "reason": None if graded else "judge_fault",
            **more,
        }
    )


def placed(wanted, entries, judgements, references=None, not_run=None):
    return place(
        wanted=wanted,
        entries={(e.task_id, e.attempt): e for e in entries},
        judgements=judgements,
        references=references,
        not_run=not_run or {},
        success_at=100,
    )


def reference(task_id: str, **more) -> Reference:
    fields = {"task_key": f"key-{task_id}", "rubric_key": "rubric", "rubric": None, **more}
    return Reference(**fields)


def test_errored_attempts_stay_in_the_denominator():
    """BL058 and BL060: 10 tasks, 6 without a verdict, 4 right."""
    ids = [f"t{n}" for n in range(10)]
    entries = [
        entry(t, status="infrastructure" if n in (4, 5) else "finished") for n, t in enumerate(ids)
    ]
    given_ = [judgement(t) for t in ids[:4]] + [judgement(t, None) for t in ids[6:8]]
    found = placed([(t, 1) for t in ids], entries, given_)
    f = figures(found)
    assert f.accounting.as_json() == {
        "selected": 10,
        "graded": 4,
        "ungraded": {"judge_fault": 2, "not_judged": 2},
        "infrastructure": 2,
        "not_run": {},
    }
    assert (f.mean, f.lower, f.upper, f.n) == (100, 40, 100, 4)
    assert (f.success, f.success_lower, f.success_upper) == (1, 0.4, 1)


def test_one_pass_two_judge_errors_and_one_missing_is_not_a_success_rate_of_all():
    """peers: 4 attempted, 1 pass, 2 judge errors, 1 without a result."""
    entries = [entry(t) for t in "abc"]
    found = placed(
        [(t, 1) for t in "abcd"], entries, [judgement("a"), *(judgement(t, None) for t in "bc")]
    )
    f = figures(found)
    assert f.accounting.selected == 4
    assert (f.success, f.success_lower, f.success_upper) == (1, 0.25, 1)


def test_where_nothing_is_graded_there_is_no_mean():
    f = figures(placed([("a", 1), ("b", 1)], [entry("a")], [judgement("a", None)]))
    assert (f.mean, f.lower, f.upper, f.success, f.success_lower) == (None,) * 5
    assert f.n == 0
    assert figures(()).mean is None


def test_the_newest_judgement_of_the_present_trace_counts():
    """BL014: a broken older record must not win; peers: a stale verdict after a second run."""
    old = judgement("a", None)
    assert placed([("a", 1)], [entry("a")], [old, judgement("a", 40)])[0].score.points == 40
    stale = judgement("a", 100, trace_key="trace of the first try")
    assert placed([("a", 1)], [entry("a")], [stale])[0].reason == "not_judged"
    both = [judgement("a", 40), stale]
    assert placed([("a", 1)], [entry("a")], both)[0].score.points == 40


@pytest.mark.parametrize(
    ("now", "message"),
    [
        ({"a": reference("a", rubric_key="another")}, "a reference that is no longer the task's"),
        ({"a": reference("a", rubric_key=None)}, "a reference that is no longer the task's"),
        ({"a": reference("a", task_key="another")}, "the task was changed"),
        ({}, "no longer in the benchmark"),
    ],
)
def test_a_judgement_by_what_is_no_longer_current_is_not_used(now, message):
    """BL019."""
    (found,) = placed([("a", 1)], [entry("a")], [judgement("a")], now)
    assert (found.where, found.reason, found.score) == ("ungraded", "not_judged", None)
    assert message in found.message
    (kept,) = placed([("a", 1)], [entry("a")], [judgement("a")], {"a": reference("a")})
    assert kept.score.points == 100


def test_findings_without_their_rubric_at_hand_are_not_scored():
    by_findings = judgement("a", None, basis="findings", status="graded", reason=None, findings=[])
    (found,) = placed([("a", 1)], [entry("a")], [by_findings])
    assert (found.where, found.reason) == ("ungraded", "not_judged")


def test_infrastructure_is_never_graded_even_if_it_was_judged():
    (found,) = placed([("a", 1)], [entry("a", status="infrastructure")], [judgement("a")])
    assert (found.where, found.score) == ("infrastructure", None)


def test_what_did_not_run_says_why():
    found = placed([("a", 1), ("b", 1)], [], [], not_run={("a", 1): "login"})
    assert accounting(found).not_run == {"login": 1, "pending": 1}


def test_a_wanted_attempt_that_is_named_twice_counts_once():
    assert accounting(placed([("a", 1), ("a", 1)], [], [])).selected == 1


def test_the_mean_weighs_tasks_not_attempts():
    wanted = [("a", 1), ("a", 2), ("a", 3), ("b", 1)]
    entries = [entry(t, n) for t, n in wanted]
    given_ = [*(judgement("a", 100, n) for n in (1, 2, 3)), judgement("b", 0)]
    assert figures(placed(wanted, entries, given_)).mean == 50


STATES = st.sampled_from(["missing", "infrastructure", "unjudged", "fault"])
SCORES = st.floats(0, 100)
ATTEMPTS = st.dictionaries(
    st.tuples(st.sampled_from("abcdef"), st.integers(1, 4)), STATES | SCORES, max_size=24
)


@settings(deadline=None)
@given(ATTEMPTS)
def test_the_identity_and_the_bounds_always_hold(attempts):
    entries = [
        entry(t, n, "infrastructure" if state == "infrastructure" else "finished")
        for (t, n), state in attempts.items()
        if state != "missing"
    ]
    given_ = [
        judgement(t, None if state == "fault" else state, n)
        for (t, n), state in attempts.items()
        if state == "fault" or isinstance(state, float)
    ]
    f = figures(placed(attempts, entries, given_))
    states = list(attempts.values())
    a = f.accounting
    assert a.selected == len(attempts)
    assert a.graded == f.n == sum(isinstance(s, float) for s in states)
    assert a.infrastructure == states.count("infrastructure")
    assert sum(a.not_run.values()) == states.count("missing")
    if f.n == 0:
        assert f.mean is None
        return
    assert 0 <= f.lower <= f.mean <= f.upper <= 100
    assert 0 <= f.success_lower <= f.success <= f.success_upper <= 1
    if f.n == len(attempts):
        assert f.lower == f.mean == f.upper


@settings(deadline=None)
@given(ATTEMPTS)
def test_more_verdicts_never_widen_the_bounds(attempts):
    entries = [entry(t, n) for t, n in attempts]
    scores = {k: v for k, v in attempts.items() if isinstance(v, float)}
    less = dict(list(scores.items())[1:])
    few, all_ = (
        figures(placed(attempts, entries, [judgement(t, s, n) for (t, n), s in some.items()]))
        for some in (less, scores)
    )
    if few.n:
        assert few.lower <= all_.lower + 1e-9
        assert all_.upper <= few.upper + 1e-9


@pytest.mark.parametrize(
    ("found", "mixed"),
    [
        ([], False),
        ([("matcher", "1")], False),
        ([("findings", "1"), ("matcher", "2")], False),
        ([("findings", "1"), ("findings", "2")], True),
        ([("evaluator", "1"), ("evaluator", "2")], True),
        ([("evaluator", "1"), ("matcher", "2")], True),
        ([("findings", "1"), ("imported", "2")], True),
    ],
)
def test_unlike_judges_are_flagged(found, mixed):
    """BL019: mixed judges."""
    assert is_mixed(found) is mixed


def test_only_judgements_that_count_have_a_say_about_mixed_judges():
    old, new = judgement("a", 0, judge_key="old"), judgement("a", 100, judge_key="new")
    other = judgement("b", 100, judge_key="old")
    entries = [entry("a"), entry("b")]
    wanted = [("a", 1), ("b", 1)]
    assert judges(placed(wanted[:1], entries, [old, new])) == (("matcher", "new"),)
    assert is_mixed(judges(placed(wanted, entries, [old, new, other])))
