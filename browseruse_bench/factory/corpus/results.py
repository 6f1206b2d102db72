"""What a drop of files comes to: members of clusters, new tasks, and what older ones gained."""

# What arrays and tables hold is said in the docstrings: pyarrow ships no types, and those of numpy
# and polars say nothing of columns.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from browseruse_bench.factory.corpus.books import Job, placed
from browseruse_bench.factory.corpus.grouping import COUNTED
from browseruse_bench.factory.corpus.linking import is_in
from browseruse_bench.factory.corpus.shelves import Shelf, finest
from browseruse_bench.factory.corpus.spill import (
    read_partition,
    write_frame,
    write_partitioned,
)
from browseruse_bench.factory.corpus.texts import of_arrow, unit_names
from browseruse_bench.records.candidate import Candidate

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class Members(Job):
    """Whom each distinct text of one partition follows, and what that adds to its leader."""

    groups: Path
    variants: Path
    records: Path
    alone: Path
    links: Path
    partitions: int

    @property
    def members(self) -> Path:
        """One row for each distinct text that is in a cluster, sorted by content hash."""
        return self.manifest.with_suffix(".parquet")

    @property
    def others(self) -> Path:
        """One row for each other text with the content hash of a member."""
        return self.manifest.with_suffix(".variants.parquet")

    @property
    def totals(self) -> Path:
        """One row for each leader, in partitions by its content hash."""
        return self.manifest.with_suffix(".arrow")

    def outputs(self) -> tuple[Path, ...]:
        return self.members, self.others, self.totals

    def work(self) -> Mapping[str, Any]:
        import numpy as np
        import polars as pl

        from browseruse_bench.factory.corpus import kernels

        frame = pl.read_parquet(self.groups)
        keys, known = frame["key"].to_numpy(), frame["leader"].is_not_null().to_numpy()
        passed = is_in(keys, np.load(self.records, mmap_mode="r")["key"].copy())
        in_cluster = known | passed | is_in(keys, np.load(self.alone))
        with np.load(self.links) as links:
            child, leader, agreement = links["child"], links["leader"], links["agreement"]
        place = np.searchsorted(child, keys).clip(max=max(0, len(child) - 1))
        joined = is_in(keys, child)
        follows, alike = keys.copy(), np.full(len(keys), kernels.SKETCH, np.int16)
        follows[joined] = leader[place[joined]]
        alike[joined] = agreement[place[joined]]
        frame = frame.with_columns(
            pl.Series("known", known),
            pl.coalesce("leader", pl.Series("follows", follows)).alias("leader"),
            (pl.Series(alike.astype(np.float32)) / kernels.SKETCH).alias("similarity"),
        ).filter(pl.Series(in_cluster))
        own = [f"own_{name}" for name in COUNTED]
        write_frame(frame.drop("entity", "length", "met", *own), self.members)
        others = pl.read_parquet(self.variants)
        write_frame(others.join(frame.select("key"), on="key", how="semi"), self.others)
        totals = frame.group_by("leader").agg(
            pl.col("rows", "count").sum(),
            pl.col("first").min(),
            pl.col("last").max(),
            pl.len().cast(pl.Int64).alias("distinct"),
            pl.col("similarity").sum(),
        )
        write_partitioned(
            totals.rename({"leader": "key"}).sort("key"), self.totals, partitions=self.partitions
        )
        return {"rows": int(frame["rows"].sum()), "members": len(frame)}


@dataclass(frozen=True, kw_only=True)
class Keep(Job):
    """The new tasks of one partition, and what older tasks gained."""

    partition: int
    members: Path
    totals: tuple[Path, ...]
    records: Path

    @property
    def kept(self) -> Path:
        """New tasks, sorted by content hash."""
        return self.manifest.with_suffix(".parquet")

    @property
    def grown(self) -> Path:
        """Additions to tasks of earlier drops."""
        return self.manifest.with_suffix(".grown.parquet")

    @property
    def leaders(self) -> Path:
        """Records of the new leaders: what later drops join."""
        return self.manifest.with_suffix(".npy")

    def outputs(self) -> tuple[Path, ...]:
        return self.kept, self.grown, self.leaders

    def work(self) -> Mapping[str, Any]:
        import numpy as np
        import polars as pl

        totals = added([read_partition(path, self.partition) for path in self.totals])
        # A text that follows itself and was not known before leads a cluster that is new.
        own = pl.read_parquet(self.members, columns=["key", "leader", "text", "known"]).filter(
            (pl.col("key") == pl.col("leader")) & ~pl.col("known")
        )
        kept = totals.join(own.select("key", "text"), on="key", how="inner").sort("key")
        grown = totals.join(own.select("key"), on="key", how="anti").sort("key")
        units = pl.Series("unit", unit_names(of_arrow(kept["text"].to_arrow())), pl.String)
        write_frame(kept.with_columns(units), self.kept)
        write_frame(grown, self.grown)
        records = np.load(self.records)
        with placed(self.leaders) as temporary, temporary.open("wb") as file:
            np.save(file, records[is_in(records["key"], kept["key"].to_numpy())])
        return {"kept": len(kept), "grown": len(grown)}


def added(frames: Sequence[Any]) -> Any:
    """One row for each leader: sums, the first and the last time."""
    import polars as pl

    return (
        pl.concat(frames)
        .group_by("key")
        .agg(
            pl.col("rows", "count", "distinct", "similarity").sum(),
            pl.col("first").min(),
            pl.col("last").max(),
        )
    )


def tasks(shelves: Sequence[Shelf], partition: int, partitions: int) -> Any:
    """All tasks of one partition with what all drops add to them, sorted by content hash."""
    import polars as pl

    columns = ("key", "rows", "count", "distinct", "similarity", "first", "last")
    kept = pl.concat(
        shelf.read("keep", partition, partitions, columns=(*columns, "unit", "text"))
        for shelf in shelves
    )
    grown = [
        shelf.read("keep", partition, partitions, columns=columns, suffix=".grown.parquet")
        for shelf in shelves
    ]
    sums = added([kept.select(columns), *grown])
    return kept.select("key", "unit", "text").join(sums, on="key", how="left").sort("key")


def candidates(shelves: Sequence[Shelf]) -> Iterator[Candidate]:
    """All tasks of a workspace, one partition at a time in memory, by content hash."""
    for partition in range(finest(shelves)):
        for row in tasks(shelves, partition, finest(shelves)).iter_rows(named=True):
            yield Candidate(
                text=row["text"],
                origin=row["unit"],
                count=row["count"],
                first_seen=iso(row["first"]),
                last_seen=iso(row["last"]),
            )


def iso(microseconds: int | None) -> str | None:
    """ISO 8601 in UTC, to the second."""
    if microseconds is None:
        return None
    return (_EPOCH + timedelta(microseconds=microseconds)).isoformat(timespec="seconds")
