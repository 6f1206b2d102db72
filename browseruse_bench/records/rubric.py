"""A rubric: what is known about one task, and the weighted items that its score is made of.

There are two profiles. What loads is what publishers wrote: facts without a date, free text,
weights that are exact rationals. What may be released is strict: `shortcomings` names all that
is missing for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from fractions import Fraction
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import (
    BeforeValidator,
    Field,
    PlainSerializer,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from browseruse_bench.records.base import Record, content_key

CANARY = re.compile(r"BUB-CANARY-[0-9a-f]{16}")
"""The form of our own canaries; publishers have others."""
SHA256 = r"^[0-9a-f]{64}$"
MARKER = "|OR|"
"""Parts the alternatives of a value (read by `eval.wording.alternatives` alone)."""

Value = str | int | float


def _weight(value: Any) -> Fraction:
    """A finite positive number or a text such as "100/3"; a bool is not a number."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str, Fraction)):
        raise ValueError("a weight is a number")
    if isinstance(value, str) and "/" not in value:
        raise ValueError('a weight is a number, or an exact rational such as "100/3"')
    try:
        weight = Fraction(value)
    except (ValueError, OverflowError, ZeroDivisionError):
        raise ValueError("a weight is finite") from None
    if weight <= 0:
        raise ValueError("a weight is above 0")
    return weight


def _plain_weight(weight: Fraction) -> int | str:
    return weight.numerator if weight.denominator == 1 else str(weight)


Weight = Annotated[
    Fraction,
    BeforeValidator(_weight),
    PlainSerializer(_plain_weight, return_type=int | str),
]


class AnswerCheck(Record):
    """The agent's answer states the values, and has seen them."""

    kind: Literal["answer"] = "answer"
    values: tuple[Value, ...] = Field(min_length=1)
    """What the answer must state; an item of alternatives is written "a|OR|b"."""
    match: Literal["number", "date", "text", "list"] = "text"
    tolerance: float = Field(default=0, ge=0)
    """For numbers: absolute, in the value's own unit."""
    seen: tuple[Value, ...] | None = None
    """What must occur in the harness's evidence; default the values themselves. A computed
    answer lists its operands. An empty list is refused: then nothing would corroborate."""

    @model_validator(mode="after")
    def _corroborated(self) -> Self:
        if self.seen is not None and not self.seen:
            raise ValueError("seen: an empty list corroborates nothing; leave it out or fill it")
        return self


class UrlCheck(Record):
    """A page with this address was current."""

    kind: Literal["url"] = "url"
    host: str = Field(min_length=1)
    path: str | None = None
    """Exact path; a trailing slash does not count. None: any path."""
    query: dict[str, str] = {}
    """Parameters that must be there with these values; others are allowed."""
    when: Literal["final", "any"] = "final"


class StateCheck(Record):
    """A query over the snapshot of a site's SQLite database gives exactly these rows."""

    kind: Literal["state"] = "state"
    site: str
    """Host name of the site, as in data_info.json."""
    sql: str = Field(min_length=1)
    """One SELECT; run read-only with a time limit."""
    equals: tuple[tuple[Value | None, ...], ...]


class FileCheck(Record):
    """A file that the agent saved or downloaded."""

    kind: Literal["file"] = "file"
    name: str = Field(min_length=1)
    """Base name, or a glob pattern such as "*.csv"."""
    contains: str | None = Field(default=None, min_length=1)
    sha256: str | None = Field(default=None, pattern=r"^[0-9a-f]{64}$")
    host: str | None = Field(default=None, min_length=1)
    """Only a download from this host counts, by the address that the browser told of it; not a
    file that the agent wrote itself."""

    @model_validator(mode="after")
    def _one_criterion(self) -> Self:
        if (self.contains is None) == (self.sha256 is None):
            raise ValueError("give exactly one of contains and sha256")
        return self


class ProbeCheck(Record):
    """A probe of data_info.json gave exactly this value in the final page."""

    kind: Literal["probe"] = "probe"
    name: str
    equals: Any

    @model_serializer(mode="wrap")
    def _with_null(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """A probe may have to give null, which is not the same as a check that says nothing."""
        return {**handler(self), "equals": self.equals}


Check = Annotated[
    AnswerCheck | UrlCheck | StateCheck | FileCheck | ProbeCheck, Field(discriminator="kind")
]


class Fact(Record):
    """A claim about the world that was checked on a date."""

    id: str = Field(min_length=1)
    claim: str = Field(min_length=1)
    values: tuple[Value, ...] = ()
    url: str | None = None
    quote: str | None = None
    kind: Literal["present", "absent"] = "present"
    checked_on: str | None = Field(default=None, pattern=r"^\d{4}-\d{2}-\d{2}$")
    how: Literal["live", "archive", "traces", "site"] | None = None
    """`site`: computed from the data of a site that the benchmark brings along."""
    pages_searched: tuple[str, ...] = ()
    """For `absent`: the addresses of all pages on which it was looked for."""
    archived: tuple[Annotated[str, Field(pattern=SHA256)], ...] | None = None
    """SHA-256 of each archived page that shows it or, for `absent`, that was searched."""

    @property
    def standing(self) -> str:
        """What is known of it, and since when. That something is nowhere can be left
        unfalsified, never proved.
        """
        if self.kind == "present":
            return f"seen on {self.checked_on}" if self.checked_on else "seen, undated"
        return f"unfalsified as of {self.checked_on}" if self.checked_on else "unfalsified, undated"


class Statement(Record):
    """A sentence of a rubric and the facts that it stands on."""

    text: str = Field(min_length=1)
    facts: tuple[str, ...] = ()


class Failure(Record):
    """A failure that recurs, and what it looks like in a trace."""

    text: str = Field(min_length=1)
    looks_like: str = ""


class Ruling(Record):
    """A decision on a case that the items leave open."""

    id: str = Field(min_length=1)
    text: str = Field(min_length=1)


class Item(Record):
    """One atomic, weighted requirement."""

    id: str = Field(min_length=1, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")
    requirement: str = Field(min_length=1)
    verification: str | None = Field(default=None, min_length=1)
    """How a grader can see whether it is met, where the author wrote it apart."""
    facts: tuple[str, ...] = ()
    weight: Weight
    evidence: Literal["page", "visual", "deliverable"] = "page"
    check: Check | None = None


class Waiver(Record):
    """A remark of the lint that the author looked at and lets stand, for a reason."""

    rule: str = Field(min_length=1)
    """Name of the lint's rule."""
    items: tuple[str, ...] = Field(min_length=1)
    """The items (or facts) that the remark is about, all of them."""
    reason: str = Field(min_length=1, pattern=r"\S")


class Rubric(Record):
    """What the grader knows about one task. It is never shown to an agent."""

    task_id: str = Field(min_length=1)
    task_key: str | None = None
    revision: int = Field(default=1, ge=1)
    canary: str | None = Field(default=None, pattern=r"^\S{8,}$")
    """A token that stands nowhere else: whoever writes it has read the answer key."""
    answers: tuple[Statement, ...] = ()
    paths: tuple[Statement, ...] = ()
    failures: tuple[Failure, ...] = ()
    false_claims: tuple[Statement, ...] = ()
    facts: tuple[Fact, ...] = ()
    rulings: tuple[Ruling, ...] = ()
    items: tuple[Item, ...] = Field(min_length=1)
    text: str | None = None
    """Free text of a publisher, kept as it came."""
    success_at: float | None = Field(default=None, gt=0, le=100)
    """Points from which this task counts as done; None: those of the benchmark."""
    waivers: tuple[Waiver, ...] | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        problems = [problem.text for problem in contradictions(self)]
        if problems:
            raise ValueError("; ".join(problems))
        return self

    @property
    def key(self) -> str:
        """Identity by content, without the waivers: no judge sees them and no score depends
        on them, so that a waiver orphans no judgement.
        """
        return content_key({k: v for k, v in self.as_json().items() if k != "waivers"})

    @property
    def paths_and_claims(self) -> tuple[Statement, ...]:
        """The statements beside the answers."""
        return (*self.paths, *self.false_claims)

    @property
    def is_code(self) -> bool:
        """Every item has a check, so no model is needed to grade it."""
        return all(item.check is not None for item in self.items)


class Shortcoming(NamedTuple):
    """One thing that is wrong with a rubric, and where."""

    part: str
    """A field of the rubric: "items", "facts", "canary"."""
    id: str | None
    """The item, fact or ruling that it is about; None: the part as a whole."""
    field: str | None
    """The field of that item; None: it as a whole."""
    text: str

    @property
    def line(self) -> str:
        """As one line: `facts.F2.checked_on: missing`."""
        place = ".".join(name for name in self[:3] if name is not None)
        return f"{place}: {self.text}"


def contradictions(rubric: Rubric) -> Iterator[Shortcoming]:
    """Ids that occur twice, facts that are cited and not stated, weights that do not make 100:
    what no profile lets pass.
    """
    for part in ("items", "facts", "rulings"):
        ids = [element.id for element in getattr(rubric, part)]
        for twice in sorted({i for i in ids if ids.count(i) > 1}):
            yield Shortcoming(part, twice, "id", f"{part}: '{twice}' occurs twice")
    known = {fact.id for fact in rubric.facts}
    for part, id_, facts in _citing(rubric):
        for fact in facts:
            if fact not in known:
                yield Shortcoming(part, id_, "facts", f"fact '{fact}' is cited but not stated")
    total = sum((item.weight for item in rubric.items), Fraction(0))
    if total != 100:
        text = f"weights sum to {float(total):g}, not to 100"
        if f"{float(total):g}" == "100":
            text = f"weights sum to {total}, not to exactly 100"
        yield Shortcoming("items", None, "weight", text)


def _citing(rubric: Rubric) -> Iterator[tuple[str, str | None, tuple[str, ...]]]:
    for part in ("answers", "paths", "false_claims"):
        for statement in getattr(rubric, part):
            yield part, None, statement.facts
    for item in rubric.items:
        yield "items", item.id, item.facts


def release_problems(rubric: Rubric) -> list[str]:
    """What keeps a rubric out of a release: the strict profile, one line per problem."""
    return [shortcoming.line for shortcoming in shortcomings(rubric)]


def shortcomings(rubric: Rubric) -> Iterator[Shortcoming]:
    """What a rubric that loads lacks for a release.

    Integer weights of 1 and more, a task key, a canary of ours that stands in no other field,
    no free text, and every fact dated, quoted and archived; an absent fact lists the pages that
    were searched and claims no proof. A fact of a site that the benchmark brings along needs
    no archive: the site is the archive.
    """
    for item in rubric.items:
        if item.weight.denominator != 1:
            yield Shortcoming("items", item.id, "weight", f"{item.weight} is not an integer")
    yield from _identity(rubric)
    if rubric.text is not None:
        text = "free text is neither dated nor located; state it as facts, items and rulings"
        yield Shortcoming("text", None, None, text)
    for fact in rubric.facts:
        for field, text in (*_undocumented(fact), *_unarchived(fact)):
            yield Shortcoming("facts", fact.id, field, text)


def _identity(rubric: Rubric) -> Iterator[Shortcoming]:
    if rubric.canary is None:
        yield Shortcoming("canary", None, None, "missing")
    elif not CANARY.fullmatch(rubric.canary):
        text = "is not BUB-CANARY- and 16 hexadecimal digits"
        yield Shortcoming("canary", None, None, text)
    if rubric.task_key is None:
        yield Shortcoming("task_key", None, None, "missing")
    elif not re.fullmatch(SHA256, rubric.task_key):
        yield Shortcoming("task_key", None, None, "is not a SHA-256 in 64 hexadecimal digits")


_PROOF = re.compile(
    r"\b(?:proved|proven|proves|proof|guaranteed|definitively|conclusively|for certain|"
    r"certainly|beyond doubt|undoubtedly)\b",
    re.IGNORECASE,
)


def _undocumented(fact: Fact) -> Iterator[tuple[str, str]]:
    if fact.checked_on is None:
        yield "checked_on", "missing"
    elif not _is_date(fact.checked_on):
        yield "checked_on", f"{fact.checked_on} is no day of the calendar"
    if fact.how is None:
        yield "how", "missing: say whether it was checked live, in an archive, in traces or on site"
    if fact.kind == "present":
        if not (fact.quote or "").strip():
            yield "quote", "missing"
        if fact.url is None:
            yield "url", "missing: a quote has a place"
        return
    if not fact.pages_searched:
        yield "pages_searched", "missing"
    if word := _PROOF.search(fact.claim):
        yield (
            "claim",
            f"says '{word.group()}', but that something is absent is only {fact.standing}",
        )


def _unarchived(fact: Fact) -> Iterator[tuple[str, str]]:
    if fact.how == "site":
        return
    n_wanted = 1 if fact.kind == "present" else max(1, len(set(fact.pages_searched)))
    n = len(set(fact.archived or ()))
    if n == 0:
        yield "archived", "missing"
    elif n < n_wanted:
        yield "archived", f"{n} pages are archived, but {n_wanted} were searched"


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True
