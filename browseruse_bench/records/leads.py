"""Leads: what a grader wrote down about one task while it judged attempts at it.

They are no rubric. Each comes from one trace that one judge saw, nobody confirmed it, and
nothing of it is carried on trust: it says where somebody may look.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from browseruse_bench.records.base import Record

Section = Literal["answers", "paths", "failures", "false_claims"]
SECTIONS: tuple[Section, ...] = ("answers", "paths", "failures", "false_claims")


class Lead(Record):
    """One thing that seemed so, and where."""

    id: str = Field(pattern=r"^L[1-9]\d*$")
    text: str = Field(min_length=1, max_length=400)
    trace: str
    """Key of the trace that it comes from."""
    step: int | Literal["final"]


class Leads(Record):
    """The notes file of a task. It is shown to graders and writers, never to an agent."""

    task_key: str
    revision: int = Field(default=0, ge=0)
    n_ever: int = Field(default=0, ge=0)
    """Leads that were ever written down: an id is never used again."""
    answers: tuple[Lead, ...] = ()
    """What a correct result seems to be."""
    paths: tuple[Lead, ...] = ()
    """Ways that seem to reach it."""
    failures: tuple[Lead, ...] = ()
    """Failures that recur, and what they look like in a trace."""
    false_claims: tuple[Lead, ...] = ()
    """What agents say that seems not to be true."""

    def every(self) -> tuple[tuple[Section, Lead], ...]:
        """All leads with their sections, in order."""
        return tuple((section, lead) for section in SECTIONS for lead in getattr(self, section))
