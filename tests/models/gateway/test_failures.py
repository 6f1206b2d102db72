"""What is passed on and counted where a provider, a client or an attempt ends before its time."""

import asyncio
import json
import time

import anthropic
import openai
import pytest

from browseruse_bench.models.gateway import forward
from browseruse_bench.models.gateway.forward import retry_after_s
from browseruse_bench.models.gateway.server import Gateway
from tests.models.gateway.conftest import Opened
from tests.models.gateway.plain_client import body_of, post
from tests.models.gateway.pretend_provider import (
    chat,
    chat_chunk,
    chat_stream,
    event,
    message_events,
    stream,
    whole,
)
from tests.models.gateway.test_clients import ASK, anthropic_client, openai_client

LIMITED = {"error": {"message": "slow down", "type": "rate_limit"}}


async def until(condition):
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.01)


async def texts_of(chunks, texts):
    async for chunk in chunks:
        texts.append(chunk.choices[0].delta.content)  # noqa: PERF401  it may raise half-way


async def heard_out(client):
    async with client.messages.stream(model="claude-test", max_tokens=50, messages=ASK) as answer:
        async for _ in answer:
            pass


async def test_a_stream_that_is_cut_is_cut_for_the_client_and_costs_an_unknown_amount(
    way, provider
):
    access = way.open()
    provider.answers = [stream(chat_chunk({"content": "One "}), 0.05, "cut")]
    texts = []
    async with openai_client(access) as client:
        answer = await client.chat.completions.create(
            model="gpt-test", messages=ASK, stream=True, max_tokens=50
        )
        with pytest.raises(openai.APIConnectionError):
            await texts_of(answer, texts)
    assert texts == ["One "]
    await until(lambda: access.grant.n_calls == 0)
    (usage,) = access.grant.meter.usage
    assert usage.cost_usd is None
    assert usage.price_source.startswith("unknown: 1 call was cut off before the provider's count")
    assert "broke off" in access.grant.meter.failing.why
    (kept,) = way.kept(failed=True)
    assert kept.status == "outage"
    assert "One " in kept.raw


async def test_a_cut_stream_of_anthropic_has_the_tokens_that_it_told(way, provider):
    access = way.open("anthropic")
    start, *_ = message_events("x")
    provider.answers = [stream(start, 0.05, "cut")]
    async with anthropic_client(access) as client:
        with pytest.raises(Exception, match="incomplete|closed|reset|disconnect|[Cc]onnection"):
            await heard_out(client)
    await until(lambda: access.grant.n_calls == 0)
    (usage,) = access.grant.meter.usage
    counts = (usage.uncached_tokens, usage.cached_tokens, usage.output_tokens, usage.cost_usd)
    assert counts == (70, 30, 1, None)


async def test_what_was_counted_and_what_was_cut_off_stand_apart(way, provider):
    access = way.open()
    provider.answers = [whole(chat("x")), stream("cut")]
    for _ in range(2):
        await post(access, body=body_of(max_tokens=9))
    counted, lost = access.grant.meter.usage
    assert counted.cost_usd > 0
    assert (lost.cost_usd, lost.output_tokens) == (None, 0)


async def test_an_answer_that_is_cut_is_a_bad_gateway(way, provider):
    access = way.open()
    half = json.dumps(chat("Hello.")).encode()
    cut = whole(half)
    cut.pieces = [half[:50], 0.05, "cut"]
    provider.answers = [cut]
    async with openai_client(access) as client:
        with pytest.raises(openai.InternalServerError, match="the provider broke off"):
            await client.chat.completions.create(model="gpt-test", messages=ASK)


async def test_a_count_that_came_before_the_cut_counts(way, provider):
    access = way.open()
    *pieces, done = chat_stream("Hi").pieces
    del done
    provider.answers = [stream(*pieces, 0.05, "cut")]
    status, _, said = await post(access, body=body_of(stream=True))
    assert status == 200
    assert b"Hi" in said
    (usage,) = access.grant.meter.usage
    assert usage.cost_usd > 0


async def test_a_client_that_goes_away_ends_the_call_at_the_provider(way, provider):
    access = way.open()
    provider.usual = lambda got: stream(chat_chunk({"content": "One "}), "hang")
    async with openai_client(access) as client:
        answer = await client.chat.completions.create(model="gpt-test", messages=ASK, stream=True)
        async for _ in answer:
            break
        await answer.close()
    await until(lambda: provider.n_gone == 1)
    asking = asyncio.create_task(post(access))
    await until(lambda: len(provider.got) == 2)
    asking.cancel()
    await until(lambda: provider.n_gone == 2)
    await until(lambda: access.grant.n_calls == 0)
    meter = access.grant.meter
    assert meter.usage[0].cost_usd is None
    assert (meter.n_calls, meter.failing) == (2, None)
    assert {kept.error for kept in way.kept(failed=True)} == {
        "the client went away, or its attempt was over"
    }


async def test_the_end_of_an_attempt_ends_its_calls_and_waits_until_they_are_counted(way, provider):
    access = way.open()
    provider.answers = [stream(chat_chunk({"content": "One "}), "hang")]
    asking = asyncio.create_task(post(access, body=body_of(stream=True)))
    await until(lambda: provider.got)
    before = time.monotonic()
    await way.gateway.close(access)
    assert time.monotonic() - before < 3
    assert access.grant.meter.n_calls == 1
    assert len(way.kept(failed=True)) == 1
    await until(lambda: provider.n_gone == 1)
    await asyncio.wait({asking})


async def test_a_call_that_is_just_ending_when_its_attempt_settles_is_let_through(way, provider):
    access = way.open()
    provider.answers = [stream(*chat_stream("Hi").pieces[:-1], 0.2, event("[DONE]"))]
    asking = asyncio.create_task(post(access, body=body_of(stream=True)))
    await until(lambda: provider.got)
    await way.gateway.close(access)
    status, _, said = await asking
    assert said.endswith(b"data: [DONE]\n\n")
    assert access.grant.meter.usage[0].cost_usd > 0


ERRORS = {
    400: None, 401: "account", 402: "account", 403: None, 404: "account", 413: None, 422: None,
    429: "limit", 500: "down", 503: "down", 529: "down",
}  # fmt: skip


async def test_an_error_of_the_provider_comes_as_it_is_and_costs_nothing(way, provider):
    for status, outage in ERRORS.items():
        access = way.open()
        provider.answers = [whole({"error": {"message": "no"}}, status, **{"retry-after": "0"})]
        answered, headers, said = await post(access)
        assert (answered, said) == (status, {"error": {"message": "no"}})
        assert dict(headers)["retry-after"] == "0"
        meter = access.grant.meter
        assert (meter.usage, meter.n_calls) == ((), 1)
        assert (meter.failing.kind if meter.failing else None) == outage, status
        assert f"status {status}: no" in [kept.error for kept in way.kept(failed=True)]
        await post(access)
        assert meter.failing is None


async def test_a_failure_inside_a_good_status_is_an_outage(way, provider):
    access = way.open("anthropic")
    start, *_ = message_events("x")
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    provider.answers = [stream(start, event(error, "error"))]
    async with anthropic_client(access) as client:
        with pytest.raises(anthropic.APIStatusError, match="Overloaded"):
            await heard_out(client)
    await until(lambda: access.grant.n_calls == 0)
    assert access.grant.meter.failing.why == "Overloaded"


async def test_after_a_429_the_key_rests_for_every_attempt_and_the_answer_passes(way, provider):
    one, two = way.open(), way.open()
    provider.answers = [whole(LIMITED, 429, **{"retry-after": "0.4"})]
    assert (await post(one))[0] == 429
    before = time.monotonic()
    assert (await post(two))[0] == 200
    assert time.monotonic() - before > 0.3
    assert len(provider.got) == 2


async def test_a_client_library_waits_as_the_provider_asks_and_tries_again(way, provider):
    access = way.open()
    provider.answers = [whole(LIMITED, 429, **{"retry-after": "0.3"})]
    async with openai_client(access, max_retries=2) as client:
        reply = await client.chat.completions.create(model="gpt-test", messages=ASK)
    assert reply.choices[0].message.content == "Hello."
    assert access.grant.meter.n_calls == 2


async def test_where_a_key_rests_for_long_the_client_is_told_at_once(way, provider):
    access = way.open()
    provider.answers = [whole(LIMITED, 429, **{"retry-after": "300"})]
    await post(access)
    before = time.monotonic()
    status, headers, said = await post(access)
    assert time.monotonic() - before < 2
    assert (status, said["error"]["code"]) == (429, "rate_limit")
    assert 290 <= int(dict(headers)["retry-after"]) <= 300
    assert len(provider.got) == 1
    assert "rests for" in access.grant.meter.failing.why


async def test_the_limits_of_a_key_hold_for_agents(way, provider):
    asking = way.spec().asking.model_copy(update={"concurrency": 2})
    access = way.open(asking=asking, key="sk-of-its-own-0123456789")
    n_now, n_most = 0, 0

    def usual(got):
        return stream(0.1, event("[DONE]"))

    provider.usual = usual
    calls = [asyncio.create_task(post(access)) for _ in range(6)]
    while not all(call.done() for call in calls):
        n_now = access.grant.way.limiter.n_active
        n_most = max(n_most, n_now)
        await asyncio.sleep(0.005)
    assert n_most == 2
    assert len(provider.got) == 6


async def test_a_provider_that_cannot_be_reached_or_does_not_answer_is_said(
    way, provider, monkeypatch
):
    access = way.open(base_url="http://127.0.0.1:1/v1")
    status, _, said = await post(access)
    assert status == 502
    assert "cannot be reached" in said["error"]["message"]
    assert access.grant.meter.usage == ()
    assert access.grant.meter.n_calls == 0
    assert access.grant.meter.failing.kind == "down"
    monkeypatch.setattr(forward, "SILENCE_S", 0.3)
    asking = way.spec().asking.model_copy(update={"timeout_s": 0.2})
    access = way.open(asking=asking)
    provider.answers = [stream("hang")]
    provider.answers[0].chunked = False
    provider.answers[0].headers = {"content-type": "application/json", "content-length": "9"}
    status, _, said = await post(access)
    assert status == 502
    assert access.grant.meter.usage[0].cost_usd is None


async def test_a_provider_that_sends_without_end_is_cut(way, provider, monkeypatch):
    monkeypatch.setattr(forward, "MAX_REPLY_BYTES", 10_000)
    monkeypatch.setattr(forward, "MAX_EVENT_BYTES", 5_000)
    access = way.open()
    for answer, status in (
        (whole(b"x" * 20_000), 502),
        (stream(*[chat_chunk({"content": "x" * 1000})] * 20), 200),
        (stream(b"data: " + b"x" * 4000, b"x" * 4000, b"x" * 4000), 200),
    ):
        provider.answers = [answer]
        assert (await post(access))[0] == status
        assert "bytes" in access.grant.meter.failing.why


def test_what_a_provider_asks_to_wait_is_read_in_every_form():
    assert retry_after_s({"retry-after": "20"}) == 20
    assert retry_after_s({"retry-after-ms": "1500", "retry-after": "9"}) == 1.5
    assert retry_after_s({"retry-after": "nan"}) is None
    assert retry_after_s({"retry-after": "inf"}) is None
    assert retry_after_s({"retry-after": "-5"}) is None
    assert retry_after_s({"retry-after": "soon"}) is None
    assert retry_after_s({}) is None
    date = {"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}
    from datetime import UTC, datetime

    assert retry_after_s(date, now=datetime(2015, 10, 21, 7, 27, tzinfo=UTC)) == 60


async def test_a_server_that_does_not_know_the_field_that_was_added_is_asked_without_it(
    way, provider
):
    access = way.open()
    refusal = whole({"detail": "stream_options: extra fields not permitted"}, 422)
    provider.answers = [refusal, chat_stream("Hi", usage=False)]
    status, _, said = await post(access, body=body_of(stream=True))
    assert status == 200
    assert b"Hi" in said
    assert [("stream_options" in got.json) for got in provider.got] == [True, False]
    (usage,) = access.grant.meter.usage
    assert usage.cost_usd is None
    provider.answers = [refusal]
    body = body_of(stream=True, stream_options={"include_usage": True})
    assert (await post(access, body=body))[0] == 422
    assert len(provider.got) == 3


async def test_a_provider_on_this_machine_is_never_asked_through_a_proxy(
    provider, tmp_path, monkeypatch
):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    async with Gateway() as gateway:
        access = Opened(gateway, provider, tmp_path).open()
        assert (await post(access))[0] == 200
