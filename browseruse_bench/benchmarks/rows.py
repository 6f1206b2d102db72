"""Task files: from bytes to rows as published, and from a row to a task.

A file is a JSON list, an object with a list `tasks`, or (`.jsonl`) one object a line. Fields of
publishers are renamed by the mapping that data_info.json declares, never by guessing.
"""

from __future__ import annotations

import json
import math
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, cast

from pydantic import ValidationError

from browseruse_bench.benchmarks.problems import Problem, from_validation
from browseruse_bench.records.data_info import FieldSource
from browseruse_bench.records.task import Task
from browseruse_bench.store.files import sha256_file

Row = dict[str, Any]

TEXT_FIELDS = ("website", "category", "difficulty", "start_url")
FIELDS = ("task_id", "task", *TEXT_FIELDS, "expected_result", "requires_login", "attachments")

_FOREIGN = {
    "task_id": ("id", "tid", "qid", "uid", "ID"),
    "task": (
        "query",
        "ques",
        "question",
        "confirmed_task",
        "intent",
        "instruction",
        "prompt",
        "Task",
    ),
}
"""Names that publishers use; they serve to phrase a problem, never to read a row."""


@dataclass(frozen=True)
class TaskFile:
    """A task file as it was published."""

    rows: tuple[Row, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What stands beside the rows: a canary line, or the other fields of the object."""
    problems: tuple[Problem, ...] = ()


def read_task_file(path: Path, name: str) -> TaskFile:
    """Read a task file; what cannot be read is a problem, and the other rows still come.

    Args:
        path: an existing file.
        name: what problems call it.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return TaskFile(problems=(Problem(name, None, "", f"not UTF-8 (byte {error.start})"),))
    except OSError as error:
        return TaskFile(problems=(Problem(name, None, "", f"cannot be read: {error.strerror}"),))
    if path.suffix == ".jsonl":
        values, problems = _json_lines(text, name)
        return _rows(values, {}, name, problems)
    try:
        value = parse_json(text)
    except ValueError as error:
        hint = "; a file of one object a line is named .jsonl" if _looks_like_lines(text) else ""
        return TaskFile(problems=(Problem(name, None, "", f"not JSON: {error}{hint}"),))
    whole = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    if isinstance(whole.get("tasks"), list):
        return _rows(whole.pop("tasks"), whole, name, [])
    if not isinstance(value, list):
        text = 'is not a list of tasks, nor an object with a list "tasks"'
        return TaskFile(problems=(Problem(name, None, "", text),))
    return _rows(cast("list[Any]", value), {}, name, [])


def _json_lines(text: str, name: str) -> tuple[list[Any], list[Problem]]:
    values: list[Any] = []
    problems: list[Problem] = []
    # Not splitlines(): a JSON text may hold U+2028 and the like as they are.
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            values.append(parse_json(line))
        except ValueError as error:
            problems.append(Problem(name, None, "", f"line {number} is not JSON: {error}"))
    return values, problems


def _rows(
    values: list[Any], metadata: dict[str, Any], name: str, problems: list[Problem]
) -> TaskFile:
    first = cast("Row", values[0]) if values and isinstance(values[0], dict) else {}
    if set(first) == {"canary"}:
        metadata = {**metadata, **first}
        values = values[1:]
    rows: list[Row] = []
    for index, value in enumerate(values):
        if isinstance(value, dict):
            rows.append(cast("Row", value))
        else:
            rows.append({})
            problems.append(Problem(name, index, "", f"is not an object but {_kind(value)}"))
    return TaskFile(tuple(rows), metadata, tuple(problems))


def parse_json(text: str) -> Any:
    """JSON, without what JSON lacks (NaN) and without a name that occurs twice."""
    try:
        value = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_unique)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    try:
        text.encode()
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ValueError("half of a surrogate pair is not a character") from None
    return value


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        names = [name for name, _ in pairs]
        twice = sorted({name for name in names if names.count(name) > 1})
        raise ValueError(f"the field {', '.join(map(repr, twice))} occurs twice in one object")
    return value


def _looks_like_lines(text: str) -> bool:
    first, _, rest = text.strip().partition("\n")
    return first.startswith("{") and first.rstrip().endswith("}") and rest.startswith("{")


def _kind(value: Any) -> str:
    kinds = {bool: "true or false", int: "a number", float: "a number", str: "a text"}
    kinds |= {list: "a list", dict: "an object", type(None): "null"}
    return kinds[type(value)]


@dataclass(frozen=True)
class Reader:
    """Turns rows into tasks by one benchmark's mapping."""

    mapping: Mapping[str, FieldSource]
    """Task field -> where it comes from."""
    data: Path
    """The folder that attachments are in."""
    closed: frozenset[str] = frozenset()
    """Names below `data` that cannot be attachments: the task files."""

    def tasks(
        self, rows: Sequence[Row], name: str, broken: frozenset[int] = frozenset()
    ) -> tuple[dict[int, Task], list[Problem]]:
        """The tasks by position, and what is wrong with the others.

        Args:
            rows: as published.
            name: what problems call the file.
            broken: positions that already have a problem and are left out.
        """
        present = {i: row for i, row in enumerate(rows) if i not in broken}
        problems = self._foreign(present, name)
        said = {p.field for p in problems}
        tasks: dict[int, Task] = {}
        for index, row in present.items():
            task, found = self.task(row)
            problems += [Problem(name, index, f, text) for f, text in found if f not in said]
            if task is not None:
                tasks[index] = task
        return tasks, problems

    def task(self, row: Row) -> tuple[Task | None, list[tuple[str, str]]]:
        """One row as a task, or (field, what is wrong) of everything that is wrong with it."""
        values, found = self._mapped(row)
        wrong = {name for name, _ in found}
        for name in FIELDS:
            if name in wrong:
                continue
            absent = False if name == "requires_login" else None
            text = _FIELD_CHECKS[name](values.get(name, absent))
            if text is not None:
                found.append((name, text))
        if not any(name == "attachments" for name, _ in found):
            values["attachments"], bad = self._attachments(values.get("attachments") or ())
            found += bad
        if found:
            return None, [(self._published(name), text) for name, text in found]
        blank = {name for name in TEXT_FIELDS if not (values.get(name) or "").strip()}
        values = {name: value for name, value in values.items() if name not in blank}
        try:
            return Task.model_validate(values), []
        except ValidationError as error:
            return None, [(p.field, p.text) for p in from_validation(error, "")]

    def ids(self, rows: Sequence[Row]) -> frozenset[str]:
        """The ids of rows, sound or not."""
        values: list[Any] = [self._mapped(row)[0].get("task_id") for row in rows]
        return frozenset(value for value in values if id_problem(value) is None)

    def _published(self, name: str) -> str:
        return self.mapping[name].name if name in self.mapping else name

    def _mapped(self, row: Row) -> tuple[Row, list[tuple[str, str]]]:
        values = dict(row)
        found: list[tuple[str, str]] = []
        taken: Row = {}
        for name, source in self.mapping.items():
            values.pop(source.name, None)
            if source.name not in row:
                # The publisher's own field of that name, if any, means something else.
                values.pop(name, None)
                continue
            taken[name] = row[source.name]
            if source.convert is not None:
                taken[name], text = _CONVERT[source.convert](row[source.name])
                found += [(name, text)] if text else []
        values.update(taken)
        return values, found

    def _foreign(self, rows: Mapping[int, Row], name: str) -> list[Problem]:
        """One problem per required field that every row lacks: the mapping is missing."""
        problems: list[Problem] = []
        for wanted in ("task_id", "task"):
            published = self._published(wanted)
            if not rows or any(published in row for row in rows.values()):
                continue
            hint = _hint(wanted, published, next(iter(rows.values())))
            text = f"missing in all {len(rows)} rows; {hint}"
            problems.append(Problem(name, None, published, text))
        return problems

    def _attachments(self, names: Sequence[Any]) -> tuple[list[Row], list[tuple[str, str]]]:
        attachments: list[Row] = []
        found: list[tuple[str, str]] = []
        for position, name in enumerate(names):
            text = self._attachment_problem(name)
            if text is not None:
                found.append(("attachments", f"[{position}] {text}"))
            else:
                attachments.append({"name": name, "sha256": sha256_file(self.data / name)})
        return attachments, found

    def _attachment_problem(self, name: Any) -> str | None:
        if not isinstance(name, str) or not name.strip():
            return "is not the name of a file below data/"
        parts = PurePosixPath(name).parts
        if "\\" in name or "\0" in name or name.startswith("/") or ".." in parts:
            return f"'{name}' leads out of data/"
        path = self.data / name
        if not path.is_file():
            return f"'{name}' is not a file below data/"
        if not path.resolve().is_relative_to(self.data.resolve()):
            return f"'{name}' is a link that leads out of data/"
        if PurePosixPath(name).as_posix() in self.closed or path.name.startswith("."):
            return f"'{name}' is not for agents: it is a task file or hidden"
        return None


def _hint(wanted: str, published: str, row: Row) -> str:
    encrypted = next((name for name in row if name.startswith("encrypted_")), None)
    if encrypted is not None:
        return f"the rows are encrypted ('{encrypted}'): not supported yet"
    near = next((name for name in _FOREIGN[wanted] if name in row), None)
    fields = ", ".join(sorted(row)) or "no fields"
    if near is None:
        source = f"data_info.json maps it to '{published}'; " if published != wanted else ""
        entry = f'"fields": {{"{wanted}": "<its name>"}}'
        return f"{source}the first row has: {fields}; name the right one in data_info.json: {entry}"
    value: Any = near
    if wanted == "task_id" and isinstance(row[near], int):
        value = {"name": near, "convert": "string"}
    entry = json.dumps({wanted: value})
    return f"if '{near}' is what is meant, add it to data_info.json: \"fields\": {entry}"


_INVISIBLE = {"Cc", "Cf", "Cs", "Zl", "Zp"}
"""Unicode categories of control, format (zero-width, bidirectional) and line characters."""


def id_problem(value: Any) -> str | None:
    """Why a value is no task id; None if it is one.

    Separators and the like are no problem: where an id becomes a path it is escaped.
    """
    if value is None:
        return "missing; every task has an id of its own"
    if isinstance(value, int) and not isinstance(value, bool):
        return (
            f"{value} is a number, not a text; write it in quotes, or declare "
            '"convert": "string" for it in data_info.json'
        )
    if not isinstance(value, str):
        return f"is {_kind(value)}, not a text"
    if not value.strip():
        return "is empty"
    if value != value.strip():
        return f"{value!r} begins or ends with a space"
    if any(unicodedata.category(c) in _INVISIBLE for c in value):
        return f"{value!r} has a control character"
    return None


def _task_problem(value: Any) -> str | None:
    if value is None:
        return "missing; it is what the agent is asked to do"
    if not isinstance(value, str):
        return f"is {_kind(value)}, not a text"
    return None if value.strip() else "is empty"


def _text_problem(value: Any) -> str | None:
    return None if value is None or isinstance(value, str) else f"is {_kind(value)}, not a text"


def _url_problem(value: Any) -> str | None:
    if not isinstance(value, str) or not value.strip():
        return _text_problem(value)
    if not value.startswith(("http://", "https://")):
        return f"{value!r} is not an address that begins with http:// or https://"
    return None


def _bool_problem(value: Any) -> str | None:
    return None if isinstance(value, bool) else f"is {_kind(value)}, not true or false"


def _expected_problem(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, list):
        items = cast("list[Any]", value)
        if not items:
            return "is an empty list, which every answer would match; leave it out"
        bad = ((i, _scalar_problem(item)) for i, item in enumerate(items))
        return next((f"[{i}] {text}" for i, text in bad if text), None)
    return _scalar_problem(value)


def _scalar_problem(value: Any) -> str | None:
    if isinstance(value, str):
        return None if value.strip() else "is empty, which every answer would match; leave it out"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return f"is {_kind(value)}, not a text, a number or a list of these"
    return None if math.isfinite(value) else "is not a finite number"


def _list_problem(value: Any) -> str | None:
    return None if value is None or isinstance(value, list) else f"is {_kind(value)}, not a list"


_FIELD_CHECKS: Mapping[str, Callable[[Any], str | None]] = {
    "task_id": id_problem,
    "task": _task_problem,
    "website": _text_problem,
    "category": _text_problem,
    "difficulty": _text_problem,
    "start_url": _url_problem,
    "expected_result": _expected_problem,
    "requires_login": _bool_problem,
    "attachments": _list_problem,
}


def _to_string(value: Any) -> tuple[Any, str | None]:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(value), None
    return value, None


def _to_boolean(value: Any) -> tuple[Any, str | None]:
    words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    if isinstance(value, (str, int)) and str(value).strip().casefold() in words:
        return words[str(value).strip().casefold()], None
    return value, f"{value!r} is none of true/false, yes/no, 1/0"


_CONVERT: Mapping[str, Callable[[Any], tuple[Any, str | None]]] = {
    "string": _to_string,
    "boolean": _to_boolean,
}
