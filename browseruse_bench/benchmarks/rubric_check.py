"""Everything that is wrong or doubtful about rubrics, found at once, each with its place."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from pydantic import TypeAdapter, ValidationError

from browseruse_bench.benchmarks.compound import is_read
from browseruse_bench.benchmarks.folder import INFO, Place
from browseruse_bench.benchmarks.problems import Problem, from_validation
from browseruse_bench.benchmarks.publishers import PUBLISHERS
from browseruse_bench.benchmarks.publishers.rows import imported
from browseruse_bench.benchmarks.publishers.sealed import read_sealed
from browseruse_bench.benchmarks.references import RUBRICS
from browseruse_bench.benchmarks.rows import parse_json, read_task_file
from browseruse_bench.benchmarks.rubric_lint import RULES, Remark, lint
from browseruse_bench.benchmarks.validate import Examined, examine
from browseruse_bench.errors import DataError
from browseruse_bench.records.rubric import (
    Fact,
    Item,
    Rubric,
    Ruling,
    Shortcoming,
    contradictions,
    shortcomings,
)
from browseruse_bench.records.rubric_text import markdown
from browseruse_bench.records.task import Task
from browseruse_bench.store.files import escaped

Profile = Literal["load", "release"]
Level = Literal["error", "advice", "waived"]


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong or doubtful, and where."""

    level: Level
    """`error` refuses the rubric under the profile that it was checked for."""
    rule: str
    """`form` (it does not load), `release` (the strict profile), `markdown`, or a lint rule."""
    file: str
    item: str | None
    """The item, fact or ruling; None: the rubric as a whole."""
    field: str
    """Dotted path of the field; empty: all of it."""
    text: str

    @property
    def line(self) -> str:
        """As one line: `rubrics/a.json: A1_price.weight: 121/2 is not an integer`."""
        place = ".".join(part for part in (self.item, self.field) if part)
        level = "" if self.level == "error" else f"{self.level}: "
        kind = "" if self.rule in ("form", "release") else f" [{self.rule}]"
        return f"{level}{self.file}: {place}{': ' if place else ''}{self.text}{kind}"

    def as_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {
            "level": self.level, "rule": self.rule, "file": self.file, "item": self.item,
            "field": self.field, "text": self.text,
        }  # fmt: skip


@dataclass(frozen=True)
class Checked:
    """What came of checking one or more rubrics."""

    target: str
    profile: Profile
    rubrics: tuple[Rubric, ...]
    """Those that load."""
    n_without: int
    """Tasks that have no rubric."""
    findings: tuple[Finding, ...]

    @property
    def n_errors(self) -> int:
        """How many findings refuse a rubric."""
        return sum(finding.level == "error" for finding in self.findings)

    @property
    def n_unread(self) -> int:
        """Items whose language the rules on wording do not know."""
        items = (item for rubric in self.rubrics for item in rubric.items)
        return sum(not is_read(item.requirement) for item in items)

    def as_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {
            "target": self.target, "profile": self.profile, "rubrics": len(self.rubrics),
            "items": sum(len(rubric.items) for rubric in self.rubrics),
            "items_not_read": self.n_unread, "tasks_without_rubric": self.n_without,
            "errors": self.n_errors, "findings": [f.as_json() for f in self.findings],
        }  # fmt: skip

    def lines(self) -> list[str]:
        """Each finding on a line, and last how many there are of each kind."""
        counts = Counter((f.level, f.rule) for f in self.findings)
        kinds = [f"{n} {level} {rule}" for (level, rule), n in sorted(counts.items())]
        n_items = sum(len(rubric.items) for rubric in self.rubrics)
        head = f"{self.target}: {len(self.rubrics)} rubrics, {n_items} items, for {self.profile}"
        if self.n_without:
            head += f", {self.n_without} tasks without a rubric"
        if self.n_unread:
            head += f", {self.n_unread} items not in English, whose wording no rule reads"
        return [*(f.line for f in self.findings), f"{head}: {', '.join(kinds) or 'nothing found'}"]


# What is checked


def check_file(path: Path, profile: Profile) -> Checked:
    """One rubric's JSON file; in a benchmark folder, together with its task.

    Raises:
        DataError: the file is not there or cannot be read.
    """
    folder = path.resolve().parent.parent
    tasks: Mapping[str, Task] = {}
    problems: Sequence[Problem] = ()
    if path.resolve().parent.name == RUBRICS and (folder / INFO).is_file():
        examined = examine(Place(folder.name, folder))
        tasks, problems = _tasks(examined), examined.problems
    rubric, findings = _of_file(path, str(path), profile, tasks)
    if rubric is not None:
        findings = [*_foreign(problems, f"{RUBRICS}/{path.name}", str(path)), *findings]
    return Checked(str(path), profile, (rubric,) if rubric else (), 0, tuple(findings))


def check_benchmark(place: Place, profile: Profile) -> Checked:
    """All rubrics of a benchmark: its files, and those that its rows bring along."""
    examined = examine(place)
    tasks, findings = _tasks(examined), list[Finding]()
    folder = place.path / RUBRICS
    paths = sorted(folder.glob("*.json")) if folder.is_dir() else []
    rubrics: list[Rubric] = []
    for path in paths:
        name = f"{RUBRICS}/{path.name}"
        rubric, found = _of_file(path, name, profile, tasks)
        if rubric is not None:
            rubrics.append(rubric)
            found = [*_foreign(examined.problems, name, name), *found]
        findings += found
    file = examined.info.split.get(examined.info.default_split, "") if examined.info else ""
    in_files = {escaped(task_id) for task_id in tasks} & {path.stem for path in paths}
    for task_id, rubric in examined.references.rubrics.items():
        if escaped(task_id) not in in_files:
            rubrics.append(rubric)
            where = f"{file}: task '{task_id}'"
            findings += of_rubric(rubric, where, profile, tasks.get(task_id))
    others = [p for p in examined.problems if p.file not in {f"{RUBRICS}/{q.name}" for q in paths}]
    findings += [_form(p.file, None, p.field, p.text) for p in others]
    graded = {*in_files, *(escaped(task_id) for task_id in examined.references.rubrics)}
    n_without = sum(escaped(task_id) not in graded for task_id in tasks)
    return Checked(place.name, profile, tuple(rubrics), n_without, tuple(findings))


def check_published(
    path: Path, publisher: str, profile: Profile, *, plaintext: bool = False
) -> Checked:
    """The rubrics in a publisher's task file: `.json`, `.jsonl` or sealed `.enc`.

    What a sealed file holds is in no finding's text, unless `plaintext` asks for it.

    Raises:
        ConfigError: there is no such publisher, or a package is missing.
        DataError: the file cannot be read.
    """
    rubric_of = PUBLISHERS.get(publisher)
    is_sealed = path.suffix == ".enc"
    n_without, rubrics, findings = 0, list[Rubric](), list[Finding]()
    for index, row in enumerate(_rows(path)):
        file = f"{path.name}[{index}]"
        try:
            rubric = imported(rubric_of, row)
        except DataError as error:
            findings += [_form(file, None, "", line) for line in error.problems]
            continue
        if rubric is None:
            n_without += 1
            continue
        rubrics.append(rubric)
        findings += of_rubric(rubric, file, profile, None, quote=plaintext or not is_sealed)
    return Checked(str(path), profile, tuple(rubrics), n_without, tuple(findings))


def of_rubric(
    rubric: Rubric, file: str, profile: Profile, task: Task | None, *, quote: bool = True
) -> list[Finding]:
    """What there is to say about a rubric that loads.

    Args:
        rubric: the rubric.
        file: what findings call its file.
        profile: for what it is to be good.
        task: its task, if that is at hand.
        quote: whether findings may quote the rubric.
    """
    found: list[Finding] = []
    if profile == "release":
        found += [_of_shortcoming("release", s, file) for s in shortcomings(rubric)]
    return [*found, *(_of_remark(r, file, profile, quote=quote) for r in lint(rubric, task))]


# How it is read


def _rows(path: Path) -> Sequence[Mapping[str, Any]]:
    if path.suffix == ".enc":
        value = read_sealed(path)
        rows = cast("dict[str, Any]", value).get("tasks") if isinstance(value, dict) else value
        try:
            return TypeAdapter(list[dict[str, Any]]).validate_python(rows)
        except ValidationError:
            raise DataError(f"{path}: is not a list of tasks") from None
    file = read_task_file(path, path.name)
    if file.problems:
        raise DataError([problem.line for problem in file.problems])
    return file.rows


def _tasks(examined: Examined) -> Mapping[str, Task]:
    info = examined.info
    default = examined.splits.get(info.default_split, ()) if info else ()
    return {task.task_id: task for task in default}


def _parsed(path: Path) -> Any:
    try:
        return parse_json(path.read_bytes().decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise DataError(f"not UTF-8 (byte {error.start})") from None
    except ValueError as error:
        raise DataError(f"not JSON: {error}") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from None


def _of_file(
    path: Path, file: str, profile: Profile, tasks: Mapping[str, Task]
) -> tuple[Rubric | None, list[Finding]]:
    """The rubric, if it loads, and what there is to say about it."""
    if not path.is_file():
        raise DataError(f"{path}: no such file")
    try:
        raw = _parsed(path)
    except DataError as error:
        return None, [_form(file, None, "", line) for line in error.problems]
    try:
        rubric = Rubric.model_validate(raw)
    except ValidationError as error:
        return None, _unsound(raw, error, file)
    findings = of_rubric(rubric, file, profile, tasks.get(rubric.task_id))
    if profile == "release":
        findings += _written_otherwise(raw, file)
    return rubric, [*findings, *_stale_markdown(path, rubric, file, profile)]


def _unsound(raw: Any, error: ValidationError, file: str) -> list[Finding]:
    """All that keeps a rubric from loading: of its fields, and of what can be read of the rest."""
    findings: list[Finding] = []
    for problem in from_validation(error, file):
        if problem.field:
            findings.append(_form(file, _id_at(raw, problem.field), problem.field, problem.text))
    findings += [_of_shortcoming("form", s, file) for s in _contradictions(raw)]
    return findings or [_form(file, None, "", str(e["msg"])) for e in error.errors()]


def _contradictions(raw: Any) -> Iterator[Shortcoming]:
    """What the readable parts of a rubric contradict; weights only if all items can be read."""
    if not isinstance(raw, dict):
        return
    fields = cast("dict[str, Any]", raw)
    items, whole = _readable(Item, fields.get("items"))
    facts, _ = _readable(Fact, fields.get("facts"))
    rulings, _ = _readable(Ruling, fields.get("rulings"))
    if not items:
        return
    rubric = Rubric.model_construct(
        task_id="", items=tuple(items), facts=tuple(facts), rulings=tuple(rulings)
    )
    for found in contradictions(rubric):
        if whole or found.field != "weight":
            yield found


def _readable(record: type[Any], raw: Any) -> tuple[list[Any], bool]:
    """The elements of a list that can be read, and whether all can."""
    elements = cast("list[Any]", raw) if isinstance(raw, list) else []
    sound: list[Any] = []
    for element in elements:
        with contextlib.suppress(ValidationError):
            sound.append(record.model_validate(element))
    return sound, len(sound) == len(elements)


def _id_at(raw: Any, field: str) -> str | None:
    """The id of the element in which a field such as `items[2].weight` is."""
    name, bracket, rest = field.partition("[")
    index = rest.partition("]")[0]
    try:
        return str(raw[name][int(index)]["id"]) if bracket else None
    except (KeyError, IndexError, TypeError, ValueError):
        return None


def _written_otherwise(raw: Any, file: str) -> Iterator[Finding]:
    """Weights that are integers only by their value: 30.0, "30/1"."""
    for item in raw["items"]:
        weight = item["weight"]
        if not isinstance(weight, int):
            text = f"is written as {weight!r}; a release writes an integer"
            yield Finding("error", "release", file, item["id"], "weight", text)


def _stale_markdown(path: Path, rubric: Rubric, file: str, profile: Profile) -> Iterator[Finding]:
    beside = path.with_suffix(".md")
    if beside.is_file() and beside.read_bytes() != markdown(rubric).encode():
        text = f"{beside.name} is not what the JSON renders to: bubench rubric show {path.name}"
        level: Level = "error" if profile == "release" else "advice"
        yield Finding(level, "markdown", file, None, "", text)


# As findings


def _form(file: str, item: str | None, field: str, text: str) -> Finding:
    return Finding("error", "form", file, item, field, " ".join(text.split()))


def _foreign(problems: Sequence[Problem], name: str, file: str) -> list[Finding]:
    """What the benchmark's own validation says about a rubric file that loads."""
    return [_form(file, None, p.field, p.text) for p in problems if p.file == name]


def _of_shortcoming(rule: str, found: Shortcoming, file: str) -> Finding:
    part = found.part if found.id is None else None
    field = ".".join(name for name in (part, found.field) if name)
    return Finding("error", rule, file, found.id, field, found.text)


def _of_remark(remark: Remark, file: str, profile: Profile, *, quote: bool) -> Finding:
    level: Level = "error" if profile == "release" else "advice"
    text = remark.text if quote else RULES[remark.rule]
    if remark.waiver is not None:
        level, text = "waived", f"{text} — {remark.waiver.reason}" if quote else text
    part = None if remark.ids else remark.part
    field = ".".join(name for name in (part, remark.field) if name)
    return Finding(level, remark.rule, file, ", ".join(remark.ids) or None, field, text)
