"""What the gateway adds to a call, against the same calls made directly, in the same run.

A provider on this machine, in a process of its own, answers at once, so all that is measured
is ours and the wire's. Three kinds of call: a short one, one as browser agents make them (40 KB
of text and a screenshot of 400 KB), and a stream of 300 events. Each is made directly and through
the gateway, in turns, by a client that keeps its connection; the gateway keeps every call in a
ledger and holds it to a budget, as in a run.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from multiprocessing.connection import Connection
from pathlib import Path

import httpx

from browseruse_bench.models.config import Asking, Price
from browseruse_bench.models.gateway.meter import Meter
from browseruse_bench.models.gateway.server import Gateway
from browseruse_bench.models.ledger import Ledger
from browseruse_bench.models.spec import ModelSpec
from browseruse_bench.models.spending import Budget
from browseruse_bench.models.spending_log import Spending

MEMORY = Path("/dev/shm")
"""What a disk takes is not ours: with calls kept here, only the rest is measured."""
N = 150
N_EVENTS = 300
N_LARGE = 40
LIMIT_MS = 25.0
"""The most that a short call may take longer, at the median, on a machine with nothing else."""
LIMIT_CPU_MS = 12.0
LIMIT_GROWTH_MB = 40.0
"""The most that memory may grow over the second half of `N_LARGE` calls of 8 MB."""

USAGE = {"prompt_tokens": 1000, "completion_tokens": 50, "total_tokens": 1050}
REPLY = {
    "id": "x",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [
        {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "ok"}}
    ],
    "usage": USAGE,
}
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: "

Call = Callable[[], Awaitable[float]]


def provide(port_of: Connection) -> None:
    """Answer every request at once, whole or as a stream."""
    whole = json.dumps(REPLY).encode()
    whole = HEAD + b"application/json\r\ncontent-length: %d\r\n\r\n" % len(whole) + whole
    chunk = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    delta = {**chunk, "choices": [{"index": 0, "delta": {"content": "word "}}]}
    counted = {**chunk, "choices": [], "usage": USAGE}
    parts = [json.dumps(delta)] * N_EVENTS + [json.dumps(counted), "[DONE]"]
    events = [f"data: {part}\n\n".encode() for part in parts]

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                text = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = int(text.partition(b"content-length: ")[2].partition(b"\r\n")[0])
                body = await reader.readexactly(length)
                if b'"stream": true' in body or b'"stream":true' in body:
                    writer.write(HEAD + b"text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
                    for event in events:
                        writer.write(b"%x\r\n%s\r\n" % (len(event), event))
                        await writer.drain()
                    writer.write(b"0\r\n\r\n")
                else:
                    writer.write(whole)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def listen() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=2**26)
        port_of.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(listen())


def cpu_s() -> float:
    """CPU-seconds of this process: client, gateway, ledger."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def rss_mb() -> float:
    """Memory of this process now, in MB."""
    text = Path("/proc/self/statm").read_text()
    return int(text.split()[1]) * resource.getpagesize() / 1e6


def sync_ms(folder: Path) -> float:
    """The median of what it takes to have a small file on disk."""
    times = []
    for n in range(30):
        start = time.perf_counter()
        with (folder / f"trial-{n}").open("wb") as file:
            file.write(b"x" * 1000)
            file.flush()
            os.fsync(file.fileno())
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3


def picture(length: int) -> dict:
    """A part of a message."""
    url = "data:image/png;base64," + "A" * length
    return {"type": "image_url", "image_url": {"url": url}}


def asked() -> dict[str, dict]:
    """Name -> what is asked."""
    words = "A page with words, links and buttons. " * 1050
    short = [{"role": "user", "content": "Say ok."}]
    page = [{"role": "user", "content": [{"type": "text", "text": words}, picture(400_000)]}]
    return {
        "short call": {"messages": short},
        "40 KB of text and a screenshot": {"messages": page},
        f"stream of {N_EVENTS} events": {"messages": short, "stream": True},
    }


async def timed(client: httpx.AsyncClient, url: str, token: str, body: bytes) -> float:
    """Seconds until all of the answer is there."""
    headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
    start = time.perf_counter()
    async with client.stream("POST", url, content=body, headers=headers) as answer:
        async for _ in answer.aiter_bytes():
            pass
        if answer.status_code != 200:
            raise RuntimeError(f"status {answer.status_code}")
    return time.perf_counter() - start


async def compare(name: str, direct: Call, through: Call) -> tuple[float, float]:
    """Print and return what a call takes longer through the gateway: (wall ms, CPU ms)."""
    ways = {"direct": direct, "through": through}
    walls: dict[str, list[float]] = {way: [] for way in ways}
    cpus = dict.fromkeys(ways, 0.0)
    for call in ways.values():
        await call()
    for _ in range(N):
        for way, call in ways.items():
            before = cpu_s()
            walls[way].append(await call())
            cpus[way] += cpu_s() - before
    medians = {way: statistics.median(times) * 1e3 for way, times in walls.items()}
    p95 = {way: sorted(times)[int(0.95 * N)] * 1e3 for way, times in walls.items()}
    added = medians["through"] - medians["direct"]
    added_cpu = (cpus["through"] - cpus["direct"]) / N * 1e3
    print(
        f"  {name:32} direct {medians['direct']:6.1f} ms, through {medians['through']:6.1f} ms "
        f"(p95 {p95['direct']:.1f}, {p95['through']:.1f}); added {added:5.1f} ms, "
        f"of CPU {added_cpu:5.1f} ms"
    )
    return added, added_cpu


async def growth(call: Call) -> float:
    """Print and return how much memory grows over the second half of many large calls, in MB."""
    marks = []
    for _ in range(N_LARGE):
        await call()
        marks.append(rss_mb())
    grown = marks[-1] - marks[N_LARGE // 2]
    print(
        f"  memory after {N_LARGE} calls of 8 MB: {marks[-1]:.0f} MB, over the second half "
        f"{grown:+.1f} MB (at most {LIMIT_GROWTH_MB:g})"
    )
    return grown


async def measure(port: int, calls: Path) -> int:
    """Print the figures; 1 if a bar is missed."""
    spec = ModelSpec(
        label="m", provider="openai-compatible", name="m", base_url=f"http://127.0.0.1:{port}/v1",
        key="sk-0123456789abcdef", price=Price(input=1, output=1), asking=Asking(concurrency=100),
    )  # fmt: skip
    spending = Spending(calls / "spending.jsonl")
    async with Gateway() as gateway, httpx.AsyncClient(timeout=60) as client:
        meter = Meter(
            spec, scope="bench", run=Budget(1000.0, spending),
            attempt=Budget(1000.0), ledger=Ledger(calls, keep_requests=True),
        )  # fmt: skip
        endpoint = gateway.open(meter).endpoint

        def ways(body: dict) -> tuple[Call, Call]:
            content = json.dumps({"model": "m", "max_tokens": 100, **body}).encode()
            path = "chat/completions"
            return (
                lambda: timed(client, f"{spec.base_url}/{path}", "x", content),
                lambda: timed(client, f"{endpoint.base_url}/{path}", endpoint.token, content),
            )

        added = [await compare(name, *ways(body)) for name, body in asked().items()]
        large = {"messages": [{"role": "user", "content": [picture(8_000_000)]}]}
        grown = await growth(ways(large)[1])
    spending.close()
    wall, cpu = added[0]
    return 1 if wall > LIMIT_MS or cpu > LIMIT_CPU_MS or grown > LIMIT_GROWTH_MB else 0


def main() -> int:
    """Measure beside a provider of its own; the bars are for calls that are kept in memory."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.Process(target=provide, args=(there,), daemon=True)
    process.start()
    port = here.recv()
    missed = 0
    try:
        for place in (None, MEMORY if MEMORY.is_dir() else None):
            with tempfile.TemporaryDirectory(prefix="bench-", dir=place) as name:
                print(
                    f"calls are kept {'on disk' if place is None else 'in memory'}, where a small "
                    f"file takes {sync_ms(Path(name)):.1f} ms to be there for good"
                )
                missed = asyncio.run(measure(port, Path(name)))
    finally:
        process.terminate()
    print(
        f"bars: a short call at most {LIMIT_MS:g} ms and {LIMIT_CPU_MS:g} ms of CPU more; "
        f"load {os.getloadavg()[0]:.1f} over {os.cpu_count()} cores"
    )
    return missed


if __name__ == "__main__":
    sys.exit(main())
