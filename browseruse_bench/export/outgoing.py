"""What every export has in common: what may leave, and that a folder is there whole or not at all.

Tasks leave with what an agent sees of them. The answer key (rubrics, solutions, expected results,
and fields of the publisher that we do not know) leaves only where it is asked for, with its
canaries. A private set and restricted bytes are refused unless a flag says that they may leave.
"""

from __future__ import annotations

import contextlib
import secrets
import shutil
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast

from browseruse_bench.benchmarks.folder import Place, find
from browseruse_bench.benchmarks.load import Benchmark, load_place
from browseruse_bench.errors import ConfigError
from browseruse_bench.records.task import Task
from browseruse_bench.report.find import benchmark_of
from browseruse_bench.store.files import read_json
from browseruse_bench.store.run_folder import RunFolder

SHOWN_FIELDS = ("task_id", "task", "website", "start_url", "category", "difficulty")
"""Of a task, in tables: what an agent sees, and what tasks are selected by."""


@dataclass(frozen=True, kw_only=True)
class Wish:
    """What is wanted of an export."""

    split: str | None = None
    """None: every split of a benchmark, or the one of a run."""
    answers: bool = False
    """Whether the answer key goes along."""
    private: bool = False
    """Whether a private set may leave."""
    restricted: bool = False
    """Whether restricted bytes may leave."""


@dataclass(frozen=True, kw_only=True)
class Exported:
    """What was written."""

    n_tasks: int
    notes: tuple[str, ...] = ()


class Exporter(Protocol):
    """Writes one format."""

    def __call__(self, source: str, out: Path, wish: Wish) -> Exported:
        """Everything of `source` (a benchmark's name or folder, or a run's) is at `out`.

        Raises:
            ConfigError: it is not of the kind that this format takes, or may not leave.
            DataError: it is damaged.
        """
        ...


def benchmark_splits(source: str, wish: Wish) -> tuple[Benchmark, ...]:
    """The wanted splits of a benchmark that may leave.

    Raises:
        ConfigError: it is none, or may not leave without a flag.
        DataError: it is invalid.
    """
    if (Path(source) / "run.json").is_file():
        raise ConfigError(f"{source}: is a run; this format is made of a benchmark folder")
    place = find(source)
    first = load_place(place, wish.split)
    refuse(first, wish)
    if wish.split is not None:
        return (first,)
    names = dict.fromkeys((first.split, *first.info.split))
    return tuple(first if name == first.split else _split(place, name) for name in names)


def _split(place: Place, name: str) -> Benchmark:
    return load_place(place, name)


def run_source(source: str, wish: Wish) -> tuple[RunFolder, Benchmark]:
    """A run that may leave, and its benchmark.

    Raises:
        ConfigError: it is no run, its benchmark is not at hand, or it may not leave.
        DataError: it is damaged.
    """
    folder = RunFolder(Path(source))
    if not (folder.path / "run.json").is_file():
        raise ConfigError(f"{source}: is no run folder (no run.json); this format is made of a run")
    benchmark, why = benchmark_of(folder.read_run())
    if benchmark is None:
        raise ConfigError(f"{source}: {why}")
    refuse(benchmark, wish)
    _refuse_restricted_place(folder.path, wish)
    return folder, benchmark


def refuse(benchmark: Benchmark, wish: Wish) -> None:
    """A private set and restricted bytes do not leave without a flag.

    Raises:
        ConfigError: it may not leave; says which flag lets it.
    """
    manifest = _manifest(benchmark.path)
    extra = benchmark.info.model_extra or {}
    files = benchmark.info.split.values()
    private = (
        extra.get("private") is True
        or manifest.get("private") is True
        or any(file.endswith(".enc") for file in files)
    )
    if private and not wish.private:
        raise ConfigError(
            f"{benchmark.name} is private: an export is plain text; give --private if it may leave"
        )
    _refuse_restricted_place(benchmark.path, wish)
    if wish.restricted:
        return
    given = manifest.get("rights")
    rights = cast("dict[str, object]", given) if isinstance(given, dict) else {}
    for task in benchmark.tasks:
        tag: object = (task.model_extra or {}).get("rights") or rights.get(task.task_id)
        if isinstance(tag, str) and tag.lower().startswith("restricted"):
            raise ConfigError(
                f"{benchmark.name}: task '{task.task_id}' has the rights tag '{tag}'; leave it "
                "out, or give --restricted if it may leave"
            )


def _refuse_restricted_place(path: Path, wish: Wish) -> None:
    for above in path.resolve().parents:
        inside = path.resolve().relative_to(above).parts
        if (above / "workspace.toml").is_file() and inside[:1] == ("restricted",):
            if wish.restricted:
                return
            raise ConfigError(
                f"{path}: lies in restricted/ of a workspace and may hold personal data; give "
                "--restricted if it may leave"
            )


def _manifest(folder: Path) -> dict[str, Any]:
    path = folder / "MANIFEST.json"
    found: Any = read_json(path) if path.is_file() else {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def canaries(benchmark: Benchmark) -> tuple[str, ...]:
    """Every token that shows a leak of this benchmark's answer key, sorted."""
    found = {rubric.canary for rubric in benchmark.references.rubrics.values() if rubric.canary}
    declared = (benchmark.metadata.get("canary"), _manifest(benchmark.path).get("canary"))
    found |= {token for token in declared if isinstance(token, str)}
    return tuple(sorted(found))


def licence(benchmark: Benchmark) -> str | None:
    """What data_info.json says under `license`; None: nothing."""
    found = (benchmark.info.model_extra or {}).get("license")
    return found if isinstance(found, str) and found else None


def shown(task: Task) -> dict[str, Any]:
    """The fields of a task that leave in any case."""
    row = task.row
    return {name: row.get(name) for name in SHOWN_FIELDS}


@contextlib.contextmanager
def whole_folder(out: Path) -> Generator[Path]:
    """A new folder that is at `out` once the block ended well, and nowhere otherwise.

    Raises:
        ConfigError: something is there already.
    """
    if out.is_symlink() or (out.exists() and (not out.is_dir() or any(out.iterdir()))):
        raise ConfigError(f"{out} is already there: name a folder that is not, or an empty one")
    out.parent.mkdir(parents=True, exist_ok=True)
    made = out.with_name(f".{out.name}.{secrets.token_hex(4)}.tmp")
    made.mkdir()
    try:
        yield made
        made.replace(out)
    finally:
        shutil.rmtree(made, ignore_errors=True)
