"""A query over a snapshot is bounded and leaves the file alone."""

from __future__ import annotations

import sqlite3

import pytest

from browseruse_bench.errors import GraderError
from browseruse_bench.eval.snapshot import query


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
