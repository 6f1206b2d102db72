"""Four browser-use attempts at once: attempts per minute, and what share of the CPU is ours.

The model plays prepared steps and answers at once, so the processor never waits for it.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sys
import tempfile
import time
from pathlib import Path

from browseruse_bench.agents.environments import install
from browseruse_bench.runs.execute import execute
from browseruse_bench.runs.plan import RunRequest, plan

AT_ONCE = 4
LIMIT_SHARE = 0.10
SCRIPTS = (
    Path(__file__).resolve().parents[1] / "benchmarks" / "LocalSites" / "scripts" / "browser-use"
)


def cpu_s(who: int) -> float:
    """CPU-seconds of this process, or of all its descendants that have ended."""
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def main() -> int:
    """Print the figures; 1 if the bar is missed."""
    install("browser-use")
    task_ids = tuple(json.loads((SCRIPTS / "index.json").read_text()))
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        planned = plan(
            RunRequest(
                agent="browser-use",
                benchmark="LocalSites",
                mode="ids",
                task_ids=task_ids,
                model=f"scripted:{SCRIPTS}",
                concurrency=AT_ONCE,
                experiments=Path(name),
            )
        )
        own, others = cpu_s(resource.RUSAGE_SELF), cpu_s(resource.RUSAGE_CHILDREN)
        start = time.monotonic()
        asyncio.run(execute(planned, on_settled=lambda _: None, stop=asyncio.Event()))
        wall_s = time.monotonic() - start
        own = cpu_s(resource.RUSAGE_SELF) - own
        others = cpu_s(resource.RUSAGE_CHILDREN) - others
        entries = planned.folder.attempts().values()
    n, steps = len(entries), sum(entry.n_steps for entry in entries)
    infrastructure = sum(entry.status == "infrastructure" for entry in entries)
    share = own / (own + others)
    print(f"attempts    {n / wall_s * 60:6.1f} a minute, {AT_ONCE} at once; {steps} steps")
    print(f"CPU         {(own + others) / n:6.2f} s an attempt, of which {own / n:.2f} s are ours")
    print(f"our share   {share:6.1%} (at most {LIMIT_SHARE:.0%})")
    print(f"load        {os.getloadavg()[0]:6.2f} over {os.cpu_count()} cores")
    if infrastructure:
        print(f"{infrastructure} attempts ended as infrastructure failures")
    return 1 if share > LIMIT_SHARE or infrastructure else 0


if __name__ == "__main__":
    sys.exit(main())
