"""One request to a provider and its reply, over pydantic-ai: everything that knows its types.

A request is sent as it is: in its order, without a word added, and without an option that the
library would leave out in silence (that is refused before anything is sent). Prompts keep
their unchanging part first; where a provider caches only what is marked, three places are
marked: the end of the system text, the first user message without its last part, and all of
it. So what differs between requests belongs into the last part of the first user message.

Connections are not kept: a call takes seconds, a new connection milliseconds, and one that was
kept too long is a failure of its own kind.
"""

from __future__ import annotations

import asyncio
import hashlib
import ipaddress
import json
import re
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from browseruse_bench.errors import ConfigError
from browseruse_bench.models.base import Finish, Image, Message, Params
from browseruse_bench.models.config import SchemaMode
from browseruse_bench.models.failures import RejectedError
from browseruse_bench.models.prices import Counted
from browseruse_bench.models.schema import Schema
from browseruse_bench.models.spec import ModelSpec

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelResponse, UserContent
    from pydantic_ai.models import Model, ModelRequestParameters
    from pydantic_ai.settings import ModelSettings
    from pydantic_ai.usage import RequestUsage

PROMPTED = Path(__file__).with_name("prompted.md")
URLS = {
    "openai": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com",
    "google": "https://generativelanguage.googleapis.com",
    "openrouter": "https://openrouter.ai/api/v1",
}
"""Where a provider is asked unless a base URL is given; variables like OPENAI_BASE_URL, of which
no result would tell, are not looked at.
"""
CONNECT_S = 10.0
_MARKED = ("anthropic", "openrouter")
"""Providers that cache what is marked."""
_NO_TAGS = ("\0<think>", "\0</think>")
"""What no reply contains, so that its reasoning stays in it for `models.parse`."""


@dataclass(frozen=True, kw_only=True)
class How:
    """How a request is asked."""

    schema: Schema | None = None
    mode: SchemaMode = "native"
    """How it is held to the schema, if there is one."""
    name: str = "reply"
    """What the schema or tool is called."""
    params: Params = Params()
    fold_system: bool = False
    """Put the system text before the first user message: the endpoint knows no system role."""


@dataclass(frozen=True, kw_only=True)
class Said:
    """What came back."""

    text: str
    arguments: tuple[str, ...] = ()
    """Of calls of the tool, each as it came."""
    finish: Finish
    finish_word: str = ""
    """The provider's own word for it."""
    counted: Counted
    served: str | None = None
    """Which model the provider says that answered."""
    refusal: str = ""

    @property
    def raw(self) -> str:
        """All that it wrote, without reasoning that came apart from it."""
        return "\n".join(part for part in (self.text, *self.arguments) if part)


class Wire:
    """Sends requests of one model, in any event loop."""

    def __init__(self, spec: ModelSpec, *, transport: Any = None) -> None:
        """Nothing is loaded or opened yet.

        Args:
            spec: which model, where, with which key.
            transport: of httpx2: what requests go through in place of the network.
        """
        self._spec = spec
        self._transport = transport
        self._of_loop: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Model[Any]] = (
            weakref.WeakKeyDictionary()
        )

    def ready(self) -> None:
        """Load and make what the running loop's first request would have to wait for.

        Raises:
            ConfigError: a package is missing, or the model cannot be made.
        """
        self._model()

    async def say(self, messages: Sequence[Message], how: How) -> Said:
        """Send one request and wait for its reply; it is never sent again here.

        Raises:
            ConfigError: the model takes no such parameter, or the library is not installed.
            Exception: whatever the library raises; `models.failures` says what it means.
        """
        model = self._model()
        self._refuse_unsent(model, how)
        from pydantic_ai.direct import model_request

        response = await model_request(
            model,
            _messages(messages, how, mark=self._marks),
            model_settings=self._settings(messages, how),
            model_request_parameters=_parameters(how),
        )
        return _said(response, how)

    def _model(self) -> Model[Any]:
        loop = asyncio.get_running_loop()
        model = self._of_loop.get(loop)
        if model is None:
            try:
                model = self._of_loop[loop] = _build(self._spec, self._transport)
            except ImportError as error:
                raise ConfigError(
                    f"{self._spec.label}: models need more packages: "
                    f"pip install 'browseruse-bench[models]' ({error})"
                ) from error
        return model

    @property
    def _marks(self) -> bool:
        return self._spec.asking.prompt_cache and self._spec.provider in _MARKED

    def _settings(self, messages: Sequence[Message], how: How) -> ModelSettings:
        spec, params = self._spec, how.params
        settings: dict[str, Any] = {"timeout": spec.asking.timeout_s, "max_retries": 0}
        for name in ("max_tokens", "temperature", "top_p", "seed"):
            if (value := getattr(params, name)) is not None:
                settings[name] = value
        if params.reasoning is not None:
            if spec.provider == "openai-compatible":
                settings["openai_reasoning_effort"] = params.reasoning
            else:
                settings["thinking"] = False if params.reasoning == "none" else params.reasoning
        if spec.asking.extra_body:
            settings["extra_body"] = spec.asking.extra_body
        if self._marks:
            settings[f"{spec.provider}_cache_instructions"] = True
        if spec.provider == "openai" and spec.base_url is None and spec.asking.prompt_cache:
            settings["openai_prompt_cache_key"] = _prefix_key(messages)
        return cast("ModelSettings", settings)

    def _refuse_unsent(self, model: Model[Any], how: How) -> None:
        """Raise if a parameter would be left out: results would name one that was not used.

        Raises:
            ConfigError: it would.
            RejectedError: the model is known to have no such way to be held to a schema.
        """
        params = how.params
        given = set(params.as_json())
        profile = cast("dict[str, Any]", model.profile)
        needed = {"native": "supports_json_schema_output", "tool": "supports_tools"}.get(how.mode)
        if how.schema is not None and needed and not profile.get(needed, how.mode == "tool"):
            raise RejectedError(f"{self._spec.label}: it is not held to a schema by '{how.mode}'")
        unsent = given & model.unsupported_settings
        sampling = given & {"temperature", "top_p"}
        if profile.get("anthropic_disallows_sampling_settings") or _always_reasons(profile, params):
            unsent |= sampling
        thinks = profile.get("supports_thinking") or profile.get("thinking_always_enabled")
        if "reasoning" in given and not thinks and self._spec.provider != "openai-compatible":
            unsent.add("reasoning")
        if self._spec.asking.extra_body and "extra_body" in model.unsupported_settings:
            unsent.add("extra_body")
        if unsent:
            raise ConfigError(
                f"{self._spec.label} takes no {' and no '.join(sorted(unsent))} "
                f"(as {self._spec.provider}:{self._spec.name} is asked); leave it away"
            )


def system_text(messages: Sequence[Message]) -> str:
    """The text of the system messages, which come first.

    Raises:
        ConfigError: one comes later, or has a picture in it.
    """
    n_system = next((n for n, m in enumerate(messages) if m.role != "system"), len(messages))
    if any(message.role == "system" for message in messages[n_system:]):
        raise ConfigError("a request's system messages come first")
    if any(isinstance(part, Image) for m in messages[:n_system] for part in m.parts):
        raise ConfigError("a system message has no pictures")
    return "\n\n".join(message.text for message in messages[:n_system])


def schema_words(schema: Schema) -> str:
    """What an endpoint is told that knows no schemas."""
    written = json.dumps(schema, ensure_ascii=False, sort_keys=True)
    return Template(PROMPTED.read_text(encoding="utf-8")).substitute(schema=written).strip()


def _always_reasons(profile: dict[str, Any], params: Params) -> bool:
    """Whether an OpenAI model reasons in this request, and then takes no sampling parameters."""
    if not profile.get("openai_supports_reasoning"):
        return False
    efforts = profile.get("openai_reasoning_efforts")
    can_stop = profile.get("openai_supports_reasoning_effort_none", False)
    if efforts is not None:
        can_stop = "none" in efforts
    if params.reasoning is None:
        active = profile.get("thinking_enabled_by_default", False)
    else:
        active = params.reasoning != "none" or profile.get("thinking_always_enabled", False)
    return not can_stop or active


def _build(spec: ModelSpec, transport: Any) -> Model[Any]:
    """The library's model; every provider with our own client, address and key."""
    import httpx2
    from pydantic_ai.models import create_async_httpx2_client

    url = spec.base_url or URLS.get(spec.provider, "")
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=0)
    if transport is None and _on_this_machine(url):
        # With a transport of its own a client asks no proxy, which could not find the way here.
        transport = httpx2.AsyncHTTPTransport(limits=limits)
    client = create_async_httpx2_client(
        timeout=httpx2.Timeout(spec.asking.timeout_s, connect=CONNECT_S),
        limits=limits,
        transport=transport,
    )
    if spec.provider == "anthropic":
        from pydantic_ai.models.anthropic import AnthropicModel
        from pydantic_ai.providers.anthropic import AnthropicProvider

        anthropic = AnthropicProvider(api_key=spec.key, base_url=url, http_client=client)
        return AnthropicModel(spec.name, provider=anthropic)
    if spec.provider == "google":
        from pydantic_ai.models.google import GoogleModel
        from pydantic_ai.providers.google import GoogleProvider

        google = GoogleProvider(api_key=spec.key, base_url=url, http_client=client)
        return GoogleModel(spec.name, provider=google)
    return _build_openai(spec, url, client)


def _on_this_machine(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _build_openai(spec: ModelSpec, url: str, client: Any) -> Model[Any]:
    from openai import AsyncOpenAI
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.models.openrouter import OpenRouterModel
    from pydantic_ai.profiles.openai import OpenAIModelProfile
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider
    from pydantic_ai.providers.openrouter import OpenRouterProvider

    whole = OpenAIModelProfile(thinking_tags=_NO_TAGS)
    # What it really supports is found by asking it, not by what its name reminds of.
    anything = OpenAIModelProfile(
        thinking_tags=_NO_TAGS,
        supports_json_schema_output=True,
        supports_tools=True,
        supports_image_input=True,
        openai_supports_reasoning=False,
        openai_chat_supports_max_completion_tokens=False,
    )
    if spec.provider == "openai-compatible":
        own = OpenAICompatibleProvider(
            "openai-compatible", base_url=url, api_key=spec.key, http_client=client
        )
        return OpenAIChatModel(spec.name, provider=own, profile=anything)
    asked = AsyncOpenAI(base_url=url, api_key=spec.key, http_client=client, max_retries=0)
    if spec.provider == "openrouter":
        return OpenRouterModel(
            spec.name, provider=OpenRouterProvider(openai_client=asked), profile=anything
        )
    return OpenAIChatModel(spec.name, provider=OpenAIProvider(openai_client=asked), profile=whole)


def _messages(messages: Sequence[Message], how: How, *, mark: bool) -> list[ModelMessage]:
    """The conversation in the library's terms."""
    from pydantic_ai.messages import (
        ModelRequest,
        ModelResponse,
        SystemPromptPart,
        TextPart,
        UserPromptPart,
    )

    system = system_text(messages)
    turns = [message for message in messages if message.role != "system"]
    if not turns or turns[0].role != "user":
        raise ConfigError("a request begins with a user message, after system messages")
    found: list[ModelMessage] = []
    if system and not how.fold_system:
        found.append(ModelRequest(parts=[SystemPromptPart(system)]))
    for n, message in enumerate(turns):
        if message.role == "assistant":
            found.append(ModelResponse(parts=[TextPart(message.text)]))
            continue
        parts: list[str | Image] = list(message.parts)
        if n == 0 and system and how.fold_system:
            parts.insert(0, system)
        last = n == max(i for i, turn in enumerate(turns) if turn.role == "user")
        if last and how.schema is not None and how.mode == "prompted":
            parts.append(schema_words(how.schema))
        content = _content(parts, mark=mark and n == 0)
        only = content[0] if len(content) == 1 else None
        prompt = UserPromptPart(only if isinstance(only, str) else content)
        found.append(ModelRequest(parts=[prompt]))
    # One request with the system text and the first user message, as an agent would send it.
    if len(found) > 1 and isinstance(found[1], ModelRequest) and system and not how.fold_system:
        first, second = cast("ModelRequest", found[0]), found[1]
        found[:2] = [ModelRequest(parts=[*first.parts, *second.parts])]
    return found


def _content(parts: Sequence[str | Image], *, mark: bool) -> list[UserContent]:
    from pydantic_ai.messages import BinaryContent, CachePoint

    content: list[UserContent] = []
    for n, part in enumerate(parts):
        if mark and n == len(parts) - 1 and n > 0:
            content.append(CachePoint())
        if isinstance(part, Image):
            content.append(BinaryContent(data=part.content(), media_type=part.media_type))
        else:
            content.append(part)
    if mark and parts:
        content.append(CachePoint())
    return content


def _parameters(how: How) -> ModelRequestParameters:
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.output import OutputObjectDefinition
    from pydantic_ai.tools import ToolDefinition

    name = re.sub(r"[^A-Za-z0-9_-]", "_", how.name)[:64] or "reply"
    if how.schema is None or how.mode == "prompted":
        return ModelRequestParameters(output_mode="text")
    if how.mode == "native":
        wanted = OutputObjectDefinition(json_schema=how.schema, name=name)
        return ModelRequestParameters(output_mode="native", output_object=wanted)
    tool = ToolDefinition(
        name=name,
        description="Give the answer.",
        parameters_json_schema=how.schema,
        kind="output",
    )
    return ModelRequestParameters(output_mode="tool", output_tools=[tool], allow_text_output=False)


def _said(response: ModelResponse, how: How) -> Said:
    from pydantic_ai.messages import TextPart, ToolCallPart

    texts = [part.content for part in response.parts if isinstance(part, TextPart)]
    calls = [part.args for part in response.parts if isinstance(part, ToolCallPart)]
    details = response.provider_details or {}
    finish, word = _finish(response, how, details)
    return Said(
        text=_writable("".join(texts)),
        arguments=tuple(
            _writable(args if isinstance(args, str) else json.dumps(args or {}, ensure_ascii=False))
            for args in calls
        ),
        finish=finish,
        finish_word=word,
        counted=_counted(response.usage, details),
        served=response.model_name,
        refusal=str(details.get("refusal") or details.get("block_reason") or ""),
    )


def _finish(response: ModelResponse, how: How, details: dict[str, Any]) -> tuple[Finish, str]:
    word = str(details.get("finish_reason") or "")
    reason = response.finish_reason
    if reason == "error" or word == "error":
        raise ValueError(f"it ended with an error ({word})")
    if reason == "content_filter":
        return "refusal", word
    if reason == "tool_call":
        return ("stop" if how.mode == "tool" and how.schema is not None else "other"), word
    if reason is None and not word:
        # A stream that stopped, or a body that is no reply. (Where servers of the OpenAI wire
        # are known to leave it out, the library says `stop`.)
        raise ValueError("it does not say how it ended")
    return reason or "other", word


def _counted(usage: RequestUsage, details: dict[str, Any]) -> Counted:
    """Tokens, each once. The library counts a whole and its parts (input with what was cached
    and written, output with reasoning), whatever the provider's own way.
    """
    read, came = usage.input_tokens, usage.output_tokens
    cached, written = usage.cache_read_tokens, usage.cache_write_tokens
    charged = details.get("cost")
    if charged is not None and details.get("is_byok"):
        # With a key of one's own, OpenRouter charges its fee, and the provider the rest.
        upstream = details.get("upstream_inference_cost")
        charged = None if upstream is None else charged + upstream
    return Counted(
        uncached=max(0, read - cached - written),
        cached=cached,
        written=written,
        written_1h=usage.cache_write_1h_tokens,
        reasoning=min(usage.output_reasoning_tokens, came),
        output=max(0, came - usage.output_reasoning_tokens),
        charged_usd=float(charged) if isinstance(charged, int | float) else None,
        reported=not usage.unmeasured_requests and read + came > 0,
    )


def _prefix_key(messages: Sequence[Message]) -> str:
    """The same for requests with the same unchanging part, so that a provider with many
    machines sends them where it is cached.
    """
    first = next(n for n, message in enumerate(messages) if message.role == "user")
    stable = [*(m.as_json() for m in messages[:first])]
    stable.append(Message(role="user", parts=messages[first].parts[:-1]).as_json())
    return hashlib.sha256(json.dumps(stable, sort_keys=True).encode()).hexdigest()[:32]


def _writable(text: str) -> str:
    """The text; half of a surrogate pair, which no file can hold, is "?"."""
    return text.encode("utf-8", "replace").decode()
