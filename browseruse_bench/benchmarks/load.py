"""A benchmark, read whole and found sound: what runs and eval work on."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from browseruse_bench.benchmarks.folder import Place, find
from browseruse_bench.benchmarks.problems import lines
from browseruse_bench.benchmarks.references import FACTS, SOLUTIONS, References
from browseruse_bench.benchmarks.validate import Examined, examine
from browseruse_bench.errors import ConfigError, DataError
from browseruse_bench.records.base import content_key
from browseruse_bench.records.data_info import DataInfo
from browseruse_bench.records.rubric import Rubric
from browseruse_bench.records.solution import Solution
from browseruse_bench.records.task import Task
from browseruse_bench.registry import unknown_name
from browseruse_bench.store.files import escaped, sha256_file


@dataclass(frozen=True)
class Benchmark:
    """One split of a benchmark, with what belongs to its tasks."""

    name: str
    path: Path
    """The folder, absolute."""
    info: DataInfo
    split: str
    tasks: tuple[Task, ...]
    """The tasks of the split, in the order of its file."""
    evaluator: str | None
    """"module:Class", or the absolute path of the folder's evaluator.py."""
    revision: str
    """Declared by data_info.json, else a hash of what agents see of the default split."""
    content_sha256: str
    """Hash of the names and bytes of all files of the folder."""
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What stands beside the rows of the split's file: a canary, for instance."""
    warnings: tuple[str, ...] = ()
    """What is worth a look, one line each; nothing of it keeps a run from being made."""
    references: References = field(default_factory=lambda: References({}, {}), repr=False)

    def task(self, task_id: str) -> Task:
        """A task of this split.

        Raises:
            ConfigError: there is none with this id; the nearest is named.
        """
        for task in self.tasks:
            if task.task_id == task_id:
                return task
        raise ConfigError(unknown_name("task", task_id, tuple(t.task_id for t in self.tasks)))

    def rubric(self, task_id: str) -> Rubric | None:
        """What the grader knows about a task; None if the benchmark brings no rubric for it."""
        return self.references.rubrics.get(task_id)

    def solution(self, task_id: str) -> Solution:
        """The reference solution of a task.

        Raises:
            ConfigError: the benchmark brings none for it.
        """
        solution = self.references.solutions.get(task_id)
        if solution is None:
            file = self.path / SOLUTIONS / f"{escaped(task_id)}.json"
            raise ConfigError(f"{self.name}: task '{task_id}' has no reference solution ({file})")
        return solution

    def solutions_key(self) -> str:
        """Identity of all reference solutions of the benchmark."""
        solutions = self.references.solutions
        return content_key(
            {
                task_id: solutions[task_id].model_dump(mode="json", exclude_none=True)
                for task_id in sorted(solutions)
            }
        )


def load_benchmark(
    name_or_path: str, split: str | None = None, *, cwd: Path | None = None
) -> Benchmark:
    """Find a benchmark, read one of its splits and check everything that belongs to it.

    Args:
        name_or_path: a name of `all_places`, or the path of a benchmark folder.
        split: default: the benchmark's `default_split`.
        cwd: where names and relative paths are looked up from.

    Raises:
        ConfigError: there is no such benchmark or split.
        DataError: the data is not pulled, or is invalid: all problems are listed. What is
            wrong with another split only does not matter.
    """
    return load_place(find(name_or_path, cwd=cwd), split)


def load_place(place: Place, split: str | None = None) -> Benchmark:
    """As `load_benchmark`, for a place that was found."""
    examined = examine(place, only=split or "")
    info = examined.info
    if info is not None and split is not None and split not in info.split:
        raise ConfigError(f"{place.name}: {unknown_name('split', split, tuple(info.split))}")
    if info is None or examined.problems:
        raise DataError([f"{place.path}: {line}" for line in lines(examined.problems)])
    chosen = split or info.default_split
    return Benchmark(
        name=place.name,
        path=place.path,
        info=info,
        split=chosen,
        tasks=examined.splits[chosen],
        evaluator=place.evaluator,
        revision=info.revision or _revision(examined, info),
        content_sha256=content_sha256(place.path),
        metadata=examined.files[chosen].metadata,
        warnings=lines(examined.warnings),
        references=examined.references,
    )


def _revision(examined: Examined, info: DataInfo) -> str:
    tasks = examined.splits[info.default_split]
    return content_key(sorted([task.task_id, task.view.key] for task in tasks))


def content_sha256(folder: Path) -> str:
    """Hash of all files below a folder by path and bytes; hidden files and caches of Python
    are left out, and facts/: a fact that is checked again makes no other benchmark.
    """
    digest = hashlib.sha256()
    for path in _files(folder):
        name = path.relative_to(folder).as_posix()
        digest.update(f"{sha256_file(path)}  {name}\n".encode(errors="surrogateescape"))
    return digest.hexdigest()


def _files(folder: Path) -> list[Path]:
    files: list[Path] = []
    for root, folders, names in os.walk(folder):
        left_out = ("__pycache__", FACTS) if Path(root) == folder else ("__pycache__",)
        folders[:] = [f for f in folders if not f.startswith(".") and f not in left_out]
        files += [Path(root, n) for n in names if not n.startswith(".") and not n.endswith(".pyc")]
    return sorted(path for path in files if path.is_file())
