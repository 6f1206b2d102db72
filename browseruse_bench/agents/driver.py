"""Neutral actions over CDP: how a person's clicks and keys are done, without an agent library.

The driver has a connection of its own and one current tab, which only `switch_tab` and
`close_tab` change. Dialogs are dismissed as soon as they open, unless the next answer was
set. After each action it waits until the page has settled: its document is complete and its
network has been quiet for 40 ms, for at most 10 s.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from browseruse_bench.agents.traffic import Traffic
from browseruse_bench.browsers.cdp import CDP
from browseruse_bench.browsers.recorder import PAGE_TEXT
from browseruse_bench.browsers.tabs import (
    FileDownload,
    OpenDialog,
    ScriptError,
    Tab,
    Tabs,
    raise_if_thrown,
)
from browseruse_bench.errors import AgentError, BrowserError
from browseruse_bench.records.solution import Dialog, Extract, Target
from browseruse_bench.records.solution import Tab as TabChoice

FIND_S = 10.0
"""How long an element, a tab or a download is waited for."""
SETTLE_S = 10.0
_QUIET_S = 0.04
_NETWORK_S = 3.0  # of long polling, a page may never be quiet
_REGEX_S = 2.0
_POLL_S = 0.03
_LOOK_S = 1.0  # a look never counts for more: a machine that stands still says nothing of a page
_NAVIGATE_S = 30.0
_CALL_S = 5.0
_INPUT_S = 20.0

# Whether the document is complete, asked after the tasks that an action left behind: the
# submission of a form is such a task. Not a timer, because hidden tabs hold timers back.
_COMPLETE = """new Promise((done) => {
  const { port1, port2 } = new MessageChannel();
  let turns = 3;
  port1.onmessage = () => (turns-- ? port2.postMessage(0) : done(document.readyState === 'complete'));
  port2.postMessage(0);
})"""

_ELEMENTS = Path(__file__).with_name("elements.js").read_text(encoding="utf-8")

_KEYS: dict[str, tuple[int, str]] = {
    "Enter": (13, "\r"),
    "Tab": (9, ""),
    "Escape": (27, ""),
    "Backspace": (8, ""),
    "Delete": (46, ""),
    "ArrowLeft": (37, ""),
    "ArrowUp": (38, ""),
    "ArrowRight": (39, ""),
    "ArrowDown": (40, ""),
    "PageUp": (33, ""),
    "PageDown": (34, ""),
    "End": (35, ""),
    "Home": (36, ""),
    "Space": (32, " "),
}
"""Key name of the DOM -> Windows virtual key code, and the text that it types."""


class Driver:
    """Does actions in one browser; made by `connect`.

    Every action raises AgentError if it cannot be done, and BrowserError or TimeoutError if
    the browser fails.
    """

    def __init__(self, cdp: CDP, tabs: Tabs, traffic: Traffic) -> None:
        """Act through `cdp`; `connect` chooses the tab."""
        self._cdp = cdp
        self._tabs = tabs
        self._traffic = traffic
        self._next_answer: Dialog | None = None
        self._answering: set[asyncio.Task[Any]] = set()
        self._dialogs: list[str] = []
        self.target_id = ""
        """The current tab."""
        tabs.on_dialog = self._answer

    @classmethod
    async def connect(cls, ws_url: str, target_id: str | None) -> Driver:
        """Connect to a browser and start on one of its pages (None: the newest).

        Raises:
            BrowserError, TimeoutError: it does not answer, or has no page.
        """
        cdp = await CDP.connect(ws_url)
        try:
            driver = cls(cdp, Tabs(cdp), Traffic(cdp))
            await driver._tabs.start()
            tabs = driver._tabs.open()
            if target_id is None and not tabs:
                raise BrowserError("the browser has no open page")
            await driver._use(target_id if target_id is not None else tabs[-1].target_id)
        except BaseException:  # cancelled, too, the socket must not stay open
            await cdp.close()
            raise
        return driver

    async def close(self) -> None:
        """Disconnect; the browser goes on."""
        await self._cdp.close()

    @property
    def downloads(self) -> tuple[FileDownload, ...]:
        """All downloads so far."""
        return self._tabs.downloads

    def take_dialogs(self) -> list[str]:
        """What was done with the dialogs that opened since the last call."""
        taken, self._dialogs = self._dialogs, []
        return taken

    def answer_next(self, answer: Dialog) -> None:
        """Answer the next dialog so; those after it are dismissed again."""
        self._next_answer = answer

    async def navigate(self, url: str) -> None:
        """Load `url` in the current tab."""
        answer = await self._send("Page.navigate", {"url": url}, timeout_s=_NAVIGATE_S)
        if answer.get("errorText") and not answer.get("isDownload"):
            raise AgentError(f"the page could not be loaded: {answer['errorText']}")
        await self.settle()

    async def back(self) -> None:
        """Go back by one entry of the tab's history."""
        history = await self._send("Page.getNavigationHistory")
        wanted = history["currentIndex"] - 1
        if wanted < 0:
            raise AgentError("there is no page to go back to")
        entry = history["entries"][wanted]["id"]
        await self._send("Page.navigateToHistoryEntry", {"entryId": entry})

        async def arrived() -> bool | None:
            now = await self._send("Page.getNavigationHistory")
            return now["currentIndex"] == wanted or None

        await self._until(arrived, "the page before did not come")
        await self.settle()

    async def click(self, target: Target) -> None:
        """Click in the middle of an element with the mouse, once nothing covers it."""
        await self._strike(target)
        await self.settle()

    async def type(self, target: Target, text: str, *, clear: bool) -> None:
        """Click into a field and type; `clear` replaces what is there."""
        element = await self._strike(target)
        ready = await self._call(element, "prepare", text, clear)
        if "why" in ready:
            raise AgentError(ready["why"])
        if text and "set" not in ready:
            await self._send("Input.insertText", {"text": text})
        elif clear and ready.get("empty") is False:
            await self._key("Backspace")
        await self.settle()

    async def select(self, target: Target, option: str) -> None:
        """Choose an option of a select element by its label or value."""

        async def chosen() -> bool | str:
            element = await self._find(target)
            if element is None:
                return "not found"
            answer = await self._call(element, "choose", option)
            return answer.get("why", True)

        await self._until(chosen, "not found")
        await self.settle()

    async def press(self, name: str) -> None:
        """Press and release one key in whatever has the focus."""
        await self._key(name)
        await self.settle()

    async def scroll(self, pixels: float) -> None:
        """Turn the mouse wheel over the middle of the page, until the page stands still."""
        last = await self._script("scrolled")
        wheel = {"x": last["x"], "y": last["y"], "deltaX": 0, "deltaY": pixels}
        await self._send("Input.dispatchMouseEvent", {"type": "mouseWheel", **wheel})
        # A turned wheel moves the page over several frames, the first of which may be late.
        for _ in range(20):
            await asyncio.sleep(0.1)
            now = await self._script("scrolled")
            if now["offsets"] == last["offsets"]:
                break
            last = now
        await self.settle()

    async def wait_text(self, text: str, timeout_s: float) -> None:
        """Return once the page shows `text` and has settled."""

        async def shown() -> bool | None:
            reading = await self._tabs.evaluate(self.target_id, PAGE_TEXT, timeout_s=_CALL_S)
            return text in reading["text"] or None

        await self._until(shown, f"the page does not show '{text}'", timeout_s=timeout_s)
        await self.settle()

    async def extract(self, wanted: Extract) -> str:
        """The text of an element, or what the pattern finds in it."""
        pattern = _compiled(wanted.regex) if wanted.regex is not None else None
        loop = asyncio.get_running_loop()
        give_up: list[float] = []

        async def found() -> tuple[str] | str | None:
            text = await self._script("read", wanted.css, wanted.nth)
            if text is None:
                return None
            if pattern is None:
                return (text,)
            match = pattern.search(text)
            if match is not None:
                return ((match.group(1) or "") if pattern.groups else match.group(),)
            give_up[:] = give_up or [loop.time() + _REGEX_S]
            why = f"'{wanted.regex}' does not occur in '{text[:200]}'"
            if loop.time() > give_up[0]:
                raise AgentError(why)
            return why

        (value,) = await self._until(found, "not found")
        return value

    async def wait_download(self, known: int) -> str:
        """The file name of the download behind the `known` first ones, once it is complete."""

        async def complete() -> tuple[str] | str | None:
            if len(self.downloads) <= known:
                return None
            download = self.downloads[known]
            if download.state == "canceled":
                raise AgentError(f"the download of {download.name} was canceled")
            done = download.state == "completed"
            return (download.name,) if done else f"the download of {download.name} goes on"

        (name,) = await self._until(complete, "no download began")
        return name

    async def switch_tab(self, choice: TabChoice) -> None:
        """Bring another tab to the front: by a part of its address or title, or the newest."""

        async def chosen() -> Tab | None:
            await self._tabs.refresh(timeout_s=_CALL_S)
            tabs = self._tabs.open()
            if choice.url is None and choice.title is None:
                return tabs[-1] if tabs and tabs[-1].target_id != self.target_id else None
            fitting = (t for t in reversed(tabs) if (choice.url or "") in t.url)
            return next((t for t in fitting if (choice.title or "") in t.title), None)

        tab: Tab = await self._until(chosen, "no such tab")
        await self._bring_to_front(tab.target_id)

    async def close_tab(self) -> None:
        """Close the current tab and go on in the one that was opened last."""
        closing = self.target_id
        if len(self._tabs.open()) < 2:
            raise AgentError("this is the only tab")
        await self._cdp.send("Target.closeTarget", {"targetId": closing})

        async def gone() -> bool | None:
            await self._tabs.refresh(timeout_s=_CALL_S)
            return self._tabs.find(closing) is None or None

        await self._until(gone, "the tab does not close")
        await self._bring_to_front(self._tabs.open()[-1].target_id)

    async def settle(self) -> None:
        """Return once the page has settled, or the time for it is over."""
        loop = asyncio.get_running_loop()
        start = loop.time()
        while (now := loop.time()) < start + SETTLE_S:
            await asyncio.sleep(_POLL_S / 2)
            if self._tabs.find(self.target_id) is None or self._tabs.crashed(self.target_id):
                return
            session = await self._tabs.session(self.target_id)
            patient = now < start + _NETWORK_S
            last = self._traffic.last_change(session)
            if patient and (self._traffic.busy(session) or now - max(start, last) < _QUIET_S):
                continue
            try:
                complete = await self._tabs.evaluate(self.target_id, _COMPLETE, timeout_s=1.0)
            except (BrowserError, TimeoutError):
                if self._cdp.closed:
                    raise
                continue  # the document is just being replaced, or the page is busy
            if complete and (self._traffic.last_change(session) == last or not patient):
                return

    async def _use(self, target_id: str) -> None:
        session = await self._tabs.session(target_id)
        await self._cdp.send("Network.enable", session=session, timeout_s=_INPUT_S)
        self.target_id = target_id

    async def _bring_to_front(self, target_id: str) -> None:
        await self._use(target_id)
        await self._cdp.send("Target.activateTarget", {"targetId": target_id})
        await self.settle()

    async def _strike(self, target: Target) -> str:
        """Click an element, again where the page moved it away in between; return its id."""
        deadline = asyncio.get_running_loop().time() + FIND_S
        while True:
            element, place = await self._placed(target)
            await self._mouse(place)
            missed = await self._missed(element)
            if missed is None:
                return element
            if asyncio.get_running_loop().time() >= deadline:
                raise AgentError(f"{missed} after {FIND_S:g} s")

    async def _placed(self, target: Target) -> tuple[str, dict[str, float]]:
        async def placed() -> tuple[str, dict[str, float]] | str | None:
            element = await self._find(target)
            if element is None:
                return None
            place = await self._call(element, "aim")
            return place.get("why") or (element, place)

        return await self._until(placed, "not found")

    async def _missed(self, element: str) -> str | None:
        """Why the press after `_placed` reached nothing; None: it did reach the element."""
        try:
            answer = await self._call(element, "struck", timeout_s=_CALL_S)
        except (BrowserError, TimeoutError):
            if self._cdp.closed:
                raise
            return None  # it replaced the document, closed the tab or keeps the page busy
        return answer.get("why")

    async def _find(self, target: Target) -> str | None:
        """Object id of the element in the isolated world, if it is there now."""
        if target.role is not None:
            return await self._find_by_role(target, target.role)
        if target.css is not None:
            arguments: tuple[Any, ...] = ("byCss", target.css, target.nth)
        else:
            arguments = ("byText", target.text, target.exact, target.nth)
        found = await self._tabs.run(self.target_id, _script(*arguments), timeout_s=_CALL_S)
        return found.get("objectId")

    async def _find_by_role(self, target: Target, role: str) -> str | None:
        document = await self._tabs.run(self.target_id, "document", timeout_s=_CALL_S)
        query = {"objectId": document["objectId"], "role": role}
        if target.name is not None and target.exact:
            query["accessibleName"] = target.name
        nodes = [
            node
            for node in (await self._send("Accessibility.queryAXTree", query))["nodes"]
            if not node["ignored"]
            and (target.name or "") in str(node.get("name", {}).get("value", ""))
        ]
        if len(nodes) <= target.nth:
            return None
        context = await self._tabs.context(self.target_id, timeout_s=_CALL_S)
        node_id = nodes[target.nth]["backendDOMNodeId"]
        resolved = await self._send(
            "DOM.resolveNode", {"backendNodeId": node_id, "executionContextId": context}
        )
        return str(resolved["object"]["objectId"])

    async def _until(
        self, look: Callable[[], Awaitable[Any]], missing: str, *, timeout_s: float = FIND_S
    ) -> Any:
        """What `look` gives at last; None and a text, which says why not, mean not yet."""
        loop = asyncio.get_running_loop()
        waited, now = 0.0, loop.time()
        why = missing
        while True:
            try:
                result = await look()
                if result is not None and not isinstance(result, str):
                    return result
                why = result or missing
            except ScriptError as error:
                raise AgentError(str(error)) from error
            except (BrowserError, TimeoutError) as error:
                if self._cdp.closed:
                    raise
                why = str(error)  # the page is just being replaced, or busy
            if waited >= timeout_s:
                how = "within" if why == missing else "after"
                raise AgentError(f"{why} {how} {timeout_s:g} s")
            await asyncio.sleep(_POLL_S)
            waited, now = waited + min(loop.time() - now, _LOOK_S), loop.time()

    async def _mouse(self, place: dict[str, float]) -> None:
        at = {"x": place["x"], "y": place["y"]}
        press = {**at, "button": "left", "clickCount": 1}
        await self._send("Input.dispatchMouseEvent", {"type": "mouseMoved", **at})
        await self._input(
            "Input.dispatchMouseEvent", {"type": "mousePressed", "buttons": 1, **press}
        )
        await self._input("Input.dispatchMouseEvent", {"type": "mouseReleased", **press})

    async def _key(self, name: str) -> None:
        event = key_event(name)
        await self._input("Input.dispatchKeyEvent", {"type": "keyDown", **event})
        released = {k: v for k, v in event.items() if k != "text"}
        await self._input("Input.dispatchKeyEvent", {"type": "keyUp", **released})

    async def _input(self, method: str, params: dict[str, Any]) -> None:
        try:
            await self._send(method, params)
        except BrowserError:
            # A click or a key may close its own tab.
            await self._tabs.refresh(timeout_s=_CALL_S)
            if self._tabs.find(self.target_id) is not None:
                raise

    async def _call(
        self, element: str, function: str, *arguments: Any, timeout_s: float = _INPUT_S
    ) -> dict[str, Any]:
        body = f"function(...args) {{ return {_ELEMENTS}.{function}(this, ...args); }}"
        answer = await self._send(
            "Runtime.callFunctionOn",
            {
                "objectId": element,
                "functionDeclaration": body,
                "arguments": [{"value": argument} for argument in arguments],
                "returnByValue": True,
            },
            timeout_s=timeout_s,
        )
        raise_if_thrown(answer)
        value: dict[str, Any] = answer["result"]["value"]
        return value

    async def _script(self, function: str, *arguments: Any) -> Any:
        script = _script(function, *arguments)
        return await self._tabs.evaluate(self.target_id, script, timeout_s=_CALL_S)

    async def _send(
        self, method: str, params: dict[str, Any] | None = None, *, timeout_s: float = _INPUT_S
    ) -> dict[str, Any]:
        session = await self._tabs.session(self.target_id)
        return await self._cdp.send(method, params, session=session, timeout_s=timeout_s)

    def _answer(self, _target: str, session: str, dialog: OpenDialog) -> None:
        answer, self._next_answer = self._next_answer, None
        accept = answer is not None and answer.accept
        params: dict[str, Any] = {"accept": accept}
        if accept and answer is not None and answer.text is not None:
            params["promptText"] = answer.text
        how = "accepted" if accept else "dismissed"
        self._dialogs.append(f"{how} {dialog.kind} '{dialog.message[:200]}'")
        task = asyncio.create_task(
            self._cdp.send("Page.handleJavaScriptDialog", params, session=session)
        )
        self._answering.add(task)
        task.add_done_callback(self._answered)

    def _answered(self, task: asyncio.Task[Any]) -> None:
        self._answering.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._dialogs.append(f"a dialog could not be answered: {error}")


def key_event(name: str) -> dict[str, Any]:
    """What CDP is told of a key: a name of the DOM, or one character.

    Raises:
        AgentError: there is no such key.
    """
    if name in _KEYS:
        code, text = _KEYS[name]
        event: dict[str, Any] = {"key": text if name == "Space" else name, "code": name}
    elif len(name) == 1:
        code, text = (ord(name.upper()) if name.isascii() and name.isalnum() else 0), name
        prefix = "Digit" if name.isdigit() else "Key"
        event = {"key": name, "code": f"{prefix}{name.upper()}" if code else ""}
    else:
        raise AgentError(f"there is no key '{name}'; known: {', '.join(_KEYS)}, one character")
    event["windowsVirtualKeyCode"] = code
    return event | ({"text": text} if text else {})


def _script(function: str, *arguments: Any) -> str:
    return f"{_ELEMENTS}.{function}({', '.join(map(json.dumps, arguments))})"


def _compiled(regex: str) -> re.Pattern[str]:
    try:
        return re.compile(regex)
    except re.error as error:
        raise AgentError(f"'{regex}' is not a regular expression: {error}") from error
