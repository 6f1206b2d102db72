"""CPU time and HTML size of a leaderboard over 20 runs of 200 tasks, and of 100 runs.

Beside each stands the time in which the same files are merely read and parsed as JSON.
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from browseruse_bench.benchmarks.load import Benchmark, load_benchmark
from browseruse_bench.eval.evaluate import references
from browseruse_bench.eval.judges import CodeJudge
from browseruse_bench.records.base import canonical_json
from browseruse_bench.records.run import Machine, Run, RunIdentity, Selection
from browseruse_bench.records.trace import AgentId, Guard, Limits
from browseruse_bench.report.html import leaderboard_page
from browseruse_bench.report.leaderboard import Leaderboard, build
from browseruse_bench.store.run_folder import RunFolder, find_runs

RUNS, MORE_RUNS, TASKS, ITEMS = 20, 100, 200, 5
LIMIT_S = 0.5
LIMIT_BYTES = 2_000_000
LINEAR = 1.5
"""Five times the runs may take so many times five times the time; what is quadratic takes 5."""
REPEATS = 5


def made_benchmark(folder: Path) -> Benchmark:
    """A benchmark of TASKS tasks with rubrics of ITEMS items that code can check."""
    rows = [
        {"task_id": f"task-{n:03}", "task": f"Find the price of article {n} in the shop."}
        for n in range(TASKS)
    ]
    write(folder / "data" / "tasks.json", json.dumps(rows))
    info = {"name": "Bench", "split": {"All": "tasks.json"}}
    write(folder / "data_info.json", json.dumps(info))
    for row in rows:
        items = [
            {
                "id": f"A{n}",
                "requirement": f"The page of part {n} is open",
                "weight": 20,
                "check": {"kind": "url", "host": "shop.test", "path": f"/{n}"},
            }
            for n in range(ITEMS)
        ]
        rubric = {"task_id": row["task_id"], "items": items}
        write(folder / "rubrics" / f"{row['task_id']}.json", json.dumps(rubric))
    return load_benchmark(str(folder))


def write(path: Path, text: str) -> None:
    """Put the text at the path, and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def made_run(root: Path, benchmark: Benchmark, number: int) -> None:
    """A run whose journals say that every task was attempted and judged."""
    rng = random.Random(number)
    identity = RunIdentity(
        benchmark=benchmark.name,
        revision=benchmark.revision,
        split=benchmark.split,
        agent=AgentId(name=f"agent-{number:03}", version="1", model=f"provider/model-{number}"),
        browser="local",
        limits=Limits(),
    )
    ids = tuple(task.task_id for task in benchmark.tasks)
    run = Run(
        run_id=identity.run_id,
        identity=identity,
        benchmark_dir=str(benchmark.path),
        benchmark_sha256=benchmark.content_sha256,
        guard=Guard(level="none"),
        machine=Machine(system="Linux", python="3.11", n_cores=2, memory_gb=4),
        selections=(Selection(task_ids=ids),),
        started_at="2026-01-01T00:00:00+00:00",
    )
    folder = RunFolder.at(root, identity, run.run_id)
    folder.write_run(run)
    known = references(benchmark)
    attempts, judgements = [], []
    for task_id in ids:
        trace_key = f"{rng.getrandbits(256):064x}"
        attempts.append(
            {
                **{"task_id": task_id, "attempt": 1, "try": 1, "trace_key": trace_key},
                **{"task_key": known[task_id].task_key, "status": "finished", "reason": ""},
                **{"n_steps": rng.randrange(3, 40), "wall_s": round(rng.uniform(5, 300), 3)},
                **{"cost_usd": round(rng.uniform(0.01, 0.5), 6), "at": "2026-01-01T00:01:00+00:00"},
            }
        )
        judgements.append(
            {
                **{"basis": "findings", "protocol": CodeJudge.protocol, "task_id": task_id},
                **{"attempt": 1, "task_key": known[task_id].task_key, "trace_key": trace_key},
                **{"rubric_key": known[task_id].rubric_key, "judge_key": CodeJudge.judge_key},
                **{"status": "graded", "at": "2026-01-01T00:02:00+00:00"},
                "findings": [finding(rng, n) for n in range(ITEMS)],
            }
        )
    for path, lines in ((folder.attempts_path, attempts), (folder.judgements_path, judgements)):
        write(path, "".join(canonical_json(line) + "\n" for line in lines))


def finding(rng: random.Random, number: int) -> dict[str, Any]:
    """A finding with a citation, as the code judge makes them."""
    met = rng.random() < 0.6
    citation = {
        **{
            "step": rng.randrange(1, 30),
            "source": "page",
            "ref": f"{rng.getrandbits(256):064x}.txt",
        },
        **{"quote": f"http://shop.test/{number}", "holds": True},
    }
    return {
        **{"item": f"A{number}", "claim": f"http://shop.test/{number} was open after some step"},
        **{"citations": [citation] if met else [], "status": "met" if met else "violated"},
        "reason": "" if met else "no page of that address was open",
    }


def cpu_s(work: Callable[[], object]) -> float:
    """The least user + system seconds of REPEATS runs of it."""
    best = float("inf")
    for _ in range(REPEATS):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def merely_parse(root: Path, benchmark: Benchmark) -> None:
    """Read and parse every file that the leaderboard rests on, and do nothing with it."""
    for path in sorted(benchmark.path.rglob("*.json")):
        json.loads(path.read_bytes())
    for folder in find_runs(root):
        json.loads((folder.path / "run.json").read_bytes())
        for path in (folder.attempts_path, folder.judgements_path):
            for line in path.read_bytes().splitlines():
                json.loads(line)


def measured(root: Path, benchmark: Benchmark) -> tuple[float, float, Leaderboard]:
    """(CPU seconds of `build`, those of merely parsing, the leaderboard)."""
    board = build(root)
    (group,) = board.groups
    assert all(row.figures.n == TASKS for row in group.rows), board.problems
    bare = cpu_s(lambda: merely_parse(root, benchmark))
    return cpu_s(lambda: build(root)), bare, board


def main() -> int:
    """Print the figures; 1 if a bar is missed."""
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        benchmark = made_benchmark(folder / "Bench")
        for number in range(MORE_RUNS):
            made_run(folder / "experiments", benchmark, number)
            if number + 1 == RUNS:
                built, bare, board = measured(folder / "experiments", benchmark)
        more, more_bare, more_board = measured(folder / "experiments", benchmark)
    page = leaderboard_page(board)
    drawn = cpu_s(lambda: leaderboard_page(board))
    size, more_size = len(page.encode()), len(leaderboard_page(more_board).encode())
    growth, size_growth = (
        a / b / (MORE_RUNS / RUNS) for a, b in ((more, built), (more_size, size))
    )
    print(
        f"build, {RUNS} runs x {TASKS} tasks   {built:6.3f} s CPU, {built / bare:.1f} x parsing the "
        f"same files ({bare:.3f} s) (at most {LIMIT_S:g} s)"
    )
    print(
        f"build, {MORE_RUNS} runs x {TASKS} tasks  {more:6.3f} s CPU, {more / more_bare:.1f} x parsing; "
        f"{growth:.2f} x linear (at most {LINEAR:g})"
    )
    print(
        f"HTML, {RUNS} runs          {size / 1000:8.0f} kB in {drawn:.3f} s CPU (at most 2000 kB)"
    )
    print(f"HTML, {MORE_RUNS} runs         {more_size / 1000:8.0f} kB, {size_growth:.2f} x linear")
    print(f"load                   {os.getloadavg()[0]:8.2f} over {os.cpu_count()} cores")
    missed = built > LIMIT_S or size > LIMIT_BYTES or max(growth, size_growth) > LINEAR
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
