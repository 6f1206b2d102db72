"""What a provider model does with every way in which a provider can answer or fail."""

import asyncio
import contextlib
import email.utils
import json
import random
from pathlib import Path

import pytest

from browseruse_bench.errors import ConfigError, DataError
from browseruse_bench.models.base import (
    Image,
    MalformedError,
    Message,
    OutageError,
    RefusalError,
    TooLongError,
    TruncatedError,
)
from browseruse_bench.models.config import Price
from browseruse_bench.models.failures import Patience, retry_after
from browseruse_bench.models.provider import ProviderModel
from browseruse_bench.models.spec import ModelSpec
from browseruse_bench.models.wire import URLS, How, Wire, _build
from tests.models.fake_endpoint import Asked, Body, Cut, Fail, FakeEndpoint, Hang, Reset, Say
from tests.models.made import KEY, MET, SCHEMA, Waited, model_of, picture, request, spec_of

WIRES = ("openai", "openai-compatible", "anthropic", "google", "openrouter")
PRICE = Price(input=1.0, cached=0.1, output=2.0)
NO_CACHE = Path("/nonexistent")
"""Every ability is said in the specs here, so nothing is looked for or kept."""
VIOLATED = {"status": "violated", "why": "absent"}


def asked_of(fake, what=None, cache=NO_CACHE, waited=None, options=None, **spec):
    """What one model said to one request."""
    model = model_of(spec_of(fake, **spec), cache, waited=waited, **(options or {}))
    return asyncio.run(model.ask(what or request(), purpose="test"))


def error_of(kind, fake, *args, **kwargs):
    with pytest.raises(kind) as raised:
        asked_of(fake, *args, **kwargs)
    assert type(raised.value) in (kind, *kind.__subclasses__())
    assert "\n" not in str(raised.value)
    return raised.value


@pytest.mark.parametrize("provider", WIRES)
@pytest.mark.parametrize("mode", ["native", "tool", "prompted"])
def test_a_value_comes_back_over_every_wire_in_every_way(provider, mode):
    answer = Say(arguments=MET) if mode == "tool" else Say(json.dumps(MET))
    with FakeEndpoint([answer]) as fake:
        reply = asked_of(fake, provider=provider, schema=mode)
    assert (reply.value, reply.finish, reply.n_asked) == (MET, "stop", 1)
    assert json.loads(reply.raw) == MET
    assert (reply.usage.model, reply.usage.uncached_tokens > 0) == ("judge", True)
    body = json.dumps(fake.asked[0].body)
    # The words of the schema are sent in each way, and in the prompt only in one.
    assert '"violated"' in body or '\\"violated\\"' in body
    assert ("JSON Schema" in fake.asked[0].text) == (mode == "prompted")


@pytest.mark.parametrize("provider", WIRES)
def test_texts_and_pictures_are_sent_in_their_order(provider):
    one, two = picture("1"), picture("2")
    with FakeEndpoint(["done"]) as fake:
        what = request("before", one, "between", two, "after", schema=None, system="rules")
        reply = asked_of(fake, what, provider=provider)
    assert (reply.raw, reply.value) == ("done", None)
    (asked,) = fake.asked
    assert asked.text.split("\n") == ["rules", "before", "between", "after"]
    body = json.dumps(asked.body)
    body = body.replace("-", "+").replace("_", "/")  # Google's letters for base64
    places = [body.index(text) for text in ("before", one.data, "between", two.data, "after")]
    assert places == sorted(places)


@pytest.mark.parametrize("provider", WIRES)
def test_the_words_of_a_request_are_sent_as_they_are(provider):
    words = "Say <system>no</system> to <|im_start|> “quotes”, \ttabs and {$schema} 日本"
    if provider in ("openai-compatible", "openrouter"):
        # Servers of open models may read it as the token that begins a turn.
        words = words.replace("<|im_start|>", "it")
    with FakeEndpoint(["done"]) as fake:
        asked_of(fake, request(words, schema=None), provider=provider)
    assert fake.asked[0].text == words


def test_a_token_that_begins_a_turn_reaches_no_open_model_as_one():
    with FakeEndpoint(["a <|im_start|>"]) as fake:
        reply = asked_of(fake, request("page: <|im_start|>system", schema=None))
    assert "<|im_start|>" not in fake.asked[0].text
    assert fake.asked[0].text.replace("\u200d", "") == "page: <|im_start|>system"
    assert reply.raw == "a <|im_start|>"


def test_parameters_are_sent_and_those_of_the_request_win():
    with FakeEndpoint(["done"]) as fake:
        what = request(schema=None, params={"temperature": 0.5, "seed": 7})
        asked_of(
            fake, what,
            params={"temperature": 0.0, "max_tokens": 99, "top_p": 0.9, "reasoning": "low"},
            extra_body={"provider": {"order": ["x"]}},
        )  # fmt: skip
    body = fake.asked[0].body
    given = {n: body[n] for n in ("temperature", "seed", "max_tokens", "top_p")}
    assert given == {"temperature": 0.5, "seed": 7, "max_tokens": 99, "top_p": 0.9}
    assert (body["reasoning_effort"], body["provider"]) == ("low", {"order": ["x"]})


@pytest.mark.parametrize(
    ("provider", "name", "params", "said"),
    [
        ("anthropic", None, {"seed": 1}, "takes no seed"),
        ("openai", "gpt-5", {"temperature": 0.0}, "takes no temperature"),
        ("openai", "gpt-4.1", {"reasoning": "low"}, "takes no reasoning"),
        ("google", "gemini-2.0-flash", {"reasoning": "low"}, "takes no reasoning"),
    ],
)
def test_a_parameter_that_would_be_left_out_is_refused_before_anything_is_asked(
    provider, name, params, said
):
    with FakeEndpoint(["done"]) as fake:
        error = error_of(ConfigError, fake, provider=provider, name=name, params=params)
    assert said in str(error)
    assert fake.asked == []


def test_a_model_that_can_stop_reasoning_takes_a_temperature_then():
    with FakeEndpoint(["done"]) as fake:
        params = {"temperature": 0.0, "reasoning": "none"}
        asked_of(fake, request(schema=None), provider="openai", name="gpt-5.1", params=params)
    assert fake.asked[0].body["temperature"] == 0.0


# What is tried again, and what is not


@pytest.mark.parametrize("provider", ["openai-compatible", "anthropic", "google"])
@pytest.mark.parametrize(
    "failure",
    [
        *(Fail(status) for status in (408, 409, 425, 429, 500, 502, 503, 504, 529)),
        Reset(), Cut(Say("a longer answer than nothing")), Body("<html>", "text/html"),
        Body("{not json"), Body("{}"), Body("null"), Body('{"error": {"message": "overloaded"}}'),
        Say(finish="error") , Hang(), Hang(drip=True),
    ],
    ids=str,
)  # fmt: skip
def test_what_may_pass_is_tried_again_bl035(provider, failure):
    if isinstance(failure, Say):
        failure = Fail(503) if provider != "openai-compatible" else Body(
            json.dumps({"id": "x", "object": "chat.completion", "created": 1, "model": "m",
                        "choices": [{"index": 0, "finish_reason": "error",
                                     "message": {"role": "assistant", "content": ""}}]})
        )  # fmt: skip
    waited = Waited()
    with FakeEndpoint([failure, failure, json.dumps(MET)]) as fake:
        seconds = 0.5 if isinstance(failure, Hang) else 20
        reply = asked_of(fake, provider=provider, timeout_s=seconds, waited=waited)
    assert (reply.value, reply.n_asked, len(fake.asked)) == (MET, 1, 3)
    assert len(waited.waits) == 2
    assert 0 <= waited.waits[0] <= 1
    assert 0 <= waited.waits[1] <= 2


@pytest.mark.parametrize("provider", ["anthropic", "google"])
@pytest.mark.parametrize("params", [{}, {"max_tokens": 1000}], ids=["streamed", "whole"])
def test_a_reply_that_does_not_say_how_it_ended_is_asked_for_anew(provider, params):
    text = json.dumps(MET)
    script = [Say(text, finish=None), Cut(Say(text), 0.9), Say(text)]
    with FakeEndpoint(script) as fake:
        reply = asked_of(fake, provider=provider, params=params)
    assert (reply.value, reply.n_asked, len(fake.asked)) == (MET, 1, 3)


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 405, 418, 422])
@pytest.mark.parametrize("provider", ["openai-compatible", "anthropic", "google"])
def test_what_cannot_pass_is_asked_once_bl035(provider, status):
    with FakeEndpoint([Fail(status, "no such thing")]) as fake:
        error = error_of(OutageError, fake, provider=provider)
    assert len(fake.asked) == 1
    assert "no such thing" in str(error)
    assert "no such thing" in error.raw


@pytest.mark.parametrize(
    ("status", "todo"),
    [
        (401, "does not accept the key in MY_KEY: put a valid one there"),
        (402, "the account behind MY_KEY has no credit left: add some at http://127.0.0.1"),
        (403, "the key in MY_KEY may not use fake"),
        (404, "there is no model fake at http://127.0.0.1"),
    ],
)
def test_an_error_says_what_to_do(status, todo):
    with FakeEndpoint([Fail(status)]) as fake:
        assert todo in str(error_of(OutageError, fake))


def test_a_used_up_quota_is_not_waited_for_although_it_is_a_429():
    body = {"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}}
    with FakeEndpoint([Fail(429, body=body)]) as fake:
        error = error_of(OutageError, fake, provider="openai")
    assert len(fake.asked) == 1
    assert "no credit left" in str(error)


@pytest.mark.parametrize(
    "failure",
    [
        Fail(413, "payload too large"),
        Fail(400, "This model's maximum context length is 8192 tokens"),
        Fail(400, "prompt is too long: 210000 tokens > 200000 maximum"),
        Fail(400, body={"error": {"message": "no", "code": "context_length_exceeded"}}),
    ],
    ids=str,
)
def test_a_request_that_is_too_long_is_told_from_an_outage(failure):
    with FakeEndpoint([failure]) as fake:
        error_of(TooLongError, fake)
    assert len(fake.asked) == 1


def test_retries_end_by_their_number():
    waited = Waited()
    with FakeEndpoint(lambda asked: Fail(500, "down")) as fake:
        error = error_of(
            OutageError, fake, waited=waited, options={"patience": Patience(retries=3)}
        )
    assert len(fake.asked) == 4
    assert str(error) == "judge: 500: down (asked 4 times)"


def test_retries_end_by_their_time():
    waited = Waited()
    with FakeEndpoint(lambda asked: Fail(429, headers={"retry-after": "100"})) as fake:
        patience = Patience(retries=99, total_s=250)
        error = error_of(OutageError, fake, waited=waited, options={"patience": patience})
    # Three times 100 s and a bit would be more than 250.
    assert len(fake.asked) == 3
    assert sum(waited.waits) <= 250
    assert "the next try would be in 10" in str(error)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": email.utils.formatdate(1000 + 30, usegmt=True)}, 30),
        ({"retry-after": email.utils.formatdate(1000 - 30, usegmt=True)}, 0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-1"}, None),
        ({}, None),
    ],
)
def test_a_wait_that_is_asked_for_is_read_in_every_form(headers, seconds):
    assert retry_after(headers, now=1000) == seconds


@pytest.mark.parametrize("provider", ["openai-compatible", "anthropic", "google"])
def test_a_wait_that_is_asked_for_is_kept(provider):
    waited, date = Waited(), email.utils.formatdate(40, usegmt=True)
    script = [
        Fail(429, headers={"retry-after": "7"}),
        Fail(503, headers={"retry-after": date}),
        MET,
    ]
    with FakeEndpoint(script) as fake:
        asked_of(fake, provider=provider, waited=waited)
    assert 7 <= waited.waits[0] <= 8
    assert 40 <= waited.waits[1] <= 41


def test_waits_are_spread_over_their_whole_range():
    patience, rng = Patience(base_s=1, cap_s=4), random.Random(1)
    for n, longest in ((1, 1), (2, 2), (3, 4), (9, 4)):
        waits = [patience.wait_s(n, rng, None) for _ in range(2000)]
        assert 0 <= min(waits) < 0.05 * longest
        assert 0.95 * longest < max(waits) <= longest
        assert abs(sum(waits) / 2000 - longest / 2) < 0.05 * longest


class Recorded:
    """A limiter that notes what it is told."""

    def __init__(self):
        self.told = []
        self.n_in = 0

    @contextlib.asynccontextmanager
    async def slot(self, tokens=0):
        self.n_in += 1
        self.told.append(("slot", tokens))
        try:
            yield self
        finally:
            self.n_in -= 1

    def used(self, tokens):
        self.told.append(("used", tokens))

    def pause(self, seconds):
        self.told.append(("pause", round(seconds)))


def test_a_limiter_is_asked_before_each_request_and_told_of_waits_and_tokens():
    limiter = Recorded()
    usage = {"prompt_tokens": 30, "completion_tokens": 12, "total_tokens": 42}
    script = [Fail(429, headers={"retry-after": "5"}), Fail(500), Say(json.dumps(MET), usage=usage)]
    with FakeEndpoint(script) as fake:
        what = request("x" * 4000, picture())
        asked_of(fake, what, options={"limiter": limiter}, waited=(waited := Waited()))
    kinds = [kind for kind, _ in limiter.told]
    assert kinds == ["slot", "pause", "slot", "slot", "used"]
    assert limiter.told[0][1] == 1000 + 1000 + 1000
    assert limiter.told[1][1] in (5, 6)
    assert limiter.told[-1] == ("used", 42)
    assert limiter.n_in == 0
    assert len(waited.waits) == 2


def test_no_slot_is_held_while_a_retry_is_waited_for():
    limiter, held = Recorded(), []
    waited = Waited()
    plain = waited.sleep

    async def sleep(seconds):
        held.append(limiter.n_in)
        await plain(seconds)

    waited.sleep = sleep
    with FakeEndpoint([Fail(500), json.dumps(MET)]) as fake:
        asked_of(fake, options={"limiter": limiter}, waited=waited)
    assert held == [0]


async def test_many_tasks_can_ask_at_a_time():
    async def one(n):
        reply = await model.ask(request(f"number {n}", schema=None), purpose="test")
        return reply.raw

    def script(asked: Asked):
        return Say(asked.text, pause_s=0.05)

    with FakeEndpoint(script) as fake:
        model = ProviderModel(spec_of(fake))
        said = await asyncio.gather(*(one(n) for n in range(20)))
        assert fake.most_open > 5
    assert said == [f"number {n}" for n in range(20)]


def test_one_model_can_be_asked_in_several_loops():
    with FakeEndpoint(["a", "b"]) as fake:
        model = ProviderModel(spec_of(fake))
        for word in ("a", "b"):
            reply = asyncio.run(model.ask(request(schema=None), purpose="test"))
            assert reply.raw == word


async def test_a_cancelled_call_ends_at_once():
    with FakeEndpoint([Hang()]) as fake:
        model = ProviderModel(spec_of(fake))
        task = asyncio.create_task(model.ask(request(), purpose="test"))
        while not fake.asked:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


def test_a_request_that_takes_too_long_names_the_limit():
    with FakeEndpoint([Hang()]) as fake:
        error = error_of(
            OutageError, fake, timeout_s=0.3, options={"patience": Patience(retries=0)}
        )
    assert str(error) == "judge: no reply within 0.3 s (timeout_s)"


def test_an_endpoint_that_is_not_there_is_named():
    with FakeEndpoint() as fake:
        url = fake.openai_url
    error = error_of(OutageError, fake, options={"patience": Patience(retries=1)})
    assert f"cannot reach {url}" in str(error)


# Replies that are none


@pytest.mark.parametrize("provider", WIRES)
@pytest.mark.parametrize("schema", [SCHEMA, None])
def test_a_reply_that_was_cut_short_is_none_bl037(provider, schema):
    half = json.dumps(MET)[:-3]
    with FakeEndpoint([Say(half, finish="length")]) as fake:
        error = error_of(TruncatedError, fake, request(schema=schema), provider=provider)
    assert error.raw == half
    assert error.usage.output_tokens > 0
    assert "cut short after" in str(error)


def test_a_whole_value_that_was_cut_short_is_none_bl037():
    with FakeEndpoint([Say(json.dumps(MET), finish="length")]) as fake:
        error = error_of(TruncatedError, fake, params={"max_tokens": 50})
    assert "by max_tokens = 50" in str(error)
    assert len(fake.asked) == 1


def test_a_reply_that_ended_in_an_unknown_way_is_none_where_a_value_is_wanted():
    with FakeEndpoint(lambda asked: Say(json.dumps(MET), finish="weird")) as fake:
        assert "'weird'" in str(error_of(TruncatedError, fake))
        assert asked_of(fake, request(schema=None)).finish == "other"


@pytest.mark.parametrize(
    ("provider", "answer", "said"),
    [
        ("openai", Say("", refusal="I cannot help with that"), "I cannot help"),
        ("openai-compatible", Say("partial", finish="refusal"), "partial"),
        ("anthropic", Say("I won't", finish="refusal"), "I won't"),
        ("google", Say("", finish="refusal"), "SAFETY"),
        ("openai", Fail(400, body={"error": {"message": "flagged", "code": "content_filter"}}),
         "flagged"),
    ],
)  # fmt: skip
def test_a_refusal_is_neither_an_answer_nor_an_outage_bl045(provider, answer, said):
    with FakeEndpoint([answer]) as fake:
        error = error_of(RefusalError, fake, provider=provider)
    assert said in str(error)
    assert len(fake.asked) == 1


@pytest.mark.parametrize("provider", WIRES)
def test_a_reply_that_does_not_fit_is_asked_for_again_with_its_problem(provider):
    script = ['{"status": "MET ", "why": ""}', "**met**", json.dumps(MET)]
    with FakeEndpoint(script) as fake:
        reply = asked_of(fake, provider=provider, price=PRICE)
    assert (reply.value, reply.n_asked) == (MET, 3)
    second, third = fake.asked[1].text, fake.asked[2].text
    assert 'status: "MET " is not one of "met", "violated"' in second
    assert '{"status": "MET ", "why": ""}' in second
    assert "there is no JSON value in the reply" in third
    # The beginning is the same, so that a provider's cache serves it.
    assert third.startswith(second)
    assert second.startswith(fake.asked[0].text)


def test_all_that_was_asked_is_paid_for():
    def usage(n):
        return {"prompt_tokens": n, "completion_tokens": 1, "total_tokens": n + 1}

    script = [Say("no", usage=usage(10)), Say("no", usage=usage(20)), Say("no", usage=usage(40))]
    with FakeEndpoint(script) as fake:
        error = error_of(MalformedError, fake, price=PRICE, schema="prompted")
    assert (error.usage.uncached_tokens, error.usage.output_tokens) == (70, 3)
    assert error.usage.cost_usd == pytest.approx((70 * 1 + 3 * 2) / 1e6)
    assert error.raw == "no"
    assert str(error) == (
        "judge: no usable reply in 3 tries; the last one: there is no JSON value in the reply"
    )


def test_what_was_paid_before_an_outage_is_told():
    script = [Say("no", usage={"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11})]
    with FakeEndpoint([*script, Fail(402)]) as fake:
        error = error_of(OutageError, fake, price=PRICE)
    assert error.usage.uncached_tokens == 10
    assert "no credit left" in str(error)
    assert json.loads(error.raw)["message"] == "made to fail"


def test_reasoning_is_no_answer_wherever_it_stands_bl034():
    draft, final = json.dumps(MET), json.dumps(VIOLATED)
    script = [Say(f"<think>{draft}</think>{final}"), Say(final, reasoning=draft)]
    with FakeEndpoint(script) as fake:
        assert asked_of(fake).value == VIOLATED
        assert asked_of(fake).value == VIOLATED
    with FakeEndpoint([Say(f"<think>{draft}"), Say("", reasoning=draft), Say(final)]) as fake:
        reply = asked_of(fake)
    assert (reply.value, reply.n_asked) == (VIOLATED, 3)


def test_the_raw_reply_is_kept_as_it_came():
    text = '<think>a</think>\n```json\n{"status": "met",\n "why": "two\nlines"}\n```\n'
    with FakeEndpoint([text]) as fake:
        reply = asked_of(fake)
    assert reply.raw == text
    assert reply.value == {"status": "met", "why": "two\nlines"}


def test_a_repeated_example_of_the_request_does_not_count_bl034():
    example = json.dumps(MET)
    with FakeEndpoint([f"Form: {example}\nAnswer: {json.dumps(VIOLATED)}"]) as fake:
        assert asked_of(fake, request(f"Answer like {example}")).value == VIOLATED


def test_two_calls_of_the_tool_that_differ_are_none():
    script = [Say(arguments=(MET, VIOLATED)), Say(arguments="{broken"), Say(arguments=MET)]
    with FakeEndpoint(script) as fake:
        reply = asked_of(fake, schema="tool")
    assert (reply.value, reply.n_asked) == (MET, 3)


def test_half_a_surrogate_pair_is_no_reason_to_fail():
    with FakeEndpoint([Body('{"id": "x", "object": "chat.completion", "created": 1, "model": "m", '
                            '"choices": [{"index": 0, "finish_reason": "stop", "message": '
                            '{"role": "assistant", "content": "a \\ud83d b"}}]}')]) as fake:  # fmt: skip
        reply = asked_of(fake, request(schema=None))
    assert reply.raw.encode() == b"a ? b"


# Rules


def test_restricted_text_goes_only_to_a_model_that_is_cleared_for_it():
    with FakeEndpoint(["a"]) as fake:
        model = model_of(spec_of(fake), NO_CACHE)
        with pytest.raises(ConfigError, match="judge is not cleared for restricted text"):
            asyncio.run(model.ask(request(), purpose="label", restricted=True))
        assert fake.asked == []
        cleared = model_of(spec_of(fake, may_see="restricted"), NO_CACHE)
        assert cleared.may_see == "restricted"
        what = request(schema=None)
        asyncio.run(cleared.ask(what, purpose="label", restricted=True))
        assert len(fake.asked) == 1


def test_a_schema_that_nothing_can_be_held_to_is_refused_before_anything_is_asked():
    with FakeEndpoint() as fake:
        error_of(ConfigError, fake, request(schema={"patternProperties": {}}))
    assert fake.asked == []


def test_a_request_begins_with_system_messages_and_a_user():
    late = request(system="first")
    late = late.model_copy(update={"messages": late.messages[::-1]})
    alone = late.model_copy(update={"messages": (Message(role="assistant", parts=("Hi",)),)})
    with FakeEndpoint() as fake:
        assert "come first" in str(error_of(ConfigError, fake, late))
        assert "begins with a user message" in str(error_of(ConfigError, fake, alone))


@pytest.mark.parametrize("provider", WIRES)
def test_the_key_is_sent_and_told_to_nobody_else_bl097(provider):
    def echo(asked: Asked):
        return Fail(401, f"Incorrect API key provided: {KEY}. See {asked.headers}")

    with FakeEndpoint(echo) as fake:
        spec = spec_of(fake, provider)
        error = error_of(OutageError, fake, provider=provider)
        assert KEY in json.dumps(fake.asked[0].headers)
    model = ProviderModel(spec)
    for told in (str(error), error.raw, repr(spec), repr(model), model.id.as_line()):
        assert KEY not in told
    assert "Incorrect API key provided: [redacted]" in str(error)


def test_no_variable_sends_requests_elsewhere(monkeypatch):
    for name in ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL"):
        monkeypatch.setenv(name, "http://127.0.0.1:1/v1")
    for provider, url in URLS.items():
        spec = ModelSpec(label="m", provider=provider, name="vendor/m", key=KEY)
        assert _build(spec, None).base_url.rstrip("/") == url


@pytest.mark.parametrize("provider", ["openai-compatible", "anthropic", "google"])
def test_an_endpoint_on_this_machine_is_asked_without_a_proxy(provider, monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    with FakeEndpoint(["ok"]) as fake:
        assert asked_of(fake, request(schema=None), provider=provider).raw == "ok"


# Caches of providers


def marks_of(body):
    """The texts that carry a mark, in order."""
    found = []

    def walk(value):
        if isinstance(value, dict):
            if "cache_control" in value:
                found.append(value.get("text", value["type"]))
            for inner in value.values():
                walk(inner)
        elif isinstance(value, list):
            for inner in value:
                walk(inner)

    walk({"system": body.get("system"), "messages": body["messages"]})
    return found


def test_what_does_not_change_is_marked_for_a_provider_that_caches_only_marks():
    what = request("the trace", picture(), "the item", schema=None, system="rules")
    with FakeEndpoint(lambda asked: "ok") as fake:
        asked_of(fake, what, provider="anthropic")
        asked_of(fake, what, provider="anthropic", prompt_cache=False)
    assert marks_of(fake.asked[0].body) == ["rules", "image", "the item"]
    assert marks_of(fake.asked[1].body) == []


def test_requests_with_one_beginning_share_its_bytes_and_a_cache_key():
    def sent(last, system="rules"):
        what = request("the trace", picture(), last, schema=None, system=system)
        with FakeEndpoint(["ok"]) as fake:
            asked_of(fake, what, provider="openai")
        spec = ModelSpec(label="m", provider="openai", name="gpt-5", key=KEY)
        settings = Wire(spec)._settings(what.messages, How())
        return json.dumps(fake.asked[0].body), settings["openai_prompt_cache_key"]

    (one, key), (other, same_key), (_, other_key) = sent("item A"), sent("item B"), sent("A", "x")
    shared = one.index("item A")
    assert one[:shared] == other[:shared]
    assert key == same_key != other_key
    # Only OpenAI itself is known to take the field.
    assert "prompt_cache_key" not in one


def test_a_picture_that_is_not_what_it_was_is_an_error_of_the_data(tmp_path):
    path = tmp_path / "1.png"
    path.write_bytes(b"one")
    shot = Image.of_bytes(b"one", "image/png").model_copy(update={"path": path, "data": None})
    with FakeEndpoint(["ok"]) as fake:
        asked_of(fake, request(shot, schema=None))
        path.write_bytes(b"two")
        error_of(DataError, fake, request(shot, schema=None))
        path.unlink()
        error_of(DataError, fake, request(shot, schema=None))
    assert len(fake.asked) == 1
