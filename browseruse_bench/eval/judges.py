"""Who judges an attempt: an interface, and the judges that need no model."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

from browseruse_bench.errors import BenchError, BudgetError, GraderError, boundary
from browseruse_bench.eval import checks, matcher
from browseruse_bench.models.base import CallError, PendingError
from browseruse_bench.records.base import content_key
from browseruse_bench.records.judgement import (
    Attribution,
    Finding,
    Integrity,
    Judgement,
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
        model: whether a model judge was named: it reads every rubric, for what code cannot
            check in it, and for honesty and causes.
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


@dataclass(frozen=True, kw_only=True)
class Keys:
    """What a judgement is about: everything of its identity but the judge."""

    task_id: str
    attempt: int
    task_key: str
    trace_key: str
    rubric_key: str | None
    sample: int = 0
    notes_key: str | None = None


async def verdict_on(judge: Judge, case: Case) -> Verdict:
    """What a judge says of an attempt; a failure of the judge is an ungraded verdict.

    Raises:
        BudgetError: the judge may ask nothing further; there is no verdict.
        PendingError: its calls wait in a batch; there is no verdict yet.
    """
    try:
        with boundary(GraderError, judge.protocol):
            verdict = await judge.judge(case)
    except (BudgetError, PendingError):
        raise
    except BenchError as error:
        verdict = _fault(error)
    policy = case.trace.trace.evidence_policy
    if policy != "harness":
        # What rests on the agent's word is marked in every verdict, and never ranked with others.
        return replace(verdict, details={**verdict.details, "evidence_policy": policy})
    return verdict


def damaged(error: Exception) -> Verdict:
    """The verdict on a trace that is not what the run recorded."""
    first, *others = str(error).splitlines()
    more = f" (and {len(others)} more)" if others else ""
    return Verdict(reason="judge_fault", message=f"the trace is damaged: {first}{more}")


def _fault(error: BenchError) -> Verdict:
    """A failure of the judge, with what it cost and where its raw reply is."""
    message = " ".join(str(error).split())[:500]
    if not isinstance(error, CallError):
        return Verdict(reason="judge_fault", message=message)
    usage = () if error.usage is None else (error.usage,)
    return Verdict(reason="judge_fault", message=message, usage=usage, raw_ref=error.call)


def judgement_of(judge: Judge, verdict: Verdict, keys: Keys, at: str) -> Judgement:
    """The record of a verdict.

    Args:
        judge: who gave it.
        verdict: what it says.
        keys: what it is about.
        at: when it was given, ISO 8601 in UTC.
    """
    return Judgement(
        basis=judge.basis,
        protocol=judge.protocol,
        task_id=keys.task_id,
        attempt=keys.attempt,
        task_key=keys.task_key,
        trace_key=keys.trace_key,
        rubric_key=keys.rubric_key,
        notes_key=keys.notes_key,
        judge_key=judge.judge_key,
        sample=keys.sample,
        at=at,
        findings=verdict.findings,
        integrity=verdict.integrity,
        attribution=verdict.attribution,
        reading=verdict.reading,
        votes=verdict.votes,
        usage=verdict.usage,
        raw_ref=verdict.raw_ref,
        label=verdict.label,
        score=verdict.score,
        details=verdict.details,
        status="graded" if verdict.reason is None else "ungraded",
        reason=verdict.reason,
        message=verdict.message,
    )
