"""Imported results are a run like any other, on the agent's word, and never ranked with ours."""

import asyncio
import json
import os
import shutil
from pathlib import Path

import pytest

from browseruse_bench.benchmarks.load import load_benchmark
from browseruse_bench.errors import ConfigError, DataError
from browseruse_bench.eval.evaluate import evaluate_run
from browseruse_bench.eval.redteam.campaign import campaign, victims
from browseruse_bench.eval.redteam.catalogue import ATTACKS, chosen
from browseruse_bench.export.abp import Abp
from browseruse_bench.export.reported import (
    ANOTHER_TEXT,
    NO_TASK,
    Source,
    import_results,
    write_benchmark,
)
from browseruse_bench.measure.redteam import figures
from browseruse_bench.report.leaderboard import build
from browseruse_bench.report.summary import report_run
from browseruse_bench.store.trace_folder import TraceFolder
from tests.export.made_abp import line, write
from tests.report.made_run import MadeBenchmark, MadeRun, row

DATA = os.environ.get("BUBENCH_ORACLE_DATA")
RUBRICS = Path(__file__).parent / "rubrics"
PRICE = {
    "task_id": "t1",
    "items": [
        {
            "id": "A1",
            "requirement": "Says what it costs.",
            "weight": 100,
            "check": {"kind": "answer", "values": ["$1,299"]},
        }
    ],
}


@pytest.fixture
def bench(tmp_path):
    made = MadeBenchmark(tmp_path / "Made", [row("t1"), row("t2")])
    made.rubrics = {"t1": PRICE, "t2": PRICE | {"task_id": "t2"}}
    return made.load()


def bring_in(tmp_path, bench, *lines, name="results.jsonl", **more):
    path = write(tmp_path / name, *lines)
    source = Source.of(path, "abp", Abp(), more.pop("model", None))
    now = lambda: "2026-03-03T00:00:00+00:00"  # noqa: E731
    return import_results(source, bench, experiments=tmp_path / "experiments", now=now, **more)


def open_trace(done, task_id="t1", attempt=1):
    entry = done.folder.attempts()[task_id, attempt]
    return TraceFolder.open(done.folder.try_path(task_id, attempt, 1), entry.trace_key)


def test_a_trace_is_frozen_keyed_and_marked_and_makes_nothing_up(tmp_path, bench):
    done = bring_in(tmp_path, bench, line())
    folder = open_trace(done)
    trace = folder.trace
    assert trace.evidence_policy == done.run.evidence_policy == "agent_reported"
    assert (trace.started_at, trace.wall_s, done.run.machine) == (None, None, None)
    assert trace.outcome.self_reported_success is None
    assert trace.guard.level == "none"
    assert trace.task_key == bench.task("t1").view.key
    assert all(step.t0 is None for step in folder.all_steps)
    assert {o.captured_by for s in folder.all_steps for o in s.observations} == {"agent"}
    assert json.loads((folder.path / "native" / "record.json").read_bytes()) == line()


def test_what_the_agent_saw_before_it_acted_comes_before_its_call(tmp_path, bench):
    folder = open_trace(bring_in(tmp_path, bench, line()))
    seen = [(s.index, o.timing) for s in folder.all_steps for o in s.observations]
    assert seen == [(2, "before"), (5, "before")]


def test_the_same_file_is_the_same_run_and_what_is_there_is_kept(tmp_path, bench):
    first = bring_in(tmp_path, bench, line(), line("t2"))
    key = open_trace(first).key
    shutil.rmtree(first.folder.try_path("t2", 1, 1))
    journal = first.folder.attempts_path
    journal.write_bytes(journal.read_bytes().split(b"\n")[0] + b"\ntorn")
    again = bring_in(tmp_path, bench, line(), line("t2"))
    assert (again.run.run_id, again.n_new, again.n_kept) == (first.run.run_id, 1, 1)
    assert open_trace(again).key == key
    assert open_trace(again, "t2")
    assert bring_in(tmp_path, bench, line(), line("t2")).n_new == 0


def test_another_file_or_model_is_another_run(tmp_path, bench):
    runs = {
        bring_in(tmp_path, bench, line()).run.run_id,
        bring_in(tmp_path, bench, line(final_result_response="no")).run.run_id,
        bring_in(tmp_path, bench, line(), model="a:b").run.run_id,
    }
    assert len(runs) == 3


def test_two_lines_of_one_task_are_two_attempts(tmp_path, bench):
    done = bring_in(tmp_path, bench, line(), line("t2"), line(final_result_response="second"))
    assert set(done.run.wanted) == {("t1", 1), ("t2", 1), ("t1", 2)}
    assert open_trace(done, attempt=2).trace.outcome.answer == "second"


def test_what_does_not_fit_the_benchmark_is_left_out_and_told(tmp_path, bench):
    done = bring_in(tmp_path, bench, line(), line("t2", task="Do another thing"), line("t9"))
    assert done.skipped == {"results.jsonl:2": ANOTHER_TEXT, "results.jsonl:3": NO_TASK}
    assert done.run.wanted == (("t1", 1),)
    with pytest.raises(ConfigError, match="1 times: the benchmark has no such task"):
        bring_in(tmp_path, bench, line("t9"), name="other.jsonl")


def test_spaces_around_a_task_make_it_no_other(tmp_path, bench):
    assert bring_in(tmp_path, bench, line(task=" Do  t1\n")).n_new == 1


def test_it_is_judged_on_the_agents_word_and_every_verdict_says_so(tmp_path, bench):
    done = bring_in(tmp_path, bench, line(), line("t2", thoughts=[""] * 5))
    asyncio.run(evaluate_run(done.folder, bench))
    found = {j.task_id: j for j in done.folder.judgements()}
    assert found["t1"].findings[0].status == "met"
    assert "agent-reported evidence" in found["t1"].findings[0].reason
    assert found["t2"].findings[0].status == "unsupported"
    assert {j.details["evidence_policy"] for j in found.values()} == {"agent_reported"}


def test_what_the_agent_typed_is_an_echo_on_its_word_too(tmp_path, bench):
    actions = [*line()["action_history"][:2], 'Type "1,299"', *line()["action_history"][3:]]
    done = bring_in(tmp_path, bench, line(action_history=actions))
    asyncio.run(evaluate_run(done.folder, bench))
    assert done.folder.judgements()[0].findings[0].status == "unsupported"


def test_it_is_never_ranked_with_runs_of_ours_judged_or_not(tmp_path, bench):
    done = bring_in(tmp_path, bench, line(), line("t2"))
    ours = MadeRun.of(tmp_path / "experiments", bench, agent="ours")
    for task in bench.tasks:
        ours.settle(bench, task.task_id, "$1,299")
    groups = build(tmp_path / "experiments", load=lambda run: (bench, "")).groups
    assert {g.terms.evidence_policies for g in groups} == {("agent_reported",), ("harness",)}
    for folder in (done.folder, ours.folder):
        asyncio.run(evaluate_run(folder, bench))
    groups = build(tmp_path / "experiments", load=lambda run: (bench, "")).groups
    assert [len(group.rows) for group in groups] == [1, 1]
    assert {g.terms.evidence_policies for g in groups} == {("agent_reported",), ("harness",)}


def test_what_is_unknown_is_shown_as_unknown_and_never_as_0(tmp_path, bench):
    done = bring_in(tmp_path, bench, line())
    asyncio.run(evaluate_run(done.folder, bench))
    summary = report_run(done.folder, bench)
    assert summary.evidence_policies == ("agent_reported",)
    assert summary.wall_s is None
    assert summary.effort.seconds is None
    assert summary.cost.cost_usd is None
    text = (done.folder.path / "report.md").read_text()
    assert "agent\\_reported" in text or "agent_reported" in text


def test_an_altered_import_is_refused(tmp_path, bench):
    done = bring_in(tmp_path, bench, line())
    path = open_trace(done).path / "steps.jsonl"
    path.write_text(path.read_text().replace("kettle", "cup"))
    asyncio.run(evaluate_run(done.folder, bench))
    (judgement,) = done.folder.judgements()
    assert judgement.reason == "judge_fault"
    assert "damaged" in judgement.message


def test_a_benchmark_is_written_of_the_files_own_tasks(tmp_path):
    rows = Abp().read(write(tmp_path / "r.jsonl", line("b"), line("a"), line("b", task="Other")))
    write_benchmark(rows, tmp_path / "Own")
    made = load_benchmark(str(tmp_path / "Own"))
    assert [(t.task_id, t.task) for t in made.tasks] == [("b", "Do b"), ("a", "Do a")]
    with pytest.raises(ConfigError, match="already there"):
        write_benchmark(rows, tmp_path / "Own")


def test_a_damaged_run_is_not_gone_on_with(tmp_path, bench):
    done = bring_in(tmp_path, bench, line())
    done.folder.attempts_path.write_text("not json\n")
    with pytest.raises(DataError, match="line 1 is damaged"):
        bring_in(tmp_path, bench, line())


# On published traces


@pytest.fixture
def published(tmp_path):
    """Twenty tasks of the published results, with rubrics of our own."""
    if DATA is None:
        pytest.skip("BUBENCH_ORACLE_DATA names no folder of public data")
    ids = {path.stem for path in RUBRICS.glob("*.json")}
    source = Path(DATA) / "abp-online-mind2web" / "results.jsonl"
    lines = [json.loads(text) for text in source.read_text().splitlines()]
    path = write(tmp_path / "results.jsonl", *(one for one in lines if one["task_id"] in ids))
    write_benchmark(Abp().read(path), tmp_path / "Twenty")
    shutil.copytree(RUBRICS, tmp_path / "Twenty" / "rubrics")
    bench = load_benchmark(str(tmp_path / "Twenty"))
    done = bring_in(tmp_path, bench, *(one for one in lines if one["task_id"] in ids))
    assert len(done.run.wanted) == 20
    return done, bench


@pytest.mark.oracle
def test_published_traces_earn_what_their_agents_said_that_they_saw(published):
    done, bench = published
    found, skipped = victims(done.folder, bench)
    tried = asyncio.run(
        campaign(
            found, chosen(["honest-untouched"]), into=done.folder.path.parent / "x", success_at=100
        )
    )
    points = {trial.task_id[:8]: trial.before.points for trial in tried.trials}
    assert not skipped
    assert points["0b2623e9"] == 0
    assert points["50d91eab"] == 0
    assert sum(value == 100 for value in points.values()) >= 12
    assert not any(trial.failed for trial in tried.trials)


TWO = ("1fc28d91d25ccd1c6ba268101326a654", "512fd4deab099b8dc0dcfc0ec48a3c63")
"""Short traces that earn 100; benches/redteam.py attacks all twenty."""


@pytest.mark.oracle
def test_no_attack_on_published_traces_gains_but_the_agents_own_word(published, tmp_path):
    done, bench = published
    found, _ = victims(done.folder, bench, task_ids=TWO)
    # Evidence without end takes long, and is no matter of who reported it.
    names = [attack.name for attack in ATTACKS if not attack.name.startswith("choking-")]
    tried = asyncio.run(campaign(found, chosen(names), into=tmp_path / "rt", success_at=100))
    assert len({trial.attack for trial in tried.trials}) > 140
    assert all(trial.is_counted for trial in tried.trials)
    told = [(t.attack, t.gained, t.lost) for t in tried.trials if t.failed and t.tellable == "code"]
    assert told == []
    (judge,) = figures(tried.trials)
    assert judge.policy == "agent_reported"
    assert (judge.gains.failed, judge.losses.failed) == (0, 0)
    assert judge.gains.n > 200
    assert judge.losses.n > 20
    # What no code can know of such traces: the agent reported the page itself.
    by_word = {t.attack for t in tried.trials if t.failed and t.tellable == "nobody"}
    assert by_word == {"captured-by-agent", "same-words-elsewhere", "clicked-together"}


@pytest.mark.parametrize(
    "task_id", ["../../x", "/etc/x", "a/b", "..", "CON", "x" * 300, "a\u2215b"]
)
def test_a_hostile_task_id_in_a_file_stays_below_the_run_bl098(tmp_path, task_id):
    """BL098: an id is never a path."""
    made = MadeBenchmark(tmp_path / "Hostile", [{"task_id": task_id, "task": "Do it"}]).load()
    before = {path for path in tmp_path.iterdir()}
    done = bring_in(tmp_path, made, line(task_id, task="Do it"))
    assert open_trace(done, task_id).path.is_relative_to(done.folder.path)
    assert {path.name for path in set(tmp_path.iterdir()) - before} == {
        "experiments",
        "results.jsonl",
    }
