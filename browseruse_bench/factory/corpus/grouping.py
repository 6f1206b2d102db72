"""Combine what is the same in all pieces of a drop, one partition by itself; then filter each
distinct text by its benchmarks and its language, and sketch what passes.
"""

# What arrays and tables hold is said in the docstrings: pyarrow ships no types, and those of numpy
# and polars say nothing of columns.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from browseruse_bench.factory.corpus import boilerplate, overlap
from browseruse_bench.factory.corpus.books import Job, placed
from browseruse_bench.factory.corpus.language import not_english
from browseruse_bench.factory.corpus.reading import combined, dropped_schema
from browseruse_bench.factory.corpus.rules import Rules
from browseruse_bench.factory.corpus.shelves import Shelf
from browseruse_bench.factory.corpus.spill import read_partition, write_frame
from browseruse_bench.factory.corpus.texts import of_arrow, unit_ids, unit_names

COUNTED = ("rows", "count", "first", "last")
"""What is said of a text: submissions, their count, the first and the last time."""


@dataclass(frozen=True, kw_only=True)
class Group(Job):
    """The distinct texts of one partition."""

    partition: int
    partitions: int
    spills: tuple[Path, ...]
    earlier: tuple[Shelf, ...]
    """What earlier drops came to."""
    benchmarks: Path
    rules: Rules

    @property
    def groups(self) -> Path:
        """One row for each distinct text; `met`: it has a gram of a benchmark."""
        return self.manifest.with_suffix(".parquet")

    @property
    def variants(self) -> Path:
        """One row for each other text of the same key."""
        return self.manifest.with_suffix(".variants.parquet")

    @property
    def grams(self) -> Path:
        """How often each gram of the benchmarks was seen outside of copies."""
        return self.manifest.with_suffix(".npy")

    @property
    def lines(self) -> Path:
        """Lines of texts that are new, with what else these say."""
        return self.manifest.with_suffix(".lines.npy")

    def outputs(self) -> tuple[Path, ...]:
        return self.groups, self.variants, self.grams, self.lines

    def work(self) -> Mapping[str, Any]:
        import numpy as np
        import polars as pl

        parts = [read_partition(path, self.partition) for path in self.spills]
        frame, variants = grouped(pl.concat(parts))
        del parts
        write_frame(variants, self.variants)
        known = known_leaders(self.earlier, self.partition, self.partitions)
        frame = frame.join(known, on="key", how="left", maintain_order="left")
        new = frame.filter(pl.col("leader").is_null())
        texts = of_arrow(new["text"].to_arrow())
        seen, met = overlap.count_grams(
            load_index(self.benchmarks), texts, threshold=self.rules.overlap
        )
        marks = np.zeros(len(frame), bool)
        marks[frame["leader"].is_null().to_numpy()] = met
        write_frame(frame.with_columns(pl.Series("met", marks)), self.groups)
        for path, array in ((self.grams, seen), (self.lines, boilerplate.pairs(texts))):
            with placed(path) as temporary, temporary.open("wb") as file:
                np.save(file, array)
        return {"distinct": len(frame), "new": len(new), "rows": int(frame["rows"].sum())}


def grouped(frame: Any) -> tuple[Any, Any]:
    """(one row for each content hash, one for each other text with it), sorted by it.

    The text of the smallest hash stands for all; what it came with itself is in `own_rows` to
    `own_last`. `numbers` of another text: it differs in a masked number, not in case and marks
    alone.
    """
    import polars as pl

    every = combined(frame).sort("key", "raw")
    every = every.with_columns(
        pl.Series("id", unit_ids(of_arrow(every["text"].to_arrow()))),
        pl.col("key").is_first_distinct().alias("leads"),
    )
    totals = every.group_by("key", maintain_order=True).agg(
        pl.col("rows", "count").sum(), pl.col("first").min(), pl.col("last").max()
    )
    own = {f"own_{name}": name for name in COUNTED}
    leads = every.filter("leads").select("id", "plain", "entity", "length", "text", **own)
    groups = pl.concat([totals, leads], how="horizontal")
    others = (
        every.filter(~pl.col("leads"))
        .join(groups.select("key", led="plain"), on="key", how="left", maintain_order="left")
        .select("key", "id", *COUNTED, "text", numbers=pl.col("plain") != pl.col("led"))
    )
    return groups.drop("plain"), others


def known_leaders(earlier: Sequence[Shelf], partition: int, partitions: int) -> Any:
    """Key -> leader of what earlier drops kept, in one partition."""
    import polars as pl

    none = pl.DataFrame(schema={"key": pl.UInt64, "leader": pl.UInt64})
    frames = [
        shelf.read("members", partition, partitions, columns=("key", "leader")) for shelf in earlier
    ]
    return pl.concat([none, *frames]).unique("key")


def load_index(path: Path) -> overlap.Index:
    """The benchmarks of a drop, read once for all jobs of a process."""
    return _loaded(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=2)
def _loaded(path: Path, written: int) -> overlap.Index:
    del written
    return overlap.Index.load(path)


def record_type(sketch: int) -> Any:
    """What is known of a text when it is clustered."""
    import numpy as np

    roles = [("old", "u1"), ("least", "u1")]
    return np.dtype([("key", "<u8"), ("entity", "<u8"), *roles, ("sketch", "u1", (sketch,))])


@dataclass(frozen=True, kw_only=True)
class Examine(Job):
    """Benchmarks and language of the distinct texts of one partition, and their sketches."""

    groups: Path
    variants: Path
    benchmarks: Path
    frequent: Path
    boilerplate: Path
    """Sorted hashes of lines that do not count when texts are compared with each other."""
    rules: Rules

    @property
    def records(self) -> Path:
        """Sketches of what passed, sorted by content hash."""
        return self.manifest.with_suffix(".npy")

    @property
    def alone(self) -> Path:
        """Content hashes of what passed and is too short for a sketch."""
        return self.manifest.with_suffix(".alone.npy")

    @property
    def dropped(self) -> Path:
        """Distinct texts that were dropped."""
        return self.manifest.with_suffix(".dropped.parquet")

    def outputs(self) -> tuple[Path, ...]:
        return self.records, self.alone, self.dropped

    def work(self) -> Mapping[str, Any]:
        import numpy as np
        import polars as pl

        from browseruse_bench.factory.corpus import kernels

        frame = pl.read_parquet(self.groups).filter(pl.col("leader").is_null())
        texts = of_arrow(frame["text"].to_arrow())
        sketches = kernels.sketches(*texts, self.rules.mask)
        evidence = self._refused(frame, texts, sketches)
        own, changed = boilerplate.stripped(texts, np.load(self.boilerplate))
        if changed.any():
            # Benchmarks have their boilerplate: what is compared with them has, too.
            sketches = kernels.sketches(*own, self.rules.mask)
        good = np.ones(len(frame), bool)
        good[list(evidence)] = False
        long = frame["length"].to_numpy() >= overlap.SHORTEST_SKETCH
        records: Any = np.zeros(int((good & long).sum()), record_type(kernels.SKETCH))
        for name, values in (("key", frame["key"]), ("entity", frame["entity"])):
            records[name] = values.to_numpy()[good & long]
        records["sketch"] = sketches[good & long]
        alone = frame["key"].to_numpy()[good & ~long]
        for path, array in ((self.records, records), (self.alone, alone)):
            with placed(path) as temporary, temporary.open("wb") as file:
                np.save(file, array)
        refused = _dropped(frame, pl.read_parquet(self.variants), evidence)
        write_frame(refused, self.dropped)
        reasons = refused.group_by("reason").agg(pl.col("rows").sum()).sort("reason").iter_rows()
        return {"dropped": dict(reasons), "records": len(records), "alone": len(alone)}

    def _refused(self, frame: Any, texts: Any, sketches: Any) -> dict[int, tuple[str, str]]:
        import numpy as np

        found = overlap.held(
            load_index(self.benchmarks),
            texts,
            frame["key"].to_numpy(),
            sketches,
            met=frame["met"].to_numpy(),
            frequent=np.load(self.frequent),
            threshold=self.rules.overlap,
        )
        evidence = {i: ("benchmark_overlap", json.dumps(fact)) for i, fact in found}
        for i, said in not_english(texts, at_least=self.rules.english):
            if i not in evidence:
                fact = {"language": said.language, "confidence": said.confidence}
                evidence[i] = (said.verdict, json.dumps(fact))
        return evidence


def _dropped(frame: Any, variants: Any, evidence: Mapping[int, tuple[str, str]]) -> Any:
    """A row for each text of the refused keys, those of variants among them."""
    import polars as pl

    if not evidence:
        return pl.DataFrame(schema=dropped_schema())
    order = sorted(evidence)
    why = pl.DataFrame(
        {
            "key": frame["key"].gather(order),
            "reason": [evidence[i][0] for i in order],
            "evidence": [evidence[i][1] for i in order],
        }
    )
    own = frame[order].select("key", *(pl.col(f"own_{n}").alias(n) for n in COUNTED), "text")
    every = pl.concat([own, variants.select("key", *COUNTED, "text")])
    found = every.join(why, on="key", how="inner", maintain_order="left")
    names = pl.Series("unit", unit_names(of_arrow(found["text"].to_arrow())), pl.String)
    return found.select(names, "reason", "evidence", *COUNTED, "text")
