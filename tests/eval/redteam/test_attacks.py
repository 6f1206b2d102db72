"""No attack gains from code, and no honest copy loses; each attack can be seen to bite."""

import pytest

from browseruse_bench.eval.findings.judge import FindingsJudge
from browseruse_bench.eval.judges import Verdict
from browseruse_bench.eval.redteam.catalogue import ATTACKS
from browseruse_bench.measure.redteam import figures
from browseruse_bench.models.scripted import ScriptedModel
from browseruse_bench.records.judgement import Finding
from tests.eval.findings.believer import Believer

ALL = {
    "A1_price", "A2_name", "A3_date", "A4_order", "A5_page", "A6_state",
}  # fmt: skip


def test_no_attack_that_code_can_tell_gains_and_no_honest_copy_loses(made):
    done = made.attack()
    (found,) = figures(done.trials)
    failed = [(t.attack, t.gained, t.lost, t.after.message) for t in done.trials if t.failed]
    told = {a.name for a in ATTACKS if a.tellable == "code"}
    assert [f for f in failed if f[0] in told] == []
    assert found.gains.n > 100
    assert (found.gains.failed, found.losses.failed) == (0, 0)
    assert set(done.trials[-1].before.met) == ALL


def test_the_attacks_that_only_a_judge_can_tell_are_seen_to_gain(made):
    """The harness sees a gain where there is one: code cannot tell these from honest work."""
    names = ("same-words-elsewhere", "clicked-together", "transformed", "typed-address")
    done = made.attack(*names)
    assert all(trial.failed and trial.tellable == "judge" for trial in done.trials)
    assert len(done.trials) == len(names)


def test_a_judge_that_believes_everything_gains_nothing_by_what_code_can_tell(made):
    judge = FindingsJudge(ScriptedModel(Believer()), by_code=False)
    done = made.attack("evidence", "echo", "script", "key", "files", judge=judge, by_code=False)
    (found,) = figures(done.trials)
    failed = [(t.attack, t.gained) for t in done.trials if t.failed and t.tellable == "code"]
    assert failed == []
    assert found.gains.n > 50
    assert found.gains_in_pages.failed > 0
    assert found.losses.n == 0


class Believing:
    """Takes an answer's word for it."""

    basis = "findings"
    protocol = "believing/1"
    judge_key = "believing"

    async def judge(self, case):
        answer = case.trace.trace.outcome.answer or ""
        texts = {i.id: [str(v) for v in i.check.values] for i in case.rubric.items[:3]}
        met = [i for i, values in texts.items() if all(v in answer for v in values)]
        return Verdict(findings=tuple(finding(i, i.id in met) for i in case.rubric.items))


def finding(item, met):
    return Finding(item=item.id, claim="x", status="met" if met else "violated")


@pytest.mark.parametrize(
    "attack", ["answer-without-evidence", "typed", "data-page", "script-plain", "doubled"]
)
def test_a_judge_that_takes_the_answers_word_is_hacked(made, attack):
    trial = made.trial(attack, judge=Believing())
    assert trial.failed
    assert {"A1_price", "A2_name", "A3_date"} >= set(trial.gained) > set()


class Strict(Believing):
    """Calls everything violated as soon as there is much to read, or anything against it."""

    async def judge(self, case):
        texts = [c.arguments for s in case.trace.steps for c in s.calls]
        fine = (
            len(case.trace.steps) < 9 and "evaluate" not in str(texts) and "code" not in str(texts)
        )
        return Verdict(findings=tuple(finding(i, fine) for i in case.rubric.items))


@pytest.mark.parametrize("attack", ["honest-flooded", "honest-script"])
def test_a_judge_that_punishes_honest_work_is_seen_to(made, attack):
    trial = made.trial(attack, judge=Strict())
    assert trial.failed
    assert trial.lost


def test_an_honest_partial_result_keeps_exactly_its_points(made):
    trial = made.trial("honest-in-part")
    assert trial.before.points == 100
    assert set(trial.after.met) == ALL - {"A2_name"}
    assert trial.lost == ()
    assert not trial.failed


def test_a_canary_zeroes_whatever_was_earned(made):
    for trial in made.attack("key").trials:
        assert (trial.before.points, trial.after.points, trial.after.flags) == (
            100,
            0,
            ("canary",),
        ), trial.attack


def test_altered_traces_are_refused_and_never_judged(made):
    trials = made.attack("files").trials
    assert len(trials) >= 8
    assert {trial.after.status for trial in trials} == {"refused"}
    assert all(trial.after.points is None for trial in trials)


def test_what_chokes_a_judge_still_gets_its_verdict(made):
    for trial in made.attack("choking-answer", "choking-page", "choking-files").trials:
        assert trial.after.status == "graded", trial.attack
        assert not trial.failed


def test_an_agent_that_does_nothing_earns_nothing_bl042(made):
    """BL042: one look at a page and a friendly word meet no item."""
    trial = made.trial("did-nothing")
    assert (trial.after.status, trial.after.points, trial.after.met) == ("graded", 0, ())
