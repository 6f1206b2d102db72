"""A browser that runs elsewhere, reached by its DevTools endpoint.

Each session gets a browser context of its own (cookies, storage, pages) where the endpoint
allows it, and that context goes when the session ends or this process dies. What the browser
may reach there is not ours to decide, hence the guard level "observed".
"""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import NamedTuple
from urllib.parse import urlsplit

from browseruse_bench.browsers.base import Backend, Session, SessionRequest
from browseruse_bench.browsers.cdp import CDP, LOOPBACK, shown
from browseruse_bench.browsers.guard.watch import Watch, watch_pages
from browseruse_bench.browsers.options import BrowserOptions
from browseruse_bench.browsers.pages import close_page, page_size
from browseruse_bench.browsers.storage_state import apply_storage_state, read_storage_state
from browseruse_bench.errors import BrowserError, ConfigError, boundary
from browseruse_bench.records.trace import BrowserId, Guard

_ASK_S = 10.0


class _Context(NamedTuple):
    """Where a session's pages live; None is the context that all share."""

    id: str | None
    why_shared: str


class CdpEndpoint(Backend):
    """Sessions in a browser that somebody else started."""

    name = "cdp"
    maps_hosts = False

    def __init__(self, options: BrowserOptions) -> None:
        """Take `options.cdp_url`: http://host:port, or ws://... as it is."""
        self.options = options
        self._open: dict[str, CDP] = {}

    @asynccontextmanager
    async def open(self, request: SessionRequest) -> AsyncGenerator[Session]:
        url = self.options.cdp_url
        if not url:
            raise BrowserError("no endpoint to connect to; give --cdp-url http://host:port")
        if request.hosts or request.fence:
            named = ", ".join(sorted(request.hosts)) or "a fence around its sites"
            raise BrowserError(
                f"the benchmark needs {named}, which cannot be set up in a browser that runs "
                "elsewhere; use --browser local"
            )
        async with AsyncExitStack() as stack:
            try:
                with boundary(BrowserError, "start a session"):
                    session = await self._start(url, request, stack)
            except BrowserError as error:
                raise BrowserError(f"browser at {shown(url)}: {error}") from error
            yield session

    def guard(self, *, fence: bool) -> Guard:
        if self.options.guard not in ("auto", "observed"):
            raise ConfigError(
                f"--guard {self.options.guard}: a browser that runs elsewhere can only be "
                "observed; use --browser local, or leave --guard out"
            )
        return Guard(level="observed", mechanism="a browser that runs elsewhere")

    def alive(self, session: Session) -> bool:
        cdp = self._open.get(session.target_id or "")
        return cdp is not None and not cdp.closed

    async def _start(self, url: str, request: SessionRequest, stack: AsyncExitStack) -> Session:
        state = None if request.storage_state is None else read_storage_state(request.storage_state)
        ws_url = await asyncio.to_thread(resolve, url)
        cdp = await _connect(ws_url)
        stack.push_async_callback(cdp.close)
        context = await _fresh_context(cdp)
        if context.id is None and state is not None:
            raise BrowserError(
                "it allows no browser context of its own, so a login would stay in it; "
                "use --browser local with --storage-state"
            )
        where = {} if context.id is None else {"browserContextId": context.id}
        page = {"url": "about:blank", **where}
        target_id: str = (await cdp.send("Target.createTarget", page, timeout_s=_ASK_S))["targetId"]
        self._open[target_id] = cdp
        stack.callback(self._open.pop, target_id)
        stack.push_async_callback(_clear, cdp, context.id, target_id)
        if urlsplit(ws_url).hostname in LOOPBACK:
            request.downloads.mkdir(parents=True, exist_ok=True)
            downloads = {"behavior": "allow", "downloadPath": str(request.downloads), **where}
            await cdp.send("Browser.setDownloadBehavior", downloads)
        if state is not None:
            await apply_storage_state(cdp, state, context.id)
        watch = Watch()
        await watch_pages(cdp, watch, turn=False, context_id=context.id, timeout_s=_ASK_S)
        return Session(
            watch=watch,
            browser=await _identify(cdp, target_id),
            guard=self.guard(fence=request.fence).model_copy(update={"reason": context.why_shared}),
            ws_url=ws_url,
            http_url=_http_of(ws_url),
            target_id=target_id,
        )


def resolve(url: str) -> str:
    """The browser's socket, asked of /json/version where `url` is http(s).

    Raises:
        BrowserError: no such scheme, nobody answers, or not as a browser does.
    """
    parts = urlsplit(url)
    if parts.scheme in ("ws", "wss"):
        return url
    if parts.scheme not in ("http", "https"):
        raise BrowserError("an endpoint starts with http://, https://, ws:// or wss://")
    version = parts._replace(path=f"{parts.path.rstrip('/')}/json/version").geturl()
    # A proxy of the environment is for the web, not for this machine.
    proxies = urllib.request.ProxyHandler({} if parts.hostname in LOOPBACK else None)
    try:
        with urllib.request.build_opener(proxies).open(version, timeout=_ASK_S) as response:
            ws_url = json.loads(response.read())["webSocketDebuggerUrl"]
    except (OSError, urllib.error.URLError) as error:
        why = getattr(error, "reason", error)
        raise BrowserError(f"/json/version does not answer: {why}") from None
    except (ValueError, KeyError, TypeError):
        raise BrowserError("/json/version does not name a browser's socket") from None
    return str(ws_url)


async def _connect(ws_url: str) -> CDP:
    try:
        return await CDP.connect(ws_url)
    except BrowserError as error:
        why = str(error.__cause__ or "refused").replace(ws_url, shown(ws_url))
        raise BrowserError(f"cannot connect: {why}") from None
    except TimeoutError:
        raise BrowserError("it does not answer") from None


async def _fresh_context(cdp: CDP) -> _Context:
    try:
        created = await cdp.send("Target.createBrowserContext", {"disposeOnDetach": True})
    except BrowserError as error:
        return _Context(None, f"no fresh context, attempts share cookies and storage: {error}")
    return _Context(created["browserContextId"], "")


async def _clear(cdp: CDP, context_id: str | None, target_id: str) -> None:
    """Close the session's page, and its context with everything in it."""
    if cdp.closed:
        return
    try:
        if context_id is None:
            await close_page(cdp, target_id)
        else:
            await cdp.send("Target.disposeBrowserContext", {"browserContextId": context_id})
    except (BrowserError, TimeoutError):
        # The socket closes next, and the context was made to go with it.
        return


async def _identify(cdp: CDP, target_id: str) -> BrowserId:
    product = (await cdp.send("Browser.getVersion"))["product"]
    attach = {"targetId": target_id, "flatten": True}
    session: str = (await cdp.send("Target.attachToTarget", attach))["sessionId"]
    viewport = await page_size(cdp, session)
    await cdp.send("Target.detachFromTarget", {"sessionId": session})
    return BrowserId(kind="cdp", version=product, viewport=viewport)


def _http_of(ws_url: str) -> str | None:
    parts = urlsplit(ws_url)
    if not parts.path.startswith("/devtools/browser/"):
        return None
    return f"{'https' if parts.scheme == 'wss' else 'http'}://{parts.netloc}"
