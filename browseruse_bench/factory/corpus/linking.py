"""Near-duplicates join a leader, band by band, in bounded memory.

Texts whose sketches agree in one band meet; in the order of their content hashes each joins the
most alike one that leads, or leads itself. What joined is carried no further; what leads goes on
to the next band, spilled to disk in parts by band key. A leader that later joins another one
leaves its followers with a leader that they never met: each of these is compared with it, and
whoever is not alike is owed again, against the leaders as they are then. Nobody is ever in the
cluster of a leader that it is not like itself. At last, when it is known who leads, whoever is
not very much like its leader meets all of them again, in every band, and moves to the one that it
is most like: the band in which it met a leader first does not decide. Leaders of earlier drops
join nothing.
"""

# What arrays and tables hold is said in the docstrings: pyarrow ships no types, and those of numpy
# and polars say nothing of columns.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from browseruse_bench.factory.corpus.books import Job, placed
from browseruse_bench.factory.corpus.engines import Engine
from browseruse_bench.factory.corpus.grouping import record_type
from browseruse_bench.store.files import write_atomic

if TYPE_CHECKING:
    from numpy.typing import NDArray

PART_RECORDS = 250_000
"""Records that one job has in memory, about 150 bytes each."""
_PASSES = 4
"""Times that followers which lost their leader are owed again; after that they lead."""

_SURE = 0.7
"""Share of agreeing bins from which on a follower stays where it is."""

JOIN = [("child", "<u8"), ("leader", "<u8"), ("agreement", "<i2")]


class Links(NamedTuple):
    """Who joined whom; sorted by child."""

    child: NDArray[Any]
    leader: NDArray[Any]
    agreement: NDArray[Any]
    """Bins of the two sketches that agree."""


@dataclass(frozen=True, kw_only=True)
class Spread(Job):
    """Take the records that matter from a file, and put them in parts for the first band."""

    source: Path
    parts: int
    old: bool
    """They are leaders already."""
    leaders: Path | None = None
    """Sorted content hashes of what leads; None: everything matters."""
    owed: Path | None = None
    """Sorted content hashes of what is to find a leader."""
    least: Path | None = None
    """Of each of those, bins that must be outdone."""

    @property
    def spill(self) -> Path:
        """Records, part by part."""
        return self.manifest.with_suffix(".npy")

    def outputs(self) -> tuple[Path, ...]:
        return (self.spill,)

    def work(self) -> Mapping[str, Any]:
        import numpy as np

        records = np.load(self.source)
        records["old"] = self.old
        if self.leaders is not None and self.owed is not None and self.least is not None:
            owed = np.load(self.owed)
            leads, owes = is_in(records["key"], np.load(self.leaders)), is_in(records["key"], owed)
            records["old"] = leads
            if len(owed):
                place = np.searchsorted(owed, records["key"]).clip(max=len(owed) - 1)
                records["least"] = np.where(owes, np.load(self.least)[place], 0)
            records = records[leads | owes]
        return {"bounds": _spill(records, 0, self.parts, self.spill)}


@dataclass(frozen=True, kw_only=True)
class Band(Job):
    """One part of one band, or all bands where one part holds everything."""

    sources: tuple[Path, ...]
    part: int
    parts: int
    band: int
    need: int
    settled: bool = False
    """Who leads is known: those that follow move to a leader that they are more like."""

    @property
    def spill(self) -> Path:
        """What goes on to the next band, part by part."""
        return self.manifest.with_suffix(".npy")

    @property
    def joins(self) -> Path:
        """Who joined whom."""
        return self.manifest.with_suffix(".joins.npy")

    def outputs(self) -> tuple[Path, ...]:
        return self.spill, self.joins

    def work(self) -> Mapping[str, Any]:
        import numpy as np

        from browseruse_bench.factory.corpus import kernels

        records = np.concatenate([_segment(path, self.part) for path in self.sources])
        records = records[np.lexsort((records["key"], 1 - records["old"]))]
        last = kernels.BANDS if self.parts == 1 else self.band + 1
        found: list[Any] = []
        for band in range(self.band, last):
            records, joins = linked(records, band, self.need, settled=self.settled)
            found.append(joins)
        with placed(self.joins) as temporary, temporary.open("wb") as file:
            np.save(file, np.concatenate(found))
        left = records if last < kernels.BANDS else records[:0]
        return {"bounds": _spill(left, min(last, kernels.BANDS - 1), self.parts, self.spill)}


def linked(records: Any, band: int, need: int, *, settled: bool = False) -> tuple[Any, Any]:
    """(what goes on to the next band, who joined whom) after one band; `records` are sorted, old
    ones first.
    """
    import numpy as np

    from browseruse_bench.factory.corpus import kernels

    bands = kernels.band_keys(records["sketch"], band)
    leader, agreement = kernels.link(
        bands,
        records["sketch"],
        records["entity"],
        records["old"],
        records["least"],
        need,
        settled,
    )
    joined = leader != np.arange(len(records))
    joins = np.empty(int(joined.sum()), JOIN)
    joins["child"] = records["key"][joined]
    joins["leader"] = records["key"][leader[joined]]
    joins["agreement"] = agreement[joined]
    if settled:
        records["least"][joined] = agreement[joined]
        return records, joins
    # A copy only where something is gone: later bands and passes join little.
    return records[~joined] if len(joins) else records, joins


def _spill(records: Any, band: int, parts: int, path: Path) -> list[int]:
    import numpy as np

    from browseruse_bench.factory.corpus import kernels

    places = kernels.band_keys(records["sketch"], band) % np.uint64(parts)
    order = np.argsort(places, kind="stable")
    with placed(path) as temporary, temporary.open("wb") as file:
        np.save(file, records[order])
    return np.searchsorted(places[order], np.arange(parts + 1)).tolist()


def _segment(path: Path, part: int) -> Any:
    import numpy as np

    bounds = json.loads(path.with_suffix(".json").read_text())["counted"]["bounds"]
    records = np.load(path, mmap_mode="r")
    return np.array(records[bounds[part] : bounds[part + 1]])


def is_in(keys: Any, known: Any) -> Any:
    """Which of `keys` are in the sorted `known`."""
    import numpy as np

    if not len(known):
        return np.zeros(len(keys), bool)
    place = np.searchsorted(known, keys).clip(max=len(known) - 1)
    return known[place] == keys


def link_all(
    folder: Path,
    *,
    new: Sequence[Path],
    old: Sequence[Path],
    need: int,
    engine: Engine,
    part_records: int = PART_RECORDS,
    tell: Callable[[str], None] = lambda text: None,
) -> Links:
    """Who joined whom among the records of a drop; what is in neither is a leader.

    Args:
        folder: for what is spilled on the way; goes on with what is there.
        new: files of records of this drop.
        old: files of records of leaders of earlier drops.
        need: bins that must agree.
        engine: who does the jobs.
        part_records: records that a job may have in memory.
        tell: told of the progress.
    """
    import numpy as np

    done = folder / "links.npz"
    if done.exists():
        with np.load(done) as content:
            return Links(content["child"], content["leader"], content["agreement"])
    files = (*new, *old)
    sizes = [len(np.load(path, mmap_mode="r")) for path in files]
    rounds = _Rounds(
        folder=folder,
        new=tuple(new),
        old=tuple(old),
        parts=max(1, -(-sum(sizes) // part_records)),
        need=need,
        engine=engine,
        tell=tell,
    )
    links = _none()
    orphans: Any = np.zeros(0, np.uint64)
    for number in range(_PASSES):
        place = folder / f"pass-{number}"
        if number:
            _save_roles(place, links, orphans, files)
        joins = rounds.joins(place)
        links, orphans = _resolved(_merged(links, joins), files, need)
        tell(f"near-duplicates, pass {number + 1}: {len(links.child)} joined, {len(orphans)} owed")
        if not len(orphans):
            break
    links, n_moved = _moved(links, rounds, folder / "settled")
    tell(f"near-duplicates: {n_moved} moved to a leader that they are more like")
    with placed(done) as temporary, temporary.open("wb") as file:
        np.savez(file, child=links.child, leader=links.leader, agreement=links.agreement)
    return links


def _moved(links: Links, rounds: _Rounds, place: Path) -> tuple[Links, int]:
    """(links of everyone to the most alike leader that it meets, how many moved)."""
    import numpy as np

    from browseruse_bench.factory.corpus import kernels

    unsure = links.agreement < _SURE * kernels.SKETCH
    if not unsure.any():
        return links, 0
    _save_roles(
        place,
        links,
        links.child[unsure],
        (*rounds.new, *rounds.old),
        least=links.agreement[unsure].astype(np.uint8),
    )
    joins = rounds.joins(place, settled=True)
    # In the order of the bands each leader is more alike than the one before: the last one counts.
    child, last = np.unique(joins["child"][::-1], return_index=True)
    best = joins[::-1][last]
    place_of = np.searchsorted(links.child, child)
    leader, agreement = links.leader.copy(), links.agreement.copy()
    leader[place_of], agreement[place_of] = best["leader"], best["agreement"]
    return Links(links.child, leader, agreement), len(child)


def _none() -> Links:
    import numpy as np

    return Links(np.zeros(0, np.uint64), np.zeros(0, np.uint64), np.zeros(0, np.int16))


def _save_roles(
    place: Path, links: Links, owed: Any, files: Sequence[Path], *, least: Any = None
) -> None:
    """Write who leads, who is owed a leader, and what these must outdo."""
    import numpy as np

    place.mkdir(parents=True, exist_ok=True)
    keys: list[Any] = []
    for path in files:
        found = np.load(path, mmap_mode="r")["key"]
        keys.append(found[~is_in(found, links.child) & ~is_in(found, owed)])
    least = np.zeros(len(owed), np.uint8) if least is None else least
    roles = {"leaders": np.sort(np.concatenate(keys)), "owed": owed, "least": least}
    for name, values in roles.items():
        with placed(place / f"{name}.npy") as temporary, temporary.open("wb") as file:
            np.save(file, values)


@dataclass(frozen=True, kw_only=True)
class _Rounds:
    """What goes through all bands, once for each pass."""

    folder: Path
    new: tuple[Path, ...]
    old: tuple[Path, ...]
    parts: int
    need: int
    engine: Engine
    tell: Callable[[str], None]

    def joins(self, place: Path, *, settled: bool = False) -> Any:
        """All joins of one pass, in the order of the bands. Where roles were saved in `place`,
        only who has one takes part.
        """
        import numpy as np

        from browseruse_bench.factory.corpus import kernels

        spread = self._spread(place)
        n_bands = 1 if self.parts == 1 else kernels.BANDS
        finished = [band for band in range(n_bands) if (place / f"band-{band:02}.done").exists()]
        if not finished:
            self.engine.settle_all(spread)
        sources = tuple(job.spill for job in spread)
        joins: list[Any] = []
        for band in range(n_bands):
            jobs = [
                Band(
                    manifest=place / f"band-{band:02}" / f"{part:05}.json",
                    sources=sources,
                    part=part,
                    parts=self.parts,
                    band=band,
                    need=self.need,
                    settled=settled,
                )
                for part in range(self.parts)
            ]
            if band not in finished:
                self.engine.settle_all(jobs)
                write_atomic(place / f"band-{band:02}.done", "")
                # What the band read is in its own files now.
                for path in sources:
                    path.unlink(missing_ok=True)
                self.tell(f"near-duplicates: band {band + 1} of {n_bands}")
            sources = tuple(job.spill for job in jobs)
            joins += [np.load(job.joins) for job in jobs]
        return np.concatenate(joins)

    def _spread(self, place: Path) -> list[Spread]:
        roles = {name: place / f"{name}.npy" for name in ("leaders", "owed", "least")}
        known = roles if roles["least"].exists() else {}
        old = set(self.old)
        return [
            Spread(
                manifest=place / "spread" / f"{i:05}.json",
                source=path,
                parts=self.parts,
                old=path in old,
                **known,
            )
            for i, path in enumerate((*self.new, *self.old))
        ]


def _merged(links: Links, joins: Any) -> Links:
    """Both, sorted by child; nobody is in both."""
    import numpy as np

    child = np.concatenate([links.child, joins["child"]])
    order = np.argsort(child, kind="stable")
    leader = np.concatenate([links.leader, joins["leader"]])
    agreement = np.concatenate([links.agreement, joins["agreement"]])
    return Links(child[order], leader[order], agreement[order])


def _resolved(links: Links, files: Sequence[Path], need: int) -> tuple[Links, Any]:
    """(links to what leads in the end, sorted orphans: those who are not like it)."""
    import numpy as np

    root = links.leader.copy()
    while len(root):
        place = np.searchsorted(links.child, root).clip(max=len(links.child) - 1)
        moves = links.child[place] == root
        if not moves.any():
            break
        root[moves] = links.leader[place[moves]]
    chained = np.flatnonzero(root != links.leader)
    agreement = links.agreement.copy()
    if len(chained):
        agreement[chained] = _compared(links.child[chained], root[chained], files)
    good = agreement >= need
    kept = Links(links.child[good], root[good], agreement[good])
    return kept, links.child[~good]


def _compared(one: Any, other: Any, files: Sequence[Path]) -> Any:
    """Agreement of the sketches of pairs of content hashes, a block at a time."""
    import numpy as np

    from browseruse_bench.factory.corpus import kernels

    out = np.empty(len(one), np.int16)
    for start in range(0, len(one), PART_RECORDS):
        block = slice(start, start + PART_RECORDS)
        out[block] = kernels.agreements(
            gathered(one[block], files)["sketch"], gathered(other[block], files)["sketch"]
        )
    return out


def gathered(keys: Any, files: Sequence[Path]) -> Any:
    """The records of content hashes, from files that are each sorted by them."""
    import numpy as np

    from browseruse_bench.factory.corpus import kernels

    out = np.zeros(len(keys), record_type(kernels.SKETCH))
    for path in files:
        records = np.load(path, mmap_mode="r")
        if not len(records):
            continue
        known = np.array(records["key"])
        place = np.searchsorted(known, keys).clip(max=len(known) - 1)
        hit = np.flatnonzero(known[place] == keys)
        out[hit] = records[place[hit]]
    return out


def forget(folder: Path) -> None:
    """Remove what was spilled on the way."""
    shutil.rmtree(folder, ignore_errors=True)
