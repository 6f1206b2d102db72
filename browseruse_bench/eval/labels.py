"""What people say of attempts and findings: read from a file, checked against a run.

    task_id,attempt,item,label,labeller
    shop-3,1,,success,ada              a label of the attempt
    shop-3,1,A1_price,met,ada          a label of one item
    shop-3,1,A1_price,disagree,ben     an adjudication: ben saw the judge's finding

CSV with these columns, JSON lines, or a JSON list of objects with these fields.
"""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError

from browseruse_bench.errors import DataError
from browseruse_bench.records.base import Record

Adjudication = Literal["agree", "disagree", "cannot tell"]
SHOWN = 20
"""Problems that are listed; the others are counted."""

YES = frozenset({"1", "true", "yes", "success", "successful", "met"})
NO = frozenset(
    {"0", "false", "no", "failure", "unsuccessful", "not met", "violated", "not_assessable",
     "unsupported"}
)  # fmt: skip
MISSING = frozenset({"", "cannot tell"})
"""Labels that are none; others have to be declared."""


def _text(value: Any) -> Any:
    """Numbers and truth values of JSON as people write them in CSV."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int) else value


class Label(Record):
    """One line: what one person says of one attempt or one item."""

    task_id: str = Field(min_length=1)
    attempt: int = Field(default=1, ge=1)
    item: str | None = None
    """None: of the attempt as a whole."""
    label: Annotated[str, BeforeValidator(_text)]
    """"" where the person gave none."""
    labeller: str = "person"
    judgement: str | None = None
    """Id of the judgement that was adjudicated; None: the one that counts now."""
    note: str = ""

    @property
    def said(self) -> str:
        """The label without case and outer space."""
        return " ".join(self.label.split()).casefold()

    @property
    def is_adjudication(self) -> bool:
        """Whether it is about the judge's finding instead of the item."""
        return self.said in ("agree", "disagree")

    @property
    def where(self) -> str:
        """For messages."""
        item = "" if self.item is None else f" item '{self.item}'"
        return f"task '{self.task_id}' #{self.attempt}{item} by {self.labeller}"


@dataclass(frozen=True, kw_only=True)
class Labels:
    """A file of labels."""

    labels: tuple[Label, ...]
    ignored: tuple[str, ...]
    """Columns that are not ours."""


def read_labels(path: Path) -> Labels:
    """The labels of a file.

    Raises:
        DataError: it is not CSV, JSON or JSON lines, a line is no label, or two lines are one
            person's labels of one thing; all such lines are named.
    """
    rows = read_rows(path)
    ours = set(Label.model_fields)
    ignored = tuple(dict.fromkeys(key for _, row in rows for key in row if key not in ours))
    problems: list[str] = []
    labels: list[Label] = []
    for place, row in rows:
        kept = {
            k: v for k, v in row.items() if k in ours and not (v in ("", None) and k != "label")
        }
        try:
            labels.append(Label.model_validate(kept))
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(map(str, first["loc"]))
            problems.append(f"{path}: {place}: {field}: {first['msg']}")
    counts = Counter((x.task_id, x.attempt, x.item, x.labeller) for x in labels)
    twice = [x.where for x in labels if counts[x.task_id, x.attempt, x.item, x.labeller] > 1]
    problems += [f"{path}: {where}: labelled twice" for where in dict.fromkeys(twice)]
    refuse(problems)
    if not labels:
        raise DataError(f"{path}: holds no label")
    return Labels(labels=tuple(labels), ignored=ignored)


def refuse(problems: Sequence[str]) -> None:
    """There are no problems.

    Raises:
        DataError: there are; the first ones are listed, the others counted.
    """
    if problems:
        more = len(problems) - SHOWN
        raise DataError([*problems[:SHOWN], *([f"... and {more} more"] if more > 0 else [])])


Row = Mapping[str, Any]


def read_rows(path: Path) -> list[tuple[str, Row]]:
    """(place, row) of each row of a CSV file, of JSON lines, or of a JSON list of objects.

    Raises:
        DataError: it is neither, has no header, or a row has more or fewer cells than that.
    """
    if not path.is_file():
        raise DataError(f"{path}: no such file")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 (byte {error.start})") from error
    if path.suffix.lower() in (".json", ".jsonl"):
        return _json_rows(path, text)
    return _csv_rows(path, text)


_OBJECT = TypeAdapter(dict[str, Any])
_LIST = TypeAdapter(list[dict[str, Any]])


def _json_rows(path: Path, text: str) -> list[tuple[str, Row]]:
    try:
        if text.lstrip().startswith("["):
            return [
                (f"[{n}]", row) for n, row in enumerate(_LIST.validate_python(json.loads(text)))
            ]
        lines = [(n, line) for n, line in enumerate(text.split("\n"), 1) if line.strip()]
        return [(f"line {n}", _OBJECT.validate_python(json.loads(line))) for n, line in lines]
    except (ValueError, ValidationError) as error:
        raise DataError(
            f"{path}: neither a JSON list of objects nor one JSON object a line: "
            f"{str(error).splitlines()[0]}"
        ) from error


def _csv_rows(path: Path, text: str) -> list[tuple[str, Row]]:
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    rows: list[tuple[str, Row]] = []
    problems: list[str] = []
    try:
        names = [name.strip() for name in reader.fieldnames or ()]
        reader.fieldnames = names
        if not names or len(set(names)) != len(names) or "" in names:
            raise DataError(f"{path}: the first line must name each column once")
        for row in reader:
            place = f"line {reader.line_num}"
            # A cell too many is under None; one too few is None.
            if None in cast("dict[str | None, Any]", row) or None in row.values():
                problems.append(f"{path}: {place}: not {len(names)} cells")
            else:
                rows.append((place, row))
    except csv.Error as error:
        raise DataError(f"{path}: line {reader.line_num}: {error}") from error
    refuse(problems)
    return rows


def undeclared(
    said: Iterable[tuple[str, str]], known: Collection[str], *, missing: Collection[str]
) -> list[str]:
    """One line for each code that is no class and was not declared missing.

    Args:
        said: (code, where).
        known: codes that are classes.
        missing: codes that were declared.
    """
    places: dict[str, list[str]] = {}
    for code, where in said:
        if code not in known and code not in missing:
            places.setdefault(code, []).append(where)
    return [
        f"label '{code}' ({len(wheres)} times, first at {wheres[0]}) is no class; declare it with "
        f"--missing '{code}', or as a class of its own with --class '{code}'"
        for code, wheres in sorted(places.items())
    ]
