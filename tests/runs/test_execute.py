import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from browseruse_bench.errors import ConfigError, DataError
from browseruse_bench.runs.execute import capacity_of, execute
from browseruse_bench.runs.plan import plan
from browseruse_bench.store.trace_folder import TraceFolder
from tests.runs.doubles import told
from tests.zygote import grown

REPO = Path(__file__).resolve().parents[2]


COMMAND = [
    sys.executable, "-m", "browseruse_bench", "run", "--agent", "tests.runs.doubles:Echo",
    "--benchmark", "Small", "--browser", "none", "--concurrency", "4",
]  # fmt: skip


def environment():
    return {**os.environ, "PYTHONPATH": str(REPO)}


def bubench(arguments=""):
    return subprocess.run(
        [*COMMAND, *arguments.split()],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def statuses(planned):
    return {key[0]: entry.status for key, entry in planned.folder.attempts().items()}


def trace_of(planned, task_id, attempt=1):
    entry = planned.folder.attempts()[task_id, attempt]
    return TraceFolder.open(planned.folder.try_path(task_id, attempt, entry.try_), entry.trace_key)


def test_every_attempt_settles_in_a_frozen_trace(benchmark, carry_out):
    benchmark("a", "b")
    planned, executed, progress = carry_out(repeat=2)
    assert executed.statuses == {"finished": 4}
    assert [p.n_done for p in progress] == [1, 2, 3, 4]
    trace = trace_of(planned, "t1")
    assert trace.trace.outcome.answer == "a"
    assert trace.trace.outcome.self_reported_success is None
    assert [step.calls[0].name for step in trace.steps] == ["click"]


def test_what_is_settled_is_not_made_again(benchmark, carry_out):
    benchmark("a", "raise")
    carry_out()
    _, executed, _ = carry_out()
    assert executed.statuses == {}
    assert [t[1] for t in told()] == ["t1", "t2"]


def test_an_agent_that_falls_over_is_an_agent_error(benchmark, carry_out):
    benchmark("raise", "a")
    planned, _, _ = carry_out()
    assert statuses(planned) == {"t1": "agent_error", "t2": "finished"}
    assert planned.folder.attempts()["t1", 1].reason == "RuntimeError: the agent fell over"


def test_a_hanging_agent_ends_at_its_time_limit_and_the_others_finish(benchmark, carry_out):
    """BL010."""
    benchmark("hang", "a", "b", "c")
    planned, _, _ = carry_out(timeout_s=1)
    assert statuses(planned) == {
        "t1": "time_limit", "t2": "finished", "t3": "finished", "t4": "finished",
    }  # fmt: skip
    assert planned.folder.attempts()["t1", 1].wall_s < 5


@pytest.mark.parametrize("text", ["deaf", "thread"])
def test_an_agent_that_ignores_its_cancellation_does_not_hold_the_run_up(benchmark, project, text):
    """BL010: a stuck attempt that cannot be cancelled, in the loop or in a thread."""
    benchmark(text, "a", "b")
    start = time.monotonic()
    done = bubench("--timeout 0.5")
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - start < 25
    assert "t1 #1 time_limit" in done.stdout + done.stderr
    assert "ungraded 3 (not_judged 3)" in done.stdout


def test_silence_ends_an_attempt(benchmark, carry_out):
    benchmark("hang")
    planned, _, _ = carry_out(step_timeout_s=0.5)
    entry = planned.folder.attempts()["t1", 1]
    assert (entry.status, entry.reason) == ("time_limit", "0.5 s without a step")


def test_the_step_limit_has_its_own_status_and_a_trace_to_judge(benchmark, carry_out):
    """BL008, BL027: the limit is derived from counts, and there is no answer."""
    benchmark("endless")
    planned, _, _ = carry_out(max_steps=3)
    trace = trace_of(planned, "t1")
    assert trace.trace.outcome.status == "step_limit"
    assert trace.trace.outcome.answer is None
    assert trace.trace.n_steps == 4


def test_deliverables_are_kept_and_empty_folders_are_not(benchmark, carry_out):
    benchmark("save", "a")
    planned, _, _ = carry_out()
    assert (trace_of(planned, "t1").path / "files" / "report.txt").read_text() == "42"
    assert not (trace_of(planned, "t2").path / "files").exists()


def test_an_agent_sees_the_view_and_the_attachments_only(benchmark, carry_out, project):
    """BL085: a marker in every other field does not reach the agent."""
    folder = benchmark(
        {
            "task_id": "t1",
            "task": "sees",
            "website": "example.com",
            "expected_result": "MARKER",
            "category": "MARKER",
            "difficulty": "easy",
            "secret_field": "MARKER",
            "attachments": ["plan.txt"],
        }
    )
    (folder / "data" / "plan.txt").write_text("buy milk")
    carry_out()
    (_, view, attachments) = next(t for t in told() if t[0] == "sees")
    assert "MARKER" not in json.dumps(view)
    assert set(view) == {"task_id", "text", "website", "attachments"}
    assert attachments == ["plan.txt"]


@pytest.mark.parametrize(
    ("failures", "status", "n_tries"),
    [(0, "finished", 1), (2, "finished", 3), (9, "infrastructure", 3)],
)
def test_infrastructure_failures_are_tried_again_and_each_try_is_kept(
    benchmark, carry_out, project, failures, status, n_tries
):
    benchmark("a")
    (project.parent / "failures").write_text(str(failures))
    planned, _, _ = carry_out(browser="tests.runs.doubles:Flaky")
    assert statuses(planned) == {"t1": status}
    lines = planned.folder.attempts_path.read_text().splitlines()
    assert [json.loads(line)["try"] for line in lines] == list(range(1, n_tries + 1))


def test_only_infrastructure_failures_are_owed_again(benchmark, carry_out, request_of, project):
    """BL016: 3 ok, 2 infrastructure, 1 agent failure; the next command makes the 2 again."""
    benchmark("a", "b", "c", "raise", "d", "e")
    (project.parent / "failures").write_text("2")
    settings = {"browser": "tests.runs.doubles:Flaky", "retries": 0, "concurrency": 1}
    planned, executed, _ = carry_out(**settings)
    assert executed.statuses == {"infrastructure": 2, "finished": 3, "agent_error": 1}
    again = plan(request_of(**settings))
    assert [o.task.task_id for o in again.owed] == ["t1", "t2"]
    carry_out(**settings)
    assert set(statuses(planned).values()) == {"finished", "agent_error"}


def test_attempts_at_one_public_website_have_places_and_those_at_a_site_have_no_limit(
    benchmark, request_of
):
    places = {
        "https://www.example.com/a": "www.example.com",
        "example.com": "example.com",
        "http://shop.test/": None,
        None: None,
    }
    rows = [{"task_id": f"t{n}", "task": "a", "website": w} for n, w in enumerate(places)]
    benchmark(*rows)
    planned = plan(request_of(sites={"shop.test": "tests.runs.doubles:Site"}, per_host=3))
    limits = capacity_of(planned)
    assert [limits.host_of(owed) for owed in planned.owed] == list(places.values())
    assert (limits.per_host, limits.slots) == (3, 2)


def test_a_torn_last_line_is_owed_again_and_its_files_are_not_overwritten(
    benchmark, carry_out, request_of
):
    benchmark("a", "b")
    planned, _, _ = carry_out(concurrency=1)
    journal = planned.folder.attempts_path
    journal.write_bytes(journal.read_bytes()[:-7])
    assert [o.task.task_id for o in plan(request_of()).owed] == ["t2"]
    carry_out()
    assert planned.folder.attempts()["t2", 1].try_ == 2
    assert planned.folder.try_path("t2", 1, 1).exists()


def test_a_damaged_line_in_the_middle_is_named(benchmark, carry_out, request_of):
    """peers: a bad record drops itself and all after it."""
    benchmark("a", "b")
    planned, _, _ = carry_out()
    lines = planned.folder.attempts_path.read_bytes().splitlines(keepends=True)
    planned.folder.attempts_path.write_bytes(lines[0][:-5] + b"\n" + lines[1])
    with pytest.raises(DataError, match="line 1 is damaged"):
        plan(request_of())


def test_two_commands_in_one_folder_are_refused(benchmark, request_of):
    benchmark("slow")
    first, second = plan(request_of()), plan(request_of())

    async def both():
        running = asyncio.ensure_future(
            execute(first, on_settled=lambda _: None, stop=asyncio.Event())
        )
        await asyncio.sleep(0.1)
        with pytest.raises(ConfigError, match="another run goes on"):
            await execute(second, on_settled=lambda _: None, stop=asyncio.Event())
        await running

    asyncio.run(both())


@pytest.mark.parametrize(
    "task_id", ["../../x", "/etc/x", "a/b", "..", "CON", "x" * 300, "a\u2215b", "openai/gpt-5"]
)
def test_a_hostile_task_id_stays_below_the_run(benchmark, carry_out, project, task_id):
    """BL098, peers: an absolute or ../ task id writes outside the run."""
    benchmark({"task_id": task_id, "task": "a"}, {"task_id": "t2", "task": "b"})
    before = {p for p in project.parent.rglob("*") if "experiments" not in p.parts}
    planned, executed, _ = carry_out()
    after = {p for p in project.parent.rglob("*") if "experiments" not in p.parts}
    assert executed.statuses == {"finished": 2}
    assert {p.name for p in after - before} <= {"told.jsonl"}
    assert trace_of(planned, task_id).trace.task_id == task_id


@pytest.mark.slow
def test_killing_the_harness_at_any_moment_loses_nothing_that_settled(
    benchmark, project, monkeypatch
):
    """Twelve times kill -9; the journal and the traces agree, and the run gets whole."""
    temporary = project.parent / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    benchmark(*["slow"] * 40)
    seen = 0
    for n in range(12):
        records = set(project.glob("experiments/*/*/*/*/*/processes.jsonl"))
        begun = [grown(path) for path in records]
        process = subprocess.Popen(
            COMMAND, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        # Some die while they start, the others at a moment after they began to make attempts.
        if n < 3:
            time.sleep(0.6 + 0.2 * n)
        else:
            deadline = time.monotonic() + 60
            while not any(has() for has in begun) and records == set(
                project.glob("experiments/*/*/*/*/*/processes.jsonl")
            ):
                assert time.monotonic() < deadline
                time.sleep(0.01)
            time.sleep(0.05 * n)
        process.send_signal(signal.SIGKILL)
        process.wait()
        runs = list(project.glob("experiments/*/*/*/*/*/attempts.jsonl"))
        settled = runs[0].read_text().count("\n") if runs else 0
        assert settled >= seen
        seen = settled
    done = bubench()
    assert done.returncode == 0, done.stderr
    (journal,) = project.glob("experiments/*/*/*/*/*/attempts.jsonl")
    entries = [json.loads(line) for line in journal.read_text().splitlines()]
    assert len({(e["task_id"], e["attempt"]) for e in entries}) == len(entries) == 40
    for entry in entries:
        path = journal.parent / "tasks" / entry["task_id"] / "1" / f"try-{entry['try']}"
        TraceFolder.open(path, entry["trace_key"])
    records = (journal.parent / "processes.jsonl").read_text().splitlines()
    folders = [Path(f) for line in records for f in json.loads(line).get("removes", ())]
    # One for each command that got so far, killed ones among them; and nothing is left of any.
    assert len(folders) > 1
    assert {folder.parent for folder in folders} == {temporary}
    assert list(temporary.iterdir()) == []


def test_a_second_ctrl_c_ends_what_runs_and_still_tells_what_settled(benchmark, project):
    benchmark("a", "hang", "b")
    command = [*COMMAND, "--concurrency", "1", "--json"]
    process = subprocess.Popen(
        command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    while (line := process.stderr.readline()) and not line.startswith("[1/3]"):
        pass
    process.send_signal(signal.SIGINT)
    while (line := process.stderr.readline()) and "nothing further starts" not in line:
        pass
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=20)
    assert process.returncode == 130
    told = json.loads(output)
    assert told["statuses"] == {"finished": 1}
    assert told["accounting"]["not_run"] == {"stopped": 2}


def test_ctrl_c_keeps_what_settled_and_starts_nothing_more(benchmark, project):
    """peers: Ctrl-C still launches the rest."""
    benchmark(*["slow"] * 30)
    process = subprocess.Popen(
        COMMAND, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    while not (started := list(project.glob("experiments/*/*/*/*/*/attempts.jsonl"))) or (
        not started[0].read_bytes()
    ):
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=20)
    assert process.returncode == 130, errors
    assert "nothing further starts" in errors
    (journal,) = project.glob("experiments/*/*/*/*/*/attempts.jsonl")
    settled = journal.read_text().count("\n")
    assert 0 < settled < 30
    assert f"not run {30 - settled} (stopped {30 - settled})" in output
