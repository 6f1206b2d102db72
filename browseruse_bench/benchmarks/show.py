"""Benchmarks for the eye and as JSON: what a folder holds, and what an agent sees of a task."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from browseruse_bench.benchmarks.folder import Place
from browseruse_bench.benchmarks.load import content_sha256, load_place
from browseruse_bench.benchmarks.problems import lines
from browseruse_bench.benchmarks.validate import Examined, examine


def as_json_text(value: Any) -> str:
    """A JSON value as indented text."""
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)


def findings_json(place: Place, examined: Examined) -> dict[str, Any]:
    """What `benchmark validate` found."""
    return {
        **_head(place, examined),
        "problems": [problem.as_json() for problem in examined.problems],
        "warnings": [warning.as_json() for warning in examined.warnings],
    }


def findings_lines(place: Place, examined: Examined) -> list[str]:
    """What `benchmark validate` found, a line each, and last how many of each kind."""
    n_tasks = _n_tasks(examined)
    head = f"{place.name} ({place.path}): {examined.state}"
    if n_tasks is not None:
        head += f", {n_tasks} tasks"
    counts = f"{len(examined.problems)} problems, {len(examined.warnings)} warnings"
    return [
        *lines(examined.problems),
        *(f"warning: {line}" for line in lines(examined.warnings)),
        f"{head}, {counts}",
    ]


def benchmark_json(place: Place) -> dict[str, Any]:
    """What a benchmark holds, as far as it can be read."""
    examined = examine(place)
    info = examined.info
    default = examined.splits.get(info.default_split, ()) if info else ()
    return {
        **_head(place, examined),
        "found": place.found,
        "evaluator": place.evaluator,
        "description": info.description if info else "",
        "pull": info.pull if info else None,
        "default_split": info.default_split if info else None,
        "splits": {name: len(tasks) for name, tasks in examined.splits.items()},
        "difficulty": _counts([task.difficulty for task in default]),
        "category": _counts([task.category for task in default]),
        "requires_login": sum(task.requires_login for task in default),
        "rubrics": len(examined.references.rubrics),
        "solutions": len(examined.references.solutions),
        "sites": dict(info.sites) if info else {},
        "excluded": list(info.exclude) if info else [],
        "content_sha256": content_sha256(place.path) if place.path.is_dir() else None,
        "problems": list(lines(examined.problems)),
        "warnings": list(lines(examined.warnings)),
    }


def benchmark_lines(place: Place) -> list[str]:
    """The same as text."""
    value = benchmark_json(place)
    shown = [f"{value['name']}: {value['state']}"]
    for name in ("description", "path", "found", "evaluator", "content_sha256", "pull"):
        if value[name]:
            shown.append(f"  {name.replace('_', ' ')}: {value[name]}")
    for name in ("splits", "difficulty", "category", "sites"):
        if value[name]:
            parts = ", ".join(f"{key} {n}" for key, n in value[name].items())
            shown.append(f"  {name}: {parts}")
    for name in ("requires_login", "rubrics", "solutions"):
        shown.append(f"  {name.replace('_', ' ')}: {value[name]}")
    if value["excluded"]:
        shown.append(f"  excluded: {', '.join(value['excluded'])}")
    shown += [f"  problem: {line}" for line in value["problems"]]
    shown += [f"  warning: {line}" for line in value["warnings"]]
    return shown


def task_json(place: Place, task_id: str) -> dict[str, Any]:
    """One task of the default split: what an agent sees, and all else.

    Raises:
        ConfigError: there is no such task.
        DataError: the benchmark cannot be run.
    """
    benchmark = load_place(place)
    task = benchmark.task(task_id)
    rubric = benchmark.rubric(task_id)
    view = task.view.as_json()
    seen = {"task_id", "task", "website", "start_url", "attachments"}
    solution = benchmark.references.solutions.get(task_id)
    return {
        "task_key": task.view.key,
        "agent_sees": view,
        "hidden": {name: value for name, value in task.row.items() if name not in seen},
        "rubric": rubric.as_json() if rubric else None,
        "solution_steps": solution.n_steps if solution else None,
    }


def task_lines(place: Place, task_id: str) -> list[str]:
    """The same as text."""
    value = task_json(place, task_id)
    shown = ["an agent sees:", *_indented(value["agent_sees"])]
    shown += ["an agent never sees:", *_indented(value["hidden"])]
    if value["rubric"] is not None:
        shown.append("  rubric:")
        shown += [
            f"    {item['weight']} {item['id']}: {item['requirement']}"
            for item in value["rubric"]["items"]
        ]
    if value["solution_steps"] is not None:
        shown.append(f"  reference solution: {value['solution_steps']} steps")
    return [*shown, f"task key: {value['task_key']}"]


def list_json(places: Sequence[Place], names: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """What `bubench list` knows: benchmarks, and the names of other plug-ins by kind.

    The state is that of the default split: what is wrong with another split only does not
    keep a benchmark from being run.
    """
    benchmarks: list[dict[str, Any]] = []
    for place in places:
        examined = examine(place, only="")
        pull = examined.info.pull if examined.info and not examined.pulled else None
        problems = list(lines(examined.problems)) if examined.state == "invalid" else []
        benchmarks.append({**_head(place, examined), "pull": pull, "problems": problems})
    return {"benchmarks": benchmarks, **{kind: list(known) for kind, known in names.items()}}


def list_lines(places: Sequence[Place], names: Mapping[str, Sequence[str]]) -> list[str]:
    """The same as text, in columns."""
    value = list_json(places, names)
    rows = [
        (b["name"], b["state"], "-" if b["n_tasks"] is None else str(b["n_tasks"]), b["path"])
        for b in value["benchmarks"]
    ]
    table = [("BENCHMARK", "STATE", "TASKS", "PATH"), *rows]
    widths = [max(len(row[column]) for row in table) for column in range(3)]
    shown = [
        f"{a:<{widths[0]}}  {b:<{widths[1]}}  {c:>{widths[2]}}  {path}" for a, b, c, path in table
    ]
    for benchmark in value["benchmarks"]:
        if benchmark["state"] == "not pulled":
            shown.append(f"{benchmark['name']}: {benchmark['pull'] or 'its data is missing'}")
        if benchmark["problems"]:
            name, n = benchmark["name"], len(benchmark["problems"])
            shown.append(f"{name}: {n} problems; see `bubench benchmark validate {name}`")
    return [*shown, *(f"{kind}: {', '.join(known)}" for kind, known in names.items())]


def _head(place: Place, examined: Examined) -> dict[str, Any]:
    return {
        "name": place.name,
        "state": examined.state,
        "n_tasks": _n_tasks(examined),
        "path": str(place.path),
    }


def _n_tasks(examined: Examined) -> int | None:
    """How many tasks the default split has; None if that is unknown."""
    info = examined.info
    tasks = examined.splits.get(info.default_split) if info else None
    return None if tasks is None else len(tasks)


def _counts(values: Sequence[str | None]) -> dict[str, int]:
    return dict(Counter(value or "(none)" for value in values).most_common())


def _indented(value: Mapping[str, Any]) -> list[str]:
    return [f"  {name}: {_shown(inner)}" for name, inner in value.items()]


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
