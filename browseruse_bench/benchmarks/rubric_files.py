"""Where rubrics are: files, revisions in a folder, and benchmarks by name."""

from __future__ import annotations

import re
from pathlib import Path

from pydantic import ValidationError

from browseruse_bench.benchmarks.folder import Place, find
from browseruse_bench.benchmarks.problems import from_validation
from browseruse_bench.benchmarks.validate import examine
from browseruse_bench.errors import ConfigError, DataError
from browseruse_bench.records.rubric import Rubric
from browseruse_bench.registry import unknown_name
from browseruse_bench.store.files import read_json


def file_at(target: str) -> Path | None:
    """The file that FILE, FOLDER@N or FILE@N stands for; None: it is none of these.

    FOLDER@2 is r2.json in that folder, FILE@2 is r2.json beside the file. A file whose own name
    has an @ goes before.

    Raises:
        ConfigError: the folder has no such revision; those that it has are listed.
    """
    path = Path(target)
    if path.is_file():
        return path
    at = re.fullmatch(r"(?P<path>.+)@(?P<revision>\d+)", target, re.DOTALL)
    if at is None:
        return None
    base = Path(at["path"])
    folder = base if base.is_dir() else base.parent
    if not base.exists():
        return None
    wanted = folder / f"r{int(at['revision'])}.json"
    if not wanted.is_file():
        numbers = (re.fullmatch(r"r(\d+)", p.stem) for p in folder.glob("r*.json"))
        known = sorted(int(found[1]) for found in numbers if found)
        names = ", ".join(map(str, known)) or "none"
        raise ConfigError(f"{folder}: no revision {at['revision']}; there are: {names}")
    return wanted


def place_at(target: str) -> Place:
    """The benchmark that is meant where `target` is no file.

    Raises:
        ConfigError: there is no such benchmark, or it looks like a file that is not there.
    """
    if target.endswith((".json", ".enc")) or re.search(r"@\d+$", target):
        raise ConfigError(f"{target}: no such file")
    return find(target)


def read_rubric(path: Path) -> Rubric:
    """The rubric in a file.

    Raises:
        DataError: it holds none; each problem names its field.
    """
    value = read_json(path)
    try:
        return Rubric.model_validate(value)
    except ValidationError as error:
        raise DataError([problem.line for problem in from_validation(error, str(path))]) from None


def rubric_at(target: str, task_id: str | None = None) -> Rubric:
    """The rubric of a file, of a revision, or of a task of a benchmark.

    Raises:
        ConfigError: there is no such file, benchmark or task, or the task has no rubric.
        DataError: the rubric does not load.
    """
    path = file_at(target)
    if path is not None:
        return read_rubric(path)
    place = place_at(target)
    examined = examine(place)
    rubrics = examined.references.rubrics
    if task_id is None:
        raise ConfigError(f"{place.name}: name a task; {len(rubrics)} of its tasks have a rubric")
    if task_id not in rubrics:
        broken = [p.line for p in examined.problems if not rubrics or f"/{task_id}." in p.line]
        if broken:
            raise DataError(broken)
        raise ConfigError(unknown_name("task with a rubric", task_id, tuple(rubrics)))
    return rubrics[task_id]
