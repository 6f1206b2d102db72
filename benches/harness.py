"""What the harness itself costs: CPU of an attempt that does nothing, memory, and a resume.

Beside the attempts stands the time in which the same bytes are merely written, each file and
each line synced as the harness does it; beside the resume, the time in which the tasks and the
journal are merely read and parsed as JSON. CPU is user + system of this process.
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

from browseruse_bench.runs.execute import Progress, execute
from browseruse_bench.runs.plan import Plan, RunRequest, plan
from browseruse_bench.store.files import escaped

ATTEMPTS = int(os.environ.get("BUBENCH_BENCH_ATTEMPTS", "10000"))
LIMIT_MS = 5.0
LIMIT_RESUME_S = 1.0
LIMIT_GROWTH_MB = 10.0
"""How much more memory the last attempt may find in use than the one after a tenth of all."""


def made_request(folder: Path) -> RunRequest:
    """A run of nop over ATTEMPTS tasks, without a browser."""
    data = folder / "benchmarks" / "Bench" / "data"
    data.mkdir(parents=True)
    rows = [{"task_id": f"t{n}", "task": f"Find article {n}."} for n in range(ATTEMPTS)]
    (data / "tasks.json").write_text(json.dumps(rows))
    info = {"name": "Bench", "split": {"All": "tasks.json"}}
    (data.parent / "data_info.json").write_text(json.dumps(info))
    return RunRequest(
        agent="nop", benchmark=str(data.parent), browser="none", concurrency=4,
        experiments=folder / "experiments", cwd=folder,
    )  # fmt: skip


def carry_out(planned: Plan) -> tuple[float, float, float]:
    """CPU-seconds, seconds, and MB by which memory grew over the last nine tenths."""
    used: list[int] = []

    def look(progress: Progress) -> None:
        if progress.n_done in (ATTEMPTS // 10, ATTEMPTS):
            pages = int(Path("/proc/self/statm").read_text().split()[1])
            used.append(pages * resource.getpagesize())

    wall, cpu = time.monotonic(), time.process_time()
    asyncio.run(execute(planned, on_settled=look, stop=asyncio.Event()))
    cpu, wall = time.process_time() - cpu, time.monotonic() - wall
    return cpu, wall, (used[-1] - used[0]) / 1e6


def write_plainly(planned: Plan, folder: Path) -> tuple[float, int]:
    """CPU-seconds in which the run's files are written once more, and how many bytes they are."""
    files = [p for p in sorted((planned.folder.path / "tasks").rglob("*")) if p.is_file()]
    contents = [(str(p.relative_to(planned.folder.path)), p.read_bytes()) for p in files]
    lines = planned.folder.attempts_path.read_bytes().splitlines(keepends=True)
    cpu = time.process_time()
    for name, content in contents:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path, content)
    with (folder / "attempts.jsonl").open("ab") as journal:
        for line in lines:
            journal.write(line)
            journal.flush()
            os.fsync(journal.fileno())
    return time.process_time() - cpu, sum(len(content) for _, content in contents)


def write(path: Path, content: bytes) -> None:
    """Put the content on disk."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def resume(request: RunRequest) -> tuple[float, float]:
    """CPU-seconds to find that all has settled, and to parse the same files."""
    cpu = time.process_time()
    planned = plan(request)
    assert not planned.owed
    assert planned.n_settled == ATTEMPTS
    asyncio.run(execute(planned, on_settled=print, stop=asyncio.Event()))
    took = time.process_time() - cpu
    cpu = time.process_time()
    json.loads((planned.benchmark.path / "data" / "tasks.json").read_bytes())
    for line in planned.folder.attempts_path.read_bytes().splitlines():
        json.loads(line)
    return took, time.process_time() - cpu


def main() -> int:
    """Print the figures; 1 if a bar is missed."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        request = made_request(folder)
        planned = plan(request)
        cpu, wall, grown_mb = carry_out(planned)
        plain, n_bytes = write_plainly(planned, folder / escaped("plain"))
        again, parsed = resume(request)
    each_ms, plain_ms = cpu / ATTEMPTS * 1000, plain / ATTEMPTS * 1000
    print(f"{ATTEMPTS} attempts of nop without a browser, {n_bytes / ATTEMPTS:.0f} bytes each")
    print(
        f"an attempt       {each_ms:6.2f} ms CPU (at most {LIMIT_MS:g}), {wall / ATTEMPTS * 1000:.2f}"
        f" ms of time; {each_ms / plain_ms:.1f} x writing its files ({plain_ms:.2f} ms)"
    )
    print(f"memory           {grown_mb:+6.1f} MB over the last 90 % (at most {LIMIT_GROWTH_MB:g})")
    print(
        f"resume           {again:6.2f} s CPU (at most {LIMIT_RESUME_S:g}), {again / parsed:.1f} x "
        f"parsing its files ({parsed:.2f} s)"
    )
    print(f"load             {os.getloadavg()[0]:.2f} over {os.cpu_count()} cores")
    missed = (each_ms > LIMIT_MS, grown_mb > LIMIT_GROWTH_MB, again > LIMIT_RESUME_S)
    return 1 if any(missed) else 0


if __name__ == "__main__":
    sys.exit(main())
