"""The open pages of a browser as its events tell of them, and scripts that run in them.

Listening only: pages are attached to and their dialogs, crashes and downloads are heard of,
but nothing is answered, paused, emulated or brought to the front.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

from browseruse_bench.browsers.cdp import CDP
from browseruse_bench.errors import BrowserError

World = Literal["isolated", "page"]

_WORLD_NAME = "bubench"
_RETRIES = 3
_START_S = 20.0


@dataclass(frozen=True, kw_only=True)
class Tab:
    """An open page."""

    target_id: str
    url: str
    title: str


@dataclass(frozen=True, kw_only=True)
class OpenDialog:
    """A JavaScript dialog that waits for an answer; the page stands still until then."""

    kind: str
    """alert, confirm, prompt or beforeunload."""
    message: str
    url: str

    def __str__(self) -> str:
        return f"a dialog is open ({self.kind}): {self.message[:200]}"


@dataclass(frozen=True, kw_only=True)
class FileDownload:
    """A download, as the browser tells of it."""

    guid: str
    name: str
    """The file name that the browser suggests."""
    url: str
    state: Literal["inProgress", "completed", "canceled"]


class Tabs:
    """All pages of one browser, in the order in which they were opened."""

    def __init__(self, cdp: CDP) -> None:
        """Listen on `cdp`; nothing is known before `start`."""
        self.cdp = cdp
        self.on_dialog: Callable[[str, str, OpenDialog], None] | None = None
        """Called with (target id, session, dialog) when one opens."""
        self._infos: dict[str, dict[str, Any]] = {}
        self._sessions: dict[str, asyncio.Task[str]] = {}
        self._target_of: dict[str, str] = {}
        self._dialogs: dict[str, OpenDialog] = {}
        self._crashed: set[str] = set()
        self._documents: dict[str, str] = {}
        self._downloads: dict[str, FileDownload] = {}
        for method, callback in {
            "Target.targetCreated": self._on_info,
            "Target.targetInfoChanged": self._on_info,
            "Target.targetDestroyed": self._on_destroyed,
            "Target.targetCrashed": self._on_crashed,
            "Target.detachedFromTarget": self._on_detached,
            "Page.frameNavigated": self._on_navigated,
            "Page.javascriptDialogOpening": self._on_dialog_opening,
            "Page.javascriptDialogClosed": self._on_dialog_closed,
            "Page.downloadWillBegin": self._on_download,
            "Page.downloadProgress": self._on_progress,
        }.items():
            cdp.on(method, callback)

    async def start(self) -> None:
        """Hear of all targets; each page is attached to as soon as it is there.

        Raises:
            BrowserError, TimeoutError: the browser does not answer.
        """
        discover = {"discover": True}
        await self.cdp.send("Target.setDiscoverTargets", discover, timeout_s=_START_S)
        await self.refresh(timeout_s=_START_S)

    async def refresh(self, *, timeout_s: float) -> None:
        """Ask for the present addresses and titles, which may be ahead of the events."""
        answer = await self.cdp.send("Target.getTargets", timeout_s=timeout_s)
        infos = {info["targetId"]: info for info in answer["targetInfos"]}
        for target_id in self._infos.keys() - infos.keys():
            self._forget(target_id)
        for info in infos.values():
            self._on_info({"targetInfo": info}, None)

    def open(self) -> tuple[Tab, ...]:
        """All open pages, the newest last; the browser's own surfaces are not among them."""
        return tuple(
            Tab(target_id=target_id, url=info["url"], title=info["title"])
            for target_id, info in self._infos.items()
            if _is_page(info)
        )

    def find(self, target_id: str) -> Tab | None:
        """The open page with this id."""
        return next((tab for tab in self.open() if tab.target_id == target_id), None)

    def dialog(self, target_id: str) -> OpenDialog | None:
        """The dialog that is open in this page."""
        return self._dialogs.get(target_id)

    def crashed(self, target_id: str) -> bool:
        """Whether the page's process has crashed and nothing was loaded since."""
        return target_id in self._crashed

    @property
    def downloads(self) -> tuple[FileDownload, ...]:
        """All downloads since `start`, in the order in which they began."""
        return tuple(self._downloads.values())

    async def document_id(self, target_id: str, *, timeout_s: float) -> str:
        """The browser's id of the document that is loaded in this page.

        Raises:
            BrowserError, TimeoutError: the page cannot say, and no event has told.
        """
        if target_id not in self._documents:
            frame = await self._main_frame(target_id, timeout_s=timeout_s)
            self._documents.setdefault(target_id, frame["loaderId"])
        return self._documents[target_id]

    async def session(self, target_id: str, *, timeout_s: float = 5.0) -> str:
        """The session in which this page's calls are made.

        Raises:
            BrowserError, TimeoutError: there is no such page, or it cannot be attached to.
        """
        task = self._sessions.get(target_id)
        if task is None or (task.done() and (task.cancelled() or task.exception() is not None)):
            task = self._start_attaching(target_id)
        return await asyncio.wait_for(asyncio.shield(task), timeout_s)

    async def evaluate(
        self, target_id: str, script: str, *, timeout_s: float, world: World = "isolated"
    ) -> Any:
        """The JSON value of a script's last expression in the page; promises are awaited.

        The isolated world sees the document, but none of the page's own variables and
        overridden prototypes. A script that runs longer than the time is ended.

        Raises:
            BrowserError: the script threw or gave no JSON value, or the page went away.
            TimeoutError: the page did not answer in time: it hangs, or a dialog is open.
        """
        answer = await self.run(
            target_id, script, timeout_s=timeout_s, world=world, returnByValue=True
        )
        if "value" not in answer:
            kind = answer.get("unserializableValue", answer.get("type"))
            raise BrowserError(f"the script gave {kind}, which is not a JSON value")
        return answer["value"]

    async def run(
        self,
        target_id: str,
        script: str,
        *,
        timeout_s: float,
        world: World = "isolated",
        **options: Any,
    ) -> dict[str, Any]:
        """The remote object of a script's last expression; see `evaluate`."""
        deadline = asyncio.get_running_loop().time() + timeout_s
        for attempt in range(1, _RETRIES + 1):
            try:
                return await self._run_once(
                    target_id, script, deadline=deadline, world=world, retry=attempt > 1, **options
                )
            except ScriptError:
                raise
            except BrowserError:
                # A page that is just being replaced by the next one loses its contexts.
                if attempt == _RETRIES or self.cdp.closed or self.find(target_id) is None:
                    raise
                await asyncio.sleep(0.02)
        raise AssertionError("unreachable")

    async def context(self, target_id: str, *, timeout_s: float, ask: bool = False) -> int:
        """The id of the isolated world of the page's present document.

        Args:
            target_id: the page.
            timeout_s: how long to wait for each answer.
            ask: ask for the main frame's id, which is nearly always the target's.
        """
        session = await self.session(target_id, timeout_s=timeout_s)
        frame_id = target_id
        if ask:
            frame_id = (await self._main_frame(target_id, timeout_s=timeout_s))["id"]
        # The same name gives the same world for as long as the document lives.
        world = {"frameId": frame_id, "worldName": _WORLD_NAME}
        answer = await self.cdp.send(
            "Page.createIsolatedWorld", world, session=session, timeout_s=timeout_s
        )
        return int(answer["executionContextId"])

    async def _run_once(
        self,
        target_id: str,
        script: str,
        *,
        deadline: float,
        world: World,
        retry: bool,
        **options: Any,
    ) -> dict[str, Any]:
        loop = asyncio.get_running_loop()
        session = await self.session(target_id, timeout_s=max(0.0, deadline - loop.time()))
        params: dict[str, Any] = {"expression": script, "awaitPromise": True, **options}
        if world == "isolated":
            left = max(0.0, deadline - loop.time())
            params["contextId"] = await self.context(target_id, timeout_s=left, ask=retry)
        left = max(0.0, deadline - loop.time())
        params["timeout"] = max(1, int(left * 900))
        answer = await self.cdp.send("Runtime.evaluate", params, session=session, timeout_s=left)
        raise_if_thrown(answer)
        result: dict[str, Any] = answer["result"]
        return result

    async def _main_frame(self, target_id: str, *, timeout_s: float) -> dict[str, Any]:
        session = await self.session(target_id, timeout_s=timeout_s)
        tree = await self.cdp.send("Page.getFrameTree", session=session, timeout_s=timeout_s)
        frame: dict[str, Any] = tree["frameTree"]["frame"]
        return frame

    def _start_attaching(self, target_id: str) -> asyncio.Task[str]:
        task = asyncio.create_task(self._attach(target_id))
        # Whoever asks for the session gets the error; of a page that nobody asks for, nobody
        # needs to hear.
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._sessions[target_id] = task
        return task

    async def _attach(self, target_id: str) -> str:
        answer = await self.cdp.send(
            "Target.attachToTarget", {"targetId": target_id, "flatten": True}, timeout_s=_START_S
        )
        session = str(answer["sessionId"])
        self._target_of[session] = target_id
        enabling = asyncio.create_task(self.cdp.send("Page.enable", session=session))
        # The browser hears the call at once; the reply of a page that hangs may never come.
        enabling.add_done_callback(lambda done: done.cancelled() or done.exception())
        return session

    def _forget(self, target_id: str) -> None:
        for table in (self._infos, self._sessions, self._dialogs, self._documents):
            table.pop(target_id, None)
        self._crashed.discard(target_id)

    def _on_info(self, params: dict[str, Any], _session: str | None) -> None:
        info = params["targetInfo"]
        self._infos[info["targetId"]] = info
        if _is_page(info) and info["targetId"] not in self._sessions and not self.cdp.closed:
            self._start_attaching(info["targetId"])

    def _on_destroyed(self, params: dict[str, Any], _session: str | None) -> None:
        self._forget(params["targetId"])

    def _on_crashed(self, params: dict[str, Any], _session: str | None) -> None:
        self._crashed.add(params["targetId"])
        self._dialogs.pop(params["targetId"], None)

    def _on_detached(self, params: dict[str, Any], _session: str | None) -> None:
        target_id = self._target_of.pop(params["sessionId"], None)
        if target_id is not None:
            self._sessions.pop(target_id, None)
            self._dialogs.pop(target_id, None)

    def _on_navigated(self, params: dict[str, Any], session: str | None) -> None:
        target_id = self._target_of.get(session or "")
        if target_id is not None and "parentId" not in params["frame"]:
            self._crashed.discard(target_id)
            self._documents[target_id] = params["frame"]["loaderId"]

    def _on_dialog_opening(self, params: dict[str, Any], session: str | None) -> None:
        target_id = self._target_of.get(session or "")
        if target_id is None or session is None:
            return
        dialog = OpenDialog(kind=params["type"], message=params["message"], url=params["url"])
        self._dialogs[target_id] = dialog
        if self.on_dialog is not None:
            self.on_dialog(target_id, session, dialog)

    def _on_dialog_closed(self, _params: dict[str, Any], session: str | None) -> None:
        self._dialogs.pop(self._target_of.get(session or "", ""), None)

    def _on_download(self, params: dict[str, Any], _session: str | None) -> None:
        guid = params["guid"]
        self._downloads[guid] = FileDownload(
            guid=guid, name=params["suggestedFilename"], url=params["url"], state="inProgress"
        )

    def _on_progress(self, params: dict[str, Any], _session: str | None) -> None:
        download = self._downloads.get(params["guid"])
        if download is not None:
            self._downloads[download.guid] = replace(download, state=params["state"])


class ScriptError(BrowserError):
    """A script threw: trying again would not help."""


def raise_if_thrown(answer: dict[str, Any]) -> None:
    """Turn the exception of a script into an error.

    Raises:
        ScriptError: with the first line of what was thrown.
    """
    details = answer.get("exceptionDetails")
    if details is None:
        return
    thrown = details.get("exception", {})
    text = str(thrown.get("description") or thrown.get("value") or details.get("text", "?"))
    raise ScriptError(f"the script threw {text.splitlines()[0][:300]}")


def _is_page(info: dict[str, Any]) -> bool:
    url = info["url"]
    own = url.startswith(("devtools:", "chrome-untrusted:", "chrome-extension:"))
    return info["type"] == "page" and not own and ".top-chrome" not in url[:80]
