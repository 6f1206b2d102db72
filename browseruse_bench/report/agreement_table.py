"""How far two columns of a table agree: labels and verdicts of others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from browseruse_bench.errors import ConfigError, DataError
from browseruse_bench.eval.labels import read_rows
from browseruse_bench.measure.agreement import Labelled, agreement
from browseruse_bench.report.agreement import AgreementReport, Compared, Topic

MAX_CLASSES = 10
"""A column with more distinct values is none of labels."""


def table_agreement(
    path: Path,
    *,
    truth: str,
    verdict: str,
    group: str | None = None,
    cluster: str | None = None,
    positive: str = "1",
    missing: Collection[str] = (),
) -> AgreementReport:
    """How far two columns of a table agree.

    Every value that is not declared missing is a class.

    Args:
        path: CSV, JSON lines or a JSON list.
        truth: column of one.
        verdict: column of the other.
        group: also per value of this column.
        cluster: rows with one value hang together; None: every row is independent.
        positive: the class that precision and recall are of.
        missing: values that are no label; the empty one is none in any case.

    Raises:
        ConfigError: there is no such column or class, or there are too many or too few classes.
        DataError: the file is damaged.
    """
    rows = read_rows(path)
    if not rows:
        raise DataError(f"{path}: holds no row")
    named = [name for name in (truth, verdict, group, cluster) if name is not None]
    columns = {name for _, row in rows for name in row}
    absent = [name for name in named if name not in columns]
    if absent:
        raise ConfigError(
            f"{path}: no column {', '.join(map(repr, absent))}; it has {', '.join(sorted(columns))}"
        )
    none = {"", *missing}
    codes = Counter(
        code for _, row in rows for name in (truth, verdict) for code in [_cell(row, name)]
    )
    classes = sorted(set(codes) - none)
    _refuse_classes(path, classes, positive)
    classes = [positive, *(name for name in classes if name != positive)]
    things: dict[str | None, list[Labelled]] = {None: []}
    for n, (_, row) in enumerate(rows):
        labelled = Labelled(
            truth=_label(row, truth, none),
            verdict=_label(row, verdict, none),
            cluster=str(n) if cluster is None else _cell(row, cluster),
        )
        things[None].append(labelled)
        if group is not None:
            things.setdefault(_cell(row, group), []).append(labelled)
    compared = tuple(
        Compared(one=truth, other=verdict, group=name, agreement=agreement(given, classes))
        for name, given in sorted(
            things.items(), key=lambda pair: (pair[0] is not None, pair[0] or "")
        )
    )
    topic = Topic(
        about="rows",
        positive=positive,
        n_labels=len(rows),
        missing={code: n for code, n in sorted(codes.items()) if code in none},
        ungraded={},
        n_adjudicated=0,
        compared=compared,
        among=None,
    )
    note = "each row is taken as independent; --cluster COLUMN names what hangs together"
    return AgreementReport(
        what=f"columns {truth} and {verdict} of {path.name}, {len(rows)} rows",
        judges=(),
        topics=(topic,),
        notes=() if cluster else (note,),
    )


def _cell(row: Mapping[str, object], name: str) -> str:
    value = row.get(name)
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value).strip()


def _label(row: Mapping[str, object], name: str, none: Collection[str]) -> str | None:
    code = _cell(row, name)
    return None if code in none else code


def _refuse_classes(path: Path, classes: Sequence[str], positive: str) -> None:
    listed = ", ".join(classes[:MAX_CLASSES]) or "none"
    if positive not in classes:
        raise ConfigError(f"{path}: no label is '{positive}'; name one of {listed} with --positive")
    if len(classes) > MAX_CLASSES:
        raise ConfigError(
            f"{path}: {len(classes)} different labels ({listed}, ...): are these the right columns?"
        )
    if len(classes) < 2:
        raise ConfigError(f"{path}: every label is '{classes[0]}': there is nothing to agree on")
