"""What a person looks at: sampled drops, clusters with sampled members, and one unit's story."""

# What arrays and tables hold is said in the docstrings: pyarrow ships no types, and those of numpy
# and polars say nothing of columns.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from browseruse_bench.factory.corpus.results import iso, tasks
from browseruse_bench.report.render import Table, markdown_table

SAMPLED_DROPS = 10
"""Of each reason."""
CLUSTERS = 5
"""Of each kind that are shown."""
SAMPLED_MEMBERS = 20
_LEAST_MEMBERS = 3
_SHOWN = 300


def sections(drops: Sequence[Path], partitions: int) -> str:
    """Markdown below a stage's own figures."""
    parts = [_dropped(drops)]
    largest, loosest = _chosen_clusters(drops, partitions)
    parts += _clusters(drops, partitions, "Largest clusters", largest)
    parts += _clusters(drops, partitions, "Loosest clusters", loosest)
    parts.append(_masked(drops))
    return "\n".join(part for part in parts if part)


def _dropped(drops: Sequence[Path]) -> str:
    import polars as pl

    found: list[Any] = []
    for drop in drops:
        for path in sorted((drop / "dropped").glob("*.parquet")):
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


def _chosen_clusters(drops: Sequence[Path], partitions: int) -> tuple[Any, Any]:
    """The largest clusters by count, and those whose members are least like their leader."""
    import polars as pl

    large: list[Any] = []
    loose: list[Any] = []
    for partition in range(partitions):
        frame = tasks(drops, partition).with_columns(
            (pl.col("similarity") / pl.col("distinct")).alias("tightness")
        )
        large.append(frame.sort("count", "key", descending=[True, False]).head(CLUSTERS))
        several = frame.filter(pl.col("distinct") >= _LEAST_MEMBERS)
        loose.append(several.sort("tightness", "key").head(CLUSTERS))
    return (
        pl.concat(large).sort("count", "key", descending=[True, False]).head(CLUSTERS),
        pl.concat(loose).sort("tightness", "key").head(CLUSTERS),
    )


def _clusters(drops: Sequence[Path], partitions: int, title: str, chosen: Any) -> list[str]:
    if not len(chosen):
        return []
    members = _members(drops, partitions, chosen["key"].to_list())
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


def _members(drops: Sequence[Path], partitions: int, leaders: Sequence[int]) -> dict[int, Any]:
    """Twenty followers of each leader; the content hash, which says nothing of a text, draws."""
    import polars as pl

    found: dict[int, list[dict[str, Any]]] = {leader: [] for leader in leaders}
    for partition in range(partitions):
        for drop in drops:
            rows = (
                pl.scan_parquet(drop / "members" / f"{partition:05}.parquet")
                .filter(pl.col("leader").is_in(list(leaders)) & (pl.col("key") != pl.col("leader")))
                .select("key", "leader", "similarity", "count", "text")
                .sort("key")
                .group_by("leader", maintain_order=True)
                .head(SAMPLED_MEMBERS)
                .collect()
            )
            for row in rows.iter_rows(named=True):
                if len(found[row["leader"]]) < SAMPLED_MEMBERS:
                    found[row["leader"]].append(row)
    return found


def _masked(drops: Sequence[Path]) -> str:
    """Samples of what masking numbers made one."""
    import polars as pl

    rows: list[tuple[str, ...]] = []
    for drop in drops:
        for path in sorted((drop / "members").glob("*.parquet")):
            if len(rows) >= SAMPLED_MEMBERS:
                break
            frame = (
                pl.scan_parquet(path)
                .filter(pl.col("variants") > 1)
                .select("key", "variants", "text", "variant")
                .sort("key")
                .head(SAMPLED_MEMBERS - len(rows))
                .collect()
            )
            rows += [
                (str(row["variants"]), _short(row["text"]), _short(row["variant"]))
                for row in frame.iter_rows(named=True)
            ]
    if not rows:
        return ""
    table = Table(
        title="Made one by masked numbers",
        headers=("variants", "one", "another"),
        rows=tuple(rows),
        right=frozenset({0}),
    )
    return f"## {table.title}\n\n{markdown_table(table)}"


def _short(text: str | None) -> str:
    return " ".join((text or "").split())[:_SHOWN]


def find(drops: Sequence[Path], key: str) -> Mapping[str, Any] | None:
    """What is known of a unit whose key begins so; None: no drop knows it."""
    import polars as pl

    if not drops:
        return None
    begins = pl.col("unit").str.starts_with(key)
    for drop in drops:
        for path in sorted((drop / "keep").glob("[0-9]*.parquet")):
            if path.name.endswith(".grown.parquet"):
                continue
            hit = pl.scan_parquet(path).filter(begins).select("key").head(1).collect()
            if len(hit):
                frame = tasks(drops, int(path.stem)).filter(pl.col("key") == hit["key"][0])
                return _story(frame.row(0, named=True), status="kept")
        for path in sorted((drop / "dropped").glob("*.parquet")):
            hit = pl.scan_parquet(path).filter(begins).head(1).collect()
            if len(hit):
                return _story(hit.row(0, named=True), status="dropped")
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
