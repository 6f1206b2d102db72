"""What the guard saw during one session: canaries that were tried, and hits."""

from __future__ import annotations

import asyncio
from typing import Any, Literal
from urllib.parse import urlsplit

from browseruse_bench.browsers.cdp import CDP
from browseruse_bench.errors import BrowserError
from browseruse_bench.records.trace import Guard, GuardHit

MAX_HITS = 100
"""Distinct hits that are kept of a session; further ones are only counted."""
REFUSED_PAGES = ("file:", "view-source:", "chrome:", "devtools:")
# Chromium opens these by itself.
_OWN_PAGES = ("chrome://newtab", "chrome://new-tab-page", "chrome://omnibox-popup")


class Watch:
    """Collects hits and canary results; filled in while the session goes on."""

    def __init__(self) -> None:
        """Nothing is seen yet."""
        self.probes: dict[str, Literal["blocked", "reached"]] = {}
        self.n_hits = 0
        self._hits: dict[tuple[str, str, str], int] = {}

    def hit(self, by: Literal["browser", "worker"], address: str, why: str) -> None:
        """Note that something was asked for that is not allowed."""
        self.n_hits += 1
        key = (by, _shown(address), why)
        if key in self._hits or len(self._hits) < MAX_HITS:
            self._hits[key] = self._hits.get(key, 0) + 1

    def settle(self, probe: str, *, reached: bool) -> None:
        """Note what came of trying a canary; no hit is kept of it.

        Raises:
            BrowserError: it was reached, so the guard does not hold.
        """
        self.probes[probe] = "reached" if reached else "blocked"
        self.forget()
        if reached:
            raise BrowserError(
                f"the guard does not hold: canary reached from inside ({probe}); "
                "use another --guard level, and report this"
            )

    def forget(self) -> None:
        """Drop the hits so far: they were the canaries' own."""
        self.n_hits = 0
        self._hits.clear()

    def fill(self, guard: Guard) -> Guard:
        """The guard's record with what was seen so far."""
        hits = tuple(
            GuardHit.model_validate({"by": by, "address": address, "why": why, "n": n})
            for (by, address, why), n in self._hits.items()
        )
        return guard.model_copy(
            update={"probes": dict(self.probes) or None, "hits": hits, "n_hits": self.n_hits}
        )


async def refuse_files(cdp: CDP, watch: Watch, *, timeout_s: float) -> None:
    """Let every load of a file: address fail, in every page, also behind view-source:.

    It holds for as long as the socket of `cdp` is open.

    Raises:
        BrowserError, TimeoutError: the browser does not do it.
    """
    failing: set[asyncio.Task[Any]] = set()

    def on_paused(params: dict[str, Any], session: str | None) -> None:
        url: str = params["request"]["url"]
        if not url.startswith("file:"):
            return  # another use of Fetch on the same socket
        watch.hit("browser", url, "file")
        call = {"requestId": params["requestId"], "errorReason": "BlockedByClient"}
        task = asyncio.create_task(_try(cdp, "Fetch.failRequest", call, session))
        failing.add(task)
        task.add_done_callback(failing.discard)

    cdp.on("Fetch.requestPaused", on_paused)
    patterns = {"patterns": [{"urlPattern": "file:*"}]}
    await cdp.send("Fetch.enable", patterns, timeout_s=timeout_s)


async def watch_pages(
    cdp: CDP, watch: Watch, *, turn: bool, context_id: str | None = None, timeout_s: float
) -> None:
    """Note each page of the browser's own schemes as a hit.

    Args:
        cdp: listens for as long as it is open.
        watch: where hits go.
        turn: whether such a page is turned to about:blank. It is there for a moment before:
            these pages show settings of the browser, and no answers.
        context_id: the browser context whose pages count; None: all.
        timeout_s: how long the browser may take to start telling.

    Raises:
        BrowserError, TimeoutError: the browser does not tell of its pages.
    """
    last: dict[str, str] = {}
    turning: set[asyncio.Task[Any]] = set()

    def on_info(params: dict[str, Any], _session: str | None) -> None:
        info = params["targetInfo"]
        url, target_id = info["url"], info["targetId"]
        foreign = context_id is not None and info.get("browserContextId") != context_id
        if info["type"] != "page" or foreign or last.get(target_id) == url:
            return
        last[target_id] = url
        if url.startswith(REFUSED_PAGES) and not _is_own(url):
            watch.hit("browser", url, "page")
            if not turn:
                return
            task = asyncio.create_task(_turn(cdp, target_id))
            turning.add(task)
            task.add_done_callback(turning.discard)

    def on_gone(params: dict[str, Any], _session: str | None) -> None:
        last.pop(params["targetId"], None)

    cdp.on("Target.targetCreated", on_info)
    cdp.on("Target.targetInfoChanged", on_info)
    cdp.on("Target.targetDestroyed", on_gone)
    await cdp.send("Target.setDiscoverTargets", {"discover": True}, timeout_s=timeout_s)


async def _turn(cdp: CDP, target_id: str) -> None:
    attach = {"targetId": target_id, "flatten": True}
    attached = await _try(cdp, "Target.attachToTarget", attach, None)
    if attached is not None:
        session = attached["sessionId"]
        await _try(cdp, "Page.navigate", {"url": "about:blank"}, session)
        await _try(cdp, "Target.detachFromTarget", {"sessionId": session}, None)


async def _try(
    cdp: CDP, method: str, params: dict[str, Any], session: str | None
) -> dict[str, Any] | None:
    """The result of a call; None if the page or the browser is gone meanwhile."""
    try:
        return await cdp.send(method, params, session=session)
    except (BrowserError, TimeoutError):
        return None


def _is_own(url: str) -> bool:
    return url.startswith(_OWN_PAGES) or ".top-chrome" in url[:80]


def _shown(address: str) -> str:
    """An address as a result may hold it: no user, password, query or fragment."""
    try:
        parts = urlsplit(address)
        bare = parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="")
    except ValueError:
        return address.partition("?")[0].rpartition("@")[2][:200]
    return bare.geturl()[:200]
