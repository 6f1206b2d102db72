"""Texts of public benchmarks, and how much of one a task holds.

A benchmark text counts as held where its canonical form is equal, where a share of its unique
word grams is found (it may be pasted into a longer text), or where the sketches agree (a copy
with small edits). A gram is 8 words long; 5 where the text has fewer than 16 words; the whole
text where it has 5 to 7. Grams that five benchmark texts or more have in common, and grams that
are frequent in the corpus outside of copies, do not count.
"""

# What arrays and tables hold is said in the docstrings: pyarrow ships no types, and those of numpy
# and polars say nothing of columns.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from browseruse_bench.errors import ConfigError
from browseruse_bench.factory.corpus.books import placed
from browseruse_bench.factory.corpus.texts import Texts, of_strings

if TYPE_CHECKING:
    from numpy.typing import NDArray

_TEXTS = (
    "task",
    "confirmed_task",
    "ques",
    "query",
    "question",
    "instruction",
    "intent",
    "goal",
    "prompt",
    "text",
    "problem",
)
_IDS = ("task_id", "id", "_id", "uuid", "instance_id", "index")
_SUFFIXES = {".json", ".jsonl", ".parquet", ".csv"}
_SHARED_BY = 5
_LEAST_WORDS = 5
NEAR = 0.8
"""Jaccard similarity from which on a task is an edited copy."""
SHORTEST_SKETCH = 24
"""Bytes of a canonical form below which a sketch says too little: equal texts only."""
FREQUENT = 25
"""Distinct texts of each 100,000, and in all, in which a gram may be and still count."""


@dataclass(frozen=True)
class Reference:
    """A text of a benchmark."""

    benchmark: str
    id: str
    text: str


def read_references(root: Path, names: Sequence[str]) -> list[Reference]:
    """The texts of all named folders and files, distinct, sorted.

    Raises:
        ConfigError: one is not there or holds no text that is known as a task; all are named.
    """
    found: dict[str, Reference] = {}
    problems: list[str] = []
    for name in names:
        path = (root / name).resolve()
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        files = [file for file in files if file.suffix.lower() in _SUFFIXES and file.is_file()]
        n = 0
        for file in files:
            for reference in _references(path.stem, file):
                n += 1
                found.setdefault(reference.text, reference)
        if not n:
            problems.append(
                f"[corpus] benchmarks: {path}: no JSON, JSON-lines, CSV or Parquet file with a "
                f"field {', '.join(_TEXTS)}"
            )
    if problems:
        raise ConfigError("\n".join(problems))
    return sorted(found.values(), key=lambda r: (r.benchmark, r.id, r.text))


def _references(benchmark: str, file: Path) -> Iterator[Reference]:
    for place, row in enumerate(_rows(file)):
        lower = {str(key).lower(): value for key, value in row.items()}
        text = next((lower[key] for key in _TEXTS if isinstance(lower.get(key), str)), None)
        if text and text.strip():
            name = next((lower[key] for key in _IDS if lower.get(key) is not None), None)
            yield Reference(benchmark, str(name or f"{file.name}#{place}"), text)


def _rows(file: Path) -> Iterator[dict[str, Any]]:
    try:
        if file.suffix.lower() == ".parquet":
            import polars as pl

            yield from pl.read_parquet(file).iter_rows(named=True)
            return
        text = file.read_text(encoding="utf-8-sig")
        if file.suffix.lower() == ".csv":
            import csv

            yield from csv.DictReader(text.splitlines(keepends=True))
            return
        values = (
            [json.loads(text)]
            if file.suffix.lower() == ".json"
            else [json.loads(line) for line in text.splitlines() if line.strip()]
        )
    except (ValueError, OSError) as error:
        raise ConfigError(f"[corpus] benchmarks: {file}: cannot be read: {error}") from error
    for value in values:
        yield from _dicts(value)


def _dicts(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, list):
        for item in value:  # pyright: ignore[reportUnknownVariableType]  JSON of others
            yield from _dicts(item)
    elif isinstance(value, dict):
        known: dict[str, Any] = value
        if any(isinstance(known.get(key), str) for key in _TEXTS):
            yield known
        else:
            for item in known.values():
                if isinstance(item, list | dict):
                    yield from _dicts(item)


@dataclass(frozen=True)
class Index:
    """References as the kernels take them."""

    references: tuple[Reference, ...]
    sizes: NDArray[Any]
    table: NDArray[Any]
    owner: NDArray[Any]
    grams: NDArray[Any]
    """Grams of each text that are not shared by many."""
    keys: NDArray[Any]
    """Sorted content hashes, and whose they are."""
    key_owner: NDArray[Any]
    sketches: NDArray[Any]
    band_tables: NDArray[Any]
    band_owners: NDArray[Any]

    def totals(self, frequent: NDArray[Any]) -> NDArray[Any]:
        """Grams of each text by which its share is counted.

        A text that owns less than half of its grams, for others have them too, is counted by
        half of them, so that its few own ones do not stand for it.
        """
        import numpy as np

        counts = (self.owner >= 0) & ~frequent
        own = np.bincount(self.owner[counts], minlength=len(self.references))
        return np.maximum(np.maximum(own, (self.grams + 1) // 2), 1).astype(np.int32)

    def save(self, path: Path) -> None:
        """Put it in place as one file."""
        import numpy as np

        names = json.dumps([[r.benchmark, r.id, r.text] for r in self.references])
        arrays = {
            name: getattr(self, name) for name in self.__dataclass_fields__ if name != "references"
        }
        with placed(path) as temporary, temporary.open("wb") as file:
            np.savez(file, names=np.frombuffer(names.encode(), np.uint8), **arrays)

    @classmethod
    def load(cls, path: Path) -> Index:
        """As it was saved."""
        import numpy as np

        with np.load(path) as content:
            arrays = {name: content[name] for name in content.files}
        names = json.loads(arrays.pop("names").tobytes())
        return cls(references=tuple(Reference(*name) for name in names), **arrays)


def build(references: Sequence[Reference], *, mask: bool) -> Index:
    """The index of some references; none at all is an index too."""
    import numpy as np

    from browseruse_bench.factory.corpus import kernels

    texts = of_strings([reference.text for reference in references])
    n = len(references)
    words = kernels.word_grams(*texts, np.zeros(n, np.int32))[2]
    sizes = np.where(words >= 16, 8, np.where(words >= 8, 5, words)).astype(np.int32)
    sizes[words < _LEAST_WORDS] = 0
    owners, grams, _ = kernels.word_grams(*texts, sizes)
    table, owner, n_grams = _gram_table(owners, grams, n)
    hashes, lengths = kernels.keys(*texts, mask)
    order = np.argsort(hashes[0], kind="stable")
    sketches = kernels.sketches(*texts, mask)
    near = np.flatnonzero(lengths[1] >= SHORTEST_SKETCH)
    tables, band_owners = _band_tables(sketches, near)
    return Index(
        references=tuple(references),
        sizes=np.unique(sizes[sizes > 0]).astype(np.int64),
        table=table,
        owner=owner,
        grams=n_grams,
        keys=hashes[0][order],
        key_owner=order.astype(np.int32),
        sketches=sketches,
        band_tables=tables,
        band_owners=band_owners,
    )


def _gram_table(owners: Any, grams: Any, n: int) -> tuple[Any, Any, Any]:
    import numpy as np

    pairs = np.unique(np.stack([grams, owners.astype(np.uint64)], axis=1), axis=0)
    distinct, first, shared = np.unique(pairs[:, 0], return_index=True, return_counts=True)
    few = shared < _SHARED_BY
    counted = np.isin(pairs[:, 0], distinct[few])
    n_grams = np.bincount(pairs[counted, 1].astype(np.int64), minlength=n).astype(np.int32)
    size = 1 << max(4, int(4 * max(1, few.sum())).bit_length())
    table, owner = np.zeros(size, np.uint64), np.full(size, -1, np.int32)
    for gram, place in zip(distinct[few].tolist(), first[few].tolist(), strict=True):
        slot = gram & (size - 1)
        while table[slot]:
            slot = (slot + 1) & (size - 1)
        table[slot] = gram
        owner[slot] = pairs[place, 1]
    return table, owner, n_grams


def _band_tables(sketches: Any, chosen: Any) -> tuple[Any, Any]:
    import numpy as np

    from browseruse_bench.factory.corpus import kernels

    tables = np.empty((kernels.BANDS, len(chosen)), np.uint64)
    owners = np.empty((kernels.BANDS, len(chosen)), np.int32)
    for band in range(kernels.BANDS):
        values = kernels.band_keys(np.ascontiguousarray(sketches[chosen]), band)
        order = np.argsort(values, kind="stable")
        tables[band], owners[band] = values[order], chosen[order]
    return tables, owners


def need(similarity: float) -> int:
    """Bins of a sketch that must agree for an estimated Jaccard similarity.

    One byte a bin: of the bins that do not agree, one in 256 seems to.
    """
    import math

    from browseruse_bench.factory.corpus import kernels

    return math.ceil(kernels.SKETCH * (similarity + (1 - similarity) / 256) - 1e-9)


def count_grams(index: Index, texts: Texts, *, threshold: float) -> tuple[Any, Any]:
    """(for each slot of the table, the texts with its gram that are no copies; for each text,
    whether it has any gram of the table).
    """
    import numpy as np

    from browseruse_bench.factory.corpus import kernels

    n = len(texts.offsets) - 1
    seen = np.zeros(len(index.table), np.int64)
    none = np.zeros(len(index.table), bool)
    if not len(index.sizes):
        return seen, np.zeros(n, bool)
    _, _, met = kernels.overlaps(
        *texts,
        np.ones(n, bool),
        index.sizes,
        index.table,
        index.owner,
        index.totals(none),
        none,
        seen,
        np.float32(threshold),
    )
    return seen, met


def held(
    index: Index,
    texts: Texts,
    keys: Any,
    sketches: Any,
    *,
    met: Any,
    frequent: Any,
    threshold: float,
) -> list[tuple[int, dict[str, Any]]]:
    """(index of a text, evidence) for each text that holds one of a benchmark.

    Args:
        index: the references.
        texts: texts of the corpus.
        keys: their content hashes.
        sketches: of them.
        met: whether each has any gram of the table, as `count_grams` says.
        frequent: for each slot of the table, that its gram does not count.
        threshold: share of grams from which on a text is held.
    """
    import numpy as np

    from browseruse_bench.factory.corpus import kernels

    if not index.references:
        return []
    nothing = np.zeros(0, np.int64)
    share, which = np.zeros(len(keys), np.float32), np.full(len(keys), -1, np.int32)
    if len(index.sizes):
        share, which, _ = kernels.overlaps(
            *texts,
            met,
            index.sizes,
            index.table,
            index.owner,
            index.totals(frequent),
            frequent,
            nothing,
            np.float32(threshold),
        )
    near, agreement = kernels.nearest(
        sketches, index.band_tables, index.band_owners, index.sketches, need(NEAR)
    )
    place = np.searchsorted(index.keys, keys).clip(max=len(index.keys) - 1)
    equal = index.keys[place] == keys
    # A share is counted in single precision: .6 must be reached by three of five.
    grams = (which >= 0) & (share >= np.float32(threshold) - np.float32(1e-6))
    found: list[tuple[int, dict[str, Any]]] = []
    for i in np.flatnonzero(equal | grams | (near >= 0)):
        if equal[i]:
            how, owner, value = "equal", index.key_owner[place[i]], 1.0
        elif grams[i]:
            how, owner, value = "word grams", which[i], float(share[i])
        else:
            how, owner, value = "edited copy", near[i], float(agreement[i]) / kernels.SKETCH
        reference = index.references[int(owner)]
        evidence = {
            "benchmark": reference.benchmark,
            "id": reference.id,
            "how": how,
            "share": round(value, 3),
        }
        found.append((int(i), evidence))
    return found
