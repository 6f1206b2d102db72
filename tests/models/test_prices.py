"""Each provider counts in its own way; each token is counted once, and paid by a stated price."""

import asyncio
import json
from importlib.metadata import version
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from browseruse_bench.models.config import Price
from browseruse_bench.models.prices import Counted, added, cost, used
from browseruse_bench.models.spec import ModelSpec, model_spec
from browseruse_bench.records.trace import Usage
from tests.models.fake_endpoint import FakeEndpoint, Say
from tests.models.made import MET, model_of, request, spec_of

LIST = f"genai-prices {version('genai-prices')}"
OPENAI = {
    "prompt_tokens": 1000,
    "prompt_tokens_details": {"cached_tokens": 600},
    "completion_tokens": 300,
    "completion_tokens_details": {"reasoning_tokens": 200},
    "total_tokens": 1300,
}
"""Cached tokens are a part of the prompt's, reasoning a part of the reply's."""
ANTHROPIC = {
    "input_tokens": 100,
    "cache_read_input_tokens": 600,
    "cache_creation_input_tokens": 300,
    "cache_creation": {"ephemeral_5m_input_tokens": 300, "ephemeral_1h_input_tokens": 0},
    "output_tokens": 50,
}
"""What was read from the cache or put into it stands beside the input."""
GOOGLE = {
    "promptTokenCount": 1000,
    "cachedContentTokenCount": 600,
    "candidatesTokenCount": 100,
    "thoughtsTokenCount": 200,
    "totalTokenCount": 1300,
}
"""Cached tokens are a part of the prompt's; thoughts stand beside the reply's."""
PRICE = Price(input=10, cached=1, cache_write=12, output=100, reasoning=50)


def usage_of(usage, provider, *, name=None, price=None):
    with FakeEndpoint([Say(json.dumps(MET), usage=usage)]) as fake:
        model = model_of(spec_of(fake, provider, name=name, price=price), Path("/nonexistent"))
        return asyncio.run(model.ask(request(), purpose="test")).usage


@pytest.mark.parametrize(
    ("provider", "usage", "tokens", "million"),
    [
        ("openai", OPENAI, (400, 600, 200, 100), 400 * 10 + 600 * 1 + 200 * 50 + 100 * 100),
        ("openai-compatible", OPENAI, (400, 600, 200, 100),
         400 * 10 + 600 * 1 + 200 * 50 + 100 * 100),
        ("openrouter", OPENAI, (400, 600, 200, 100), 400 * 10 + 600 * 1 + 200 * 50 + 100 * 100),
        ("anthropic", ANTHROPIC, (400, 600, 0, 50), 100 * 10 + 300 * 12 + 600 * 1 + 50 * 100),
        ("google", GOOGLE, (400, 600, 200, 100), 400 * 10 + 600 * 1 + 200 * 50 + 100 * 100),
    ],
)  # fmt: skip
def test_each_token_is_counted_once_and_at_its_own_price(provider, usage, tokens, million):
    found = usage_of(usage, provider, price=PRICE)
    kinds = (
        found.uncached_tokens,
        found.cached_tokens,
        found.reasoning_tokens,
        found.output_tokens,
    )
    assert kinds == tokens
    assert found.cost_usd == pytest.approx(million / 1e6)
    assert (found.price_source, found.model) == ("test", "judge")


def listed(provider, name, **counted):
    spec = ModelSpec(label=f"{provider}:{name}", provider=provider, name=name)
    return cost(spec, Counted(**counted))


def test_the_list_is_used_for_the_provider_that_is_asked():
    # 0.25 for a million in, 0.025 from the cache, 2 for a million out.
    found = listed("openai", "gpt-5-mini", uncached=400, cached=600, reasoning=200, output=100)
    assert found.usd == pytest.approx((400 * 0.25 + 600 * 0.025 + 300 * 2) / 1e6)
    assert found.source == f"{LIST}: openai gpt-5-mini"
    # 3 in, 3.75 into the cache (6 for an hour), 0.3 from it, 15 out.
    found = listed(
        "anthropic", "claude-sonnet-4-6",
        uncached=100, written=300, written_1h=100, cached=600, output=50,
    )  # fmt: skip
    million = 100 * 3 + 200 * 3.75 + 100 * 6 + 600 * 0.3 + 50 * 15
    assert found.usd == pytest.approx(million / 1e6)


def test_a_model_is_also_looked_up_by_the_name_that_served():
    spec = ModelSpec(label="m", provider="openai", name="my-alias")
    assert cost(spec, Counted(output=1)).usd is None
    assert cost(spec, Counted(output=1_000_000), served="gpt-5-mini-2025-08-07").usd == 2.0


@pytest.mark.parametrize(
    "spec",
    [
        ModelSpec(label="m", provider="openai", name="gpt-99"),
        ModelSpec(
            label="m", provider="openai-compatible", name="gpt-5-mini", base_url="http://h/v1"
        ),
        ModelSpec(label="m", provider="mine", name="gpt-5-mini"),
    ],
    ids=["not in the list", "an endpoint of one's own", "a provider of one's own"],
)
def test_a_cost_that_nobody_knows_is_unknown_and_never_0(spec):
    found = used(spec, Counted(uncached=10, output=10))
    assert found.cost_usd is None
    assert found.price_source.startswith("unknown: no list has ")
    assert "bubench.toml" in found.price_source


def test_an_address_that_the_list_knows_is_a_provider():
    spec = ModelSpec(
        label="m", provider="openai-compatible", name="accounts/fireworks/models/qwen3-235b-a22b",
        base_url="https://api.fireworks.ai/inference/v1",
    )  # fmt: skip
    assert cost(spec, Counted(uncached=1_000_000)).usd == pytest.approx(0.22)


@pytest.mark.parametrize("provider", ["openai-compatible", "google"])
def test_tokens_that_are_not_reported_cost_nobody_knows_what(provider):
    found = usage_of(None, provider, price=PRICE)
    assert (found.cost_usd, found.uncached_tokens) == (None, 0)
    assert found.price_source == "unknown: the endpoint reports no tokens"
    assert usage_of(None, provider, price=Price(input=0, output=0)).cost_usd == 0


def test_what_openrouter_charged_is_what_it_cost():
    charged = usage_of({**OPENAI, "cost": 0.0123}, "openrouter")
    assert (charged.cost_usd, charged.price_source) == (0.0123, "as charged by openrouter")
    details = {"upstream_inference_cost": 0.5}
    own = {**OPENAI, "cost": 0.01, "is_byok": True, "cost_details": details}
    assert usage_of(own, "openrouter").cost_usd == pytest.approx(0.51)
    assert usage_of({**own, "cost_details": None}, "openrouter").cost_usd is None
    assert usage_of({**OPENAI, "cost": 0.0123}, "openrouter", price=PRICE).price_source == "test"


def test_a_price_of_the_configuration_comes_before_every_list(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    (tmp_path / "bubench.toml").write_text("""
[models.small]
id = "openai:gpt-5-mini"
usd_per_million = {input = 7.0, output = 8.0}

[prices]
"openai:gpt-5-mini" = {input = 1.0, output = 2.0}
""")
    tokens = Counted(uncached=1_000_000)
    for text, usd, source in (
        ("small", 7.0, "bubench.toml: models.small"),
        ("openai:gpt-5-mini", 1.0, "bubench.toml: prices.openai:gpt-5-mini"),
        ("openai:gpt-5", 1.25, f"{LIST}: openai gpt-5"),
    ):
        found = cost(model_spec(text, cwd=tmp_path), tokens)
        assert (found.usd, found.source) == (usd, source)


counts = st.integers(0, 10**7)
counted = st.builds(
    Counted, uncached=counts, cached=counts, written=counts, reasoning=counts, output=counts
)


@given(counted, st.sampled_from(["uncached", "cached", "written", "reasoning", "output"]))
def test_one_token_more_never_costs_less(tokens, kind):
    more = Counted(**{**vars(tokens), kind: getattr(tokens, kind) + 1})
    for spec in (
        ModelSpec(label="m", provider="openai", name="m", price=PRICE),
        ModelSpec(label="m", provider="anthropic", name="claude-sonnet-4-6"),
    ):
        assert cost(spec, more).usd >= cost(spec, tokens).usd > -1


@given(st.lists(st.builds(Usage, model=st.just("m"), uncached_tokens=counts, output_tokens=counts,
                          cost_usd=st.one_of(st.none(), st.floats(0, 10)),
                          price_source=st.sampled_from(["a", "b", None])), min_size=1))  # fmt: skip
def test_a_sum_is_unknown_if_a_part_is(usages):
    total = added(usages, "m")
    assert total.uncached_tokens == sum(usage.uncached_tokens for usage in usages)
    assert (total.cost_usd is None) == any(usage.cost_usd is None for usage in usages)
    if total.cost_usd is not None:
        assert total.cost_usd == pytest.approx(sum(usage.cost_usd for usage in usages))
