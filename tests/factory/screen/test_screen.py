"""The stage screen over made attempts: verdicts, evidence, notes, and going on after a stop."""

import json

import pytest

from browseruse_bench.errors import ConfigError, ModelError, StageError
from browseruse_bench.factory.screen.screened import Screened
from browseruse_bench.factory.stage import Dropped, Kept
from browseruse_bench.factory.stages.screen import Screening, alikeness
from browseruse_bench.factory.workspace import WorkspaceConfig
from browseruse_bench.models.base import MalformedError, OutageError, RefusalError
from browseruse_bench.records.judgement import Judgement
from browseruse_bench.store.journal import read_journal
from tests.factory.screen.screening import (
    DONE,
    NOTES,
    UNIT,
    WHY,
    Screen,
    Worlds,
    context,
    finding,
    grader,
    judged,
    screen,
)

FAILS = ["Nothing found"] * 8


def of(outcome):
    if isinstance(outcome, Kept):
        return outcome.value
    return Screened.model_validate(outcome.evidence["screened"])


def judgements(root):
    (path,) = root.glob("tasks/*/judgements.jsonl")
    return [Judgement.model_validate(line) for line in read_journal(path)]


async def test_what_everyone_passes_is_dropped_after_four_runs(tmp_path):
    outcome, worlds, _ = await screen(tmp_path, [DONE] * 8)
    assert isinstance(outcome, Dropped)
    assert outcome.reason == "too_easy"
    assert worlds.asked == [("reference", n) for n in range(1, 5)]
    found = of(outcome)
    assert (found.n_runs, found.n_passed) == (4, 4)
    assert found.posterior["everyone"] > 0.8


async def test_what_some_pass_is_kept_with_all_runs_and_leads(tmp_path):
    outcome, _, _ = await screen(tmp_path, [DONE, "Nothing found", DONE, *FAILS])
    found = of(outcome)
    assert isinstance(outcome, Kept)
    assert found.verdict == "keep"
    assert found.n_passed == 2
    assert [run.passed for run in found.runs][:3] == [True, False, True]
    assert found.agents["reference"].model == "m"
    assert found.leads.answers
    assert found.leads.failures
    assert found.runs[1].cause == "wrong_target"


async def test_what_nobody_passes_is_hard_if_the_stronger_agent_passes_it(tmp_path):
    outcome, worlds, _ = await screen(tmp_path, FAILS, ["Nothing", DONE])
    assert isinstance(outcome, Kept)
    assert outcome.value.verdict == "hard"
    assert worlds.asked[-2:] == [("escalation", 1), ("escalation", 2)]
    assert outcome.value.n_passed == 0


@pytest.mark.parametrize(
    ("page", "reason"),
    [
        ("The sale ended in 2024", "impossible_out_of_date"),
        ("Sign in to your account", "impossible_needs_removed"),
        ("two of three steps are done", "partial"),
        ("two of three; the sale ended in 2024", "pending"),
        ("Nothing found", "pending"),
    ],
)
async def test_what_the_stronger_agent_fails_is_dropped_with_what_its_pages_show(
    tmp_path, page, reason
):
    outcome, _, _ = await screen(tmp_path, FAILS, [page, page])
    assert isinstance(outcome, Dropped)
    assert outcome.reason == reason
    assert of(outcome).verdict == reason.partition("_")[0]
    assert of(outcome).reason


async def test_an_impossible_that_no_page_shows_is_pending(tmp_path):
    def liar(text, sample):
        if WHY in text:
            says = {"out_of_date": "met"}
            items = ("partial_progress", "needs_removed", "out_of_date", "never_possible")
            return judged(*(finding(i, "ended in 2024", says.get(i, "violated")) for i in items))
        return grader(text, sample)

    outcome, _, _ = await screen(tmp_path, FAILS, ["Nothing"] * 2, answers=liar)
    assert outcome.reason == "pending"


async def test_a_pass_without_a_place_that_shows_it_is_none(tmp_path):
    def believer(text, sample):
        if NOTES in text or WHY in text:
            return grader(text, sample)
        return judged(finding("task_completed", "Order 4711 is confirmed", "met"))

    outcome, _, _ = await screen(tmp_path, FAILS, ["Nothing"] * 2, answers=believer)
    assert of(outcome).n_passed == 0


async def test_an_infrastructure_failure_is_owed_and_no_evidence(tmp_path):
    with pytest.raises(StageError, match="owed"):
        await screen(tmp_path, [DONE, None, DONE, DONE, DONE])
    assert len({j.trace_key for j in judgements(tmp_path)}) == 1
    outcome, _, _ = await screen(tmp_path, [DONE] * 5)
    assert of(outcome).n_runs == 4


async def test_a_run_that_no_judge_can_tell_is_made_up_for(tmp_path):
    def declines(text, sample):
        if "(reference 2)" in text:
            raise MalformedError("no JSON")
        return grader(text, sample)

    outcome, worlds, _ = await screen(tmp_path, [DONE] * 8, answers=declines)
    found = of(outcome)
    assert found.n_runs == 4
    assert [run.passed for run in found.runs] == [True, None, True, True, True]
    assert len(worlds.asked) == 5


async def test_too_many_runs_that_no_judge_can_tell_are_pending(tmp_path):
    def declines(text, sample):
        raise RefusalError("no")

    outcome, _, _ = await screen(tmp_path, [DONE] * 4, answers=declines, max_runs=2)
    assert outcome.reason == "pending"
    assert of(outcome).n_runs == 0


async def test_every_judgement_reads_the_notes_and_is_keyed_by_their_revision(tmp_path):
    outcome, _, model = await screen(tmp_path, [DONE, "Nothing found", DONE, *FAILS])
    keys = [judgement.notes_key for judgement in judgements(tmp_path)]
    assert len(set(keys)) > 3
    asked = [r.text for r in model.requests if NOTES not in r.text and WHY not in r.text]
    assert "Leads from other attempts" not in asked[0]
    assert "a page says Order 4711 is confirmed (reference 1)" in asked[1]
    assert "nobody confirmed them" in asked[1]
    last = of(outcome).leads.key
    again = [j for j in judgements(tmp_path) if j.notes_key == last]
    assert {j.trace_key for j in again} == {run.trace_key for run in of(outcome).runs}


async def test_the_last_notes_turn_an_early_verdict(tmp_path):
    """The first judgement knows nothing: it passes what the notes later unmask."""

    def learns(text, sample):
        if NOTES in text or WHY in text:
            return grader(text, sample)
        if "Order 0000" in text and "a page says Order 0000 is a sample" not in text:
            return judged(finding("task_completed", "Order 0000", "met"))
        return judged(finding("task_completed", None, "violated"))

    outcome, _, _ = await screen(
        tmp_path, ["Order 0000 is a sample", *FAILS], ["Nothing"] * 2, answers=learns
    )
    first = of(outcome).runs[0]
    assert (first.at_first, first.passed) == (True, False)
    assert of(outcome).n_passed == 0


async def test_notes_name_the_trace_and_step_and_a_made_up_step_is_refused(tmp_path):
    def invents(text, sample):
        if NOTES in text:
            return {"add": [{"section": "answers", "text": "x", "step": "99"}], "remove": []}
        return grader(text, sample)

    outcome, _, _ = await screen(tmp_path, [DONE] * 4, answers=invents)
    found = of(outcome)
    assert found.leads.every() == ()
    assert {run.edited for run in found.runs} == {None}
    good, _, _ = await screen(tmp_path / "good", [DONE] * 4)
    for _, lead in of(good).leads.every():
        assert lead.step == 1
        assert lead.trace in {run.trace_key for run in of(good).runs}


async def test_removed_notes_are_gone_and_their_ids_are_not_used_again(tmp_path):
    def forgets(text, sample):
        if NOTES not in text:
            return grader(text, sample)
        known = [i for i in ("L1", "L2", "L3") if f"- {i}, " in text]
        return {"add": [{"section": "paths", "text": "way", "step": "1"}], "remove": known}

    outcome, _, _ = await screen(tmp_path, [DONE] * 4, answers=forgets)
    assert [lead.id for _, lead in of(outcome).leads.every()] == ["L4"]
    assert of(outcome).leads.revision == 4


async def test_stopped_before_any_call_it_goes_on_without_paying_twice(tmp_path):
    pages = [DONE, "Nothing found", DONE, *FAILS]
    whole, _, model = await screen(tmp_path / "whole", pages)
    n = len(model.requests)
    for stop in range(n):
        root, count = tmp_path / str(stop), 0

        def breaks(text, sample, stop=stop):
            nonlocal count
            count += 1
            if count > stop:
                raise OutageError("gone")
            return grader(text, sample)

        with pytest.raises(ModelError):
            await screen(root, pages, answers=breaks)
        outcome, _, rest = await screen(root, pages)
        assert outcome == whole
        assert stop + len(rest.requests) == n


async def test_roles_that_nobody_has_are_named_before_a_run(tmp_path):
    ctx, _ = context(tmp_path)
    stage = Screening(WorkspaceConfig(name="w", roles={"reference": "m"}))
    with pytest.raises(ConfigError, match="no judge and no escalation"):
        await stage.settle(UNIT, ctx)


async def test_alikeness_counts_pairs_of_failures_of_one_task(tmp_path):
    outcome, _, _ = await screen(tmp_path, FAILS, ["Nothing"] * 2)
    n = of(outcome).n_runs
    assert alikeness([of(outcome)]) == (n * (n - 1) // 2,) * 2
    assert json.dumps(of(outcome).as_json())


def test_another_agent_or_test_is_another_configuration(tmp_path):
    one = Screen(Worlds(tmp_path, [])).settings()
    assert one != Screen(Worlds(tmp_path, []), fp=0.1).settings()
    assert one == Screen(Worlds(tmp_path, []), usd=5).settings()
