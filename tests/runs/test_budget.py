"""What an attempt and a run may cost: known dollars, or an end that says so."""

import json

import pytest

from browseruse_bench.agents.base import AgentReport, Stopped
from browseruse_bench.errors import ConfigError
from browseruse_bench.records.run import AttemptEntry
from browseruse_bench.records.trace import AgentId, Call, Limits, Usage
from browseruse_bench.runs.budget import Budget, over
from browseruse_bench.runs.plan import RunRequest, plan
from browseruse_bench.runs.recording import RecordingSink
from tests.runs.doubles import Echo
from tests.runs.test_execute import bubench, statuses, trace_of

SPENDER = "tests.runs.test_budget:Spender"


class Spender(Echo):
    """Each action costs 0.10 USD; `free` costs nothing, `unknown` has no price."""

    name = "spender"

    def identity(self):
        return AgentId(name=self.name, version="1", model=self.setup.model)

    def priced(self):
        return False if self.setup.model == "x:unpriced" else None

    async def attempt(self, view, session, limits, sink, workspace):
        kind, _, n = view.text.partition(" ")
        total = 0.0
        for _ in range(int(n)):
            total += 0.0 if kind == "free" else 0.1
            cost = None if kind == "unknown" else round(total, 6)
            try:
                sink.usage(Usage(model="m", output_tokens=1, cost_usd=cost))
                await sink.action(Call(name="click"))
            except Stopped:
                if kind != "deaf":
                    raise
        return AgentReport(status="finished", answer="done", usage=tuple(sink.all_usage))


def entry(cost_usd, n=1):
    return AttemptEntry.model_validate(
        {
            "task_id": "t", "attempt": n, "try": 1, "task_key": "k", "trace_key": "k", "at": "",
            "status": "finished", "n_steps": 0, "wall_s": 0, "cost_usd": cost_usd,
        }
    )  # fmt: skip


@pytest.mark.parametrize(
    ("costs", "limit", "reached"),
    [
        ([], None, False), ([0.5], 1, False), ([0.5, 0.5], 1, True), ([None], None, False),
        ([None], 1, True), ([0.0] * 5, 1, False), ([0.999999], 1, False), ([3.0], 1, True),
    ],
)  # fmt: skip
def test_a_budget_is_reached_at_its_sum_or_where_a_cost_is_unknown(costs, limit, reached):
    budget = Budget(limit)
    for cost in costs:
        budget.add(entry(cost))
    assert bool(budget.reached) == reached
    assert bool(Budget(limit, [entry(c) for c in costs]).reached) == reached


def test_an_attempt_is_over_at_its_limit_over_all_models_or_where_a_use_has_no_price():
    two = (Usage(model="a", cost_usd=0.4), Usage(model="b", cost_usd=0.6))
    assert over(two, 1.1) is None
    assert over(two, 1.0) == "1.0000 of 1 USD"
    assert over((*two, Usage(model="c")), 5) == "no price is known for c, so 5 USD cannot be kept"
    assert over((Usage(model="c"),), None) is None


async def test_the_sink_stops_an_agent_at_the_use_that_reaches_the_limit():
    sink = RecordingSink(None, Limits(cost_usd=0.3))
    sink.usage(Usage(model="m", cost_usd=0.2))
    await sink.action(Call(name="click"))
    with pytest.raises(Stopped, match="budget_limit"):
        sink.usage(Usage(model="m", cost_usd=0.3))
    with pytest.raises(Stopped, match="budget_limit"):
        await sink.action(Call(name="click"))
    assert len(sink.steps) == 2


@pytest.mark.parametrize(
    ("text", "status", "n_steps"),
    [
        ("costs 2", "finished", 2),
        ("costs 9", "budget_limit", 2),
        ("free 9", "finished", 9),
        ("unknown 9", "budget_limit", 0),
        ("deaf 5", "budget_limit", 2),
    ],
)
def test_an_attempt_ends_at_its_limit_and_its_partial_trace_is_there_to_judge(
    benchmark, carry_out, request_of, text, status, n_steps
):
    benchmark(text)
    limits = Limits(max_steps=20, cost_usd=0.25)
    planned, _, _ = carry_out(agent=SPENDER, model="x:y", limits=limits)
    assert statuses(planned) == {"t1": status}
    trace = trace_of(planned, "t1")
    assert trace.trace.n_steps == n_steps
    assert (trace.trace.outcome.answer is None) == (status == "budget_limit")
    assert not [o for o in plan(request_of(agent=SPENDER, model="x:y", limits=limits)).owed]


def test_a_limit_in_usd_is_refused_before_anything_is_spent_where_no_price_is_known(
    benchmark, request_of
):
    benchmark("costs 1")
    for limit in ({"budget_usd": 1.0}, {"limits": Limits(cost_usd=1)}):
        with pytest.raises(ConfigError, match="no price is known for model 'x:unpriced'"):
            plan(request_of(agent=SPENDER, model="x:unpriced", **limit))
    plan(request_of(agent=SPENDER, model="x:unpriced"))


def test_at_the_budget_nothing_further_starts_and_a_greater_one_goes_on(benchmark, project):
    benchmark(*["costs 2"] * 6)
    command = f"--agent {SPENDER} --model x:y --concurrency 1 --json"
    done = bubench(f"{command} --budget-usd 0.5")
    assert done.returncode == 5, done.stderr
    assert "--budget-usd 0.5 is reached: 0.6000 USD spent; 3 attempts are not run" in done.stderr
    counts = json.loads(done.stdout)["accounting"]
    assert counts["not_run"] == {"budget": 3}
    assert counts["selected"] == 6
    assert counts["ungraded"] == {"not_judged": 3}
    again = bubench(f"{command} --budget-usd 0.5")
    assert (again.returncode, json.loads(again.stdout)["accounting"]) == (5, counts)
    more = bubench(f"{command} --budget-usd 2")
    assert more.returncode == 0, more.stderr
    assert json.loads(more.stdout)["accounting"]["ungraded"] == {"not_judged": 6}


def test_an_unknown_cost_stops_a_run_with_a_budget_and_is_never_0(benchmark, carry_out):
    """peers: what an unknown model costs is $0.00."""
    benchmark(*["unknown 1"] * 3)
    _, executed, _ = carry_out(agent=SPENDER, model="x:y", budget_usd=9.0, concurrency=1)
    assert executed.n_stopped == 2
    assert "what t1 #1 cost is not known" in executed.over_budget
    _, executed, _ = carry_out(agent=SPENDER, model="x:y", concurrency=1)
    assert executed.n_stopped == 0


def test_a_budget_does_not_make_another_run(benchmark, request_of):
    benchmark("costs 1")
    request = request_of(agent=SPENDER)
    assert isinstance(request, RunRequest)
    ids = {plan(request_of(agent=SPENDER, budget_usd=usd)).run.run_id for usd in (None, 1.0, 2.0)}
    assert len(ids) == 1
