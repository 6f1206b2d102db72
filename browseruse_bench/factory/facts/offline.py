"""Facts against their archives: is the quote in the bytes that the rubric names?

Nothing is opened but files. That a quote is in an archive says that the page showed it then;
whether it still does is another question (`live`), so nothing here is ever called rotted.
"""

from __future__ import annotations

import email.parser
import email.policy
import html.parser
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from browseruse_bench.benchmarks.fact_checks import FactFolder
from browseruse_bench.factory.facts.quoting import shows, sought
from browseruse_bench.factory.facts.sources import Source
from browseruse_bench.records.archived import ArchivedPage
from browseruse_bench.records.fact_check import CONCLUSIVE, fact_key
from browseruse_bench.records.rubric import Fact
from browseruse_bench.store.archive.opened import Archive
from browseruse_bench.store.archive.warc import DamagedError

Found = Literal["confirmed", "not in archive", "no archive", "damaged", "own site", "unquoted"]
"""
confirmed        the archived page shows the quote (of an absent fact: none shows it)
not in archive   the archive is whole and does not show it: the rubric claims what it has no
                 evidence for
no archive       the rubric names no archived page, or the page is in no archive here
damaged          the archive is torn or was changed
own site         a fact of a site that the benchmark brings along, which has no archive
unquoted         the fact names nothing that could be looked for
"""
GOOD: frozenset[Found] = frozenset({"confirmed", "own site"})


@dataclass(frozen=True, kw_only=True)
class Extracted:
    """What the archives say of one fact, or of one later check of it."""

    task_id: str
    fact: str
    checked: str | None
    """Time of the check; None: the fact as the rubric states it."""
    found: Found
    reason: str
    quote: str
    pages: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {
            "task_id": self.task_id,
            "fact": self.fact,
            "checked": self.checked,
            "outcome": self.found,
            "reason": self.reason,
            "quote": self.quote,
            "pages": list(self.pages),
        }


class Shelf:
    """The archives of one `facts/` folder, of which the last one that was opened stays open."""

    def __init__(self, folder: FactFolder) -> None:
        """Open nothing yet."""
        self._folder = folder
        self._open: Archive | None = None

    def text(self, key: str) -> tuple[ArchivedPage, str, str] | str:
        """A page, its visible text and that of its MHTML; or why it is not to be had.

        Raises:
            DamagedError: its archive is torn or was changed.
        """
        path = self._folder.holder(key)
        if path is None:
            damaged = "; ".join(self._folder.damaged())
            if damaged:
                raise DamagedError(damaged)
            return f"page {key[:12]} is in no archive of {self._folder.archives}"
        archive = self._archive(path)
        page = archive.pages.get(key)
        if page is None:
            raise DamagedError(f"{path}: does not hold page {key[:12]}, which it is named after")
        text = (archive.part(page, "text") or b"").decode("utf-8", "replace")
        mhtml = archive.part(page, "mhtml")
        return page, text, "" if mhtml is None else text_of_mhtml(mhtml)

    def close(self) -> None:
        """Close what is open."""
        if self._open is not None:
            self._open.close()
            self._open = None

    def _archive(self, path: Path) -> Archive:
        if self._open is None or self._open.path != path:
            self.close()
            self._open = Archive.open(path)
        return self._open


def extract(source: Source) -> Iterator[Extracted]:
    """Each fact of a rubric, and each later check that settled something, against its archives.

    Raises:
        DataError: the checks of a fact cannot be read.
    """
    shelf = Shelf(source.folder)
    try:
        for fact in source.facts:
            yield _fact(source, fact, shelf)
            for check in source.folder.checks(source.rubric.task_id, fact.id):
                if check.fact_key != fact_key(fact) or check.outcome not in CONCLUSIVE:
                    continue
                wanted = (fact.kind == "present") == (check.outcome == "confirmed")
                found, reason = _look(fact, check.pages, shelf, shown=wanted)
                yield Extracted(
                    task_id=source.rubric.task_id,
                    fact=fact.id,
                    checked=check.at,
                    found=found,
                    reason=reason,
                    quote=check.quote,
                    pages=check.pages,
                )
    finally:
        shelf.close()


def _fact(source: Source, fact: Fact, shelf: Shelf) -> Extracted:
    pages = fact.archived or ()
    found: Found
    if not pages and fact.how == "site":
        found, reason = "own site", "the site is its own archive; check it with --live"
    elif not pages:
        found, reason = "no archive", "the rubric names no archived page"
    else:
        found, reason = _look(fact, pages, shelf, shown=fact.kind == "present")
    return Extracted(
        task_id=source.rubric.task_id,
        fact=fact.id,
        checked=None,
        found=found,
        reason=reason,
        quote=" | ".join(sought(fact)),
        pages=tuple(pages),
    )


def _look(fact: Fact, keys: tuple[str, ...], shelf: Shelf, *, shown: bool) -> tuple[Found, str]:
    """Whether pages show (or do not show) what a fact is about."""
    wanted = sought(fact)
    if not wanted:
        return "unquoted", "it has neither a quote nor values"
    pages: list[tuple[ArchivedPage, str, str]] = []
    try:
        for key in keys:
            page = shelf.text(key)
            if isinstance(page, str):
                return "no archive", page
            pages.append(page)
    except DamagedError as error:
        return "damaged", "; ".join(error.problems)
    if not pages:
        return "no archive", "no page was archived"
    seen = {
        quote: [
            (page.final_url, "text" if shows(text, quote) else "MHTML")
            for page, text, rendered in pages
            if shows(text, quote) or shows(rendered, quote)
        ]
        for quote in wanted
    }
    where = next((places[0] for places in seen.values() if places), None)
    if shown:
        missing = [quote for quote, places in seen.items() if not places]
        if missing or where is None:
            return "not in archive", f"not on the archived page: {missing[0][:200]!r}"
        return "confirmed", f"in the {where[1]} of {where[0]}"
    if where is not None:
        return "not in archive", f"the archived page does show it: {where[0]}"
    return "confirmed", f"on none of {len(pages)} archived pages"


class _Visible(html.parser.HTMLParser):
    """Collects the text of a rendered document, without what is never shown."""

    _HIDDEN = frozenset({"script", "style", "noscript", "title"})
    _INLINE = frozenset({"a", "abbr", "b", "code", "em", "i", "mark", "small", "span", "strong", "sub", "sup", "u"})  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self._inside = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._inside += tag in self._HIDDEN
        if tag not in self._INLINE:
            self.parts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        self._inside -= tag in self._HIDDEN and self._inside > 0
        if tag not in self._INLINE:
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        if not self._inside:
            self.parts.append(data)


def text_of_mhtml(content: bytes) -> str:
    """The text of all documents in an MHTML file: those of frames and shadow roots, too."""
    whole = email.parser.BytesParser(policy=email.policy.compat32).parsebytes(content)
    texts: list[str] = []
    for part in whole.walk():
        decoded = part.get_payload(decode=True)
        if part.get_content_type() == "text/html" and isinstance(decoded, bytes):
            reader = _Visible()
            reader.feed(decoded.decode(part.get_content_charset("utf-8"), "replace"))
            reader.close()
            texts.append("".join(reader.parts))
    return "\n".join(texts)
