"""The official clients of the providers, through the gateway and back."""

import asyncio

import anthropic
import openai
import pytest
from google import genai

from tests.models.gateway.pretend_provider import (
    KEY,
    chat,
    chat_chunk,
    chat_stream,
    chat_usage_chunk,
    event,
    gemini,
    message,
    message_events,
    responses,
    stream,
    whole,
)

ASK = [{"role": "user", "content": "Say hello."}]


def openai_client(access, **changes):
    given = {"base_url": access.endpoint.base_url, "api_key": access.endpoint.token}
    return openai.AsyncOpenAI(**{"max_retries": 0, **given, **changes})


def anthropic_client(access, **changes):
    given = {"base_url": access.endpoint.base_url, "api_key": access.endpoint.token}
    return anthropic.AsyncAnthropic(**{"max_retries": 0, **given, **changes})


async def test_a_chat_completion_comes_back_and_is_counted(way):
    access = way.open()
    async with openai_client(access) as client:
        reply = await client.chat.completions.create(model="gpt-test", messages=ASK)
    assert reply.choices[0].message.content == "Hello."
    (usage,) = access.grant.meter.usage
    counts = (usage.uncached_tokens, usage.cached_tokens, usage.reasoning_tokens)
    assert (*counts, usage.output_tokens) == (60, 40, 5, 15)
    assert usage.cost_usd == pytest.approx((60 * 10 + 40 * 1 + 20 * 100) / 1e6)
    assert (usage.model, usage.price_source) == ("small", "the test")


async def test_the_provider_gets_its_own_key_and_the_clients_own_bytes(way, provider):
    access = way.open()
    async with openai_client(access) as client:
        await client.chat.completions.create(
            model="gpt-test", messages=ASK, temperature=0.1 + 0.2, extra_body={"odd": [1e-7, "é"]}
        )
    (got,) = provider.got
    assert (got.method, got.target) == ("POST", "/v1/chat/completions")
    assert got.header("authorization") == [f"Bearer {KEY}"]
    assert access.endpoint.token.encode() not in got.body
    assert not [value for _, value in got.headers if access.endpoint.token in value]
    assert got.json == {
        "model": "gpt-test", "messages": ASK, "temperature": 0.1 + 0.2, "odd": [1e-7, "é"],
    }  # fmt: skip


async def test_a_stream_comes_as_it_is_made_and_its_count_is_taken_out_again(way, provider):
    access = way.open()
    first = chat_chunk({"role": "assistant", "content": "One "})
    provider.answers = [
        stream(first, 0.3, chat_chunk({"content": "two."}), chat_chunk({}, "stop"),
               chat_usage_chunk(), event("[DONE]"))
    ]  # fmt: skip
    texts, times = [], []
    loop = asyncio.get_running_loop()
    async with openai_client(access) as client:
        answer = await client.chat.completions.create(model="gpt-test", messages=ASK, stream=True)
        async for chunk in answer:
            assert chunk.choices
            assert chunk.usage is None
            texts.append(chunk.choices[0].delta.content)
            times.append(loop.time())
    assert texts == ["One ", "two.", None]
    assert times[1] - times[0] > 0.2
    assert provider.got[0].json["stream_options"] == {"include_usage": True}
    assert access.grant.meter.usage[0].cached_tokens == 40


async def test_a_client_that_asks_for_the_count_gets_it(way, provider):
    access = way.open()
    provider.answers = [chat_stream("Hi")]
    async with openai_client(access) as client:
        answer = await client.chat.completions.create(
            model="gpt-test", messages=ASK, stream=True, stream_options={"include_usage": True}
        )
        chunks = [chunk async for chunk in answer]
    assert chunks[-1].usage.prompt_tokens == 100
    assert access.grant.meter.usage[0].output_tokens == 15


async def test_tool_calls_pass_both_ways_untouched(way, provider):
    access = way.open()
    arguments = '{"url": "http://shop.test/",  "n": 1.0}'
    called = {"id": "t1", "type": "function", "function": {"name": "go", "arguments": arguments}}
    tool = {"type": "function", "function": {"name": "go", "parameters": {"type": "object"}}}
    provider.answers = [whole(chat(None, tools=[called], finish="tool_calls"))]
    async with openai_client(access) as client:
        reply = await client.chat.completions.create(model="gpt-test", messages=ASK, tools=[tool])
        assert reply.choices[0].message.tool_calls[0].function.arguments == arguments
        provider.answers = [
            stream(
                chat_chunk({"tool_calls": [{"index": 0, **called}]}),
                chat_chunk({"tool_calls": [{"index": 0, "function": {"arguments": " "}}]}),
                chat_chunk({}, "tool_calls"), chat_usage_chunk(), event("[DONE]"),
            )
        ]  # fmt: skip
        answer = await client.chat.completions.create(
            model="gpt-test", messages=ASK, tools=[tool], stream=True
        )
        parts = [c.choices[0].delta.tool_calls async for c in answer]
    said = "".join(part[0].function.arguments for part in parts if part)
    assert said == arguments + " "
    assert provider.got[0].json["tools"] == provider.got[1].json["tools"] == [tool]


async def test_responses_come_back_whole_and_as_a_stream(way, provider):
    access = way.open()
    made = responses("Hello.")
    begun = {**made, "status": "in_progress", "output": [], "usage": None}
    provider.answers = [
        whole(made),
        stream(
            event({"type": "response.created", "sequence_number": 0, "response": begun}),
            event({"type": "response.completed", "sequence_number": 1, "response": made}),
        ),
    ]
    async with openai_client(access) as client:
        reply = await client.responses.create(model="gpt-test", input="Say hello.")
        assert reply.output_text == "Hello."
        answer = await client.responses.create(model="gpt-test", input="Again.", stream=True)
        kinds = [part.type async for part in answer]
    assert kinds == ["response.created", "response.completed"]
    assert [got.target for got in provider.got] == ["/v1/responses"] * 2
    (usage,) = access.grant.meter.usage
    counts = (usage.uncached_tokens, usage.cached_tokens, usage.reasoning_tokens)
    assert (*counts, usage.output_tokens) == (100, 20, 4, 14)


async def test_anthropics_messages_come_back_whole_and_as_a_stream(way, provider):
    access = way.open("anthropic")
    provider.answers = [whole(message("Hello.")), stream(*message_events("Hel", "lo."))]
    async with anthropic_client(access) as client:
        reply = await client.messages.create(model="claude-test", max_tokens=9, messages=ASK)
        assert reply.content[0].text == "Hello."
        async with client.messages.stream(
            model="claude-test", max_tokens=9, messages=ASK
        ) as answer:
            assert [text async for text in answer.text_stream] == ["Hel", "lo."]
    for got in provider.got:
        assert got.target == "/v1/messages"
        assert got.header("x-api-key") == [KEY]
        assert len(got.header("anthropic-version")) == 1
        assert not got.header("authorization")
        assert not [name for name, _ in got.headers if name.startswith("x-stainless")]
    (usage,) = access.grant.meter.usage
    counts = (usage.uncached_tokens, usage.cached_tokens, usage.output_tokens)
    assert counts == (2 * (50 + 20), 2 * 30, 2 * 7)


async def test_googles_own_client_is_answered_whole_and_as_a_stream(way, provider):
    access = way.open("google")
    provider.answers = [
        whole(gemini("Hello.")),
        stream(event(gemini("Hel", None)), event(gemini("lo."))),
    ]
    client = genai.Client(
        api_key=access.endpoint.token, http_options={"base_url": access.endpoint.base_url}
    )
    reply = await client.aio.models.generate_content(model="gemini-test", contents="Hello?")
    assert reply.text == "Hello."
    answer = await client.aio.models.generate_content_stream(model="gemini-test", contents="Hi?")
    assert "".join([part.text async for part in answer]) == "Hello."
    targets = [got.target for got in provider.got]
    at = "/v1beta/models/gemini-test"
    assert targets == [f"{at}:generateContent", f"{at}:streamGenerateContent?alt=sse"]
    assert {tuple(got.header("x-goog-api-key")) for got in provider.got} == {(KEY,)}
    (usage,) = access.grant.meter.usage
    counts = (usage.uncached_tokens, usage.cached_tokens, usage.reasoning_tokens)
    assert (*counts, usage.output_tokens) == (160, 20, 8, 22)


async def test_googles_model_is_also_asked_over_the_wire_of_openai(way, provider):
    access = way.open("google")
    async with openai_client(access, base_url=f"{access.endpoint.url}/v1") as client:
        await client.chat.completions.create(model="gemini-test", messages=ASK)
    assert provider.got[0].target == "/v1beta/openai/chat/completions"
    assert provider.got[0].header("authorization") == [f"Bearer {KEY}"]


async def test_a_model_may_be_asked_for_by_the_name_that_the_user_gave_it(way, provider):
    access = way.open()
    async with openai_client(access) as client:
        await client.chat.completions.create(model="small", messages=ASK)
        listed = [model.id async for model in client.models.list()]
    assert provider.got[0].json["model"] == "gpt-test"
    assert listed == ["gpt-test"]
    access = way.open("anthropic")
    async with anthropic_client(access) as client:
        assert [model.id async for model in client.models.list()] == ["claude-test"]
    assert len(provider.got) == 1


async def test_another_model_is_refused_in_the_wires_own_words(way, provider):
    access = way.open()
    async with openai_client(access) as client:
        with pytest.raises(openai.NotFoundError, match="this token is for 'gpt-test'") as caught:
            await client.chat.completions.create(model="gpt-5", messages=ASK)
    assert caught.value.code == "model_not_found"
    access = way.open("anthropic")
    async with anthropic_client(access) as client:
        with pytest.raises(anthropic.NotFoundError, match="this token is for 'claude-test'"):
            await client.messages.create(model="claude-dear", max_tokens=9, messages=ASK)
    assert provider.got == []


async def test_a_client_of_the_wrong_wire_is_told_where_to_ask(way, provider):
    access = way.open("anthropic")
    at = f"http://127.0.0.1:{way.gateway.port}"
    async with openai_client(access, base_url=f"{at}/v1") as client:
        with pytest.raises(openai.BadRequestError, match=f"ask it at POST {at}/v1/messages"):
            await client.chat.completions.create(model="claude-test", messages=ASK)
    access = way.open("openai-compatible")
    async with anthropic_client(access, base_url=at) as client:
        with pytest.raises(anthropic.BadRequestError, match=f"POST {at}/v1/chat/completions"):
            await client.messages.create(model="gpt-test", max_tokens=9, messages=ASK)
    assert provider.got == []
