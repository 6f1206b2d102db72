"""Site processes: fresh state, sharing, and what happens when a site dies or hangs."""

from __future__ import annotations

import asyncio
import json
import signal
import sqlite3
import subprocess
import sys
import time
import urllib.request
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from browseruse_bench.errors import SiteError
from browseruse_bench.sites.process import SitePool, Timeouts
from browseruse_bench.store.process_table import look
from browseruse_bench.store.processes import reap

SITES = '''
import http.server, os, sqlite3, sys, threading, time
from browseruse_bench.sites.base import Site


class Counter(Site):
    """Counts its visits; GET /<command> misbehaves."""

    count = 0

    def start(self, directory, seed):
        assert list(directory.iterdir()) == []
        (directory / "own").write_text("x")
        site = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                if self.path == "/die":
                    os._exit(7)
                site.count += 1
                self.send_response(200)
                self.end_headers()
                self.wfile.write(f"{os.getpid()} {site.count} {seed}".encode())

            def log_message(self, *_):
                pass

        print("a library prints to standard output")
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self.server.server_address

    def reset(self):
        self.count = 0

    def snapshot(self, path):
        with sqlite3.connect(path) as database:
            database.execute("CREATE TABLE visits AS SELECT ? AS n", (self.count,))
        return True

    def stop(self):
        self.server.shutdown()


class Shared(Counter):
    stateful = False

    def snapshot(self, path):
        return False


class FailsReset(Counter):
    def reset(self):
        raise RuntimeError("the reset is broken")


class HangsInReset(Counter):
    def reset(self):
        time.sleep(60)


class HangsInSnapshot(Counter):
    def snapshot(self, path):
        print("about to hang", file=sys.stderr, flush=True)
        time.sleep(60)


class HangsInStop(Counter):
    def stop(self):
        time.sleep(60)


class HangsInStart(Counter):
    def start(self, directory, seed):
        time.sleep(60)


class FailsStart(Counter):
    server = None

    def start(self, directory, seed):
        print("the reason is here", file=sys.stderr)
        raise OSError("no room")

    def stop(self):
        print("stopped after all", file=sys.stderr)


class FailsLate(FailsStart):
    def start(self, directory, seed):
        time.sleep(2)
        raise OSError("no room")


class Public(Counter):
    def start(self, directory, seed):
        return "203.0.113.7", super().start(directory, seed)[1]


class NotASite:
    pass
'''

Pool = Callable[..., SitePool]


@pytest.fixture
async def pool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Pool]:
    """Makes pools of the sites above, imported from the current directory, and closes them."""
    (tmp_path / "my_sites.py").write_text(SITES)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    pools: list[SitePool] = []

    def make(timeouts: Timeouts | None = None, **sites: str) -> SitePool:
        named = {f"{name}.test": f"my_sites:{site}" for name, site in sites.items()}
        pools.append(SitePool(tmp_path / "run", named, seed=5, timeouts=timeouts))
        return pools[-1]

    yield make
    await asyncio.gather(*(p.close() for p in pools))


async def visit(address: tuple[str, int], path: str = "/") -> tuple[int, int, int]:
    """(process id, count, seed) as the site says."""

    def get() -> bytes:
        with urllib.request.urlopen(f"http://{address[0]}:{address[1]}{path}", timeout=5) as reply:
            return reply.read()

    pid, count, seed = (await asyncio.to_thread(get)).split()
    return int(pid), int(count), int(seed)


async def kill_by_visit(address: tuple[str, int]) -> None:
    with pytest.raises(OSError, match="closed|reset|refused"):
        await visit(address, "/die")


async def eventually(holds: Callable[[], bool], timeout_s: float = 10) -> bool:
    deadline = time.monotonic() + timeout_s
    while not holds() and time.monotonic() < deadline:
        await asyncio.sleep(0.02)
    return holds()


def gone(pid: int) -> bool:
    seen = look(pid)
    return seen is None or seen.zombie


async def test_a_stateful_site_is_reused_after_a_reset(pool: Pool):
    sites = pool(a="Counter")
    async with sites.lease() as leased:
        first = await visit(leased.hosts["a.test"])
        assert (await visit(leased.hosts["a.test"]))[1] == 2
    async with sites.lease() as leased:
        second = await visit(leased.hosts["a.test"])
    assert first == (first[0], 1, 5)
    assert second == first


async def test_leases_at_the_same_time_get_processes_of_their_own(pool: Pool):
    sites = pool(a="Counter")

    async def one() -> tuple[int, int, int]:
        async with sites.lease() as leased:
            await asyncio.sleep(0.3)
            return await visit(leased.hosts["a.test"])

    seen = await asyncio.gather(one(), one(), one())
    assert len({pid for pid, _, _ in seen}) == 3
    assert {count for _, count, _ in seen} == {1}
    async with sites.lease() as leased:
        assert (await visit(leased.hosts["a.test"]))[0] in {pid for pid, _, _ in seen}


async def test_a_stateless_site_is_started_once_for_all(pool: Pool):
    sites = pool(a="Shared")

    async def one() -> int:
        async with sites.lease() as leased:
            return (await visit(leased.hosts["a.test"]))[0]

    assert len(set(await asyncio.gather(one(), one(), one()))) == 1
    assert await one() == await one()


async def test_every_host_of_a_benchmark_is_served(pool: Pool):
    async with pool(a="Counter", b="Shared", c="Counter").lease() as leased:
        assert sorted(leased.hosts) == ["a.test", "b.test", "c.test"]
        seen = [await visit(address) for address in leased.hosts.values()]
    assert len({pid for pid, _, _ in seen}) == 3


async def test_a_benchmark_without_sites_leases_no_hosts(tmp_path: Path):
    async with SitePool(tmp_path, {}, seed=0).lease() as leased:
        assert leased.hosts == {}


async def test_a_snapshot_is_the_state_of_its_own_lease(pool: Pool, tmp_path: Path):
    async with pool(a="Counter", b="Shared").lease() as leased:
        for _ in range(3):
            await visit(leased.hosts["a.test"])
        assert await leased.snapshot("a.test", tmp_path / "a.sqlite") is True
        assert await leased.snapshot("b.test", tmp_path / "b.sqlite") is False
    assert not (tmp_path / "b.sqlite").exists()
    database = sqlite3.connect(tmp_path / "a.sqlite")
    assert database.execute("SELECT n FROM visits").fetchall() == [(3,)]
    database.close()


async def test_a_site_that_fails_its_reset_is_replaced(pool: Pool):
    sites = pool(a="FailsReset")
    async with sites.lease() as leased:
        first = await visit(leased.hosts["a.test"])
    async with sites.lease() as leased:
        second = await visit(leased.hosts["a.test"])
    assert second[1] == 1
    assert second[0] != first[0]
    assert gone(first[0])


async def test_a_site_that_hangs_in_its_reset_is_replaced(pool: Pool):
    sites = pool(Timeouts(reset_s=0.3), a="HangsInReset")
    async with sites.lease() as leased:
        first = await visit(leased.hosts["a.test"])
    async with sites.lease() as leased:
        assert (await visit(leased.hosts["a.test"]))[0] != first[0]
    assert gone(first[0])


@pytest.mark.parametrize("site", ["Counter", "Shared"])
async def test_a_site_that_died_is_replaced_for_the_next_lease(pool: Pool, site: str):
    sites = pool(a=site)
    async with sites.lease() as leased:
        pid = (await visit(leased.hosts["a.test"]))[0]
        await kill_by_visit(leased.hosts["a.test"])
    # Its sockets are closed a moment before it is gone.
    assert await eventually(lambda: gone(pid))
    async with sites.lease() as leased:
        assert (await visit(leased.hosts["a.test"]))[1] == 1


async def test_a_snapshot_of_a_dead_site_says_so(pool: Pool, tmp_path: Path):
    async with pool(a="Counter").lease() as leased:
        await kill_by_visit(leased.hosts["a.test"])
        with pytest.raises(SiteError, match=r"a\.test \(my_sites:Counter\): snapshot: .* ended"):
            await leased.snapshot("a.test", tmp_path / "a.sqlite")


async def test_a_site_that_hangs_in_a_snapshot_is_given_up_with_its_last_words(
    pool: Pool, tmp_path: Path
):
    sites = pool(Timeouts(snapshot_s=0.5), a="HangsInSnapshot")
    async with sites.lease() as leased:
        pid = (await visit(leased.hosts["a.test"]))[0]
        with pytest.raises(SiteError, match=r"(?s)no answer within 0\.5 s.*about to hang"):
            await leased.snapshot("a.test", tmp_path / "a.sqlite")
    assert gone(pid)


@pytest.mark.parametrize(
    ("site", "says"),
    [
        ("FailsStart", "(?s)start: OSError: no room.*the reason is here.*stopped after all"),
        ("NotASite", "start: TypeError: my_sites:NotASite is not a"),
        ("Missing", "start: ConfigError: .*cannot load 'my_sites:Missing'"),
        ("Public", r"start: ValueError: it serves on 203\.0\.113\.7"),
        ("HangsInStart", r"start: no answer within 1 s"),
    ],
)
async def test_a_failed_start_names_the_site_and_the_reason(pool: Pool, site: str, says: str):
    sites = pool(Timeouts(start_s=1 if site == "HangsInStart" else 30), good="Counter", a=site)
    with pytest.raises(SiteError, match=says):
        async with sites.lease():
            pytest.fail("a lease without its site")


async def test_what_a_failed_lease_had_is_used_by_the_next_one(pool: Pool, tmp_path: Path):
    sites = pool(good="Counter", a="FailsLate")
    for _ in range(2):
        with pytest.raises(SiteError):
            async with sites.lease():
                pass
    starts = [
        line
        for line in (tmp_path / "run" / "processes.jsonl").read_text().splitlines()
        if '"start"' in line and "my_sites:Counter" in line
    ]
    assert len(starts) == 1


async def test_close_leaves_no_process_and_no_folder(pool: Pool, tmp_path: Path):
    sites = pool(Timeouts(stop_s=0.5), a="Counter", b="HangsInStop", c="Shared")
    async with sites.lease() as leased:
        pids = [(await visit(address))[0] for address in leased.hosts.values()]
    lines = (tmp_path / "run" / "processes.jsonl").read_text().splitlines()
    folders = [Path(f) for line in lines for f in json.loads(line).get("removes", ())]
    assert len(folders) == 3
    assert all((folder / "own").exists() for folder in folders)
    await sites.close()
    assert all(gone(pid) for pid in pids)
    assert not any(folder.exists() for folder in folders)


async def test_a_cancelled_start_leaves_no_process(pool: Pool, tmp_path: Path):
    sites = pool(a="HangsInStart")

    async def one() -> None:
        async with sites.lease():
            pass

    waiting = asyncio.create_task(one())
    journal = tmp_path / "run" / "processes.jsonl"
    assert await eventually(lambda: journal.exists() and '"start"' in journal.read_text())
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert gone(json.loads(journal.read_text().splitlines()[0])["pgid"])
    assert '"end"' in journal.read_text()


PARENT = """
import asyncio, sys
from pathlib import Path
from browseruse_bench.sites.process import SitePool

async def main():
    pool = SitePool(Path("run"), {"a.test": "my_sites:" + sys.argv[1]}, seed=0)
    async with pool.lease() as leased:
        print(leased.hosts["a.test"][1], flush=True)
        await asyncio.sleep(60)

asyncio.run(main())
"""


@pytest.mark.parametrize("site", ["Counter", "HangsInStop"])
async def test_a_killed_parent_leaves_no_site(pool: Pool, tmp_path: Path, site: str):
    pool()
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, site], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    with parent, parent.stdout:
        port = int(await asyncio.to_thread(parent.stdout.readline))
        pid = (await visit(("127.0.0.1", port)))[0]
        parent.send_signal(signal.SIGKILL)
    assert await eventually(lambda: gone(pid))
    (start,) = (tmp_path / "run" / "processes.jsonl").read_text().splitlines()
    (folder,) = json.loads(start)["removes"]
    assert Path(folder).exists()
    assert len(reap(tmp_path / "run")) == 1
    assert not Path(folder).exists()
