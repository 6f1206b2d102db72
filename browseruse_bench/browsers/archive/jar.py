"""Which cookies an answer set. The browser keeps `Set-Cookie` to itself; its jar tells."""

from __future__ import annotations

import asyncio
from typing import Any

from browseruse_bench.browsers.archive.cleaning import Cookie
from browseruse_bench.browsers.cdp import CDP
from browseruse_bench.errors import BrowserError

_ASK_S = 5.0


class Jar:
    """The cookies of one browser context, as far as requests carried them."""

    def __init__(self, cdp: CDP, context_id: str | None) -> None:
        """Know of no cookie yet."""
        self._cdp = cdp
        self._where = {} if context_id is None else {"browserContextId": context_id}
        self._known: dict[tuple[str, str], str] = {}
        """(host, name) -> value."""
        self._turn = asyncio.Lock()

    async def news(self, host: str, header: str) -> list[Cookie]:
        """The cookies that were not there, or were others, when this host was last asked.

        Args:
            host: of the request.
            header: `Cookie` of the request, which the browser fills in anew once the answer's
                cookies are set.
        """
        pairs = [part.strip().partition("=") for part in header.split(";") if part.strip()]
        carried = {(host, name): value for name, _, value in pairs}
        async with self._turn:
            new = {k: v for k, v in carried.items() if self._known.get(k) != v}
            self._known.update(new)
            if not new:
                return []
            jar = await self._ask()
        cookies: list[Cookie] = []
        for (_, name), value in new.items():
            found = next((c for c in jar if (c.name, c.value) == (name, value)), None)
            # What the jar does not tell may be anything.
            cookies.append(found or Cookie(name=name, value=value, http_only=True))
        return cookies

    async def _ask(self) -> list[Cookie]:
        try:
            answer = await self._cdp.send("Storage.getCookies", self._where, timeout_s=_ASK_S)
        except (BrowserError, TimeoutError):
            return []
        return [_cookie(entry) for entry in answer["cookies"]]


def _cookie(entry: dict[str, Any]) -> Cookie:
    return Cookie(
        name=entry["name"],
        value=entry["value"],
        domain=entry["domain"],
        path=entry["path"],
        secure=entry["secure"],
        http_only=entry["httpOnly"],
        same_site=entry.get("sameSite", ""),
    )
