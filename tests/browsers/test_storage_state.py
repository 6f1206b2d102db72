import json

import pytest

from browseruse_bench.browsers.base import SessionRequest
from browseruse_bench.browsers.cdp import CDP
from browseruse_bench.browsers.local import LocalChromium
from browseruse_bench.browsers.options import BrowserOptions
from browseruse_bench.browsers.storage_state import apply_storage_state, read_storage_state
from browseruse_bench.errors import BrowserError, DataError

SECRET = "planted-secret-value"


def write(tmp_path, state):
    path = tmp_path / "state.json"
    path.write_text(json.dumps(state))
    return path


def cookie(**changed):
    return {
        "name": "session",
        "value": SECRET,
        "domain": "shop.test",
        "path": "/",
        "expires": -1,
        "httpOnly": False,
        "secure": False,
        "sameSite": "Lax",
    } | changed


def stored(origin, value=SECRET):
    return {"origin": origin, "localStorage": [{"name": "token", "value": value}]}


def test_a_state_as_playwright_writes_it_is_read(tmp_path):
    state = read_storage_state(
        write(tmp_path, {"cookies": [cookie()], "origins": [stored("http://shop.test")]})
    )
    assert state.cookies[0].value == SECRET
    assert state.origins[0].localStorage[0].name == "token"


@pytest.mark.parametrize(
    ("state", "place"),
    [
        ({"cookies": [cookie(value=7)]}, "cookies[0].value"),
        ({"cookies": [cookie(), cookie(sameSite=SECRET)]}, "cookies[1].sameSite"),
        ({"cookies": [cookie(expires=SECRET)]}, "cookies[0].expires"),
        ({"cookies": [{"name": "n", "value": SECRET}]}, "cookies[0].domain"),
        ({"origins": [stored(f"shop.test/{SECRET}")]}, "origins[0].origin"),
        ({"origins": [stored("http://shop.test", [SECRET])]}, "origins[0].localStorage[0].value"),
        (
            {"origins": [stored("http://a.test") | {"indexedDB": [{"name": SECRET}]}]},
            "origins[0].indexedDB",
        ),
        ([SECRET], "the file"),
    ],
)
def test_a_wrong_field_is_named_and_no_value_is_shown(tmp_path, state, place):
    with pytest.raises(DataError) as caught:
        read_storage_state(write(tmp_path, state))
    assert place in str(caught.value)
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None


def test_all_wrong_fields_are_named_at_once(tmp_path):
    state = {"cookies": [cookie(name=1)], "origins": [stored("x")]}
    with pytest.raises(DataError) as caught:
        read_storage_state(write(tmp_path, state))
    assert len(caught.value.problems) == 2


def test_a_missing_file_is_said(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        read_storage_state(tmp_path / "absent.json")


@pytest.mark.browser
async def test_a_page_of_a_site_sees_its_cookie_and_its_local_storage(tmp_path, site):
    site.pages["/"] = "<title>t</title>"
    tricky = "quo\"te ' </script> \u2028 ü"
    state = {
        "cookies": [cookie(), cookie(name="other", domain="else.test")],
        "origins": [stored("http://shop.test", tricky), stored("https://safe.test")],
    }
    port = int(site.url.rpartition(":")[2])
    request = SessionRequest(
        work=tmp_path / "work", downloads=tmp_path / "downloads", owner=tmp_path,
        hosts={"shop.test": ("127.0.0.1", port)}, fence=True, storage_state=write(tmp_path, state),
    )  # fmt: skip
    async with LocalChromium(BrowserOptions()).open(request) as session:
        cdp = await CDP.connect(session.ws_url)
        targets = (await cdp.send("Target.getTargets"))["targetInfos"]
        pages = [t["targetId"] for t in targets if t["type"] == "page"]
        assert pages == [session.target_id]
        attach = {"targetId": session.target_id, "flatten": True}
        of = (await cdp.send("Target.attachToTarget", attach))["sessionId"]
        await cdp.send("Page.navigate", {"url": "http://shop.test/"}, session=of)
        for _ in range(100):
            call = {"expression": "[document.cookie, localStorage.token]", "returnByValue": True}
            result = await cdp.send("Runtime.evaluate", call, session=of)
            if "value" in result["result"]:
                break
        assert result["result"]["value"] == [f"session={SECRET}", tricky]
        cookies = (await cdp.send("Storage.getCookies"))["cookies"]
        assert {c["domain"] for c in cookies} == {"shop.test", "else.test"}
        await cdp.close()
    # What put the storage there asked the site nothing; only the page itself did.
    assert [path for path in site.asked if path != "/favicon.ico"] == ["/"]


@pytest.mark.browser
async def test_a_cookie_that_the_browser_refuses_is_named_by_its_place(tmp_path, chromium):
    refused = cookie(name="__Host-x", secure=False)
    path = write(tmp_path, {"cookies": [cookie(), refused]})
    cdp = await CDP.connect(chromium.ws_url)
    with pytest.raises(BrowserError, match=r"cookies\[1\]") as caught:
        await apply_storage_state(cdp, read_storage_state(path))
    assert SECRET not in str(caught.value)
    await cdp.close()


@pytest.mark.browser
async def test_an_origin_that_cannot_be_opened_is_named_by_its_place(tmp_path, chromium):
    path = write(tmp_path, {"origins": [stored("http://a.test"), stored("http://[x]")]})
    cdp = await CDP.connect(chromium.ws_url)
    with pytest.raises(BrowserError, match=r"origins\[1\]") as caught:
        await apply_storage_state(cdp, read_storage_state(path))
    assert SECRET not in str(caught.value)
    targets = (await cdp.send("Target.getTargets"))["targetInfos"]
    assert len([t for t in targets if t["type"] == "page"]) == 1
    await cdp.close()


@pytest.mark.browser
@pytest.mark.slow
async def test_more_than_an_origin_may_store_is_named_by_its_place(tmp_path, chromium):
    path = write(tmp_path, {"origins": [stored("http://shop.test", "x" * 6_000_000)]})
    cdp = await CDP.connect(chromium.ws_url)
    with pytest.raises(BrowserError, match=r"origins\[0\]"):
        await apply_storage_state(cdp, read_storage_state(path))
    await cdp.close()
