"""A provider on this machine that speaks all four wires, and fails in every way when told to."""

import asyncio
import json
import threading
from dataclasses import dataclass, field

KEY = "sk-provider-0123456789abcdef-SECRET"


@dataclass
class Got:
    """One request as it came."""

    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)

    def header(self, name):
        return [value for key, value in self.headers if key == name]


@dataclass
class Answer:
    """What is sent back. `pieces` are sent one by one; a number among them is a pause, "cut"
    closes the connection, "hang" waits for ever."""

    status: int = 200
    headers: dict = field(default_factory=dict)
    pieces: list = field(default_factory=list)
    chunked: bool = False


def whole(value, status=200, **headers):
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    kind = {"content-type": "application/json", "content-length": str(len(data))}
    return Answer(status, {**kind, **headers}, [data])


def stream(*pieces):
    return Answer(200, {"content-type": "text/event-stream"}, list(pieces), chunked=True)


def event(value, name=None):
    text = value if isinstance(value, str) else json.dumps(value)
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {text}\n\n".encode()


class Provider:
    """Answers from a queue, then with `usual`; keeps what it got."""

    def __init__(self):
        self.got = []
        self.answers = []
        self.n_gone = 0
        self.arrived = asyncio.Event()
        self.usual = lambda got: whole(chat("Hello."))

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=2**26)
        self.port = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._tasks = set()
        return self

    async def __aexit__(self, *_):
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader, writer):
        task = asyncio.current_task()
        self._tasks.add(task)
        try:
            while True:
                got = await self._read(reader)
                self.got.append(got)
                self.arrived.set()
                answer = self.answers.pop(0) if self.answers else self.usual(got)
                if not await self._send(answer, reader, writer):
                    return
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _read(self, reader):
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, target, _ = head[0].split(" ")
        headers = [(n.lower(), v.strip()) for n, _, v in (h.partition(":") for h in head[1:] if h)]
        length = int(dict(headers).get("content-length", 0))
        return Got(method, target, headers, await reader.readexactly(length))

    async def _send(self, answer, reader, writer):
        lines = [f"HTTP/1.1 {answer.status} X"]
        lines += [f"{name}: {value}" for name, value in answer.headers.items()]
        if answer.chunked:
            lines.append("transfer-encoding: chunked")
        writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
        for piece in answer.pieces:
            if piece == "cut":
                await writer.drain()
                writer.transport.abort()
                return False
            if piece == "hang":
                await writer.drain()
                if await reader.read(1) == b"":
                    self.n_gone += 1
                return False
            if isinstance(piece, (int, float)):
                await writer.drain()
                await asyncio.sleep(piece)
                continue
            writer.write(b"%x\r\n%s\r\n" % (len(piece), piece) if answer.chunked else piece)
        if answer.chunked:
            writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True


def chat(text, *, prompt=100, cached=40, reply=20, reasoning=5, tools=None, finish="stop"):
    message = {"role": "assistant", "content": text}
    if tools:
        message["tool_calls"] = tools
    return {
        "id": "c1",
        "object": "chat.completion",
        "created": 1,
        "model": "gpt-test",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": chat_usage(prompt, cached, reply, reasoning),
    }


def chat_usage(prompt=100, cached=40, reply=20, reasoning=5):
    return {
        "prompt_tokens": prompt,
        "completion_tokens": reply,
        "total_tokens": prompt + reply,
        "prompt_tokens_details": {"cached_tokens": cached},
        "completion_tokens_details": {"reasoning_tokens": reasoning},
    }


def chat_chunk(delta, finish=None, **more):
    return event(
        {
            "id": "c1",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "gpt-test",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
            **more,
        }
    )


def chat_usage_chunk(**usage):
    return event(
        {
            "id": "c1",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "gpt-test",
            "choices": [],
            "usage": chat_usage(**usage),
        }
    )


def chat_stream(*words, usage=True):
    pieces = [chat_chunk({"role": "assistant", "content": words[0]})]
    pieces += [chat_chunk({"content": word}) for word in words[1:]]
    pieces.append(chat_chunk({}, "stop"))
    return stream(*pieces, *([chat_usage_chunk()] if usage else []), event("[DONE]"))


ANTHROPIC_USAGE = {
    "input_tokens": 50,
    "cache_read_input_tokens": 30,
    "cache_creation_input_tokens": 20,
    "output_tokens": 7,
}


def message(text, stop="end_turn"):
    return {
        "id": "m1",
        "type": "message",
        "role": "assistant",
        "model": "claude-test",
        "content": [{"type": "text", "text": text}],
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": ANTHROPIC_USAGE,
    }


def message_events(*words):
    start = {**message(""), "content": [], "stop_reason": None}
    start["usage"] = {**ANTHROPIC_USAGE, "output_tokens": 1}
    block = {
        "type": "content_block_start",
        "index": 0,
        "content_block": {"type": "text", "text": ""},
    }
    deltas = [
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": word}}
        for word in words
    ]
    end = {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}}
    end["usage"] = {"output_tokens": 7}
    values = [{"type": "message_start", "message": start}, block, *deltas,
              {"type": "content_block_stop", "index": 0}, end, {"type": "message_stop"}]  # fmt: skip
    return [event(value, value["type"]) for value in values]


def gemini(text, finish="STOP"):
    return {
        "candidates": [
            {"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": finish}
        ],
        "usageMetadata": {
            "promptTokenCount": 90,
            "cachedContentTokenCount": 10,
            "candidatesTokenCount": 11,
            "thoughtsTokenCount": 4,
            "totalTokenCount": 105,
        },
    }


def responses(text):
    return {
        "id": "r1",
        "object": "response",
        "created_at": 1,
        "model": "gpt-test",
        "status": "completed",
        "error": None,
        "output": [
            {
                "id": "o1",
                "type": "message",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": text, "annotations": []}],
            }
        ],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 60,
            "input_tokens_details": {"cached_tokens": 10},
            "output_tokens": 9,
            "output_tokens_details": {"reasoning_tokens": 2},
            "total_tokens": 69,
        },
    }


class Served:
    """A provider in a thread of its own, for what runs its own event loop."""

    def __enter__(self):
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.provider = Provider()
        self._do(self.provider.__aenter__())
        return self.provider

    def __exit__(self, *_):
        self._do(self.provider.__aexit__())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _do(self, work):
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(10)
