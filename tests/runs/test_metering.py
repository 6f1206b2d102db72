"""What a run comes to where its agent's model is asked through the gateway."""

import json
from types import SimpleNamespace

import pytest

from browseruse_bench.errors import ConfigError
from browseruse_bench.models.gateway import server
from browseruse_bench.models.gateway.meter import Failing
from browseruse_bench.models.ledger import Ledger
from browseruse_bench.models.spending_log import FILE, Spending, What
from browseruse_bench.records.trace import Limits, Outcome, Usage
from browseruse_bench.runs.budget import SCOPE, Budget
from browseruse_bench.runs.metering import Metered, Metering
from browseruse_bench.runs.plan import plan
from tests.models.gateway.pretend_provider import KEY, Served, chat, stream, whole
from tests.runs.test_budget import entry
from tests.runs.test_execute import statuses, trace_of

AGENT = "tests.runs.asking:Asking"
EACH = (60 * 10 + 40 * 1 + 20 * 100) / 1e6
"""What a call costs, in USD."""


@pytest.fixture
def provider(project, monkeypatch):
    """A provider that bubench.toml names as the model `small`, for 0.00264 USD a call."""
    monkeypatch.setenv("SMALL_KEY", KEY)
    with Served() as served:
        (project / "bubench.toml").write_text(f"""
[models.small]
id = "gpt-test"
base_url = "{served.url}/v1"
api_key_env = "SMALL_KEY"
usd_per_million = {{input = 10.0, cached = 1.0, output = 100.0}}

[models.unpriced]
id = "gpt-test"
base_url = "{served.url}/v1"
api_key_env = "SMALL_KEY"
""")
        yield served


@pytest.fixture
def run(benchmark, carry_out, provider):
    def go(*tasks, **changes):
        benchmark(*tasks)
        return carry_out(**{"agent": AGENT, "model": "small", "retries": 0, **changes})

    return go


def journal(planned):
    return {entry.task_id: entry for entry in planned.folder.entries()}


def test_the_gateways_count_is_the_traces_and_the_agents_stands_beside_it(run, provider):
    planned, *_ = run("ask 3", "ask 1")
    assert statuses(planned) == {"t1": "finished", "t2": "finished"}
    trace = trace_of(planned, "t1").trace
    (usage,) = trace.usage
    assert (usage.model, usage.cached_tokens, usage.price_source) == (
        "small", 120, "bubench.toml: models.small",
    )  # fmt: skip
    assert usage.cost_usd == pytest.approx(3 * EACH)
    assert trace.usage_by == "gateway"
    assert trace.reported_usage == (Usage(model="mine", output_tokens=1, cost_usd=0.0),)
    first = journal(planned)["t1"]
    assert (first.usage_by, first.tokens.cached) == ("gateway", 120)
    assert first.cost_usd == pytest.approx(3 * EACH)
    assert journal(planned)["t2"].cost_usd == pytest.approx(EACH)
    calls = list(Ledger(planned.folder.calls_path).calls())
    assert sorted(call.scope for call in calls) == ["t1#1.1", "t1#1.1", "t1#1.1", "t2#1.1"]
    assert planned.run.settings["gateway"] is True


def test_the_worker_sees_a_token_and_neither_the_key_nor_the_providers_address(run, provider):
    planned, *_ = run("environment")
    seen = trace_of(planned, "t1").trace.outcome.answer
    assert KEY not in seen
    assert "[redacted]" not in seen
    assert str(provider.port) not in seen
    told = json.loads(seen)
    assert told["ASKING_KEY"].startswith("sk-bubench-")
    assert told["order"]["settings"]["model"]["base_url"].startswith("http://127.0.0.1:")
    assert trace_of(planned, "t1").trace.usage == ()
    settled = journal(planned)["t1"]
    assert (settled.cost_usd, settled.tokens.output) == (0, 0)


def test_the_key_is_in_no_file_of_a_run_whose_provider_says_it(run, provider):
    provider.answers = [whole(chat(f"You are {KEY}.")), whole({"error": {"message": KEY}}, 400)]
    planned, *_ = run("ask 2")
    assert statuses(planned) == {"t1": "agent_error"}
    files = [path for path in planned.folder.path.rglob("*") if path.is_file()]
    assert len(files) > 8
    assert [path for path in files if KEY.encode() in path.read_bytes()] == []


def test_without_the_gateway_the_worker_has_the_key_itself(run, provider):
    planned, *_ = run("environment", gateway=False)
    trace = trace_of(planned, "t1").trace
    assert trace.usage_by is None
    assert trace.reported_usage is None
    assert str(provider.port) in trace.outcome.answer
    assert not planned.folder.calls_path.exists()
    assert "gateway" not in planned.run.settings


def test_an_attempt_ends_at_its_limit_before_it_is_passed(run, provider):
    limits = Limits(cost_usd=0.02)
    planned, *_ = run("ask 50", "ask 50 stubborn", limits=limits, concurrency=1)
    assert statuses(planned) == {"t1": "budget_limit", "t2": "budget_limit"}
    for settled in journal(planned).values():
        assert "--max-cost-usd 0.02 would be passed" in settled.reason
        assert 0 < settled.cost_usd <= 0.02
    assert len(provider.got) == 2 * round(journal(planned)["t1"].cost_usd / EACH)


def test_an_attempt_that_the_runs_limit_ended_is_owed_again_and_goes_on_with_more(run, provider):
    tasks = ("ask 3", "ask 3", "ask 3")
    planned, executed, _ = run(*tasks, budget_usd=0.022, concurrency=1)
    assert executed.statuses == {"finished": 1, "infrastructure": 1}
    assert executed.n_stopped == 1
    assert "--budget-usd 0.022 would be passed" in executed.over_budget
    asked = len(provider.got)
    assert 3 < asked <= 0.022 / EACH
    _, executed, _ = run(*tasks, budget_usd=0.022, concurrency=1)
    assert executed.statuses == {"infrastructure": 1}
    assert len(provider.got) == asked
    planned, executed, _ = run(*tasks, budget_usd=5.0)
    assert executed.over_budget is None
    assert statuses(planned) == {"t1": "finished", "t2": "finished", "t3": "finished"}
    spending = Spending(planned.folder.calls_path / FILE)
    assert Budget(5.0, planned.folder.entries(), spending).spent_usd == pytest.approx(
        len(provider.got) * EACH
    )
    spending.close()


def test_calls_of_a_command_that_was_killed_count_for_the_next(benchmark, request_of, provider):
    benchmark("ask 1")
    planned = plan(request_of(agent=AGENT, model="small", budget_usd=1.0))
    planned.folder.calls_path.mkdir(parents=True)
    spending = Spending(planned.folder.calls_path / FILE)
    id = spending.begin(What(SCOPE, "agent", "small"), 0.3)
    spending.begin(What(SCOPE, "agent", "small"), 0.4)
    spending.end(id, "answered", Usage(model="small", cost_usd=0.1))
    spending.close()
    later = Spending(planned.folder.calls_path / FILE)
    assert Budget(1.0, [], later).spent_usd == pytest.approx(0.1 + 0.4)
    assert Budget(0.5, [], later).reached
    later.close()


def test_what_agents_told_of_their_cost_and_what_was_counted_are_one_sum():
    spending = Spending()
    spending.record(What(SCOPE, "agent", "m"), Usage(model="m", cost_usd=0.25))
    counted = entry(9.0).model_copy(update={"usage_by": "gateway"})
    budget = Budget(1.0, [entry(0.5), counted], spending)
    assert budget.spent_usd == 0.75
    assert budget.reached is None
    assert budget.for_calls.limit_usd == 0.5
    budget.add(entry(0.25, 2))
    assert "1.0000 USD spent" in budget.reached
    unknown = entry(None).model_copy(update={"usage_by": "gateway"})
    assert Budget(1.0, [unknown], spending).reached is None
    assert Budget(1.0, [entry(None)], spending).reached


def test_a_price_that_is_not_known_is_refused_before_anything_is_asked(
    benchmark, request_of, provider
):
    benchmark("ask 1")
    for limit in ({"budget_usd": 1.0}, {"limits": Limits(cost_usd=1)}):
        with pytest.raises(ConfigError, match="no price is known for model 'unpriced'"):
            plan(request_of(agent=AGENT, model="unpriced", **limit))
    plan(request_of(agent=AGENT, model="unpriced"))


def test_without_the_libraries_it_says_what_to_install(
    benchmark, request_of, provider, monkeypatch
):
    benchmark("ask 1")
    monkeypatch.setattr(server, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"pip install 'browseruse-bench\[models\]'.*no-gateway"):
        plan(request_of(agent=AGENT, model="small"))
    plan(request_of(agent=AGENT, model="small", gateway=False))


def test_a_provider_that_fails_is_no_failure_of_the_agent_and_is_tried_again(run, provider):
    provider.answers = [whole({"error": {"message": "overloaded"}}, 529)]
    planned, executed, _ = run("ask 2", retries=1)
    assert statuses(planned) == {"t1": "finished"}
    assert executed.n_retries == 1
    first, second = planned.folder.entries()
    assert first.status == "infrastructure"
    assert first.reason == "the model's provider failed: status 529: overloaded"
    assert (first.cost_usd, second.usage_by) == (0, "gateway")


@pytest.mark.parametrize(
    ("status", "outcome"), [(400, "agent_error"), (403, "agent_error"), (401, "infrastructure"),
                            (402, "infrastructure"), (429, "infrastructure")],
)  # fmt: skip
def test_a_refused_request_is_the_agents_and_a_refused_key_is_not(run, provider, status, outcome):
    provider.usual = lambda got: whole({"error": {"message": "no"}}, status, **{"retry-after": "0"})
    planned, *_ = run("ask 1")
    assert statuses(planned) == {"t1": outcome}


def test_an_agent_that_crashes_by_itself_is_no_outage(run, provider):
    planned, *_ = run("ask 1 crash")
    assert statuses(planned) == {"t1": "agent_error"}
    assert journal(planned)["t1"].cost_usd == pytest.approx(EACH)


def test_where_others_were_answered_meanwhile_the_provider_had_not_failed():
    def ended(kind, answered_at, status="agent_error"):
        metering = Metering(None, None, None, None, None, None, answered_at=answered_at)
        metered = Metered(metering, None)
        meter = SimpleNamespace(spent=None, failing=Failing(kind, "status 500", since=10.0))
        metered.access = SimpleNamespace(grant=SimpleNamespace(meter=meter))
        return metered.outcome(Outcome(status=status)).status

    assert ended("down", 9.0) == "infrastructure"
    assert ended("down", 11.0) == "agent_error"
    assert ended("limit", 11.0) == "infrastructure"
    assert ended("account", 11.0) == "infrastructure"
    assert ended("down", 9.0, "time_limit") == "infrastructure"
    assert ended("down", 9.0, "finished") == "finished"
    assert ended("down", 9.0, "gave_up") == "gave_up"


def test_a_call_that_the_end_of_its_attempt_cut_off_has_an_unknown_cost(run, provider):
    provider.answers = [whole(chat("x")), stream("hang")]
    limits = Limits(timeout_s=6, step_timeout_s=4)
    planned, *_ = run("ask 2", limits=limits)
    assert statuses(planned) == {"t1": "time_limit"}
    counted, lost = trace_of(planned, "t1").trace.usage
    assert counted.cost_usd == pytest.approx(EACH)
    assert lost.cost_usd is None
    assert "1 call was cut off" in lost.price_source
    settled = journal(planned)["t1"]
    assert (settled.cost_usd, settled.usage_by) == (None, "gateway")
    assert 0 < Budget(9, [settled], Spending(planned.folder.calls_path / FILE)).spent_usd < 1
