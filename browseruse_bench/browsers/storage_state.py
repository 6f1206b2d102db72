"""A logged-in user's cookies and local storage, in Playwright's storage-state format.

The values are secrets: no error and no log shows any of them.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from browseruse_bench.browsers.cdp import CDP
from browseruse_bench.browsers.pages import PATIENCE_S, close_page
from browseruse_bench.errors import BrowserError, DataError
from browseruse_bench.store.files import read_json

_BLANK = {"responseCode": 200, "responseHeaders": [{"name": "Content-Type", "value": "text/html"}]}
_STORE = """(function (origin, items) {
  if (location.origin !== new URL(origin).origin) return false;
  for (const [name, value] of items) localStorage.setItem(name, value);
  return true;
})"""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, hide_input_in_errors=True)


class Cookie(_Part):
    """One cookie."""

    name: str
    value: str
    domain: str = Field(min_length=1)
    path: str = "/"
    expires: float = -1
    """Seconds since 1970; -1: when the browser ends."""
    httpOnly: bool = False  # noqa: N815  the format's name
    secure: bool = False
    sameSite: Literal["Strict", "Lax", "None"] | None = None  # noqa: N815  the format's name
    partitionKey: str | None = None  # noqa: N815  the format's name


class Item(_Part):
    """One entry of local storage."""

    name: str
    value: str


class Origin(_Part):
    """What one origin stored."""

    origin: str = Field(pattern=r"^https?://[^/?#\s]+$")
    localStorage: tuple[Item, ...] = ()  # noqa: N815  the format's name
    indexedDB: tuple[Any, ...] = Field(default=(), max_length=0)  # noqa: N815  the format's name
    """Not supported: a state that needs it is refused rather than half applied."""


class StorageState(_Part):
    """The whole file."""

    cookies: tuple[Cookie, ...] = ()
    origins: tuple[Origin, ...] = ()


def read_storage_state(path: Path) -> StorageState:
    """The checked content of a storage-state file.

    Raises:
        DataError: missing, not JSON, or not of the format; each field is named, no value.
    """
    if not path.is_file():
        raise DataError(f"{path}: no such file")
    value = read_json(path)
    try:
        return StorageState.model_validate_json(json.dumps(value))
    except ValidationError as error:
        problems = [
            f"{path}: {_place(problem['loc'])}: {problem['msg']}"
            for problem in error.errors(include_input=False, include_url=False)
        ]
    raise DataError(problems)


async def apply_storage_state(cdp: CDP, state: StorageState, context_id: str | None = None) -> None:
    """Put the cookies and the local storage into a browser context, without any network.

    Raises:
        BrowserError: the browser refused a cookie or an origin; it is named by its place.
        TimeoutError: the browser is silent.
    """
    where = {} if context_id is None else {"browserContextId": context_id}
    for index, cookie in enumerate(state.cookies):
        try:
            cookies = {"cookies": [_as_cdp(cookie)], **where}
            await cdp.send("Storage.setCookies", cookies, timeout_s=PATIENCE_S)
        except BrowserError:
            raise BrowserError(f"storage state: cookies[{index}]: the browser refused it") from None
    filled = [(index, origin) for index, origin in enumerate(state.origins) if origin.localStorage]
    if not filled:
        return
    page = {"url": "about:blank", "background": True, **where}
    created = await cdp.send("Target.createTarget", page, timeout_s=PATIENCE_S)
    attach = {"targetId": created["targetId"], "flatten": True}
    attached = await cdp.send("Target.attachToTarget", attach, timeout_s=PATIENCE_S)
    session: str = attached["sessionId"]
    answering = asyncio.create_task(_answer_with_nothing(cdp, session))
    try:
        await cdp.send("Fetch.enable", {"patterns": [{"urlPattern": "*"}]}, session=session)
        for index, origin in filled:
            try:
                stored = await _store(cdp, session, origin)
            except BrowserError:
                stored = False
            if not stored:
                raise BrowserError(
                    f"storage state: origins[{index}]: the browser refused its local storage"
                )
    finally:
        answering.cancel()
        if not cdp.closed:
            await close_page(cdp, created["targetId"])


async def _answer_with_nothing(cdp: CDP, session: str) -> None:
    """Answer each request of that session with an empty page, so that none leaves."""
    paused: asyncio.Queue[str] = asyncio.Queue()

    def on_paused(params: dict[str, Any], of: str | None) -> None:
        if of == session:
            paused.put_nowait(params["requestId"])

    cdp.on("Fetch.requestPaused", on_paused)
    while True:
        answer = {"requestId": await paused.get(), **_BLANK}
        await cdp.send("Fetch.fulfillRequest", answer, session=session)


async def _store(cdp: CDP, session: str, origin: Origin) -> bool:
    """Open an empty page of that origin and store from inside it; whether that worked."""
    page = {"url": f"{origin.origin}/"}
    went = await cdp.send("Page.navigate", page, session=session, timeout_s=PATIENCE_S)
    if "errorText" in went:
        return False
    items = json.dumps([[item.name, item.value] for item in origin.localStorage])
    call = {"expression": f"{_STORE}({json.dumps(origin.origin)}, {items})", "returnByValue": True}
    async with asyncio.timeout(PATIENCE_S):
        while True:
            result = await cdp.send("Runtime.evaluate", call, session=session, timeout_s=PATIENCE_S)
            if "exceptionDetails" in result:
                return False
            if result["result"]["value"]:
                return True
            # The navigation was accepted, but the page has not taken the place of the last.
            await asyncio.sleep(0.01)


def _as_cdp(cookie: Cookie) -> dict[str, Any]:
    fields = cookie.model_dump(exclude_none=True, exclude={"partitionKey"})
    if cookie.expires == -1:
        del fields["expires"]
    if cookie.partitionKey is not None:
        fields["partitionKey"] = {
            "topLevelSite": cookie.partitionKey,
            "hasCrossSiteAncestor": False,
        }
    return fields


def _place(location: tuple[int | str, ...]) -> str:
    """`cookies[0].value` for ("cookies", 0, "value")."""
    parts = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in location]
    return "".join(parts).removeprefix(".") or "the file"
