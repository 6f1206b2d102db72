"""Wall time of `bubench demo` after set-up, beside bare starts of the same browser."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from browseruse_bench.browsers.base import SessionRequest
from browseruse_bench.browsers.local import LocalChromium
from browseruse_bench.browsers.options import BrowserOptions

LIMIT_S = 300.0
STARTS = 10


def demo_s(folder: Path) -> float:
    """Seconds of one whole demo.

    Raises:
        CalledProcessError: it did not end well.
    """
    start = time.monotonic()
    subprocess.run(
        [sys.executable, "-m", "browseruse_bench", "demo", "--experiments", str(folder)],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return time.monotonic() - start


async def starts_s(folder: Path) -> float:
    """Seconds of STARTS starts and stops of Chromium, two at a time."""
    backend = LocalChromium(BrowserOptions())

    async def once(number: int) -> None:
        work = folder / f"browser-{number}"
        request = SessionRequest(work=work, downloads=work / "downloads", owner=folder)
        async with backend.open(request):
            pass

    start = time.monotonic()
    for number in range(0, STARTS, 2):
        await asyncio.gather(once(number), once(number + 1))
    return time.monotonic() - start


def main() -> int:
    """Print the figures; 1 if the bar is missed."""
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        bare = asyncio.run(starts_s(folder)) / STARTS
        total = demo_s(folder / "experiments")
        attempts = list((folder / "experiments").glob("*/*/*/*/*/attempts.jsonl"))
        entries = [json.loads(x) for p in attempts for x in p.read_text().splitlines()]
    n, steps = len(entries), sum(entry["n_steps"] for entry in entries)
    print(
        f"bubench demo     {total:6.1f} s for {n} attempts with {steps} steps (at most {LIMIT_S:g} s)"
    )
    print(
        f"an attempt       {total / n:6.2f} s, {total / n / bare:.1f} x a bare start and stop of Chromium"
    )
    print(f"bare Chromium    {bare:6.2f} s a start and stop, two at a time")
    print(f"load             {os.getloadavg()[0]:.2f} over {os.cpu_count()} cores")
    return 1 if total > LIMIT_S else 0


if __name__ == "__main__":
    sys.exit(main())
