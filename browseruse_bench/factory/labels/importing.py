"""Labels from a file: CSV, JSON lines or a JSON list.

    text,labeller,label,reason,tags,hard,seconds,at
    "Find ...",ada,unsuitable,"Any search does it",too_easy,no,12,2026-01-01T00:00:00+00:00

One label a row; or one text a row with `labels`, a list of such objects (JSON only). `verdict`
serves for `label`, `annotator` for `labeller`; tags are a list, or words with commas or
semicolons between them. `source` is kept with the task. Only text, labeller and label are needed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError

from browseruse_bench.errors import BenchError, DataError
from browseruse_bench.eval.labels import read_rows, refuse
from browseruse_bench.factory.labels.desk import checked_labeller
from browseruse_bench.factory.labels.lines import LabelTask, new_task
from browseruse_bench.factory.labels.store import LabelStore
from browseruse_bench.records.label import REASON_TAGS, Label, text_hash

HARD = "hard"
"""What a tag can stand for beside those of reasons: that the task is hard."""
_YES_NO: Mapping[str, bool | None] = {
    "": None,
    "yes": True,
    "true": True,
    "1": True,
    "no": False,
    "false": False,
    "0": False,
}


@dataclass(frozen=True, kw_only=True)
class Read:
    """What a file holds."""

    tasks: tuple[LabelTask, ...]
    labels: tuple[Label, ...]
    other_tags: Mapping[str, int]
    """Tags that are none of ours, and how often; they are kept beside ours."""


@dataclass(frozen=True, kw_only=True)
class Imported:
    """What came of it."""

    n_tasks: int
    """Tasks that were not there before."""
    n_labels: int
    n_known: int
    """Labels left out: this labeller has labelled this task already."""
    n_sealed: int
    """Of the labels that came in."""


def read_labels(path: Path, *, tags: Mapping[str, str], at: str) -> Read:
    """The labels of a file.

    Args:
        path: the file.
        tags: name of a tag there -> one of ours, or `hard`.
        at: the time of labels that tell none.

    Raises:
        DataError: it is no such file, a row is no label, or somebody labels a text twice; all
            such rows are named.
    """
    known = {**{tag: tag for tag in REASON_TAGS}, **tags}
    tasks: dict[str, LabelTask] = {}
    labels: list[Label] = []
    problems: list[str] = []
    for place, row in _flat(path):
        try:
            task, label = _label(row, known, at)
        except (ValidationError, ValueError, BenchError) as error:
            problems.append(f"{path}: {place}: {_why(error)}")
            continue
        tasks.setdefault(task.key, task)
        labels.append(label)
    counts = Counter((label.task, label.labeller) for label in labels)
    problems += [
        f"{path}: '{tasks[task].text[:60]}' is labelled {n} times by {who}"
        for (task, who), n in counts.items()
        if n > 1
    ]
    refuse(problems)
    if not labels:
        raise DataError(f"{path}: holds no label")
    others = Counter(tag for label in labels for tag in label.other_tags)
    return Read(
        tasks=tuple(tasks.values()), labels=tuple(labels), other_tags=dict(others.most_common())
    )


def _flat(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """(place, row) with one label each."""
    for place, row in read_rows(path):
        inner: object = row.get("labels")
        if not isinstance(inner, list):
            yield place, row
            continue
        outer = {key: value for key, value in row.items() if key != "labels"}
        for n, each in enumerate(cast("list[object]", inner), 1):
            if not isinstance(each, dict):
                raise DataError(f"{path}: {place}: labels: number {n} is no object")
            yield f"{place}, label {n}", {**outer, **cast("dict[str, Any]", each)}


def _label(row: Mapping[str, Any], known: Mapping[str, str], at: str) -> tuple[LabelTask, Label]:
    text = _cell(row, "text")
    if not text:
        raise ValueError("text: is empty")
    task = new_task(text, source=_cell(row, "source"), at=at)
    said = _tags(row.get("tags"))
    ours = {known[tag] for tag in said if tag in known}
    hard = _hard(_cell(row, "hard"))
    label = Label.model_validate(
        {
            "task": task.key,
            "text_hash": text_hash(text),
            "verdict": (_cell(row, "verdict") or _cell(row, "label")).casefold(),
            "hard": True if hard is None and HARD in ours else hard,
            "reason": _cell(row, "reason"),
            "tags": tuple(tag for tag in REASON_TAGS if tag in ours),
            "other_tags": tuple(tag for tag in said if tag not in known),
            "seconds": _cell(row, "seconds") or None,
            "labeller": checked_labeller(_cell(row, "labeller") or _cell(row, "annotator")),
            "at": _cell(row, "at") or at,
        }
    )
    return task, label


def _cell(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name)
    if value is None:
        return ""
    if not isinstance(value, (str, int, float)):
        raise ValueError(f"{name}: is no text")
    return str(value) if name == "text" else str(value).strip()


def _tags(value: object) -> list[str]:
    if value is None:
        return []
    if isinstance(value, str):
        value = value.replace(";", ",").split(",")
    if not isinstance(value, list):
        raise ValueError("tags: neither a list nor words")
    found = [str(tag).strip() for tag in cast("list[object]", value)]
    return [tag for tag in dict.fromkeys(found) if tag]


def _hard(value: str) -> bool | None:
    if value.casefold() not in _YES_NO:
        raise ValueError(f"hard: '{value}' is neither yes nor no")
    return _YES_NO[value.casefold()]


def _why(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return str(error)


def add(store: LabelStore, read: Read, *, wanted: int = 1) -> Imported:
    """Put what was read among the labels; a second time it changes nothing.

    Args:
        store: the labels.
        read: what the file holds.
        wanted: so many people are to label each task, or as many as the file brings.

    Raises:
        StoreError: it cannot be written.
    """
    added = store.add_tasks(_wanting(read.tasks, read.labels, wanted))
    before = store.given()
    new = [label for label in read.labels if (label.task, label.labeller) not in before]
    given = store.save(new, imported=True) if new else ()
    return Imported(
        n_tasks=len(added),
        n_labels=len(given),
        n_known=len(read.labels) - len(given),
        n_sealed=sum(line.label is None for line in given),
    )


def _wanting(
    tasks: Iterable[LabelTask], labels: Sequence[Label], wanted: int
) -> Iterator[LabelTask]:
    counts = Counter(label.task for label in labels)
    for task in tasks:
        yield task.model_copy(update={"wanted": max(wanted, counts[task.key])})
