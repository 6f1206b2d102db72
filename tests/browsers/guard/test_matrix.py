"""The attack matrix over real Chromium: what each level holds, and what it does not."""

import asyncio
import socket
import threading
from contextlib import asynccontextmanager

import pytest

from browseruse_bench.browsers.base import SessionRequest
from browseruse_bench.browsers.cdp import CDP
from browseruse_bench.browsers.guard import confine
from browseruse_bench.browsers.local import LocalChromium
from browseruse_bench.browsers.options import BrowserOptions
from browseruse_bench.errors import BrowserError
from tests.browsers.guard.at_hand import NO_LANDLOCK, levels
from tests.browsers.guard.attacks import (
    FILE_SECRET,
    FILES,
    NETWORK,
    OWN_PAGES,
    PAST_PAGES,
    Field,
    opens_its_cdp_port,
)
from tests.browsers.guard.small_web import WEB, small_web

pytestmark = pytest.mark.browser

HELD = levels("flags", "confined", "layered", NO_LANDLOCK)
CLOSED = levels("confined", "layered", NO_LANDLOCK)
# Without them an attack that no longer works would look like a guard that holds.
MUST_REACH_UNGUARDED = (
    "open 127.0.0.1", "open 2130706433", "open localhost", "redirect of a site", "fetch", "WebSocket",
    "WebRTC", "prerender", "PDF, object, frame", "worker that imports", "popup", "createTarget", "loadNetworkResource", "direct context",
    "direct context, WebSocket", "download", "view-source:http", "file:", "view-source:file:", "createTarget file:", "file: folder",
    *PAST_PAGES,
)  # fmt: skip


@pytest.fixture
def field_of(monkeypatch):
    def made(level, folder):
        if level == NO_LANDLOCK:
            monkeypatch.setattr(confine, "landlock_abi", lambda: 0)
        return _field_of(level.partition(" ")[0], folder)

    return made


@asynccontextmanager
async def _field_of(level, folder):
    key = folder / "keys" / "solutions.json"
    key.parent.mkdir()
    key.write_text(FILE_SECRET)
    udp = []
    with small_web() as (public, site, secret), listening(secret.port, udp):
        backend = LocalChromium(BrowserOptions(guard=level), web=WEB)
        request = SessionRequest(
            work=folder / "work",
            downloads=folder / "work" / "downloads",
            owner=folder,
            hosts={"shop.test": ("127.0.0.1", site.port)},
        )
        async with backend.open(request) as session:
            assert session.guard.level == level
            cdp = await CDP.connect(session.ws_url)
            yield Field(cdp, session, secret, public, key, udp, folder / "work")
            await cdp.close()


class listening:  # noqa: N801  a context manager, used like a function
    """Notes what comes by UDP."""

    def __init__(self, port, heard):
        self.heard = heard
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", port))
        self.thread = threading.Thread(target=self.listen, daemon=True)

    def listen(self):
        while (data := self.socket.recv(2048)) != b"end":
            self.heard.append(data)

    def __enter__(self):
        self.thread.start()

    def __exit__(self, *_):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ender:
            ender.sendto(b"end", self.socket.getsockname())
        self.thread.join()
        self.socket.close()


async def passed(field, attacks):
    """The names of the attacks that got through."""
    through = []
    for name, attack in attacks.items():
        field.clear()
        try:
            seen = await attack(field)
        except (BrowserError, TimeoutError) as error:
            seen = str(error)
        if field.caught(str(seen)):
            through.append(name)
        await close_pages(field)
    return through


async def close_pages(field):
    infos = (await field.cdp.send("Target.getTargets"))["targetInfos"]
    for info in infos:
        if info["type"] == "page" and info["targetId"] != field.session.target_id:
            await field.cdp.send("Target.closeTarget", {"targetId": info["targetId"]})


@pytest.mark.slow
async def test_unguarded_the_attacks_work(field_of, tmp_path):
    async with field_of("observed", tmp_path) as field:
        everything = {**NETWORK, **FILES, **PAST_PAGES}
        attacks = {name: everything[name] for name in MUST_REACH_UNGUARDED}
        for _ in range(3):
            # A busy machine may need longer than an attack waits.
            for name in await passed(field, attacks):
                del attacks[name]
        assert list(attacks) == []
        assert await opens_its_cdp_port(field)


@pytest.mark.slow
@pytest.mark.parametrize("level", HELD)
async def test_no_private_target_is_reached_on_any_way(level, field_of, tmp_path):
    async with field_of(level, tmp_path) as field:
        assert await passed(field, NETWORK) == []
        assert not await opens_its_cdp_port(field)
        guard = field.session.watch.fill(field.session.guard)
        seen = " ".join(hit.address for hit in guard.hits)
        assert "127.0.0.1" in seen
        assert "localhost" in seen
        assert "half.test" in seen
        assert guard.n_hits > 20


@pytest.mark.parametrize("level", HELD)
async def test_files_are_refused_and_are_hits(level, field_of, tmp_path):
    async with field_of(level, tmp_path) as field:
        assert await passed(field, FILES) == []
        guard = field.session.watch.fill(field.session.guard)
        assert any(hit.address.startswith("file:") for hit in guard.hits)
        assert any(hit.address.startswith("view-source:file:") for hit in guard.hits)


@pytest.mark.parametrize("level", HELD)
async def test_pages_of_the_browsers_own_are_hits_and_are_turned_away(level, field_of, tmp_path):
    async with field_of(level, tmp_path) as field:
        for url in OWN_PAGES:
            await field.go(url)
            infos = (await field.cdp.send("Target.getTargets"))["targetInfos"]
            assert not [i["url"] for i in infos if i["type"] == "page" and url in i["url"]]
        guard = field.session.watch.fill(field.session.guard)
        for url in OWN_PAGES:
            assert any(hit.address.startswith(url) and hit.why == "page" for hit in guard.hits)


@pytest.mark.parametrize("level", HELD)
async def test_sites_and_the_public_web_work(level, field_of, tmp_path):
    async with field_of(level, tmp_path) as field:
        assert "the site" in await field.go("http://shop.test/")
        assert "the public web" in await field.go(f"http://public.test:{field.public.port}/")
        script = (
            "new Promise(k => {let w = new WebSocket('ws://shop.test/');"
            "w.onmessage = e => k(e.data); w.onerror = () => k('error')})"
        )
        assert await field.on_site(script) == "the site"
        # Confined, Chromium cannot name its network devices.
        online = "false" if level == "confined" else "true"
        assert (await field.on_site("String(navigator.onLine)")) == online
        guard = field.session.watch.fill(field.session.guard)
        assert guard.hits == ()
        assert set(guard.probes.values()) == {"blocked"}


async def test_what_flags_do_not_hold(field_of, tmp_path):
    async with field_of("flags", tmp_path) as field:
        assert await passed(field, PAST_PAGES) == list(PAST_PAGES)


@pytest.mark.parametrize("level", CLOSED)
async def test_no_file_is_read_or_written_past_pages_either(level, field_of, tmp_path):
    async with field_of(level, tmp_path) as field:
        assert await passed(field, PAST_PAGES) == []


@pytest.mark.parametrize("level", CLOSED)
async def test_files_of_the_attempt_can_be_uploaded_and_downloads_arrive(level, field_of, tmp_path):
    async with field_of(level, tmp_path) as field:
        field.key = tmp_path / "work" / "invoice.txt"
        field.key.write_text(FILE_SECRET)
        assert await passed(field, {"upload": PAST_PAGES["setFileInputFiles"]}) == ["upload"]
        await field.go("http://shop.test/download")
        folder = tmp_path / "work" / "downloads"
        for _ in range(100):
            if (folder / "a.bin").exists():
                break
            await asyncio.sleep(0.05)
        assert b"the site" in (folder / "a.bin").read_bytes()
