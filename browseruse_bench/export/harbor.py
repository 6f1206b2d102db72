"""Harbor task folders: one for each task, with the answer key below tests/ only.

    <out>/<task>/task.toml, instruction.md, environment/Dockerfile
    <out>/<task>/tests/test.sh        grades by `bubench grade`, writes reward.json
    <out>/<task>/tests/benchmark/     the one task with its rubric, canary and all

The agent leaves a report of what it saw and answered in /app/report.json; it is graded as
`agent_reported`. tests/ reaches the container only when the agent is done.
"""

from __future__ import annotations

import json
import re
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

from browseruse_bench.benchmarks.load import Benchmark
from browseruse_bench.errors import ConfigError
from browseruse_bench.export.outgoing import Exported, Wish, benchmark_splits, whole_folder
from browseruse_bench.records.rubric import Rubric
from browseruse_bench.records.task import Task
from browseruse_bench.store.files import escaped, write_json

_REPORT = """
---

Browse as you like. When you are done, write `/app/report.json`:

    {"answer": "...", "steps": [{"saw": "text of the page", "url": "address afterwards",
      "calls": [{"name": "click", "arguments": {}}]}]}

with one entry of `steps` for each action, in order. Only what you report as seen can support
your answer.
"""


def write(source: str, out: Path, wish: Wish) -> Exported:
    """A task folder for each task with a rubric is at `out`; raises as `outgoing.Exporter`."""
    if not wish.answers:
        raise ConfigError("harbor: tests/ of each task holds its rubric; give --answers")
    benchmark = benchmark_splits(source, wish)[0]
    if benchmark.evaluator is not None:
        raise ConfigError(f"{benchmark.name}: its own evaluator cannot go along in this format")
    rubrics = [(task, benchmark.rubric(task.task_id)) for task in benchmark.tasks]
    fit = [(t, r) for t, r in rubrics if r is not None and r.is_code and not t.attachments]
    if not fit:
        raise ConfigError(f"{benchmark.name}: no task has a rubric that code can check")
    with whole_folder(out) as folder:
        for task, rubric in fit:
            _write_task(folder / escaped(task.task_id), benchmark, task, rubric)
    n_left = len(rubrics) - len(fit)
    notes = [f"{n_left} tasks are left out: attachments, or no rubric that code can check"]
    return Exported(n_tasks=len(fit), notes=tuple(notes) if n_left else ())


def _write_task(folder: Path, benchmark: Benchmark, task: Task, rubric: Rubric) -> None:
    tests = folder / "tests"
    (folder / "environment").mkdir(parents=True)
    tests.mkdir()
    (folder / "task.toml").write_text(_config(benchmark, task))
    start = f"\n\nStart at {task.start_url}." if task.start_url else ""
    (folder / "instruction.md").write_text(f"{task.task}{start}\n{_REPORT}")
    (folder / "environment" / "Dockerfile").write_text(
        "FROM python:3.12-slim\n"
        f"RUN pip install --no-cache-dir 'browseruse-bench[demo,models]=={_version()}'\n"
        "WORKDIR /app\n"
    )
    templates = files("browseruse_bench.export") / "packages" / "harbor"
    for name in ("test.sh", "freeze.py"):
        (tests / name).write_text((templates / f"{name}.txt").read_text())
    (tests / "test.sh").chmod(0o755)
    one = tests / "benchmark"
    info = benchmark.info.as_json()
    write_json(one / "data_info.json", {**info, "default_split": "All", "split": {"All": "t.json"}})
    write_json(one / "data" / "t.json", [task.row])
    write_json(one / "rubrics" / f"{escaped(task.task_id)}.json", rubric.as_json())


def _version() -> str:
    return version("browseruse-bench")


def _config(benchmark: Benchmark, task: Task) -> str:
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", escaped(task.task_id)).strip("-_") or "task"
    about = {
        "benchmark": benchmark.name,
        "revision": benchmark.revision,
        "task_id": task.task_id,
        "task_key": task.view.key,
        "difficulty": task.difficulty or "",
        "category": task.category or "",
        "evidence_policy": "agent_reported",
    }
    # A JSON text is a TOML text, too, but for half of a surrogate pair and DEL.
    lines = ['schema_version = "1.0"', "", "[task]", f'name = "bubench/{plain}"', "", "[metadata]"]
    lines += [f"{name} = {json.dumps(value)}" for name, value in about.items()]
    lines += ["", "[agent]", "timeout_sec = 1800.0", "", "[verifier]", "timeout_sec = 600.0", ""]
    return "\n".join(lines)
