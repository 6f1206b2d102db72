"""Budget, prices and ledger of an agent's calls, over the wire."""

import asyncio
import json

import anthropic
import openai
import pytest

from browseruse_bench.errors import StoreError
from browseruse_bench.models.config import Price
from browseruse_bench.models.gateway.meter import LEAST_TOKENS, OUTPUT_TOKENS
from browseruse_bench.models.spending import Budget
from browseruse_bench.models.spending_log import Spending
from tests.models.gateway.plain_client import body_of, post
from tests.models.gateway.pretend_provider import (
    KEY,
    chat,
    chat_stream,
    message,
    stream,
    whole,
)
from tests.models.gateway.test_clients import ASK, anthropic_client, openai_client

EACH = (60 * 10 + 40 * 1 + 20 * 100) / 1e6
"""What the usual answer costs, in USD."""
PICTURE = "data:image/png;base64," + "iVBORw0KGgo" * 3000


async def test_a_call_that_could_pass_the_attempts_limit_is_refused_in_its_wires_words(
    way, provider
):
    changes = []
    access = way.open(usd=0.02, changed=lambda meter: changes.append(meter.spent))
    async with openai_client(access, max_retries=3) as client:
        with pytest.raises(openai.APIStatusError, match="--max-cost-usd") as caught:
            await client.chat.completions.create(model="gpt-test", messages=ASK, max_tokens=500)
    assert caught.value.status_code == 402
    assert caught.value.body["code"] == "budget_limit"
    assert provider.got == []
    assert changes[-1].by == "attempt"
    access = way.open("anthropic", usd=0.02)
    async with anthropic_client(access, max_retries=3) as client:
        with pytest.raises(anthropic.APIStatusError, match="--max-cost-usd") as caught:
            await client.messages.create(model="claude-test", max_tokens=500, messages=ASK)
    assert caught.value.status_code == 402
    assert caught.value.body["error"]["type"] == "billing_error"
    assert provider.got == []


async def test_spending_never_passes_the_limit_however_many_ask_at_once(way, provider):
    run = Budget(0.1, Spending())
    ways = [way.open(run=run) for _ in range(5)]
    provider.usual = lambda got: whole(chat("x", prompt=20, cached=0, reply=200, reasoning=0))
    body = body_of(max_tokens=200)
    answers = await asyncio.gather(*(post(one, body=body) for one in ways * 4))
    statuses = [status for status, *_ in answers]
    assert {*statuses} == {200, 402}
    assert run.spent.known_usd <= 0.1
    assert statuses.count(200) == len(provider.got) >= 3
    assert any(one.grant.meter.spent is not None for one in ways)
    assert {one.grant.meter.spent.by for one in ways if one.grant.meter.spent} == {"run"}


async def test_a_call_waits_for_what_is_under_way_before_it_is_refused(way, provider):
    run = Budget(0.06, Spending())
    one, two = way.open(run=run), way.open(run=run)
    provider.answers = [stream(0.3, *chat_stream("x").pieces)]
    body = body_of(max_tokens=200)
    first = asyncio.create_task(post(one, body=body))
    await asyncio.sleep(0.1)
    status, *_ = await post(two, body=body)
    assert ((await first)[0], status) == (200, 200)


async def test_a_request_that_does_not_say_how_long_its_answer_may_be_is_held_to_its_limit(
    way, provider
):
    plain, limited, poor = way.open(), way.open(usd=5), way.open(usd=0.5)
    for access in (plain, limited, poor):
        await post(access)
    none, usual, left = (got.json.get("max_tokens") for got in provider.got)
    assert (none, usual) == (None, OUTPUT_TOKENS)
    assert LEAST_TOKENS < left < 5000
    assert (await post(way.open(usd=0.012)))[0] == 402
    asking = way.spec().asking.model_copy(update={"params": {"max_tokens": 77}})
    del asking


async def test_an_answer_that_a_limit_cut_off_ends_the_attempt(way, provider):
    access = way.open(usd=0.5)
    provider.usual = lambda got: whole(chat("x", finish="length"))
    await post(access, body=body_of(max_tokens=100))
    assert access.grant.meter.spent is None
    await post(access)
    spent = access.grant.meter.spent
    assert spent.by == "attempt"
    assert "--max-cost-usd 0.5, which left" in spent.reason


async def test_what_is_not_paid_by_tokens_alone_is_refused_under_a_limit_and_unknown_without(
    way, provider
):
    limited, free = way.open(usd=5), way.open()
    for more in ({"web_search_options": {"x": 1}}, {"service_tier": "priority"},
                 {"tools": [{"type": "web_search"}]}):  # fmt: skip
        status, _, said = await post(limited, body=body_of(**more))
        assert (status, said["error"]["code"]) == (400, "not_priced"), more
    assert provider.got == []
    assert (await post(free, body=body_of(service_tier="priority")))[0] == 200
    assert free.grant.meter.usage[0].cost_usd is None
    assert "service_tier priority" in free.grant.meter.usage[0].price_source
    tool = {"type": "function", "function": {"name": "f"}}
    assert (await post(limited, body=body_of(tools=[tool], service_tier="default")))[0] == 200


async def test_an_unknown_price_is_an_unknown_cost_and_never_0(way, provider):
    access = way.open(price=None)
    await post(access)
    (usage,) = access.grant.meter.usage
    assert usage.cost_usd is None
    assert usage.output_tokens == 15
    assert usage.price_source.startswith("unknown")


async def test_an_answer_without_a_count_has_an_unknown_cost_unless_it_is_free(way, provider):
    silent = {k: v for k, v in chat("x").items() if k != "usage"}
    provider.usual = lambda got: whole(silent)
    paid, free = way.open(), way.open(price=Price(input=0, output=0))
    await post(paid)
    await post(free)
    assert paid.grant.meter.usage[0].cost_usd is None
    assert free.grant.meter.usage[0].cost_usd == 0


async def test_a_prompt_that_was_longer_than_it_could_be_makes_the_next_bound_greater(
    way, provider
):
    access = way.open(usd=5)
    provider.usual = lambda got: whole(chat("x", prompt=50_000, cached=0, reply=1))
    body = body_of(max_tokens=10)
    first = await post(access, body=body)
    second = await post(access, body=body)
    assert (first[0], second[0]) == (200, 200)
    access = way.open(usd=0.9)
    assert [(await post(access, body=body))[0] for _ in range(2)] == [200, 402]


async def test_every_call_is_kept_with_its_request_reply_tokens_and_cost(way, provider):
    access = way.open()
    picture = {"type": "image_url", "image_url": {"url": PICTURE}}
    words = {"type": "text", "text": "What is this?"}
    await post(access, body=body_of(messages=[{"role": "user", "content": [words, picture]}]))
    (call,) = way.kept()
    assert (call.purpose, call.scope, call.model, call.status) == (
        "agent", "t1#1", "small", "answered",
    )  # fmt: skip
    assert call.usage.cost_usd == pytest.approx(EACH)
    assert json.loads(call.raw)["choices"][0]["message"]["content"] == "Hello."
    said = call.kept["body"]["messages"][0]["content"]
    assert said[0] == words
    assert said[1]["image_url"]["url"].startswith("[image/png, 33022 characters of base64")
    assert call.request.images
    assert way.written().count(b"iVBORw0KGgo") == 0
    assert PICTURE in provider.got[0].body.decode()
    assert call.request.n_messages == 1


async def test_an_equal_request_is_asked_anew_and_kept_beside_the_first(way, provider):
    access, other = way.open(), way.open()
    for one in (access, access, other):
        await post(one)
    calls = way.kept()
    assert len(provider.got) == len(calls) == 3
    assert len({call.id for call in calls}) == 3
    assert len({call.request.id for call in calls}) == 1
    assert sorted((c.scope, c.request.sample) for c in calls) == [
        ("t1#1", 0), ("t1#1", 1), ("t2#1", 0),
    ]  # fmt: skip


async def test_a_stream_is_kept_whole_up_to_its_last_event(way, provider):
    access = way.open()
    provider.answers = [chat_stream("Hel", "lo")]
    _, _, said = await post(access, body=body_of(stream=True))
    (call,) = way.kept()
    assert call.raw.endswith("data: [DONE]\n\n")
    assert '"prompt_tokens"' in call.raw
    assert b'"prompt_tokens"' not in said


async def test_what_an_agent_says_is_kept_without_our_secrets(way, provider):
    access = way.open()
    text = f"The key is {KEY}."
    await post(access, body=body_of(messages=[{"role": "user", "content": text}]))
    assert text in provider.got[0].body.decode()
    assert KEY.encode() not in way.written()
    assert "[redacted]" in json.dumps(way.kept()[0].kept)


async def test_a_call_is_on_disk_before_its_answer_is_told(way, provider):
    access = way.open()
    async with openai_client(access) as client:
        await client.chat.completions.create(model="gpt-test", messages=ASK)
        assert len(way.kept()) == 1
        provider.answers = [chat_stream("Hel", "lo")]
        answer = await client.chat.completions.create(model="gpt-test", messages=ASK, stream=True)
        _ = [chunk async for chunk in answer]
        assert len(way.kept()) == 2


async def test_calls_that_the_gateway_denied_are_kept_too_and_cost_nothing(way, provider):
    access = way.open(usd=0.001)
    await post(access, body=body_of(max_tokens=500))
    (call,) = way.kept(failed=True)
    assert call.usage is None
    assert "--max-cost-usd" in call.error
    assert access.grant.meter.usage == ()


async def test_a_ledger_that_cannot_be_written_is_the_harness_own_fault(way, provider, monkeypatch):
    access = way.open()

    def full(call):
        raise StoreError("calls: no space left")

    monkeypatch.setattr(way.ledger, "put", full)
    status, *_ = await post(access)
    assert status == 500
    assert isinstance(access.grant.meter.fault, StoreError)
    assert way.gateway.faults == [access.grant.meter.fault]
    way.gateway.faults.clear()


async def test_the_price_list_and_writes_into_a_cache_have_their_own_prices(way, provider):
    price = Price(input=10, cached=1, cache_write=12.5, output=100)
    access = way.open("anthropic", price=price)
    provider.answers = [whole(message("x"))]
    await post(access, "/v1/messages", {"model": "claude-test", "max_tokens": 9, "messages": ASK})
    (usage,) = access.grant.meter.usage
    assert usage.cost_usd == pytest.approx((50 * 10 + 30 * 1 + 20 * 12.5 + 7 * 100) / 1e6)


async def test_spending_is_written_where_other_processes_and_later_commands_see_it(
    way, provider, tmp_path
):
    path = tmp_path / "spending.jsonl"
    spending = Spending(path)
    access = way.open(run=Budget(1.0, spending, scope="run"), usd=0.5)
    await post(access)
    spending.close()
    later = Budget(1.0, Spending(path), scope="run")
    assert later.spent.known_usd == pytest.approx(EACH)
    assert later.spent.n_calls == 1
