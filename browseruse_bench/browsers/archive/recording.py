"""A recording of a browser: every answer that it gets, of every tab, frame and worker.

One more client of the browser-level socket. It has the browser hold each answer until its body
is read (`Fetch`, on the browser's own session: a page's session misses the frames of other
origins) and appends request and answer to a WARC file. Source: measured, see docs/archive.md.

What the browser itself may notice: an answer arrives whole instead of in pieces, and no service
worker can be installed, because what one answers never passes here. Streams without an end and
bodies that are too large pass without being kept, and are counted. WebSockets are not seen.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from browseruse_bench.browsers.archive.cleaning import Cleaning
from browseruse_bench.browsers.archive.jar import Jar
from browseruse_bench.browsers.cdp import CDP
from browseruse_bench.errors import BrowserError, StoreError
from browseruse_bench.records.archived import ArchivedPage
from browseruse_bench.store.archive.exchange import Exchange, Truncated
from browseruse_bench.store.archive.pages import Part, write_page
from browseruse_bench.store.archive.warc import WarcWriter
from browseruse_bench.store.redact import Redactor

PATTERNS = tuple({"urlPattern": f"{scheme}://*"} for scheme in ("http", "https"))
"""What is held: all that goes over HTTP."""
_START_S = 20.0
_CALL_S = 5.0
_DRAIN_S = 5.0
_STREAMS = ("text/event-stream", "multipart/x-mixed-replace", "audio/", "video/")
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How much of one answer is kept."""

    body_bytes: int = 64 * 2**20
    """An answer that says it is longer passes without being kept."""
    body_s: float = 30.0
    """A body that is not there by then is an error for the page: what the browser was asked to
    hold whole cannot be let through in pieces any more."""


@dataclass
class Tally:
    """What became of the answers."""

    kept: int = 0
    bytes: int = 0
    """Of the bodies that were kept."""
    streams: int = 0
    """Passed without being kept: their kind has no end."""
    too_large: int = 0
    """Passed without being kept."""
    stalled: int = 0
    """Errors for the page: their body did not end in time."""
    failed: int = 0
    """Requests that got no answer: nobody there, refused, cancelled."""
    lost: int = 0
    """The page went away before the body could be read."""
    service_workers: int = 0
    """Refused."""

    def as_json(self) -> dict[str, int]:
        """As plain JSON values."""
        return asdict(self)


@dataclass
class _Quiet:
    """Knows when nothing is on its way."""

    n_open: int = 0
    since: float = field(default_factory=lambda: asyncio.get_running_loop().time())

    def change(self, by: int) -> None:
        self.n_open += by
        self.since = asyncio.get_running_loop().time()


class Recording:
    """A recording that goes on; made by `start`."""

    def __init__(
        self, cdp: CDP, writer: WarcWriter, cleaning: Cleaning, limits: Limits, jar: Jar
    ) -> None:
        """Hold nothing yet."""
        self.tally = Tally()
        self._cdp = cdp
        self._writer = writer
        self._cleaning = cleaning
        self._limits = limits
        self._jar = jar
        self._quiet = _Quiet()
        self._seen: set[tuple[str, str]] = set()
        self._settling: set[asyncio.Task[None]] = set()
        self._turn = asyncio.Lock()
        self._failure: BaseException | None = None

    @classmethod
    async def start(
        cls,
        ws_url: str,
        warc: Path,
        *,
        redactor: Redactor | None = None,
        limits: Limits | None = None,
        context_id: str | None = None,
    ) -> Recording:
        """Record the browser behind a browser-level CDP socket into a new WARC file.

        Args:
            ws_url: the socket's address.
            warc: the file, NAME.warc.gz; it must not be there.
            redactor: knows our own secrets; default: those of the environment.
            limits: of each answer.
            context_id: the browser context whose cookies are told; None: the default one.

        Raises:
            BrowserError, TimeoutError: it does not answer.
            FileExistsError: there is such a file.
        """
        about = {"software": "browseruse-bench", "format": "WARC File Format 1.1"}
        writer = WarcWriter(warc, about)
        try:
            cdp = await CDP.connect(ws_url)
        except BaseException:  # cancelled, too, the file must not stay open
            writer.close()
            raise
        cleaning = Cleaning(redactor or Redactor.of_environment())
        recording = cls(cdp, writer, cleaning, limits or Limits(), Jar(cdp, context_id))
        cdp.on("Fetch.requestPaused", recording._on_paused)
        patterns = [{**pattern, "requestStage": "Response"} for pattern in PATTERNS]
        try:
            await cdp.send("Fetch.enable", {"patterns": patterns}, timeout_s=_START_S)
        except BaseException:  # cancelled, too, nothing may stay held
            await recording.close()
            raise
        return recording

    @property
    def n_bytes(self) -> int:
        """Size of the WARC file so far."""
        return self._writer.n_bytes

    @property
    def quiet_s(self) -> float:
        """For how long no answer has come, and none is held."""
        quiet = self._quiet
        return 0.0 if quiet.n_open else asyncio.get_running_loop().time() - quiet.since

    async def keep(self, page: ArchivedPage, parts: Mapping[Part, bytes]) -> None:
        """Append a page that was looked at; `cleaning` has cleaned its parts.

        Raises:
            StoreError: it cannot be written.
        """
        at = datetime.now(UTC)
        try:
            async with self._turn:
                await asyncio.to_thread(write_page, self._writer, page, parts, at)
        except OSError as error:
            raise StoreError(f"{self._writer.path}: cannot be written: {error}") from error

    @property
    def cleaning(self) -> Cleaning:
        """What takes secrets out of what is written."""
        return self._cleaning

    async def close(self) -> Tally:
        """Let go of what is held, write what was read, and end; may be called again.

        Raises:
            StoreError: some of it could not be written; the browser was never kept waiting.
        """
        if self._settling:
            await asyncio.wait(self._settling, timeout=_DRAIN_S)
        for task in self._settling:
            task.cancel()
        await asyncio.gather(*self._settling, return_exceptions=True)
        await self._cdp.close()
        try:
            await asyncio.to_thread(self._writer.close)
        except OSError as error:
            self._failure = self._failure or error
        if self._failure is not None:
            what = f"{type(self._failure).__name__}: {self._failure}"
            raise StoreError(
                f"{self._writer.path}: the recording is incomplete; record again: {what}"
            ) from self._failure
        return self.tally

    def _on_paused(self, event: dict[str, Any], session: str | None) -> None:
        self._quiet.change(1)
        task = asyncio.create_task(self._settle(event, session))
        self._settling.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._settling.discard(task)
        self._quiet.change(-1)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failure = self._failure or error

    async def _settle(self, event: dict[str, Any], session: str | None) -> None:
        """Keep one answer, and let it go."""
        verdict = ("Fetch.continueRequest", dict[str, Any]())
        exchange = None
        try:
            if _is_service_worker(event):
                self.tally.service_workers += 1
                verdict = ("Fetch.failRequest", {"errorReason": "BlockedByClient"})
            elif "responseStatusCode" not in event:
                self.tally.failed += 1
            else:
                exchange = await self._read(event, session)
        except TimeoutError:
            self.tally.stalled += 1
            verdict = ("Fetch.failRequest", {"errorReason": "TimedOut"})
        except BrowserError:
            self.tally.lost += 1
        finally:
            await self._let_go(event, session, *verdict)
        if exchange is not None:
            await self._write(exchange)

    async def _let_go(
        self, event: dict[str, Any], session: str | None, method: str, more: dict[str, Any]
    ) -> None:
        try:
            call = {"requestId": event["requestId"], **more}
            await self._cdp.send(method, call, session=session, timeout_s=_CALL_S)
        except (BrowserError, TimeoutError):
            return  # the page has gone, and what it asked for with it

    async def _read(self, event: dict[str, Any], session: str | None) -> Exchange | None:
        """The exchange with its body; None: an older answer is meant, which is kept.

        Raises:
            BrowserError: the page went away.
            TimeoutError: the body did not end in time.
        """
        request, status = event["request"], int(event["responseStatusCode"])
        url: str = request["url"]
        headers = [(h["name"], h["value"]) for h in event.get("responseHeaders", [])]
        asked = [(name, str(value)) for name, value in request["headers"].items()]
        cookies = next((value for name, value in asked if name.lower() == "cookie"), "")
        set_now = await self._jar.news(urlsplit(url).hostname or "", cookies)
        self._cleaning.learn(set_now)
        headers += [("Set-Cookie", cookie.set_cookie()) for cookie in set_now]
        sent = posted(request)
        if status == 304 and (request["method"], url) in self._seen:
            return None
        truncated = self._why_not(status, event)
        body = b""
        if truncated is None and status not in _REDIRECTS and request["method"] != "HEAD":
            body = await self._body(event, session)
        self._seen.add((request["method"], url))
        return Exchange(
            method=request["method"],
            url=url,
            request_headers=asked,
            request_body=sent,
            status=status,
            phrase=event.get("responseStatusText", ""),
            headers=headers,
            body=body,
            at=datetime.now(UTC),
            kind=event["resourceType"],
            truncated=truncated,
        )

    def _why_not(self, status: int, event: dict[str, Any]) -> Truncated | None:
        """Why the body is not asked for."""
        headers = {h["name"].lower(): h["value"] for h in event.get("responseHeaders", [])}
        kind = headers.get("content-type", "").strip().lower()
        if status not in _REDIRECTS and kind.startswith(_STREAMS):
            size = headers.get("content-length", "")
            if kind.startswith(_STREAMS[:2]) or not size.isdigit():
                self.tally.streams += 1
                return "unspecified"
        size = headers.get("content-length", "")
        if size.isdigit() and int(size) > self._limits.body_bytes:
            self.tally.too_large += 1
            return "length"
        return None

    async def _body(self, event: dict[str, Any], session: str | None) -> bytes:
        answer = await self._cdp.send(
            "Fetch.getResponseBody",
            {"requestId": event["requestId"]},
            session=session,
            timeout_s=self._limits.body_s,
        )
        if answer["base64Encoded"]:
            return base64.b64decode(answer["body"])
        return str(answer["body"]).encode("utf-8", "replace")

    async def _write(self, exchange: Exchange) -> None:
        if self._failure is not None:
            return
        try:
            # In a thread, in turn: packing takes time, and the file is one.
            async with self._turn:
                await asyncio.to_thread(self._write_now, exchange)
        except OSError as error:
            self._failure = error

    def _write_now(self, exchange: Exchange) -> None:
        clean = self._cleaning.exchange(exchange)
        clean.write(self._writer)
        self.tally.kept += 1
        self.tally.bytes += len(clean.body)


def posted(request: Mapping[str, Any]) -> bytes:
    """What a request of the browser's sends; a file of the disk is left out."""
    entries = request.get("postDataEntries")
    if entries:
        return b"".join(base64.b64decode(entry.get("bytes", "")) for entry in entries)
    return str(request.get("postData", "")).encode("utf-8", "replace")


def _is_service_worker(event: dict[str, Any]) -> bool:
    names = (name.lower() for name in event["request"]["headers"])
    return "service-worker" in names
