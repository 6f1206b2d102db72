"""What a person looks at: sampled drops, and clusters with sampled members."""

# What arrays and tables hold is said in the docstrings: pyarrow ships no types, and those of numpy
# and polars say nothing of columns.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from browseruse_bench.factory.corpus.results import iso, tasks
from browseruse_bench.factory.corpus.shelves import Shelf, finest
from browseruse_bench.report.render import Table, markdown_table

SAMPLED_DROPS = 10
"""Of each reason."""
CLUSTERS = 5
"""Of each kind that are shown."""
SAMPLED_MEMBERS = 20
_LEAST_MEMBERS = 3
_SHOWN = 300


def sections(shelves: Sequence[Shelf]) -> str:
    """Markdown below a stage's own figures."""
    parts = [_dropped(shelves)]
    largest, loosest = _chosen_clusters(shelves)
    parts += _clusters(shelves, "Largest clusters", largest)
    parts += _clusters(shelves, "Loosest clusters", loosest)
    parts.append(_masked(shelves))
    return "\n".join(part for part in parts if part)


def _dropped(shelves: Sequence[Shelf]) -> str:
    import polars as pl

    found: list[Any] = []
    for shelf in shelves:
        for path in sorted((shelf.path / "dropped").glob("*.parquet")):
            frame = pl.read_parquet(path, columns=["unit", "reason", "evidence", "text"])
            once = frame.unique(["unit", "reason"], keep="first", maintain_order=True).sort("unit")
            found.append(once.group_by("reason").head(SAMPLED_DROPS))
    if not found:
        return ""
    frame = (
        pl.concat(found, how="diagonal")
        .unique(["unit", "reason"], keep="first", maintain_order=True)
        .sort("reason", "unit")
    )
    sampled = frame.group_by("reason", maintain_order=True).head(SAMPLED_DROPS)
    table = Table(
        title="Sampled drops",
        headers=("unit", "reason", "evidence", "text"),
        rows=tuple(
            (row["unit"][:12], row["reason"], row["evidence"][:_SHOWN], _short(row["text"]))
            for row in sampled.iter_rows(named=True)
        ),
    )
    return f"## {table.title}\n\n{markdown_table(table)}" if table.rows else ""


def _chosen_clusters(shelves: Sequence[Shelf]) -> tuple[Any, Any]:
    """The largest clusters by count, and those whose members are least like their leader."""
    import polars as pl

    large: list[Any] = []
    loose: list[Any] = []
    partitions = finest(shelves)
    for partition in range(partitions):
        frame = tasks(shelves, partition, partitions).with_columns(
            (pl.col("similarity") / pl.col("distinct")).alias("tightness")
        )
        large.append(frame.sort("count", "key", descending=[True, False]).head(CLUSTERS))
        several = frame.filter(pl.col("distinct") >= _LEAST_MEMBERS)
        loose.append(several.sort("tightness", "key").head(CLUSTERS))
    return (
        pl.concat(large).sort("count", "key", descending=[True, False]).head(CLUSTERS),
        pl.concat(loose).sort("tightness", "key").head(CLUSTERS),
    )


def _clusters(shelves: Sequence[Shelf], title: str, chosen: Any) -> list[str]:
    if not len(chosen):
        return []
    members = _members(shelves, chosen["key"].to_list())
    parts = [f"## {title}\n"]
    for row in chosen.iter_rows(named=True):
        own = members[row["key"]]
        span = f"{iso(row['first']) or 'unknown'} to {iso(row['last']) or 'unknown'}"
        parts.append(
            f"### {row['unit'][:12]}: {row['count']} submissions, {row['distinct']} distinct "
            f"texts, {span}, mean similarity {row['tightness']:.2f}\n"
        )
        table = Table(
            title="",
            headers=("similarity", "submissions", "text"),
            rows=(
                ("leader", "", _short(row["text"])),
                *((f"{m['similarity']:.2f}", str(m["count"]), _short(m["text"])) for m in own),
            ),
            right=frozenset({0, 1}),
        )
        parts.append(markdown_table(table))
    return parts


def _members(shelves: Sequence[Shelf], leaders: Sequence[int]) -> dict[int, Any]:
    """Twenty followers of each leader; the content hash, which says nothing of a text, draws."""
    import polars as pl

    followers = pl.col("leader").is_in(list(leaders)) & (pl.col("key") != pl.col("leader"))
    files = [file for shelf in shelves for file in shelf.files("members")]
    drawn = [
        pl.scan_parquet(file)
        .filter(followers)
        .select("key", "leader", "similarity", "count", "text")
        .sort("key")
        .group_by("leader", maintain_order=True)
        .head(SAMPLED_MEMBERS)
        .collect()
        for file in files
    ]
    found: dict[int, list[dict[str, Any]]] = {leader: [] for leader in leaders}
    for row in pl.concat(drawn).sort("key", maintain_order=True).iter_rows(named=True):
        if len(found[row["leader"]]) < SAMPLED_MEMBERS:
            found[row["leader"]].append(row)
    return found


def _masked(shelves: Sequence[Shelf]) -> str:
    """Samples of what masking numbers made one."""
    import polars as pl

    rows: list[tuple[str, ...]] = []
    for shelf in shelves:
        files = zip(
            shelf.files("members"), shelf.files("members", ".variants.parquet"), strict=True
        )
        for own, other in files:
            if len(rows) >= SAMPLED_MEMBERS:
                break
            drawn = (
                pl.scan_parquet(other)
                .filter("numbers")
                .group_by("key")
                .agg(pl.len().alias("n"), pl.col("text").sort_by("id").first().alias("other"))
                .sort("key")
                .head(SAMPLED_MEMBERS - len(rows))
                .join(pl.scan_parquet(own).select("key", "text"), on="key", how="left")
                .sort("key")
                .collect()
            )
            rows += [
                (str(row["n"] + 1), _short(row["text"]), _short(row["other"]))
                for row in drawn.iter_rows(named=True)
            ]
    if not rows:
        return ""
    table = Table(
        title="Made one by masked numbers",
        headers=("texts", "one", "another"),
        rows=tuple(rows),
        right=frozenset({0}),
    )
    return (
        f"## {table.title}\n\nAll of them are in `members/*.variants.parquet`; `bubench factory "
        f"show` finds each by its own key.\n\n{markdown_table(table)}"
    )


def _short(text: str | None) -> str:
    return " ".join((text or "").split())[:_SHOWN]
