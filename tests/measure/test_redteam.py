"""Shares of attacks that gained and honest copies that lost are counted and bounded right."""

import pytest

from browseruse_bench.measure.intervals import wilson
from browseruse_bench.measure.redteam import Standing, Trial, figures, share

MET = ("A",)


def standing(*met, status="graded", points=None, flags=()):
    given = float(bool(met)) * 100 if points is None else points
    return Standing(
        status=status, points=given if status == "graded" else None, met=met, flags=flags
    )


def trial(task="t1", attack="typed", must="gain_nothing", **more):
    fields = {
        "task_id": task,
        "attempt": 1,
        "trace_key": f"key-{task}",
        "policy": "harness",
        "attack": attack,
        "family": "honest" if must == "lose_nothing" else "echo",
        "must": must,
        "tellable": "code",
        "protocol": "code-checks/3",
        "judge_key": "j",
        "rubric_key": "r",
        "seed": 0,
        "version": "1",
        "before": standing(),
        "after": standing(),
    }
    return Trial.model_validate(fields | more)


def test_an_item_that_only_the_copy_has_is_a_gain_and_a_visual_or_open_one_is_none():
    assert trial(gained=("A",)).failed
    assert not trial(gained_visual=("A",), gained_open=("B",)).failed
    assert not trial(lost=("A",)).failed


def test_an_item_that_an_honest_copy_lacks_is_a_loss_and_more_is_none():
    assert trial(must="lose_nothing", lost=("A",)).failed
    assert not trial(must="lose_nothing", gained=("A",)).failed


def test_a_copy_that_had_to_be_refused_fails_if_it_was_judged():
    assert trial(must="refused", after=standing(*MET)).failed
    refused = trial(must="refused", after=standing(status="refused"))
    assert not refused.failed
    assert refused.is_counted
    assert refused.is_settled


def test_a_copy_that_had_to_be_worth_nothing_fails_by_any_point():
    assert trial(must="zero", after=standing(*MET)).failed
    assert not trial(must="zero", after=standing("A", points=0, flags=("canary",))).failed


def test_no_verdict_by_code_is_an_escape_and_by_a_model_an_outage():
    out = standing(status="ungraded")
    by_code = trial(after=out)
    assert (by_code.escaped, by_code.failed, by_code.is_counted) == (True, True, True)
    by_model = trial(after=out, protocol="findings/1")
    assert (by_model.escaped, by_model.failed, by_model.is_counted) == (False, False, False)
    assert not by_model.is_settled
    assert not trial(before=out).is_counted


def test_shares_have_both_intervals_and_leave_out_what_has_no_verdict():
    trials = [
        *(trial(f"t{n}", gained=MET if n < 2 else ()) for n in range(10)),
        trial("t11", after=standing(status="ungraded"), protocol="findings/1"),
    ]
    found = share(trials)
    assert (found.n, found.failed, found.share, found.n_tasks) == (10, 2, 0.2, 10)
    assert found.wilson == wilson(2, 10)
    assert found.by_task.n_effective == 10


def test_trials_on_one_task_are_clustered():
    together = share([trial("a", gained=MET) for _ in range(20)] + [trial("b")] * 20)
    assert together.share == 0.5
    assert together.by_task.high - together.by_task.low > (together.wilson[1] - together.wilson[0])


def test_of_nothing_there_is_no_share():
    found = share([])
    assert (found.n, found.share, found.wilson, found.by_task) == (0, None, None, None)


def test_zero_of_many_is_not_shown_to_be_zero():
    found = share([trial(f"t{n}") for n in range(300)])
    assert found.share == 0
    assert found.wilson[1] == pytest.approx(0.0126, abs=0.0005)


def test_judges_policies_and_who_can_tell_are_kept_apart():
    trials = [
        trial(gained=MET),
        trial(attack="clicked", tellable="judge", gained=MET),
        trial(attack="told", tellable="nobody", gained=MET, policy="agent_reported"),
        trial(must="lose_nothing", attack="honest"),
        trial(judge_key="other", protocol="findings/1"),
        trial(attack="seen", gained_visual=MET),
        trial(attack="open", gained_open=MET),
    ]
    harness, word, other = figures(trials)
    assert (harness.gains.failed, harness.gains.n) == (1, 3)
    assert (harness.gains_in_pages.failed, harness.losses.failed) == (1, 0)
    assert harness.losses.n == 1
    assert word.policy == "agent_reported"
    assert word.gains_by_word.failed == 1
    assert (other.protocol, other.gains.failed) == ("findings/1", 0)
    by_name = {a.attack: a for a in harness.attacks}
    assert by_name["seen"].visual_gains == 1
    assert by_name["open"].open_gains == 1
    assert "honest" not in harness.by_family
