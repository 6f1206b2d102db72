"""Drops: files that came in together, and the books that are kept of them.

drops/0001/
  plan.json      files, pieces, partitions: written first, so that what a drop is never moves
  read/ group/ examine/ link/      on the way; removed once the drop is done
  dropped/*.parquet   submissions that do not go on, with reason and evidence
  members/  keep/     who follows whom, with all texts; new tasks, and what older ones gained
  boilerplate.npy   hashes of lines that do not count when texts are compared
  drop.json      what it came to: the drop is done, and is never written again
"""

# What arrays and tables hold is said in the docstrings: pyarrow ships no types, and those of numpy
# and polars say nothing of columns.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from browseruse_bench.errors import ConfigError
from browseruse_bench.factory.corpus import boilerplate, overlap
from browseruse_bench.factory.corpus.books import placed
from browseruse_bench.factory.corpus.broken import find_broken
from browseruse_bench.factory.corpus.engines import Engine
from browseruse_bench.factory.corpus.grouping import Examine, Group
from browseruse_bench.factory.corpus.inputs import Broken, InputFile, pieces
from browseruse_bench.factory.corpus.linking import PART_RECORDS, link_all
from browseruse_bench.factory.corpus.reading import Read
from browseruse_bench.factory.corpus.results import Keep, Members
from browseruse_bench.factory.corpus.rules import Rules
from browseruse_bench.factory.corpus.shelves import Shelf
from browseruse_bench.records.base import Record
from browseruse_bench.store.files import read_json, write_json

BOILERPLATE = "boilerplate.npy"
_PARTITION_BYTES = 16 << 20
Tell = Callable[[str], None]


class Plan(Record):
    """plan.json."""

    version: int
    """Of the stage that made it."""
    files: tuple[InputFile, ...]
    partitions: int
    piece_rows: int
    benchmarks_sha256: str
    """Over the texts of the benchmarks."""


class Outcome(Record):
    """drop.json."""

    n_in: int
    """Submissions: rows of the files."""
    kept: int
    """New tasks."""
    dropped: dict[str, int]
    failed: int
    """Rows that could not be parsed."""
    grown: int
    """Older tasks that gained submissions."""
    distinct: int
    broken: tuple[Broken, ...] = ()


@dataclass(frozen=True)
class Drop:
    """The folder of a drop."""

    path: Path

    @property
    def plan(self) -> Plan:
        """What came in."""
        return Plan.model_validate(read_json(self.path / "plan.json"))

    @property
    def outcome(self) -> Outcome | None:
        """What it came to; None: it is not done."""
        file = self.path / "drop.json"
        return Outcome.model_validate(read_json(file)) if file.exists() else None

    @property
    def shelf(self) -> Shelf:
        """Its books, once it is done."""
        return Shelf(self.path, self.plan.partitions)

    def clean(self) -> None:
        """Remove what was on the way, if the drop is done."""
        if self.outcome is not None:
            for name in ("read", "group", "examine", "link"):
                shutil.rmtree(self.path / name, ignore_errors=True)


def drops_in(folder: Path) -> list[Drop]:
    """All drops that were planned, in order."""
    return [Drop(path.parent) for path in sorted((folder / "drops").glob("*/plan.json"))]


def plan_drop(
    folder: Path,
    files: Sequence[InputFile],
    references: Sequence[overlap.Reference],
    *,
    version: int,
    mask: bool,
    partitions: int | None,
    piece_rows: int,
) -> Drop:
    """Begin a drop.

    Raises:
        ConfigError: `partitions` is no power of two.
    """
    earlier = drops_in(folder)
    if partitions is not None and partitions & (partitions - 1):
        raise ConfigError(f"workspace.toml: [corpus] partitions: {partitions}: not a power of two")
    size = sum(file.size for file in files)
    by_size = min(1024, 1 << max(2, (size // _PARTITION_BYTES).bit_length()))
    plan = Plan(
        version=version,
        files=tuple(files),
        partitions=partitions or by_size,
        piece_rows=piece_rows,
        benchmarks_sha256=_digest(references),
    )
    drop = Drop(folder / "drops" / f"{len(earlier) + 1:04}")
    drop.path.mkdir(parents=True, exist_ok=True)
    overlap.build(references, mask=mask).save(drop.path / "benchmarks.npz")
    write_json(drop.path / "plan.json", plan.model_dump(mode="json"))
    return drop


def refuse_other_benchmarks(folder: Path, references: Sequence[overlap.Reference]) -> None:
    """All drops were compared with these texts, or there is no drop yet.

    Raises:
        ConfigError: texts were added or taken away since files came in: what was kept may hold
            them; how many of which benchmark is said.
    """
    planned = drops_in(folder)
    if not planned or planned[-1].plan.benchmarks_sha256 == _digest(references):
        return
    before = Counter(overlap.Index.load(planned[-1].path / "benchmarks.npz").references)
    now = Counter(references)
    changes = [
        f"{n} of {name} {how}"
        for how, texts in (("added", now - before), ("removed", before - now))
        for name, n in sorted(Counter(text.benchmark for text in texts).items())
    ]
    raise ConfigError(
        f"workspace.toml: [corpus] benchmarks: texts changed since files came in "
        f"({', '.join(changes)}): what was kept was not compared with these. Put them back, or "
        "read and compare everything again with `bubench factory run filter --restart` (what is "
        "there is kept aside)"
    )


def _digest(references: Sequence[overlap.Reference]) -> str:
    texts = [[reference.benchmark, reference.id, reference.text] for reference in references]
    return hashlib.sha256(json.dumps(texts).encode()).hexdigest()


@dataclass(frozen=True)
class Work:
    """One drop, and whatever its jobs need."""

    drop: Drop
    earlier: Sequence[Drop]
    rules: Rules
    engine: Engine
    tell: Tell
    part_records: int = PART_RECORDS

    def settle(self) -> Outcome:
        """Do what is left of the drop.

        Raises:
            DataError: a file changed, or is damaged.
            Stopped: the engine was asked to stop.
        """
        path, plan = self.drop.path, self.drop.plan
        read = self._read(plan)
        groups, grouped = self._group(plan, [job.spill for job in read[0]])
        n_distinct = sum(counted["distinct"] for counted in grouped)
        self._frequent(groups, n_distinct)
        self._boilerplate(groups, n_distinct)
        examined = self._examine(groups)
        link_all(
            path / "link",
            new=[job.records for job in examined[0]],
            old=[file for drop in self.earlier for file in drop.shelf.files("keep", ".npy")],
            need=overlap.need(self.rules.similarity),
            engine=self.engine,
            part_records=self.part_records,
            tell=self.tell,
        )
        kept = self._keep(plan, groups, examined[0])
        outcome = _outcome(read[1], grouped, examined[1], kept)
        outcome = outcome.model_copy(update={"broken": _broken(*read)})
        self._gather_dropped(read[0], examined[0])
        write_json(path / "drop.json", outcome.model_dump(mode="json"))
        self.drop.clean()
        return outcome

    def _read(self, plan: Plan) -> tuple[list[Read], list[dict[str, Any]]]:
        jobs = [
            Read(
                manifest=self.drop.path / "read" / f"{i:06}.json",
                piece=piece,
                rules=self.rules,
                partitions=plan.partitions,
            )
            for i, piece in enumerate(pieces(plan.files, rows=plan.piece_rows))
        ]
        self.tell(f"reading {len(plan.files)} files in {len(jobs)} pieces")
        return jobs, self.engine.settle_all(jobs)

    def _group(
        self, plan: Plan, spills: Sequence[Path]
    ) -> tuple[list[Group], list[dict[str, Any]]]:
        jobs = [
            Group(
                manifest=self.drop.path / "group" / f"{p:05}.json",
                partition=p,
                partitions=plan.partitions,
                spills=tuple(spills),
                earlier=tuple(drop.shelf for drop in self.earlier),
                benchmarks=self.drop.path / "benchmarks.npz",
                rules=self.rules,
            )
            for p in range(plan.partitions)
        ]
        self.tell(f"combining equal texts in {len(jobs)} partitions")
        return jobs, self.engine.settle_all(jobs)

    def _frequent(self, groups: Sequence[Group], n_distinct: int) -> None:
        import numpy as np

        path = self.drop.path / "group" / "frequent.npy"
        if path.exists():
            return
        seen = sum(np.load(job.grams) for job in groups)
        limit = max(overlap.FREQUENT, overlap.FREQUENT * n_distinct // 100_000)
        with placed(path) as temporary, temporary.open("wb") as file:
            np.save(file, seen > limit)

    def _boilerplate(self, groups: Sequence[Group], n_distinct: int) -> None:
        """Of this drop and of those before, to which its texts may belong."""
        import numpy as np

        path = self.drop.path / BOILERPLATE
        if path.exists():
            return
        found = boilerplate.common([job.lines for job in groups], n_distinct)
        known = [np.load(drop.path / BOILERPLATE) for drop in self.earlier]
        with placed(path) as temporary, temporary.open("wb") as file:
            np.save(file, np.unique(np.concatenate([found, *known])))

    def _examine(self, groups: Sequence[Group]) -> tuple[list[Examine], list[dict[str, Any]]]:
        jobs = [
            Examine(
                manifest=self.drop.path / "examine" / job.manifest.name,
                groups=job.groups,
                variants=job.variants,
                benchmarks=self.drop.path / "benchmarks.npz",
                frequent=self.drop.path / "group" / "frequent.npy",
                boilerplate=self.drop.path / BOILERPLATE,
                rules=self.rules,
            )
            for job in groups
        ]
        self.tell("benchmarks, language and sketches of distinct texts")
        return jobs, self.engine.settle_all(jobs)

    def _keep(
        self, plan: Plan, groups: Sequence[Group], examined: Sequence[Examine]
    ) -> list[dict[str, Any]]:
        members = [
            Members(
                manifest=self.drop.path / "members" / group.manifest.name,
                groups=group.groups,
                variants=group.variants,
                records=job.records,
                alone=job.alone,
                links=self.drop.path / "link" / "links.npz",
                partitions=plan.partitions,
            )
            for group, job in zip(groups, examined, strict=True)
        ]
        self.engine.settle_all(members)
        keep = [
            Keep(
                manifest=self.drop.path / "keep" / one.manifest.name,
                partition=p,
                members=one.members,
                totals=tuple(job.totals for job in members),
                records=job.records,
            )
            for p, (one, job) in enumerate(zip(members, examined, strict=True))
        ]
        self.tell("writing tasks")
        return self.engine.settle_all(keep)

    def _gather_dropped(self, read: Sequence[Read], examined: Sequence[Examine]) -> None:
        """Put the files of dropped rows where they stay; those that are there already stay."""
        folder = self.drop.path / "dropped"
        folder.mkdir(exist_ok=True)
        for job in (*read, *examined):
            kind = job.manifest.parent.name
            place = folder / f"{kind}-{job.manifest.stem}.parquet"
            if not place.exists():
                place.hardlink_to(job.dropped)


def _broken(jobs: Sequence[Read], counted: Sequence[Mapping[str, Any]]) -> tuple[Broken, ...]:
    places: dict[str, list[int]] = {}
    for job, found in zip(jobs, counted, strict=True):
        places.setdefault(str(job.piece.path), []).extend(found.get("broken", ()))
    return find_broken(places)


def broken_in(planned: Sequence[Drop]) -> dict[str, Broken]:
    """Path -> the lines that are still broken, by all drops that are done."""
    found: dict[str, Broken] = {}
    for drop in planned:
        if (outcome := drop.outcome) is None:
            continue
        for file in drop.plan.files:
            found.pop(file.path, None)
        found |= {broken.path: broken for broken in outcome.broken}
    return found


def _outcome(
    read: Sequence[Mapping[str, Any]],
    grouped: Sequence[Mapping[str, Any]],
    examined: Sequence[Mapping[str, Any]],
    kept: Sequence[Mapping[str, Any]],
) -> Outcome:
    dropped: Counter[str] = Counter()
    for counted in (*read, *examined):
        dropped.update(counted["dropped"])
    late = sum(sum(counted["dropped"].values()) for counted in examined)
    n_kept = sum(counted["kept"] for counted in kept)
    dropped["no_permitted_tag"] = sum(counted.get("no_permitted_tag", 0) for counted in read)
    dropped["combined"] = sum(counted["rows"] for counted in grouped) - late - n_kept
    return Outcome(
        n_in=sum(counted.get("rows", 0) for counted in read),
        kept=n_kept,
        dropped={reason: n for reason, n in sorted(dropped.items()) if n},
        failed=sum(counted.get("unreadable", 0) for counted in read),
        grown=sum(counted["grown"] for counted in kept),
        distinct=sum(counted["distinct"] for counted in grouped),
    )
