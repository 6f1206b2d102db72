"""A judge, an author and rubrics whose true flip rates are known.

A requirement's text says how a grader takes it: "decided met", "decided violated", or "met with
0.3", which one grader in three or so gives credit for, each time anew.
"""

import random
import re

from browseruse_bench.eval.judges import Verdict
from browseruse_bench.eval.revise import Rewording
from browseruse_bench.records.base import content_key
from browseruse_bench.records.judgement import Citation, Finding, Integrity, Judgement
from browseruse_bench.records.rubric import Rubric

KEY = "0" * 64


def rubric(*texts, task_id="task-1", weights=None):
    share = 100 // len(texts)
    given = weights or [share] * (len(texts) - 1) + [100 - share * (len(texts) - 1)]
    items = [
        {"id": f"I{n}", "requirement": text, "weight": weight}
        for n, (text, weight) in enumerate(zip(texts, given, strict=True))
    ]
    return Rubric.model_validate({"task_id": task_id, "items": items})


def chance(text):
    """With which probability a grader gives credit."""
    if found := re.search(r"met with ([\d.]+)", text):
        return float(found[1])
    return 1.0 if "decided met" in text else 0.0


def true_rate(rubric_):
    """Mean flip rate over the items."""
    chances = [chance(item.requirement) for item in rubric_.items]
    return sum(2 * p * (1 - p) for p in chances) / len(chances)


def status(text, *draw):
    return "met" if random.Random(repr((text, *draw))).random() < chance(text) else "violated"


def findings(rubric_, *draw):
    return tuple(
        Finding(
            item=item.id,
            claim=f"as {draw} reads it",
            status=status(item.requirement, item.id, *draw),
        )
        for item in rubric_.items
    )


FLAG = Integrity(
    flag="lying", claim="it lied", citations=(Citation(step=1, source="page", quote="x"),)
)


class Grader:
    """Grades in memory; `asked` is what it was asked, in order.

    `ungraded(trace, number)` and `flagged(trace, number)` say where it fails and what it flags.
    """

    def __init__(self, seed=0, n_traces=2, ungraded=None, flagged=None):
        self.seed = seed
        self.traces = [f"{n:064x}" for n in range(1, n_traces + 1)]
        self.ungraded = ungraded or (lambda trace, number: False)
        self.flagged = flagged or (lambda trace, number: False)
        self.asked = []

    async def __call__(self, rubric_, numbers):
        self.asked.append(([item.id for item in rubric_.items], list(numbers)))
        return [
            self._judgement(rubric_, index, number)
            for index in range(len(self.traces))
            for number in numbers
        ]

    def _judgement(self, rubric_, index, number):
        failed = self.ungraded(index, number)
        return Judgement(
            basis="findings",
            protocol="double/1",
            task_id=rubric_.task_id,
            attempt=index + 1,
            task_key=KEY,
            trace_key=self.traces[index],
            rubric_key=rubric_.key,
            judge_key=KEY,
            sample=number,
            at="2026-01-01T00:00:00+00:00",
            findings=None if failed else findings(rubric_, self.seed, index, number),
            integrity=(FLAG,) if self.flagged(index, number) else (),
            status="ungraded" if failed else "graded",
            reason="judge_fault" if failed else None,
        )


class Author:
    """Gives the texts that it was told to, in order, and remembers what it was shown."""

    def __init__(self, *texts):
        self.texts = list(texts)
        self.shown = []

    async def __call__(self, rubric_, item, pairs):
        self.shown.append((rubric_, item, pairs))
        text = self.texts.pop(0)
        return Rewording(requirement=text, reason=f"draft {len(self.shown)}")


class FlippingJudge:
    """A Judge whose verdicts are those of `findings`; counts what it is asked."""

    basis = "findings"

    def __init__(self, name="double", seed=0, ungraded=None, flagged=None, usage=()):
        self.protocol = f"{name}/1"
        self.judge_key = content_key(["double", name])
        self.seed = seed
        self.usage = usage
        self.ungraded = ungraded or (lambda case: False)
        self.flagged = flagged or (lambda case: False)
        self.asked = []
        self.gradings = []

    async def judge(self, case):
        where = (case.task.task_id, case.trace.trace.attempt, case.sample)
        self.asked.append(where)
        self.gradings.append((case.rubric.key, case.trace.key, case.sample))
        if self.ungraded(case):
            raise RuntimeError("no reply that could be read")
        found = findings(case.rubric, self.seed, *where)
        integrity = (FLAG,) if self.flagged(case) else ()
        return Verdict(findings=found, integrity=integrity, usage=self.usage)
