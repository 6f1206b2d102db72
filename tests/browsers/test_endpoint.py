import asyncio
import http.server
import json
import threading

import pytest

from browseruse_bench.browsers.base import SessionRequest
from browseruse_bench.browsers.cdp import CDP
from browseruse_bench.browsers.endpoint import CdpEndpoint
from browseruse_bench.browsers.none import NoBrowser
from browseruse_bench.browsers.options import BrowserOptions
from browseruse_bench.browsers.recorder import Recorder
from browseruse_bench.errors import BrowserError

browser = pytest.mark.browser


def request(folder, **changed):
    return SessionRequest(
        work=folder / "work", downloads=folder / "downloads", owner=folder, **changed
    )


def endpoint(url):
    return CdpEndpoint(BrowserOptions(cdp_url=url))


def http_of(chromium):
    return "http://" + chromium.ws_url.removeprefix("ws://").partition("/")[0]


async def run_in(session, url, expression):
    """Open the address in the session's page and evaluate there."""
    cdp = await CDP.connect(session.ws_url)
    attach = {"targetId": session.target_id, "flatten": True}
    of = (await cdp.send("Target.attachToTarget", attach))["sessionId"]
    await cdp.send("Page.navigate", {"url": url}, session=of)
    call = {"expression": expression, "returnByValue": True}
    for _ in range(100):
        result = await cdp.send("Runtime.evaluate", call, session=of)
        if "value" in result["result"]:
            break
    await cdp.close()
    return result["result"]["value"]


async def contexts_and_pages(chromium):
    cdp = await CDP.connect(chromium.ws_url)
    contexts = (await cdp.send("Target.getBrowserContexts"))["browserContextIds"]
    targets = (await cdp.send("Target.getTargets"))["targetInfos"]
    await cdp.close()
    return len(contexts), len([t for t in targets if t["type"] == "page"])


@browser
@pytest.mark.parametrize("form", ["http", "ws"])
async def test_each_session_has_a_context_of_its_own_that_goes_with_it_BL025(  # noqa: N802
    chromium, site, tmp_path, form
):
    site.pages["/"] = "<title>t</title>"
    backend = endpoint(chromium.ws_url if form == "ws" else http_of(chromium))
    before = await contexts_and_pages(chromium)
    for _ in range(2):
        async with backend.open(request(tmp_path)) as session:
            assert session.guard.level == "observed"
            assert session.guard.reason == ""
            assert session.ws_url == chromium.ws_url
            assert session.http_url == http_of(chromium)
            assert backend.alive(session)
            found = await run_in(
                session, f"{site.url}/",
                "const was = document.cookie + (localStorage.k ?? '');"
                "document.cookie = 'a=b'; localStorage.k = 'v'; was",
            )  # fmt: skip
            assert found == ""
        assert not backend.alive(session)
    assert await contexts_and_pages(chromium) == before


@browser
async def test_two_sessions_at_once_do_not_see_each_other(chromium, site, tmp_path):
    site.pages["/"] = "<title>t</title>"
    backend = endpoint(http_of(chromium))
    async with backend.open(request(tmp_path)) as one, backend.open(request(tmp_path)) as two:
        assert one.target_id != two.target_id
        await run_in(one, f"{site.url}/", "document.cookie = 'a=b'")
        assert await run_in(two, f"{site.url}/", "document.cookie") == ""


@browser
async def test_a_login_reaches_the_session_and_not_the_browser(chromium, site, tmp_path):
    site.pages["/"] = "<title>t</title>"
    state = tmp_path / "state.json"
    cookie = {"name": "a", "value": "b", "domain": "127.0.0.1"}
    stored = {"origin": site.url, "localStorage": [{"name": "k", "value": "v"}]}
    state.write_text(json.dumps({"cookies": [cookie], "origins": [stored]}))
    backend = endpoint(http_of(chromium))
    expression = "document.cookie + localStorage.k"
    async with backend.open(request(tmp_path, storage_state=state)) as session:
        assert await run_in(session, f"{site.url}/", expression) == "a=bv"
    async with backend.open(request(tmp_path)) as session:
        assert await run_in(session, f"{site.url}/", expression) == "undefined"


@browser
async def test_a_browser_that_dies_is_seen_as_dead_and_the_block_ends(chromium, tmp_path):
    backend = endpoint(http_of(chromium))
    async with backend.open(request(tmp_path)) as session:
        chromium.kill()
        for _ in range(500):
            if not backend.alive(session):
                break
            await asyncio.sleep(0.01)
        assert not backend.alive(session)


@browser
async def test_without_contexts_the_session_says_that_attempts_share_state(
    chromium, tmp_path, monkeypatch
):
    send = CDP.send

    async def refusing(self, method, *args, **named):
        if method == "Target.createBrowserContext":
            raise BrowserError(f"{method}: not supported")
        return await send(self, method, *args, **named)

    monkeypatch.setattr(CDP, "send", refusing)
    before = await contexts_and_pages(chromium)
    backend = endpoint(http_of(chromium))
    async with backend.open(request(tmp_path)) as session:
        assert "share cookies" in session.guard.reason
    assert await contexts_and_pages(chromium) == before
    state = tmp_path / "state.json"
    state.write_text("{}")
    with pytest.raises(BrowserError, match="login would stay"):
        async with backend.open(request(tmp_path, storage_state=state)):
            pass


@pytest.mark.parametrize("needs", [{"hosts": {"shop.test": ("127.0.0.1", 1)}}, {"fence": True}])
async def test_sites_cannot_be_mapped_in_a_foreign_browser(tmp_path, needs):
    with pytest.raises(BrowserError, match="--browser local"):
        async with endpoint("http://127.0.0.1:1").open(request(tmp_path, **needs)):
            pass


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://127.0.0.1:1/", "does not answer"),
        ("ws://127.0.0.1:1/devtools/browser/x", "cannot connect"),
        ("ftp://127.0.0.1", "starts with http"),
        (None, "--cdp-url"),
    ],
)
async def test_an_endpoint_that_is_none_is_one_clear_line(tmp_path, url, why):
    with pytest.raises(BrowserError, match=why) as caught:
        async with endpoint(url).open(request(tmp_path)):
            pass
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("scheme", ["http", "ws"])
async def test_a_key_in_the_address_is_never_shown_BL097(tmp_path, scheme):  # noqa: N802
    url = f"{scheme}://user:planted-a@127.0.0.1:1/planted-b?token=planted-c"
    with pytest.raises(BrowserError) as caught:
        async with endpoint(url).open(request(tmp_path)):
            pass
    assert "127.0.0.1:1" in str(caught.value)
    assert "planted" not in str(caught.value)


async def test_the_recorder_does_not_show_the_key_either_BL097(tmp_path):  # noqa: N802
    """What it raises goes into the trace."""
    url = "ws://user:planted-a@127.0.0.1:1/planted-b?token=planted-c"
    with pytest.raises(BrowserError) as caught:
        await Recorder.connect(url, tmp_path)
    assert "127.0.0.1:1" in str(caught.value)
    assert "planted" not in str(caught.value)


async def test_an_answer_that_is_not_a_browsers_is_said(tmp_path):
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"<html>hello</html>")

        def log_message(self, *_args):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with pytest.raises(BrowserError, match="does not name a browser's socket"):
            async with endpoint(f"http://127.0.0.1:{server.server_port}").open(request(tmp_path)):
                pass
        server.shutdown()


async def test_no_browser_is_a_session_without_socket_or_page(tmp_path):
    backend = NoBrowser(BrowserOptions())
    async with backend.open(request(tmp_path)) as session:
        assert (session.ws_url, session.target_id, session.browser.kind) == (None, None, "none")
        assert backend.alive(session)
