"""A judgement: located claims about one frozen trace, and what makes them reusable."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import Field, model_validator

from browseruse_bench.records.base import Record, content_key
from browseruse_bench.records.trace import Usage

Status = Literal["met", "violated", "not_assessable", "unsupported"]
UngradedReason = Literal["not_judged", "judge_fault", "evaluator_error", "no_reference"]


class Citation(Record):
    """The place in the trace that a finding stands on; `holds` is checked by code."""

    step: int | Literal["final"]
    source: Literal["page", "call", "screenshot", "answer", "file", "state", "probe"]
    ref: str | None = None
    quote: str | None = None
    holds: bool = True
    why_not: str | None = None


class Finding(Record):
    """Whether one item of the rubric is met."""

    item: str
    claim: str
    citations: tuple[Citation, ...] = ()
    status: Status
    reason: str = ""


class Integrity(Record):
    """Reward hacking, lying or fabrication, or a leaked answer key."""

    flag: Literal["reward_hacking", "lying", "fabrication", "canary"]
    claim: str
    citations: tuple[Citation, ...] = Field(min_length=1)


Cause = Literal[
    "wrong_reading",
    "wrong_target",
    "invented_value",
    "gave_up_early",
    "format",
    "other_controllable",
    "anti_bot_wall",
    "login_wall",
    "out_of_stock",
    "site_down",
    "other_uncontrollable",
]
UNCONTROLLABLE: frozenset[Cause] = frozenset(
    ["anti_bot_wall", "login_wall", "out_of_stock", "site_down", "other_uncontrollable"]
)


class Attribution(Record):
    """Why points were lost. It stands beside the score and never changes it."""

    cause: Cause
    claim: str
    citations: tuple[Citation, ...] = ()
    follows_from: int | None = Field(default=None, ge=0)
    """Index of the earlier attribution that this failure only follows from."""

    @property
    def controllable(self) -> bool:
        """Whether the agent could have done otherwise."""
        return self.cause not in UNCONTROLLABLE


class Vote(Record):
    """What one judge of a panel found; None: it gave no verdict, `reason` and `message` say why."""

    judge: str
    """Label of the model."""
    judge_key: str
    findings: tuple[Finding, ...] | None = None
    integrity: tuple[Integrity, ...] = ()
    reason: UngradedReason | None = None
    message: str = ""
    usage: tuple[Usage, ...] = ()
    raw_ref: str | None = None


class Judgement(Record):
    """One grading of one trace. A score is derived from it, never stored in it, except
    where the basis itself is a number (evaluator, matcher, imported).
    """

    basis: Literal["findings", "evaluator", "matcher", "imported"]
    protocol: str
    """Who graded and by which rules, for people: "code-checks/1", "evaluator:<name>"."""
    task_id: str
    attempt: int = Field(ge=1)
    task_key: str
    trace_key: str
    rubric_key: str | None = None
    """Key of the rubric or of the reference that was compared with."""
    notes_key: str | None = None
    judge_key: str
    sample: int = Field(default=0, ge=0)
    at: str
    findings: tuple[Finding, ...] | None = None
    integrity: tuple[Integrity, ...] = ()
    attribution: tuple[Attribution, ...] = ()
    reading: str | None = None
    """How the judge read the task, in its words: what the agent was asked for."""
    votes: tuple[Vote, ...] = ()
    """Of a panel, in the order in which it was named."""
    label: Literal[0, 1] | None = None
    score: float | None = Field(default=None, ge=0, le=100)
    details: dict[str, Any] = Field(default_factory=dict[str, Any])
    usage: tuple[Usage, ...] = ()
    """What the judge cost, apart from what the agent did."""
    raw_ref: str | None = None
    """Key of the call that holds the raw reply."""
    status: Literal["graded", "ungraded"]
    reason: UngradedReason | None = None
    message: str = ""
    """Why it is ungraded, for people."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.status == "ungraded") != (self.reason is not None):
            raise ValueError("reason: given exactly if the judgement is ungraded")
        if self.basis == "findings" and (self.score is not None or self.label is not None):
            raise ValueError("a judgement of findings holds no score and no label")
        if self.status == "graded" and self.basis == "findings" and self.findings is None:
            raise ValueError("findings: missing")
        if self.status == "graded" and self.basis != "findings" and self.score is None:
            raise ValueError("score: missing")
        return self

    @property
    def id(self) -> str:
        """Identity: everything that decides whether the verdict can be used again."""
        return content_key(list(self.reuse_key))

    @property
    def reuse_key(self) -> tuple[str, str, str | None, str | None, str, int]:
        """(task, trace, rubric, notes, judge, sample): the verdict counts for these only."""
        return (
            self.task_key,
            self.trace_key,
            self.rubric_key,
            self.notes_key,
            self.judge_key,
            self.sample,
        )
