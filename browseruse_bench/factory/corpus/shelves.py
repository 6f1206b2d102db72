"""What finished drops left, in partitions by the leading bits of a content hash.

Each drop has as many partitions as its size asks for. All counts are powers of two, so that a
partition of one is a part, or some whole ones, of another.
"""

# What tables hold is said in the docstrings: polars says nothing of columns.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Shelf:
    """The folder of a drop that is done."""

    path: Path
    partitions: int

    def files(self, name: str, suffix: str = ".parquet") -> list[Path]:
        """One file for each partition, in order."""
        return [self.path / name / f"{p:05}{suffix}" for p in range(self.partitions)]

    def read(
        self,
        name: str,
        partition: int,
        partitions: int,
        *,
        columns: Sequence[str],
        suffix: str = ".parquet",
    ) -> Any:
        """The rows whose `key` is in one of `partitions` partitions, as a polars frame.

        Args:
            name: folder of the books: `members`, `keep`.
            partition: which one.
            partitions: a power of two, whatever the drop's own is.
            columns: which are read.
            suffix: of the files.
        """
        import polars as pl

        if partitions <= self.partitions:
            each = self.partitions // partitions
            chosen = self.files(name, suffix)[partition * each : (partition + 1) * each]
            return pl.concat([pl.read_parquet(path, columns=list(columns)) for path in chosen])
        width = (1 << 64) // partitions
        low, high = partition * width, (partition + 1) * width - 1
        place = partition * self.partitions // partitions
        within = pl.col("key").is_between(pl.lit(low, pl.UInt64), pl.lit(high, pl.UInt64))
        return (
            pl.scan_parquet(self.files(name, suffix)[place])
            .filter(within)
            .select(columns)
            .collect()
        )


def finest(shelves: Sequence[Shelf]) -> int:
    """The most partitions that one of some drops has."""
    return max(shelf.partitions for shelf in shelves)
