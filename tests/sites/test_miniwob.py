"""MiniWoB++ in a real browser: seeded episodes, of which one per page load counts."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
import urllib.request
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from browseruse_bench.browsers.base import SessionRequest
from browseruse_bench.browsers.cdp import CDP
from browseruse_bench.browsers.local import LocalChromium
from browseruse_bench.browsers.options import BrowserOptions
from browseruse_bench.errors import SiteError
from browseruse_bench.sites import miniwob

BUILDER = Path(__file__).parents[2] / "benchmarks" / "LocalSites"
SITE_SEED = 5


@dataclass
class Tab:
    cdp: CDP
    session: str

    async def open(self, address: str) -> None:
        """Returns when the page has loaded and its first episode goes on."""
        reply = await self.cdp.send("Page.navigate", {"url": address}, session=self.session)
        assert "errorText" not in reply, reply
        for _ in range(400):
            # Between two pages there is no context to ask in.
            loaded = "document.readyState === 'complete' && location.href"
            if await self.ask(loaded) == address:
                return
            await asyncio.sleep(0.01)
        raise AssertionError(f"{address} does not load")

    async def ask(self, script: str) -> Any:
        reply = await self.cdp.send(
            "Runtime.evaluate",
            {"expression": script, "returnByValue": True},
            session=self.session,
        )
        assert "exceptionDetails" not in reply, reply
        return reply["result"].get("value")

    async def episode(self) -> dict[str, Any]:
        return await self.ask("firstEpisode()")


@pytest.fixture
async def tab(tmp_path: Path) -> AsyncGenerator[Tab]:
    site = miniwob.MiniwobSite()
    request = SessionRequest(
        work=tmp_path / "w",
        downloads=tmp_path / "d",
        owner=tmp_path,
        hosts={miniwob.HOST: site.start(tmp_path, SITE_SEED)},
        fence=True,
    )
    async with LocalChromium(BrowserOptions()).open(request) as browser:
        cdp = await CDP.connect(browser.ws_url)
        attached = await cdp.send(
            "Target.attachToTarget", {"targetId": browser.target_id, "flatten": True}
        )
        yield Tab(cdp, attached["sessionId"])
        await cdp.close()
    site.stop()


def page(name: str, seed: int | None = None) -> str:
    query = "" if seed is None else f"?seed={seed}"
    return f"http://{miniwob.HOST}/miniwob/{name}.html{query}"


QUERY = "document.querySelector('#query').innerText"


@pytest.fixture(scope="module")
def builder() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BUILDER))
        from builder import miniwob as module

        yield module


def test_the_package_is_served_without_importing_it():
    script = """
import sys, pathlib, urllib.request
from browseruse_bench.sites.miniwob import MiniwobSite
site = MiniwobSite()
host, port = site.start(pathlib.Path("."), 1)
urllib.request.urlopen(f"http://{host}:{port}/miniwob/click-test.html").read()
site.stop()
print([name for name in ("miniwob", "selenium", "gymnasium") if name in sys.modules])
"""
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert ended.stdout == "[]\n"


def test_only_the_core_is_changed_and_only_at_its_end(tmp_path: Path):
    site = miniwob.MiniwobSite()
    host, port = site.start(tmp_path, SITE_SEED)
    try:
        for path in sorted(p for p in miniwob.pages().rglob("*") if p.is_file())[::20] + [
            miniwob.pages() / "core" / "core.js"
        ]:
            name = path.relative_to(miniwob.pages()).as_posix()
            with urllib.request.urlopen(f"http://{host}:{port}/{name}", timeout=10) as reply:
                served = reply.read()
            assert served.startswith(path.read_bytes())
            assert (served == path.read_bytes()) == (name != "core/core.js")
    finally:
        site.stop()
    assert not miniwob.MiniwobSite.stateful


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("PACKAGE", "no_such_package_anywhere", "needs no_such_package_anywhere .*found none"),
        ("VERSION", "0.1", r"needs miniwob 0\.1, found \d.*install it with: pip install"),
    ],
)
def test_a_missing_or_other_package_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, says: str
):
    monkeypatch.setattr(miniwob, name, value)
    with pytest.raises(SiteError, match=says):
        miniwob.pages()


@pytest.mark.browser
async def test_the_episode_follows_from_the_seed_alone(tab: Tab):
    said: dict[int | None, set[str]] = {}
    for seed in (3, 9, None, 3, SITE_SEED, 9, None):
        await tab.open("about:blank")
        await tab.open(page("search-engine", seed))
        said.setdefault(seed, set()).add(await tab.ask(QUERY))
    assert all(len(texts) == 1 for texts in said.values())
    assert said[None] == said[SITE_SEED] != said[3] != said[9]


@pytest.mark.browser
async def test_the_episode_goes_on_without_a_click_on_start(tab: Tab):
    await tab.open(page("click-test", 1))
    cover = "getComputedStyle(document.querySelector('#sync-task-cover')).display"
    assert await tab.ask(cover) == "none"
    assert await tab.episode() == {
        "page": "miniwob.test/miniwob/click-test.html",
        "seed": "1",
        "done": False,
        "raw_reward": 0,
    }


@pytest.mark.browser
async def test_a_page_cannot_shorten_the_episode(tab: Tab):
    await tab.open(page("book-flight-nodelay", 3))
    assert await tab.ask("core.EPISODE_MAX_TIME") == miniwob.EPISODE_LIMIT_MS
    limit = "document.querySelector('#timer-countdown').innerText.split(' / ')[1]"
    deadline = time.monotonic() + 10  # the page counts in turns of its own
    while (shown := await tab.ask(limit)) is None and time.monotonic() < deadline:
        await asyncio.sleep(0.02)
    assert shown == f"{miniwob.EPISODE_LIMIT_MS // 1000}sec"


@pytest.mark.browser
async def test_the_reward_is_raw_and_that_of_the_first_episode(tab: Tab):
    await tab.open(page("click-test", 1))
    # The core lowers the reward with time; an hour later there would be little left of it.
    await tab.ask("core.ept0 -= 3600 * 1000 * 23; core.endEpisode(1, true)")
    assert await tab.ask("WOB_REWARD_GLOBAL") < 0.1
    first = await tab.episode()
    assert (first["done"], first["raw_reward"]) == (True, 1)
    await tab.ask("core.startEpisodeReal(); core.endEpisode(-1)")
    assert await tab.ask("WOB_RAW_REWARD_GLOBAL") == -1
    assert await tab.episode() == first


@pytest.mark.browser
async def test_a_finished_episode_stays_and_a_click_begins_no_other(tab: Tab):
    await tab.open(page("click-test", 1))
    await tab.ask("document.querySelector('#subbtn').click()")
    asked = await tab.ask(QUERY)
    assert await tab.ask("document.querySelector('#sync-task-cover').innerText") == "FINISHED"
    await tab.ask("document.querySelector('#sync-task-cover').click()")
    assert (await tab.episode())["raw_reward"] == 1
    assert await tab.ask(QUERY) == asked
    assert await tab.ask("WOB_DONE_GLOBAL") is True


@pytest.mark.slow
@pytest.mark.browser
async def test_every_page_of_the_package_starts(tab: Tab):
    names = sorted(path.stem for path in (miniwob.pages() / "miniwob").glob("*.html"))
    assert len(names) > 100
    for name in names:
        await tab.open(page(name, 1))
        episode = await tab.episode()
        assert (episode["page"], episode["done"]) == (f"miniwob.test/miniwob/{name}.html", False)
        assert await tab.ask("core.EP_TIMER !== null"), name


@pytest.mark.browser
async def test_every_instruction_is_what_the_tasks_say(tab: Tab, builder: Any):
    for draft in builder.drafts():
        await tab.open(draft.start_url)
        assert await tab.ask(QUERY) == draft.facts[0]["quote"], draft.task_id


@pytest.mark.browser
async def test_the_probe_is_met_by_its_own_page_and_seed_only(tab: Tab, builder: Any):
    script = builder.PROBES["miniwob"]["script"]
    one, other = (d for d in builder.drafts() if d.template == "miniwob-mail")
    wanted = one.items[0]["check"]["equals"]
    assert await tab.ask(script) == {"done": False}
    for address, same in ((one.start_url, True), (other.start_url, False)):
        await tab.open(address)
        assert await tab.ask(script) != wanted
        await tab.ask("core.endEpisode(1)")
        assert (await tab.ask(script) == wanted) is same
