"""A model provider on loopback that answers by a script and can fail in every way.

    with FakeEndpoint(["first answer", Fail(429, headers={"retry-after": "2"}), Say("ok")]) as fake:
        ... ask at fake.openai_url, openrouter_url, anthropic_url or google_url ...
        fake.asked[0].body

It speaks the true wires: OpenAI chat completions (streamed too), Anthropic messages (streamed
too) and Google generateContent. A script is a list of answers in order, or a function of what
was asked; a text stands for Say(text), a dict for Say of its JSON. It runs in a thread of its
own, so that blocking and asynchronous tests can use it alike.
"""

import asyncio
import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Asked:
    """One request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any
    at: float

    @property
    def wire(self) -> str:
        if ":generateContent" in self.path or ":streamGenerateContent" in self.path:
            return "google"
        return "anthropic" if self.path.split("?")[0].endswith("/messages") else "openai"

    @property
    def text(self) -> str:
        """All texts of the prompt, in order, whatever the wire."""
        return "\n".join(_texts(self.body))

    @property
    def n_images(self) -> int:
        written = json.dumps(self.body)
        return sum(written.count(m) for m in ('"image_url":', '"type": "image"', '"inlineData":'))


@dataclass(frozen=True)
class Say:
    """An answer. `arguments` come as a call of the first tool that was given."""

    text: str = ""
    finish: str = "stop"
    """stop, length, refusal, or a word of the wire's own."""
    arguments: Any = None
    """A JSON value, or a text that is sent as it is; a list of several in a tuple."""
    reasoning: str | None = None
    refusal: str | None = None
    usage: Any = ...
    """As the wire writes it; None: none is reported."""
    model: str | None = None
    pause_s: float = 0
    """Seconds before it answers."""


@dataclass(frozen=True)
class Fail:
    """An HTTP error."""

    status: int
    message: str = "made to fail"
    headers: dict[str, str] = field(default_factory=dict)
    body: Any = None
    """Instead of an error in the wire's form."""


@dataclass(frozen=True)
class Body:
    """Anything, with status 200."""

    text: str
    content_type: str = "application/json"


@dataclass(frozen=True)
class Hang:
    """Take the request and say nothing; `drip` sends a byte now and then, so that no wait for
    the next byte ever ends.
    """

    drip: bool = False


@dataclass(frozen=True)
class Reset:
    """Reset the connection before a byte is answered."""


@dataclass(frozen=True)
class Cut:
    """Send a part of an answer and close: of its bytes, or of its events where it is streamed."""

    answer: Say
    share: float = 0.5


Answer = Say | Fail | Body | Hang | Reset | Cut | str | dict
Script = Callable[[Asked], Answer] | Iterable[Answer]


class FakeEndpoint:
    def __init__(self, script: Script = (), *, models: tuple[str, ...] = ("fake",)) -> None:
        self.asked: list[Asked] = []
        self.models = models
        self._script = script if callable(script) else _in_order(script)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._server: asyncio.Server | None = None
        self.port = 0
        self.n_open = 0
        """Requests that are being answered now, and the most there ever were."""
        self.most_open = 0

    def __enter__(self) -> "FakeEndpoint":
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(10)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    @property
    def openai_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def openrouter_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/api/v1"

    @property
    def anthropic_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    google_url = anthropic_url

    async def _start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _stop(self) -> None:
        assert self._server is not None
        self._server.close()
        mine = asyncio.current_task()
        others = [task for task in asyncio.all_tasks() if task is not mine]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            asked = await _read(reader)
            self.n_open += 1
            self.most_open = max(self.most_open, self.n_open)
            try:
                await self._answer(asked, writer)
            finally:
                self.n_open -= 1
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client went away, or the test is over
        finally:
            writer.close()

    async def _answer(self, asked: Asked, writer: asyncio.StreamWriter) -> None:
        if asked.path.split("?")[0].endswith("/models"):
            rows = [{"id": m, "object": "model", "owned_by": "fake"} for m in self.models]
            _send(writer, 200, json.dumps({"object": "list", "data": rows}))
            return
        self.asked.append(asked)
        answer = self._script(asked)
        if isinstance(answer, dict):
            answer = json.dumps(answer)
        if isinstance(answer, str):
            answer = Say(answer)
        match answer:
            case Say():
                await asyncio.sleep(answer.pause_s)
                await _say(writer, asked, answer, 1)
            case Cut():
                await _say(writer, asked, answer.answer, answer.share)
            case Fail():
                body = answer.body if answer.body is not None else _error(asked.wire, answer)
                text = body if isinstance(body, str) else json.dumps(body)
                _send(writer, answer.status, text, headers=answer.headers)
            case Body():
                _send(writer, 200, answer.text, content_type=answer.content_type)
            case Hang():
                await _hang(writer, drip=answer.drip)
            case Reset():
                writer.get_extra_info("socket").setsockopt(
                    socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
                )
                writer.transport.abort()
        await writer.drain()


def _in_order(script: Iterable[Answer]) -> Callable[[Asked], Answer]:
    left = iter(script)

    def answer(asked: Asked) -> Answer:
        del asked
        # A status that nobody retries, so that the test fails at once.
        return next(left, Fail(418, "the script has no more answers"))

    return answer


async def _read(reader: asyncio.StreamReader) -> Asked:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, path, _ = head[0].split(" ", 2)
    headers = {}
    for line in head[1:]:
        name, colon, value = line.partition(":")
        if colon:
            headers[name.strip().lower()] = value.strip()
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Asked(method, path, headers, json.loads(body) if body else None, time.monotonic())


def _send(
    writer: asyncio.StreamWriter,
    status: int,
    text: str,
    *,
    headers: dict[str, str] | None = None,
    content_type: str = "application/json",
    share: float = 1,
) -> None:
    body = text.encode("utf-8", "surrogatepass")
    lines = [f"HTTP/1.1 {status} {'OK' if status < 400 else 'Error'}"]
    lines += [f"content-type: {content_type}", f"content-length: {len(body)}", "connection: close"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    writer.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
    writer.write(body[: int(len(body) * share)])


async def _hang(writer: asyncio.StreamWriter, *, drip: bool) -> None:
    if drip:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n")
    while True:
        await asyncio.sleep(0.02 if drip else 3600)
        writer.write(b" ")
        await writer.drain()


async def _say(writer: asyncio.StreamWriter, asked: Asked, answer: Say, share: float) -> None:
    if not asked.body.get("stream"):
        reply = {"openai": _openai, "anthropic": _anthropic, "google": _google}[asked.wire]
        _send(writer, 200, json.dumps(reply(asked, answer)), share=share)
        return
    events = (_openai_events if asked.wire == "openai" else _anthropic_events)(asked, answer)
    writer.write(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    )
    for event in events[: int(len(events) * share)]:
        data = event.encode()
        writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        await writer.drain()
    if share == 1:
        writer.write(b"0\r\n\r\n")


def _calls(asked: Asked, answer: Say) -> list[tuple[str, Any]]:
    """(name of the tool, arguments) of each call."""
    if answer.arguments is None:
        return []
    several = answer.arguments if isinstance(answer.arguments, tuple) else (answer.arguments,)
    tool = (asked.body.get("tools") or [{"name": "reply"}])[0]
    if "functionDeclarations" in tool:
        tool = tool["functionDeclarations"][0]
    name = tool.get("function", tool)["name"]
    return [(name, arguments) for arguments in several]


def _openai_usage(asked: Asked, answer: Say) -> dict | None:
    if answer.usage is not ...:
        return answer.usage
    n_in, n_out = len(asked.text) // 4 + 1, len(answer.text) // 4 + 1
    return {"prompt_tokens": n_in, "completion_tokens": n_out, "total_tokens": n_in + n_out}


_OPENAI_FINISH = {"refusal": "content_filter"}


def _openai(asked: Asked, answer: Say) -> dict:
    message = {"role": "assistant", "content": answer.text or None}
    if answer.reasoning is not None:
        message["reasoning_content"] = answer.reasoning
    if answer.refusal is not None:
        message["refusal"] = answer.refusal
    calls = _calls(asked, answer)
    if calls:
        message["tool_calls"] = [
            {"id": f"call_{n}", "type": "function",
             "function": {"name": name, "arguments": a if isinstance(a, str) else json.dumps(a)}}
            for n, (name, a) in enumerate(calls)
        ]  # fmt: skip
    finish = "tool_calls" if calls and answer.finish == "stop" else answer.finish
    reply = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1767225600,
        "model": answer.model or asked.body.get("model", "fake"),
        "choices": [
            {"index": 0, "message": message, "finish_reason": _OPENAI_FINISH.get(finish, finish)}
        ],
    }
    if asked.path.startswith("/api/"):
        # OpenRouter's own fields.
        reply["provider"] = "Fake"
        reply["choices"][0]["native_finish_reason"] = answer.finish
    usage = _openai_usage(asked, answer)
    return reply if usage is None else {**reply, "usage": usage}


def _openai_events(asked: Asked, answer: Say) -> list[str]:
    base = {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1767225600,
        "model": answer.model or asked.body.get("model", "fake"),
    }
    deltas: list[dict] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": answer.text[n : n + 5]} for n in range(0, len(answer.text), 5)]
    calls = _calls(asked, answer)
    for n, (name, arguments) in enumerate(calls):
        written = arguments if isinstance(arguments, str) else json.dumps(arguments)
        first = {"index": n, "id": f"call_{n}", "type": "function"}
        deltas.append({"tool_calls": [{**first, "function": {"name": name, "arguments": ""}}]})
        deltas += [
            {"tool_calls": [{"index": n, "function": {"arguments": written[m : m + 8]}}]}
            for m in range(0, len(written), 8)
        ]
    finish = "tool_calls" if calls and answer.finish == "stop" else answer.finish
    chunks = [
        {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        for delta in deltas
    ]
    last = {"index": 0, "delta": {}, "finish_reason": _OPENAI_FINISH.get(finish, finish)}
    chunks.append({**base, "choices": [last]})
    if (asked.body.get("stream_options") or {}).get("include_usage"):
        chunks.append({**base, "choices": [], "usage": _openai_usage(asked, answer)})
    return [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks] + ["data: [DONE]\n\n"]


_ANTHROPIC_FINISH = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}


def _anthropic(asked: Asked, answer: Say) -> dict:
    content: list[dict] = []
    if answer.reasoning is not None:
        content.append({"type": "thinking", "thinking": answer.reasoning, "signature": "s"})
    if answer.text:
        content.append({"type": "text", "text": answer.text})
    calls = _calls(asked, answer)
    for n, (name, arguments) in enumerate(calls):
        content.append({"type": "tool_use", "id": f"toolu_{n}", "name": name, "input": arguments})
    finish = "tool_calls" if calls and answer.finish == "stop" else answer.finish
    n_in, n_out = len(asked.text) // 4 + 1, len(answer.text) // 4 + 1
    usage = {"input_tokens": n_in, "output_tokens": n_out} if answer.usage is ... else answer.usage
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": answer.model or asked.body.get("model", "fake"),
        "content": content,
        "stop_reason": _ANTHROPIC_FINISH.get(finish, finish),
        "stop_sequence": None,
        "usage": usage,
    }


def _anthropic_events(asked: Asked, answer: Say) -> list[str]:
    reply = _anthropic(asked, answer)
    start = {**reply, "content": [], "stop_reason": None}
    events: list[dict] = [{"type": "message_start", "message": start}]
    for n, block in enumerate(reply["content"]):
        of_text = block["type"] == "text"
        empty = {**block, "text": ""} if of_text else {**block, "input": {}}
        events.append({"type": "content_block_start", "index": n, "content_block": empty})
        written = block["text"] if of_text else json.dumps(block["input"])
        kind = ("text_delta", "text") if of_text else ("input_json_delta", "partial_json")
        events += [
            {"type": "content_block_delta", "index": n,
             "delta": {"type": kind[0], kind[1]: written[m : m + 5]}}
            for m in range(0, len(written), 5)
        ]  # fmt: skip
        events.append({"type": "content_block_stop", "index": n})
    end = {"stop_reason": reply["stop_reason"], "stop_sequence": None}
    events.append({"type": "message_delta", "delta": end, "usage": reply["usage"]})
    events.append({"type": "message_stop"})
    return [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events]


_GOOGLE_FINISH = {"stop": "STOP", "length": "MAX_TOKENS", "refusal": "SAFETY", "tool_calls": "STOP"}


def _google(asked: Asked, answer: Say) -> dict:
    parts: list[dict] = []
    if answer.reasoning is not None:
        parts.append({"text": answer.reasoning, "thought": True})
    if answer.text:
        parts.append({"text": answer.text})
    for name, arguments in _calls(asked, answer):
        parts.append({"functionCall": {"name": name, "args": arguments}})
    finish = _GOOGLE_FINISH.get(answer.finish, answer.finish)
    n_in, n_out = len(asked.text) // 4 + 1, len(answer.text) // 4 + 1
    usage = {
        "promptTokenCount": n_in, "candidatesTokenCount": n_out, "totalTokenCount": n_in + n_out
    }  # fmt: skip
    reply = {
        "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": finish}],
        "modelVersion": answer.model or asked.path.split("/models/")[1].split(":")[0],
        "responseId": "r1",
    }
    usage = usage if answer.usage is ... else answer.usage
    return reply if usage is None else {**reply, "usageMetadata": usage}


def _error(wire: str, fail: Fail) -> dict:
    if wire == "google":
        error = {"code": fail.status, "message": fail.message, "status": "FAILED"}
        return {"error": error}
    if wire == "anthropic":
        error = {"type": "api_error", "message": fail.message}
        return {"type": "error", "error": error}
    return {"error": {"message": fail.message, "type": "made", "param": None, "code": None}}


def _texts(value: Any) -> Iterable[str]:
    """Every text of a prompt; a picture's bytes, names and kinds are none."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
    elif isinstance(value, dict):
        for name in ("system", "system_instruction", "systemInstruction", "messages", "contents"):
            yield from _texts(value.get(name))
        for name in ("content", "parts", "text"):
            yield from _texts(value.get(name))
