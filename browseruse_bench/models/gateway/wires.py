"""The ways in which models are asked: where a call goes, who pays for it, what it used.

A wire reads as little of a call as it must: which model, whether it streams, how much it may
answer, and afterwards the provider's own count. Everything else, tools and pictures included,
passes as it came. Four are known:

    POST /v1/chat/completions                 openai, openrouter, google, openai-compatible
    POST /v1/responses                        openai, openrouter, openai-compatible
    POST /v1/messages                         anthropic
    POST /v1beta/models/NAME:generateContent  google (and :streamGenerateContent?alt=sse)

Nothing is translated from one to another: an agent that is asked over another wire than its
own would be another agent.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast
from urllib.parse import quote

from browseruse_bench.models.prices import Counted
from browseruse_bench.models.spec import ModelSpec

Json = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What the gateway must know of a request."""

    model: str | None
    stream: bool
    max_output: int | None
    """Tokens that each choice may have; None: the request does not say."""
    n_choices: int = 1


class Wire(ABC):
    """One way to ask a model."""

    name: ClassVar[str]
    providers: ClassVar[tuple[str, ...]]
    looks_like: ClassVar[str]
    """How its paths begin, whatever the model."""
    needs_model: ClassVar[bool] = True
    """Whether a request names its model in its body."""
    asks_for_usage: ClassVar[bool] = False
    """Whether a stream tells its tokens only where the request asks for them."""
    elsewhere: ClassVar[tuple[str, ...]] = ()
    """Fields of a request by which another model would answer or be paid."""
    dearer: ClassVar[tuple[str, ...]] = ()
    """Fields by which a call costs something else than its tokens, or other tokens than its
    own bytes."""

    @abstractmethod
    def paths(self, spec: ModelSpec) -> tuple[str, ...]:
        """The paths of this gateway at which it is asked."""

    @abstractmethod
    def upstream(self, spec: ModelSpec, path: str) -> str:
        """The provider's address for what was asked at `path`."""

    @abstractmethod
    def headers(self, key: str | None) -> Mapping[str, str]:
        """The headers that hold the provider's key."""

    @abstractmethod
    def asked(self, body: Json, path: str) -> Asked:
        """What a request asks for.

        Raises:
            ValueError: a field that decides about it is not what it must be; says which.
        """

    @abstractmethod
    def capped(self, body: Json, spec: ModelSpec, max_output: int) -> Json:
        """The request, which may have at most so many tokens of output."""

    @abstractmethod
    def counted(self, usage: Json, spec: ModelSpec) -> Counted:
        """The provider's count, each token in one place."""

    @abstractmethod
    def error(self, status: int, message: str, code: str) -> Json:
        """An error as this wire's clients read it."""

    def usage(self, said: Json) -> Json | None:
        """The provider's count, if a reply or an event of a stream has one."""
        return _object(said, "usage")

    def final(self, said: Json) -> bool:
        """Whether the count in an event of a stream is the whole call's."""
        del said
        return True

    def last(self, data: bytes) -> bool:
        """Whether the data of an event is the last of a stream."""
        return data == b"[DONE]"

    def failure(self, said: Json) -> str | None:
        """Why the provider failed, if a reply or an event of a stream says so."""
        error = said.get("error")
        if isinstance(error, dict):
            return str(cast("Json", error).get("message", error))
        return str(error) if error else None

    def truncated(self, said: Json) -> bool:
        """Whether a reply or an event says that it was cut at its greatest length."""
        return any(choice.get("finish_reason") == "length" for choice in _objects(said, "choices"))

    def apart(self, body: Json) -> str | None:
        """What of a request is not paid by its own tokens, if there is something."""
        for name in self.dearer:
            if body.get(name) not in (None, False, [], {}):
                return name
        tier = body.get("service_tier")
        if tier not in (None, "auto", "default", "standard_only", "flex"):
            return f"service_tier {tier}"
        for tool in _objects(body, "tools"):
            if (kind := self.hosted(tool)) is not None:
                return f"the tool {kind}"
        return None

    def hosted(self, tool: Json) -> str | None:
        """The name of a tool that the provider carries out itself, if it is one."""
        kind = str(tool.get("type", "function"))
        ours = ("function", "custom", "computer", "local_shell", "apply_patch")
        return None if kind.startswith(ours) else kind

    def queries(self, path: str) -> Mapping[str, str]:
        """The query that the provider is asked with, by name."""
        del path
        return {}


_BASES: dict[str, str] = {
    "openai": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com",
    "openrouter": "https://openrouter.ai/api/v1",
    "google": "https://generativelanguage.googleapis.com",
}


def base_of(spec: ModelSpec) -> str:
    """The provider's address, without a slash at its end."""
    return (spec.base_url or _BASES[spec.provider]).rstrip("/")


class OpenAIChat(Wire):
    """Chat completions, as OpenAI began them and many others serve them."""

    name = "OpenAI chat completions"
    looks_like = "/v1/chat/"
    asks_for_usage = True
    providers = ("openai", "openrouter", "google", "openai-compatible")
    elsewhere = ("models", "route", "fallbacks", "preset", "base_url", "api_base", "api_key")
    dearer = ("web_search_options", "plugins", "audio")

    def paths(self, spec: ModelSpec) -> tuple[str, ...]:
        return ("/v1/chat/completions",)

    def upstream(self, spec: ModelSpec, path: str) -> str:
        inner = "/v1beta/openai" if spec.provider == "google" else ""
        return f"{base_of(spec)}{inner}/chat/completions"

    def headers(self, key: str | None) -> Mapping[str, str]:
        return {} if key is None else {"authorization": f"Bearer {key}"}

    def asked(self, body: Json, path: str) -> Asked:
        # Which of the two counts depends on the server.
        limits = _number(body, "max_completion_tokens"), _number(body, "max_tokens")
        return Asked(
            model=_text(body, "model"),
            stream=_flag(body, "stream"),
            max_output=max((n for n in limits if n is not None), default=None),
            n_choices=_number(body, "n") or 1,
        )

    def capped(self, body: Json, spec: ModelSpec, max_output: int) -> Json:
        # Reasoning models of OpenAI refuse the old name, other servers do not know the new one.
        rest = {k: v for k, v in body.items() if k not in ("max_tokens", "max_completion_tokens")}
        new = spec.provider == "openai" or "max_completion_tokens" in body
        return {**rest, "max_completion_tokens" if new else "max_tokens": max_output}

    def final(self, said: Json) -> bool:
        # Some servers count along with every event.
        choices = _objects(said, "choices")
        return not choices or any(choice.get("finish_reason") for choice in choices)

    def counted(self, usage: Json, spec: ModelSpec) -> Counted:
        prompt, reply = _count(usage, "prompt_tokens"), _count(usage, "completion_tokens")
        cached = _count(_object(usage, "prompt_tokens_details"), "cached_tokens")
        reasoning = _count(_object(usage, "completion_tokens_details"), "reasoning_tokens")
        counted = _apart(prompt=prompt, cached=cached, reply=reply, reasoning=reasoning)
        charged = usage.get("cost") if spec.provider == "openrouter" else None
        if isinstance(charged, (int, float)) and not isinstance(charged, bool) and charged >= 0:
            return replace(counted, charged_usd=float(charged))
        return counted

    def error(self, status: int, message: str, code: str) -> Json:
        kind = "invalid_request_error" if status < 429 else "server_error"
        return {"error": {"message": message, "type": kind, "param": None, "code": code}}


class OpenAIResponses(OpenAIChat):
    """OpenAI's responses."""

    name = "OpenAI responses"
    looks_like = "/v1/responses"
    asks_for_usage = False
    providers = ("openai", "openrouter", "openai-compatible")
    elsewhere = (*OpenAIChat.elsewhere, "background", "prompt")
    """A reply that is made in the background is fetched by calls that nobody could bind to
    this token; a stored prompt may name another model."""
    dearer = ("previous_response_id", "conversation")

    def paths(self, spec: ModelSpec) -> tuple[str, ...]:
        return ("/v1/responses",)

    def upstream(self, spec: ModelSpec, path: str) -> str:
        return f"{base_of(spec)}/responses"

    def asked(self, body: Json, path: str) -> Asked:
        return Asked(
            model=_text(body, "model"),
            stream=_flag(body, "stream"),
            max_output=_number(body, "max_output_tokens"),
        )

    def capped(self, body: Json, spec: ModelSpec, max_output: int) -> Json:
        return {**body, "max_output_tokens": max_output}

    def usage(self, said: Json) -> Json | None:
        return _object(said, "usage") or _object(_object(said, "response"), "usage")

    def final(self, said: Json) -> bool:
        return True

    def last(self, data: bytes) -> bool:
        ends = (b'"response.completed"', b'"response.incomplete"', b'"response.failed"')
        return any(end in data[:100] for end in ends)

    def failure(self, said: Json) -> str | None:
        if said.get("type") == "error":
            return str(said.get("message") or said.get("error"))
        return super().failure(_object(said, "response") or said)

    def truncated(self, said: Json) -> bool:
        reply = _object(said, "response") or said
        reason = (_object(reply, "incomplete_details") or {}).get("reason")
        return bool(reason == "max_output_tokens")

    def counted(self, usage: Json, spec: ModelSpec) -> Counted:
        return _apart(
            prompt=_count(usage, "input_tokens"),
            cached=_count(_object(usage, "input_tokens_details"), "cached_tokens"),
            reply=_count(usage, "output_tokens"),
            reasoning=_count(_object(usage, "output_tokens_details"), "reasoning_tokens"),
        )


class AnthropicMessages(Wire):
    """Anthropic's messages."""

    name = "Anthropic messages"
    looks_like = "/v1/messages"
    providers = ("anthropic",)
    elsewhere = ("fallbacks", "base_url", "api_base", "api_key")
    dearer = ("mcp_servers", "container", "inference_geo", "speed")

    def paths(self, spec: ModelSpec) -> tuple[str, ...]:
        return ("/v1/messages",)

    def upstream(self, spec: ModelSpec, path: str) -> str:
        return f"{base_of(spec)}/v1/messages"

    def headers(self, key: str | None) -> Mapping[str, str]:
        return {} if key is None else {"x-api-key": key}

    def asked(self, body: Json, path: str) -> Asked:
        return Asked(
            model=_text(body, "model"),
            stream=_flag(body, "stream"),
            max_output=_number(body, "max_tokens"),
        )

    def capped(self, body: Json, spec: ModelSpec, max_output: int) -> Json:
        return {**body, "max_tokens": max_output}

    def usage(self, said: Json) -> Json | None:
        return _object(said, "usage") or _object(_object(said, "message"), "usage")

    def final(self, said: Json) -> bool:
        return said.get("type") != "message_start"

    def last(self, data: bytes) -> bool:
        return b'"message_stop"' in data[:100]

    def truncated(self, said: Json) -> bool:
        reply = _object(said, "delta") or said
        return reply.get("stop_reason") == "max_tokens"

    def hosted(self, tool: Json) -> str | None:
        # The tools that Anthropic defines and the client carries out have dated types, too.
        kind = str(tool.get("type", "custom"))
        ours = ("custom", "bash_", "text_editor_", "computer_", "memory_")
        return None if kind.startswith(ours) else kind

    def counted(self, usage: Json, spec: ModelSpec) -> Counted:
        return Counted(
            uncached=_count(usage, "input_tokens"),
            cached=_count(usage, "cache_read_input_tokens"),
            written=_count(usage, "cache_creation_input_tokens"),
            written_1h=_count(_object(usage, "cache_creation"), "ephemeral_1h_input_tokens"),
            output=_count(usage, "output_tokens"),
        )

    def error(self, status: int, message: str, code: str) -> Json:
        kinds = {
            400: "invalid_request_error", 401: "authentication_error", 402: "billing_error",
            403: "permission_error", 404: "not_found_error", 413: "request_too_large",
            429: "rate_limit_error",
        }  # fmt: skip
        kind = kinds.get(status, "invalid_request_error" if status < 500 else "api_error")
        return {"type": "error", "error": {"type": kind, "message": message, "code": code}}


class Gemini(Wire):
    """Google's own generateContent."""

    name = "Gemini generateContent"
    looks_like = "/v1beta/models/"
    needs_model = False
    providers = ("google",)
    elsewhere = ("model", "base_url", "api_base", "api_key")
    dearer = ("cachedContent", "cached_content")

    def paths(self, spec: ModelSpec) -> tuple[str, ...]:
        at = f"/v1beta/models/{quote(spec.name)}"
        return (f"{at}:generateContent", f"{at}:streamGenerateContent")

    def upstream(self, spec: ModelSpec, path: str) -> str:
        return f"{base_of(spec)}{path}"

    def headers(self, key: str | None) -> Mapping[str, str]:
        return {} if key is None else {"x-goog-api-key": key}

    def asked(self, body: Json, path: str) -> Asked:
        wanted = _object(body, "generationConfig") or {}
        return Asked(
            model=None,
            stream=path.endswith(":streamGenerateContent"),
            max_output=_number(wanted, "maxOutputTokens"),
            n_choices=_number(wanted, "candidateCount") or 1,
        )

    def capped(self, body: Json, spec: ModelSpec, max_output: int) -> Json:
        wanted = {**(_object(body, "generationConfig") or {}), "maxOutputTokens": max_output}
        return {**body, "generationConfig": wanted}

    def usage(self, said: Json) -> Json | None:
        return _object(said, "usageMetadata")

    def last(self, data: bytes) -> bool:
        return False

    def final(self, said: Json) -> bool:
        return any("finishReason" in candidate for candidate in _objects(said, "candidates"))

    def truncated(self, said: Json) -> bool:
        return any(c.get("finishReason") == "MAX_TOKENS" for c in _objects(said, "candidates"))

    def hosted(self, tool: Json) -> str | None:
        ours = ("functionDeclarations", "function_declarations")
        return next((name for name in tool if name not in ours), None)

    def counted(self, usage: Json, spec: ModelSpec) -> Counted:
        prompt = _count(usage, "promptTokenCount") + _count(usage, "toolUsePromptTokenCount")
        reply, thought = _count(usage, "candidatesTokenCount"), _count(usage, "thoughtsTokenCount")
        cached = _count(usage, "cachedContentTokenCount")
        return _apart(prompt=prompt, cached=cached, reply=reply + thought, reasoning=thought)

    def error(self, status: int, message: str, code: str) -> Json:
        names = {
            401: "UNAUTHENTICATED", 402: "RESOURCE_EXHAUSTED", 403: "PERMISSION_DENIED",
            404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED",
        }  # fmt: skip
        name = names.get(status, "INVALID_ARGUMENT" if status < 500 else "UNAVAILABLE")
        error = {"code": status, "message": message, "status": name, "reason": code}
        return {"error": error}

    def queries(self, path: str) -> Mapping[str, str]:
        return {"alt": "sse"} if path.endswith(":streamGenerateContent") else {}


WIRES: tuple[Wire, ...] = (OpenAIChat(), OpenAIResponses(), AnthropicMessages(), Gemini())


def wires_of(provider: str) -> tuple[Wire, ...]:
    """The wires over which a provider's models are asked; none for scripted ones."""
    return tuple(wire for wire in WIRES if provider in wire.providers)


def _apart(*, prompt: int, cached: int, reply: int, reasoning: int) -> Counted:
    """A count whose prompt has the cached tokens, and whose reply the reasoning, in it."""
    cached, reasoning = min(cached, prompt), min(reasoning, reply)
    return Counted(
        uncached=prompt - cached, cached=cached, reasoning=reasoning, output=reply - reasoning
    )


def _object(said: Json | None, name: str) -> Json | None:
    value = (said or {}).get(name)
    return cast("Json", value) if isinstance(value, dict) else None


def _objects(said: Json, name: str) -> list[Json]:
    value = said.get(name)
    if not isinstance(value, list):
        return []
    return [cast("Json", part) for part in cast("list[Any]", value) if isinstance(part, dict)]


def _text(said: Json, name: str) -> str | None:
    value = said.get(name)
    return value if isinstance(value, str) else None


def _number(said: Json, name: str) -> int | None:
    """A whole number above 0; None where there is none.

    Raises:
        ValueError: it is something else, which a provider may read as whatever it likes.
    """
    value = said.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"{name}: must be a whole number from 1")
    return value


def _flag(said: Json, name: str) -> bool:
    value = said.get(name)
    if value is not None and not isinstance(value, bool):
        raise ValueError(f"{name}: must be true or false")
    return bool(value)


def _count(said: Json | None, name: str) -> int:
    value = (said or {}).get(name)
    if isinstance(value, bool) or not isinstance(value, int):
        return 0
    return max(0, value)
