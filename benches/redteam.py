"""How hard a reward is to hack: shares of false gains and false zeros, with intervals.

Traces of LocalSites' reference solutions, one of each template, recorded in a real browser, and, where
BUBENCH_ORACLE_DATA names the public data, twenty published traces of another harness are attacked in
every way that the red team knows, and judged by code. A gain is an attack that is worth more than the
honest copy; a zero is an honest copy that loses an item.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

from browseruse_bench.benchmarks.load import Benchmark, load_benchmark
from browseruse_bench.eval.evaluate import utc_now
from browseruse_bench.eval.redteam.campaign import campaign, victims
from browseruse_bench.eval.redteam.catalogue import chosen
from browseruse_bench.export.abp import Abp
from browseruse_bench.export.reported import Source, import_results, write_benchmark
from browseruse_bench.measure.redteam import Share, figures
from browseruse_bench.runs.execute import execute
from browseruse_bench.runs.plan import RunRequest, plan
from browseruse_bench.store.run_folder import RunFolder

RUBRICS = Path(__file__).resolve().parents[1] / "tests" / "export" / "rubrics"


def line(what: str, share: Share) -> str:
    """One figure."""
    low, high = share.wilson or (0.0, 1.0)
    by_task = share.by_task
    clustered = f", by task {by_task.low:.2%} to {by_task.high:.2%}" if by_task else ""
    return f"  {what:<10} {share.failed:5} of {share.n:5}  95 % {low:.2%} to {high:.2%}{clustered}"


def attacked(folder: RunFolder, benchmark: Benchmark, into: Path) -> int:
    """Print the figures of one run; how many trials failed that code could tell."""
    found, skipped = victims(folder, benchmark)
    cpu_s, wall_s = time.process_time(), time.monotonic()
    done = asyncio.run(campaign(found, chosen([]), into=into, success_at=100))
    cpu_s, wall_s = time.process_time() - cpu_s, time.monotonic() - wall_s
    (judge,) = figures(done.trials)
    n = len(done.trials)
    print(f"{benchmark.name}: {n} trials on {len(found)} traces ({len(skipped)} not attacked)")
    print(line("gains", judge.gains))
    print(line("zeros", judge.losses))
    print(line("in pages", judge.gains_in_pages))
    print(line("by word", judge.gains_by_word))
    print(f"  {1000 * cpu_s / n:.0f} ms of CPU and {1000 * wall_s / n:.0f} ms a trial")
    for trial in done.trials:
        if trial.is_counted and trial.failed and trial.tellable == "code":
            print(f"  came through: {trial.task_id} {trial.attack} {trial.gained} {trial.lost}")
    for trial in done.trials:
        if not trial.is_counted:
            print(f"  not counted: {trial.task_id} {trial.attack} {trial.after.message}")
    return judge.gains.failed + judge.losses.failed


def first_of_each_template(benchmark: Benchmark) -> tuple[str, ...]:
    """One task of each template: the others differ from it in their values only."""
    first: dict[str, str] = {}
    for task in benchmark.tasks:
        first.setdefault(task.row["template"], task.task_id)
    return tuple(first.values())


def published(root: Path, data: Path) -> tuple[RunFolder, Benchmark]:
    """Twenty published traces as a run, with rubrics of our own."""
    ids = {path.stem for path in RUBRICS.glob("*.json")}
    text = (data / "abp-online-mind2web" / "results.jsonl").read_text()
    lines = [one for one in text.splitlines() if json.loads(one)["task_id"] in ids]
    file = root / "results.jsonl"
    file.write_text("\n".join(lines) + "\n")
    write_benchmark(Abp().read(file), root / "Published")
    shutil.copytree(RUBRICS, root / "Published" / "rubrics")
    benchmark = load_benchmark(str(root / "Published"))
    source = Source.of(file, "abp", Abp(), None)
    done = import_results(source, benchmark, experiments=root / "experiments", now=utc_now)
    return done.folder, benchmark


def main() -> int:
    """Print the figures; 1 if anything that code can tell came through, or anything was lost."""
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        root = Path(name)
        benchmark = load_benchmark("LocalSites")
        request = RunRequest(
            agent="oracle",
            benchmark="LocalSites",
            mode="ids",
            task_ids=first_of_each_template(benchmark),
            concurrency=2,
            experiments=root,
        )
        planned = plan(request)
        asyncio.run(execute(planned, on_settled=lambda _: None, stop=asyncio.Event()))
        failed = attacked(planned.folder, benchmark, root / "own")
        if data := os.environ.get("BUBENCH_ORACLE_DATA"):
            failed += attacked(*published(root, Path(data)), root / "theirs")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
