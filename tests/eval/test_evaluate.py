import asyncio
import json
import sys
from pathlib import Path

import pytest

from browseruse_bench.errors import BudgetError, ConfigError
from browseruse_bench.eval.evaluate import Asking, evaluate_run, exclusive
from browseruse_bench.eval.judges import Verdict
from browseruse_bench.models.base import PendingError, TruncatedError
from browseruse_bench.records.trace import Usage
from browseruse_bench.store.journal import read_journal
from tests.report.made_run import (
    GUIDE_EVALUATOR,
    MadeBenchmark,
    MadeRun,
    evaluator,
    row,
    rubric,
)

GOOD = 'return {"predicted_label": 1, "score": 70}'


@pytest.fixture
def bench(tmp_path):
    """Three tasks: "a" and "b" with an expected result, "c" without."""
    rows = [row("a", expected_result="Paris"), row("b", expected_result="Rome"), row("c")]
    return MadeBenchmark(tmp_path / "Made", rows)


@pytest.fixture
def root(tmp_path) -> Path:
    return tmp_path / "experiments"


def settled(root: Path, bench: MadeBenchmark, **answers: str | None) -> MadeRun:
    loaded = bench.load()
    run = MadeRun.of(root, loaded)
    for task_id, answer in answers.items():
        run.settle(loaded, task_id, answer)
    return run


def judge(run: MadeRun, bench: MadeBenchmark, asking: Asking | None = None, **options):
    return asyncio.run(evaluate_run(run.folder, bench.load(), asking=asking, **options))


def verdicts(run: MadeRun) -> dict[str, tuple]:
    return {j.task_id: (j.label, j.score, j.reason) for j in run.folder.judgements()}


def test_expected_results_are_matched_and_a_task_without_is_no_reference(root, bench):
    run = settled(root, bench, a="It is Paris.", b="It is Paris.", c="Something")
    judged = judge(run, bench)
    assert verdicts(run) == {
        "a": (1, 100, None),
        "b": (0, 0, None),
        "c": (None, None, "no_reference"),
    }
    assert {j.basis for j in judged.new} == {"matcher"}


def test_the_evaluator_of_the_folder_is_used_for_all_tasks(root, bench):
    bench.evaluator = GUIDE_EVALUATOR
    bench.rubrics["a"] = rubric("a", 100)
    run = settled(root, bench, a="It is Paris.", b="It is Paris.", c="Something")
    judged = judge(run, bench)
    assert verdicts(run) == {
        "a": (1, 100, None),
        "b": (0, 0, None),
        "c": (None, None, "no_reference"),
    }
    assert {(j.basis, j.protocol) for j in judged.new} == {
        ("evaluator", "evaluator:YourBenchmarkEvaluator")
    }


def test_a_rubric_of_code_checks_gives_findings_and_no_number(root, bench):
    bench.rubrics["a"] = rubric("a", 60, 40)
    run = settled(root, bench, a="Done")
    (judgement,) = judge(run, bench).new
    assert (judgement.basis, judgement.score, judgement.label) == ("findings", None, None)
    assert [f.item for f in judgement.findings] == ["I0", "I1"]


def test_a_rubric_that_needs_a_model_is_not_judged_and_says_so(root, bench):
    bench.rubrics["a"] = rubric("a", 100, check=False)
    run = settled(root, bench, a="Paris")
    (judgement,) = judge(run, bench).new
    assert judgement.reason == "not_judged"
    assert "--judge" in judgement.message


class Everything:
    """A judge from elsewhere, for rubrics with items without a check."""

    basis = "findings"
    protocol = "everything/1"
    judge_key = "everything"

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def judge(self, case) -> Verdict:
        self.asked.append(case.task.task_id)
        if case.task.task_id == "b":
            raise ConnectionError("402\nPayment Required")
        return Verdict(findings=())


def test_an_outage_of_a_given_judge_is_a_judge_fault_and_is_mended_later(root, bench):
    """BL035: an outage is not the agent's failure; `--only-ungraded` fixes it."""
    for task_id in "ab":
        bench.rubrics[task_id] = rubric(task_id, 100, check=False)
    run = settled(root, bench, a="Paris", b="Rome")
    given = Everything()
    judge(run, bench, Asking(judge=given, concurrency=1))
    by_task = {j.task_id: j for j in run.folder.judgements()}
    assert by_task["a"].status == "graded"
    assert by_task["b"].reason == "judge_fault"
    assert "402 Payment Required" in by_task["b"].message
    judge(run, bench, Asking(judge=given))
    assert given.asked == ["a", "b"]
    judge(run, bench, Asking(judge=given), only_ungraded=True)
    assert given.asked == ["a", "b", "b"]


class Fails(Everything):
    """Raises what it was given for task b."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    async def judge(self, case) -> Verdict:
        if case.task.task_id == "b":
            raise self.error
        return await super().judge(case)


def test_a_reached_budget_ends_judging_and_leaves_the_rest_owed(root, bench):
    for task_id in "abc":
        bench.rubrics[task_id] = rubric(task_id, 100, check=False)
    run = settled(root, bench, a="1", b="2", c="3")
    judged = judge(run, bench, Asking(judge=Fails(BudgetError("1 USD is spent")), concurrency=1))
    assert judged.over_budget == "1 USD is spent"
    assert [j.task_id for j in run.folder.judgements()] == ["a"]
    assert len(judge(run, bench, Asking(judge=Everything())).new) == 2


def test_what_waits_in_a_batch_has_no_verdict_yet_and_gets_one_later(root, bench):
    for task_id in "abc":
        bench.rubrics[task_id] = rubric(task_id, 100, check=False)
    run = settled(root, bench, a="1", b="2", c="3")
    judged = judge(run, bench, Asking(judge=Fails(PendingError("in batch 1"))))
    assert judged.pending == (("b", 1),)
    assert sorted(j.task_id for j in run.folder.judgements()) == ["a", "c"]
    assert [j.task_id for j in judge(run, bench, Asking(judge=Fails(ValueError()))).new] == ["b"]


def test_a_failed_call_is_kept_with_its_cost_and_its_raw_reply(root, bench):
    bench.rubrics["b"] = rubric("b", 100, check=False)
    run = settled(root, bench, b="2")
    error = TruncatedError("cut short", raw="{", usage=Usage(model="m", cost_usd=0.5))
    error.call = "abc"
    judge(run, bench, Asking(judge=Fails(error)))
    (given,) = run.folder.judgements()
    assert (given.reason, given.raw_ref, given.usage[0].cost_usd) == ("judge_fault", "abc", 0.5)


def test_a_named_judge_reads_rubrics_that_code_could_grade(root, bench):
    bench.rubrics["a"] = rubric("a", 100)
    run = settled(root, bench, a="Paris")
    judge(run, bench)
    assert run.folder.judgements()[-1].protocol.startswith("code-checks/")
    judge(run, bench, Asking(judge=Everything()))
    assert run.folder.judgements()[-1].protocol == "everything/1"
    judge(run, bench)
    assert run.folder.judgements()[-1].protocol.startswith("code-checks/")


def test_an_infrastructure_attempt_is_never_judged(root, bench):
    loaded = bench.load()
    run = MadeRun.of(root, loaded)
    run.settle(loaded, "a", "Paris", status="infrastructure")
    assert judge(run, bench).new == ()


@pytest.mark.parametrize("status", ["gave_up", "step_limit", "time_limit", "agent_error"])
def test_an_attempt_that_ended_otherwise_is_judged(root, bench, status):
    loaded = bench.load()
    run = MadeRun.of(root, loaded)
    run.settle(loaded, "a", None, status=status)
    (judgement,) = judge(run, bench).new
    assert (judgement.status, judgement.score) == ("graded", 0)


def test_a_verdict_with_the_same_keys_is_kept_and_the_evaluator_is_not_asked(root, bench):
    bench.evaluator = evaluator(GOOD)
    run = settled(root, bench, a="Paris", b="Rome")
    assert len(judge(run, bench).new) == 2
    before = run.folder.judgements_path.read_bytes()
    again = judge(run, bench)
    assert (again.new, set(again.kept)) == ((), {("a", 1), ("b", 1)})
    assert run.folder.judgements_path.read_bytes() == before


@pytest.mark.parametrize("change", ["evaluator", "row", "rubric", "trace"])
def test_a_verdict_is_not_reused_when_what_decided_it_changed(root, bench, change):
    """BL019."""
    bench.evaluator = evaluator(GOOD)
    bench.rubrics["a"] = rubric("a", 60, 40)
    run = settled(root, bench, a="Paris")
    judge(run, bench)
    if change == "evaluator":
        bench.evaluator = evaluator('return {"predicted_label": 0, "score": 10}')
    elif change == "row":
        bench.rows[0]["expected_result"] = "Rome"
    elif change == "rubric":
        bench.rubrics["a"] = rubric("a", 50, 50)
    else:
        run.settle(bench.load(), "a", "Paris, again")
    judged = judge(run, bench)
    assert [j.task_id for j in judged.new] == ["a"]
    assert len(run.folder.judgements()) == 2


def test_when_an_evaluator_is_changed_back_its_verdict_is_the_newest_again(root, bench):
    first = evaluator(GOOD)
    bench.evaluator = first
    run = settled(root, bench, a="Paris")
    judge(run, bench)
    bench.evaluator = evaluator('return {"predicted_label": 0, "score": 10}')
    judge(run, bench)
    bench.evaluator = first
    assert judge(run, bench).new == ()
    scores = [j.score for j in run.folder.judgements()]
    assert scores == [70, 10, 70]
    judge(run, bench)
    assert len(run.folder.judgements()) == 3


def test_force_judges_again_and_appends_with_the_next_sample_number(root, bench):
    run = settled(root, bench, a="Paris")
    judge(run, bench)
    judge(run, bench, force=True)
    assert [j.sample for j in run.folder.judgements()] == [0, 1]
    assert len({j.id for j in run.folder.judgements()}) == 2


def test_task_ids_leave_all_other_judgements_as_they_are(root, bench):
    """BL015."""
    run = settled(root, bench, a="Paris", b="Rome", c="x")
    judge(run, bench)
    before = run.folder.judgements_path.read_bytes()
    judge(run, bench, force=True, task_ids=["b"])
    after = run.folder.judgements_path.read_bytes()
    assert after.startswith(before)
    assert [json.loads(line)["task_id"] for line in after[len(before) :].splitlines()] == ["b"]


def test_an_unknown_task_id_is_refused_not_ignored(root, bench):
    """peers: `--task-ids A NoSuch` runs A in silence."""
    run = settled(root, bench, a="Paris")
    with pytest.raises(ConfigError, match="'NoSuch'"):
        judge(run, bench, task_ids=["a", "NoSuch"])
    assert run.folder.judgements() == []


def test_an_evaluator_that_fails_for_one_task_leaves_the_others_graded(root, bench):
    bench.evaluator = evaluator(f'if task_id == "b": raise ValueError("no")\n{GOOD}')
    run = settled(root, bench, a="Paris", b="Rome", c="x")
    judge(run, bench)
    assert verdicts(run) == {
        "a": (1, 70, None),
        "b": (None, None, "evaluator_error"),
        "c": (1, 70, None),
    }


def test_a_hang_costs_its_time_limit_and_no_other_task(root, bench):
    bench.evaluator = evaluator(f'if task_id == "a":\n    while True: pass\n{GOOD}')
    run = settled(root, bench, a="Paris", b="Rome")
    judge(run, bench, Asking(timeout_s=3, concurrency=1))
    assert verdicts(run) == {"a": (None, None, "evaluator_error"), "b": (1, 70, None)}


def test_a_broken_evaluator_is_known_before_the_first_task(root, bench):
    """BL012: the attempts stay, and nothing is recorded."""
    bench.evaluator = "import no_such_module\n" + GUIDE_EVALUATOR
    run = settled(root, bench, a="Paris")
    with pytest.raises(ConfigError, match="no_such_module"):
        judge(run, bench)
    assert run.folder.judgements() == []
    assert len(run.folder.attempts()) == 1


def test_a_damaged_trace_is_a_judge_fault_and_the_others_go_on(root, bench):
    run = settled(root, bench, a="Paris", b="Rome")
    (run.folder.try_path("a", 1, 1) / "trace.json").write_text("{}")
    judge(run, bench)
    by_task = {j.task_id: j for j in run.folder.judgements()}
    assert by_task["a"].reason == "judge_fault"
    assert "changed since the trace was frozen" in by_task["a"].message
    assert by_task["b"].score == 100


def test_a_task_that_changed_or_went_away_is_reported_and_its_old_verdict_stays(root, bench):
    run = settled(root, bench, a="Paris", b="Rome", c="x")
    judge(run, bench)
    bench.rows[0]["task"] = "Do another thing"
    del bench.rows[1]
    judged = judge(run, bench, force=True)
    assert [j.task_id for j in judged.new] == ["c"]
    assert "was changed" in judged.skipped["a", 1]
    assert "no longer there" in judged.skipped["b", 1]


def test_what_rests_on_the_agents_word_is_marked(root, bench):
    loaded = bench.load()
    run = MadeRun.of(root, loaded)
    run.settle(loaded, "a", "Paris", evidence_policy="agent_reported")
    run.settle(loaded, "b", "Rome")
    judge(run, bench)
    marks = {j.task_id: j.details.get("evidence_policy") for j in run.folder.judgements()}
    assert marks == {"a": "agent_reported", "b": None}


def test_a_run_that_another_process_judges_is_refused(root, bench):
    run = settled(root, bench, a="Paris")
    code = (
        "import fcntl, sys, time; f = open(sys.argv[1], 'ab'); fcntl.flock(f, fcntl.LOCK_EX)\n"
        "print('held', flush=True); time.sleep(60)"
    )

    async def contend() -> None:
        other = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", code, str(run.folder.judgements_path)),
            stdout=asyncio.subprocess.PIPE,
        )
        await other.stdout.readline()
        try:
            with pytest.raises(ConfigError, match="another process is judging"):
                await evaluate_run(run.folder, bench.load())
        finally:
            other.kill()
            await other.wait()
        assert len((await evaluate_run(run.folder, bench.load())).new) == 1

    asyncio.run(contend())


def test_the_lock_is_given_back(tmp_path):
    for _ in range(2):
        with exclusive(tmp_path / "judgements.jsonl"):
            pass


def test_after_a_cut_at_any_byte_the_same_verdicts_come_back(root, bench):
    """A crash loses at most the judgement in flight."""
    run = settled(root, bench, a="Paris", b="Rome")
    judge(run, bench)
    path = run.folder.judgements_path
    whole, wanted = path.read_bytes(), verdicts(run)
    lines = whole.splitlines(keepends=True)
    for cut in (0, 1, len(lines[0]) - 1, len(lines[0]), len(lines[0]) + 7, len(whole) - 1):
        path.write_bytes(whole[:cut])
        n_left = len(read_journal(path))
        assert len(judge(run, bench).new) == 2 - n_left
        assert verdicts(run) == wanted


def test_force_and_only_ungraded_exclude_each_other(root, bench):
    run = settled(root, bench, a="Paris")
    with pytest.raises(ConfigError, match="exclude each other"):
        judge(run, bench, force=True, only_ungraded=True)


def test_the_result_holds_what_its_documentation_says(root, bench):
    bench.evaluator = evaluator('return {"predicted_label": 1, "score": 1, "seen": result}')
    loaded = bench.load()
    run = MadeRun.of(root, loaded)
    entry = run.settle(loaded, "a", "Paris", cost_usd=None, urls=["http://shop.test/0"])
    seen = judge(run, bench).new[0].details["extra"]["seen"]
    assert sorted(seen) == sorted(
        ["task_id", "task", "answer", "status", "steps", "final", "trace_dir", "metrics"]
    )
    assert seen["task"]["expected_result"] == "Paris"
    assert (seen["answer"], seen["status"]) == ("Paris", "finished")
    (step,) = seen["steps"]
    assert step["page_after"]["url"] == "http://shop.test/0"
    evidence = Path(seen["trace_dir"]) / "evidence" / step["observations"][0]["ref"]
    assert evidence.read_text() == "page http://shop.test/0"
    assert seen["metrics"] == {"n_steps": 1, "wall_s": 1.5, "cost_usd": None, "usage": []}
    assert entry.n_steps == 1
