"""What a page that was seen today says about a fact; decided by code alone."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from browseruse_bench.factory.facts.quoting import excerpt, instead, shows, sought
from browseruse_bench.records.archived import ArchivedPage
from browseruse_bench.records.fact_check import FactCheck, Outcome, fact_key
from browseruse_bench.records.rubric import Fact

_GONE = frozenset({404, 410})
_LOGIN = frozenset({401, 407})
_REFUSED = frozenset({403, 429, 451})
_LOGIN_PATH = re.compile(r"(?:^|[/_.-])(?:log-?in|sign-?in|sso|auth|authenticate|account/session)(?:[/_.-]|$)", re.IGNORECASE)  # fmt: skip
_ROBOT = re.compile(
    r"verify (?:that )?you(?:'re| are) (?:a )?human|(?:are|prove) you(?:'re| are)? (?:a human|not a robot)"
    r"|i'?m not a robot|unusual traffic|checking your browser|just a moment\.\.\.|enable javascript "
    r"and cookies|access denied|pardon our interruption|attention required|press (?:and|&) hold"
    r"|complete the captcha|security check to access",
    re.IGNORECASE,
)
_SHORT = 3_000
"""A page with more characters than this is no notice to robots."""


@dataclass(frozen=True, kw_only=True)
class Seen:
    """One address, as it was seen today."""

    url: str
    page: ArchivedPage | None
    """None: there was none to be seen."""
    text: str = ""
    why: str = ""
    """Why there was none."""

    def without_answer(self) -> tuple[Outcome, str] | None:
        """Why the page says nothing about any fact, or that it is gone; None: it may say."""
        page = self.page
        if page is None:
            return "unreachable", self.why
        status = page.status
        led = f" (led to {page.final_url})" if page.final_url != page.url else ""
        if status in _LOGIN:
            return "login", f"HTTP {status}{led}"
        if status in _GONE:
            return "gone", f"HTTP {status}{led}"
        if status in _REFUSED:
            return "blocked", f"HTTP {status}{led}"
        if status is not None and status >= 400:
            return "unreachable", f"HTTP {status}{led}"
        if len(self.text) < _SHORT and (found := _ROBOT.search(self.text)):
            return "blocked", f"the page says: {found[0]!r}"
        if self._is_login(page):
            return "login", f"a page to sign in{led}"
        if not self.text.strip():
            return "unfinished", "the page shows no text"
        return None

    def _is_login(self, page: ArchivedPage) -> bool:
        """Whether a login stands in the way of what was asked for."""
        if page.final_url.partition("#")[0] == page.url.partition("#")[0]:
            # A page with its own address may have a login at its edge: its text is what it is.
            return page.asks_login and len(self.text) < _SHORT // 6
        return page.asks_login or bool(_LOGIN_PATH.search(urlsplit(page.final_url).path))


def addresses(fact: Fact) -> tuple[str, ...]:
    """The pages on which a fact is decided."""
    if fact.kind == "absent":
        return fact.pages_searched or ((fact.url,) if fact.url else ())
    return (fact.url,) if fact.url else ()


def judge(
    task_id: str,
    fact: Fact,
    seen: Mapping[str, Seen],
    *,
    at: str,
    before: str | None,
    was_shown: bool,
) -> FactCheck:
    """A dated check of a fact.

    Args:
        task_id: of the rubric.
        fact: what is claimed.
        seen: address -> what was seen there today; all `addresses` of the fact.
        at: the time, in UTC.
        before: the text of the page as it was when it held, to find what stands there now.
        was_shown: whether opening the address is known to have shown it once. Only then is its
            absence a change: a value that stands behind a click is not gone.
    """
    pages, wanted = addresses(fact), sought(fact)
    outcome: Outcome
    outcome, reason, found, url = (
        "unquoted",
        "no address, or neither a quote nor values",
        None,
        None,
    )
    if pages and wanted:
        decide = _present if fact.kind == "present" else _absent
        outcome, reason, found, url = decide(wanted, [seen[page] for page in pages], before)
    if outcome == "changed" and fact.kind == "present" and not was_shown:
        outcome, found = "unseen", None
        reason = (
            f"{reason.replace('no longer there', 'not there')}; it is not known that it ever was"
        )
    archived = (seen[page].page for page in pages if page in seen)
    return FactCheck(
        task_id=task_id,
        fact=fact.id,
        fact_key=fact_key(fact),
        at=at,
        outcome=outcome,
        reason=reason,
        quote=" | ".join(wanted),
        found=found,
        url=url or (pages[0] if pages else None),
        pages=tuple(dict.fromkeys(page.key for page in archived if page is not None)),
    )


_Decided = tuple[Outcome, str, str | None, str]


def _present(wanted: Sequence[str], seen: Sequence[Seen], before: str | None) -> _Decided:
    (one,) = seen
    missing = [quote for quote in wanted if not shows(one.text, quote)]
    page, silent = one.page, one.without_answer()
    if page is not None and not missing and (page.status or 200) < 400:
        return "confirmed", "", excerpt(one.text, wanted[0]), one.url
    if silent is not None:
        return silent[0], silent[1], None, one.url
    if page is not None and not page.settled:
        why = "the page never came to rest, and does not show it so far"
        return "unfinished", why, None, one.url
    now = instead(one.text, missing[0], before)
    return "changed", f"no longer there: {missing[0][:200]!r}", now, one.url


def _absent(wanted: Sequence[str], seen: Sequence[Seen], _before: str | None) -> _Decided:
    for one in seen:
        for quote in wanted:
            if one.page is not None and shows(one.text, quote):
                why = f"it is there now: {quote[:200]!r}"
                return "changed", why, excerpt(one.text, quote), one.url
    for one in seen:
        silent = one.without_answer()
        if silent is not None and silent[0] == "gone":
            # It shows nothing any more, but what was searched then cannot be searched again.
            return "unreachable", f"a page that was searched is gone: {silent[1]}", None, one.url
        if silent is not None:
            return silent[0], silent[1], None, one.url
        if one.page is not None and not one.page.settled:
            return "unfinished", "the page never came to rest", None, one.url
    return "confirmed", f"on none of {len(seen)} pages", None, seen[0].url
