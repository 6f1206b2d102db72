"""One call of an agent: what it asks, read and held to its token's model, and what came of it."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, cast

from browseruse_bench.models.gateway.bodies import request_id
from browseruse_bench.models.gateway.wires import Asked, Json, Wire
from browseruse_bench.models.spec import ModelSpec
from browseruse_bench.models.spending import Budget

MAX_REPLY_BYTES = 64 * 2**20

End = Literal[
    "pending",
    "answered",
    "refused",  # the provider answered with an error
    "failed",  # the provider could not be reached, did not answer, or broke off
    "left",  # the client went away, or its attempt was over
    "denied",  # the gateway itself said no
]


Outage = Literal["account", "limit", "down"]
"""What keeps a provider from answering: our key or account, its limits, or its own failure."""


class Denied(Exception):  # noqa: N818  it is an answer to a client, not an error of ours
    """The gateway does not carry this request out."""

    def __init__(
        self, status: int, message: str, code: str, *, retry_after_s: float | None = None
    ) -> None:
        """Say why, and from when on it may be tried again."""
        super().__init__(message)
        self.status = status
        self.code = code
        self.retry_after_s = retry_after_s


@dataclass(eq=False, kw_only=True)
class Call:
    """A call under way; the gateway fills in what comes of it."""

    wire: Wire
    path: str
    asked: Asked
    body: Json
    """As the client sent it."""
    sent_body: Json
    """As it is sent on."""
    content: bytes
    """The bytes that are sent on: the client's own, unless something had to change."""
    id: str
    """Identity of what was asked."""
    strip_usage: bool = False
    """The client did not ask for the event that the gateway counts by."""
    began: float = field(default_factory=time.monotonic)
    asked_at: str = ""

    apart: str | None = None
    """What of it is not paid by its own tokens."""
    most_prompt: int = 0
    """Tokens."""
    most_usd: float | None = None
    capped_by: str | None = None
    """The limit for which the gateway said how much the answer may have."""
    held: list[tuple[Budget, str]] = field(default_factory=list[tuple[Budget, str]])
    """Where money is held for it, and under which id."""

    end: End = "pending"
    why: str = ""
    sent: bool = False
    """The provider may have got it."""
    status: int | None = None
    """Of the provider's answer."""
    seconds: float = 0.0
    reply: bytearray = field(default_factory=bytearray)
    """The answer's body without secrets, as far as it came."""
    streamed: bool = False
    usage: Json | None = None
    """The provider's count, as it came."""
    final: bool = False
    """The count is the whole call's."""
    truncated: bool = False
    replayed: bool = False
    """What is passed on was said to an equal request, earlier."""
    settled: bool = False
    """It has been counted."""
    outage: Outage | None = None
    """Why nothing came, where that was not for what was asked."""

    @property
    def n_messages(self) -> int:
        """How many turns it has, under whatever name its wire gives them."""
        found = (self.body.get(name) for name in ("messages", "input", "contents"))
        turns = next((turns for turns in found if turns is not None), ())
        return len(cast("list[Any]", turns)) if isinstance(turns, list) else 1

    def ended(self, end: End, why: str) -> None:
        """It ended so, unless it had ended before."""
        if self.end == "pending":
            self.end, self.why = end, why

    def answered(self) -> None:
        """All of the answer is there; one that tells of a failure is none."""
        if self.end == "pending":
            self.end, self.outage = ("failed", "down") if self.why else ("answered", None)

    def change(self, body: Json) -> None:
        """Send this on instead of what the client sent."""
        self.sent_body = body
        self.content = json.dumps(body, separators=(",", ":")).encode()

    def heard(self, said: bytes) -> None:
        """Note what an event or a whole reply tells of tokens, length and failures.

        Nothing of what a provider may say stops a call.
        """
        value = parsed(said)
        if value is None:
            return
        usage = self.wire.usage(value)
        if usage is not None:
            # A stream of Anthropic tells the prompt's tokens first and the reply's at the end.
            known = {name: part for name, part in usage.items() if part is not None}
            self.usage = {**(self.usage or {}), **known}
            self.final = self.final or self.wire.final(value)
        self.truncated = self.truncated or self.wire.truncated(value)
        failure = self.wire.failure(value)
        if failure is not None and self.end == "pending":
            self.why = failure[:500]


def parsed(text: bytes) -> Json | None:
    """The JSON object that a provider sent; None where it sent something else."""
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return cast("Json", value) if isinstance(value, dict) else None


def read_call(wire: Wire, path: str, content: bytes, spec: ModelSpec) -> Call:
    """The call that a request's body asks for.

    Raises:
        Denied: it is no JSON object, two readers could read it differently, or it asks for
            another model than the token's.
    """
    body = _read(content)
    try:
        asked = wire.asked(body, path)
    except ValueError as error:
        raise Denied(400, str(error), "invalid_request") from None
    for name in wire.elsewhere:
        if body.get(name) not in (None, False, [], {}):
            raise Denied(
                400,
                f"{name}: not passed on, because another model or place would answer or be paid; "
                "leave it out",
                "not_passed_on",
            )
    call = Call(
        id=request_id(wire.name, path, content), wire=wire, path=path, asked=asked, body=body, sent_body=body, content=content,
        asked_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )  # fmt: skip
    changed = dict(body)
    if asked.model is not None or "model" in body:
        if asked.model not in (spec.name, spec.label):
            raise Denied(
                404,
                f"model '{str(body['model'])[:100]}': this token is for '{spec.name}'; ask for it "
                f"as '{spec.name}'",
                "model_not_found",
            )
        changed["model"] = spec.name
    elif wire.needs_model:
        raise Denied(400, f"model: missing; this token is for '{spec.name}'", "invalid_request")
    if asked.stream and wire.asks_for_usage:
        options = body.get("stream_options")
        given = cast("Json", options) if isinstance(options, dict) else {}
        call.strip_usage = given.get("include_usage") is not True
        changed["stream_options"] = {**given, "include_usage": True}
    if changed != body:
        call.change(changed)
    return call


def _read(content: bytes) -> Json:
    try:
        body: Any = json.loads(
            content.decode("utf-8"), object_pairs_hook=_without_doubles, parse_constant=_no_number
        )
    except (ValueError, RecursionError) as error:
        raise Denied(400, f"the body is not JSON: {error}", "invalid_request") from None
    if not isinstance(body, dict):
        raise Denied(400, "the body is not a JSON object", "invalid_request")
    return cast("Json", body)


def _without_doubles(pairs: list[tuple[str, Any]]) -> Json:
    found = dict(pairs)
    if len(found) != len(pairs):
        # The provider could read the other one: a model that was not checked, say.
        raise ValueError("a name occurs twice in one object")
    return found


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} is no JSON")
