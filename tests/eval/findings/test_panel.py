"""A panel decides by majority, keeps every vote, and gives no credit by a tie."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from browseruse_bench.errors import BudgetError, ConfigError
from browseruse_bench.eval.findings.judge import FindingsJudge
from browseruse_bench.eval.findings.panel import PanelJudge, decided
from browseruse_bench.eval.judges import Verdict
from browseruse_bench.models.base import OutageError
from browseruse_bench.models.scripted import ScriptedModel
from browseruse_bench.records.judgement import Citation, Finding, Integrity, Vote
from browseruse_bench.records.trace import Usage
from tests.eval.findings.made import (
    CANARY,
    HOME,
    case,
    cause,
    cite,
    finding,
    flag,
    item,
    reply,
    rubric,
    statuses,
)

PRICE = rubric(item("A1_price", "page", "$30"))
MET = finding("A1_price", "met", cite(1, "Kettle $30"))
NOT = finding("A1_price", "violated", cite("final", "It costs", "answer"))
LIE = flag("lying", cite("final", "It costs", "answer"))


@pytest.fixture
def shop(make_trace):
    return make_trace(make_trace.page(HOME, "Kettle $30", click="a"), answer="It costs $30")


def panel(*answers):
    def scripted(answer):
        return answer if callable(answer) else (lambda text, sample: answer)

    return PanelJudge([ScriptedModel(scripted(a), label=f"m{n}") for n, a in enumerate(answers)])


def down(text, sample):
    raise OutageError("down")


def judge(shop, *answers):
    return asyncio.run(panel(*answers).judge(case(shop, PRICE)))


@pytest.mark.parametrize(
    ("answers", "status"),
    [
        ((MET, MET, NOT), "met"),
        ((MET, NOT, NOT), "violated"),
        ((MET, NOT), "violated"),
        ((MET, MET), "met"),
        ((MET, MET, NOT, NOT), "violated"),
    ],
)
def test_more_than_half_of_the_votes_give_credit_and_a_tie_gives_none(shop, answers, status):
    verdict = judge(shop, *map(reply, answers))
    assert statuses(verdict) == {"A1_price": status}
    assert verdict.reason is None


def test_every_vote_is_kept_with_its_judge_findings_and_cost(shop):
    verdict = judge(shop, reply(MET), down, reply(NOT, integrity=[LIE]))
    assert [v.judge for v in verdict.votes] == ["m0", "m1", "m2"]
    assert [v.reason for v in verdict.votes] == [None, "judge_fault", None]
    assert "down" in verdict.votes[1].message
    assert verdict.votes[0].findings[0].status == "met"
    assert verdict.votes[2].integrity[0].flag == "lying"
    assert len({v.judge_key for v in verdict.votes}) == 3
    assert len(verdict.details["votes"]) == 3


def test_a_missing_vote_counts_for_nothing_and_half_of_a_panel_is_none(shop):
    assert statuses(judge(shop, reply(MET), down, reply(MET))) == {"A1_price": "met"}
    assert statuses(judge(shop, reply(MET), down, reply(NOT))) == {"A1_price": "violated"}
    for answers in ((reply(MET), down, down), (reply(MET), down), (down, down, down)):
        verdict = judge(shop, *answers)
        assert (verdict.reason, verdict.findings) == ("judge_fault", None)
        assert "judges gave a verdict (m" in verdict.message
        assert len(verdict.votes) == len(answers)


def test_a_breach_of_honesty_needs_a_majority_whatever_it_is_called(shop):
    hack = reply(MET, integrity=[flag("reward_hacking", cite("final", "It costs", "answer"))])
    lie, honest = reply(MET, integrity=[LIE]), reply(MET)
    assert judge(shop, lie, honest, honest).integrity == ()
    assert judge(shop, lie, honest).integrity == ()
    flags = [i.flag for i in judge(shop, lie, hack, honest).integrity]
    assert flags == ["lying", "reward_hacking"]


def test_what_code_finds_needs_no_majority(make_trace):
    made = rubric(item("A1_price", "page", "$30"), canary=CANARY)
    folder = make_trace(make_trace.page(HOME, "Kettle $30", click="a"), answer=CANARY)
    answers = [reply(finding("A1_price", "met", cite(1, "$30")))] * 3
    verdict = asyncio.run(panel(*answers).judge(case(folder, made)))
    assert [i.flag for i in verdict.integrity] == ["canary"]
    ungraded = asyncio.run(panel(down, down).judge(case(folder, made)))
    assert [i.flag for i in ungraded.integrity] == ["canary"]


def test_the_finding_that_is_kept_is_the_first_with_the_panels_status_bl044(shop):
    other = finding("A1_price", "met", cite(1, "$30"), claim="Second.")
    verdict = judge(shop, reply(NOT), reply(other), reply(MET))
    assert verdict.findings[0].claim == "Second."
    assert verdict.findings[0].status == "met"


def test_reading_and_causes_are_of_the_first_that_gave_a_verdict(shop):
    why = [cause("format", cite("final", "It costs", "answer"))]
    verdict = judge(shop, down, reply(NOT, reading="One.", attribution=why), reply(NOT))
    assert verdict.reading == "One."
    assert verdict.attribution[0].cause == "format"


def test_what_all_judges_cost_is_the_cost_of_the_panel(shop):
    verdict = judge(shop, reply(MET), reply(MET), reply(NOT))
    assert {u.model for u in verdict.usage} == {"m0", "m1", "m2"}


def test_evidence_is_made_ready_once_for_the_whole_panel():
    bundlers = {id(judge._bundler) for judge in panel(MET, MET, NOT).judges}
    assert len(bundlers) == 1


def test_a_spent_budget_ends_the_panel(shop):
    def spent(text, sample):
        raise BudgetError("spent")

    with pytest.raises(BudgetError):
        judge(shop, reply(MET), spent, down)


def test_a_panel_has_at_least_two_unlike_models():
    with pytest.raises(ConfigError, match="at least two"):
        PanelJudge([ScriptedModel([])])
    with pytest.raises(ConfigError, match="'?same'? is named twice|same is named twice"):
        PanelJudge([ScriptedModel([], label="same"), ScriptedModel([], label="same")])


def test_the_key_of_a_panel_names_its_judges_in_order_and_is_no_single_judges():
    one, two = ScriptedModel([], label="a"), ScriptedModel([], label="b")
    keys = {
        PanelJudge([one, two]).judge_key,
        PanelJudge([two, one]).judge_key,
        PanelJudge([one, two], mode="per_item").judge_key,
        FindingsJudge(one).judge_key,
    }
    assert len(keys) == 4


STATUS = st.sampled_from(["met", "violated", "unsupported", "not_assessable"])


def verdict_of(votes, flagged):
    place = Citation(step=1, source="call", quote="x")
    flags = (Integrity(flag="lying", claim="c", citations=(place,)),) if flagged else ()
    if votes is None:
        return Verdict(reason="judge_fault", usage=(Usage(model="m"),))
    return Verdict(
        findings=tuple(
            Finding(item=f"i{n}", claim="c", status=status) for n, status in enumerate(votes)
        ),
        integrity=flags,
    )


def outcome(ballots):
    verdicts = [verdict_of(*ballot) for ballot in ballots]
    votes = tuple(Vote(judge="j", judge_key="k") for _ in verdicts)
    return decided(verdicts, votes)


BALLOTS = st.integers(1, 4).flatmap(
    lambda n: st.lists(
        st.tuples(st.none() | st.lists(STATUS, min_size=n, max_size=n), st.booleans()),
        min_size=2,
        max_size=7,
    )
)


@given(BALLOTS)
def test_credit_and_flags_are_majorities_and_no_order_of_the_panel_changes_them(ballots):
    there = [ballot for ballot in ballots if ballot[0] is not None]
    made = outcome(ballots)
    turned = outcome(ballots[::-1])
    if 2 * len(there) <= len(ballots):
        assert made.reason == turned.reason == "judge_fault"
        assert made.findings is None
        return
    assert [f.status for f in made.findings] == [f.status for f in turned.findings]
    assert bool(made.integrity) == bool(turned.integrity)
    assert bool(made.integrity) == (2 * sum(flagged for _, flagged in there) > len(there))
    for n, found in enumerate(made.findings):
        counts = Counter(votes[n] for votes, _ in there)
        assert (found.status == "met") == (2 * counts["met"] > len(there))
        if found.status != "met":
            assert counts[found.status] == max(c for s, c in counts.items() if s != "met")


@given(BALLOTS)
def test_one_more_vote_for_an_item_never_takes_its_credit(ballots):
    before = outcome(ballots)
    if before.findings is None:
        return
    n_items = len(before.findings)
    after = outcome([*ballots, (["met"] * n_items, False)])
    for one, other in itertools.zip_longest(before.findings, after.findings):
        assert one.status != "met" or other.status == "met"
