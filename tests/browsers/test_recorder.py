"""The recorder beside a driver of its own, on pages that behave and pages that do not."""

import asyncio
import json
import time

import pytest

from browseruse_bench.browsers.cdp import CDP
from browseruse_bench.browsers.recorder import MAX_CHARS, Recorder
from browseruse_bench.records.data_info import Probe

pytestmark = pytest.mark.browser

HOSTILE = """<!doctype html><title>Honest title</title><body><p>real text</p>
<form name="body"></form><img name="title"><img name="querySelectorAll"><img name="nodeType">
<script>
  JSON.stringify = () => 'a lie'; JSON.parse = () => 'a lie';
  Object.defineProperty(HTMLElement.prototype, 'innerText', {get: () => 'a lie'});
  Object.defineProperty(Document.prototype, 'title', {get: () => 'a lie'});
  Object.defineProperty(Document.prototype, 'visibilityState', {get: () => 'hidden'});
  Array.prototype.join = () => 'a lie'; String.prototype.slice = () => 'a lie';
  Element.prototype.checkVisibility = () => { throw new Error('no'); };
  Promise.prototype.then = () => { throw new Error('no'); };
</script>"""


class Driver:
    """Drives pages over another connection, as an agent would."""

    def __init__(self, cdp):
        self.cdp = cdp

    @classmethod
    async def connect(cls, ws_url):
        driver = cls(await CDP.connect(ws_url))
        infos = (await driver.cdp.send("Target.getTargets"))["targetInfos"]
        await driver.use(next(i["targetId"] for i in infos if i["type"] == "page"))
        return driver

    async def use(self, target):
        self.target = target
        answer = await self.cdp.send("Target.attachToTarget", {"targetId": target, "flatten": True})
        self.session = answer["sessionId"]

    async def go(self, url, until="document.readyState === 'complete'"):
        await self.cdp.send("Page.navigate", {"url": url}, session=self.session)
        while not await self.run(until):
            await asyncio.sleep(0.02)

    async def run(self, script, timeout_s=5.0):
        answer = await self.cdp.send(
            "Runtime.evaluate",
            {"expression": script, "returnByValue": True},
            session=self.session,
            timeout_s=timeout_s,
        )
        return answer["result"].get("value")

    async def open_tab(self, url, background=False):
        params = {"url": url, "background": background}
        return (await self.cdp.send("Target.createTarget", params))["targetId"]


@pytest.fixture
async def driver(chromium):
    driver = await Driver.connect(chromium.ws_url)
    yield driver
    await driver.cdp.close()


@pytest.fixture
async def recorder(chromium, tmp_path):
    recorder = await Recorder.connect(chromium.ws_url, tmp_path)
    yield recorder
    await recorder.close()


def texts(snapshot, tmp_path, name=None):
    return [
        (tmp_path / "evidence" / o.ref).read_text(encoding="utf-8")
        for o in snapshot.observations
        if o.kind == "text" and o.name == name
    ]


def kinds(snapshot):
    return [o.kind for o in snapshot.observations]


async def timed(awaitable):
    start = time.monotonic()
    return await awaitable, time.monotonic() - start


async def eventually(condition):
    deadline = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)


async def test_address_title_tabs_text_and_picture_are_recorded(site, driver, recorder, tmp_path):
    site.pages["/"] = (
        "<title>A shop</title><h1>Grüße, 世界 🌍</h1><input value='typed by the agent'>"
    )
    await driver.go(site.url + "/?q=1")
    snapshot = await recorder.observe(driver.target)
    assert snapshot.errors == ()
    assert snapshot.page.target_id == driver.target
    assert snapshot.page.url == site.url + "/?q=1"
    assert snapshot.page.title == "A shop"
    assert snapshot.page.tabs == (site.url + "/?q=1",)
    assert texts(snapshot, tmp_path) == ["Grüße, 世界 🌍"]
    assert kinds(snapshot) == ["text", "screenshot"]
    assert {o.url for o in snapshot.observations} == {site.url + "/?q=1"}
    assert {o.captured_by for o in snapshot.observations} == {"harness"}
    picture = (tmp_path / "evidence" / snapshot.observations[1].ref).read_bytes()
    assert picture.startswith(b"\xff\xd8\xff")
    assert snapshot.observations[1].ref.endswith(".jpg")


@pytest.mark.parametrize("data", ["", "bm8gcGljdHVyZQ==", "/9j"])
async def test_a_picture_that_is_none_is_said_and_never_stored(
    site, driver, recorder, tmp_path, monkeypatch, data
):
    send = recorder._cdp.send

    async def spoilt(method, *arguments, **more):
        answer = await send(method, *arguments, **more)
        return {"data": data} if method == "Page.captureScreenshot" else answer

    monkeypatch.setattr(recorder._cdp, "send", spoilt)
    await driver.go(site.url + "/")
    snapshot = await recorder.observe(driver.target)
    assert kinds(snapshot) == ["text"]
    (error,) = snapshot.errors
    assert error.startswith("screenshot:")


async def test_state_of_the_last_action_is_captured_BL030(site, driver, recorder, tmp_path):
    """BL030: what the last of five actions changed is in the last snapshot."""
    site.pages["/"] = (
        "<button onclick=\"this.textContent = 'step ' + ++n\">step 0</button><script>n=0</script>"
    )
    await driver.go(site.url + "/")
    for n in range(1, 6):
        await driver.run("document.querySelector('button').click()")
        snapshot = await recorder.observe(driver.target)
        assert texts(snapshot, tmp_path) == [f"step {n}"]
        assert kinds(snapshot) == ["text", "screenshot"]


async def test_page_that_overrides_prototypes_cannot_lie(site, driver, recorder, tmp_path):
    site.pages["/"] = HOSTILE
    await driver.go(site.url + "/")
    assert await driver.run("document.querySelector ? JSON.stringify(1) : 0") == "a lie"
    snapshot = await recorder.observe(driver.target)
    assert snapshot.errors == ()
    assert snapshot.page.title == "Honest title"
    assert texts(snapshot, tmp_path) == ["real text"]
    assert "screenshot" in kinds(snapshot)


async def test_open_dialog_is_noted_at_once_and_never_answered(site, driver, recorder, tmp_path):
    site.pages["/"] = "<title>Asks</title><h1>before</h1>"
    await driver.go(site.url + "/")
    await recorder.observe(driver.target)
    opening = asyncio.create_task(driver.run("confirm('Delete all?'); 'answered'", timeout_s=8))
    await asyncio.sleep(0.4)
    snapshot, seconds = await timed(recorder.observe(driver.target))
    assert snapshot.errors == ("a dialog is open (confirm): Delete all?",)
    assert seconds < 1
    assert snapshot.page.url == site.url + "/"
    assert snapshot.page.title == "Asks"
    assert texts(snapshot, tmp_path, "dialog") == ["Delete all?"]
    await asyncio.sleep(0.3)
    assert not opening.done()
    await recorder._cdp.send(
        "Page.handleJavaScriptDialog",
        {"accept": True},
        session=await recorder._tabs.session(driver.target),
    )
    assert await opening == "answered"
    snapshot = await recorder.observe(driver.target)
    assert snapshot.errors == ()
    assert kinds(snapshot) == ["text", "screenshot"]


async def test_messages_of_answered_dialogs_are_recorded_even_if_alike(
    site, driver, recorder, tmp_path
):
    site.pages["/"] = "<p>Again?</p>"
    await driver.go(site.url + "/")
    await driver.cdp.send("Page.enable", session=driver.session)
    for _ in range(3):
        asking = asyncio.create_task(driver.run("confirm('Again?')"))
        await asyncio.sleep(0.2)
        answer = {"accept": False}
        await driver.cdp.send("Page.handleJavaScriptDialog", answer, session=driver.session)
        await asking
    snapshot = await recorder.observe(driver.target)
    assert snapshot.errors == ()
    assert texts(snapshot, tmp_path, "dialog") == ["Again?"] * 3
    assert texts(snapshot, tmp_path) == ["Again?"]
    assert texts(await recorder.observe(driver.target), tmp_path, "dialog") == []


async def test_dialog_that_opened_before_attaching_costs_a_bounded_time(
    site, chromium, driver, tmp_path
):
    site.pages["/"] = "<title>Asks</title>"
    await driver.go(site.url + "/")
    opening = asyncio.create_task(driver.run("alert('early')", timeout_s=8))
    await asyncio.sleep(0.3)
    recorder = await Recorder.connect(chromium.ws_url, tmp_path)
    snapshot, seconds = await timed(recorder.observe(driver.target))
    assert seconds < 2.3
    assert snapshot.page.url == site.url + "/"
    assert snapshot.errors
    await recorder.close()
    opening.cancel()
    await asyncio.gather(opening, return_exceptions=True)


async def test_endless_loop_costs_a_bounded_time(site, driver, recorder, tmp_path):
    site.pages["/loop"] = "<title>Busy</title><h1>x</h1>"
    await driver.go(site.url + "/loop")
    await recorder.observe(driver.target)
    await driver.run("setTimeout(() => { for (;;); }, 0)")
    await asyncio.sleep(0.1)
    snapshot, seconds = await timed(recorder.observe(driver.target))
    assert 1.5 < seconds < 2.3
    assert snapshot.page.url == site.url + "/loop"
    assert snapshot.page.title == "Busy"
    assert [e.split(":")[0] for e in snapshot.errors] == ["text", "screenshot"]
    assert snapshot.observations == ()


async def test_crashed_tab_is_skipped_at_once_and_seen_again_after_loading(
    site, driver, recorder, tmp_path
):
    site.pages["/"] = "<h1>alive</h1>"
    await driver.go(site.url + "/")
    crash = driver.cdp.send("Page.navigate", {"url": "chrome://crash"}, session=driver.session)
    await asyncio.gather(crash, return_exceptions=True)
    await eventually(lambda: recorder._tabs.crashed(driver.target))
    snapshot, seconds = await timed(recorder.observe(driver.target))
    assert snapshot.errors == ("the tab has crashed",)
    assert seconds < 1
    await driver.go(site.url + "/")
    snapshot = await recorder.observe(driver.target)
    assert (texts(snapshot, tmp_path), snapshot.errors) == (["alive"], ())


async def test_closed_tab_is_said_and_the_tab_in_front_is_recorded(
    site, driver, recorder, tmp_path
):
    site.pages |= {"/one": "one", "/two": "two"}
    await driver.go(site.url + "/one")
    second = await driver.open_tab(site.url + "/two")
    await driver.cdp.send("Target.closeTarget", {"targetId": second})
    await eventually(lambda: recorder._tabs.find(second) is None)
    snapshot = await recorder.observe(second)
    assert len(snapshot.errors) == 1
    assert f"tab {second} is closed" in snapshot.errors[0]
    assert texts(snapshot, tmp_path) == ["one"]
    assert snapshot.page.target_id == driver.target


async def test_popup_is_the_tab_in_front_when_no_tab_is_named(site, driver, recorder, tmp_path):
    site.pages |= {"/": "<a href=/popup target=_blank>open</a>", "/popup": "<h1>popup</h1>"}
    await driver.go(site.url + "/")
    click = {"expression": "document.querySelector('a').click()", "userGesture": True}
    await driver.cdp.send("Runtime.evaluate", click, session=driver.session)
    await eventually(lambda: len(recorder._tabs.open()) == 2)
    await asyncio.sleep(0.4)
    snapshot = await recorder.observe(None)
    assert texts(snapshot, tmp_path) == ["popup"]
    assert snapshot.page.url == site.url + "/popup"
    assert snapshot.page.tabs == (site.url + "/", site.url + "/popup")
    assert "screenshot" in kinds(snapshot)


async def test_hidden_tab_gives_text_only_and_stays_hidden(site, driver, recorder, tmp_path):
    site.pages |= {"/one": "<h1>one</h1>", "/two": "two"}
    await driver.go(site.url + "/one")
    await driver.open_tab(site.url + "/two")
    await asyncio.sleep(0.4)
    snapshot, seconds = await timed(recorder.observe(driver.target))
    assert texts(snapshot, tmp_path) == ["one"]
    assert kinds(snapshot) == ["text"]
    assert snapshot.errors == ("screenshot: the tab is in the background",)
    assert seconds < 1
    assert await driver.run("document.visibilityState") == "hidden"


async def test_text_of_same_origin_frames_and_shadow_roots_is_read(
    site, driver, recorder, tmp_path
):
    site.pages["/"] = """<p>outer</p><iframe src=/inner></iframe>
        <iframe src=/hidden style="display:none"></iframe>
        <iframe srcdoc="<p>in srcdoc</p>"></iframe><iframe src="data:text/html,foreign"></iframe>
        <x-box></x-box><script>
          const root = document.querySelector('x-box').attachShadow({mode: 'open'});
          root.innerHTML = '<style>p{color:red}</style><p>in the shadow</p>';
        </script>"""
    site.pages["/inner"] = "<p>inner</p><iframe src=/deep></iframe>"
    site.pages |= {"/deep": "<p>deep</p>", "/hidden": "<p>not shown</p>"}
    await driver.go(site.url + "/")
    snapshot = await recorder.observe(driver.target)
    assert texts(snapshot, tmp_path) == ["outer\ninner\ndeep\nin srcdoc\nin the shadow"]


async def test_long_text_is_clipped_and_its_length_recorded(site, driver, recorder, tmp_path):
    site.pages["/"] = "<pre>" + "x" * (MAX_CHARS + 5) + "</pre>"
    await driver.go(site.url + "/")
    snapshot = await recorder.observe(driver.target)
    (text,) = texts(snapshot, tmp_path)
    assert len(text) == MAX_CHARS
    assert snapshot.observations[0].n_chars == MAX_CHARS + 5
    await driver.run(f"document.body.firstChild.firstChild.data = 'y'.repeat({MAX_CHARS})")
    snapshot = await recorder.observe(driver.target)
    assert texts(snapshot, tmp_path) == ["y" * MAX_CHARS]
    assert snapshot.observations[0].n_chars is None


async def test_lone_surrogates_do_not_break_the_text(site, driver, recorder, tmp_path):
    site.pages["/"] = "<p></p><script>document.querySelector('p').textContent='a\\ud83db'</script>"
    await driver.go(site.url + "/")
    assert texts(await recorder.observe(driver.target), tmp_path) == ["a\ufffdb"]


async def test_document_id_changes_with_each_load_and_with_nothing_else(site, driver, recorder):
    site.pages["/"] = "<h1>x</h1>"
    await driver.go(site.url + "/")
    first = (await recorder.observe(driver.target)).page.document_id
    await driver.run("history.pushState(0, '', '/pushed'); document.body.innerHTML = 'rewritten'")
    pushed = (await recorder.observe(driver.target)).page
    assert pushed.url == site.url + "/pushed"
    assert pushed.document_id == first
    await driver.go(site.url + "/", until="document.querySelector('h1') !== null")
    second = (await recorder.observe(driver.target)).page.document_id
    assert None not in (first, second)
    assert first != second


async def test_failed_navigation_is_recorded_under_the_address_that_was_asked_for(driver, recorder):
    await driver.cdp.send("Page.navigate", {"url": "http://127.0.0.1:9/x"}, session=driver.session)
    await asyncio.sleep(0.3)
    snapshot = await recorder.observe(driver.target)
    assert snapshot.page.url == "http://127.0.0.1:9/x"


async def test_killed_browser_is_noticed_without_asking(chromium, driver, recorder):
    assert not recorder.lost
    chromium.kill()
    await eventually(lambda: recorder.lost)
    snapshot, seconds = await timed(recorder.observe(driver.target))
    assert seconds < 1
    assert snapshot.errors[0] == "the browser is gone: its socket closed"
    assert snapshot.observations == ()


async def test_closing_the_recorder_is_not_losing_the_browser(recorder):
    await recorder.close()
    await recorder.close()
    assert not recorder.lost


async def test_downloads_are_heard_of(site, driver, recorder):
    site.pages |= {"/": "<a href=/report.csv>get</a>", "/report.csv": "a,b\n1,2\n"}
    await driver.go(site.url + "/")
    await driver.run("document.querySelector('a').click()")
    await eventually(lambda: [d.state for d in recorder.downloads] == ["completed"])
    (download,) = recorder.downloads
    assert (download.name, download.url) == ("report.csv", site.url + "/report.csv")


async def test_probes_give_json_or_say_why_not(site, driver, recorder, tmp_path):
    site.pages["/"] = "<p id=x>7</p><script>var reward = 0.5; JSON.stringify = null;</script>"
    await driver.go(site.url + "/")
    scripts = {
        "dom": Probe(script="({n: Number(document.querySelector('#x').innerText), ok: [true, null]})"),
        "page": Probe(script="reward", world="page"),
        "later": Probe(script="new Promise(done => setTimeout(() => done('late'), 50))"),
        "isolated": Probe(script="typeof reward"),
        "throws": Probe(script="null.x"),
        "loops": Probe(script="for (;;);", world="page"),
        "never": Probe(script="new Promise(() => {})"),
        "nan": Probe(script="0 / 0"),
        "nothing": Probe(script="undefined"),
    }  # fmt: skip
    fine = {n: scripts[n] for n in ("dom", "page", "later", "isolated", "throws", "nan", "nothing")}
    snapshot = await recorder.run_probes(driver.target, fine)
    values = {
        o.name: json.loads((tmp_path / "evidence" / o.ref).read_bytes())
        for o in snapshot.observations
    }
    assert values == {
        "dom": {"n": 7, "ok": [True, None]},
        "page": 0.5,
        "later": "late",
        "isolated": "undefined",
    }
    assert set(kinds(snapshot)) == {"probe"}
    assert [e.split(":")[0] for e in snapshot.errors] == [
        "probe throws",
        "probe nan",
        "probe nothing",
    ]
    assert "TypeError" in snapshot.errors[0]
    for bad in ("loops", "never"):
        snapshot, seconds = await timed(recorder.run_probes(driver.target, {bad: scripts[bad]}))
        assert seconds < 2.3
        assert len(snapshot.errors) == 1
    assert await driver.run("1 + 1") == 2


async def test_agent_sees_nothing_of_the_recorder(site, driver, recorder):
    site.pages["/"] = (
        "<p>x</p><script>events = []; for (const e of ['focus', 'blur', 'visibilitychange', 'resize', 'scroll', 'mousemove']) addEventListener(e, () => events.push(e), true)</script>"
    )
    await driver.go(site.url + "/")
    before = await driver.run(
        "JSON.stringify([Object.keys(window).length, navigator.userAgent, innerWidth])"
    )
    for _ in range(3):
        await recorder.observe(driver.target)
    assert (
        await driver.run(
            "JSON.stringify([Object.keys(window).length, navigator.userAgent, innerWidth])"
        )
        == before
    )
    assert await driver.run("JSON.stringify(events)") == "[]"
