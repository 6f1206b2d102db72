"""Models of the fake endpoint, made so that nothing is probed and nobody waits."""

import random

from browseruse_bench.models.base import Image, Message, Request
from browseruse_bench.models.config import Asking
from browseruse_bench.models.failures import Patience
from browseruse_bench.models.probe import picture_of
from browseruse_bench.models.provider import ProviderModel, Timing
from browseruse_bench.models.spec import ModelSpec

KEY = "planted-key-0a1b2c3d4e5f"
NAMES = {
    "openai": "gpt-4.1-mini",
    "openai-compatible": "fake",
    "anthropic": "claude-sonnet-4-6",
    "google": "gemini-2.5-flash",
    "openrouter": "vendor/model",
}
SCHEMA = {
    "type": "object",
    "properties": {"status": {"enum": ["met", "violated"]}, "why": {"type": "string"}},
    "required": ["status", "why"],
    "additionalProperties": False,
}
MET = {"status": "met", "why": "seen"}


def spec_of(fake, provider="openai-compatible", *, name=None, price=None, **asking):
    """A spec of the fake endpoint; all of its abilities are said to be there."""
    wire = provider if provider in ("anthropic", "google", "openrouter") else "openai"
    said = {"schema": "native", "images": True, "system": True, "timeout_s": 20, **asking}
    return ModelSpec(
        label="judge",
        provider=provider,
        name=name or NAMES[provider],
        base_url=getattr(fake, f"{wire}_url"),
        key=KEY,
        key_name="MY_KEY",
        price=price,
        price_source=None if price is None else "test",
        asking=Asking.model_validate({n: v for n, v in said.items() if v is not None}),
    )


class Waited:
    """A clock that only moves by the waits that it is asked for, and the waits."""

    def __init__(self):
        self.at = 0.0
        self.waits = []

    def clock(self):
        return self.at

    async def sleep(self, seconds):
        self.waits.append(seconds)
        self.at += seconds

    def timing(self, seed=0, now=lambda: 0.0):
        return Timing(clock=self.clock, now=now, sleep=self.sleep, rng=random.Random(seed))


def model_of(spec, cache, *, waited=None, **options):
    options.setdefault("patience", Patience())
    return ProviderModel(spec, timing=(waited or Waited()).timing(), cache=cache, **options)


def request(*parts, schema=SCHEMA, system=None, **more):
    messages = [Message(role="user", parts=parts or ("Is it met?",))]
    if system:
        messages.insert(0, Message(role="system", parts=(system,)))
    return Request.model_validate({"messages": messages, "schema": schema, **more})


def picture(digits="12"):
    return Image.of_bytes(picture_of(digits), "image/png")
