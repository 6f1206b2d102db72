"""A request as a line of a batch file, and what came back for it as a reply.

Nothing here knows a provider's form. The line is what the same request would have sent alone,
caught on its way out; what came back is handed to the same code that reads a live reply. So a
model is asked in a batch exactly as it is asked otherwise, and believed by the same rules.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from browseruse_bench.errors import ConfigError
from browseruse_bench.models.base import Reply, Request
from browseruse_bench.models.batch.folder import Form
from browseruse_bench.models.config import SchemaMode
from browseruse_bench.models.failures import Patience
from browseruse_bench.models.probe import ProbeFile
from browseruse_bench.models.provider import ProviderModel
from browseruse_bench.models.schema import check_schema
from browseruse_bench.models.spec import ModelSpec
from browseruse_bench.models.wire import How, Wire

if TYPE_CHECKING:
    import httpx2

Json = dict[str, Any]
_FORMS: dict[str, Form] = {
    "openai": "openai",
    "openai-compatible": "openai",
    "openrouter": "openai",
    "anthropic": "anthropic",
}
_ANTHROPIC_STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""HTTP status that the API gives to an error where it is not in a batch."""


def form_of(spec: ModelSpec) -> Form:
    """Whose form the requests of a model have in a file.

    Raises:
        ConfigError: no such form is known.
    """
    form = _FORMS.get(spec.provider)
    if form is None:
        raise ConfigError(f"{spec.label}: {spec.provider} has no form of batch files known here")
    return form


def settled(
    spec: ModelSpec, mode: SchemaMode | None = None, cache: Path | None = None
) -> ModelSpec:
    """The model with everything said that a probe would find, so that none is made.

    The schema goes as `mode` says, as bubench.toml says, as a probe once found, natively with
    providers that have it, else as words in the prompt: what a batch cannot find out it takes
    in the way that any model understands.
    """
    known = ProbeFile(spec, cache).read().given(spec.asking)
    native = spec.provider in ("openai", "anthropic")
    mode = mode or spec.asking.schema_ or known.mode or ("native" if native else "prompted")
    said = {
        "schema_": mode,
        "images": known.images is not False,
        "system": known.system is not False,
    }
    return replace(spec, asking=spec.asking.model_copy(update=said))


@dataclass(frozen=True)
class Line:
    """A request as its provider takes it."""

    endpoint: str
    """Path below the host, as in /v1/chat/completions."""
    body: Json

    def as_json(self, key: str, form: Form) -> Json:
        """The line of a batch file."""
        if form == "anthropic":
            return {"custom_id": key, "params": self.body}
        return {"custom_id": key, "method": "POST", "url": self.endpoint, "body": self.body}


class Codec:
    """Makes lines of requests, and replies of answers; one at a time."""

    def __init__(self, spec: ModelSpec) -> None:
        """Speak as a model does; `spec` is from `settled`. Its key is not needed: a line has
        none.
        """
        spec = replace(spec, key="none")
        self._spec = spec
        self._sent: httpx2.Request | None = None
        self._answer: Answer | None = None
        self._wire = Wire(spec, transport=_transport(self._handle))
        self._model = ProviderModel(spec, patience=Patience(retries=0), n_again=0, wire=self._wire)

    async def line(self, request: Request) -> Line:
        """The line of a request.

        Raises:
            ConfigError: the model takes no such request.
        """
        if request.schema_ is not None:
            check_schema(request.schema_)
        asking = self._spec.asking
        if request.images and asking.images is False:
            raise ConfigError(f"{self._spec.label} reads no pictures")
        how = How(
            schema=request.schema_,
            mode=asking.schema_ or "prompted",
            name=request.schema_name,
            params=asking.params.model_copy(update=request.params.model_dump(exclude_none=True)),
            fold_system=asking.system is False,
        )
        self._sent = self._answer = None
        try:
            await self._wire.say(request.messages, how)
        except ConfigError:
            raise
        # Whatever the library makes of our answer; if nothing was sent, it is its own objection.
        except Exception as error:
            if self._sent is None:
                raise ConfigError(f"{self._spec.label}: {error}") from error
        assert self._sent is not None
        body = cast("Json", json.loads(self._sent.content))
        body.pop("stream", None)
        return Line(endpoint=urlsplit(str(self._sent.url)).path, body=body)

    async def reply(self, request: Request, answer: Answer) -> Reply:
        """The reply that an answer is, read and checked as a live one.

        Raises:
            CallError: it gives nothing to use; its subclass says why.
        """
        self._answer = answer
        return await self._model.ask(_without_pictures(request), purpose="batch")

    def _handle(self, sent: httpx2.Request) -> httpx2.Response:
        import httpx2

        self._sent = sent
        if self._answer is None:
            return httpx2.Response(418, json={"error": {"message": "caught"}})
        return httpx2.Response(self._answer.status, json=self._answer.body)


@dataclass(frozen=True)
class Answer:
    """What came back for one line."""

    key: str
    status: int
    """As HTTP has it: 200 is a reply."""
    body: Json
    served: str | None = None
    """Which model says that it answered."""
    gone: str | None = None
    """Why it was not asked at all: the batch expired or was cancelled, say."""


def answer_of(line: Json) -> Answer:
    """What a line of an answers file says, in either form.

    Raises:
        ValueError: it has neither form.
    """
    key = line.get("custom_id")
    if not isinstance(key, str):
        raise ValueError("it has no custom_id")
    result: Any = line.get("result")
    if isinstance(result, dict):
        return _anthropic(key, cast("Json", result))
    response: Any = line.get("response")
    if isinstance(response, dict):
        return _openai(key, cast("Json", response))
    error: Any = line.get("error")
    if isinstance(error, dict):
        fields = cast("Json", error)
        return Answer(key, 0, {}, gone=f"{fields.get('code')}: {fields.get('message')}")
    raise ValueError("it has neither a response nor a result")


def _openai(key: str, response: Json) -> Answer:
    status, body = response.get("status_code"), response.get("body")
    if not isinstance(status, int) or not isinstance(body, dict):
        raise ValueError("its response has no status_code or no body")
    fields = cast("Json", body)
    return Answer(key, status, fields, served=_text(fields.get("model")))


def _anthropic(key: str, result: Json) -> Answer:
    kind = result.get("type")
    if kind == "succeeded":
        message: Any = result.get("message")
        if not isinstance(message, dict):
            raise ValueError("its result has no message")
        fields = cast("Json", message)
        return Answer(key, 200, fields, served=_text(fields.get("model")))
    if kind == "errored":
        error: Any = result.get("error")
        body = cast("Json", error) if isinstance(error, dict) else {}
        inner: Any = body.get("error", body)
        name = _text(cast("Json", inner).get("type")) if isinstance(inner, dict) else None
        whole = body if "error" in body else {"type": "error", "error": body}
        return Answer(key, _ANTHROPIC_STATUS.get(name or "", 500), whole)
    if kind in ("canceled", "expired"):
        return Answer(key, 0, {}, gone=str(kind))
    raise ValueError(f"its result is {kind!r}")


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _without_pictures(request: Request) -> Request:
    """What of a request matters for reading its reply."""
    messages = [
        message.model_copy(
            update={"parts": tuple(p for p in message.parts if isinstance(p, str)) or ("",)}
        )
        for message in request.messages
    ]
    return request.model_copy(update={"messages": tuple(messages)})


def _transport(handler: Callable[[httpx2.Request], httpx2.Response]) -> Any:
    import httpx2

    return httpx2.MockTransport(handler)
