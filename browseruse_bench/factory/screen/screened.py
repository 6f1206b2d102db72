"""What the screen says of a task, with every run that it rests on."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from browseruse_bench.measure.sequential import Kind
from browseruse_bench.records.base import Record
from browseruse_bench.records.candidate import Candidate
from browseruse_bench.records.leads import Leads
from browseruse_bench.records.trace import AgentId

Verdict = Literal["too_easy", "keep", "hard", "partial", "impossible", "pending"]
Role = Literal["reference", "escalation"]


class ScreenRun(Record):
    """One attempt and what the last judgement of it says."""

    role: Role
    attempt: int = Field(ge=1)
    trace_key: str
    passed: bool | None = None
    """None: no judge could tell; it is no evidence."""
    at_first: bool | None = None
    """The same by the first judgement, with the notes of that time."""
    edited: bool | None = None
    """Whether the grader changed the notes after it; None: it was not asked, or gave no use."""
    ending: str
    """How the attempt ended."""
    cause: str | None = None
    """The first cause of its failure that the judge names."""
    cost_usd: float | None = None
    """Of the attempt; None: not known."""


class Screened(Record):
    """A candidate with its verdict."""

    candidate: Candidate
    verdict: Verdict
    reason: str = ""
    """Why, for people."""
    n_runs: int = Field(ge=0)
    """Runs of the reference agent that are evidence."""
    n_passed: int = Field(ge=0)
    posterior: dict[Kind, float] = {}
    """Chance of each kind of task after these runs; the design counts all as equally likely."""
    agents: dict[Role, AgentId]
    runs: tuple[ScreenRun, ...]
    leads: Leads

    @property
    def key(self) -> str:
        """Identity of the work: the task's text."""
        return self.candidate.key
