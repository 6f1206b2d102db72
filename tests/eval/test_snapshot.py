"""A query over a snapshot is bounded and leaves the file alone."""

from __future__ import annotations

import sqlite3

import pytest

from browseruse_bench.errors import GraderError
from browseruse_bench.eval.snapshot import dump, query


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "a b#?.sqlite"
    connection = sqlite3.connect(path)
    connection.executescript(
        "pragma journal_mode=wal; create table t(x); insert into t values (1), (2), (3)"
    )
    connection.close()
    return path


ENDLESS = "with recursive n(x) as (select 1 union all select x + 1 from n) select max(x) from n"


def test_an_endless_query_ends_as_an_error(database):
    with pytest.raises(GraderError, match="more than 0.05 s"):
        query(database, ENDLESS, max_rows=1, time_limit_s=0.05)


def test_no_more_rows_than_asked_for_are_read(database):
    assert query(database, "select x from t order by x", max_rows=2) == [(1,), (2,)]


def test_no_file_appears_beside_the_evidence(database):
    before = sorted(database.parent.iterdir())
    content = database.read_bytes()
    query(database, "select count(*) from t", max_rows=1)
    assert sorted(database.parent.iterdir()) == before
    assert database.read_bytes() == content


@pytest.mark.parametrize("sql", ["insert into t values (4)", "with a as (select 1) delete from t"])
def test_nothing_but_a_select_runs(database, sql):
    with pytest.raises(GraderError):
        query(database, sql, max_rows=1)
    assert query(database, "select count(*) from t", max_rows=1) == [(3,)]


def test_a_dump_holds_every_table_and_both_ends_of_a_long_one(tmp_path):
    path = tmp_path / "s.sqlite"
    connection = sqlite3.connect(path)
    connection.executescript('create table "a ""b" (x, y); create table z (n)')
    connection.execute('insert into "a ""b" values (?, ?)', ("kettle", b"\x00\x01"))
    connection.executemany("insert into z values (?)", [(n,) for n in range(1000)])
    connection.commit()
    connection.close()
    short, long = (table.splitlines() for table in dump(path))
    assert short[1:] == ['["kettle", "<2 bytes>"]']
    assert long[1:3] == ["[0]", "[1]"]
    assert "(600 more rows)" in long
    assert long[-1] == "[999]"
    assert len(long) == 1 + 401
