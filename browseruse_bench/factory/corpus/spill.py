"""Tables on disk in partitions by the leading bits of a 64-bit content hash."""

# What arrays and tables hold is said in the docstrings: pyarrow ships no types, and those of numpy
# and polars say nothing of columns.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from pathlib import Path
from typing import Any

from browseruse_bench.factory.corpus.books import placed


def write_partitioned(frame: Any, path: Path, *, partitions: int) -> None:
    """Write a polars frame that is sorted by `key` as one Arrow file, one batch a partition.

    Args:
        frame: with a uint64 column `key`.
        path: of the file.
        partitions: a power of two.
    """
    import numpy as np
    import pyarrow as pa

    table = frame.to_arrow(compat_level=None)
    bounds = partition_bounds(frame["key"].to_numpy(), partitions)
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    schema = pa.schema(
        pa.field(f.name, pa.large_string() if _is_text(f.type) else f.type) for f in table.schema
    )
    table = table.cast(schema).combine_chunks()
    with placed(path) as temporary, pa.ipc.new_file(str(temporary), schema, options=options) as out:
        for start, stop in zip(bounds, bounds[1:], strict=False):
            part = table.slice(start, stop - start).to_batches()
            out.write(part[0] if part else _empty(schema))
    assert np.all(np.diff(bounds) >= 0), "the frame is not sorted by key"


def read_partition(path: Path, partition: int) -> Any:
    """One partition of such a file as a polars frame."""
    import polars as pl
    import pyarrow as pa

    with pa.OSFile(str(path)) as file:
        return pl.from_arrow(pa.ipc.open_file(file).get_batch(partition))


def partition_bounds(keys: Any, partitions: int) -> list[int]:
    """Where each partition begins in sorted keys, and where the last one ends."""
    import numpy as np

    if partitions == 1:
        return [0, len(keys)]
    bits = partitions.bit_length() - 1
    firsts = np.arange(1, partitions, dtype=np.uint64) << np.uint64(64 - bits)
    return [0, *np.searchsorted(keys, firsts).tolist(), len(keys)]


def write_frame(frame: Any, path: Path) -> None:
    """Write a polars frame as Parquet."""
    with placed(path) as temporary:
        frame.write_parquet(temporary, compression="zstd", compression_level=1)


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def _empty(schema: Any) -> Any:
    import pyarrow as pa

    return pa.record_batch([pa.array([], field.type) for field in schema], schema=schema)
