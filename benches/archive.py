"""What recording and replay cost: time and CPU of a page, megabytes of a page, replay against live.

Three browsers by turns over the same pages in one run: live, live and recorded, and replayed from
what was recorded with the server gone. A page is the documentation of a module of the standard
library (made by pydoc) with a style sheet, twelve pictures of 20 kB each and five fetches. A page
is done when its load event has come and all of its fetches are shown.

    python benches/archive.py        exit 1 if a target is missed; about a minute
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pydoc
import random
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from contextlib import AsyncExitStack
from pathlib import Path
from typing import NamedTuple

from browseruse_bench.browsers.archive.cleaning import Cleaning
from browseruse_bench.browsers.archive.looking import Patience
from browseruse_bench.browsers.archive.recording import Recording
from browseruse_bench.browsers.archive.sessions import Wanted, looker, opened, replaying, socket_of
from browseruse_bench.browsers.cdp import CDP
from browseruse_bench.browsers.local import LocalChromium
from browseruse_bench.browsers.options import BrowserOptions
from browseruse_bench.store.archive.opened import Archive
from browseruse_bench.store.archive.wacz import package
from browseruse_bench.store.redact import Redactor

MODULES = ("argparse", "csv", "datetime", "email.message", "json", "logging", "tarfile", "zipfile")
ROUNDS = int(os.environ.get("BUBENCH_BENCH_ROUNDS", "5"))
N_PICTURES, N_FETCHES = 12, 5
RECORDED_TIMES = 2.0
"""A recorded page may take this multiple of a live one's median time."""
RECORDED_CPU_MS = 150
"""CPU of the harness for a recorded page."""
REPLAYED_TIMES = 1.5
"""A replayed page may take this multiple of a live one's median time."""
SERVE = """
import functools, http.server as h, sys
class H(h.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *_): pass
    def end_headers(self):
        self.send_header("Cache-Control", "no-store")
        super().end_headers()
s = h.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(H, directory=sys.argv[1]))
print(s.server_port, flush=True)
s.serve_forever()
"""


def picture(seed: int) -> bytes:
    """A PNG of about 20 kB that packs no further."""
    drawn = random.Random(seed)
    rows = b"".join(b"\0" + drawn.randbytes(240) for _ in range(80))
    parts = (
        (b"IHDR", struct.pack(">IIBBBBB", 80, 80, 8, 2, 0, 0, 0)),
        (b"IDAT", zlib.compress(rows)),
        (b"IEND", b""),
    )
    chunks = (
        struct.pack(">I", len(d)) + t + d + struct.pack(">I", zlib.crc32(t + d)) for t, d in parts
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def write_pages(folder: Path) -> None:
    """The pages and what belongs to them."""
    (folder / "s.css").write_text("body { font-family: sans-serif }\n" * 300)
    for place, name in enumerate(MODULES):
        module, _ = pydoc.resolve(name)
        html = pydoc.HTMLDoc().page(name, pydoc.HTMLDoc().document(module, name))
        pictures = "".join(f"<img src={name}-{n}.png>" for n in range(N_PICTURES))
        fetches = "".join(
            f"fetch('{name}-{n}.json?_=' + Date.now()).then(r => r.json())"
            f".then(j => {{ document.body.append(j.text); window.n = (window.n || 0) + 1 }});"
            for n in range(N_FETCHES)
        )
        extra = f"<link rel=stylesheet href=s.css>{pictures}<script>{fetches}</script>"
        (folder / f"{name}.html").write_text(html + extra, encoding="utf-8")
        for n in range(N_PICTURES):
            (folder / f"{name}-{n}.png").write_bytes(picture(100 * place + n))
        for n in range(N_FETCHES):
            (folder / f"{name}-{n}.json").write_text('{"text": "' + f"{name} {n} " * 200 + '"}')


class Cost(NamedTuple):
    """Of one page, in milliseconds."""

    wall: float
    cpu: float


class Driver:
    """Opens pages in one browser."""

    def __init__(self, cdp: CDP, session: str) -> None:
        self.cdp, self.session = cdp, session

    @classmethod
    async def attach(cls, ws_url: str, target_id: str) -> Driver:
        cdp = await CDP.connect(ws_url)
        attach = {"targetId": target_id, "flatten": True}
        return cls(cdp, (await cdp.send("Target.attachToTarget", attach))["sessionId"])

    async def page(self, url: str) -> Cost:
        """Open a page and wait until it is done."""
        wall, cpu = time.perf_counter(), time.process_time()
        await self.cdp.send("Page.navigate", {"url": url}, session=self.session, timeout_s=20)
        done = f"document.readyState === 'complete' && window.n === {N_FETCHES} && location.href === '{url}'"
        while True:
            call = {"expression": done}
            answer = await self.cdp.send("Runtime.evaluate", call, session=self.session)
            if answer["result"].get("value"):
                break
            await asyncio.sleep(0.01)
        return Cost((time.perf_counter() - wall) * 1000, (time.process_time() - cpu) * 1000)


async def live_and_recorded(url: str, warc: Path) -> tuple[list[Cost], list[Cost], int]:
    """The costs of live and of recorded pages by turns, and the recording's bytes."""
    live: list[Cost] = []
    recorded: list[Cost] = []
    backend = LocalChromium(BrowserOptions(guard="observed"))
    async with AsyncExitStack() as stack:
        plain = await stack.enter_async_context(opened(backend, Wanted()))
        kept = await stack.enter_async_context(opened(backend, Wanted()))
        recording = await Recording.start(socket_of(kept)[0], warc)
        drivers = [await Driver.attach(*socket_of(session)) for session in (plain, kept)]
        for turn in range(ROUNDS + 1):
            for place, name in enumerate(MODULES):
                pairs = list(zip(drivers, (live, recorded), strict=True))
                for driver, costs in pairs if (turn + place) % 2 else reversed(pairs):
                    cost = await driver.page(f"{url}/{name}.html")
                    if turn:  # the first round warms both browsers up
                        costs.append(cost)
        for driver in drivers:
            await driver.cdp.close()
        await recording.close()
    return live, recorded, warc.stat().st_size


async def replayed(url: str, path: Path) -> tuple[list[Cost], int]:
    """The costs of replayed pages, and how many requests were missed."""
    costs: list[Cost] = []
    backend = LocalChromium(BrowserOptions(guard="observed"))
    with Archive.open(path) as archive:
        async with replaying(backend, archive) as (session, replay):
            driver = await Driver.attach(*socket_of(session))
            for turn in range(ROUNDS + 1):
                for name in MODULES:
                    cost = await driver.page(f"{url}/{name}.html")
                    if turn:
                        costs.append(cost)
            await driver.cdp.close()
    return costs, replay.tally.missed


async def checked(url: str, folder: Path) -> tuple[list[float], dict[str, list[int]]]:
    """Megabytes of the package of each page that was looked at, and bytes of its parts."""
    sizes: list[float] = []
    parts: dict[str, list[int]] = {"text": [], "mhtml": [], "png": []}
    backend = LocalChromium(BrowserOptions(guard="observed"))
    async with opened(backend, Wanted()) as session:
        ws_url, target_id = socket_of(session)
        for name in MODULES:
            warc = folder / f"{name}.warc.gz"
            recording = await Recording.start(ws_url, warc, redactor=Redactor.of(()))
            async with looker(ws_url, target_id, Cleaning(Redactor.of(()))) as eye:
                look = await eye.visit(f"{url}/{name}.html", Patience())
            await recording.keep(look.page, look.parts)
            await recording.close()
            made = package(warc, folder / f"{name}.wacz", title=name)
            sizes.append(made.stat().st_size / 1e6)
            for part, content in look.parts.items():
                parts[part].append(len(content))
    return sizes, parts


def line(name: str, costs: list[Cost]) -> str:
    """Median and 95th percentile of time, mean of CPU."""
    walls = sorted(cost.wall for cost in costs)
    cpu = statistics.mean(cost.cpu for cost in costs)
    return (
        f"{name:10} n {len(costs):3}  median {statistics.median(walls):6.0f} ms  "
        f"p95 {walls[int(len(walls) * 0.95)]:6.0f} ms  CPU of the harness {cpu:5.1f} ms"
    )


async def bench(url: str, folder: Path, stop: contextlib.ExitStack) -> bool:
    """Measure, print, and say whether the targets are met."""
    live, recorded, n_bytes = await live_and_recorded(url, folder / "all.warc.gz")
    sizes, parts = await checked(url, folder)
    stop.close()
    path = package(folder / "all.warc.gz", folder / "all.wacz", title="all")
    again, missed = await replayed(url, path)
    for name, costs in (("live", live), ("recorded", recorded), ("replayed", again)):
        print(line(name, costs))
    medians = [statistics.median(c.wall for c in costs) for costs in (live, recorded, again)]
    added = statistics.median(r.wall - x.wall for r, x in zip(recorded, live, strict=True))
    cpu = statistics.mean(cost.cpu for cost in recorded)
    print(f"recorded against live: {medians[1] / medians[0]:.2f} times, {added:+.0f} ms a page")
    print(f"replayed against live: {medians[2] / medians[0]:.2f} times; {missed} requests missed")
    print(f"traffic: {n_bytes / 1e6 / ((ROUNDS + 1) * len(MODULES)):.2f} MB of archive a page")
    inside = ", ".join(f"{part} {statistics.mean(of) / 1e6:.2f}" for part, of in parts.items())
    print(f"a checked page: {statistics.mean(sizes):.2f} MB of package (unpacked, {inside} MB)")
    return (
        medians[1] <= RECORDED_TIMES * medians[0]
        and cpu <= RECORDED_CPU_MS
        and medians[2] <= REPLAYED_TIMES * medians[0]
        and missed == 0
    )


def main() -> int:
    """Serve the pages from another process, measure, and say whether the targets are met."""
    print(f"machine: {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before the start")
    print(
        f"targets: recorded <= {RECORDED_TIMES} and replayed <= {REPLAYED_TIMES} times live, "
        f"<= {RECORDED_CPU_MS} ms CPU a recorded page, nothing missed"
    )
    with tempfile.TemporaryDirectory(prefix="bub-") as name, contextlib.ExitStack() as stop:
        folder = Path(name)
        (folder / "pages").mkdir()
        write_pages(folder / "pages")
        command = [sys.executable, "-c", SERVE, str(folder / "pages")]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        stop.callback(server.wait)
        stop.callback(server.kill)
        assert server.stdout is not None
        url = f"http://127.0.0.1:{server.stdout.readline().strip()}"
        met = asyncio.run(bench(url, folder, stop))
    print("targets met" if met else "TARGET MISSED")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
