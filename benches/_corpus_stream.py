"""A corpus that is made while it is read: a part at a time is on disk, in front of the job that
reads it.

The plan of a drop needs files; each part is a file of one row, which says which part it is, and
the job that reads it makes the rows first, in a process of its own. A tenth of the rows come from
`corpus_text`; the others are these with the words of the vocabulary exchanged, a different way
each time: other tasks, made fast.

    python benches/_corpus_stream.py FILE PART N SEED      makes one part
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import corpus_text

from browseruse_bench.factory.corpus.reading import Read

PART_ROWS = 500_000
COPIES = 10
RATIO = 30.0
EXCHANGED = ("ADJECTIVES", "NOUNS", "FIELDS", "TOPICS", "FILLER")
NOTES = "made.txt"


def plan(folder: Path, n: int, seed: int) -> None:
    """Write a file of one row for each part of `n` rows; `n` is made whole parts."""
    import polars as pl

    folder.mkdir(parents=True)
    for part in range(max(1, n // PART_ROWS)):
        said = {"text": f"part {part} of {n} rows, seed {seed}", "time": part, "data_use": "none"}
        pl.DataFrame([said]).write_parquet(folder / f"{part:05}.parquet")


@dataclass(frozen=True, kw_only=True)
class Made(Read):
    """Makes a part, reads it, and takes it away again."""

    def work(self) -> Mapping[str, Any]:
        import polars as pl

        begun = time.perf_counter()
        words = pl.read_parquet(self.piece.path)["text"][0].split()
        file = self.manifest.with_suffix(".made.parquet")
        given = [str(file), words[1], words[3], words[6]]
        subprocess.run([sys.executable, __file__, *given], check=True)
        stat = file.stat()
        with (self.piece.path.parent / NOTES).open("a") as notes:
            notes.write(f"{time.perf_counter() - begun}\n")
        try:
            groups = len(range(0, PART_ROWS, 100_000))
            piece = replace(
                self.piece, path=file, size=stat.st_size, mtime_ns=stat.st_mtime_ns, stop=groups
            )
            return Read(
                manifest=self.manifest, piece=piece, rules=self.rules, partitions=self.partitions
            ).work()
        finally:
            file.unlink()


def write(file: Path, part: int, n: int, seed: int) -> None:
    """The rows of one part as Parquet."""
    import polars as pl

    size = PART_ROWS // COPIES
    rows = corpus_text.rows(
        part * size, (part + 1) * size, n=max(size, n // COPIES), seed=seed, ratio=RATIO
    )
    base = pl.DataFrame([(made.text, made.flag == "ok") for made in rows], orient="row")
    base.columns = ["text", "ok"]
    copies = [
        base.select(pl.when("ok").then(_exchanged(copy)).otherwise("text").alias("text"))
        for copy in range(COPIES)
    ]
    frame = pl.concat(copies).with_columns(
        (1_700_000_000 + 7 * (pl.int_range(pl.len()) + part * PART_ROWS)).alias("time"),
        pl.lit("research").alias("data_use"),
    )
    frame.write_parquet(file, compression="zstd", row_group_size=100_000)


def _exchanged(copy: int) -> Any:
    import polars as pl

    old, new = [], []
    for name in EXCHANGED:
        words = list(getattr(corpus_text, name))
        old += [f" {word}" for word in words]
        new += [f" {word}" for word in words[copy:] + words[:copy]]
    return pl.col("text").str.replace_many(old, new, leftmost=True) if copy else pl.col("text")


if __name__ == "__main__":
    write(Path(sys.argv[1]), *map(int, sys.argv[2:5]))
