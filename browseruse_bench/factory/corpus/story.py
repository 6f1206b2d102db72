"""What became of one submission: every text that came in is found by its own key."""

# What tables hold is said in the docstrings: polars says nothing of columns.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import string
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from browseruse_bench.factory.corpus.results import iso, tasks
from browseruse_bench.factory.corpus.shelves import Shelf, finest
from browseruse_bench.records.base import content_key

SHOWN = 20
"""Texts of a task beside its own that are shown."""
_ID_DIGITS = 16


def find(shelves: Sequence[Shelf], key: str) -> Mapping[str, Any] | None:
    """What is known of a submission whose key begins so; None: no drop knows it."""
    key = key.lower()
    if not shelves or not key or set(key) - set(string.hexdigits):
        return None
    for shelf in shelves:
        for looked in (_kept, _dropped, _combined):
            found = looked(shelf, shelves, key)
            if found is not None:
                return found
    return None


def _kept(shelf: Shelf, shelves: Sequence[Shelf], key: str) -> dict[str, Any] | None:
    row = _first(shelf.files("keep"), _begins(key), ("key",))
    if row is None:
        return None
    task = _task(shelves, row["key"])
    shown, n = _texts_of(shelves, task)
    told = _story(task, status="kept")
    if n:
        told |= {"other_texts": n, "shown": shown}
    return told


def _dropped(shelf: Shelf, shelves: Sequence[Shelf], key: str) -> dict[str, Any] | None:
    del shelves
    row = _first(sorted((shelf.path / "dropped").glob("*.parquet")), _begins(key))
    return None if row is None else _story(row, status="dropped")


def _combined(shelf: Shelf, shelves: Sequence[Shelf], key: str) -> dict[str, Any] | None:
    """As a text that follows a leader, or as one that only differs from such in numbers, case or
    marks.
    """
    import polars as pl

    members, variants = shelf.files("members"), shelf.files("members", ".variants.parquet")
    for own, other in zip(members, variants, strict=True):
        for file in (own, other):
            row = next((r for r in _with_id(file, key)), None)
            if row is None:
                continue
            same = pl.col("key") == pl.lit(row["key"], pl.UInt64)
            member = _first([own], same)
            assert member is not None, f"{other}: a variant of a text that is not in {own}"
            return _joined(row, member, _task(shelves, member["leader"]))
    return None


def _joined(
    row: Mapping[str, Any], member: Mapping[str, Any], task: Mapping[str, Any]
) -> dict[str, Any]:
    """What is said of a text that another one stands for.

    `key` is the task's: under it the story goes on.
    """
    told = _story({**row, "unit": task["unit"]}, status="combined")
    return {
        **told,
        "submission": content_key([row["text"]]),
        "similarity": round(member["similarity"], 3),
        "differs_in": _differs(row, near=member["key"] != task["key"]),
        "task": task["text"],
    }


def _differs(row: Mapping[str, Any], *, near: bool) -> str:
    if near:
        return "words"
    return "numbers" if row.get("numbers") else "case, spaces or marks"


def _texts_of(
    shelves: Sequence[Shelf], task: Mapping[str, Any]
) -> tuple[list[dict[str, Any]], int]:
    """(some of the other texts of a task, how many there are)."""
    import polars as pl

    leads = pl.col("leader") == pl.lit(task["key"], pl.UInt64)
    shown: list[dict[str, Any]] = []
    n = 0
    for shelf in shelves:
        files = zip(
            shelf.files("members"), shelf.files("members", ".variants.parquet"), strict=True
        )
        for own, other in files:
            members = pl.scan_parquet(own).filter(leads).collect()
            if not len(members):
                continue
            variants = pl.scan_parquet(other).join(
                members.lazy().select("key", "leader", "similarity"), on="key", how="semi"
            )
            for row in _both(members, variants.collect()):
                if row["text"] == task["text"]:
                    continue
                n += 1
                if len(shown) < SHOWN:
                    near = row["key"] != task["key"]
                    shown.append(
                        {
                            "text": row["text"],
                            "count": row["count"],
                            "differs_in": _differs(row, near=near),
                        }
                    )
    return shown, n


def _both(members: Any, variants: Any) -> Iterator[dict[str, Any]]:
    yield from variants.iter_rows(named=True)
    yield from members.iter_rows(named=True)


def _task(shelves: Sequence[Shelf], key: int) -> dict[str, Any]:
    """The task that a content hash leads."""
    import polars as pl

    partitions = finest(shelves)
    frame = tasks(shelves, key * partitions >> 64, partitions)
    return frame.filter(pl.col("key") == pl.lit(key, pl.UInt64)).row(0, named=True)


def _begins(key: str) -> Any:
    import polars as pl

    return pl.col("unit").str.starts_with(key)


def _with_id(file: Path, key: str) -> list[dict[str, Any]]:
    """The rows of a file whose submission's key begins so."""
    import polars as pl

    digits = key[:_ID_DIGITS]
    low, high = (int(digits.ljust(_ID_DIGITS, fill), 16) for fill in "0f")
    near = pl.col("id").is_between(pl.lit(low, pl.UInt64), pl.lit(high, pl.UInt64))
    rows = pl.scan_parquet(file).filter(near).collect().iter_rows(named=True)
    return [row for row in rows if content_key([row["text"]]).startswith(key)]


def _first(
    files: Sequence[Path], wanted: Any, columns: Sequence[str] = ()
) -> dict[str, Any] | None:
    import polars as pl

    for file in files:
        frame = pl.scan_parquet(file).filter(wanted)
        hit = (frame.select(columns) if columns else frame).head(1).collect()
        if len(hit):
            return hit.row(0, named=True)
    return None


def _story(row: Mapping[str, Any], *, status: str) -> dict[str, Any]:
    names = ("reason", "evidence", "count", "distinct", "text")
    return {
        "key": row["unit"],
        "status": status,
        "first_seen": iso(row["first"]),
        "last_seen": iso(row["last"]),
        **{name: row[name] for name in names if name in row},
    }
