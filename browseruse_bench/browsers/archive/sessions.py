"""Whole sessions: pages recorded into a package, and a package seen again without a network."""

from __future__ import annotations

import asyncio
import contextlib
import difflib
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from browseruse_bench.browsers.archive.cleaning import Cleaning
from browseruse_bench.browsers.archive.looking import Look, Looker, Patience, Unreachable
from browseruse_bench.browsers.archive.recording import Limits, Recording, Tally
from browseruse_bench.browsers.archive.replaying import Replay, ReplayTally
from browseruse_bench.browsers.base import Backend, Session, SessionRequest
from browseruse_bench.browsers.storage_state import read_storage_state
from browseruse_bench.errors import BrowserError, DataError
from browseruse_bench.records.archived import ArchivedPage
from browseruse_bench.store.archive.opened import Archive
from browseruse_bench.store.archive.wacz import SUFFIX, package
from browseruse_bench.store.redact import SURE_CHARS, Redactor

Told = Callable[[str], None]
"""Called with one line about what was just done."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What a session is opened with."""

    hosts: Mapping[str, tuple[str, int]] = field(default_factory=dict[str, tuple[str, int]])
    fence: bool = False
    storage_state: Path | None = None
    """A login; what it consists of is kept nowhere."""

    @property
    def redactor(self) -> Redactor:
        """Knows the secrets of the environment, and the login's.

        Raises:
            DataError: the login's file is none.
        """
        if self.storage_state is None:
            return Redactor.of_environment()
        state = read_storage_state(self.storage_state)
        values = [cookie.value for cookie in state.cookies]
        values += [item.value for origin in state.origins for item in origin.localStorage]
        # A shorter one may be a word or a date, which pages show for reasons of their own.
        return Redactor.of_environment(more=(v for v in values if len(v) >= SURE_CHARS))


@contextlib.asynccontextmanager
async def opened(backend: Backend, wanted: Wanted) -> AsyncGenerator[Session]:
    """A browser of its own, outside of any run; nothing of it is left.

    Raises:
        BrowserError: none could be started.
    """
    with tempfile.TemporaryDirectory(prefix="bubench-") as name:
        folder = Path(name).resolve()
        request = SessionRequest(
            work=folder / "work",
            downloads=folder / "downloads",
            owner=folder,
            hosts=wanted.hosts,
            fence=wanted.fence,
            storage_state=wanted.storage_state,
        )
        async with backend.open(request) as session:
            yield session


def socket_of(session: Session) -> tuple[str, str]:
    """The browser-level socket and the first page of a session.

    Raises:
        BrowserError: it has no browser.
    """
    if session.ws_url is None or session.target_id is None:
        raise BrowserError("this backend has no browser to be recorded; use --browser local or cdp")
    return session.ws_url, session.target_id


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """A package that was made."""

    path: Path
    pages: tuple[ArchivedPage, ...]
    unreachable: Mapping[str, str]
    """Address -> why there was no page."""
    tally: Tally
    n_bytes: int
    seconds: float

    def as_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {
            "archive": str(self.path),
            "pages": [{"key": page.key, **page.as_json()} for page in self.pages],
            "unreachable": dict(self.unreachable),
            "answers": self.tally.as_json(),
            "bytes": self.n_bytes,
            "seconds": round(self.seconds, 3),
        }


async def record(
    backend: Backend,
    out: Path,
    urls: Sequence[str],
    *,
    wanted: Wanted | None = None,
    patience: Patience | None = None,
    limits: Limits | None = None,
    until: Awaitable[object] | None = None,
    told: Told = lambda _line: None,
) -> Recorded:
    """Open each address in one fresh browser and keep all of it in a package.

    Args:
        backend: of the browser.
        out: the package, NAME.wacz; it must not be there.
        urls: opened one after the other.
        wanted: of the session.
        patience: of each look.
        limits: of each answer.
        until: what to wait for after the last of them, while whatever the browser does is kept.
        told: hears of each page.

    Raises:
        DataError: `out` is there, or is no .wacz.
        BrowserError: there is no browser, or it died; what was kept until then is in the package.
        StoreError: some of it could not be written.
    """
    wanted, patience = wanted or Wanted(), patience or Patience()
    _check_out(out)
    started = time.monotonic()
    pages: list[ArchivedPage] = []
    unreachable: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="bubench-", dir=_parent(out)) as name:
        warc = Path(name) / "data.warc.gz"
        tally = Tally()
        try:
            async with opened(backend, wanted) as session:
                ws_url, target_id = socket_of(session)
                async with recording(ws_url, warc, wanted.redactor, limits) as kept:
                    tally = kept.tally
                    async with looker(ws_url, target_id, kept.cleaning) as eye:
                        for url in urls:
                            try:
                                look = await eye.visit(url, patience)
                            except Unreachable as why:
                                unreachable[url] = str(why)
                                told(str(why))
                                continue
                            await kept.keep(look.page, look.parts)
                            pages.append(look.page)
                            told(_line(look))
                    if until is not None:
                        await until
        finally:
            if warc.is_file():
                await asyncio.to_thread(package, warc, out, title=out.stem)
    return Recorded(
        path=out,
        pages=tuple(pages),
        unreachable=unreachable,
        tally=tally,
        n_bytes=out.stat().st_size,
        seconds=time.monotonic() - started,
    )


@contextlib.asynccontextmanager
async def recording(
    ws_url: str, warc: Path, redactor: Redactor, limits: Limits | None = None
) -> AsyncGenerator[Recording]:
    """A recording that is written whole when the block is left."""
    kept = await Recording.start(ws_url, warc, redactor=redactor, limits=limits)
    try:
        yield kept
    finally:
        await kept.close()


@contextlib.asynccontextmanager
async def looker(ws_url: str, target_id: str, cleaning: Cleaning) -> AsyncGenerator[Looker]:
    """A looker that lets go of its tab when the block is left."""
    eye = await Looker.attach(ws_url, target_id, cleaning)
    try:
        yield eye
    finally:
        await eye.close()


@dataclass(frozen=True, kw_only=True)
class SeenAgain:
    """A page of an archive in its replay."""

    page: ArchivedPage
    problem: str | None
    """Why it could not be opened; None: it was."""
    likeness: float
    """0..1: how much of its text is what it was."""

    def as_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {
            "key": self.page.key,
            "url": self.page.url,
            "problem": self.problem,
            "likeness": round(self.likeness, 4),
        }


@dataclass(frozen=True, kw_only=True)
class Replayed:
    """An archive that was seen again."""

    path: Path
    pages: tuple[SeenAgain, ...]
    tally: ReplayTally
    seconds: float

    @property
    def holds(self) -> bool:
        """Whether nothing was missed and every page is what it was."""
        return not self.tally.missed and all(p.likeness == 1 for p in self.pages)

    def as_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {
            "archive": str(self.path),
            "pages": [page.as_json() for page in self.pages],
            **self.tally.as_json(),
            "seconds": round(self.seconds, 3),
        }


@contextlib.asynccontextmanager
async def replaying(
    backend: Backend, archive: Archive, *, exact: bool = False
) -> AsyncGenerator[tuple[Session, Replay]]:
    """A fenced browser whose every request the archive answers; it ends before the replay does.

    Raises:
        BrowserError: there is no browser, or its backend cannot fence it in.
    """
    async with contextlib.AsyncExitStack() as stack:
        ending: list[Replay] = []

        async def end() -> None:
            for replay in ending:
                await replay.close()

        stack.push_async_callback(end)
        session = await stack.enter_async_context(opened(backend, Wanted(fence=True)))
        replay = await Replay.start(socket_of(session)[0], archive, exact=exact)
        ending.append(replay)
        yield session, replay


async def replay_pages(
    backend: Backend,
    path: Path,
    *,
    exact: bool = False,
    patience: Patience | None = None,
    told: Told = lambda _line: None,
) -> Replayed:
    """Open every page of an archive again, in their order, and compare the texts.

    Raises:
        ConfigError: there is no such archive.
        DamagedError: it is torn or was changed.
        DataError: it holds no page.
        BrowserError: there is no browser, or it died.
    """
    patience = patience or Patience()
    started = time.monotonic()
    with await asyncio.to_thread(Archive.open, path) as archive:
        if not archive.pages:
            raise DataError(f"{path}: holds no page that was looked at; its traffic can be replayed to "
                            "a browser of your own with --hold")  # fmt: skip
        pages: list[SeenAgain] = []
        async with replaying(backend, archive, exact=exact) as (session, replay):
            ws_url, target_id = socket_of(session)
            async with looker(ws_url, target_id, Cleaning(Redactor.of_environment())) as eye:
                for page in archive.pages.values():
                    pages.append(await _see_again(eye, archive, page, patience))
                    told(f"{pages[-1].likeness:7.1%}  {page.url}")
    return Replayed(
        path=path, pages=tuple(pages), tally=replay.tally, seconds=time.monotonic() - started
    )


async def _see_again(
    eye: Looker, archive: Archive, page: ArchivedPage, patience: Patience
) -> SeenAgain:
    try:
        look = await eye.visit(page.url, patience)
    except Unreachable as why:
        return SeenAgain(page=page, problem=str(why), likeness=0.0)
    before = (archive.part(page, "text") or b"").decode("utf-8", "replace")
    return SeenAgain(page=page, problem=None, likeness=likeness(before, look.text))


def likeness(before: str, after: str) -> float:
    """0..1: the share of lines that two texts have in common, in order."""
    if before == after:
        return 1.0
    lines = [text.splitlines() for text in (before, after)]
    return difflib.SequenceMatcher(None, lines[0], lines[1], autojunk=False).ratio()


def _check_out(out: Path) -> None:
    if out.suffix != SUFFIX:
        raise DataError(f"{out}: a package ends in {SUFFIX}")
    if out.exists():
        raise DataError(f"{out}: is there already; nothing is overwritten, choose another name")


def _parent(out: Path) -> Path:
    out.parent.mkdir(parents=True, exist_ok=True)
    return out.parent


def _line(look: Look) -> str:
    page = look.page
    led = f" -> {page.final_url}" if page.final_url != page.url else ""
    rest = "" if page.settled else ", not at rest"
    return f"{page.status or '-'}  {page.n_chars:>7} characters  {page.url}{led}{rest}"
