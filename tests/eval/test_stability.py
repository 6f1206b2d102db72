import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from browseruse_bench.errors import BudgetError, ConfigError, DataError
from browseruse_bench.eval.regrading import read_judgements
from browseruse_bench.eval.stability import choose, journal_of, judges_of, regrade_run
from browseruse_bench.models.base import PendingError
from browseruse_bench.records.trace import Usage
from browseruse_bench.store.journal import read_journal
from tests.eval.flipping import FlippingJudge
from tests.report.made_run import MadeBenchmark, MadeRun, row, rubric


def texts(task_id, *requirements):
    made = rubric(task_id, *[100 // len(requirements)] * len(requirements), check=False)
    for item, text in zip(made["items"], requirements, strict=True):
        item["requirement"] = text
    return made


@pytest.fixture
def bench(tmp_path):
    """Three tasks with two items each, of which one of "b" flips."""
    rows = [row("a"), row("b"), row("c")]
    rubrics = {
        "a": texts("a", "decided met", "decided violated"),
        "b": texts("b", "met with 0.5", "decided met"),
        "c": texts("c", "decided met", "decided met"),
    }
    return MadeBenchmark(tmp_path / "Made", rows, rubrics=rubrics)


@pytest.fixture
def run(tmp_path, bench):
    """Two attempts at each task, all settled."""
    loaded = bench.load()
    made = MadeRun.of(tmp_path / "experiments", loaded, repeat=2)
    for task_id in "abc":
        for attempt in (1, 2):
            made.settle(loaded, task_id, "An answer", attempt=attempt)
    return made


def regrade(run, bench, *judges, traces=None, **options):
    chosen = choose(run.folder, bench.load(), traces=traces)
    judges = judges or (FlippingJudge(),)
    return asyncio.run(regrade_run(run.folder, chosen.specimens, judges, **options))


def regrades(run):
    return read_judgements(journal_of(run.folder))


def test_each_trace_is_graded_so_often_under_the_first_numbers_and_the_verdicts_stay(run, bench):
    done = regrade(run, bench, samples=4)
    assert (done.n_new, done.n_kept) == (24, 0)
    numbers = {}
    for each in regrades(run):
        numbers.setdefault((each.task_id, each.attempt), []).append(each.sample)
    assert set(numbers) == {(t, n) for t in "abc" for n in (1, 2)}
    assert all(sorted(found) == [0, 1, 2, 3] for found in numbers.values())
    assert run.folder.judgements() == []


def test_what_is_there_is_not_asked_again_and_more_samples_are_added(run, bench):
    regrade(run, bench, samples=2)
    judge = FlippingJudge()
    assert regrade(run, bench, judge, samples=2).n_kept == 12
    assert judge.asked == []
    done = regrade(run, bench, judge, samples=5)
    assert (done.n_new, done.n_kept) == (18, 12)
    assert {sample for *_, sample in judge.asked} == {2, 3, 4}


def test_another_judge_or_another_rubric_is_graded_anew(run, bench):
    regrade(run, bench, samples=2)
    assert regrade(run, bench, FlippingJudge("other"), samples=2).n_new == 12
    bench.rubrics["a"] = texts("a", "decided met", "decided met")
    assert regrade(run, bench, samples=2).n_new == 4


def test_two_judges_grade_the_same_traces_and_one_named_twice_is_refused(run, bench):
    done = regrade(run, bench, FlippingJudge(), FlippingJudge("other"), samples=2)
    assert done.n_new == 24
    with pytest.raises(ConfigError, match="same"):
        regrade(run, bench, FlippingJudge(), FlippingJudge(), samples=2)


def test_a_single_sample_compares_nothing_and_is_refused(run, bench):
    with pytest.raises(ConfigError, match="two"):
        regrade(run, bench, samples=1)


def test_a_failure_of_the_judge_is_ungraded_with_its_words_and_only_retry_asks_again(run, bench):
    judge = FlippingJudge(ungraded=lambda case: case.sample == 1 and case.task.task_id == "a")
    regrade(run, bench, judge, samples=3)
    failed = [each for each in regrades(run) if each.status == "ungraded"]
    assert [(f.task_id, f.sample, f.reason) for f in failed] == [("a", 1, "judge_fault")] * 2
    assert "no reply that could be read" in failed[0].message
    asked = len(judge.asked)
    regrade(run, bench, judge, samples=3)
    assert len(judge.asked) == asked
    done = regrade(run, bench, judge, samples=3, retry_ungraded=True)
    assert done.n_new == 2
    assert {sample for *_, sample in judge.asked[asked:]} == {3}
    assert sum(each.status == "ungraded" for each in regrades(run)) == 2
    assert regrade(run, bench, judge, samples=3, retry_ungraded=True).n_new == 0


def test_a_budget_that_is_reached_keeps_what_is_there_and_the_same_call_goes_on(run, bench):
    class Poor(FlippingJudge):
        async def judge(self, case):
            if len(self.asked) == 5:
                raise BudgetError("--judge-budget-usd 1 is reached")
            return await super().judge(case)

    done = regrade(run, bench, Poor(), samples=2)
    assert (done.n_new, done.n_left) == (5, 7)
    assert "reached" in done.over_budget
    assert regrade(run, bench, samples=2).n_kept == 5


def test_calls_that_wait_in_a_batch_leave_nothing_in_the_journal(run, bench):
    class Batched(FlippingJudge):
        async def judge(self, case):
            raise PendingError("in a batch")

    done = regrade(run, bench, Batched(), samples=2)
    assert (done.n_new, done.n_pending) == (0, 12)
    assert regrades(run) == []


def test_the_first_grading_of_a_trace_goes_alone_so_that_the_others_find_a_warm_cache(run, bench):
    class Slow(FlippingJudge):
        def __init__(self):
            super().__init__()
            self.open, self.together = {}, {}

        async def judge(self, case):
            trace = case.trace.key
            self.open[trace] = self.open.get(trace, 0) + 1
            self.together.setdefault(trace, []).append(self.open[trace])
            await asyncio.sleep(0.01)
            self.open[trace] -= 1
            return await super().judge(case)

    judge = Slow()
    regrade(run, bench, judge, samples=5, concurrency=4, traces=2)
    for seen in judge.together.values():
        assert seen[:2] == [1, 1]
        assert max(seen) > 1


def test_no_more_are_graded_at_a_time_than_was_said(run, bench):
    class Counting(FlippingJudge):
        now = most = 0

        async def judge(self, case):
            self.now += 1
            self.most = max(self.most, self.now)
            await asyncio.sleep(0.002)
            self.now -= 1
            return await super().judge(case)

    judge = Counting()
    regrade(run, bench, judge, samples=6, concurrency=3)
    assert judge.most == 3


def test_a_damaged_trace_is_ungraded_not_fatal(run, bench):
    entry = run.folder.attempts()["a", 1]
    (run.folder.try_path("a", 1, entry.try_) / "steps.jsonl").write_text("")
    regrade(run, bench, samples=2)
    failed = [each for each in regrades(run) if each.status == "ungraded"]
    assert [(f.task_id, f.attempt) for f in failed] == [("a", 1)] * 2
    assert "damaged" in failed[0].message


def test_a_damaged_journal_is_named_and_nothing_is_asked(run, bench):
    journal_of(run.folder).write_text('{"no": "judgement"}\n')
    judge = FlippingJudge()
    with pytest.raises(DataError, match="stability.jsonl"):
        regrade(run, bench, judge, samples=2)
    assert judge.asked == []


def test_a_cut_list_of_judges_is_named_with_what_mends_it(run, bench):
    regrade(run, bench, samples=2)
    list_of_judges = run.folder.path / "stability.json"
    list_of_judges.write_text('{"a')
    with pytest.raises(
        DataError, match=r"stability\.json: damaged .* remove it and name the judges"
    ):
        judges_of(run.folder)


def test_traces_are_spread_over_tasks_and_a_greater_number_takes_the_same_and_more(run, bench):
    def chosen(traces, seed=0):
        found = choose(run.folder, bench.load(), traces=traces, seed=seed).specimens
        return [(s.task.task_id, s.attempt) for s in found]

    assert {task for task, _ in chosen(3)} == set("abc")
    for n in range(1, 7):
        assert chosen(n) == chosen(6)[:n]
    assert len({tuple(chosen(3, seed)) for seed in range(12)}) > 3
    assert len(chosen(99)) == 6


def test_what_cannot_be_regraded_is_said_by_reason(tmp_path, bench):
    loaded = bench.load()
    run = MadeRun.of(tmp_path / "e", loaded)
    run.settle(loaded, "a", None, status="infrastructure")
    run.settle(loaded, "b", "x")
    run.settle(loaded, "c", "x")
    del bench.rubrics["b"]
    (bench.path / "rubrics" / "b.json").unlink()
    bench.rows[2] = row("c", website="other.test")
    with pytest.raises(ConfigError, match="infrastructure.*no rubric.*changed"):
        choose(run.folder, bench.load())
    run.settle(loaded, "a", "x")
    found = choose(run.folder, bench.load())
    assert [s.task.task_id for s in found.specimens] == ["a"]
    assert sum(found.reasons.values()) == 2


def test_a_benchmark_with_an_evaluator_has_no_findings_to_compare(run, bench):
    from tests.report.made_run import GUIDE_EVALUATOR

    bench.evaluator = GUIDE_EVALUATOR
    with pytest.raises(ConfigError, match="its own evaluator"):
        choose(run.folder, bench.load())


def test_what_a_regrade_costs_is_kept_with_it(run, bench):
    usage = (Usage(model="m", output_tokens=7, cost_usd=0.25),)
    regrade(run, bench, FlippingJudge(usage=usage), samples=2, traces=1)
    assert [each.usage[0].cost_usd for each in regrades(run)] == [0.25, 0.25]


def test_two_processes_never_regrade_one_run_at_the_same_time(run, bench):
    from browseruse_bench.eval.evaluate import exclusive

    with exclusive(journal_of(run.folder)), pytest.raises(ConfigError, match="another process"):
        regrade(run, bench, samples=2)


KILLED = """
import asyncio, sys
from pathlib import Path
from browseruse_bench.benchmarks.load import load_benchmark
from browseruse_bench.eval.stability import choose, regrade_run
from browseruse_bench.store.run_folder import RunFolder
from tests.eval.flipping import FlippingJudge

class Slow(FlippingJudge):
    async def judge(self, case):
        await asyncio.sleep(0.004)
        return await super().judge(case)

folder, benchmark = RunFolder(Path(sys.argv[1])), load_benchmark(sys.argv[2])
chosen = choose(folder, benchmark)
print("ready", flush=True)
asyncio.run(regrade_run(folder, chosen.specimens, [Slow()], samples=40, concurrency=3))
"""


def test_kill_9_at_any_moment_loses_and_doubles_nothing(run, bench, tmp_path):
    """Killed again and again; each start goes on, and in the end it is as if nothing had been."""
    script = tmp_path / "regrade.py"
    script.write_text(textwrap.dedent(KILLED))
    command = [sys.executable, str(script), str(run.folder.path), str(bench.path)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    bench.load()
    kept, n_kills = 0, 0
    for wait in (0.04, 0.12, 0.08):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment)
        assert process.stdout.readline() == b"ready\n"
        time.sleep(wait)
        process.send_signal(signal.SIGKILL)
        n_kills += process.wait() == -signal.SIGKILL
        process.stdout.close()
        n = len(read_journal(journal_of(run.folder)))
        assert n >= kept
        kept = n
    assert n_kills >= 2
    assert (
        subprocess.run(command, env=environment, capture_output=True, check=False).returncode == 0
    )
    found = [each.reuse_key for each in regrades(run)]
    assert len(found) == len(set(found)) == 6 * 40
    assert {key[5] for key in found} == set(range(40))
