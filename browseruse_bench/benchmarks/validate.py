"""Everything that is wrong with a benchmark folder, found at once and before anything runs."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Literal

from pydantic import ValidationError

from browseruse_bench.benchmarks.evaluator_file import evaluator_problem
from browseruse_bench.benchmarks.folder import EVALUATOR, INFO, Place
from browseruse_bench.benchmarks.problems import Problem, from_validation
from browseruse_bench.benchmarks.references import References, read_references
from browseruse_bench.benchmarks.rows import FIELDS, Reader, TaskFile, read_task_file
from browseruse_bench.errors import DataError
from browseruse_bench.records.data_info import DataInfo, FieldSource
from browseruse_bench.records.rubric import CANARY
from browseruse_bench.records.task import Task
from browseruse_bench.store.files import read_json

State = Literal["ready", "not pulled", "invalid"]

_LEVELS = ("easy", "medium", "hard")

_PLACEHOLDERS = re.compile(
    r"\{\{[^{}]*\}\}"  # {{city}}
    r"|\$\{[^{}]*\}"  # ${city}
    r"|<[A-Z][A-Z0-9_ -]{2,}>"  # <PLACEHOLDER>; HTML in a task text is in lower case
    r"|^\s*(?:TODO|FIXME|TBD)\b|\b(?:TODO|FIXME|TBD):"  # a task may be about a list named TODO
    r"|\[(?:INSERT|YOUR|PLACEHOLDER)\b[^\]]*\]"
    r"|(?i:\blorem ipsum\b)"
)
"""What a template leaves behind. No text of LexBench, Online-Mind2Web, WebVoyager, GAIA,
Odysseys, WebArena and WebBench has any of it."""

_GUIDE_TEXTS = {"task description shown to the agent", "another task description"}


@dataclass(frozen=True)
class Examined:
    """What a benchmark folder holds, as far as it could be read, and what is wrong with it."""

    info: DataInfo | None = None
    pulled: bool = True
    splits: Mapping[str, tuple[Task, ...]] = field(default_factory=dict[str, tuple[Task, ...]])
    """The tasks of each split that was examined, in file order."""
    files: Mapping[str, TaskFile] = field(default_factory=dict[str, TaskFile])
    """The file of each of these splits, with its rows as published."""
    references: References = field(default_factory=lambda: References({}, {}))
    problems: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()

    @property
    def state(self) -> State:
        """Whether the benchmark can be run."""
        if self.info is not None and not self.pulled:
            return "not pulled"
        return "invalid" if self.problems else "ready"


def examine(place: Place, only: str | None = None) -> Examined:
    """Read a benchmark folder whole and collect what is wrong; nothing in it is executed.

    Args:
        place: where it is.
        only: a split; then the other splits, except the default one, are not looked at.
    """
    if place.problem is not None:
        return Examined(problems=(Problem(INFO, None, "", place.problem),))
    info, problems = _read_info(place.path / INFO)
    if info is None:
        return Examined(problems=tuple(problems))
    data = place.path / "data"
    problems += _info_problems(info)
    if not any(_split_path(data, name) for name in info.split.values()):
        return Examined(info, pulled=False, problems=(*problems, _not_pulled(info)))
    files, more = _read_splits(data, info, only)
    problems += more
    reader = Reader(field_sources(info), data, frozenset(info.split.values()))
    splits: dict[str, dict[int, Task]] = {}
    for name, file in files.items():
        splits[name], more = _tasks(file, reader, info.split[name])
        problems += more
    default = splits.get(info.default_split, {})
    known = reader.ids(files.get(info.default_split, TaskFile()).rows)
    if info.default_split in splits:
        problems += [*_split_differences(splits, info, known), *_unknown_excluded(info, known)]
    by_id = {task.task_id: task for task in default.values()}
    references = read_references(place.path, info, by_id, known)
    problems += references.problems
    problems += _evaluator_problems(place)
    return Examined(
        info,
        splits={name: tuple(tasks.values()) for name, tasks in splits.items()},
        files=files,
        references=references,
        problems=tuple(dict.fromkeys(problems)),
        warnings=tuple(_warnings(place, info, default, references)),
    )


def field_sources(info: DataInfo) -> dict[str, FieldSource]:
    """The mapping of data_info.json in its long form."""
    return {
        name: FieldSource(name=source) if isinstance(source, str) else source
        for name, source in info.fields.items()
    }


def _read_info(path: Path) -> tuple[DataInfo | None, list[Problem]]:
    if not path.is_file():
        return None, [Problem(INFO, None, "", f"missing: no such file as {path}")]
    try:
        return DataInfo.model_validate(read_json(path)), []
    except DataError as error:
        return None, [Problem(INFO, None, "", str(error).removeprefix(f"{path}: "))]
    except ValidationError as error:
        return None, from_validation(error, INFO)


def _info_problems(info: DataInfo) -> list[Problem]:
    found: list[tuple[str, str]] = []
    if info.default_split not in info.split:
        known = ", ".join(info.split)
        found.append(("default_split", f"'{info.default_split}' is not in split: {known}"))
    for name, file in info.split.items():
        text = _split_file_problem(file)
        if text is not None:
            found.append((f"split.{name}", text))
    for name in sorted(set(info.fields) - set(FIELDS)):
        found.append((f"fields.{name}", f"is no field of a task: {', '.join(FIELDS)}"))
    for host, target in info.sites.items():
        if not re.fullmatch(r"[\w.]+:\w+", target):
            found.append((f"sites.{host}", f"'{target}' is not of the form module:Site"))
        if not re.fullmatch(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?", host):
            found.append((f"sites.{host}", "is not a host name in lower case"))
    return [Problem(INFO, None, name, text) for name, text in found]


def _split_file_problem(file: str) -> str | None:
    parts = PurePosixPath(file).parts
    if not parts or file.startswith("/") or ".." in parts or "\\" in file or "\0" in file:
        return f"'{file}' is not a path below data/"
    if file.endswith(".enc"):
        return f"'{file}' is encrypted; encrypted task files are not supported yet"
    if not file.endswith((".json", ".jsonl")):
        return f"'{file}' is neither a .json nor a .jsonl file"
    return None


def _split_path(data: Path, file: str) -> Path | None:
    """The file of a split, if its name is sound and it is there."""
    path = data / file if _split_file_problem(file) is None else None
    return path if path is not None and path.is_file() else None


def _not_pulled(info: DataInfo) -> Problem:
    how = info.pull or f"put the file there; {INFO} does not say where it can be had (pull)"
    file = info.split.get(info.default_split) or next(iter(info.split.values()))
    return Problem(f"data/{file}", None, "", f"missing: the data is not pulled; {how}")


def _read_splits(
    data: Path, info: DataInfo, only: str | None
) -> tuple[dict[str, TaskFile], list[Problem]]:
    files: dict[str, TaskFile] = {}
    problems: list[Problem] = []
    for name, file in info.split.items():
        if only is not None and name not in (only, info.default_split):
            continue
        path = _split_path(data, file)
        if path is not None:
            files[name] = read_task_file(path, file)
        elif _split_file_problem(file) is None:
            text = f"'{file}' is missing below data/"
            problems.append(Problem(INFO, None, f"split.{name}", text))
    return files, problems


def _tasks(file: TaskFile, reader: Reader, name: str) -> tuple[dict[int, Task], list[Problem]]:
    broken = frozenset(p.index for p in file.problems if p.index is not None)
    tasks, problems = reader.tasks(file.rows, name, broken)
    problems = [*file.problems, *problems, *_duplicate_ids(tasks, name)]
    for index, task in tasks.items():
        placeholder = _PLACEHOLDERS.search(task.task)
        if placeholder is not None:
            text = f"'{placeholder.group().strip()}' is left over from a template"
            problems.append(Problem(name, index, "task", text))
        if CANARY.search(task.view.as_line()):
            problems.append(Problem(name, index, "task", "holds the canary of a rubric"))
    return tasks, sorted(problems, key=lambda p: -1 if p.index is None else p.index)


def _duplicate_ids(tasks: Mapping[int, Task], name: str) -> list[Problem]:
    problems: list[Problem] = []
    exact: dict[str, int] = {}
    folded: dict[str, int] = {}
    for index, task in tasks.items():
        task_id = task.task_id
        like = unicodedata.normalize("NFKC", task_id).casefold()
        if task_id in exact:
            text = f"duplicate of [{exact[task_id]}], '{task_id}'; ids must be unique"
            problems.append(Problem(name, index, "task_id", text))
        elif like in folded:
            other = folded[like]
            text = (
                f"'{task_id}' differs from [{other}], '{tasks[other].task_id}', only in case or "
                "Unicode form; such ids collide on some file systems"
            )
            problems.append(Problem(name, index, "task_id", text))
        exact.setdefault(task_id, index)
        folded.setdefault(like, index)
    return problems


def _split_differences(
    splits: Mapping[str, Mapping[int, Task]], info: DataInfo, known: Set[str]
) -> list[Problem]:
    """Tasks of a split that the default split lacks or has otherwise."""
    whole = {task.task_id: task for task in splits[info.default_split].values()}
    problems: list[Problem] = []
    for name, tasks in splits.items():
        if info.split[name] == info.split[info.default_split]:
            continue
        for index, task in tasks.items():
            task_id = task.task_id
            text = None
            if task_id not in known:
                text = f"'{task_id}' is not in the default split '{info.default_split}'"
            elif task_id in whole and (differing := _differing(task, whole[task_id])):
                text = f"'{task_id}' differs from the default split's in {differing}"
            if text is not None:
                problems.append(Problem(info.split[name], index, "task_id", text))
    return problems


def _differing(task: Task, other: Task) -> str:
    # Publishers mark their subsets with fields of their own, which change nothing.
    return ", ".join(name for name in FIELDS if getattr(task, name) != getattr(other, name))


def _evaluator_problems(place: Place) -> list[Problem]:
    """What is wrong with evaluator.py, where it is the one that is used."""
    file = place.path / EVALUATOR
    problem = evaluator_problem(file) if place.evaluator == str(file) else None
    return [problem] if problem else []


def _unknown_excluded(info: DataInfo, known: Set[str]) -> list[Problem]:
    return [
        Problem(INFO, None, f"exclude[{index}]", f"'{task_id}' is no task of the default split")
        for index, task_id in enumerate(info.exclude)
        if task_id not in known
    ]


def _warnings(
    place: Place, info: DataInfo, tasks: Mapping[int, Task], references: References
) -> Iterable[Problem]:
    """What may well be meant, but is worth a look."""
    file = info.split.get(info.default_split, "")
    for note in place.notes:
        yield Problem(EVALUATOR, None, "", note)
    if info.name is not None and info.name != place.name:
        text = f"is '{info.name}', but the benchmark is called '{place.name}' here"
        yield Problem(INFO, None, "name", text)
    yield from _task_warnings(file, tasks)
    unknown = Counter(t.difficulty for t in tasks.values() if t.difficulty)
    for level, n in unknown.items():
        if level.casefold() not in _LEVELS:
            text = f"'{level}' ({n} tasks) is none of {', '.join(_LEVELS)}"
            yield Problem(file, None, "difficulty", text)
    graded = references.rubrics
    silent = sum(t.expected_result is None and t.task_id not in graded for t in tasks.values())
    if silent and place.evaluator is None:
        text = (
            f"{silent} of {len(tasks)} tasks have neither a rubric nor an expected_result, and "
            "there is no evaluator: they can be run, not graded"
        )
        yield Problem(file, None, "", text)
    yield from references.warnings


def _task_warnings(file: str, tasks: Mapping[int, Task]) -> Iterable[Problem]:
    first: dict[str, int] = {}
    for index, task in tasks.items():
        if task.task.strip().casefold() in _GUIDE_TEXTS:
            yield Problem(file, index, "task", "is still the example text of the guide")
        same = first.setdefault(task.view.key, index)
        if same != index:
            text = f"the agent sees the same as in [{same}], '{tasks[same].task_id}'"
            yield Problem(file, index, "task", text)
