"""What a trace proves: the text that the harness saw in pages, as far as the pages wrote it.

**What corroborates a value** is a page's text (observations of kind `text` and `aria`) that
the harness captured, in a page with an http or https address. Nothing else does:

- not the agent's answer, thoughts, files or downloads, and no result of a call: the agent, its
  model or its script may have made them;
- not `data:`, `blob:`, `file:`, `about:`, `javascript:`, `view-source:` or error pages, and no
  page of the agent's own machine or network, unless it is of a site of the benchmark. What such
  a page shows first, an agent can copy into another one: later it proves nothing either;
- not a page after the agent ran a script of its own in it, until the next load. A load is a new
  `document_id` of the page that was not there before (a page comes back as it was left); where
  the recorder gives none, a call that asks for an address, or another origin. The script's own
  literals never count, and neither does the address that such a page leads to. After a script
  that may have left behind what its source does not show (`scripting`) no page proves anything;
- not a value after the agent gave it itself (`provided`): typed it, put it into an address, in
  whatever coding. **It counts only if a page showed it in an observation before that.** So
  neither "Results for X" nor a list of hits for X proves X; a value that was read first and
  typed later stays proved. (A page's words around an echo cannot tell it from a finding:
  "Results for" is not the agent's text either);
- not a site's snapshot or a probe: they hold what nobody saw. They are evidence of state, for
  the checks that name them.

Text is compared as the matcher does it: NFKC, case, white space, whole words, whole numbers
with the same digits.

In a trace of policy `agent_reported` what the agent says that it saw counts as seen; every
finding that stands on it says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from browseruse_bench.browsers.guard.addresses import literal, why_not_public
from browseruse_bench.eval.addresses import same
from browseruse_bench.eval.matcher import Read, Target
from browseruse_bench.eval.provided import Provided, loads
from browseruse_bench.eval.scripting import leaves_something, runs_script, stores, strings
from browseruse_bench.eval.seeking import first_place, holds_words
from browseruse_bench.eval.wording import normal, words
from browseruse_bench.records.judgement import Citation
from browseruse_bench.records.trace import Call, Observation, Page, Step
from browseruse_bench.store.trace_folder import TraceFolder

ECHO = "the page showed it only after the agent had given it itself"
SCRIPTED = "a script of the agent had run in the page"
LEFT = "a script of the agent may have left it there"
COPIED = "it was first on a page that proves nothing, from where the agent can have copied it"
NO_PAGE = "the text is not of a web page"
OWN_MACHINE = "the page is of the agent's own machine or network"
MAX_QUOTE = 240


@dataclass(frozen=True)
class PageText:
    """One text observation of the harness."""

    position: int
    """Rank among all events of the trace."""
    step: int | Literal["final"]
    ref: str
    url: str
    why_not: str | None
    """Why it proves nothing; None if it does."""


@dataclass(frozen=True)
class Picture:
    """One screenshot of the harness."""

    step: int | Literal["final"]
    ref: str
    url: str
    why_not: str | None
    """Why it proves nothing, as for a text."""


@dataclass(frozen=True)
class Moment:
    """The address bar after one step."""

    position: int
    """As of a text: rank among all events of the trace."""
    step: int | Literal["final"]
    url: str
    why_not: str | None
    """Why the address proves nothing: a script can write one into the address bar."""
    title: str = ""
    title_why_not: str | None = None
    """Why the title proves nothing."""


@dataclass(frozen=True)
class Sighting:
    """Whether a value was seen, and the best place for it."""

    holds: bool
    citation: Citation | None
    """None: the value is nowhere in the pages."""


class Evidence:
    """The evidence of one frozen trace; each file is read once."""

    def __init__(self, folder: TraceFolder) -> None:
        """Walk through the steps; texts are read when they are asked for."""
        self.folder = folder
        self.reported = folder.trace.evidence_policy == "agent_reported"
        self._reads: dict[str, Read] = {}
        self._places: dict[tuple[str, Target], tuple[int, int] | None] = {}
        self._given: dict[Target, int | None] = {}
        self.left_at: int | None = None
        """Since when any page may show what a script of the agent left behind."""
        self.provided = Provided()
        """What the agent gave itself."""
        self.texts: list[PageText] = []
        self.pictures: list[Picture] = []
        self.moments: list[Moment] = []
        walk = _Walk(self)
        for step in folder.steps:
            walk.take(step, step.index)
        walk.take(folder.trace.final, "final")
        self.scripted_at_end: bool = walk.scripted or walk.stored
        """Whether a script of the agent may have made the state of the last page."""

    def read(self, ref: str) -> Read:
        """The text of one observation, in normal form.

        Raises:
            DataError: it is not in the trace.
        """
        if ref not in self._reads:
            self._reads[ref] = Read(self.folder.evidence(ref).decode("utf-8", "replace"))
        return self._reads[ref]

    def observations(self, kind: str) -> Iterator[Observation]:
        """What the harness captured of one kind, the latest first."""
        for step in reversed(self.folder.all_steps):
            for observation in reversed(step.observations):
                if observation.kind == kind and self.counts(observation):
                    yield observation

    def counts(self, observation: Observation) -> bool:
        """Whether an observation is the harness's own, or the policy takes the agent's word."""
        return self.reported or observation.captured_by == "harness"

    def sighting(self, options: tuple[Target, ...]) -> Sighting:
        """Whether a page showed one of a value's alternatives before the agent gave it.

        Args:
            options: the alternatives; of a text in parts, each part may be on another page.
        """
        best = Sighting(holds=False, citation=None)
        for target in options:
            found = self._sighting(target)
            if found.holds:
                return found
            if target.parts:
                parts = [self.sighting((part,)) for part in target.parts]
                if all(part.holds for part in parts):
                    return parts[0]
            best = found if best.citation is None else best
        return best

    def _sighting(self, target: Target) -> Sighting:
        weak: Citation | None = None
        for text in self.texts:
            place = self.place(text.ref, target)
            if place is None:
                continue
            why = self.weakness(text, target)
            quote = excerpt(self.read(text.ref).text, *place)
            citation = Citation(
                step=text.step,
                source="page",
                ref=text.ref,
                quote=quote,
                holds=why is None,
                why_not=why,
            )
            if why is None:
                return Sighting(holds=True, citation=citation)
            weak = weak or citation
        return Sighting(holds=False, citation=weak)

    def place(self, ref: str, target: Target) -> tuple[int, int] | None:
        """Where a value stands first in a text, as (start, end) in its normal form."""
        if (ref, target) not in self._places:
            self._places[ref, target] = first_place(self.read(ref), target)
        return self._places[ref, target]

    def quote_problem(self, step: int | Literal["final"], quote: str) -> str | None:
        """Why a quote from a page does not hold at a step; None if it does.

        It must stand there word for word, in a text that proves something, and must not be
        what the agent had given itself.
        """
        target = quoted(quote)
        if target is None:
            return "the quote has no word"
        why = f"it does not stand in the page at step {step}"
        for text in self.texts:
            if text.step != step or not holds_words(self.read(text.ref), target.phrase):
                continue
            why = self.weakness(text, target)
            if why is None:
                return None
        return why

    def weakness(self, text: PageText, target: Target) -> str | None:
        """Why a text that holds a value or a quote does not prove it; None if it does."""
        if text.why_not is not None:
            return text.why_not
        given = self._first_given(target)
        if given is not None and text.position > given:
            return ECHO
        if self.left_at is not None and text.position > self.left_at:
            return LEFT
        return COPIED if self._was_copied(text, target) else None

    def _first_given(self, target: Target) -> int | None:
        if target not in self._given:
            self._given[target] = self.provided.first(target)
        return self._given[target]

    def _was_copied(self, text: PageText, target: Target) -> bool:
        """Whether a page that proves nothing showed a value before any other page did."""
        made = (t for t in self.texts if t.why_not in (NO_PAGE, OWN_MACHINE))
        source = next((t for t in made if self.place(t.ref, target) is not None), None)
        if source is None or source.position > text.position:
            return False
        before = (t for t in self.texts if t.position < source.position and t.why_not is None)
        return all(self.place(t.ref, target) is None for t in before)


def quoted(quote: str) -> Target | None:
    """A quote as what is looked for word for word; None if it has no word."""
    wanted = tuple(word.word for word in words(normal(quote)))
    return Target("text", quote, phrase=wanted) if wanted else None


def excerpt(text: str, start: int, end: int) -> str:
    """The line around a place, cut to `MAX_QUOTE` characters."""
    left = max(text.rfind("\n", 0, start) + 1, start - MAX_QUOTE // 2)
    stop = text.find("\n", end)
    right = min(stop if stop >= 0 else len(text), left + max(MAX_QUOTE, end - left))
    return text[left:right].strip()


class _Walk:
    """Goes through a trace in order and notes what proves something."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        self.position = 0
        self.stored = False
        self.current: str | None = None
        self.scripted_pages: set[str] = set()
        self.scripted_documents: set[tuple[str, str]] = set()
        self.pages: dict[str, Page] = {}
        self.trusted: dict[str, str] = {}

    @property
    def scripted(self) -> bool:
        """Whether a script of the agent ran in the current page since it was loaded."""
        return self.current in self.scripted_pages

    def take(self, step: Step, label: int | Literal["final"]) -> None:
        self._observed(step, label, "before")
        self.position += 1
        for call in step.calls:
            self.evidence.provided.add_call(self.position, call)
            self.stored = self.stored or stores(call)
            if self.evidence.left_at is None and leaves_something(call):
                self.evidence.left_at = self.position
            if "upload" in call.name.casefold():
                self._files()
        self._follow(step)
        self._observed(step, label, "after")
        if step.page_after is not None:
            self._moment(step.page_after, label)

    def _files(self) -> None:
        for path in sorted((self.evidence.folder.path / "files").rglob("*")):
            if path.is_file() and not path.is_symlink():
                self.evidence.provided.add_file(self.position, path.read_bytes())

    def _follow(self, step: Step) -> None:
        """Keep track of which pages a script of the agent ran in."""
        page = step.page_after or Page()
        target = page.target_id or step.target_id or ""
        before = self.pages.get(target)
        scripts = any(runs_script(call) for call in step.calls)
        inherits = (
            before is None
            and self.scripted
            and _origin(page.url) == _origin(self.pages[self.current or ""].url)
        )
        loaded = before is not None and _loaded(before, page, step)
        if loaded and (target, _document(page)) in self.scripted_documents:
            # It came back as it was left: by a step back, or from the cache of pages.
            loaded = bool(not page.document_id and any(loads(call) for call in step.calls))
            self.scripted_pages.add(target)
        was = target in self.scripted_pages or inherits
        if was:
            self.scripted_pages.add(target)
        if scripts and not (loaded and len(step.calls) == 1 and page.document_id):
            self.scripted_pages.add(target)
        elif loaded:
            self.scripted_pages.discard(target)
        if (scripts or was) and (before is None or page.url != before.url):
            # A script can put text into the address that a page leads to.
            self.evidence.provided.add_text(self.position, page.url)
        if target in self.scripted_pages:
            self.scripted_documents.add((target, _document(page)))
        else:
            self.scripted_documents.discard((target, _document(page)))
        self.current = target
        self.pages[target] = page

    def _observed(self, step: Step, label: int | Literal["final"], timing: str) -> None:
        page = (step.page_after if timing == "after" else step.page_before) or Page()
        for observation in step.observations:
            if observation.timing != timing or not self.evidence.counts(observation):
                continue
            ref, url = observation.ref, observation.url or page.url
            if observation.kind in ("text", "aria"):
                self.position += 1
                text = PageText(self.position, label, ref, url, self._weakness(url))
                self.evidence.texts.append(text)
            elif observation.kind == "screenshot":
                self.evidence.pictures.append(Picture(label, ref, url, self._weakness(url)))

    def _weakness(self, url: str) -> str | None:
        if not is_web(url) and not (self.evidence.reported and not url):
            return NO_PAGE
        if is_own(url, self.evidence.folder.trace.sites):
            return OWN_MACHINE
        return SCRIPTED if self.scripted else None

    def _moment(self, page: Page, label: int | Literal["final"]) -> None:
        target = self.current or ""
        why = None
        if not is_web(page.url):
            why = NO_PAGE
        elif is_own(page.url, self.evidence.folder.trace.sites):
            why = OWN_MACHINE
        elif self.scripted and self.trusted.get(target) != _no_fragment(page.url):
            why = SCRIPTED
        if why is None:
            self.trusted[target] = _no_fragment(page.url)
        title_why = self._weakness(page.url)
        self.position += 1
        moment = Moment(self.position, label, page.url, why, page.title, title_why)
        self.evidence.moments.append(moment)


def _loaded(before: Page, after: Page, step: Step) -> bool:
    """Whether another document was loaded in a page."""
    if before.document_id and after.document_id:
        return before.document_id != after.document_id
    if _origin(before.url) != _origin(after.url):
        return True
    moved = _no_fragment(before.url) != _no_fragment(after.url)
    return any(loads(call) and (moved or _asks_again(call, after.url)) for call in step.calls)


def _asks_again(call: Call, url: str) -> bool:
    """Whether a call loads the very address of a page once more."""
    if re.search("reload|refresh", call.name, re.IGNORECASE):
        return True
    return "#" not in url and any(same(text, url) for text in strings(call.arguments))


def is_web(url: str) -> bool:
    """Whether an address is one of http or https."""
    return url.casefold().startswith(("http://", "https://"))


def is_own(url: str, sites: Mapping[str, str]) -> bool:
    """Whether an address is of this machine or a private network, where an agent can serve pages.

    Args:
        url: of a page.
        sites: the hosts that the benchmark brings along; they answer from this machine.
    """
    try:
        host = (urlsplit(url).hostname or "").rstrip(".")
    except ValueError:
        return False
    if host in sites:
        return False
    address = literal(host)
    if address is None:
        return host == "localhost" or host.endswith((".localhost", ".local", ".internal"))
    return why_not_public(address) is not None


def _document(page: Page) -> str:
    """What a page is recognised by when it comes back."""
    return page.document_id or _no_fragment(page.url)


def _no_fragment(url: str) -> str:
    return url.partition("#")[0]


def _origin(url: str) -> tuple[str, str]:
    try:
        parts = urlsplit(url)
    except ValueError:
        return "", url
    return parts.scheme, parts.netloc
