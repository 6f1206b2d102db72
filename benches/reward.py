"""What the reward endpoint takes itself: latency and throughput over loopback with a judge that
answers at once.

The server is the command, in a process of its own; the judge is the comparison with
`expected_result`. Each request is another trace (ten steps, 2 KB of text each), so each is taken
in, frozen, noted down, graded and noted down again, all on disk. Then the same traces are sent
once more: what is known is answered from the record.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx

N = 300
CLIENTS = 8
LIMIT_P95_MS = 1000.0
"""The most that a request may take at the 95th percentile, alone, on a calm machine."""


def make(folder: Path) -> Path:
    """A benchmark with one task."""
    (folder / "data").mkdir(parents=True)
    task = [{"task_id": "a", "task": "Say where it is.", "expected_result": "Paris"}]
    (folder / "data" / "tasks.json").write_text(json.dumps(task))
    (folder / "data_info.json").write_text(json.dumps({"split": {"All": "tasks.json"}}))
    return folder


def start(bench: Path) -> tuple[subprocess.Popen[str], dict]:
    """A server, and what it said of itself."""
    command = (sys.executable, "-m", "browseruse_bench", "serve-reward", "--json", "--queue", "999")
    process = subprocess.Popen(
        [*command, "--benchmark", str(bench)], stdout=subprocess.PIPE, text=True, cwd=bench.parent
    )
    return process, json.loads(process.stdout.readline())


def trace(number: int) -> dict:
    """A trace as its agent tells it."""
    steps = [
        {"saw": f"{number} {n} " + "word " * 400, "url": f"http://x.test/{n}"} for n in range(10)
    ]
    return {"task_id": "a", "answer": f"Paris {number}", "steps": steps}


async def send(client: httpx.AsyncClient, numbers: list[int], n_clients: int) -> list[float]:
    """Seconds of each request, by so many clients at a time."""
    left = iter(numbers)
    seconds: list[float] = []

    async def one() -> None:
        for number in left:
            began = time.perf_counter()
            answer = await client.post("/v1/gradings", json=trace(number))
            seconds.append(time.perf_counter() - began)
            assert answer.json()["reward"] == 1, answer.text

    await asyncio.gather(*(one() for _ in range(n_clients)))
    return seconds


async def measure(told: dict) -> dict[str, list[float]]:
    """Rows of (p50 ms, p95 ms, requests per second)."""
    rows: dict[str, list[float]] = {}
    headers = {"authorization": f"Bearer {told['token']}"}
    async with httpx.AsyncClient(base_url=told["url"], headers=headers, timeout=60) as client:
        await send(client, list(range(-20, 0)), 1)
        for name, numbers, n_clients in (
            ("new, 1 client", list(range(N)), 1),
            (f"new, {CLIENTS} clients", list(range(N, 2 * N)), CLIENTS),
            (f"known, {CLIENTS} clients", list(range(N, 2 * N)), CLIENTS),
        ):
            began = time.perf_counter()
            seconds = await send(client, numbers, n_clients)
            rate = len(seconds) / (time.perf_counter() - began)
            cuts = statistics.quantiles(seconds, n=20)
            rows[name] = [1000 * statistics.median(seconds), 1000 * cuts[18], rate]
    return rows


def main() -> int:
    """Print the table; 1 where the limit is not held."""
    with tempfile.TemporaryDirectory() as folder:
        process, told = start(make(Path(folder) / "Made"))
        try:
            rows = asyncio.run(measure(told))
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(30)
    load = os.getloadavg()[0]
    print(f"reward endpoint, {os.cpu_count()} cores, load {load:.1f}, {N} requests each")
    for name, (p50, p95, rate) in rows.items():
        print(f"  {name:22} p50 {p50:6.1f} ms   p95 {p95:6.1f} ms   {rate:6.1f} requests/s")
    return 0 if rows["new, 1 client"][1] <= LIMIT_P95_MS else 1


if __name__ == "__main__":
    sys.exit(main())
