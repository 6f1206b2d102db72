"""A real model on the real wire: what it says is worth nothing, how it is read is."""

import asyncio
import json

import httpx
import pytest

from browseruse_bench.models.base import (
    CallError,
    MalformedError,
    Message,
    Reply,
    Request,
    TruncatedError,
)
from browseruse_bench.models.config import Asking
from browseruse_bench.models.provider import ProviderModel
from browseruse_bench.models.schema import problems
from browseruse_bench.models.spec import ModelSpec
from tests.models.real.local import CannotStart, running

pytestmark = pytest.mark.slow
SCHEMA = {
    "type": "object",
    "properties": {
        "findings": {
            "type": "array",
            "minItems": 2,
            "maxItems": 2,
            "items": {
                "type": "object",
                "properties": {
                    "item": {"enum": ["A1", "A2"]},
                    "reason": {"type": "string"},
                    "status": {"enum": ["met", "violated", "not_assessable"]},
                },
                "required": ["item", "reason", "status"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["findings"],
    "additionalProperties": False,
}
QUESTION = (
    "Step 1: the page shows a kettle for 30 euro. Step 2: the agent answered: 30 euro.\n"
    "A1: the answer is 30 euro. A2: the answer names the colour. State for each, in a few words, "
    "whether it is met."
)


@pytest.fixture(scope="module")
def url():
    try:
        with running() as url:
            yield url
    except CannotStart as error:
        pytest.skip(f"the small real model cannot start: {error}")


def model(url, cache, **asking):
    said = {"timeout_s": 120, "params": {"max_tokens": 200, "temperature": 0.8}, **asking}
    spec = ModelSpec(
        label="small", provider="openai-compatible", name="smollm2", base_url=url,
        asking=Asking.model_validate(said),
    )  # fmt: skip
    return ProviderModel(spec, cache=cache)


def question(sample=0, **more):
    system = Message(role="system", parts=("You check an agent's work.",))
    asked = Message(role="user", parts=(QUESTION,))
    fields = {"schema": SCHEMA, "params": {"seed": sample + 1}, **more}
    return Request.model_validate({"messages": (system, asked), "sample": sample, **fields})


def tried(asked, request):
    """A reply, or the failure that came instead."""
    try:
        return asyncio.run(asked.ask(request, purpose="test"))
    except (MalformedError, TruncatedError) as error:
        return error


def test_a_probe_finds_what_the_server_does(url, tmp_path):
    found = asyncio.run(model(url, tmp_path).probe())
    assert (found.native, found.tool) == (True, True)
    assert found.images is False
    assert "takes no image_url" in found.notes["images"]
    assert found.usage.cost_usd is None
    assert found.usage.uncached_tokens > 0


@pytest.mark.parametrize("mode", ["native", "tool"])
def test_what_comes_back_fits_or_is_a_failure_with_its_words(mode, url, tmp_path):
    asked = model(url, tmp_path, schema=mode, system=True)
    outcomes = [tried(asked, question(sample)) for sample in range(4)]
    replies = [outcome for outcome in outcomes if isinstance(outcome, Reply)]
    assert len(replies) >= 2
    for reply in replies:
        assert problems(reply.value, SCHEMA) == []
        assert json.loads(reply.raw, strict=False) == reply.value
        assert (reply.finish, reply.usage.cost_usd) == ("stop", None)
        assert reply.usage.uncached_tokens > 50
    for outcome in outcomes:
        assert outcome.raw
        assert outcome.usage.output_tokens > 0


def test_a_model_that_only_has_the_words_of_the_prompt_is_asked_again_and_never_guessed(
    url, tmp_path
):
    asked = model(url, tmp_path, schema="prompted", system=True)
    outcome = tried(asked, question())
    assert outcome.usage.output_tokens > 0
    assert isinstance(outcome, CallError) or problems(outcome.value, SCHEMA) == []


def test_a_reply_that_is_cut_short_is_told(url, tmp_path):
    asked = model(url, tmp_path, schema="native", system=True, params={"max_tokens": 4})
    with pytest.raises(TruncatedError, match="max_tokens = 4"):
        asyncio.run(asked.ask(question(), purpose="test"))


def test_a_text_comes_back_streamed_as_it_does_whole(url):
    body = {
        "model": "smollm2", "temperature": 0, "max_tokens": 20,
        "messages": [{"role": "user", "content": "Say hello."}],
    }  # fmt: skip
    with httpx.Client(timeout=120, trust_env=False) as client:
        whole = client.post(f"{url}/chat/completions", json=body).json()
        with client.stream("POST", f"{url}/chat/completions", json={**body, "stream": True}) as got:
            lines = [line[6:] for line in got.iter_lines() if line.startswith("data: ")]
    assert lines.pop() == "[DONE]"
    deltas = [json.loads(line)["choices"][0]["delta"].get("content", "") for line in lines]
    assert "".join(deltas) == whole["choices"][0]["message"]["content"]
