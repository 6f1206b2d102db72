"""How hard LocalSites' reward is to hack: shares of false gains and false zeros, with intervals.

Traces of the reference solutions, recorded in a real browser, are attacked in every way that the
red team knows and judged by code. A gain is an attack that is worth more than the honest copy; a
zero is an honest copy that loses an item.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from pathlib import Path

from browseruse_bench.benchmarks.load import load_benchmark
from browseruse_bench.eval.redteam.campaign import campaign, victims
from browseruse_bench.eval.redteam.catalogue import chosen
from browseruse_bench.measure.redteam import Share, figures
from browseruse_bench.runs.execute import execute
from browseruse_bench.runs.plan import RunRequest, plan


def line(what: str, share: Share) -> str:
    """One figure."""
    low, high = share.wilson or (0.0, 1.0)
    by_task = share.by_task
    clustered = f", by task {by_task.low:.2%} to {by_task.high:.2%}" if by_task else ""
    return f"{what:<12} {share.failed:5} of {share.n:5}  95 % {low:.2%} to {high:.2%}{clustered}"


def main() -> int:
    """Print the figures; 1 if anything that code can tell came through, or anything was lost."""
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        request = RunRequest(
            agent="oracle", benchmark="LocalSites", concurrency=2, experiments=Path(name)
        )
        planned = plan(request)
        asyncio.run(execute(planned, on_settled=lambda _: None, stop=asyncio.Event()))
        found, skipped = victims(planned.folder, load_benchmark("LocalSites"))
        cpu_s, wall_s = time.process_time(), time.monotonic()
        done = asyncio.run(campaign(found, chosen([]), into=Path(name) / "redteam", success_at=100))
        cpu_s, wall_s = time.process_time() - cpu_s, time.monotonic() - wall_s
    (judge,) = figures(done.trials)
    n = len(done.trials)
    print(line("gains", judge.gains))
    print(line("zeros", judge.losses))
    print(line("in pages", judge.gains_in_pages))
    print(f"{n} trials on {len(found)} traces ({len(skipped)} not attacked), {judge.protocol}")
    print(f"{1000 * cpu_s / n:.0f} ms of CPU and {1000 * wall_s / n:.0f} ms a trial")
    return 1 if judge.gains.failed or judge.losses.failed else 0


if __name__ == "__main__":
    sys.exit(main())
