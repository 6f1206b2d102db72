"""What an agent claims about itself is kept, and decides nothing."""

import asyncio
import json

import pytest

from browseruse_bench.agents.base import AgentReport
from browseruse_bench.benchmarks.load import load_benchmark
from browseruse_bench.eval.evaluate import evaluate_run
from browseruse_bench.report.summary import summarise
from browseruse_bench.store.trace_folder import TraceFolder
from tests.runs.doubles import Echo


class Claims(Echo):
    """Answers what the task's text says, with the status and the claim that it says."""

    name = "claims"

    async def attempt(self, view, session, limits, sink, workspace):
        return AgentReport(**json.loads(view.text))


def task(n, **report):
    text = json.dumps({"status": "finished", "claimed_success": None, **report})
    return {"task_id": f"t{n}", "task": text, "expected_result": "right"}


@pytest.fixture
def outcome_of(benchmark, carry_out):
    """(self-report, status, answer, points) by task, of a run of these tasks."""

    def made(*tasks):
        folder = benchmark(*tasks)
        planned, _, _ = carry_out(agent="tests.runs.test_claims:Claims")
        loaded = load_benchmark(str(folder))
        asyncio.run(evaluate_run(planned.folder, loaded))
        points = {t.task_id: t.attempts[0].points for t in summarise(planned.folder, loaded).tasks}
        found = {}
        for (task_id, attempt), entry in planned.folder.attempts().items():
            path = planned.folder.try_path(task_id, attempt, entry.try_)
            outcome = TraceFolder.open(path, entry.trace_key).trace.outcome
            found[task_id] = (
                outcome.self_reported_success,
                outcome.status,
                outcome.answer,
                points[task_id],
            )
        return found

    return made


def test_three_claims_stay_three_and_none_is_a_score_bl009(outcome_of):
    """BL009: success true, false and unknown; the answers are wrong, right and right."""
    found = outcome_of(
        task(1, claimed_success=True, answer="wrong"),
        task(2, claimed_success=False, answer="right"),
        task(3, claimed_success=None, answer="right"),
    )
    assert found == {
        "t1": (True, "finished", "wrong", 0),
        "t2": (False, "finished", "right", 100),
        "t3": (None, "finished", "right", 100),
    }


def test_an_attempt_that_stopped_early_has_no_answer_and_no_success_bl008(outcome_of):
    """BL008: the last action's text is not made an answer of."""
    found = outcome_of(task(1, status="gave_up", answer=None), task(2, answer=None))
    assert found == {"t1": (None, "gave_up", None, 0), "t2": (None, "finished", None, 0)}
