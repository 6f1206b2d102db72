"""What the guard costs at each level: start of a session, and a request.

Levels alternate in one run, beside a Chromium that is started and ended without the harness
("bare"). Requests are fetches by a page of a site on this machine, one after the other; the
baseline is the same page at the level `observed`, where nothing is between browser and site. The
bars are on CPU time: other work on the machine lengthens a start several times over.

    python benches/guard.py        exit 1 if a target is missed; about two minutes
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from browseruse_bench.browsers.base import Session, SessionRequest
from browseruse_bench.browsers.cdp import CDP
from browseruse_bench.browsers.find import find_chromium
from browseruse_bench.browsers.guard.confinement import why_not_confined, why_not_layered
from browseruse_bench.browsers.guard.levels import LEVELS
from browseruse_bench.browsers.local import FLAGS, LocalChromium
from browseruse_bench.browsers.options import BrowserOptions
from browseruse_bench.store.process_table import table

ROUNDS = int(os.environ.get("BUBENCH_BENCH_ROUNDS", "15"))
REQUESTS = 300
LIMIT_CPU = 1.5
"""CPU of a start at the best level here, as a multiple of that at `observed`."""
LIMIT_REQUEST_MS = 2.0
"""CPU of the harness for a request, in ms."""

SITE = """
import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    def do_GET(self):
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.send_header("content-length", "1024")
        self.end_headers()
        self.wfile.write(b"x" * 1024)
    def log_message(self, *_): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
"""
FETCHES = """
(async () => {
    const took = [];
    for (let n = 0; n < COUNT; n++) {
        const t = performance.now();
        await (await fetch('/' + n, {cache: 'no-store'})).text();
        took.push(performance.now() - t);
    }
    return took.sort((a, b) => a - b)[COUNT >> 1];
})()
"""


def cpu_s(session: int, before: float) -> float:
    """CPU-seconds of all processes of a session, and of this process since `before`.

    Not of those that were waited for: of a Chromium that is killed most are waited for by nobody.
    """
    ticks = 0
    for seen in table():
        if seen.session == session:
            with contextlib.suppress(OSError):
                fields = Path(f"/proc/{seen.pid}/stat").read_text().rpartition(")")[2].split()
                ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK") + time.process_time() - before


async def bare(folder: Path) -> tuple[float, float]:
    """Seconds until a Chromium without the harness has answered, and of CPU; it is gone then."""
    profile = folder / "profile"
    own = ("--no-sandbox",) if os.geteuid() == 0 else ()
    flags = [flag for flag in FLAGS if flag != "--remote-debugging-pipe"]
    start, before = time.monotonic(), time.process_time()
    argv = [str(find_chromium(None)), *flags, *own, f"--user-data-dir={profile}", "about:blank"]
    chromium = await asyncio.create_subprocess_exec(
        *argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        file = profile / "DevToolsActivePort"
        while not (file.exists() and len(file.read_text().split()) == 2):
            await asyncio.sleep(0.01)
        port, path = file.read_text().split()
        cdp = await CDP.connect(f"ws://127.0.0.1:{port}{path}")
        await cdp.send("Browser.getVersion")
        took = time.monotonic() - start, cpu_s(chromium.pid, before)
        await cdp.close()
    finally:
        os.killpg(chromium.pid, signal.SIGKILL)
        await chromium.wait()
    return took


@asynccontextmanager
async def opened(
    backend: LocalChromium, folder: Path, site: int | None = None
) -> AsyncGenerator[tuple[Session, tuple[float, float]]]:
    """A session, with its seconds until it had started, and of CPU."""
    request = SessionRequest(
        work=folder / "work",
        downloads=folder / "work" / "downloads",
        owner=folder,
        hosts={} if site is None else {"shop.test": ("127.0.0.1", site)},
    )
    start, before = time.monotonic(), time.process_time()
    async with backend.open(request) as session:
        took = time.monotonic() - start
        (browser,) = backend._running.values()
        yield session, (took, cpu_s(browser.pgid, before))


async def fetched(session: Session) -> tuple[float, float]:
    """Milliseconds of a request, the median of REQUESTS, and of the harness's CPU for one."""
    assert session.ws_url is not None
    cdp = await CDP.connect(session.ws_url)
    attach = {"targetId": session.target_id, "flatten": True}
    page = (await cdp.send("Target.attachToTarget", attach))["sessionId"]
    await cdp.send("Page.navigate", {"url": "http://shop.test/"}, session=page)
    await asyncio.sleep(0.5)
    script = {
        "expression": FETCHES.replace("COUNT", str(REQUESTS)),
        "awaitPromise": True,
        "returnByValue": True,
    }
    before = time.process_time()
    answer = await cdp.send("Runtime.evaluate", script, session=page, timeout_s=60)
    own_ms = (time.process_time() - before) / REQUESTS * 1000
    await cdp.close()
    return float(answer["result"]["value"]), own_ms


def levels_here() -> list[str]:
    """The levels that this machine allows, the unguarded one first."""
    lacking = {"layered": why_not_layered(), "confined": why_not_confined()}
    for level, why in lacking.items():
        if why is not None:
            print(f"{level}: {why}")
    return [level for level in reversed(LEVELS) if lacking.get(level) is None]


class Row(NamedTuple):
    """What was measured of one level."""

    starts: list[tuple[float, float]]
    """Seconds of each start, and of CPU."""
    request_ms: tuple[float, float] | None
    """Of a request: time, and CPU of the harness."""


async def measured(site: int) -> dict[str, Row]:
    """A row for each level, and for a bare Chromium."""
    backends = {level: LocalChromium(BrowserOptions(guard=level)) for level in levels_here()}
    rows = {"bare": Row([], None)}
    for level, backend in backends.items():
        # The first session of a command proves more than those that follow; it is left out.
        with folder() as place:
            async with opened(backend, place, site) as (session, _):
                rows[level] = Row([], await fetched(session))
    for _ in range(ROUNDS):
        for name, row in rows.items():
            with folder() as place:
                if name == "bare":
                    row.starts.append(await bare(place))
                else:
                    async with opened(backends[name], place) as (_, took):
                        row.starts.append(took)
    return rows


class folder:  # noqa: N801  a context manager, used like a function
    """A temporary folder that a process may still be writing to when it goes."""

    def __enter__(self) -> Path:
        self.path = Path(tempfile.mkdtemp(prefix="bench-"))
        return self.path

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.path, ignore_errors=True)


def main() -> int:
    """Print the figures; 1 if a bar is missed."""
    site = subprocess.Popen([sys.executable, "-c", SITE], stdout=subprocess.PIPE, text=True)
    try:
        assert site.stdout is not None
        rows = asyncio.run(measured(int(site.stdout.readline())))
    finally:
        site.kill()
        site.communicate()
    for name, row in rows.items():
        least_ms = min(took for took, _ in row.starts) * 1000
        print(
            f"{name:9} start {median_ms(row, 0):5.0f} ms, at best {least_ms:4.0f}; "
            f"{median_ms(row, 1):4.0f} ms CPU",
            "" if row.request_ms is None
            else "  request {:.2f} ms, {:.2f} of our CPU".format(*row.request_ms),
        )  # fmt: skip
    best = list(rows)[-1]
    times = median_ms(rows[best], 1) / median_ms(rows["observed"], 1)
    assert rows[best].request_ms is not None
    own_ms = rows[best].request_ms[1]
    print(f"{best}: {times:.2f} x the CPU of observed (at most {LIMIT_CPU:g}),", end=" ")
    print(f"{own_ms:.2f} ms of our CPU a request (at most {LIMIT_REQUEST_MS:g})")
    print(f"median of {ROUNDS}; load {os.getloadavg()[0]:.2f} over {os.cpu_count()} cores")
    return 0 if times <= LIMIT_CPU and own_ms <= LIMIT_REQUEST_MS else 1


def median_ms(row: Row, which: int) -> float:
    """The median over the starts, in milliseconds: of time (0) or CPU (1)."""
    return statistics.median(start[which] for start in row.starts) * 1000


if __name__ == "__main__":
    sys.exit(main())
