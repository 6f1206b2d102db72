"""The facts that are meant: of benchmarks by name, or of rubrics by file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from browseruse_bench.benchmarks.fact_checks import FactFolder, facts_beside
from browseruse_bench.benchmarks.folder import INFO
from browseruse_bench.benchmarks.problems import from_validation
from browseruse_bench.benchmarks.references import FACTS
from browseruse_bench.benchmarks.rubric_files import file_at, place_at, read_rubric
from browseruse_bench.benchmarks.validate import examine
from browseruse_bench.errors import ConfigError, DataError
from browseruse_bench.records.data_info import DataInfo
from browseruse_bench.records.rubric import Fact, Rubric
from browseruse_bench.registry import unknown_name
from browseruse_bench.store.files import read_json


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What a browser needs to reach the pages of a rubric."""

    sites: Mapping[str, str] = field(default_factory=dict[str, str])
    """Host name -> "module:Site"."""
    public: bool = True
    """Whether the web is open beside them."""

    @property
    def key(self) -> tuple[tuple[tuple[str, str], ...], bool]:
        """Equal surroundings can share a browser."""
        return tuple(sorted(self.sites.items())), self.public


@dataclass(frozen=True, kw_only=True)
class Source:
    """A rubric, and where later checks of its facts are."""

    rubric: Rubric
    folder: FactFolder
    surroundings: Surroundings
    facts: tuple[Fact, ...]
    """Those that are meant."""


def sources(
    targets: Sequence[str],
    *,
    task_ids: Sequence[str] = (),
    fact_ids: Sequence[str] = (),
    facts: Path | None = None,
) -> list[Source]:
    """The rubrics of benchmarks and files, in the order in which they are named.

    Args:
        targets: names or folders of benchmarks, files of rubrics, FOLDER@REVISION.
        task_ids: only these; empty: all.
        fact_ids: only these of each rubric; empty: all.
        facts: where checks and archives are; None: beside the rubrics.

    Raises:
        ConfigError: there is no such benchmark, file, task or fact, or one has no rubric.
        DataError: a rubric does not load.
    """
    found: list[Source] = []
    for target in targets:
        for rubric, folder, around in _of_target(target):
            wanted = tuple(f for f in rubric.facts if not fact_ids or f.id in fact_ids)
            if not task_ids or rubric.task_id in task_ids:
                folder = FactFolder(facts) if facts is not None else folder
                found.append(
                    Source(rubric=rubric, folder=folder, surroundings=around, facts=wanted)
                )
    for task_id in task_ids:
        if all(source.rubric.task_id != task_id for source in found):
            known = tuple(rubric.task_id for t in targets for rubric, _, _ in _of_target(t))
            raise ConfigError(unknown_name("task with a rubric", task_id, known))
    known_facts = {fact.id for source in found for fact in source.rubric.facts}
    for fact_id in fact_ids:
        if fact_id not in known_facts:
            raise ConfigError(unknown_name("fact", fact_id, tuple(sorted(known_facts))))
    return found


def _of_target(target: str) -> Iterator[tuple[Rubric, FactFolder, Surroundings]]:
    path = file_at(target)
    if path is not None:
        root = facts_beside(path)
        yield read_rubric(path), FactFolder(root), _around(root.parent / INFO)
        return
    place = place_at(target)
    examined = examine(place)
    broken = [problem.line for problem in examined.problems if problem.file.startswith("rubrics")]
    if broken:
        raise DataError([f"{place.path}: {line}" for line in broken])
    rubrics = examined.references.rubrics
    if examined.info is None or not rubrics:
        problems = [problem.line for problem in examined.problems]
        raise ConfigError("; ".join([f"{place.name}: no rubrics", *problems[:3]]))
    folder, around = FactFolder(place.path / FACTS), _surroundings(examined.info)
    for rubric in rubrics.values():
        yield rubric, folder, around


def _around(info: Path) -> Surroundings:
    if not info.is_file():
        return Surroundings()
    try:
        return _surroundings(DataInfo.model_validate(read_json(info)))
    except ValidationError as error:
        raise DataError([p.line for p in from_validation(error, str(info))]) from None


def _surroundings(info: DataInfo) -> Surroundings:
    network = info.network or ("sites" if info.sites else "public")
    return Surroundings(sites=info.sites, public=network == "public")
