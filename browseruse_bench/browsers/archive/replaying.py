"""A replay of an archive: a browser gets its answers from there, and from nowhere else.

Every request is answered by the archive or refused; none is let through. The nth request of a
kind gets the nth answer that was recorded, and once these are used up the last one again. What
the archive does not hold is a miss: an error for the page, and counted. A request that differs
only in what keeps it from being cached is answered, and named.
"""

from __future__ import annotations

import asyncio
import base64
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from browseruse_bench.browsers.archive.cleaning import Cleaning
from browseruse_bench.browsers.archive.recording import PATTERNS, posted
from browseruse_bench.browsers.cdp import CDP
from browseruse_bench.errors import BrowserError
from browseruse_bench.store.archive.opened import Archive, Place
from browseruse_bench.store.archive.warc import DamagedError
from browseruse_bench.store.redact import GONE, Redactor

Why = Literal["not recorded", "not kept", "service worker"]

_START_S = 20.0
_CALL_S = 10.0
_MAX_NAMED = 1000
"""Distinct misses that are named; further ones are only counted."""


class Miss(NamedTuple):
    """A request that the archive cannot answer."""

    method: str
    url: str
    kind: str
    why: Why


@dataclass
class ReplayTally:
    """What became of the requests."""

    served: int = 0
    loose: int = 0
    """Of those that were served: answers to a request with another time or random number."""
    missed: int = 0
    misses: Counter[Miss] = field(default_factory=Counter[Miss])
    loosely: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    """(asked for, answered with) of what was served loosely."""

    def as_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {
            "served": self.served,
            "served_loosely": self.loose,
            "missed": self.missed,
            "misses": [{**miss._asdict(), "n": n} for miss, n in self.misses.items()],
            "loosely": [{"asked": a, "answered": b, "n": n} for (a, b), n in self.loosely.items()],
        }


class Replay:
    """A replay that goes on; made by `start`."""

    def __init__(self, cdp: CDP, archive: Archive, cleaning: Cleaning, *, exact: bool) -> None:
        """Answer nothing yet."""
        self.tally = ReplayTally()
        self._cdp = cdp
        self._archive = archive
        self._cleaning = cleaning
        self._exact = exact
        self._given: Counter[str] = Counter()
        self._answering: set[asyncio.Task[None]] = set()
        self._failure: BaseException | None = None

    @classmethod
    async def start(
        cls, ws_url: str, archive: Archive, *, exact: bool = False, redactor: Redactor | None = None
    ) -> Replay:
        """Answer every request of the browser behind a browser-level CDP socket.

        Args:
            ws_url: the socket's address.
            archive: open for as long as the replay goes on.
            exact: also miss what differs only in a time or a random number.
            redactor: what took secrets out of the archive; default: that of the environment.

        Raises:
            BrowserError, TimeoutError: it does not answer.
        """
        cdp = await CDP.connect(ws_url)
        cleaning = Cleaning(redactor or Redactor.of_environment())
        replay = cls(cdp, archive, cleaning, exact=exact)
        cdp.on("Fetch.requestPaused", replay._on_paused)
        try:
            await cdp.send("Fetch.enable", {"patterns": [*PATTERNS]}, timeout_s=_START_S)
        except BaseException:  # cancelled, too, nothing may stay held
            await cdp.close()
            raise
        return replay

    async def close(self) -> ReplayTally:
        """End; the browser must be ended or fenced in by then, for it would reach the network.

        Raises:
            BrowserError: the archive could not be read while the replay went on.
        """
        for task in self._answering:
            task.cancel()
        await asyncio.gather(*self._answering, return_exceptions=True)
        await self._cdp.close()
        if self._failure is not None:
            raise BrowserError(f"{self._archive.path}: the replay broke: {self._failure}")
        return self.tally

    def _on_paused(self, event: dict[str, Any], session: str | None) -> None:
        task = asyncio.create_task(self._answer(event, session))
        self._answering.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._answering.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failure = self._failure or error

    async def _answer(self, event: dict[str, Any], session: str | None) -> None:
        request = event["request"]
        names = {name.lower() for name in request["headers"]}
        why: Why = "not recorded"
        place = None
        if "service-worker" in names:
            why = "service worker"
        else:
            place = self._place(request)
            if place is not None and place.truncated:
                why, place = "not kept", None
        if place is None:
            self._miss(event, why)
            call = {"requestId": event["requestId"], "errorReason": "InternetDisconnected"}
            await self._send("Fetch.failRequest", call, session)
            return
        try:
            call = await asyncio.to_thread(self._filled, place)
        except (DamagedError, OSError) as error:
            self._failure = self._failure or error
            call = {"requestId": event["requestId"], "errorReason": "Failed"}
            await self._send("Fetch.failRequest", call, session)
            return
        self.tally.served += 1
        await self._send("Fetch.fulfillRequest", {"requestId": event["requestId"], **call}, session)

    def _place(self, request: dict[str, Any]) -> Place | None:
        method, headers = str(request["method"]), dict(request["headers"])
        url = self._cleaning.text(str(request["url"]))
        body = self._cleaning.content(posted(request))
        found = self._archive.find(method, url, headers, body)
        loosely = False
        if not found and not self._exact:
            found = self._archive.find_loosely(method, url, headers, body)
            loosely = bool(found)
        if not found:
            return None
        key = f"{found[0].file}:{found[0].offset}"
        place = found[min(self._given[key], len(found) - 1)]
        self._given[key] += 1
        if loosely:
            self.tally.loose += 1
            self.tally.loosely[url, place.uri] += 1
        return place

    def _miss(self, event: dict[str, Any], why: Why) -> None:
        self.tally.missed += 1
        request = event["request"]
        miss = Miss(
            method=request["method"],
            url=self._cleaning.text(request["url"]).partition("#")[0],
            kind=event["resourceType"],
            why=why,
        )
        if miss in self.tally.misses or len(self.tally.misses) < _MAX_NAMED:
            self.tally.misses[miss] += 1

    def _filled(self, place: Place) -> dict[str, Any]:
        answer = self._archive.answer(place)
        headers = [
            {"name": name, "value": value}
            for name, value in answer.headers
            # A cookie without its value would be another cookie.
            if not (name.lower() == "set-cookie" and GONE in value)
        ]
        return {
            "responseCode": answer.status,
            "responsePhrase": answer.phrase or "OK",
            "responseHeaders": headers,
            "body": base64.b64encode(answer.body).decode(),
        }

    async def _send(self, method: str, call: dict[str, Any], session: str | None) -> None:
        try:
            await self._cdp.send(method, call, session=session, timeout_s=_CALL_S)
        except (BrowserError, TimeoutError):
            return  # the page has gone, and what it asked for with it
