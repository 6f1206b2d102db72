"""What is read of requests and answers, wire by wire."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from browseruse_bench.models.gateway.bodies import (
    LONG_TEXT_BYTES,
    MAX_TEXT_BYTES,
    as_kept,
    prompt_tokens,
)
from browseruse_bench.models.gateway.call import Denied, read_call
from browseruse_bench.models.gateway.endpoint import Endpoint
from browseruse_bench.models.gateway.sse import Events, data_of
from browseruse_bench.models.gateway.wires import (
    WIRES,
    AnthropicMessages,
    Gemini,
    OpenAIChat,
    OpenAIResponses,
    wires_of,
)
from browseruse_bench.models.spec import ModelSpec
from browseruse_bench.models.spending import IMAGE_TOKENS, IMAGE_TOKENS_OF

CHAT, RESPONSES, MESSAGES, GEMINI = OpenAIChat(), OpenAIResponses(), AnthropicMessages(), Gemini()
SPEC = ModelSpec(label="m", provider="openai", name="m", key="k")
COUNTS = st.integers(0, 10**6)


def counts(counted):
    return (counted.uncached, counted.cached, counted.written, counted.reasoning, counted.output)


@given(prompt=COUNTS, cached=COUNTS, reply=COUNTS, reasoning=COUNTS)
def test_every_token_of_openai_is_in_one_place_only(prompt, cached, reply, reasoning):
    chat = {
        "prompt_tokens": prompt, "completion_tokens": reply,
        "prompt_tokens_details": {"cached_tokens": cached},
        "completion_tokens_details": {"reasoning_tokens": reasoning},
    }  # fmt: skip
    counted = CHAT.counted(chat, SPEC)
    assert counted.total == prompt + reply
    assert min(counts(counted)) >= 0
    same = {
        "input_tokens": prompt, "output_tokens": reply,
        "input_tokens_details": {"cached_tokens": cached},
        "output_tokens_details": {"reasoning_tokens": reasoning},
    }  # fmt: skip
    assert RESPONSES.counted(same, SPEC) == counted


@given(prompt=COUNTS, cached=COUNTS, reply=COUNTS, thought=COUNTS)
def test_every_token_of_gemini_is_in_one_place_only(prompt, cached, reply, thought):
    counted = GEMINI.counted(
        {
            "promptTokenCount": prompt, "cachedContentTokenCount": cached,
            "candidatesTokenCount": reply, "thoughtsTokenCount": thought,
        },
        SPEC,
    )  # fmt: skip
    assert counted.total == prompt + reply + thought
    assert counted.reasoning == thought


def test_anthropics_parts_of_a_prompt_are_added_not_taken_out():
    usage = {
        "input_tokens": 3, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 40,
        "cache_creation": {"ephemeral_5m_input_tokens": 30, "ephemeral_1h_input_tokens": 10},
        "output_tokens": 7,
    }  # fmt: skip
    counted = MESSAGES.counted(usage, SPEC)
    assert counts(counted) == (3, 100, 40, 0, 7)
    assert counted.written_1h == 10


def test_what_openrouter_charged_counts_and_what_another_server_says_does_not():
    usage = {"prompt_tokens": 10, "completion_tokens": 1, "cost": 0.25}
    router = ModelSpec(label="m", provider="openrouter", name="m")
    assert CHAT.counted(usage, router).charged_usd == 0.25
    assert CHAT.counted(usage, SPEC).charged_usd is None
    for odd in (-1, True, "0.1", None):
        assert CHAT.counted({**usage, "cost": odd}, router).charged_usd is None


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
def test_whatever_a_provider_says_instead_of_a_count_is_no_count(wire):
    for usage in ({}, {"prompt_tokens": "9"}, {"input_tokens": -9}, {"promptTokenCount": True},
                  {"prompt_tokens": 1.5, "prompt_tokens_details": [1]}):  # fmt: skip
        assert wire.counted(usage, SPEC).total == 0
    for said in ({}, {"usage": None}, {"usage": 7}, {"usageMetadata": []}, {"response": "x"}):
        assert wire.usage(said) is None
        wire.truncated(said)
        wire.final(said)
        wire.failure(said)


@pytest.mark.parametrize(
    ("wire", "cut", "whole"),
    [
        (CHAT, {"choices": [{"finish_reason": "length"}]}, {"choices": [{"finish_reason": "stop"}]}),
        (RESPONSES, {"response": {"incomplete_details": {"reason": "max_output_tokens"}}},
         {"response": {"incomplete_details": None}}),
        (MESSAGES, {"delta": {"stop_reason": "max_tokens"}}, {"stop_reason": "end_turn"}),
        (GEMINI, {"candidates": [{"finishReason": "MAX_TOKENS"}]},
         {"candidates": [{"finishReason": "STOP"}]}),
    ],
)  # fmt: skip
def test_an_answer_that_was_cut_at_its_greatest_length_is_told(wire, cut, whole):
    assert wire.truncated(cut)
    assert not wire.truncated(whole)


@pytest.mark.parametrize(
    ("wire", "body", "apart"),
    [
        (CHAT, {"tools": [{"type": "function"}], "service_tier": "flex"}, None),
        (CHAT, {"web_search_options": {"x": 1}}, "web_search_options"),
        (CHAT, {"service_tier": "priority"}, "service_tier priority"),
        (RESPONSES, {"tools": [{"type": "computer_use_preview"}]}, None),
        (RESPONSES, {"tools": [{"type": "code_interpreter"}]}, "the tool code_interpreter"),
        (RESPONSES, {"previous_response_id": "r"}, "previous_response_id"),
        (MESSAGES, {"tools": [{"name": "x"}, {"type": "computer_20250124"}]}, None),
        (MESSAGES, {"tools": [{"type": "web_search_20250305"}]}, "the tool web_search_20250305"),
        (MESSAGES, {"mcp_servers": [{"url": "https://x"}]}, "mcp_servers"),
        (GEMINI, {"tools": [{"functionDeclarations": []}]}, None),
        (GEMINI, {"tools": [{"googleSearch": {}}]}, "the tool googleSearch"),
    ],
)  # fmt: skip
def test_what_is_not_paid_by_tokens_alone_is_seen(wire, body, apart):
    assert wire.apart(body) == apart


@pytest.mark.parametrize(
    ("wire", "given", "asked"),
    [
        (CHAT, {"max_tokens": 5}, 5), (CHAT, {"max_tokens": 9, "max_completion_tokens": 5}, 9),
        (CHAT, {}, None), (RESPONSES, {"max_output_tokens": 5}, 5), (MESSAGES, {"max_tokens": 5}, 5),
        (GEMINI, {"generationConfig": {"maxOutputTokens": 5}}, 5), (GEMINI, {}, None),
    ],
)  # fmt: skip
def test_the_longest_answer_is_read_and_set(wire, given, asked):
    assert wire.asked({"model": "m", **given}, "/x").max_output == asked
    capped = wire.capped({"model": "m", **given}, SPEC, 77)
    assert wire.asked(capped, "/x").max_output == 77


def test_reasoning_models_of_openai_get_the_new_name_and_other_servers_the_old():
    other = ModelSpec(label="m", provider="openai-compatible", name="m")
    assert CHAT.capped({}, SPEC, 7) == {"max_completion_tokens": 7}
    assert CHAT.capped({}, other, 7) == {"max_tokens": 7}
    assert CHAT.capped({"max_completion_tokens": 9}, other, 7) == {"max_completion_tokens": 7}


def test_every_provider_has_its_wires_and_a_double_has_none():
    names = {p: [wire.name for wire in wires_of(p)] for p in ("openai", "anthropic", "google")}
    assert names["anthropic"] == ["Anthropic messages"]
    assert names["google"] == ["OpenAI chat completions", "Gemini generateContent"]
    assert wires_of("scripted") == ()
    for provider in ("openai", "openrouter", "anthropic", "google"):
        spec = ModelSpec(label="m", provider=provider, name="a/b c")
        for wire in wires_of(provider):
            for path in wire.paths(spec):
                assert wire.upstream(spec, path).startswith("https://")
                assert " " not in path


def test_an_endpoint_never_shows_its_token_and_gives_the_variables_of_each_library():
    for provider, names in (
        ("openai", {"OPENAI_BASE_URL", "OPENAI_API_KEY"}),
        ("anthropic", {"ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY"}),
        ("google", {"GOOGLE_GEMINI_BASE_URL", "GOOGLE_API_KEY"}),
    ):
        endpoint = Endpoint("http://127.0.0.1:1", "sk-bubench-x", provider)
        assert "sk-bubench-x" not in repr(endpoint)
        assert endpoint.variables.keys() == names


@settings(max_examples=40)
@given(st.data())
def test_events_are_the_same_however_the_stream_is_cut(data):
    ends = st.sampled_from([b"\n\n", b"\r\n\r\n"])
    texts = data.draw(st.lists(st.tuples(st.binary(min_size=1).map(
        lambda b: b"data: " + b.replace(b"\n", b"").replace(b"\r", b"")), ends)))  # fmt: skip
    whole = b"".join(text + end for text, end in texts)
    rest = data.draw(st.sampled_from([b"", b"data: half", b"data: half\r\n"]))
    stream = whole + rest
    events, got, at = Events(), [], 0
    while at < len(stream):
        step = data.draw(st.integers(1, 7))
        got += events.feed(stream[at : at + step])
        at += step
    assert got == [text + end for text, end in texts]
    assert events.rest == rest
    assert [data_of(event) for event in got] == [text[6:] for text, _ in texts]


def test_the_data_of_several_lines_is_one_text():
    assert data_of(b"event: x\ndata: a\ndata:b\r\n: comment\n\n") == b"a\nb"
    assert data_of(b": ping\n\n") == b""


LETTERS = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)


@given(LETTERS)
def test_a_prompt_has_at_most_as_many_tokens_as_bound_for_its_text(text):
    body = {"messages": [{"role": "user", "content": text}]}
    n_bytes = len(text.encode())
    bound = prompt_tokens(body, "m")
    assert n_bytes / 2 <= bound <= n_bytes + 1_100


def test_a_picture_counts_as_one_however_long_it_is_and_a_document_by_its_length():
    def of(url, model="m"):
        part = {"type": "image_url", "image_url": {"url": url}}
        return prompt_tokens({"messages": [{"role": "user", "content": [part]}]}, model)

    small, large = of("data:image/png;base64,AAAA"), of("data:image/png;base64," + "A" * 10**6)
    assert small == large >= IMAGE_TOKENS
    assert of("data:image/png;base64,AAAA", "gpt-4o-mini") > IMAGE_TOKENS_OF["gpt-4o-mini"]
    assert of("data:application/pdf;base64," + "A" * 10**6) > 200_000
    source = {"type": "base64", "media_type": "image/jpeg", "data": "A" * 10**6}
    assert prompt_tokens({"content": [{"type": "image", "source": source}]}, "m") < 10_000
    inline = {"inlineData": {"mimeType": "image/png", "data": "A" * 10**6}}
    assert prompt_tokens({"contents": [{"parts": [inline]}]}, "m") < 10_000
    assert prompt_tokens({"contents": [{"text": "A" * 100_000}]}, "m") > 50_000


def test_a_text_that_no_model_reads_is_refused_and_a_long_one_costs_little_to_bound():
    assert prompt_tokens({"x": "a" * LONG_TEXT_BYTES * 2}, "m") > LONG_TEXT_BYTES * 2
    with pytest.raises(ValueError, match="bytes of text"):
        prompt_tokens({"x": "a" * (MAX_TEXT_BYTES + 1)}, "m")


def test_a_body_is_kept_without_its_pictures_and_otherwise_as_it_is():
    picture = {"image_url": {"url": "data:image/png;base64," + "A" * 5000}}
    words = {"text": "data: is a word", "data": "short", "n": 1.5, "none": None, "ok": [True]}
    body = {"messages": [picture, words, picture]}
    kept, media = as_kept(body)
    assert kept["messages"][1] == words
    assert len(media) == 2
    assert media[0] == media[1]
    assert media[0] in kept["messages"][0]["image_url"]["url"]
    assert body["messages"][0]["image_url"]["url"].endswith("AAA")


def test_a_body_is_sent_as_it_came_unless_something_must_change():
    content = b'{ "model":"m" ,"messages":[], "x": 1.10,"y":"\\u00e9" }'
    assert read_call(CHAT, "/v1/chat/completions", content, SPEC).content == content
    streamed = content.replace(b'"x"', b'"stream": true, "x"')
    call = read_call(CHAT, "/v1/chat/completions", streamed, SPEC)
    assert b'"include_usage":true' in call.content
    assert call.strip_usage
    asked = content.replace(
        b'"x"', b'"stream": true, "stream_options": {"include_usage": true}, "x"'
    )
    call = read_call(CHAT, "/v1/chat/completions", asked, SPEC)
    assert (call.content, call.strip_usage) == (asked, False)
    with pytest.raises(Denied):
        read_call(MESSAGES, "/v1/messages", b'{"model": "other", "max_tokens": 1}', SPEC)
