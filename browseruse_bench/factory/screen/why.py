"""Why nobody passes a task: what the traces of the stronger agent show of it.

It is asked as any rubric is: findings whose citations code looks up, never a verdict.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from browseruse_bench.factory.screen.screened import Verdict
from browseruse_bench.records.judgement import Judgement
from browseruse_bench.records.rubric import Item, Rubric
from browseruse_bench.records.task import Task

PROGRESS = "partial_progress"
IMPOSSIBLE: dict[str, str] = {
    "needs_removed": (
        "A page of this attempt shows that the task needs an account, a document, an order or "
        "another artefact of the person who wrote it, which an agent does not have."
    ),
    "out_of_date": (
        "A page of this attempt shows that what the task asks for is no longer there, or that its "
        "date has passed, so that it was possible once and is not now."
    ),
    "never_possible": (
        "A page of this attempt shows that what the task asks for cannot exist or be done at any "
        "time: the site has no such function, or the conditions contradict each other. That the "
        "agent did not find it does not show this."
    ),
}
"""Reason -> the requirement that is met where it holds, in the order in which they are named."""


class Why(NamedTuple):
    """The verdict on a task that nobody passes."""

    verdict: Verdict
    cause: str
    """Which kind of impossible; empty otherwise."""
    reason: str


def questions(task: Task) -> Rubric:
    """What is asked of each trace."""
    progress = (
        "A substantial part of what the task asks for was reached in this attempt: pages of it "
        "show more than one of the results or steps that the task needs, on the right site."
    )
    asked = {PROGRESS: progress, **IMPOSSIBLE}
    items = tuple(
        Item.model_validate({"id": id_, "requirement": text, "weight": 25})
        for id_, text in asked.items()
    )
    return Rubric(task_id=task.task_id, task_key=task.view.key, items=items)


def why(judgements: Sequence[Judgement]) -> Why:
    """The verdict that these findings carry; what they leave open, or contradict, is pending."""
    graded = [one for one in judgements if one.findings is not None and one.status == "graded"]
    if not graded:
        return Why("pending", "", "no attempt of the stronger agent could be judged")
    met = {
        finding.item: finding.claim
        for one in reversed(graded)
        for finding in one.findings or ()
        if finding.status == "met"
    }
    barred = [name for name in IMPOSSIBLE if name in met]
    if barred and PROGRESS in met:
        return Why("pending", "", f"contradiction: {met[PROGRESS]} But: {met[barred[0]]}")
    if barred:
        return Why("impossible", barred[0], met[barred[0]])
    if PROGRESS in met:
        return Why("partial", "", met[PROGRESS])
    return Why("pending", "", "no trace shows progress, and none shows that it is impossible")
