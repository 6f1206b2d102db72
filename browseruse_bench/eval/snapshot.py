"""A query over the snapshot of a site's database: read-only, one SELECT, bounded."""

from __future__ import annotations

import json
import re
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

from browseruse_bench.errors import GraderError

TIME_LIMIT_S = 2.0
"""CPU seconds of one query."""
MAX_BYTES = 16_000_000
"""The longest text or blob that a query may read or make."""


class TooLargeError(Exception):
    """The snapshot holds a value that no rubric can expect; the agent may have put it there."""


Cell = str | int | float | bytes | None
Row = tuple[Cell, ...]

_ALLOWED = {
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
}
_BANNED_FUNCTIONS = {"load_extension", "writefile", "readfile", "edit", "fts3_tokenizer"}


def query(path: Path, sql: str, *, max_rows: int, time_limit_s: float = TIME_LIMIT_S) -> list[Row]:
    """The rows of one SELECT over a SQLite file, which is left as it is.

    Args:
        path: the file.
        sql: one SELECT (or WITH ... SELECT).
        max_rows: how many rows are read; more are left unread.
        time_limit_s: CPU seconds of the query.

    Raises:
        GraderError: not one SELECT, not allowed, wrong for this schema, longer than the
            time limit.
        TooLargeError: a value is beyond the size limit.
    """
    if not re.match(r"\s*(?:select|with)\b", sql, re.IGNORECASE):
        raise GraderError("only a SELECT is allowed")
    # immutable: no journal or lock file appears beside the frozen evidence.
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
    try:
        return _rows(connection, sql, max_rows, time_limit_s)
    except (sqlite3.Error, sqlite3.Warning) as error:
        raise GraderError(f"{type(error).__name__}: {error}") from error
    finally:
        connection.close()


MAX_DUMPED_ROWS = 400
"""Of each table: the first and the last half of them, where it has more."""


def dump(path: Path) -> Iterator[str]:
    """Each table of a snapshot as text that can be quoted: its definition, and its rows as JSON
    lists. A table that cannot be read says why.

    Raises:
        GraderError: it is no database.
    """
    found = "select name, sql from sqlite_master where type = 'table' order by name"
    for name, sql in query(path, found, max_rows=200):
        lines = [f"table {name}: {' '.join(str(sql).split())}"]
        try:
            lines += _dumped(path, '"' + str(name).replace('"', '""') + '"')
        except (GraderError, TooLargeError) as error:
            lines.append(f"(not readable: {error})")
        yield "\n".join(lines)


def _dumped(path: Path, table: str) -> list[str]:
    [(total,)] = query(path, f"select count(*) from {table}", max_rows=1)
    n_rows = int(total or 0)
    half = MAX_DUMPED_ROWS // 2
    select = f"select * from {table} limit {half}"
    rows = query(path, select if n_rows > MAX_DUMPED_ROWS else f"select * from {table}",
                 max_rows=MAX_DUMPED_ROWS)  # fmt: skip
    lines = [_json(row) for row in rows]
    if n_rows > MAX_DUMPED_ROWS:
        last = query(path, f"{select} offset {n_rows - half}", max_rows=half)
        lines += [f"({n_rows - 2 * half} more rows)", *(_json(row) for row in last)]
    return lines


def _json(row: Row) -> str:
    cells = [f"<{len(cell)} bytes>" if isinstance(cell, bytes) else cell for cell in row]
    return json.dumps(cells, ensure_ascii=False)


def _rows(
    connection: sqlite3.Connection, sql: str, max_rows: int, time_limit_s: float
) -> list[Row]:
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_BYTES)
    connection.text_factory = _text
    connection.set_authorizer(_authorize)
    end = time.thread_time() + time_limit_s
    late = False

    def check() -> int:
        nonlocal late
        late = time.thread_time() > end
        return 1 if late else 0

    connection.set_progress_handler(check, 10_000)
    try:
        return connection.execute(sql).fetchmany(max_rows)
    except sqlite3.DataError as error:
        raise TooLargeError(f"a value of more than {MAX_BYTES} bytes") from error
    except sqlite3.OperationalError as error:
        if late:
            raise GraderError(f"the query took more than {time_limit_s:g} s") from error
        raise


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _authorize(
    action: int, one: str | None, two: str | None, database: str | None, source: str | None
) -> int:
    del one, database, source
    if action == sqlite3.SQLITE_FUNCTION and (two or "").lower() in _BANNED_FUNCTIONS:
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK if action in _ALLOWED else sqlite3.SQLITE_DENY
