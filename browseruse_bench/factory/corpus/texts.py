"""A column of texts as the buffer and the offsets that the kernels read."""

# What arrays and tables hold is said in the docstrings: pyarrow ships no types, and those of numpy
# and polars say nothing of columns.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Texts(NamedTuple):
    """Texts in UTF-8, one after the other."""

    data: NDArray[Any]
    """uint8; one byte at least."""
    offsets: NDArray[Any]
    """int64, one more than there are texts."""

    def text(self, i: int) -> str:
        """One of them."""
        return bytes(self.data[self.offsets[i] : self.offsets[i + 1]]).decode()


def of_arrow(column: Any) -> Texts:
    """The texts of an Arrow string column without nulls; nothing is copied if it is one chunk
    of `large_string`.
    """
    import numpy as np
    import pyarrow as pa

    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks)
    if not pa.types.is_large_string(array.type):
        array = array.cast(pa.large_string())
    _, offsets, data = array.buffers()
    if not len(array):
        return Texts(np.zeros(1, np.uint8), np.zeros(1, np.int64))
    bounds = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
    if data is None or not data.size:
        return Texts(np.zeros(1, np.uint8), bounds)
    return Texts(np.frombuffer(data, np.uint8), bounds)


def of_strings(texts: Sequence[str]) -> Texts:
    """Python's strings in UTF-8."""
    import numpy as np

    encoded = [text.encode(errors="replace") for text in texts]
    offsets = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum([len(text) for text in encoded], out=offsets[1:])
    return Texts(np.frombuffer(b"".join(encoded) or b"\0", np.uint8), offsets)


def units(texts: Texts) -> Any:
    """`content_key([text])` of each text: uint32, n x 8, the first words first."""
    from browseruse_bench.factory.corpus import unit_kernels

    return unit_kernels.units(*texts)


def unit_ids(texts: Texts) -> Any:
    """The first 64 bits of the unit of each text."""
    import numpy as np

    words = units(texts)
    return (words[:, 0].astype(np.uint64) << np.uint64(32)) | words[:, 1]


def unit_names(texts: Texts) -> list[str]:
    """The unit of each text, 64 hex digits."""
    name = units(texts).astype(">u4").tobytes().hex()
    return [name[i : i + 64] for i in range(0, len(name), 64)]
