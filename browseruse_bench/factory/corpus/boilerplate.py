"""Lines that many different tasks have in common, and that say nothing of which task it is.

"Only use this website. Do not go to any other." A line is boilerplate if it stands in enough
distinct texts, and if what else these say is of enough different tasks: a task that many people
sent in many variants makes none of its lines boilerplate. How different the rest is comes from a
hash of it that variants of one task mostly share. Lines are found once for a drop, whatever its
files and partitions; those of earlier drops stay.
"""

# What arrays hold is said in the docstrings.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from browseruse_bench.factory.corpus.texts import Texts

TEXTS = 25
"""Distinct texts of each 100,000, and in all, in which a line may be and still say something."""
TASKS = 4.0
"""Different tasks, in effect, from which on a line is boilerplate; few, for tasks often begin
alike, and then what tells them apart does not show in each hash."""
_RANGES = 16
"""Parts in which lines are counted, so that not all are in memory."""


def pairs(texts: Texts) -> Any:
    """(line, rest) of all lines of texts with several, sorted by line: uint64, n x 2."""
    import numpy as np

    from browseruse_bench.factory.corpus import line_kernels

    found = line_kernels.lines(*texts)
    return found[np.lexsort((found[:, 1], found[:, 0]))]


def common(files: Sequence[Path], n_texts: int) -> Any:
    """Sorted hashes of the lines that are boilerplate among those of all files of `pairs`."""
    import numpy as np

    limit = max(TEXTS, TEXTS * n_texts // 100_000)
    step = (1 << 64) // _RANGES
    found: list[Any] = [np.zeros(0, np.uint64)]
    for part in range(_RANGES):
        low = np.uint64(part * step)
        high = np.uint64((part + 1) * step - 1)
        chosen: list[Any] = []
        for path in files:
            rows = np.load(path, mmap_mode="r")
            start = np.searchsorted(rows[:, 0], low)
            stop = np.searchsorted(rows[:, 0], high, side="right")
            chosen.append(np.array(rows[start:stop]))
        found.append(_common(np.concatenate(chosen), limit))
    return np.sort(np.concatenate(found))


def _common(rows: Any, limit: int) -> Any:
    import numpy as np

    if not len(rows):
        return np.zeros(0, np.uint64)
    distinct, counts = np.unique(rows, axis=0, return_counts=True)
    lines, first = np.unique(distinct[:, 0], return_index=True)
    texts = np.add.reduceat(counts, first)
    squares = np.add.reduceat(counts.astype(np.float64) ** 2, first)
    # 1 / (chance that two of the texts are of one task): one large task counts as one.
    tasks = texts.astype(np.float64) ** 2 / squares
    return lines[(texts > limit) & (tasks >= TASKS)]


def stripped(texts: Texts, boilerplate: Any) -> tuple[Texts, Any]:
    """(texts without boilerplate, which of them changed); nothing is copied if there is none."""
    import numpy as np

    from browseruse_bench.factory.corpus import line_kernels

    n = len(texts.offsets) - 1
    if not len(boilerplate):
        return texts, np.zeros(n, bool)
    data, offsets, changed = line_kernels.without(*texts, boilerplate)
    return Texts(data, offsets), changed
