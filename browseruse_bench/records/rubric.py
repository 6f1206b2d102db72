"""A rubric: what is known about one task, and the weighted items that its score is made of."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, PlainSerializer, model_validator

from browseruse_bench.records.base import Record

CANARY = re.compile(r"BUB-CANARY-[0-9a-f]{16}")
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
    facts: tuple[str, ...] = ()
    weight: Weight
    evidence: Literal["page", "visual", "deliverable"] = "page"
    check: Check | None = None


class Rubric(Record):
    """What the grader knows about one task. It is never shown to an agent."""

    task_id: str = Field(min_length=1)
    task_key: str | None = None
    revision: int = Field(default=1, ge=1)
    canary: str | None = Field(default=None, pattern=f"^{CANARY.pattern}$")
    answers: tuple[Statement, ...] = ()
    paths: tuple[Statement, ...] = ()
    failures: tuple[Failure, ...] = ()
    false_claims: tuple[Statement, ...] = ()
    facts: tuple[Fact, ...] = ()
    rulings: tuple[Ruling, ...] = ()
    items: tuple[Item, ...] = Field(min_length=1)
    text: str | None = None
    """Free text of a publisher, kept as it came."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        problems: list[str] = []
        for what, ids in (
            ("items", [i.id for i in self.items]),
            ("facts", [f.id for f in self.facts]),
            ("rulings", [r.id for r in self.rulings]),
        ):
            problems += [
                f"{what}: '{i}' occurs twice" for i in sorted({i for i in ids if ids.count(i) > 1})
            ]
        known = {f.id for f in self.facts}
        citing = [*self.answers, *self.paths_and_claims, *self.items]
        problems += [
            f"fact '{f}' is cited but not stated" for c in citing for f in c.facts if f not in known
        ]
        total = sum((i.weight for i in self.items), Fraction(0))
        if total != 100:
            problems.append(f"weights sum to {float(total):g}, not to 100")
        if problems:
            raise ValueError("; ".join(problems))
        return self

    @property
    def paths_and_claims(self) -> tuple[Statement, ...]:
        """The statements beside the answers."""
        return (*self.paths, *self.false_claims)

    @property
    def is_code(self) -> bool:
        """Every item has a check, so no model is needed to grade it."""
        return all(item.check is not None for item in self.items)


def release_problems(rubric: Rubric) -> list[str]:
    """What keeps a rubric out of a release: the strict profile.

    Returns:
        One line per problem: integer weights, canary, task key, and every fact dated,
        quoted and, if it is of kind `absent`, with the pages that were searched.
    """
    problems = [
        f"items.{i.id}.weight: {i.weight} is not an integer"
        for i in rubric.items
        if i.weight.denominator != 1
    ]
    if rubric.canary is None:
        problems.append("canary: missing")
    if rubric.task_key is None:
        problems.append("task_key: missing")
    for fact in rubric.facts:
        if fact.checked_on is None:
            problems.append(f"facts.{fact.id}.checked_on: missing")
        if fact.kind == "present" and not fact.quote:
            problems.append(f"facts.{fact.id}.quote: missing")
        if fact.kind == "absent" and not fact.pages_searched:
            problems.append(f"facts.{fact.id}.pages_searched: missing")
    return problems
