"""Read a piece of a file: rights, then length, then local addresses, on every submission: what
is the same to the byte is looked at once.

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

_JSON = json.JSONEncoder(ensure_ascii=False).encode


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

        from browseruse_bench.factory.corpus import kernels

        counted: Counter[str] = Counter()
        broken: list[int] = []
        rows: list[Any] = []
        texts: list[Any] = []
        for batch in batches(self.piece, self.rules.columns):
            counted["rows"] += len(batch.frame) + batch.unreadable
            counted["unreadable"] += batch.unreadable
            broken += batch.broken
            permitted = _permitted(batch.frame, self.rules.permitted_tags)
            counted["no_permitted_tag"] += len(batch.frame) - len(permitted)
            raw = pl.Series("raw", kernels.raws(*of_arrow(permitted["text"].to_arrow())))
            rows.append(permitted.select(raw, "count", "time"))
            texts.append(permitted.select(raw, "text").unique("raw"))
        kept, refused = passed(*_whole(rows, texts), self.rules)
        reasons = refused["reason"].value_counts().iter_rows()
        write_frame(refused, self.dropped)
        write_partitioned(kept.sort("key"), self.spill, partitions=self.partitions)
        return {**counted, "dropped": dict(sorted(reasons)), "broken": broken}


def _permitted(frame: Any, tags: tuple[str, ...]) -> Any:
    import polars as pl

    return frame.filter(pl.col("tag").is_in(list(tags)).fill_null(value=False)).with_columns(
        pl.col("text").fill_null("")
    )


def _whole(rows: list[Any], texts: list[Any]) -> tuple[Any, Any]:
    """(submissions, distinct texts) of all batches: the first as hash of the text, count, time."""
    import polars as pl

    if not rows:
        unsigned = {"raw": pl.UInt64}
        none = pl.DataFrame(schema={**unsigned, "count": pl.Int64, "time": pl.Int64})
        return none, pl.DataFrame(schema={**unsigned, "text": pl.String})
    return pl.concat(rows), pl.concat(texts).unique("raw")


def passed(rows: Any, texts: Any, rules: Rules) -> tuple[Any, Any]:
    """(distinct texts that pass, dropped submissions) of permitted ones.

    Args:
        rows: submissions: raw, count, time.
        texts: their distinct texts: raw, text. Each is looked at once.
        rules: what passes.
    """
    import numpy as np
    import polars as pl

    from browseruse_bench.factory.corpus import kernels

    hashes, sizes = kernels.keys(*of_arrow(texts["text"].to_arrow()), rules.mask)
    evidence = _evidence(texts["text"], sizes[0], rules)
    good = np.ones(len(texts), bool)
    good[list(evidence)] = False
    keyed = pl.DataFrame(
        {
            "key": hashes[0],
            "raw": texts["raw"],
            "plain": hashes[1],
            "entity": hashes[2],
            "length": sizes[1],
            "text": texts["text"],
        }
    ).filter(pl.Series(good))
    counted = rows.group_by("raw").agg(
        pl.len().cast(pl.Int64).alias("rows"),
        pl.col("count").sum(),
        pl.col("time").min().alias("first"),
        pl.col("time").max().alias("last"),
    )
    order = sorted(evidence)
    refused = texts[order].with_columns(
        pl.Series("reason", [evidence[i][0] for i in order], pl.String),
        pl.Series("evidence", [evidence[i][1] for i in order], pl.String),
    )
    return keyed.join(counted, on="raw").select(SPILLED), _dropped_rows(rows, refused)


SPILLED = (
    *("key", "raw", "plain", "entity", "length"),
    *("rows", "count", "first", "last", "text"),
)


def _evidence(texts: Any, chars: Any, rules: Rules) -> dict[int, tuple[str, str]]:
    """(reason, evidence) of each text that does not pass, by its place."""
    import numpy as np

    from browseruse_bench.factory.corpus.local import find_all

    evidence: dict[int, tuple[str, str]] = {}
    short, long = chars < rules.min_chars, chars > rules.max_chars
    for index in np.flatnonzero(short | long):
        limit = rules.min_chars if short[index] else rules.max_chars
        fact = {"characters": int(chars[index]), "limit": limit}
        evidence[int(index)] = ("too_short" if short[index] else "too_long", _JSON(fact))
    fits = np.flatnonzero(~(short | long))
    for place, local in find_all(texts.gather(fits)):
        fact = {"matched": local.matched, "why": local.why}
        evidence[int(fits[place])] = (local.kind, _JSON(fact))
    return evidence


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


def _dropped_rows(rows: Any, refused: Any) -> Any:
    """One row for each submission whose text is among the refused ones."""
    import polars as pl

    if not len(refused):
        return pl.DataFrame(schema=dropped_schema())
    names = unit_names(of_arrow(refused["text"].to_arrow()))
    refused = refused.with_columns(pl.Series("unit", names, pl.String))
    return rows.join(refused, on="raw", maintain_order="left").select(
        *("unit", "reason", "evidence"),
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
