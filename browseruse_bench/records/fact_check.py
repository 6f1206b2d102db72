"""A later look at a fact of a rubric, and what is known of the fact after all looks.

Checks stand outside the rubric, so that checking again changes no rubric and orphans no
judgement. They are only appended: what was seen on a day stays seen on that day.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from browseruse_bench.records.base import Record, content_key
from browseruse_bench.records.rubric import SHA256, Fact

Outcome = Literal[
    "confirmed",
    "changed",
    "gone",
    "login",
    "blocked",
    "unreachable",
    "unfinished",
    "unseen",
    "unquoted",
]
"""
confirmed    the page shows the quote (of an absent fact: no page shows it)
changed      the page answered in full and does not show it (of an absent fact: one shows it)
gone         the site says that there is no such page (404, 410)
login        it wants a login; nothing is known
blocked      it takes us for a robot, or refuses us; nothing is known
unreachable  nobody answers, or with an error of its own; nothing is known
unseen       it does not show it, but opening its address is not known to have ever shown it: it may take
             a click, a search or a form to see it; nothing is known
unfinished   it never came to rest, or shows no text at all; nothing is known
unquoted     the fact names no address or nothing to look for; nothing can be known
"""
ROTTED: frozenset[Outcome] = frozenset({"changed", "gone"})
CONCLUSIVE: frozenset[Outcome] = frozenset({"confirmed", *ROTTED})


def fact_key(fact: Fact) -> str:
    """Identity of what a check is about: a fact that is rewritten begins anew."""
    return content_key(
        {
            "kind": fact.kind,
            "url": fact.url,
            "quote": fact.quote,
            "values": list(fact.values),
            "pages_searched": list(fact.pages_searched),
        }
    )


class FactCheck(Record):
    """One dated look at one fact; a line of checks.jsonl."""

    task_id: str
    fact: str
    """Its id."""
    fact_key: str = Field(pattern=SHA256)
    at: str = Field(pattern=r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?Z$")
    """In UTC."""
    outcome: Outcome
    reason: str = ""
    """What stands behind the outcome, for people."""
    quote: str = ""
    """What was looked for."""
    found: str | None = None
    """What stands there now: the closest lines where it changed, its own where it was found."""
    url: str | None = None
    """The page that decided; where it led, if elsewhere, is in the archived page."""
    pages: tuple[Annotated[str, Field(pattern=SHA256)], ...] = ()
    """Keys of the archived pages that were looked at."""

    @property
    def day(self) -> str:
        """The date, in UTC."""
        return self.at[:10]


@dataclass(frozen=True, kw_only=True)
class Standing:
    """What is known of a fact after all checks."""

    state: Literal["as written", "holds", "rotted"]
    """By the last check that settled anything; `as written` where none has."""
    since: str | None
    """Of a rotted fact: the day of the first check that said so since it last held. Of one that
    holds: the day of its last confirmation. As written: the day that the rubric names."""
    confirmed: str | None
    """The last day on which it is known to have held."""
    check: FactCheck | None
    """The check that settled it."""
    unsettled: FactCheck | None
    """The last check, if it came after that and settled nothing."""


def standing(fact: Fact, checks: Sequence[FactCheck]) -> Standing:
    """What is known of a fact, from its checks in the order in which they were made.

    What settles nothing (a site that does not answer, a login) never changes what was known.
    """
    key = fact_key(fact)
    mine = [check for check in checks if check.fact_key == key]
    confirmed = fact.checked_on
    state, since, last = "as written", fact.checked_on, None
    for check in mine:
        if check.outcome not in CONCLUSIVE:
            continue
        if check.outcome == "confirmed":
            state, since, confirmed = "holds", check.day, check.day
        elif state != "rotted":
            state, since = "rotted", check.day
        last = check
    unsettled = mine[-1] if mine and mine[-1].outcome not in CONCLUSIVE else None
    return Standing(state=state, since=since, confirmed=confirmed, check=last, unsettled=unsettled)
