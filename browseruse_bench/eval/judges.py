"""Who judges an attempt: an interface, and the judges that need no model."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from browseruse_bench.eval import checks, matcher
from browseruse_bench.records.base import content_key
from browseruse_bench.records.judgement import (
    Attribution,
    Finding,
    Integrity,
    UngradedReason,
    Vote,
)
from browseruse_bench.records.rubric import Rubric
from browseruse_bench.records.task import Task
from browseruse_bench.records.trace import Usage
from browseruse_bench.store.trace_folder import TraceFolder

Kind = Literal["evaluator", "checks", "model", "matcher"]
"""What grades a task: the benchmark's own evaluator, else its rubric by code, else its rubric
by a model, else the comparison with `expected_result`."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One attempt that waits for its verdict, and what is known about its task."""

    task: Task
    rubric: Rubric | None
    trace: TraceFolder
    cost_usd: float | None
    """None: unknown."""
    sample: int = 0
    """Which grading of this trace it is: another number is never answered from a ledger."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What a judge says. It is ungraded exactly if `reason` is given."""

    label: Literal[0, 1] | None = None
    score: float | None = None
    findings: tuple[Finding, ...] | None = None
    integrity: tuple[Integrity, ...] = ()
    attribution: tuple[Attribution, ...] = ()
    reading: str | None = None
    votes: tuple[Vote, ...] = ()
    usage: tuple[Usage, ...] = ()
    raw_ref: str | None = None
    details: dict[str, Any] = field(default_factory=dict[str, Any])
    reason: UngradedReason | None = None
    message: str = ""


class Judge(Protocol):
    """Gives verdicts on frozen traces, always by the same rules."""

    @property
    def basis(self) -> Literal["findings", "evaluator", "matcher"]:
        """What its verdicts consist of."""
        ...

    @property
    def protocol(self) -> str:
        """Its name and rules, for people."""
        ...

    @property
    def judge_key(self) -> str:
        """Identity of everything that decides, beside the trace and the reference."""
        ...

    async def judge(self, case: Case) -> Verdict:
        """Judge one attempt; may be asked for several at a time. What it raises leaves the
        attempt ungraded (`judge_fault`).
        """
        ...


def kind_of(rubric: Rubric | None, *, evaluator: bool, model: bool = False) -> Kind:
    """What grades a task, in the benchmark as it is now.

    Args:
        rubric: its rubric, if it has one.
        evaluator: whether the benchmark has an evaluator of its own.
        model: whether a model judge was named: then it reads every rubric, also one that code
            could grade.
    """
    if evaluator:
        return "evaluator"
    if rubric is None:
        return "matcher"
    return "checks" if rubric.is_code and not model else "model"


def rubric_key(kind: Kind, task: Task, rubric: Rubric | None) -> str | None:
    """Identity of what a judge of this kind compares an attempt with; None: nothing."""
    if kind == "evaluator":
        return content_key([task.row, rubric.key if rubric else None])
    if rubric is not None:
        return rubric.key
    return None if task.expected_result is None else content_key(task.row["expected_result"])


class CodeJudge:
    """Grades a rubric whose items all have a check, from the frozen trace alone."""

    basis: Literal["findings"] = "findings"
    protocol = f"code-checks/{checks.VERSION}"
    judge_key = content_key(["code-checks", checks.VERSION, matcher.VERSION])

    async def judge(self, case: Case) -> Verdict:
        """The findings of every item and the integrity flags."""
        assert case.rubric is not None
        grade = await asyncio.to_thread(checks.grade, case.trace, case.rubric)
        return Verdict(findings=grade.findings, integrity=grade.integrity)


class MatcherJudge:
    """Compares the answer with the row's `expected_result`."""

    basis: Literal["matcher"] = "matcher"
    protocol = f"matcher/{matcher.VERSION}"
    judge_key = content_key(["matcher", matcher.VERSION])

    async def judge(self, case: Case) -> Verdict:
        """Label 1 if the answer states all of it; the score is the share that it states."""
        expected = case.task.expected_result
        if expected is None:
            return Verdict(
                reason="no_reference",
                message="the task has no evaluator, no rubric and no expected_result",
            )
        found = matcher.match(expected, case.trace.trace.outcome.answer)
        return Verdict(
            label=1 if found.holds else 0, score=100 * found.share, details=dict(found.details)
        )


class NoModelJudge:
    """Stands where a rubric needs a model to be read and none was given."""

    basis: Literal["findings"] = "findings"
    protocol = "none"
    judge_key = content_key(["no-model"])

    async def judge(self, case: Case) -> Verdict:
        """Ungraded, with the reason."""
        return Verdict(
            reason="not_judged",
            message="the rubric has items without a code check: name a model with --judge",
        )
