"""What stands beside the tasks and is never shown to an agent: rubrics and solutions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from browseruse_bench.benchmarks.folder import INFO
from browseruse_bench.benchmarks.problems import Problem, from_validation
from browseruse_bench.benchmarks.publishers import PUBLISHERS
from browseruse_bench.benchmarks.publishers.rows import imported
from browseruse_bench.errors import ConfigError, DataError
from browseruse_bench.records.base import canonical_json
from browseruse_bench.records.data_info import DataInfo
from browseruse_bench.records.rubric import (
    MARKER,
    AnswerCheck,
    Check,
    FileCheck,
    ProbeCheck,
    Rubric,
    StateCheck,
    UrlCheck,
)
from browseruse_bench.records.solution import Solution
from browseruse_bench.records.task import Task
from browseruse_bench.store.files import escaped, read_json

RUBRICS, SOLUTIONS = "rubrics", "solutions"
FACTS = "facts"
"""Later checks of the rubrics' facts, and archived pages."""

_Record = TypeVar("_Record", Rubric, Solution)

_SEVERAL = re.compile(
    r"\b(?:both|each of|all (?:two|three|four|five|six|seven|eight|nine|ten|\d+))\b", re.IGNORECASE
)
"""Words by which a task asks for several things."""


@dataclass(frozen=True)
class References:
    """The rubrics and solutions that could be read, by task id."""

    rubrics: Mapping[str, Rubric]
    solutions: Mapping[str, Solution]
    problems: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()


def read_references(
    folder: Path, info: DataInfo, tasks: Mapping[str, Task], known_ids: Set[str]
) -> References:
    """Read and check all rubrics and solutions of a benchmark folder.

    Args:
        folder: the benchmark's folder.
        info: what it declares: sites and probes that checks may name.
        tasks: the sound tasks of the default split by id.
        known_ids: the ids of all of its rows.
    """
    ids = {escaped(task_id): task_id for task_id in known_ids}
    rubrics, problems = _read_all(folder / RUBRICS, Rubric, ids)
    published, more = _published(info, tasks)
    rubrics = {**published, **rubrics}
    problems += more
    solutions, more = _read_all(folder / SOLUTIONS, Solution, ids)
    problems += more
    warnings: list[Problem] = []
    for task_id, rubric in rubrics.items():
        file = f"{RUBRICS}/{escaped(task_id)}.json"
        task = tasks.get(task_id)
        if task is None:
            continue
        found = [*_belongs(rubric, task), *_checks(rubric, info)]
        problems += [Problem(file, None, field, text) for field, text in found]
        warnings += [Problem(file, None, field, text) for field, text in _suspicions(rubric, task)]
    return References(rubrics, solutions, tuple(problems), tuple(warnings))


def read_rubric(path: Path) -> Rubric:
    """The rubric in a JSON file.

    Raises:
        DataError: it is missing or not a rubric; all of its problems are listed.
    """
    content = read_json(path)
    try:
        return Rubric.model_validate(content)
    except ValidationError as error:
        raise DataError([str(problem) for problem in from_validation(error, str(path))]) from error


def _published(
    info: DataInfo, tasks: Mapping[str, Task]
) -> tuple[dict[str, Rubric], list[Problem]]:
    """The rubrics that the rows themselves bring along; a file of the folder goes before."""
    if info.rubrics is None:
        return {}, []
    try:
        rubric_of = PUBLISHERS.get(info.rubrics)
    except ConfigError as error:
        return {}, [Problem(INFO, None, "rubrics", str(error))]
    rubrics: dict[str, Rubric] = {}
    problems: list[Problem] = []
    for task_id, task in tasks.items():
        try:
            rubric = imported(rubric_of, task.row)
        except DataError as error:
            file = info.split.get(info.default_split, "")
            where = f"the rubric of task '{task_id}': "
            problems += [Problem(file, None, "", where + line) for line in error.problems]
        else:
            if rubric is not None:
                rubrics[task_id] = rubric
    return rubrics, problems


def _read_all(
    folder: Path, record: type[_Record], ids: Mapping[str, str]
) -> tuple[dict[str, _Record], list[Problem]]:
    records: dict[str, _Record] = {}
    problems: list[Problem] = []
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if path.name.startswith(".") or path.suffix not in (".json", ".md"):
            continue
        file = f"{folder.name}/{path.name}"
        if path.stem not in ids:
            if path.name != "README.md":
                problems.append(Problem(file, None, "", "matches no task of the default split"))
        elif path.suffix == ".json":
            try:
                records[ids[path.stem]] = record.model_validate(read_json(path))
            except DataError as error:
                text = str(error).removeprefix(f"{path}: ")
                problems.append(Problem(file, None, "", text))
            except ValidationError as error:
                problems += from_validation(error, file)
    return records, problems


def _belongs(rubric: Rubric, task: Task) -> Iterator[tuple[str, str]]:
    """Whether the rubric is the one of this task, as the task is now."""
    if rubric.task_id != task.task_id:
        yield "task_id", f"is '{rubric.task_id}', but the file is that of '{task.task_id}'"
    if rubric.task_key is not None and rubric.task_key != task.view.key:
        yield (
            "task_key",
            f"is {rubric.task_key}, but the task's key is {task.view.key}: "
            "the rubric was written for another wording of the task",
        )
    if rubric.canary is not None and rubric.canary in task.view.as_line():
        yield "canary", f"'{rubric.canary}' occurs in what the agent of '{task.task_id}' sees"


def _checks(rubric: Rubric, info: DataInfo) -> Iterator[tuple[str, str]]:
    for index, item in enumerate(rubric.items):
        if item.check is not None:
            for field, text in _check_problems(item.check, info):
                yield f"items[{index}].check.{field}", f"item '{item.id}': {text}"


def _check_problems(check: Check, info: DataInfo) -> Iterator[tuple[str, str]]:
    """Patterns that match everything or nothing, and names that nothing declares."""
    match check:
        case AnswerCheck():
            yield from _answer_problems(check)
        case UrlCheck():
            yield from _url_problems(check)
        case StateCheck():
            yield from _state_problems(check, info)
        case FileCheck():
            yield from _file_problems(check)
        case ProbeCheck():
            if check.name not in info.probes:
                yield "name", _undeclared(check.name, "probes", info.probes)


def _url_problems(check: UrlCheck) -> Iterator[tuple[str, str]]:
    if not check.host.strip() or re.search(r"[\s/:?#@]", check.host):
        yield "host", f"'{check.host}' is not a host name such as shop.test"
    if check.path is not None and not check.path.startswith("/"):
        yield "path", f"'{check.path}' does not begin with /"


def _state_problems(check: StateCheck, info: DataInfo) -> Iterator[tuple[str, str]]:
    if check.site not in info.sites:
        yield "site", _undeclared(check.site, "sites", info.sites)
    if not re.match(r"(?i)\s*(select|with)\b", check.sql):
        yield "sql", "is not a SELECT statement"


def _file_problems(check: FileCheck) -> Iterator[tuple[str, str]]:
    if not check.name.strip() or "/" in check.name or "\\" in check.name:
        yield "name", f"'{check.name}' is not a base name or a pattern such as *.csv"
    if check.contains is not None and not check.contains.strip():
        yield "contains", "is blank, which nearly every file would match"


def _answer_problems(check: AnswerCheck) -> Iterator[tuple[str, str]]:
    for field, values in (("values", check.values), ("seen", check.seen or ())):
        for index, value in enumerate(values):
            if not all(alternative.strip() for alternative in str(value).split(MARKER)):
                yield f"{field}[{index}]", f"{value!r} has an empty alternative, which always holds"
    if check.match in ("number", "date"):
        for index, value in enumerate(check.values):
            if not re.search(r"\d", str(value)):
                yield f"values[{index}]", f"{value!r} is not a {check.match}"


def _undeclared(name: str, table: str, declared: Mapping[str, object]) -> str:
    known = ", ".join(sorted(declared)) or "none"
    return f"'{name}' is not in data_info.json's {table} (declared: {known})"


def _suspicions(rubric: Rubric, task: Task) -> Iterator[tuple[str, str]]:
    """Where the rubric seems to ask for less than the task does, or for something it cannot."""
    word = _SEVERAL.search(task.task)
    if word is not None and len(rubric.items) == 1 and not _asks_several(rubric.items[0].check):
        yield (
            "items",
            f"the task says '{word.group()}', but there is one item: "
            "does it cover all that is asked?",
        )
    for index, item in enumerate(rubric.items):
        if item.check is not None and not isinstance(item.check, AnswerCheck):
            for field, value in item.check.as_json().items():
                if MARKER in canonical_json(value):
                    yield (
                        f"items[{index}].check.{field}",
                        f"item '{item.id}': '{MARKER}' parts alternatives in answers only; "
                        "here it is taken literally",
                    )


def _asks_several(check: Check | None) -> bool:
    if isinstance(check, AnswerCheck):
        return len(check.values) > 1
    return isinstance(check, StateCheck) and len(check.equals) > 1
