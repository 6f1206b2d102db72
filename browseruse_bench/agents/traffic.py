"""What a page is loading at the moment, from the events of its session."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import Any

from browseruse_bench.browsers.cdp import CDP

# Connections that are meant to stay open, and requests that nobody waits for.
_ENDLESS = {"EventSource", "WebSocket", "Ping", "Prefetch", "CSPViolationReport"}


class Traffic:
    """Open requests and loading frames of each session whose Network domain is enabled."""

    def __init__(self, cdp: CDP) -> None:
        """Listen on `cdp`."""
        self._requests: dict[str, dict[str, str]] = defaultdict(dict)
        self._frames: dict[str, set[str]] = defaultdict(set)
        self._changed: dict[str, float] = defaultdict(float)
        for method, callback in {
            "Network.requestWillBeSent": self._on_request,
            "Network.loadingFinished": self._on_finished,
            "Network.loadingFailed": self._on_finished,
            "Page.frameRequestedNavigation": self._on_requested,
            "Page.frameStartedLoading": self._on_started,
            "Page.frameStoppedLoading": self._on_stopped,
            "Page.frameDetached": self._on_stopped,
            "Page.frameNavigated": self._on_navigated,
        }.items():
            cdp.on(method, callback)

    def busy(self, session: str) -> bool:
        """Whether anything is being loaded."""
        return bool(self._requests[session] or self._frames[session])

    def last_change(self, session: str) -> float:
        """When a request or frame last started or ended, on the loop's clock; 0: never."""
        return self._changed[session]

    def _touch(self, session: str | None) -> str:
        self._changed[session or ""] = asyncio.get_running_loop().time()
        return session or ""

    def _on_request(self, params: dict[str, Any], session: str | None) -> None:
        if params.get("type") not in _ENDLESS:
            self._requests[self._touch(session)][params["requestId"]] = params["loaderId"]

    def _on_finished(self, params: dict[str, Any], session: str | None) -> None:
        self._requests[self._touch(session)].pop(params["requestId"], None)

    def _on_requested(self, _params: dict[str, Any], session: str | None) -> None:
        self._touch(session)

    def _on_started(self, params: dict[str, Any], session: str | None) -> None:
        self._frames[self._touch(session)].add(params["frameId"])

    def _on_stopped(self, params: dict[str, Any], session: str | None) -> None:
        self._frames[self._touch(session)].discard(params["frameId"])

    def _on_navigated(self, params: dict[str, Any], session: str | None) -> None:
        key = self._touch(session)
        if "parentId" in params["frame"]:
            return
        # The end of a replaced document's requests is not always told.
        loader = params["frame"]["loaderId"]
        self._requests[key] = {r: of for r, of in self._requests[key].items() if of == loader}
