"""A campaign counts what it did, goes on where it stopped, and leaves the run as it was."""

import asyncio
import json
from dataclasses import replace

import pytest

from browseruse_bench.errors import BudgetError, DataError
from browseruse_bench.eval.judges import CodeJudge, Verdict
from browseruse_bench.eval.redteam.campaign import JOURNAL, campaign, read_trials, victims
from browseruse_bench.eval.redteam.catalogue import chosen
from browseruse_bench.measure.redteam import figures
from browseruse_bench.models.base import PendingError
from browseruse_bench.store.trace_folder import TraceFolder
from tests.eval.redteam.made import Made
from tests.report.made_run import row


def files(folder):
    return {p: p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_the_run_stays_as_it_was_and_no_copy_is_left(made):
    before = files(made.folder.path)
    made.attack("evidence", "files", "honest-in-part")
    assert files(made.folder.path) == before
    assert [p.name for p in made.into.iterdir() if p.is_file()] == [JOURNAL]
    assert list(made.into.rglob("MANIFEST.json")) == []


def test_copies_are_kept_if_that_is_asked_for(made):
    made.attack("typed", keep=True)
    copies = {p.parent.name for p in made.into.rglob("MANIFEST.json")}
    assert copies == {"control-0", "typed"}
    for path in made.into.rglob("MANIFEST.json"):
        TraceFolder.open(path.parent)


def test_what_was_tried_is_not_tried_again(made):
    first = made.attack("typed", "data-page")
    again = made.attack("typed", "data-page", "script-plain")
    assert first.n_resumed == 0
    assert again.n_resumed == 2
    assert set(first.trials) <= set(again.trials)
    assert len(read_trials(made.into / JOURNAL)) == 3


def test_another_seed_is_another_trial(made):
    made.attack("fabricated")
    assert made.attack("fabricated", seed=1).n_resumed == 0


def test_the_same_seed_gives_the_same_copies(made, tmp_path):
    def copies(place):
        made.attack("fabricated", "typed", "script-left-post", into=place, keep=True)
        return {p.parent.name: p.read_bytes() for p in place.rglob("MANIFEST.json")}

    assert copies(tmp_path / "one") == copies(tmp_path / "two")


def test_a_torn_line_is_tried_again_and_a_foreign_journal_is_refused(made):
    made.attack("typed", "data-page")
    journal = made.into / JOURNAL
    content = journal.read_bytes()
    journal.write_bytes(content[:-9])
    assert made.attack("typed", "data-page").n_resumed == 1
    journal.write_text(json.dumps({"task_id": "x"}) + "\n")
    with pytest.raises(DataError, match="not a journal of trials"):
        made.attack("typed")


class Failing(CodeJudge):
    """Fails as it is told, for copies whose answer is given."""

    protocol = "model-judge/1"
    judge_key = "failing"

    def __init__(self, how):
        self.how = how

    async def judge(self, case):
        if case.trace.trace.outcome.answer is None:
            return await super().judge(case)
        if isinstance(self.how, Exception):
            raise self.how
        return self.how


def test_an_outage_is_in_no_share_and_is_tried_again(made):
    outage = Verdict(reason="judge_fault", message="HTTP 503")
    trial = made.trial("typed", judge=Failing(outage))
    assert not trial.is_counted
    assert trial.after.message == "judge_fault: HTTP 503"
    assert made.attack("typed", judge=Failing(outage)).n_resumed == 0


def test_a_copy_that_code_cannot_judge_has_escaped_and_counts_as_a_gain(made):
    judge = Failing(Verdict(reason="judge_fault", message="number is too long"))
    judge.protocol = "code-checks/99"
    trial = made.trial("choking-answer", judge=judge)
    assert trial.escaped
    assert trial.failed


class Restless(CodeJudge):
    """Judges otherwise each time that it is asked anew."""

    protocol = "model-judge/1"
    judge_key = "restless"

    async def judge(self, case):
        verdict = await super().judge(case)
        if not case.sample:
            return verdict
        *others, last = verdict.findings
        unmet = last.model_copy(update={"status": "violated"})
        return replace(verdict, findings=(*others, unmet))


def test_what_a_second_judgement_alone_changes_is_told_apart_from_losses(made):
    names = "honest-graded-again", "honest-untouched"
    (judge,) = figures(made.attack(*names, judge=Restless()).trials)
    assert (judge.noise.failed, judge.noise.n) == (1, 1)
    assert (judge.losses.failed, judge.losses.n) == (0, 1)
    (judge,) = figures(made.attack(*names).trials)
    assert (judge.noise.failed, judge.noise.n) == (0, 1)


def test_an_attack_that_breaks_is_one_trial_without_a_verdict(made):
    def broken(key):
        raise RuntimeError("no such page")

    whole, other = chosen(["typed", "data-page"])
    found, _ = victims(made.folder, made.loaded)
    torn = replace(whole, cheat=broken)
    done = asyncio.run(campaign(found, [torn, other], into=made.into, success_at=100))
    first, second = sorted(done.trials, key=lambda trial: trial.attack != whole.name)
    assert first.after.message == "RuntimeError: no such page"
    assert not first.is_counted
    assert not first.is_settled
    assert second.is_counted


def test_a_budget_ends_it_and_a_batch_is_counted(made):
    spent = made.attack("typed", "selected", judge=Failing(BudgetError("$1 is spent")))
    assert spent.over_budget == "$1 is spent"
    assert spent.trials == ()
    waiting = made.attack("typed", "selected", judge=Failing(PendingError("in a batch")))
    assert (waiting.n_pending, waiting.trials) == (2, ())


def test_what_cannot_be_attacked_says_why(tmp_path, make_trace):
    made = Made(tmp_path, make_trace)
    made.bench.rows.append(row("bare"))
    loaded = made.bench.load()
    made.run.settle(loaded, "bare", "x")
    found, skipped = victims(made.folder, loaded)
    assert [victim.name for victim in found] == ["kettle #1"]
    assert skipped == {"bare #1": "its task has no rubric and no expected_result"}
    made.bench.rubrics["kettle"]["items"][0].pop("check")
    loaded = made.bench.load()
    (victim,), _ = victims(made.folder, loaded)
    assert [item.id for item in victim.rubric.items][0] == "A2_name"
    assert sum(item.weight for item in victim.rubric.items) == 100
    for item in made.bench.rubrics["kettle"]["items"]:
        item.pop("check", None)
    _, skipped = victims(made.folder, made.bench.load())
    assert "--judge" in skipped["kettle #1"]


def test_a_damaged_trace_is_no_victim(made):
    path = next((made.folder.path / "tasks").rglob("trace.json"))
    path.write_text(path.read_text() + " ")
    done = made.attack("honest-untouched")
    assert done.trials == ()
    assert "damaged" in done.skipped["kettle #1"]


def test_a_matcher_that_looks_at_answers_alone_is_hacked_by_one(tmp_path, make_trace):
    made = Made(tmp_path, make_trace)
    made.bench.rows.append(row("capital", expected_result="Paris"))
    loaded = made.bench.load()
    made.run.settle(loaded, "capital", "It is Paris.")
    found, _ = victims(made.folder, loaded, task_ids=["capital"])
    assert [victim.kind for victim in found] == ["matcher"]
    done = asyncio.run(
        campaign(found, chosen(["answer-without-evidence"]), into=made.into, success_at=100)
    )
    assert done.trials[0].gained == ("Paris",)


def test_several_victims_are_attacked_at_once_and_listed_in_order(tmp_path, make_trace):
    made = Made(tmp_path, make_trace, n_tasks=3)
    told = []
    done = made.attack("typed", "honest-untouched", concurrency=3, on_trial=told.append)
    assert [t.task_id for t in done.trials] == sorted(t.task_id for t in done.trials)
    assert len(told) == len(done.trials)
