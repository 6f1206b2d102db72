"""What is made ready once for a trace and its rubric, and serves every grading of them."""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from browseruse_bench.errors import GraderError, boundary
from browseruse_bench.eval import checks
from browseruse_bench.eval.citations import Checker
from browseruse_bench.eval.corroboration import Evidence
from browseruse_bench.eval.fencing import fence_of
from browseruse_bench.eval.findings import prompts
from browseruse_bench.eval.findings.reply import Said
from browseruse_bench.eval.findings.settle import Conduct, Settled, Shown, settle
from browseruse_bench.eval.judges import Case
from browseruse_bench.eval.material import Material, take_apart
from browseruse_bench.eval.prepare import Budget, Prepared, assemble, clipped, select
from browseruse_bench.models.base import Image, Message
from browseruse_bench.records.judgement import Finding, Integrity
from browseruse_bench.records.rubric import Item, Rubric


@dataclass(frozen=True, kw_only=True)
class Bundle:
    """One trace, its rubric, and everything about them that does not depend on a judge."""

    evidence: Evidence
    material: Material
    rubric: Rubric
    budget: Budget
    checker: Checker
    fence: str
    case_text: str
    """Task and rubric."""
    trace_text: str
    """What stands at the head of a trace."""
    whole: Prepared
    clipped: str
    """Why `whole` may lack what an item needs; "" if it cannot."""
    asked: tuple[Item, ...]
    """The items that a judge gives findings on."""
    settled: tuple[Finding, ...]
    """Of the items that code settles."""
    integrity: tuple[Integrity, ...]
    """What code finds: a leaked answer key."""
    nothing_done: bool
    """Whether the agent did nothing at all; then nothing is asked and nothing is met."""

    def messages(
        self, rules: str, parts: Iterable[str | Image], *closing: str
    ) -> tuple[Message, ...]:
        """A conversation up to the question: what never changes first.

        Args:
            rules: name of the prompt file with the rules.
            parts: the trace, as far as it is shown.
            closing: what follows it: what was left out, and the question.
        """
        told = (self.case_text, self.trace_text, *parts, *closing)
        return (
            Message(role="system", parts=(prompts.template(rules),)),
            Message(role="user", parts=told),
        )

    def settler(self, shown: Shown) -> Callable[[Said], Awaitable[Settled]]:
        """What checks replies of a judge that was shown these pictures."""

        async def checked(said: Said) -> Settled:
            return await asyncio.to_thread(
                settle, said, self.checker, shown, self.fence, reported=self.evidence.reported
            )

        return checked


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What one way of asking came to."""

    findings: tuple[Finding, ...]
    """Of the items that were asked about, in their order."""
    conduct: Conduct
    left_out: tuple[str, ...]
    """What of the trace the judge was not shown."""
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])


def conduct_question(bundle: Bundle, findings: Iterable[Finding]) -> str:
    """What asks for honesty and causes after the findings were made."""
    every = {finding.item: finding for finding in (*findings, *bundle.settled)}
    ordered = [every[item.id] for item in bundle.rubric.items]
    return prompts.fill("conduct", findings=prompts.findings_text(ordered, bundle.fence))


def left_out_text(left_out: Iterable[str]) -> str:
    """The list of what was left out, as a judge reads it."""
    lines = "\n".join(f"- {line}" for line in left_out) or "Nothing."
    return prompts.fill("left_out", left_out=lines)


@dataclass
class _Slot:
    lock: threading.Lock = field(default_factory=threading.Lock)
    bundle: Bundle | None = None


class Bundler:
    """Makes bundles, and keeps the last ones: regrades read no file again."""

    def __init__(self, budget: Budget, *, by_code: bool, n_kept: int = 8) -> None:
        """With this budget; `by_code`: whether items with a check are settled by it."""
        self.budget = budget
        self.by_code = by_code
        self._n_kept = n_kept
        self._kept: OrderedDict[tuple[str, ...], _Slot] = OrderedDict()
        self._lock = threading.Lock()

    async def get(self, case: Case) -> Bundle:
        """The bundle of a case.

        Raises:
            GraderError: the infrastructure ended the attempt, or the rubric cannot be used.
            DataError: the trace is damaged.
        """
        return await asyncio.to_thread(self._get, case)

    def _get(self, case: Case) -> Bundle:
        assert case.rubric is not None
        trace = case.trace
        key = (trace.key, str(trace.path), case.task.view.key, case.rubric.key)
        with self._lock:
            slot = self._kept.setdefault(key, _Slot())
            self._kept.move_to_end(key)
            while len(self._kept) > self._n_kept:
                self._kept.popitem(last=False)
        with slot.lock:
            if slot.bundle is None:
                slot.bundle = self._make(case, case.rubric)
            return slot.bundle

    def _make(self, case: Case, rubric: Rubric) -> Bundle:
        where = f"rubric of task '{rubric.task_id}'"
        if case.trace.trace.outcome.status == "infrastructure":
            raise GraderError(f"{where}: the infrastructure ended this attempt; it is owed again")
        settled = tuple(i for i in rubric.items if i.check is not None) if self.by_code else ()
        asked = tuple(item for item in rubric.items if item not in settled)
        with boundary(GraderError, f"{where}: evidence"):
            evidence = Evidence(case.trace)
            material = take_apart(evidence)
            choice = select(evidence, material, rubric, self.budget)
            canary = rubric.canary
            leaked = tuple(checks.canaries(case.trace, canary)) if canary else ()
            fence = fence_of(case.trace.key)
            trace = case.trace.trace
            return Bundle(
                evidence=evidence,
                material=material,
                rubric=rubric,
                budget=self.budget,
                checker=Checker(evidence, material, rubric, asked),
                fence=fence,
                case_text=prompts.case_text(case.task.view, trace, rubric, asked, settled),
                trace_text=prompts.fill("trace", ending=prompts.ending_text(trace), fence=fence),
                whole=assemble(material, choice, fence),
                clipped=clipped(material, choice, asked),
                asked=asked,
                settled=tuple(
                    checks.finding(evidence, item, where, also=checks.stated_values(rubric))
                    for item in settled
                ),
                integrity=leaked,
                nothing_done=_nothing_done(case, material),
            )


def _nothing_done(case: Case, material: Material) -> bool:
    answer = case.trace.trace.outcome.answer
    made = any(section.kind == "file" for section in material.sections)
    return not case.trace.steps and not (answer or "").strip() and not made
