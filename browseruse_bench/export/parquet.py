"""A benchmark as a data set: Parquet files, a data card, and Croissant metadata.

<out>/data/<split>.parquet    one row for each task
<out>/README.md               the data card, whose head names the files for `datasets`
<out>/croissant.json          the same for Croissant 1.0, with the SHA-256 of each file
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from browseruse_bench.benchmarks.load import Benchmark
from browseruse_bench.errors import ConfigError
from browseruse_bench.export.croissant import metadata
from browseruse_bench.export.outgoing import (
    Exported,
    Wish,
    benchmark_splits,
    canaries,
    licence,
    shown,
    whole_folder,
)
from browseruse_bench.records.base import canonical_json
from browseruse_bench.records.task import Task
from browseruse_bench.store.files import escaped

COLUMNS: dict[str, tuple[str, str]] = {
    "task_id": ("string", "name of the task, for people"),
    "task": ("string", "what the agent is asked for, in full"),
    "website": ("string", "the site that it is about"),
    "start_url": ("string", "where the browser starts"),
    "category": ("string", "of the publisher"),
    "difficulty": ("string", "of the publisher"),
    "requires_login": ("bool", "whether it needs an account that is logged in"),
    "task_key": ("string", "SHA-256 of all that an agent sees of it: the same work, the same key"),
}
ANSWERS: dict[str, tuple[str, str]] = {
    "expected_result": ("string", "JSON: what a right result is; null: not stated"),
    "rubric": ("string", "JSON: weighted items, facts with the date of their check; null: none"),
    "rubric_key": ("string", "SHA-256 of the rubric"),
    "canary": ("string", "a token that shows that the answer key leaked"),
    "solution": ("string", "JSON: a reference solution; null: none"),
    "other": ("string", "JSON: the publisher's other fields"),
}


def write(source: str, out: Path, wish: Wish) -> Exported:
    """The data set is at `out`; raises as `outgoing.Exporter`."""
    if find_spec("pyarrow") is None:
        raise ConfigError("parquet needs pyarrow: pip install 'browseruse-bench[factory]'")
    splits = benchmark_splits(source, wish)
    columns = {**COLUMNS, **(ANSWERS if wish.answers else {})}
    names = _file_names(splits)
    with whole_folder(out) as folder:
        (folder / "data").mkdir()
        for split, name in zip(splits, names, strict=True):
            rows = [_row(split, task, answers=wish.answers) for task in split.tasks]
            _write_table(folder / "data" / name, rows, columns)
        (folder / "README.md").write_text(_card(splits, names, columns, answers=wish.answers))
        found = metadata(splits[0], folder, names, columns, canaries(splits[0]))
        (folder / "croissant.json").write_text(json.dumps(found, indent=2) + "\n")
    tasks = {task.task_id: task for split in splits for task in split.tasks}
    n_with_files = sum(bool(task.attachments) for task in tasks.values())
    notes = (f"{n_with_files} tasks have attachments, which are not in the tables",)
    return Exported(n_tasks=len(tasks), notes=notes if n_with_files else ())


def _file_names(splits: Sequence[Benchmark]) -> list[str]:
    names = [f"{escaped(split.split.lower())}.parquet" for split in splits]
    if len(set(names)) < len(names):
        return [f"{escaped(split.split)}.parquet" for split in splits]
    return names


def _row(benchmark: Benchmark, task: Task, *, answers: bool) -> dict[str, Any]:
    row = {**shown(task), "requires_login": task.requires_login, "task_key": task.view.key}
    if not answers:
        return row
    rubric = benchmark.rubric(task.task_id)
    solution = benchmark.references.solutions.get(task.task_id)
    solved = None if solution is None else solution.model_dump(mode="json", exclude_none=True)
    known = {*COLUMNS, "expected_result", "attachments"}
    other = {name: value for name, value in task.row.items() if name not in known}
    return {
        **row,
        "expected_result": canonical_json(task.row.get("expected_result")),
        "rubric": None if rubric is None else rubric.as_line(),
        "rubric_key": None if rubric is None else rubric.key,
        "canary": None if rubric is None else rubric.canary,
        "solution": None if solved is None else canonical_json(solved),
        "other": canonical_json(other),
    }


def _write_table(path: Path, rows: list[dict[str, Any]], columns: dict[str, Any]) -> None:
    import pyarrow as pa  # pyright: ignore[reportMissingTypeStubs]
    import pyarrow.parquet as pq  # pyright: ignore[reportMissingTypeStubs]

    arrow: Any = pa
    types = {"string": arrow.string(), "bool": arrow.bool_()}
    schema = arrow.schema([(name, types[kind]) for name, (kind, _) in columns.items()])
    writer: Any = pq
    writer.write_table(arrow.Table.from_pylist(rows, schema=schema), path)


def _card(
    splits: Sequence[Benchmark],
    names: Sequence[str],
    columns: dict[str, tuple[str, str]],
    *,
    answers: bool,
) -> str:
    first = splits[0]
    given = licence(first)
    head = ["---", f"pretty_name: {json.dumps(first.name)}", "language: [en]"]
    head += [f"license: {json.dumps(given.lower())}"] if given else ["license: other"]
    # Our splits overlap, so each is a configuration of its own, with the one split `test`.
    head += ["configs:"]
    for split, name in zip(splits, names, strict=True):
        head += [f"- config_name: {json.dumps(name.removesuffix('.parquet'))}"]
        head += ["  default: true"] if split is first else []
        head += ["  data_files:", "  - split: test", f"    path: data/{name}"]
    lines = [*head, "---", "", f"# {first.name}", ""]
    lines += [first.info.description or "A benchmark for browser agents.", "", "| split | tasks |"]
    lines += ["|---|---|", *(f"| {split.split} | {len(split.tasks)} |" for split in splits), ""]
    lines += ["| column | what it is |", "|---|---|"]
    lines += [f"| `{name}` | {what} |" for name, (_, what) in columns.items()]
    lines += ["", "## Where it is from", ""]
    lines += [
        f"Exported by browseruse-bench from the benchmark folder {first.name}, revision "
        f"`{first.revision}`, SHA-256 of its files `{first.content_sha256}`. The counts above are "
        "of the rows of each split; no score of an agent is part of this data set.",
        "",
        f"Licence: {given or 'not stated in the folder; ask its publisher before you use it'}.",
        "",
    ]
    lines += ["## Answer key", ""]
    if answers:
        lines += [
            "Rubrics, expected results and solutions are included. A rubric is for graders only; "
            "an agent that reads one earns nothing: each rubric holds a canary, and an answer "
            "that quotes it scores 0. Do not train on this text. Canaries:",
            "",
            *(f"- `{token}`" for token in canaries(first)),
        ]
    else:
        lines += ["Rubrics, expected results and solutions are not part of this data set."]
    return "\n".join(lines) + "\n"
