"""browser-use asks its model through the gateway: each wire, and what holds meanwhile."""

import asyncio
import json
import os

import pytest

from browseruse_bench.errors import ConfigError
from browseruse_bench.models.ledger import Ledger
from browseruse_bench.models.spending_log import FILE, Spending
from browseruse_bench.records.trace import Limits
from browseruse_bench.runs.budget import SCOPE
from browseruse_bench.runs.execute import execute
from browseruse_bench.runs.plan import RunRequest, plan
from browseruse_bench.store.trace_folder import TraceFolder
from tests.agents.browser_use.openai_server import Served
from tests.agents.browser_use.test_real import DONE, GROUPING, HOME

pytestmark = [pytest.mark.browser, pytest.mark.slow]

KEY = "sk-of-the-provider-0123456789abcdef"
TASK = "docs-default-1"
SCRIPT = {"grouper": [HOME, GROUPING, DONE]}


class AnyWire(Served):
    """Plays the same scripts over the wires of Anthropic and Google, too."""

    def reply(self, path, body):
        if path.endswith("/messages"):
            return self._message(body)
        if ":generateContent" in path:
            return self._gemini(body)
        return super().reply(path, body)

    def _message(self, body):
        text = self.answer({**body, "response_format": {"type": "json_schema"}})
        content = {"type": "tool_use", "id": "t1", "name": body["tools"][0]["name"]}
        return {
            "id": "m1", "type": "message", "role": "assistant", "model": body["model"],
            "content": [{**content, "input": json.loads(text)}], "stop_reason": "tool_use",
            "stop_sequence": None,
            "usage": {"input_tokens": 100, "cache_read_input_tokens": 50, "output_tokens": 10},
        }  # fmt: skip

    def _gemini(self, body):
        texts = [
            {"role": turn["role"], "content": "".join(p.get("text", "") for p in turn["parts"])}
            for turn in body["contents"]
        ]
        text = self.answer({"messages": texts, "response_format": {"type": "json_schema"}})
        return {
            "candidates": [
                {"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": "STOP"}
            ],
            "usageMetadata": {
                "promptTokenCount": 150, "cachedContentTokenCount": 50,
                "candidatesTokenCount": 8, "thoughtsTokenCount": 2,
            },
        }  # fmt: skip


@pytest.fixture
def run(tmp_path, installed, monkeypatch):
    """Play the script over a provider's wire; the plan, and the trace of its attempt."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MY_KEY", KEY)

    async def play(
        served, *, model="openai:played", base="/v1", budget_usd=None, guard="auto", **limits
    ):
        (tmp_path / "bubench.toml").write_text(f"""
[models.mine]
id = "{model}"
base_url = "{served.url.removesuffix("/v1")}{base}"
api_key_env = "MY_KEY"
usd_per_million = {{input = 1.0, cached = 0.1, output = 10.0}}
""")
        planned = plan(
            RunRequest(
                agent="browser-use",
                benchmark="LocalSites",
                mode="ids",
                task_ids=(TASK,),
                model="mine",
                limits=Limits(**{"timeout_s": 150, **limits}),
                budget_usd=budget_usd,
                guard=guard,
                experiments=tmp_path / "experiments",
                retries=0,
            )
        )
        await execute(planned, on_settled=lambda _: None, stop=asyncio.Event())
        return planned, TraceFolder.open(planned.folder.try_path(TASK, 1, 1))

    return play


async def test_budget_ledger_and_redaction_hold_and_no_worker_sees_the_key(run, tmp_path):
    with AnyWire(SCRIPT) as served:
        planned, folder = await run(served, budget_usd=1.0, cost_usd=0.9)
    trace = folder.trace
    assert (trace.outcome.status, trace.outcome.answer) == ("finished", "There are 17.")
    assert {key for key, _ in served.requests} == {f"Bearer {KEY}"}
    (usage,) = trace.usage
    (reported,) = trace.reported_usage
    n_prompt = [len(json.dumps({k: v for k, v in body.items() if k != "max_completion_tokens"}))
                // 4 for _, body in served.requests]  # fmt: skip
    assert trace.usage_by == "gateway"
    assert usage.cached_tokens == reported.cached_tokens
    assert usage.uncached_tokens == reported.uncached_tokens
    assert usage.output_tokens == reported.output_tokens
    assert abs(usage.uncached_tokens + usage.cached_tokens - sum(n_prompt)) < 50
    assert reported.cost_usd is None
    million = usage.uncached_tokens + 0.1 * usage.cached_tokens + 10 * usage.output_tokens
    assert usage.cost_usd == pytest.approx(million / 1e6)
    calls = list(Ledger(planned.folder.calls_path).calls())
    assert len(calls) == len(served.requests) == 3
    assert {(call.purpose, call.scope, call.model) for call in calls} == {
        ("agent", f"{TASK}#1.1", "mine")
    }
    spending = Spending(planned.folder.calls_path / FILE)
    with spending.deciding(SCOPE) as (spent, held):
        assert spent.known_usd == pytest.approx(usage.cost_usd)
        assert (spent.n_calls, held) == (3, 0)
    spending.close()
    written = [path for path in (tmp_path / "experiments").rglob("*") if path.is_file()]
    assert [path for path in written if KEY.encode() in path.read_bytes()] == []
    assert [path for path in written if b"sk-bubench-" in path.read_bytes()] == []
    assert os.environ["MY_KEY"] == KEY


@pytest.mark.parametrize("guard", ["layered", "confined", "flags"])
async def test_a_worker_reaches_it_at_every_level_of_the_guard(run, guard):
    with AnyWire(SCRIPT) as served:
        try:
            _, folder = await run(served, guard=guard)
        except ConfigError as error:
            pytest.skip(str(error))
    trace = folder.trace
    assert trace.guard.level == guard
    assert trace.outcome.answer == "There are 17."
    assert len(served.requests) == 3
    assert trace.guard.hits is None or [h for h in trace.guard.hits if h.by == "worker"] == []


async def test_an_attempt_ends_at_its_limit_in_usd_which_no_call_passes(run):
    wait = [{"wait": {"seconds": 1}}]
    with AnyWire({"grouper": [HOME, *[wait] * 40]}) as served:
        planned, folder = await run(served, cost_usd=0.25)
    trace = folder.trace
    assert trace.outcome.status == "budget_limit"
    assert "--max-cost-usd 0.25" in trace.outcome.reason
    (usage,) = trace.usage
    assert 0 < usage.cost_usd <= 0.25
    assert len(served.requests) == len(list(Ledger(planned.folder.calls_path).calls()))


@pytest.mark.parametrize(
    ("model", "base", "header", "cached"),
    [
        ("anthropic:played", "", "x-api-key", 50),
        ("google:played", "", "x-goog-api-key", 50),
        ("openrouter:played", "/v1", "authorization", None),
    ],
)
async def test_every_provider_is_asked_over_its_own_wire(run, model, base, header, cached):
    with AnyWire(SCRIPT) as served:
        planned, folder = await run(served, model=model, base=base)
    trace = folder.trace
    assert (trace.outcome.status, trace.outcome.answer) == ("finished", "There are 17.")
    sent = [{name.lower(): value for name, value in got.items()} for got in served.headers]
    assert {got[header].removeprefix("Bearer ") for got in sent} == {KEY}
    assert not [got for got in sent if "sk-bubench-" in str(got)]
    (usage,) = trace.usage
    assert usage.cost_usd > 0
    if cached is not None:
        assert usage.cached_tokens == cached * len(served.requests)
    assert len(list(Ledger(planned.folder.calls_path).calls())) == len(served.requests)
