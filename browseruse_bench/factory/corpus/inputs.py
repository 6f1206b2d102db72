"""Files of submissions: which are new, and their rows as batches of known columns.

Parquet is read by row groups, JSON lines by ranges of bytes, so that one large file is many
pieces of work. Files are read in place and never written.
"""

# What arrays and tables hold is said in the docstrings: pyarrow ships no types, and those of numpy
# and polars say nothing of columns.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from browseruse_bench.errors import ConfigError, DataError
from browseruse_bench.records.base import Record
from browseruse_bench.store.files import sha256_file

SUFFIXES = {".parquet", ".jsonl", ".ndjson"}
BATCH_ROWS = 65_536
_BLOCK_BYTES = 16 << 20
MEANINGS = ("text", "tag", "time", "source", "count")
_NEEDED = ("text", "tag")


class InputFile(Record):
    """A file as it was when it came in."""

    path: str
    """Absolute."""
    size: int
    mtime_ns: int
    sha256: str
    places: tuple[tuple[int, int], ...] | None = None
    """Bytes that are read: lines that were broken when it came in before; None: all."""
    mends: int = 0
    """Lines that failed before and do not any more, or fail again in this drop."""


class Broken(Record):
    """Lines of one file that could not be read."""

    path: str
    lines: tuple[int, ...]
    """Their numbers, from 1; the first of them, where there are very many."""
    n: int
    rest: str
    """SHA-256 of the file without them."""


@dataclass(frozen=True)
class Piece:
    """What one job reads of one file."""

    path: Path
    size: int
    mtime_ns: int
    start: int
    """First row group or byte."""
    stop: int


def found_files(root: Path, paths: Sequence[str]) -> list[Path]:
    """All files that a workspace names, folders looked through, sorted.

    Raises:
        ConfigError: a path does not exist, or is a file of another kind; all are named.
    """
    files: set[Path] = set()
    problems: list[str] = []
    for name in paths:
        path = (root / name).resolve()
        if path.is_dir():
            files |= {
                file
                for file in path.rglob("*")
                if file.suffix.lower() in SUFFIXES and file.is_file() and file.name[0] not in "._"
            }
        elif not path.exists():
            problems.append(f"[corpus] paths: {path}: there is no such file or folder")
        elif path.suffix.lower() not in SUFFIXES:
            problems.append(f"[corpus] paths: {path}: neither Parquet (.parquet) nor JSON lines")
        else:
            files.add(path)
    if problems:
        raise ConfigError("\n".join(problems))
    return sorted(files)


def new_files(
    files: Sequence[Path],
    known: Mapping[str, InputFile],
    mended: Callable[[Path], InputFile | None] = lambda path: None,
) -> list[InputFile]:
    """Those that did not come in before.

    Args:
        files: all that are there.
        known: those that came in.
        mended: what is to be read of a file that changed; None: it may not change.

    Raises:
        DataError: a file that came in before has changed since, or is the same bytes as another.
    """
    by_content = {file.sha256: path for path, file in known.items()}
    found: list[InputFile] = []
    for path in files:
        stat = path.stat()
        before = known.get(str(path))
        if before is not None:
            if (before.size, before.mtime_ns) == (stat.st_size, stat.st_mtime_ns):
                continue
            if before.sha256 != sha256_file(path):
                again = mended(path)
                if again is not None:
                    found.append(again)
                    continue
                raise DataError(
                    f"{path}: changed after it was read; put it back, and add what is new as "
                    "another file"
                )
            continue
        digest = sha256_file(path)
        if digest in by_content:
            raise DataError(
                f"{path}: the same bytes as {by_content[digest]}: its submissions would count "
                "twice; remove one"
            )
        by_content[digest] = str(path)
        found.append(
            InputFile(path=str(path), size=stat.st_size, mtime_ns=stat.st_mtime_ns, sha256=digest)
        )
    return found


def pieces(files: Sequence[InputFile], *, rows: int) -> list[Piece]:
    """The files cut into pieces of about `rows` rows."""
    import pyarrow.parquet as pq

    found: list[Piece] = []
    for file in files:
        path = Path(file.path)
        if file.places is not None:
            found += [Piece(path, file.size, file.mtime_ns, *place) for place in file.places]
            continue
        if path.suffix.lower() != ".parquet":
            step = rows * 400
            bounds = [*range(0, file.size, step), file.size]
        else:
            try:
                meta = pq.ParquetFile(path).metadata
            except (OSError, ValueError) as error:
                raise DataError(f"{path}: cannot be read as Parquet: {error}") from error
            bounds, taken = [0], 0
            for group in range(meta.num_row_groups):
                taken += meta.row_group(group).num_rows
                if taken >= rows:
                    bounds.append(group + 1)
                    taken = 0
            if bounds[-1] != meta.num_row_groups:
                bounds.append(meta.num_row_groups)
        found += [
            Piece(path, file.size, file.mtime_ns, start, stop)
            for start, stop in zip(bounds, bounds[1:], strict=False)
        ]
    return found


@dataclass(frozen=True)
class Batch:
    """Rows of a file."""

    frame: Any
    """polars: text, tag, time, source (strings), count (int64)."""
    broken: tuple[int, ...] = ()
    """Bytes of the file at which lines begin that could not be parsed: nothing of them is kept."""

    @property
    def unreadable(self) -> int:
        """How many these are."""
        return len(self.broken)


def batches(piece: Piece, columns: Mapping[str, str]) -> Iterator[Batch]:
    """The rows of a piece.

    Raises:
        ConfigError: a mapped column is not in the file.
        DataError: the file changed since it came in.
    """
    stat = piece.path.stat()
    if (stat.st_size, stat.st_mtime_ns) != (piece.size, piece.mtime_ns):
        raise DataError(f"{piece.path}: changed while it was read; put it back as it was")
    if piece.path.suffix.lower() == ".parquet":
        yield from _parquet(piece, columns)
    else:
        yield from _lines(piece, columns)


def _parquet(piece: Piece, columns: Mapping[str, str]) -> Iterator[Batch]:
    import polars as pl
    import pyarrow.parquet as pq

    file = pq.ParquetFile(piece.path)
    names = set(file.schema_arrow.names)
    there = {meaning: name for meaning, name in columns.items() if name in names}
    missing = [meaning for meaning in _NEEDED if meaning not in there]
    if missing:
        raise ConfigError(
            f"{piece.path}: no column {', '.join(columns.get(m, m) for m in missing)}; it has "
            f"{', '.join(sorted(names))} (workspace.toml: [corpus] columns)"
        )
    for batch in file.iter_batches(
        BATCH_ROWS,
        row_groups=list(range(piece.start, piece.stop)),
        columns=sorted(set(there.values())),
        use_threads=False,
    ):
        frame: Any = pl.from_arrow(batch)
        yield Batch(_known(frame.select(**{m: pl.col(name) for m, name in there.items()})))


def _known(frame: Any) -> Any:
    """The five columns with their types; times as microseconds since 1970 in UTC."""
    import polars as pl

    made: list[Any] = []
    for meaning in ("text", "tag", "source"):
        column = pl.col(meaning) if meaning in frame.columns else pl.lit(None)
        made.append(column.cast(pl.String).alias(meaning))
    if "count" in frame.columns:
        count = pl.col("count").cast(pl.Int64, strict=False)
        made.append(pl.when(count >= 1).then(count).otherwise(1).alias("count"))
    else:
        made.append(pl.lit(1, pl.Int64).alias("count"))
    made.append(_microseconds(frame).alias("time"))
    return frame.select(made)


def _microseconds(frame: Any) -> Any:
    import polars as pl

    if "time" not in frame.columns:
        return pl.lit(None, pl.Int64)
    kind = frame.schema["time"]
    column = pl.col("time")
    if kind.is_numeric():
        # Seconds until the year 5138, milliseconds from 1973 on.
        number = column.cast(pl.Float64)
        scaled = pl.when(number < 1e11).then(number * 1e6).otherwise(number * 1e3)
        return scaled.cast(pl.Int64, strict=False)
    if kind == pl.String:
        column = _parsed_times(column)
    return column.cast(pl.Datetime("us")).cast(pl.Int64)


def _parsed_times(column: Any) -> Any:
    """ISO 8601 with or without zone, seconds and time of day; what has no zone is UTC; null where
    it is none of these.
    """
    import polars as pl

    plain = column.str.strip_chars().str.replace("[Zz]$", "+00:00").str.replace("[Tt]", " ")
    zoned = plain.str.to_datetime("%Y-%m-%d %H:%M:%S%.f%z", time_unit="us", strict=False)
    naive = [
        plain.str.to_datetime(form, time_unit="us", strict=False).dt.replace_time_zone("UTC")
        for form in ("%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%d %H:%M")
    ]
    day = plain.str.to_date("%Y-%m-%d", strict=False).cast(pl.Datetime("us"))
    return pl.coalesce(zoned, *naive, day.dt.replace_time_zone("UTC"))


def _lines(piece: Piece, columns: Mapping[str, str]) -> Iterator[Batch]:
    with piece.path.open("rb") as file:
        position = piece.start
        if position:
            file.seek(position - 1)
            # The line that a piece begins in belongs to the piece before.
            position += len(file.readline()) - 1
        while position < piece.stop:
            # Not `readlines`: it goes on where the lines are as long as its hint, into the line
            # with which the next piece begins.
            lines: list[bytes] = []
            size, limit = 0, min(_BLOCK_BYTES, piece.stop - position)
            for line in file:
                lines.append(line)
                size += len(line)
                if size >= limit:
                    break
            if not lines:
                return
            yield _parsed(lines, columns, position)
            position += sum(map(len, lines))


def _parsed(lines: Sequence[bytes], columns: Mapping[str, str], position: int) -> Batch:
    import polars as pl

    rows: list[dict[str, Any]] = []
    broken: list[int] = []
    for line in lines:
        start, position = position, position + len(line)
        if not line.strip():
            continue
        row = _row(line, columns)
        if row is None:
            broken.append(start)
        else:
            rows.append(row)
    schema = {"text": pl.String, "tag": pl.String, "source": pl.String, "count": pl.Int64}
    numeric = any(isinstance(row["time"], int | float) for row in rows)
    kind = pl.Float64 if numeric else pl.String
    if numeric:
        rows = [
            row if isinstance(row["time"], int | float) else {**row, "time": None} for row in rows
        ]
    frame = pl.DataFrame(rows, schema={**schema, "time": kind})
    return Batch(_known(frame), tuple(broken))


def _row(line: bytes, columns: Mapping[str, str]) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
        found = {meaning: value.get(columns.get(meaning, "")) for meaning in MEANINGS}
        json.dumps(found, ensure_ascii=False).encode()
    except (ValueError, AttributeError, RecursionError):
        return None
    if not isinstance(found["text"], str | None) or not isinstance(found["tag"], str | None):
        return None
    source, count, time = found["source"], found["count"], found["time"]
    found["source"] = None if source is None else str(source)
    found["count"] = count if isinstance(count, int) and 1 <= count < 2**62 else 1
    found["time"] = time if isinstance(time, int | float | str) else None
    return found
