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
from functools import cache
from pathlib import Path
from typing import Any

from browseruse_bench.factory.corpus import boilerplate, overlap
from browseruse_bench.factory.corpus.books import Job, placed
from browseruse_bench.factory.corpus.language import not_english
from browseruse_bench.factory.corpus.reading import dropped_schema
from browseruse_bench.factory.corpus.rules import Rules
from browseruse_bench.factory.corpus.spill import read_partition, write_frame
from browseruse_bench.factory.corpus.texts import of_arrow
from browseruse_bench.records.base import content_key


@dataclass(frozen=True, kw_only=True)
class Group(Job):
    """The distinct texts of one partition."""

    partition: int
    spills: tuple[Path, ...]
    members: tuple[Path, ...]
    """The members of this partition in earlier drops."""
    benchmarks: Path
    rules: Rules

    @property
    def groups(self) -> Path:
        """One row for each distinct text; `met`: it has a gram of a benchmark."""
        return self.manifest.with_suffix(".parquet")

    @property
    def grams(self) -> Path:
        """How often each gram of the benchmarks was seen outside of copies."""
        return self.manifest.with_suffix(".npy")

    @property
    def lines(self) -> Path:
        """Lines of texts that are new, with what else these say."""
        return self.manifest.with_suffix(".lines.npy")

    def outputs(self) -> tuple[Path, ...]:
        return self.groups, self.grams, self.lines

    def work(self) -> Mapping[str, Any]:
        import numpy as np
        import polars as pl

        parts = [read_partition(path, self.partition) for path in self.spills]
        frame = grouped(pl.concat(parts)).join(
            known_leaders(self.members), on="key", how="left", maintain_order="left"
        )
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


def grouped(frame: Any) -> Any:
    """One row for each content hash, sorted by it: the text of the smallest hash stands for all.

    `variants` counts texts that differ in more than case and marks: in masked numbers.
    """
    import polars as pl

    return (
        frame.sort("key", "raw")
        .group_by("key", maintain_order=True)
        .agg(
            pl.col("entity", "length").first(),
            pl.col("rows", "count").sum(),
            pl.col("first").min(),
            pl.col("last").max(),
            pl.col("text").first(),
            pl.col("plain").n_unique().alias("variants"),
            pl.col("text").last().alias("variant"),
        )
        .with_columns(pl.when(pl.col("variants") > 1).then(pl.col("variant")))
    )


def known_leaders(members: Sequence[Path]) -> Any:
    """Key -> leader of what earlier drops kept."""
    import polars as pl

    none = pl.DataFrame(schema={"key": pl.UInt64, "leader": pl.UInt64})
    frames = [pl.read_parquet(path, columns=["key", "leader"]) for path in members]
    return pl.concat([none, *frames]).unique("key")


@cache
def load_index(path: Path) -> overlap.Index:
    """The benchmarks of a drop, read once for all jobs of a process."""
    return overlap.Index.load(path)


def record_type(sketch: int) -> Any:
    """What is known of a text when it is clustered."""
    import numpy as np

    return np.dtype([("key", "<u8"), ("entity", "<u8"), ("old", "u1"), ("sketch", "u1", (sketch,))])


@dataclass(frozen=True, kw_only=True)
class Examine(Job):
    """Benchmarks and language of the distinct texts of one partition, and their sketches."""

    groups: Path
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
        refused = _dropped(frame, evidence)
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


def _dropped(frame: Any, evidence: Mapping[int, tuple[str, str]]) -> Any:
    import polars as pl

    if not evidence:
        return pl.DataFrame(schema=dropped_schema())
    order = sorted(evidence)
    chosen = frame[order]
    return chosen.select(
        pl.Series("unit", [content_key([text]) for text in chosen["text"]]),
        pl.Series("reason", [evidence[i][0] for i in order]),
        pl.Series("evidence", [evidence[i][1] for i in order]),
        *(pl.col(name) for name in ("rows", "count", "first", "last", "text")),
    )
