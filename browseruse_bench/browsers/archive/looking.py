"""One look at one page: opened, at rest, and kept as text, MHTML and picture.

The text is that of the recorder, and behind it that of each frame of another origin, which a
script of the page cannot read. It is what a person sees, so it is what a quote is looked for in.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from browseruse_bench.browsers.archive.cleaning import Cleaning
from browseruse_bench.browsers.cdp import CDP
from browseruse_bench.browsers.recorder import PAGE_TEXT
from browseruse_bench.browsers.tabs import raise_if_thrown
from browseruse_bench.errors import BrowserError
from browseruse_bench.records.archived import ArchivedPage
from browseruse_bench.store.archive.pages import Part

_CALL_S = 15.0
_POLL_S = 0.05
_MAX_HEIGHT = 4_000
"""Pixels of a picture; what lies below is in text and MHTML alone."""
_ENDLESS = frozenset({"text/event-stream", "multipart/x-mixed-replace"})
"""Media types of answers that a page at rest may still be getting."""
_PASSWORD = """
(() => [...document.querySelectorAll('input[type=password]')].some((field) => field.checkVisibility()))()
"""


@dataclass(frozen=True, kw_only=True)
class Patience:
    """How long a look may take, in seconds."""

    load_s: float = 30.0
    """Until the document is there."""
    rest_s: float = 10.0
    """After that, until it has come to rest."""
    quiet_s: float = 0.5
    """How long nothing must be on its way for it to be at rest."""
    request_s: float = 4.0
    """What was asked for longer ago is not waited for: the page may be told of new mail only
    tomorrow, and of a worker's script it is never told that it came."""


class Unreachable(BrowserError):  # noqa: N818  it is what the look found, not a fault of ours
    """There is no page to be seen: nobody answers, or not in time."""


class Look(NamedTuple):
    """What was seen."""

    page: ArchivedPage
    parts: Mapping[Part, bytes]
    text: str


class Looker:
    """Looks at pages in one tab; made by `attach`."""

    def __init__(self, cdp: CDP, session: str, cleaning: Cleaning) -> None:
        """Drive the tab behind `session`."""
        self._cdp = cdp
        self._session = session
        self._cleaning = cleaning
        self._open: dict[str, float] = {}
        """Request -> when it was sent."""
        self._since = 0.0
        self._status: dict[str, int] = {}
        self._calls: set[asyncio.Task[object]] = set()
        self._frames: dict[str, str] = {}
        """Session -> target of each frame of another origin, the outer ones first."""

    @classmethod
    async def attach(cls, ws_url: str, target_id: str, cleaning: Cleaning) -> Looker:
        """Drive the tab `target_id` over a socket of its own.

        Raises:
            BrowserError, TimeoutError: it cannot be attached to.
        """
        cdp = await CDP.connect(ws_url)
        try:
            attach = {"targetId": target_id, "flatten": True}
            session: str = (await cdp.send("Target.attachToTarget", attach))["sessionId"]
            looker = cls(cdp, session, cleaning)
            looker._listen()
            for domain in ("Page", "Network"):
                await cdp.send(f"{domain}.enable", session=session, timeout_s=_CALL_S)
            await looker._follow_frames(session)
        except BaseException:  # cancelled, too, the socket must not stay open
            await cdp.close()
            raise
        return looker

    async def close(self) -> None:
        """Let go of the tab."""
        await self._cdp.close()

    async def visit(self, url: str, patience: Patience) -> Look:
        """Open an address and look at it once it is at rest, or when patience is over.

        Raises:
            Unreachable: nobody answers, or not in time.
            BrowserError, TimeoutError: the browser does not do it.
        """
        await self.go(url, patience)
        settled = await self._rest(patience)
        return await self.look(url, settled=settled, by_address=True)

    async def go(self, url: str, patience: Patience) -> None:
        """Open an address; on return its document is being read.

        Raises:
            Unreachable: nobody answers, or not in time.
        """
        self._open.clear()
        self._touch()
        try:
            call = {"url": url}
            answer = await self._send("Page.navigate", call, timeout_s=patience.load_s)
        except TimeoutError:
            raise Unreachable(f"{url}: no answer within {patience.load_s:g} s") from None
        if problem := answer.get("errorText"):
            raise Unreachable(f"{url}: {problem}")

    async def look(self, url: str, *, settled: bool = True, by_address: bool = False) -> Look:
        """What the tab shows now.

        Args:
            url: that was asked for.
            settled: whether the page is at rest.
            by_address: whether nothing was done but to open the address.

        Raises:
            BrowserError, TimeoutError: it cannot be read.
        """
        reading = await self._evaluate(PAGE_TEXT)
        asks_login = bool(await self._evaluate(_PASSWORD))
        texts = [str(reading["text"]), *await self._texts_of_frames()]
        text = self._cleaning.text("\n".join(part for part in texts if part))
        parts: dict[Part, bytes] = {"text": text.encode("utf-8", "replace")}
        parts |= await self._rendered()
        final = self._cleaning.text(str(reading["url"]))
        page = ArchivedPage(
            url=self._cleaning.text(url),
            final_url=final,
            title=self._cleaning.text(str(reading["title"])),
            at=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            status=self._status.get(str(reading["url"]).partition("#")[0]),
            n_chars=len(text),
            asks_login=asks_login,
            settled=settled,
            by_address=by_address,
            **{part: hashlib.sha256(content).hexdigest() for part, content in parts.items()},
        )
        return Look(page, parts, text)

    def _listen(self) -> None:
        self._cdp.on("Network.requestWillBeSent", self._on_request)
        for event in ("Network.loadingFinished", "Network.loadingFailed"):
            self._cdp.on(event, self._on_finished)
        self._cdp.on("Network.responseReceived", self._on_response)
        self._cdp.on("Page.javascriptDialogOpening", self._on_dialog)
        self._cdp.on("Target.attachedToTarget", self._on_frame)
        self._cdp.on("Target.detachedFromTarget", self._on_frame_gone)

    async def _follow_frames(self, session: str) -> None:
        call = {"autoAttach": True, "waitForDebuggerOnStart": False, "flatten": True}
        await self._send("Target.setAutoAttach", call, session=session)

    async def _rest(self, patience: Patience) -> bool:
        """Whether the page came to rest before patience was over."""
        loop = asyncio.get_running_loop()
        end = loop.time() + patience.rest_s
        while loop.time() < end:
            since = loop.time() - patience.request_s
            waits = any(sent > since for sent in self._open.values())
            quiet = not waits and loop.time() - self._since >= patience.quiet_s
            if quiet and await self._evaluate("document.readyState") == "complete":
                return True
            await asyncio.sleep(_POLL_S)
        return False

    async def _texts_of_frames(self) -> list[str]:
        texts: list[str] = []
        for session in tuple(self._frames):
            try:
                reading = await self._evaluate(PAGE_TEXT, session=session)
            except (BrowserError, TimeoutError):
                continue  # it went away, or is being replaced
            texts.append(str(reading["text"]))
        return texts

    async def _rendered(self) -> dict[Part, bytes]:
        """The page as MHTML and picture, each where the browser gives it."""
        # Where one is missing, ArchivedPage says so.
        parts: dict[Part, bytes] = {}
        with contextlib.suppress(BrowserError, TimeoutError):
            answer = await self._send("Page.captureSnapshot", {"format": "mhtml"})
            content = str(answer["data"]).encode("utf-8", "replace")
            parts["mhtml"] = self._cleaning.mhtml(content)
        with contextlib.suppress(BrowserError, TimeoutError):
            parts["png"] = await self._picture()
        return parts

    async def _picture(self) -> bytes:
        size = (await self._send("Page.getLayoutMetrics"))["cssContentSize"]
        clip = {
            "x": 0,
            "y": 0,
            "width": max(1, size["width"]),
            "height": max(1, min(size["height"], _MAX_HEIGHT)),
            "scale": 1,
        }
        call = {"format": "png", "clip": clip, "captureBeyondViewport": True}
        return base64.b64decode((await self._send("Page.captureScreenshot", call))["data"])

    async def _evaluate(self, script: str, *, session: str | None = None) -> Any:
        session = session or self._session
        frame = (await self._send("Page.getFrameTree", session=session))["frameTree"]["frame"]
        world = {"frameId": frame["id"], "worldName": "bubench"}
        made = await self._send("Page.createIsolatedWorld", world, session=session)
        call = {
            "expression": script,
            "contextId": made["executionContextId"],
            "returnByValue": True,
        }
        answer = await self._send("Runtime.evaluate", call, session=session)
        raise_if_thrown(answer)
        return answer["result"].get("value")

    async def _send(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        *,
        session: str | None = None,
        timeout_s: float = _CALL_S,
    ) -> dict[str, Any]:
        return await self._cdp.send(
            method, params, session=session or self._session, timeout_s=timeout_s
        )

    def _touch(self) -> None:
        self._since = asyncio.get_running_loop().time()

    def _on_request(self, event: dict[str, Any], _session: str | None) -> None:
        if event.get("type") not in ("EventSource", "WebSocket", "Ping"):
            self._open[event["requestId"]] = asyncio.get_running_loop().time()
        self._touch()

    def _on_finished(self, event: dict[str, Any], _session: str | None) -> None:
        self._open.pop(event["requestId"], None)
        self._touch()

    def _on_response(self, event: dict[str, Any], session: str | None) -> None:
        # The end of a frame of another origin is told elsewhere.
        if event["response"]["mimeType"] in _ENDLESS or event["type"] == "Document":
            self._open.pop(event["requestId"], None)
        if event["type"] == "Document" and session == self._session:
            response = event["response"]
            self._status[response["url"].partition("#")[0]] = int(response["status"])

    def _on_dialog(self, _event: dict[str, Any], session: str | None) -> None:
        """Dismiss it: the page stands still until then, and there is nobody to ask."""
        dismiss = self._send("Page.handleJavaScriptDialog", {"accept": False}, session=session)
        self._in_passing(dismiss)

    def _in_passing(self, call: Coroutine[Any, Any, object]) -> None:
        """Make a call whose page or frame may have gone meanwhile."""
        task = asyncio.create_task(call)
        self._calls.add(task)
        task.add_done_callback(self._calls.discard)
        task.add_done_callback(lambda done: done.cancelled() or done.exception())

    def _on_frame(self, event: dict[str, Any], _session: str | None) -> None:
        if event["targetInfo"]["type"] != "iframe":
            return
        session: str = event["sessionId"]
        self._frames[session] = event["targetInfo"]["targetId"]
        self._in_passing(self._follow_frames(session))

    def _on_frame_gone(self, event: dict[str, Any], _session: str | None) -> None:
        self._frames.pop(event["sessionId"], None)
