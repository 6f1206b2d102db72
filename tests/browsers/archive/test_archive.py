"""Sessions are recorded, and replayed against a server that is dead."""

import gzip
import zipfile

import pytest

from browseruse_bench.browsers.archive.looking import Patience
from browseruse_bench.browsers.archive.recording import Limits, Recording
from browseruse_bench.browsers.archive.sessions import (
    Wanted,
    opened,
    record,
    replay_pages,
    replaying,
)
from browseruse_bench.browsers.local import LocalChromium
from browseruse_bench.browsers.options import BrowserOptions
from browseruse_bench.errors import StoreError
from browseruse_bench.store.archive.opened import Archive
from browseruse_bench.store.archive.wacz import package
from browseruse_bench.store.redact import Redactor
from tests.browsers.archive.shop_of_traps import SECRET, SESSION, Server, ten_checks
from tests.browsers.archive.tabbed import DrivenTab

pytestmark = pytest.mark.browser


def backend():
    return LocalChromium(BrowserOptions(guard="observed"))


@pytest.fixture
def server():
    held = Server()
    yield held
    held.kill()


def everything(path):
    """All bytes of a package, unpacked."""
    with zipfile.ZipFile(path) as outer:
        parts = [outer.read(name) for name in outer.namelist() if name != "archive/data.warc.gz"]
        return b"\n".join([*parts, gzip.decompress(outer.read("archive/data.warc.gz"))])


async def test_ten_checks_pass_against_a_dead_server(tmp_path, server):
    warc = tmp_path / "data.warc.gz"
    async with opened(backend(), Wanted()) as session:
        recording = await Recording.start(session.ws_url, warc, redactor=Redactor.of([SECRET]))
        tab = await DrivenTab.attach(session.ws_url, session.target_id)
        live = await ten_checks(tab, server.url)
        await tab.close()
        tally = await recording.close()
    server.kill()
    assert live == dict.fromkeys(live, True)
    assert len(live) == 10
    assert (tally.stalled, tally.lost, tally.too_large) == (0, 0, 0)
    assert (tally.streams >= 1, tally.service_workers >= 1) == (True, True)

    path = package(warc, tmp_path / "shop.wacz", title="shop")
    with Archive.open(path) as archive:
        async with replaying(backend(), archive) as (session, replay):
            tab = await DrivenTab.attach(session.ws_url, session.target_id)
            again = await ten_checks(tab, server.url)
            await tab.go(f"{server.url}/item/9")
            unseen = await tab.value("location.href")
            await tab.close()
    missed = {(m.url.removeprefix(server.url), m.why) for m in replay.tally.misses}
    assert again == live
    assert unseen.startswith("chrome-error:")
    assert missed == {
        ("/events", "not kept"),
        ("/service.js", "service worker"),
        ("/item/9", "not recorded"),
    }
    assert replay.tally.loose >= 1
    assert replay.tally.missed == replay.tally.misses.total()

    content = everything(path)
    assert b"Widget 7" in content
    assert [secret for secret in (SECRET, SESSION) if secret.encode() in content] == []
    assert b"sid=[redacted]" in content
    assert b"theme=dark" in content


async def test_pages_are_kept_whole_and_seen_again_without_a_network(tmp_path, server):
    out, told = tmp_path / "shop.wacz", []
    addresses = [f"{server.url}/home", f"{server.url}/nope", "http://no-such-host.invalid/"]
    limits = Limits(body_bytes=1_000_000)
    patience = Patience(rest_s=5, quiet_s=0.2, request_s=1)
    done = await record(
        backend(), out, addresses, limits=limits, patience=patience, told=told.append
    )
    n_connections = server.n_connections
    home, nope = done.pages
    assert (home.status, home.title, home.settled) == (200, "Home", True)
    assert (nope.status, list(done.unreachable)) == (404, ["http://no-such-host.invalid/"])
    assert (done.tally.too_large, len(told)) == (1, 3)
    with Archive.open(out) as archive:
        assert list(archive.pages.values()) == [home, nope]
        text = archive.part(home, "text").decode()
        for shown in ("Widget 7 $18.25", "frame-text 77", "frame-data 78", "shadow-price 42"):
            assert shown in text
        assert b"frame-text 77" in archive.part(home, "mhtml")
        assert archive.part(home, "png").startswith(b"\x89PNG")
    # The server is there, and a WebSocket asks for it, too: nothing reaches it.
    again = await replay_pages(backend(), out, patience=patience)
    assert (n_connections > 0, server.n_connections) == (True, n_connections)
    assert [page.problem for page in again.pages] == [None, None]
    # The large answer was not kept, and its length is on the page.
    assert again.pages[0].likeness > 0.8
    assert (again.pages[1].likeness, again.holds) == (1.0, False)
    assert {(m.why, m.url.rpartition("/")[2]) for m in again.tally.misses} >= {
        ("not kept", "large")
    }


async def test_a_full_disk_costs_the_recording_and_never_the_page(tmp_path, server, monkeypatch):
    async with opened(backend(), Wanted()) as session:
        recording = await Recording.start(session.ws_url, tmp_path / "data.warc.gz")

        def full(*_args, **_more):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(recording._writer, "write", full)
        tab = await DrivenTab.attach(session.ws_url, session.target_id)
        await tab.go(f"{server.url}/item/4")
        assert await tab.until("window.price && price.textContent === '14.5'")
        await tab.close()
        with pytest.raises(StoreError, match=r"recording is incomplete.*No space left"):
            await recording.close()


async def test_a_body_without_an_end_is_an_error_for_the_page_and_counted(tmp_path, server):
    async with opened(backend(), Wanted()) as session:
        recording = await Recording.start(
            session.ws_url, tmp_path / "data.warc.gz", limits=Limits(body_s=0.5)
        )
        tab = await DrivenTab.attach(session.ws_url, session.target_id)
        await tab.go(f"{server.url}/item/4")
        script = "fetch('/endless').then(r => r.text()).catch(e => 'failed: ' + e.name)"
        got = await tab.value(script)
        await tab.close()
        tally = await recording.close()
    assert (got, tally.stalled) == ("failed: TypeError", 1)
    with Archive.open(tmp_path / "data.warc.gz") as archive:
        assert len(archive.find("GET", f"{server.url}/item/4", {}, b"")) == 1
        assert archive.find("GET", f"{server.url}/endless", {}, b"") == []
