"""Where benchmarks are found: no code of a benchmark runs to find or to list it.

A name is looked up, in this order, in the table BENCHMARKS, in the folders ./benchmarks/ of
the current directory and of those above it, among the entry points of the group
`browseruse_bench.benchmarks`, and in the folders that come with the package. What is none of
these is a path. The first hit wins, so a folder in the user's project that bears the name of
a packaged one is used instead of it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import EllipsisType
from typing import Literal, cast

import browseruse_bench.benchmarks as table
from browseruse_bench.errors import ConfigError
from browseruse_bench.registry import load, unknown_name

GROUP = "browseruse_bench.benchmarks"
INFO = "data_info.json"
EVALUATOR = "evaluator.py"
_PACKAGE = Path(__file__).resolve().parent
BUILTIN = _PACKAGE / "builtin"
"""The packaged folders of an installed wheel."""
SOURCE_ROOT = _PACKAGE.parents[1]
"""The checkout, in an editable install."""

Found = Literal["table", "folder", "entry point", "packaged", "path"]


@dataclass(frozen=True)
class Place:
    """A benchmark's name, its folder and its evaluator, before anything in it is read."""

    name: str
    path: Path
    """Absolute; where it would be, if `problem` says that it is not there."""
    evaluator: str | None = None
    """"module:Class", or the absolute path of the folder's evaluator.py."""
    found: Found = "path"
    problem: str | None = None
    """Why this registration leads to no folder."""
    notes: tuple[str, ...] = ()
    """What was decided where the registration and the folder differ."""


def find(name_or_path: str, *, cwd: Path | None = None) -> Place:
    """The place of a benchmark by its exact name, or by the path of its folder.

    Raises:
        ConfigError: neither; the nearest name and all names are listed.
    """
    cwd = (cwd or Path.cwd()).resolve()
    for place in _named(name_or_path, cwd):
        return place
    path = cwd / Path(name_or_path).expanduser()
    if name_or_path and path.is_dir():
        return _at(path.resolve(), cwd)
    raise ConfigError(unknown_name("benchmark", name_or_path, _names(cwd)))


def _at(path: Path, cwd: Path) -> Place:
    """The place of a path: under its registered name and evaluator, if it has these."""
    for name, entry in _table().items():
        place = _registered(name, entry, cwd, "table")
        if place.problem is None and place.path.resolve() == path:
            return place
    return _place(path.name, path, found="path")


def all_places(cwd: Path | None = None) -> tuple[Place, ...]:
    """Every benchmark that has a name here, sorted by name; broken registrations too."""
    cwd = (cwd or Path.cwd()).resolve()
    return tuple(next(_named(name, cwd)) for name in _names(cwd))


def _names(cwd: Path) -> tuple[str, ...]:
    return tuple(sorted({*_table(), *_folders(cwd), *_entry_points(), *_packaged()}))


def _named(name: str, cwd: Path) -> Iterator[Place]:
    if name in (entries := _table()):
        yield _registered(name, entries[name], cwd, "table")
    if name in (folders := _folders(cwd)):
        yield _place(name, folders[name], found="folder")
    if name in (points := _entry_points()):
        yield _from_entry_point(name, points[name], cwd)
    if name in (packaged := _packaged()):
        yield _place(name, packaged[name], found="packaged")


def _table() -> Mapping[str, object]:
    # The user may have replaced the whole file by the guide's snippet, so nothing is assumed.
    return cast("Mapping[str, object]", getattr(table, "BENCHMARKS", {}))


def _entry_points() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP)}


def _from_entry_point(name: str, point: EntryPoint, cwd: Path) -> Place:
    try:
        entry = load(point.value, f"entry point '{name}' of {GROUP}")
    except Exception as error:  # noqa: BLE001  another package's code; it must not break `list`
        text = f"{type(error).__name__}: {error}"
        return Place(name, cwd / "benchmarks" / name, found="entry point", problem=text)
    file = getattr(sys.modules.get(point.value.partition(":")[0]), "__file__", None)
    beside = Path(file).resolve().parent if file else None
    return _registered(name, entry, cwd, "entry point", beside)


def _registered(
    name: str, entry: object, cwd: Path, found: Found, beside: Path | None = None
) -> Place:
    """The place that an entry of the guide's form leads to."""
    data_dir, evaluator, problem = _entry_parts(name, entry)
    candidates = _candidates(Path(data_dir).expanduser(), cwd, beside)
    whole = (p for p in candidates if (p / INFO).is_file())
    path = next(whole, None) or next((p for p in candidates if p.is_dir()), None)
    if problem is None and path is None:
        looked = ", ".join(str(p) for p in candidates)
        problem = (
            f"'{name}' is registered, but there is no folder '{data_dir}' (looked at {looked})"
        )
    if path is None or problem is not None:
        return Place(name, path or candidates[0], evaluator, found, problem)
    return _place(name, path, found=found, registered=evaluator)


def _entry_parts(name: str, entry: object) -> tuple[str, str | None, str | None]:
    """(data_dir, evaluator, problem) of one entry."""
    default = f"benchmarks/{name}"
    if entry is None or isinstance(entry, EllipsisType):
        return default, None, None
    if isinstance(entry, (str, Path)):
        return str(entry), None, None
    if not isinstance(entry, Mapping):
        return default, None, f"'{name}': an entry is a dict with \"data_dir\", not {entry!r}"
    fields = cast("Mapping[str, object]", entry)
    data_dir, evaluator = fields.get("data_dir", default), fields.get("evaluator")
    if isinstance(data_dir, EllipsisType):
        data_dir = default
    if not isinstance(data_dir, (str, Path)) or not str(data_dir):
        return default, None, f"'{name}'.data_dir: is a path, not {data_dir!r}"
    if evaluator is None or isinstance(evaluator, EllipsisType):
        return str(data_dir), None, None
    if not isinstance(evaluator, str) or not all(evaluator.partition(":")):
        return str(data_dir), None, f"'{name}'.evaluator: is \"module:Class\", not {evaluator!r}"
    return str(data_dir), evaluator, None


def _candidates(data_dir: Path, cwd: Path, beside: Path | None) -> list[Path]:
    """Where a data_dir may be, nearest first; an absolute one has one place."""
    if data_dir.is_absolute():
        return [data_dir]
    roots = [*([beside] if beside else []), cwd, *cwd.parents]
    paths = [root / data_dir for root in roots]
    if data_dir.parts[:1] == ("benchmarks",) and len(data_dir.parts) > 1:
        paths.append(BUILTIN.joinpath(*data_dir.parts[1:]))
    if _is_checkout():
        paths.append(SOURCE_ROOT / data_dir)
    return list(dict.fromkeys(paths))


def _folders(cwd: Path) -> dict[str, Path]:
    """Benchmark folders below ./benchmarks/ of `cwd` and of its ancestors; the nearest wins."""
    found: dict[str, Path] = {}
    for root in reversed((cwd, *cwd.parents)):
        found.update(_children(root / "benchmarks"))
    return found


def _packaged() -> dict[str, Path]:
    source = _children(SOURCE_ROOT / "benchmarks") if _is_checkout() else {}
    return {**source, **_children(BUILTIN)}


def _is_checkout() -> bool:
    return (SOURCE_ROOT / "pyproject.toml").is_file()


def _children(folder: Path) -> dict[str, Path]:
    try:
        paths = sorted(folder.iterdir())
    except OSError:  # not there, not a folder or not ours to read: no benchmarks in it
        return {}
    return {p.name: p for p in paths if not p.name.startswith(".") and (p / INFO).is_file()}


def _place(name: str, path: Path, *, found: Found, registered: str | None = None) -> Place:
    evaluator, notes = _evaluator(path / EVALUATOR, registered)
    return Place(name, path, evaluator, found, notes=notes)


def _evaluator(file: Path, registered: str | None) -> tuple[str | None, tuple[str, ...]]:
    """The evaluator that counts: the registered one if its module exists, else the file."""
    if registered is None:
        return (str(file) if file.is_file() else None), ()
    if module_exists(registered.partition(":")[0]):
        both = f"'{registered}' is registered, so {EVALUATOR} is not used"
        return registered, ((both,) if file.is_file() else ())
    missing = f"the registered evaluator '{registered}' names a module that does not exist"
    if file.is_file():
        return str(file), (f"{missing}; {EVALUATOR} is used",)
    return registered, (missing,)


def module_exists(name: str) -> bool:
    """Whether a module can be imported, found out without running any of its packages."""
    parts = name.split(".")
    where: Sequence[str] | None = None
    for depth in range(1, len(parts) + 1):
        full = ".".join(parts[:depth])
        specs = (
            finder.find_spec(full, where)
            for finder in sys.meta_path
            if hasattr(finder, "find_spec")
        )
        spec = next((s for s in specs if s is not None), None)
        if spec is None:
            return False
        where = spec.submodule_search_locations
        if where is None:
            return depth == len(parts)
    return True
