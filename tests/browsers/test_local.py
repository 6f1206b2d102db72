"""Local Chromium, for real: isolated, fenced, and gone when the block is left."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from browseruse_bench.browsers.base import SessionRequest
from browseruse_bench.browsers.cdp import CDP
from browseruse_bench.browsers.local import LocalChromium, host_rules
from browseruse_bench.browsers.options import BrowserOptions
from browseruse_bench.errors import BrowserError

browser = pytest.mark.browser


@pytest.fixture
def backend():
    return LocalChromium(BrowserOptions(guard="observed"))


def request(folder, name="1", **changed):
    return SessionRequest(
        work=folder / f"work-{name}",
        downloads=folder / f"downloads-{name}",
        owner=folder,
        **changed,
    )


def left_of(folder):
    """Living processes whose command line names the folder."""
    commands = subprocess.run(
        ["ps", "-eo", "stat=,pid=,args=", "-ww"], capture_output=True, text=True, check=True
    )
    return [line for line in commands.stdout.splitlines() if str(folder) in line and line[0] != "Z"]


class Tab:
    """The first page of a session, driven over a socket of its own."""

    def __init__(self, cdp, session_id):
        self.cdp = cdp
        self.session_id = session_id

    @classmethod
    async def of(cls, session):
        cdp = await CDP.connect(session.ws_url)
        attach = {"targetId": session.target_id, "flatten": True}
        return cls(cdp, (await cdp.send("Target.attachToTarget", attach))["sessionId"])

    async def go(self, url):
        """Open an address: the error that Chromium shows, or ""."""
        loaded = asyncio.Event()
        self.cdp.on("Page.loadEventFired", lambda *_: loaded.set())
        await self.cdp.send("Page.enable", session=self.session_id)
        result = await self.cdp.send("Page.navigate", {"url": url}, session=self.session_id)
        if "errorText" in result:
            return result["errorText"]
        await asyncio.wait_for(loaded.wait(), 5)
        return ""

    async def value(self, expression):
        call = {"expression": expression, "returnByValue": True, "awaitPromise": True}
        result = await self.cdp.send("Runtime.evaluate", call, session=self.session_id)
        return result["result"].get("value")


def port_of(site):
    return int(site.url.rpartition(":")[2])


@browser
async def test_a_session_is_a_browser_with_one_blank_page_of_the_wanted_size(backend, tmp_path):
    async with backend.open(request(tmp_path)) as session:
        assert session.browser.kind == "local"
        assert session.browser.version[0].isdigit()
        assert session.browser.viewport == (1280, 800)
        assert backend.alive(session)
        tab = await Tab.of(session)
        targets = (await tab.cdp.send("Target.getTargets"))["targetInfos"]
        pages = [(t["targetId"], t["url"]) for t in targets if t["type"] == "page"]
        assert pages == [(session.target_id, "about:blank")]
        # The bar about the missing sandbox would come up to a second late.
        await asyncio.sleep(1.2)
        assert await tab.value("[innerWidth, innerHeight]") == [1280, 800]
        await tab.cdp.close()
    assert not backend.alive(session)


@pytest.mark.parametrize(("user", "off"), [(0, True), (1000, False)])
async def test_the_sandbox_is_off_for_root_and_for_nobody_else(tmp_path, monkeypatch, user, off):
    program = tmp_path / "chromium"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setattr(os, "geteuid", lambda: user)
    with pytest.raises(BrowserError, match="ended with status 1"):
        async with LocalChromium(BrowserOptions(path=program)).open(request(tmp_path)):
            pass
    lines = (tmp_path / "processes.jsonl").read_text().splitlines()
    browsers = [json.loads(line) for line in lines if '"browser"' in line]
    assert ["--no-sandbox" in record["argv"] for record in browsers] == [off]


@browser
async def test_nothing_is_left_when_the_block_is_left(backend, tmp_path):
    async with backend.open(request(tmp_path)) as session:
        assert (tmp_path / "work-1/profile").is_dir()
        assert left_of(tmp_path)
    assert not backend.alive(session)
    assert left_of(tmp_path) == []
    assert not (tmp_path / "work-1").exists()


@browser
async def test_an_error_in_the_block_leaves_nothing(backend, tmp_path):
    with pytest.raises(ZeroDivisionError):
        async with backend.open(request(tmp_path)):
            raise ZeroDivisionError
    assert left_of(tmp_path) == []
    assert not (tmp_path / "work-1").exists()


@browser
@pytest.mark.parametrize("after_s", [0.0, 0.02, 0.1, 0.3, 0.6, 2.0])
async def test_a_timeout_at_any_moment_leaves_nothing(backend, tmp_path, after_s):
    async def attempt():
        async with backend.open(request(tmp_path)):
            await asyncio.sleep(60)

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(attempt(), after_s)
    assert left_of(tmp_path) == []
    assert not (tmp_path / "work-1/tmp").exists()
    assert not list((tmp_path).glob("work-1/profile/*"))


@browser
async def test_a_crashed_browser_is_seen_as_dead_and_leaves_nothing(backend, tmp_path):
    async with backend.open(request(tmp_path)) as session:
        os.kill(backend._running[session.ws_url].pgid, signal.SIGKILL)
        for _ in range(500):
            if not backend.alive(session):
                break
            await asyncio.sleep(0.01)
        assert not backend.alive(session)
    assert left_of(tmp_path) == []
    assert not (tmp_path / "work-1").exists()


@browser
async def test_a_graceful_exit_of_the_browser_is_seen_as_dead(backend, tmp_path):
    async with backend.open(request(tmp_path)) as session:
        cdp = await CDP.connect(session.ws_url)
        await cdp.send("Browser.close")
        for _ in range(500):
            if not backend.alive(session):
                break
            await asyncio.sleep(0.01)
        assert not backend.alive(session)
        await cdp.close()
    assert left_of(tmp_path) == []


@browser
async def test_two_sessions_at_once_have_profiles_of_their_own_BL022(backend, tmp_path, site):  # noqa: N802
    site.pages["/"] = "<title>t</title>"
    async with (
        backend.open(request(tmp_path, "1")) as first,
        backend.open(request(tmp_path, "2")) as second,
    ):
        assert first.ws_url != second.ws_url
        tabs = [await Tab.of(first), await Tab.of(second)]
        for tab in tabs:
            assert await tab.go(f"{site.url}/") == ""
        await tabs[0].value("document.cookie = 'who=first'; localStorage.who = 'first'")
        assert await tabs[1].value("document.cookie + (localStorage.who ?? '')") == ""
        for tab in tabs:
            await tab.cdp.close()


@browser
async def test_a_second_session_in_one_folder_is_refused_and_the_first_goes_on_BL022(  # noqa: N802
    backend, tmp_path
):
    async with backend.open(request(tmp_path)) as session:
        with pytest.raises(BrowserError, match="in use by another session"):
            async with backend.open(request(tmp_path)):
                pass
        assert backend.alive(session)
        assert (tmp_path / "work-1/profile").is_dir()


@browser
async def test_the_next_session_knows_no_cookie_storage_tab_or_download_BL025(  # noqa: N802
    backend, tmp_path, site
):
    site.pages["/"] = "<title>t</title>"
    site.pages["/report.csv"] = "a,b"
    for name in ("1", "2"):
        wanted = request(tmp_path, name)
        async with backend.open(wanted) as session:
            assert list(wanted.downloads.iterdir()) == []
            tab = await Tab.of(session)
            await tab.go(f"{site.url}/")
            found = await tab.value("document.cookie + (localStorage.order ?? '') + history.length")
            assert found == "2"
            await tab.value(
                "document.cookie = 'order=placed; max-age=9999'; localStorage.order = 'placed'"
            )
            await tab.value("location.href = '/report.csv'")
            for _ in range(300):
                if (wanted.downloads / "report.csv").exists():
                    break
                await asyncio.sleep(0.01)
            assert (wanted.downloads / "report.csv").read_text() == "a,b"
            await tab.cdp.close()


@browser
async def test_a_fence_lets_only_the_declared_sites_through(backend, tmp_path, site):
    site.pages["/"] = "<title>the shop</title>"
    hosts = {"shop.test": ("127.0.0.1", port_of(site))}
    async with backend.open(request(tmp_path, hosts=hosts, fence=True)) as session:
        assert session.guard.level == "observed"
        tab = await Tab.of(session)
        assert await tab.go("http://shop.test/") == ""
        assert await tab.value("document.title") == "the shop"
        site.pages["/inside"] = "<title>inside</title>"
        port = port_of(site)
        for address in (
            f"http://127.0.0.1:{port}", f"http://localhost:{port}", f"http://2130706433:{port}",
            f"http://127.1:{port}", f"http://[::ffff:127.0.0.1]:{port}", "https://shop.test",
            f"http://shop.test:{port}", "http://sub.shop.test", "http://example.com",
        ):  # fmt: skip
            assert await tab.go(f"{address}/inside") == "net::ERR_NAME_NOT_RESOLVED", address
        await tab.go("http://shop.test/")
        fetch = f"fetch('http://127.0.0.1:{port}/inside', {{mode: 'no-cors'}})"
        assert await tab.value(f"{fetch}.then(() => 'through', () => 'blocked')") == "blocked"
        assert "/inside" not in site.asked
        assert await tab.go("http://shop.test/inside") == ""
        await tab.cdp.close()


@browser
async def test_without_a_fence_a_site_stands_in_for_all_of_its_host(backend, tmp_path, site):
    site.pages["/"] = "<title>stand-in</title>"
    hosts = {"example.com": ("127.0.0.1", port_of(site))}
    async with backend.open(request(tmp_path, hosts=hosts)) as session:
        assert session.guard.level == "observed"
        tab = await Tab.of(session)
        assert await tab.go("http://example.com/") == ""
        assert await tab.go(f"{site.url}/") == ""
        assert await tab.go("https://example.com/") == "net::ERR_NAME_NOT_RESOLVED"
        await tab.cdp.close()


def test_a_host_cannot_smuggle_a_rule_in():
    with pytest.raises(BrowserError, match="not a host name"):
        host_rules({"a.test, MAP * 10.0.0.1": ("127.0.0.1", 1)}, fence=True)


@browser
async def test_a_long_path_of_the_work_folder_is_no_problem(backend, tmp_path):
    long = tmp_path / ("d" * 60) / ("e" * 60)
    long.mkdir(parents=True)
    async with backend.open(request(long)) as session:
        assert backend.alive(session)
        record = json.loads((long / "processes.jsonl").read_text())
        places = [Path(place) for place in record["removes"]]
        assert len(places) == 2
        assert all(place.exists() for place in places)
    assert not any(place.exists() for place in places)


@browser
async def test_no_variable_of_ours_reaches_the_browser(backend, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "planted-secret")
    async with backend.open(request(tmp_path)) as session:
        pid = backend._running[session.ws_url].pgid
        environ = Path(f"/proc/{pid}/environ").read_bytes()
        assert b"TMPDIR=" in environ
        assert b"planted-secret" not in environ
    assert b"planted-secret" not in (tmp_path / "processes.jsonl").read_bytes()


@browser
async def test_above_nine_descriptors_the_browser_still_starts(backend, tmp_path):
    held = [os.open(os.devnull, os.O_RDONLY) for _ in range(20)]
    try:
        async with backend.open(request(tmp_path)) as session:
            assert backend.alive(session)
    finally:
        for descriptor in held:
            os.close(descriptor)


async def test_a_program_that_fails_is_an_error_with_its_last_words(tmp_path):
    program = tmp_path / "chromium"
    program.write_text("#!/bin/sh\necho no usable sandbox >&2\nexit 3\n")
    program.chmod(0o755)
    backend = LocalChromium(BrowserOptions(path=program))
    with pytest.raises(BrowserError, match="status 3(.|\n)*no usable sandbox"):
        async with backend.open(request(tmp_path)):
            pass
    assert not (tmp_path / "work-1").exists()


async def test_a_program_that_never_listens_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr("browseruse_bench.browsers.local._START_S", 0.3)
    program = tmp_path / "chromium"
    program.write_text("#!/bin/sh\nsleep 300\n")
    program.chmod(0o755)
    backend = LocalChromium(BrowserOptions(path=program))
    with pytest.raises(BrowserError, match="did not listen within 0.3 s"):
        async with backend.open(request(tmp_path)):
            pass
    assert left_of(tmp_path) == []


def test_importing_the_table_of_browsers_loads_no_backend():
    script = (
        "import sys, browseruse_bench.browsers as b; b.BROWSERS.names();"
        "sys.exit('websockets' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
