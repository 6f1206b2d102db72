"""Facts against the site as it is today: each page is seen, archived, and decided by code.

A check is appended as soon as all pages of its fact were seen, after their archive is on disk:
whoever stops in between has what was done. Before a fact is called changed, its page is opened
a second time.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

from browseruse_bench.benchmarks.fact_checks import FactFolder
from browseruse_bench.browsers.archive.looking import Look, Looker, Patience, Unreachable
from browseruse_bench.browsers.archive.recording import Limits
from browseruse_bench.browsers.archive.sessions import Wanted, looker, opened, recording, socket_of
from browseruse_bench.browsers.base import Backend
from browseruse_bench.errors import BrowserError, DataError
from browseruse_bench.factory.facts.looking import Seen, addresses, judge
from browseruse_bench.factory.facts.offline import Shelf
from browseruse_bench.factory.facts.quoting import shows, sought
from browseruse_bench.factory.facts.sources import Source, Surroundings
from browseruse_bench.records.fact_check import CONCLUSIVE, FactCheck, fact_key
from browseruse_bench.records.rubric import Fact
from browseruse_bench.sites.process import SitePool
from browseruse_bench.store.archive.wacz import SUFFIX, package

_TRIES = 2
"""Browsers that one page may cost before it counts as unreachable."""
_SEED = 0
"""Of the sites that a benchmark brings along; that of its runs."""


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, kw_only=True)
class Looking:
    """How pages are looked at."""

    backend: Backend
    patience: Patience = field(default_factory=Patience)
    pace_s: float = 1.0
    """Between two pages of one host of the web; sites of our own are not waited for."""
    again_s: float = 2.0
    """Before a page is opened a second time."""
    storage_state: Path | None = None
    older_than_days: float = 0
    """Facts that a check settled less than so long ago are left alone."""
    clock: Callable[[], datetime] = _now


@dataclass(frozen=True, kw_only=True)
class _Subject:
    """One fact, and where its checks go."""

    task_id: str
    fact: Fact
    pages: tuple[str, ...]


async def verify(
    sources: Sequence[Source], looking: Looking, told: Callable[[FactCheck], None]
) -> list[FactCheck]:
    """Look at every page of every fact again, and append a dated check of each.

    Args:
        sources: the rubrics.
        looking: how.
        told: hears of each check once it is on disk.

    Returns:
        The checks, in the order in which they were made.

    Raises:
        DataError: older checks cannot be read.
        BrowserError: no browser could be started.
        SiteError: a site that a benchmark brings along cannot be started.
        StoreError: a check or an archive cannot be written.
    """
    groups: dict[object, list[Source]] = {}
    for source in sources:
        groups.setdefault((source.folder.root, source.surroundings.key), []).append(source)
    checks: list[FactCheck] = []
    for group in groups.values():
        async with aclosing(_verify_group(group, looking)) as made:
            async for check in made:
                checks.append(check)
                told(check)
    return checks


async def _verify_group(sources: Sequence[Source], looking: Looking) -> AsyncGenerator[FactCheck]:
    """The checks of rubrics that share a folder and a browser."""
    folder, around = sources[0].folder, sources[0].surroundings
    subjects = [subject for source in sources for subject in _due(source, looking)]
    seen: dict[str, Seen] = {}
    for subject in [s for s in subjects if not s.pages or not sought(s.fact)]:
        subjects.remove(subject)
        yield _append(folder, subject, seen, looking)
    if not subjects:
        return
    async with _places(around) as hosts:
        wanted = Wanted(
            hosts=hosts,
            fence=not around.public,
            storage_state=looking.storage_state,
        )
        async with aclosing(_looks(tuple(subjects), folder, looking, wanted)) as looks:
            async for one in looks:
                seen[one.url] = one
                for subject in [s for s in subjects if all(page in seen for page in s.pages)]:
                    subjects.remove(subject)
                    yield _append(folder, subject, seen, looking)


def _due(source: Source, looking: Looking) -> list[_Subject]:
    """The facts of a rubric that were not settled lately."""
    due: list[_Subject] = []
    for fact in source.facts:
        checks = source.folder.checks(source.rubric.task_id, fact.id)
        key, newest = fact_key(fact), looking.clock() - timedelta(days=looking.older_than_days)
        lately = any(
            c.fact_key == key
            and c.outcome in CONCLUSIVE
            and datetime.fromisoformat(c.at.replace("Z", "+00:00")) > newest
            for c in checks
        )
        if not lately or not looking.older_than_days:
            due.append(_Subject(task_id=source.rubric.task_id, fact=fact, pages=addresses(fact)))
    return due


def _append(
    folder: FactFolder, subject: _Subject, seen: Mapping[str, Seen], looking: Looking
) -> FactCheck:
    at = looking.clock().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    before, was_shown = _before(folder, subject)
    check = judge(subject.task_id, subject.fact, seen, at=at, before=before, was_shown=was_shown)
    folder.append(check)
    return check


def _before(folder: FactFolder, subject: _Subject) -> tuple[str | None, bool]:
    """The page of a fact as it was when it last held, where an archive of it is to be had; and
    whether opening its address is known to have shown it.
    """
    key = fact_key(subject.fact)
    checks = folder.checks(subject.task_id, subject.fact.id)
    held = [c.pages for c in checks if (c.outcome, c.fact_key) == ("confirmed", key) and c.pages]
    keys = (held[-1] if held else ()) or subject.fact.archived or ()
    shelf = Shelf(folder)
    try:
        found = shelf.text(keys[0]) if keys else ""
    except DataError:
        found = ""  # `verify --offline` tells of it; here it is as if there were none
    finally:
        shelf.close()
    if isinstance(found, str):
        return None, bool(held)
    page, text, _ = found
    shown = page.by_address and all(shows(text, quote) for quote in sought(subject.fact))
    return text, bool(held) or shown


@asynccontextmanager
async def _places(around: Surroundings) -> AsyncGenerator[Mapping[str, tuple[str, int]]]:
    """The own sites of a benchmark, started; they end when the block is left."""
    if not around.sites:
        yield {}
        return
    async with AsyncExitStack() as stack:
        owner = stack.enter_context(tempfile.TemporaryDirectory(prefix="bubench-"))
        pool = SitePool(Path(owner).resolve(), around.sites, seed=_SEED)
        stack.push_async_callback(pool.close)
        lease = await stack.enter_async_context(pool.lease())
        yield lease.hosts


async def _looks(
    subjects: Sequence[_Subject], folder: FactFolder, looking: Looking, wanted: Wanted
) -> AsyncGenerator[Seen]:
    """Every page once, in the order of the facts; a browser that dies is replaced."""
    left = list(dict.fromkeys(page for subject in subjects for page in subject.pages))
    last: dict[str, float] = {}
    failed: Counter[str] = Counter()
    while left:
        url = None
        try:
            async with opened(looking.backend, wanted) as session:
                see = _See(*socket_of(session), folder, looking, wanted)
                while left:
                    url = left[0]
                    await _pause(url, last, looking, wanted)
                    seen = await see.page(url, _quotes(url, subjects))
                    left.pop(0)
                    yield seen
        except (BrowserError, TimeoutError) as error:
            if url is None:
                raise
            failed[url] += 1
            if failed[url] == _TRIES and url in left:
                left.remove(url)
                yield Seen(url=url, page=None, why=f"the browser could not show it: {error}")


def _quotes(url: str, subjects: Sequence[_Subject]) -> tuple[str, ...]:
    """What is hoped for on a page."""
    present = (s.fact for s in subjects if url in s.pages and s.fact.kind == "present")
    return tuple(quote for fact in present for quote in sought(fact))


async def _pause(url: str, last: dict[str, float], looking: Looking, wanted: Wanted) -> None:
    host, loop = urlsplit(url).hostname or "", asyncio.get_running_loop()
    if host in last and host not in wanted.hosts:
        await asyncio.sleep(max(0.0, last[host] + looking.pace_s - loop.time()))
    last[host] = loop.time()


@dataclass(frozen=True)
class _See:
    """Sees pages in one browser, each with an archive of its own."""

    ws_url: str
    target_id: str
    folder: FactFolder
    looking: Looking
    wanted: Wanted

    async def page(self, url: str, quotes: Sequence[str]) -> Seen:
        """One address, opened again where the first look is not all that was hoped for.

        Raises:
            BrowserError, TimeoutError: the browser died.
            StoreError, OSError: the archive cannot be written.
        """
        with tempfile.TemporaryDirectory(prefix="bubench-") as name:
            warc = Path(name) / "data.warc.gz"
            redactor = self.wanted.redactor
            async with (
                recording(self.ws_url, warc, redactor, Limits()) as kept,
                looker(self.ws_url, self.target_id, kept.cleaning) as eye,
            ):
                seen, look = await self._once(eye, url)
                silent = seen.without_answer()
                if silent is not None or not all(shows(seen.text, quote) for quote in quotes):
                    await asyncio.sleep(self.looking.again_s)
                    again, second = await self._once(eye, url)
                    if second is not None:
                        seen, look = again, second
                if look is not None:
                    await kept.keep(look.page, look.parts)
            if look is not None:
                out = self.folder.archives / f"{look.page.key}{SUFFIX}"
                await asyncio.to_thread(package, warc, out, title=look.page.final_url)
        return seen

    async def _once(self, eye: Looker, url: str) -> tuple[Seen, Look | None]:
        try:
            look = await eye.visit(url, self.looking.patience)
        except Unreachable as why:
            return Seen(url=url, page=None, why=str(why).removeprefix(f"{url}: ")), None
        return Seen(url=url, page=look.page, text=look.text), look
