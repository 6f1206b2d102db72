"""Play the reference solutions of LocalSites in a browser, grade them, and say what failed.

    python benchmarks/LocalSites/verify.py [--site flights] [--task ID ...] [--wrong]

Every task must reach 100 points; with --wrong the wrong attempts of
tests/localsites/wrong.json are played instead, and must reach the points written there.
Prints one line per task: points, steps, seconds and the answer, and for a task that fails
the action that did or the items that were not met. Exit status 1 if any task fails.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from browseruse_bench.agents.base import AgentSetup
from browseruse_bench.agents.oracle import OracleAgent
from browseruse_bench.eval import checks
from browseruse_bench.records.run import AttemptEntry
from browseruse_bench.records.solution import Solution
from browseruse_bench.runs.execute import Progress, execute
from browseruse_bench.runs.plan import Plan, RunRequest, plan
from browseruse_bench.store.files import read_json
from browseruse_bench.store.trace_folder import TraceFolder

FOLDER = Path(__file__).resolve().parent
WRONG = FOLDER.parents[1] / "tests" / "localsites" / "wrong.json"


def main() -> int:
    parser = argparse.ArgumentParser(description="Play the solutions of LocalSites.")
    parser.add_argument("--site", help="only tasks whose id begins with this")
    parser.add_argument("--task", action="append", default=[], help="only this task; repeatable")
    parser.add_argument("--wrong", action="store_true", help="play the wrong attempts")
    parser.add_argument("--concurrency", type=int, default=2)
    parser.add_argument("--keep", type=Path, help="folder for the traces; default: removed")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        planned = _planned(chosen, chosen.keep or Path(scratch))
        if chosen.wrong:
            planned = dataclasses.replace(planned, agent=_wrong_agent())
        return asyncio.run(_play(planned, _expected(chosen.wrong)))


def _planned(chosen: argparse.Namespace, experiments: Path) -> Plan:
    rows: list[dict[str, Any]] = read_json(FOLDER / "data" / "tasks.json")
    task_ids = tuple(
        row["task_id"]
        for row in rows
        if row["task_id"].startswith(chosen.site or "")
        and (not chosen.task or row["task_id"] in chosen.task)
    )
    request = RunRequest(
        agent="oracle",
        benchmark=str(FOLDER),
        mode="ids",
        task_ids=task_ids,
        concurrency=chosen.concurrency,
        retries=0,
        fresh=True,
        experiments=experiments,
    )
    return plan(request)


def _wrong_agent() -> OracleAgent:
    wrong = read_json(WRONG)

    def solution_of(task_id: str) -> Solution:
        return Solution.model_validate(wrong[task_id]["solution"])

    return OracleAgent(AgentSetup(solution_of=solution_of, solutions_key="wrong"))


def _expected(wrong: bool) -> dict[str, int]:
    points = {task_id: case["points"] for task_id, case in read_json(WRONG).items()}
    return points if wrong else dict.fromkeys(points, 100)


async def _play(planned: Plan, expected: dict[str, int]) -> int:
    failed: list[str] = []

    def settled(progress: Progress) -> None:
        line, holds = _graded(planned, progress.entry, expected[progress.entry.task_id])
        print(line, flush=True)
        if not holds:
            failed.append(progress.entry.task_id)

    await execute(planned, on_settled=settled, stop=asyncio.Event())
    print(f"{len(planned.owed) - len(failed)} of {len(planned.owed)} as expected")
    return 1 if failed else 0


def _graded(planned: Plan, entry: AttemptEntry, expected: int) -> tuple[str, bool]:
    """One line on an attempt, and whether it earned exactly what it should."""
    path = planned.folder.try_path(entry.task_id, entry.attempt, entry.try_)
    trace = TraceFolder.open(path, entry.trace_key)
    rubric = planned.benchmark.rubric(entry.task_id)
    assert rubric is not None
    grade = checks.grade(trace, rubric)
    met = {finding.item for finding in grade.findings if finding.status == "met"}
    points = sum(item.weight for item in rubric.items if item.id in met)
    holds = points == expected and not grade.integrity and entry.status == "finished"
    outcome = trace.trace.outcome
    line = (
        f"{'pass' if holds else 'FAIL'} {entry.task_id:24} {float(points):5g} points "
        f"{entry.n_steps:3} steps {entry.wall_s:6.1f} s  {json.dumps(outcome.answer)}"
    )
    if not holds:
        unmet = [f"{f.item}: {f.status}: {f.reason}" for f in grade.findings if f.item not in met]
        flags = [f"{flag.flag}: {flag.claim}" for flag in grade.integrity]
        what = [f"{entry.status} {outcome.reason}".strip(), *trace.trace.errors, *unmet, *flags]
        line += "".join(f"\n     {text}" for text in what)
    return line, holds


if __name__ == "__main__":
    sys.exit(main())
