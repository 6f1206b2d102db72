"""Read a piece of a file: rights, then length, then local addresses, on every submission.

What passes leaves as distinct texts with their counts, in partitions by content hash; what does
not, as a dropped row with its reason and evidence. A row without a permitted tag is only counted:
nothing of it is written.
"""

# What arrays and tables hold is said in the docstrings: pyarrow ships no types, and those of numpy
# and polars say nothing of columns.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from browseruse_bench.factory.corpus.books import Job
from browseruse_bench.factory.corpus.inputs import Piece, batches
from browseruse_bench.factory.corpus.rules import Rules
from browseruse_bench.factory.corpus.spill import write_frame, write_partitioned
from browseruse_bench.factory.corpus.texts import of_arrow, unit_names


@dataclass(frozen=True, kw_only=True)
class Read(Job):
    """One piece."""

    piece: Piece
    rules: Rules
    partitions: int

    @property
    def spill(self) -> Path:
        """Distinct texts in partitions."""
        return self.manifest.with_suffix(".arrow")

    @property
    def dropped(self) -> Path:
        """Dropped rows."""
        return self.manifest.with_suffix(".dropped.parquet")

    def outputs(self) -> tuple[Path, ...]:
        return self.spill, self.dropped

    def work(self) -> Mapping[str, Any]:
        import polars as pl

        counted: Counter[str] = Counter()
        distinct: list[Any] = []
        dropped: list[Any] = []
        for batch in batches(self.piece, self.rules.columns):
            counted["rows"] += len(batch.frame) + batch.unreadable
            counted["unreadable"] += batch.unreadable
            permitted = _permitted(batch.frame, self.rules.permitted_tags)
            counted["no_permitted_tag"] += len(batch.frame) - len(permitted)
            kept, refused = passed(permitted, self.rules)
            distinct.append(kept)
            dropped.append(refused)
        refused = pl.concat(dropped) if dropped else _dropped_frame(pl.DataFrame(), [])
        reasons = refused["reason"].value_counts().iter_rows()
        write_frame(refused, self.dropped)
        write_partitioned(
            combined(pl.concat(distinct) if distinct else empty_distinct()),
            self.spill,
            partitions=self.partitions,
        )
        return {**counted, "dropped": dict(sorted(reasons))}


def _permitted(frame: Any, tags: tuple[str, ...]) -> Any:
    import polars as pl

    return frame.filter(pl.col("tag").is_in(list(tags)).fill_null(value=False)).with_columns(
        pl.col("text").fill_null("")
    )


def passed(frame: Any, rules: Rules) -> tuple[Any, Any]:
    """(distinct texts that pass, dropped rows) of permitted rows."""
    import numpy as np
    import polars as pl

    from browseruse_bench.factory.corpus import kernels
    from browseruse_bench.factory.corpus.local import find_all

    hashes, sizes = kernels.keys(*of_arrow(frame["text"].to_arrow()), rules.mask)
    evidence: dict[int, tuple[str, str]] = {}
    short, long = sizes[0] < rules.min_chars, sizes[0] > rules.max_chars
    for index in np.flatnonzero(short | long):
        limit = rules.min_chars if short[index] else rules.max_chars
        fact = {"characters": int(sizes[0][index]), "limit": limit}
        evidence[int(index)] = ("too_short" if short[index] else "too_long", json.dumps(fact))
    fits = np.flatnonzero(~(short | long))
    for place, local in find_all(frame["text"].gather(fits)):
        fact = {"matched": local.matched, "why": local.why}
        evidence[int(fits[place])] = (local.kind, json.dumps(fact, ensure_ascii=False))
    bad = np.zeros(len(frame), bool)
    bad[list(evidence)] = True
    keyed = frame.select(
        pl.Series("key", hashes[0]),
        pl.Series("plain", hashes[1]),
        pl.Series("raw", hashes[2]),
        pl.Series("entity", hashes[3]),
        pl.Series("length", sizes[1]),
        pl.lit(1, pl.Int64).alias("rows"),
        pl.col("count"),
        pl.col("time").alias("first"),
        pl.col("time").alias("last"),
        pl.col("text"),
    ).filter(pl.Series(~bad))
    order = sorted(evidence)
    return combined(keyed), _dropped_frame(frame[order], [evidence[i] for i in order])


def combined(frame: Any) -> Any:
    """One row for each text, sorted by key."""
    import polars as pl

    return (
        frame.group_by("key", "raw")
        .agg(
            pl.col("plain", "entity", "length").first(),
            pl.col("rows", "count").sum(),
            pl.col("first").min(),
            pl.col("last").max(),
            pl.col("text").first(),
        )
        .sort("key")
    )


def empty_distinct() -> Any:
    """No texts, with the columns of those that pass."""
    import polars as pl

    unsigned = dict.fromkeys(("key", "raw", "plain", "entity"), pl.UInt64)
    signed = dict.fromkeys(("rows", "count", "first", "last"), pl.Int64)
    return pl.DataFrame(schema={**unsigned, "length": pl.Int32, **signed, "text": pl.String})


def _dropped_frame(frame: Any, found: list[tuple[str, str]]) -> Any:
    import polars as pl

    if not found:
        return pl.DataFrame(schema=dropped_schema())
    return frame.select(
        pl.Series("unit", unit_names(of_arrow(frame["text"].to_arrow())), pl.String),
        pl.Series("reason", [reason for reason, _ in found]),
        pl.Series("evidence", [evidence for _, evidence in found]),
        pl.lit(1, pl.Int64).alias("rows"),
        pl.col("count"),
        pl.col("time").alias("first"),
        pl.col("time").alias("last"),
        pl.col("text"),
    )


def dropped_schema() -> dict[str, Any]:
    """Columns of dropped submissions; times in microseconds since 1970, in UTC."""
    import polars as pl

    text = dict.fromkeys(("unit", "reason", "evidence"), pl.String)
    return {
        **text,
        **dict.fromkeys(("rows", "count", "first", "last"), pl.Int64),
        "text": pl.String,
    }
