"""One call to the provider and back: the key goes in, nothing of it comes out.

What a client sends is passed on by lists of what may pass, never by lists of what may not. A
stream is passed on event by event as it comes. The gateway asks once: how often is tried again
is the agent's affair, and what is counted. Only what the provider says of its limits is kept
for all: after a 429 nothing further is sent under the same key until its Retry-After is over.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Protocol

from browseruse_bench.models.gateway.call import (
    MAX_REPLY_BYTES,
    Call,
    Denied,
    Outage,
    parsed,
)
from browseruse_bench.models.gateway.sse import MAX_EVENT_BYTES, Events, data_of
from browseruse_bench.models.limits import Limiter
from browseruse_bench.models.spec import ModelSpec
from browseruse_bench.store.redact import Redactor

if TYPE_CHECKING:
    import httpx

CONNECT_S = 15.0
SILENCE_S = 600.0
"""The longest silence of a provider: a reasoning model that does not stream thinks for minutes."""
PAUSE_S = 10.0
"""How long a key rests after a 429 that says no time."""
LONGEST_PAUSE_S = 600.0
LONGEST_WAIT_S = 30.0
"""A call waits so long for a key that rests; where it rests longer, the client is told at once."""

TO_PROVIDER = frozenset(
    {"accept", "anthropic-version", "anthropic-beta", "openai-beta", "http-referer", "x-title"}
)
"""Headers of a client that reach the provider."""
TO_CLIENT = frozenset(
    {"content-type", "retry-after", "retry-after-ms", "x-should-retry", "x-request-id",
     "request-id", "openai-processing-ms", "openai-version"}
)  # fmt: skip
"""Headers of a provider that reach the client, beside those of its rate limits."""
_LIMIT_HEADERS = ("x-ratelimit-", "anthropic-ratelimit-")

OUTAGES: Mapping[int, Outage] = {
    401: "account",
    402: "account",
    404: "account",
    408: "down",
    429: "limit",
}
"""Statuses below 500 that are not the request's fault. A 403 may be an answer to what was said."""


class Client(Protocol):
    """Whoever asked: an answer is one `start`, pieces, and an `end`."""

    async def start(self, status: int, headers: Sequence[tuple[str, str]]) -> None:
        """Send the status and the headers."""
        ...

    async def piece(self, content: bytes) -> None:
        """Send a piece of the body at once."""
        ...

    async def finish(self) -> None:
        """Send the end of the body; without it the client sees that the answer was cut."""
        ...


class Way(Protocol):
    """What carries a call out."""

    async def forward(
        self,
        call: Call,
        headers: Mapping[str, str],
        client: Client,
        settle: Callable[[], Awaitable[None]],
    ) -> None:
        """Get an answer and pass it on; `call` tells how that ended. It is settled before the
        last of it is passed on.

        Raises:
            Denied: nothing came that could be passed on; nothing was sent to the client.
            Broken: it broke off after the client had been sent a part.
        """
        ...


class Cleaner:
    """Takes the values of secrets out of what a provider says and what is written down."""

    def __init__(self, values: Iterable[str]) -> None:
        """Know these values, and the secrets of this process."""
        self.redactor = Redactor.of_environment(more=values)

    def sample(self, content: bytes) -> bytes:
        """A model's words, which nobody may change: without the values, otherwise as they are."""
        return self.redactor.own_bytes(content)

    def error(self, content: bytes) -> bytes:
        """An error, in whatever spelling: without the values and without shapes of secrets."""
        value = parsed(content)
        if value is None:
            return self.redactor.said_bytes(content)
        return json.dumps(self.redactor.said_value(value), separators=(",", ":")).encode()

    def text(self, text: str) -> str:
        """A header, or a reason."""
        return self.redactor.said(text)


class Broken(Exception):  # noqa: N818  it is passed on to a client as a cut, not raised to a user
    """The answer broke off after a part of it had been sent."""


@dataclass(frozen=True, kw_only=True)
class Upstream:
    """The way to one model's provider."""

    spec: ModelSpec
    http: httpx.AsyncClient
    limiter: Limiter
    cleaner: Cleaner

    async def forward(
        self,
        call: Call,
        headers: Mapping[str, str],
        client: Client,
        settle: Callable[[], Awaitable[None]],
    ) -> None:
        """Ask the provider and pass on what it says; see `Way.forward`."""
        rests_s = self.limiter.paused_s
        if rests_s > LONGEST_WAIT_S:
            call.end, call.outage = "failed", "limit"
            call.why = f"the provider's limit is reached; its key rests for another {rests_s:.0f} s"
            raise Denied(429, call.why, "rate_limit", retry_after_s=rests_s)
        expected = call.most_prompt // _BOUND_OVER_COUNT + min(call.asked.max_output or 500, 500)
        async with self.limiter.slot(expected) as slot:
            try:
                try:
                    async with self._asked(call, headers) as response:
                        await self._pass_on(call, response, client, settle)
                except _UnknownOption:
                    async with self._asked(call, headers) as response:
                        await self._pass_on(call, response, client, settle)
            finally:
                if call.usage is not None:
                    slot.used(call.wire.counted(call.usage, self.spec).total)

    @asynccontextmanager
    async def _asked(
        self, call: Call, headers: Mapping[str, str]
    ) -> AsyncGenerator[httpx.Response]:
        import httpx

        silence_s = max(SILENCE_S, self.spec.asking.timeout_s)
        request = self.http.build_request(
            "POST",
            call.wire.upstream(self.spec, call.path),
            content=call.content,
            params=dict(call.wire.queries(call.path)) or None,
            headers={
                **{name: value for name, value in headers.items() if name in TO_PROVIDER},
                "content-type": "application/json",
                "accept-encoding": "identity",
                **call.wire.headers(self.spec.key),
            },
            timeout=httpx.Timeout(silence_s, connect=CONNECT_S, pool=None),
        )
        call.sent = True
        try:
            response = await self.http.send(request, stream=True)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            call.sent = False
            raise _failed(call, 502, f"the provider cannot be reached: {_name(error)}") from None
        except httpx.TimeoutException as error:
            raise _failed(call, 504, f"the provider did not answer: {_name(error)}") from None
        except httpx.HTTPError as error:
            raise _failed(call, 502, f"the provider broke off: {_name(error)}") from None
        try:
            yield response
        except (httpx.HTTPError, _TooLong) as error:
            if call.settled:
                return  # all of the answer is there
            denied = _failed(call, 502, f"the provider broke off: {_name(error)}")
            raise (Broken(call.why) if call.streamed else denied) from None
        finally:
            await response.aclose()

    async def _pass_on(
        self,
        call: Call,
        response: httpx.Response,
        client: Client,
        settle: Callable[[], Awaitable[None]],
    ) -> None:
        call.status = response.status_code
        if 300 <= response.status_code < 400:
            why = f"the provider answered with status {response.status_code}, which leads elsewhere"
            raise _failed(call, 502, why)
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if response.status_code < 300 and kind == "text/event-stream":
            await self._pass_on_stream(call, response, client, settle)
            return
        content = await self._whole(call, response)
        if call.strip_usage and response.status_code in (400, 422) and b"stream_options" in content:
            # Not every server knows the field that was added: then nobody tells the count.
            self._without_option(call)
            raise _UnknownOption
        refused = response.status_code >= 400
        content = self.cleaner.error(content) if refused else self.cleaner.sample(content)
        call.reply[:] = content
        call.heard(content)
        if refused:
            self._note_refusal(call, response)
        else:
            call.answered()
        await settle()
        headers = [*self._to_client(response.headers), ("content-length", str(len(content)))]
        await client.start(response.status_code, headers)
        await client.piece(content)

    def _without_option(self, call: Call) -> None:
        call.strip_usage = False
        call.reply.clear()
        rest = {k: v for k, v in call.sent_body.items() if k != "stream_options"}
        given = call.body.get("stream_options")
        call.change(rest if given is None else {**rest, "stream_options": given})

    def _note_refusal(self, call: Call, response: httpx.Response) -> None:
        status = response.status_code
        call.end = "refused"
        call.outage = "down" if status >= 500 else OUTAGES.get(status)
        call.why = f"status {status}: {call.why}" if call.why else f"status {status}"
        if status in (429, 503, 529):
            said_s = retry_after_s(response.headers)
            if said_s is not None or status == 429:
                self.limiter.pause(min(LONGEST_PAUSE_S, PAUSE_S if said_s is None else said_s))

    async def _whole(self, call: Call, response: httpx.Response) -> bytes:
        """The body, once all of it is there: a part of it would be no JSON."""
        async for chunk in response.aiter_bytes():
            call.reply += chunk
            _check_length(call)
        return bytes(call.reply)

    async def _pass_on_stream(
        self,
        call: Call,
        response: httpx.Response,
        client: Client,
        settle: Callable[[], Awaitable[None]],
    ) -> None:
        call.streamed = True
        await client.start(response.status_code, self._to_client(response.headers))
        events = Events()
        async for chunk in response.aiter_bytes():
            whole = list(events.feed(chunk))
            passed = b"".join(self._event(call, event) for event in whole)
            if call.end != "pending":
                await settle()
            if passed:
                await client.piece(passed)
            if len(events.rest) > MAX_EVENT_BYTES:
                raise _TooLong(f"an event of more than {MAX_EVENT_BYTES} bytes")
        rest = self._event(call, events.rest)
        call.answered()
        await settle()
        if rest:
            await client.piece(rest)

    def _event(self, call: Call, event: bytes) -> bytes:
        """An event as the client gets it; empty where it gets none."""
        event = self.cleaner.sample(event)
        data = data_of(event) if _TELLS.search(event) else b""
        if data:
            call.heard(data)
        call.reply += event
        _check_length(call)
        if data and call.wire.last(data):
            call.answered()
        return b"" if data and call.strip_usage and only_usage(data) else event

    def _to_client(self, headers: httpx.Headers) -> list[tuple[str, str]]:
        return [
            (name, self.cleaner.text(value))
            for name, value in headers.items()
            if name in TO_CLIENT or name.startswith(_LIMIT_HEADERS)
        ]


_BOUND_OVER_COUNT = 3
"""How much greater the bound of a prompt is than what it usually has: limits of tokens a minute
go by what is expected, and are put right by the count."""
_TELLS = re.compile(
    rb"[Uu]sage|error|length|max_tokens|MAX_TOKENS|max_output|\[DONE\]|message_stop"
)
"""What an event has in it that tells something that counts."""


class _UnknownOption(Exception):  # noqa: N818
    """The provider does not know a field that the gateway added."""


class _TooLong(Exception):  # noqa: N818
    """A provider sends more than any model says."""


def _failed(call: Call, status: int, why: str) -> Denied:
    call.end, call.why, call.outage = "failed", why, "down"
    return Denied(status, why, "provider_unreachable")


def only_usage(data: bytes) -> bool:
    """Whether an event tells nothing but the count."""
    said = parsed(data)
    return said is not None and said.get("choices") == [] and said.get("usage") is not None


def _check_length(call: Call) -> None:
    if len(call.reply) > MAX_REPLY_BYTES:
        raise _TooLong(f"an answer of more than {MAX_REPLY_BYTES} bytes")


def _name(error: Exception) -> str:
    """What went wrong; of a request that could not even be written it would show a header."""
    name = type(error).__name__
    return f"{name}: {error}" if str(error) and name != "LocalProtocolError" else name


def retry_after_s(headers: Mapping[str, str], *, now: datetime | None = None) -> float | None:
    """The seconds that a provider asks to wait; None where it says none that can be read."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        text = headers.get(name)
        if text is None:
            continue
        try:
            seconds = float(text) / unit
        except ValueError:
            try:
                at = parsedate_to_datetime(text)
            except ValueError:
                continue
            at = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
            seconds = (at - (now or datetime.now(UTC))).total_seconds()
        if 0 <= seconds < float("inf"):
            return seconds
    return None
