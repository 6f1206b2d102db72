"""The recorder: what the harness itself sees of an agent's browser after each action.

It is a second, passive client of the browser. It attaches to pages and asks for their text
and picture; it never answers a dialog, pauses a request, emulates a device or brings a tab
to the front, so an agent cannot tell whether it is there.

Evidence goes to evidence/ of the trace's folder:

- text: what the page shows (innerText of the top document, its same-origin frames and open
  shadow roots), read in an isolated world, where nothing that the page overrides counts. The
  values of form fields are not in it: they are what the agent typed.
- screenshot: JPEG of quality 80. Over real pages it takes the browser as long as a PNG, is
  half as large, and so halves what the harness decodes, hashes, stores and sends to a judge.
- text named `dialog`: the messages of JavaScript dialogs that opened since the last look.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from browseruse_bench.browsers.cdp import CDP
from browseruse_bench.browsers.tabs import FileDownload, OpenDialog, Tab, Tabs
from browseruse_bench.errors import BrowserError, boundary
from browseruse_bench.records.base import canonical_json
from browseruse_bench.records.data_info import Probe
from browseruse_bench.records.trace import Observation, Page
from browseruse_bench.store.redact import Redaction, Redactor
from browseruse_bench.store.trace_folder import put_evidence

MAX_CHARS = 200_000
"""Longer texts are clipped (in UTF-16 units, as a browser counts); n_chars says how long."""
SNAPSHOT_S = 2.0
"""The longest that one look may take in all."""
PROBE_S = 2.0
"""The longest that all probes together may take; they run at the same time."""

PAGE_TEXT = (
    Path(__file__)
    .with_name("page_text.js")
    .read_text(encoding="utf-8")
    .replace("MAX_CHARS", str(MAX_CHARS))
)
"""A script that gives {url, title, visible, n_chars, text} of the page it runs in."""

_JPEG = b"\xff\xd8\xff"
_SCREENSHOT = {"format": "jpeg", "quality": 80, "optimizeForSpeed": True}
_VISIBLE_S = 0.5


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """The state of the browser at one moment."""

    page: Page
    observations: tuple[Observation, ...]
    errors: tuple[str, ...]
    """What could not be seen, and why."""


class Recorder:
    """Attached to one browser for one attempt; made by `connect`."""

    def __init__(self, cdp: CDP, tabs: Tabs, folder: Path, redaction: Redaction) -> None:
        """Record what `tabs` shows into the trace folder `folder`, as `redaction` leaves it."""
        self._cdp = cdp
        self._tabs = tabs
        self._folder = folder
        self._redaction = redaction
        self._closing = False
        self._said: list[OpenDialog] = []
        tabs.on_dialog = lambda _target, _session, dialog: self._said.append(dialog)

    @classmethod
    async def connect(
        cls, ws_url: str, folder: Path, redaction: Redaction | None = None
    ) -> Recorder:
        """Attach to the browser behind a browser-level CDP socket.

        Args:
            ws_url: the socket's address.
            folder: of the trace; evidence goes below it.
            redaction: takes our own secrets out of texts and addresses; default: nothing.

        Raises:
            BrowserError, TimeoutError: it does not answer.
        """
        cdp = await CDP.connect(ws_url)
        tabs = Tabs(cdp)
        recorder = cls(cdp, tabs, folder, redaction or Redaction(Redactor.of(())))
        try:
            await tabs.start()
        except BaseException:
            await cdp.close()
            raise
        return recorder

    @property
    def lost(self) -> bool:
        """Whether the browser's socket closed although `close` was not called."""
        return self._cdp.closed and not self._closing

    @property
    def downloads(self) -> tuple[FileDownload, ...]:
        """All downloads so far, in the order in which they began."""
        return self._tabs.downloads

    async def observe(self, target_id: str | None) -> Snapshot:
        """The state now, within SNAPSHOT_S; a page that cannot be seen is noted.

        Args:
            target_id: the agent's tab; None, or one that is closed: the tab in front.
        """
        deadline = _now() + SNAPSHOT_S
        errors: list[str] = []
        tab = await self._choose(target_id, deadline, errors)
        page, observations = self._page(tab, None), list[Observation]()
        if tab is not None:
            page = await self._look(tab, deadline, observations, errors)
        # One after the other: two dialogs may say the same, and then share a file.
        observations += [await self._keep_dialog(dialog) for dialog in self._take_said()]
        return Snapshot(page=page, observations=tuple(observations), errors=tuple(errors))

    async def run_probes(self, target_id: str | None, probes: Mapping[str, Probe]) -> Snapshot:
        """Run scripts in the page; each result is evidence, as canonical JSON.

        A script that throws, hangs or gives no JSON value is noted in `errors`.
        """
        deadline = _now() + PROBE_S
        errors: list[str] = []
        tab = await self._choose(target_id, deadline, errors)
        page = self._page(tab, None)
        if tab is None:
            return Snapshot(page=page, observations=(), errors=tuple(errors))
        results = await asyncio.gather(
            *(self._probe(tab, probe, deadline) for probe in probes.values())
        )
        kept: list[Observation] = []
        for name, (result, error) in zip(probes, results, strict=True):
            if error is not None:
                errors.append(f"probe {name}: {error}")
            else:
                kept.append(await self._keep("probe", result, "json", page.url, name=name))
        return Snapshot(page=page, observations=tuple(kept), errors=tuple(errors))

    async def close(self) -> None:
        """Detach; may be called again. The browser goes on."""
        self._closing = True
        await self._cdp.close()

    async def _choose(
        self, target_id: str | None, deadline: float, errors: list[str]
    ) -> Tab | None:
        if self.lost:
            errors.append("the browser is gone: its socket closed")
        else:
            try:
                await self._tabs.refresh(timeout_s=deadline - _now())
            except (BrowserError, TimeoutError) as error:
                errors.append(f"the browser does not answer: {error}")
        tab = self._tabs.find(target_id) if target_id is not None else None
        if tab is not None:
            return tab
        if target_id is not None:
            errors.append(f"the agent's tab {target_id} is closed; this is the tab in front")
        tabs = self._tabs.open()
        if not tabs:
            errors.append("no page is open")
            return None
        return await self._in_front(tabs, deadline)

    async def _in_front(self, tabs: tuple[Tab, ...], deadline: float) -> Tab:
        if len(tabs) == 1 or self._cdp.closed:
            return tabs[-1]
        limit_s = max(0.0, min(_VISIBLE_S, deadline - _now()))
        seen = await asyncio.gather(*(self._is_visible(tab, limit_s) for tab in tabs))
        # Exactly one tab is in front; if none says so, it is one that cannot answer.
        for wanted in (True, None):
            for tab, visible in zip(reversed(tabs), reversed(seen), strict=True):
                if visible is wanted:
                    return tab
        return tabs[-1]

    async def _is_visible(self, tab: Tab, limit_s: float) -> bool | None:
        if self._blocked(tab):
            return None
        script = "document.visibilityState === 'visible'"
        try:
            return bool(await self._tabs.evaluate(tab.target_id, script, timeout_s=limit_s))
        except (BrowserError, TimeoutError):
            return None  # it cannot say; what is wrong with it is noted when it is looked at

    def _blocked(self, tab: Tab) -> str | None:
        if self._tabs.crashed(tab.target_id):
            return "the tab has crashed"
        dialog = self._tabs.dialog(tab.target_id)
        return str(dialog) if dialog else None

    async def _look(
        self, tab: Tab, deadline: float, observations: list[Observation], errors: list[str]
    ) -> Page:
        """Fill in what this tab shows and what could not be seen of it."""
        blocked = self._blocked(tab)
        if blocked or self._cdp.closed:
            errors += [blocked] if blocked else []
            return self._page(tab, None)
        shooting = asyncio.create_task(self._shoot(tab, deadline))
        page, visible = self._page(tab, None), True
        try:
            try:
                reading = await self._read(tab, deadline)
                page, visible = self._page(tab, reading), reading["visible"]
                observations.append(await self._keep_text(reading, page.url))
            except (BrowserError, TimeoutError) as error:
                errors.append(f"text: {error}")
            if not visible:
                # The browser would give it only after the tab is brought to the front.
                errors.append("screenshot: the tab is in the background")
                return page
            try:
                observations.append(await self._keep("screenshot", await shooting, "jpg", page.url))
            except (BrowserError, TimeoutError) as error:
                errors.append(f"screenshot: {error}")
        finally:
            shooting.cancel()
        return page

    async def _read(self, tab: Tab, deadline: float) -> dict[str, Any]:
        left = max(0.0, deadline - _now())
        reading = await self._tabs.evaluate(tab.target_id, PAGE_TEXT, timeout_s=left)
        left = max(0.0, deadline - _now())
        document_id = await self._tabs.document_id(tab.target_id, timeout_s=left)
        return {**reading, "document_id": document_id}

    async def _shoot(self, tab: Tab, deadline: float) -> bytes:
        session = await self._tabs.session(tab.target_id, timeout_s=max(0.0, deadline - _now()))
        answer = await self._cdp.send(
            "Page.captureScreenshot",
            _SCREENSHOT,
            session=session,
            timeout_s=max(0.0, deadline - _now()),
        )
        with boundary(BrowserError, "the picture that the browser gave"):
            picture = base64.b64decode(answer["data"])
        if not picture.startswith(_JPEG):
            raise BrowserError(f"the browser gave no picture but {len(picture)} other bytes")
        return picture

    def _page(self, tab: Tab | None, reading: dict[str, Any] | None) -> Page:
        tabs = self._tabs.open()
        if tab is None:
            return Page(tabs=tuple(self._redaction.place(t.url) for t in tabs))
        url, title, document_id = tab.url, tab.title, None
        if reading is not None:
            document_id = reading["document_id"]
        # A page that could not be loaded calls itself chrome-error://chromewebdata/.
        if reading is not None and not reading["url"].startswith("chrome-error:"):
            url, title = reading["url"], reading["title"]
        place = self._redaction.place
        return Page(
            target_id=tab.target_id,
            url=place(url),
            title=place(title),
            tabs=tuple(place(url if t.target_id == tab.target_id else t.url) for t in tabs),
            document_id=document_id,
        )

    async def _probe(self, tab: Tab, probe: Probe, deadline: float) -> tuple[bytes, str | None]:
        blocked = self._blocked(tab)
        if blocked:
            return b"", blocked
        try:
            value = await self._tabs.evaluate(
                tab.target_id,
                probe.script,
                timeout_s=max(0.0, deadline - _now()),
                world=probe.world,
            )
            result = self._redaction.seen(canonical_json(value))
            return result.encode("utf-8", "replace"), None
        except (BrowserError, TimeoutError) as error:
            return b"", str(error)

    async def _keep_text(self, reading: dict[str, Any], url: str) -> Observation:
        n_chars = reading["n_chars"]
        return await self._keep(
            "text",
            self._redaction.seen(reading["text"]).encode("utf-8", "replace"),
            "txt",
            url,
            n_chars=n_chars if n_chars > MAX_CHARS else None,
        )

    async def _keep_dialog(self, dialog: OpenDialog) -> Observation:
        text = self._redaction.seen(dialog.message).encode("utf-8", "replace")
        url = self._redaction.place(dialog.url)
        return await self._keep("text", text, "txt", url, name="dialog")

    async def _keep(
        self, kind: Any, content: bytes, suffix: str, url: str, **more: Any
    ) -> Observation:
        # In a thread: the file is synced to disk, and other attempts share this loop.
        ref = await asyncio.to_thread(put_evidence, self._folder, content, suffix)
        return Observation(kind=kind, ref=ref, url=url, **more)

    def _take_said(self) -> list[OpenDialog]:
        said, self._said = self._said, []
        return said


def _now() -> float:
    return asyncio.get_running_loop().time()
