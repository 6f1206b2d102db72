"""Benchmark folders that are written: a new one, and the subset files of one."""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from browseruse_bench.benchmarks.folder import EVALUATOR, INFO, Place
from browseruse_bench.benchmarks.problems import lines
from browseruse_bench.benchmarks.rows import Row
from browseruse_bench.benchmarks.validate import Examined, examine
from browseruse_bench.errors import ConfigError, DataError
from browseruse_bench.store.files import read_json, segment_problem, write_atomic

LEVELS = ("Easy", "Medium", "Hard")
"""The names of the subsets; their files are tasks_easy.json and so on."""


def new_benchmark(name: str, parent: Path, *, with_evaluator: bool = False) -> Path:
    """Write a benchmark folder with two example tasks that can be run as they are.

    Returns:
        The folder.

    Raises:
        ConfigError: the name cannot be a folder's, or the folder is already there.
    """
    problem = segment_problem(name) or ("begins with '.'" if name.startswith(".") else None)
    if problem is not None:
        raise ConfigError(f"benchmark name '{name}' {problem}")
    folder = parent / name
    if folder.exists() or folder.is_symlink():
        raise ConfigError(f"{folder} is already there; choose another name or --dir")
    info = {
        "name": name,
        "description": f"What {name} measures, in one sentence.",
        "default_split": "All",
        "split": {"All": "tasks.json"},
    }
    tasks = _example_tasks(name)
    write_atomic(folder / "README.md", _README.replace("NAME", name))
    write_atomic(folder / "data" / "tasks.json", _pretty(tasks))
    if with_evaluator:
        write_atomic(folder / EVALUATOR, _EVALUATOR.replace("CLASS", _class_name(name)))
    write_atomic(folder / INFO, _pretty(info))
    write_split(plan_split(Place(name, folder)))
    return folder


@dataclass(frozen=True)
class SplitPlan:
    """What `write_split` will write."""

    files: Mapping[Path, tuple[Row, ...]]
    """Subset file -> its rows, as published."""
    info_path: Path
    info: Mapping[str, Any]
    """data_info.json with the subsets among its splits."""
    notes: tuple[str, ...]


def plan_split(place: Place) -> SplitPlan:
    """Sort the tasks of the default split by difficulty.

    A task whose difficulty is none of easy, medium and hard, whatever its case, is in no
    subset. A split of such a name that data_info.json already has keeps its file's name.

    Raises:
        ConfigError: a file of a subset's name is there that no split names.
        DataError: the default split cannot be read, or has problems.
    """
    # Only the default split counts: the subset files may be missing or out of date.
    examined = examine(place, only="")
    info = examined.info
    if info is None or examined.problems:
        raise DataError([f"{place.path}: {line}" for line in lines(examined.problems)])
    default = info.default_split
    raw: dict[str, Any] = read_json(place.path / INFO)
    split = dict(info.split)
    notes: list[str] = []
    files: dict[Path, tuple[Row, ...]] = {}
    groups = _groups(examined, default)
    for level in LEVELS:
        named = level in split
        file = split.setdefault(level, f"tasks_{level.lower()}.json")
        path = place.path / "data" / file
        if not named and path.exists():
            raise ConfigError(
                f"{path} is there, but no split of {INFO} names it: move it away, or name it "
                f'as "{level}" to have it written anew'
            )
        if level == default or file == split[default] or path.suffix != ".json":
            notes.append(f"split '{level}' is left as it is: {file}")
            continue
        files[path] = groups[level]
    left = groups[""]
    if left:
        ids = ", ".join(
            repr(t.task_id) for t in examined.splits[default] if not _level(t.difficulty)
        )
        notes.append(f"in no subset, for want of a difficulty easy, medium or hard: {ids}")
    return SplitPlan(files, place.path / INFO, {**raw, "split": split}, tuple(notes))


def write_split(plan: SplitPlan) -> None:
    """Write the subset files and then the data_info.json that names them."""
    for path, rows in plan.files.items():
        write_atomic(path, _pretty(list(rows)))
    write_atomic(plan.info_path, _pretty(plan.info))


def _groups(examined: Examined, default: str) -> dict[str, tuple[Row, ...]]:
    groups: dict[str, list[Row]] = {level: [] for level in (*LEVELS, "")}
    rows, tasks = examined.files[default].rows, examined.splits[default]
    for row, task in zip(rows, tasks, strict=True):
        groups[_level(task.difficulty)].append(row)
    return {level: tuple(rows) for level, rows in groups.items()}


def _level(difficulty: str | None) -> str:
    """The subset of a difficulty; empty if there is none."""
    level = (difficulty or "").strip().capitalize()
    return level if level in LEVELS else ""


def _pretty(value: Any) -> str:
    """JSON for people: indented, in the order of its fields, each character as it is."""
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _class_name(name: str) -> str:
    words = re.findall(r"[A-Za-z0-9]+", name)
    joined = "".join(word[0].upper() + word[1:] for word in words) + "Evaluator"
    return joined if joined.isidentifier() and not keyword.iskeyword(joined) else f"My{joined}"


def _example_tasks(name: str) -> list[Row]:
    prefix = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_") or "task"
    return [
        {
            "task_id": f"{prefix}_001",
            "task": "Open https://example.com/ and report the heading of the page.",
            "website": "example.com",
            "category": "information_retrieval",
            "expected_result": "Example Domain",
            "requires_login": False,
            "difficulty": "easy",
        },
        {
            "task_id": f"{prefix}_002",
            "task": "Open https://example.org/, follow the link on the page and report the "
            "host name of the site that it leads to.",
            "website": "example.org",
            "category": "navigation",
            "expected_result": "iana.org",
            "requires_login": False,
            "difficulty": "medium",
        },
    ]


_README = """# NAME

What this benchmark measures, where its tasks come from, and under which licence they are.

- `data/tasks.json`: the tasks; replace the two examples by your own.
- `data/tasks_easy.json`, `tasks_medium.json`, `tasks_hard.json`: subsets; written anew from
  `difficulty` by `bubench benchmark split NAME`.
- `data_info.json`: the name and the splits.

Check it with `bubench benchmark validate NAME`, and try it:

    bubench run --agent nop --benchmark NAME --mode first_n --count 2
    bubench eval --agent nop --benchmark NAME
"""

_EVALUATOR = '''"""How attempts at this benchmark are scored."""

from browseruse_bench.eval.base_evaluator import BaseEvaluator


class CLASS(BaseEvaluator):
    """Compares the answer with the task's expected_result."""

    def evaluate_task(self, task_id: str, result: dict) -> dict:
        """The label and score of one attempt; `_calculate_score` is the default matcher's."""
        score = self._calculate_score(result)
        return {
            "predicted_label": 1 if score >= 60 else 0,
            "score": score,
            "evaluation_details": {"answer": result["answer"]},
        }
'''
