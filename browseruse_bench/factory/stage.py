"""What a stage is: a named, versioned, typed step from one record to one outcome.

A `Stage` settles one unit by itself, and may ask models or start attempts for it. A `Fold`
decides over a whole set at once: it is deterministic, offline, and asks nobody. Neither knows of
concurrency, journals, resume, budgets, progress or reports: that is the runner's. A `Source`
stands at the beginning and reads hundreds of millions of rows.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, Self, TypeVar

from pydantic import Field, model_validator

from browseruse_bench.errors import ConfigError
from browseruse_bench.records.base import Record

if TYPE_CHECKING:
    from browseruse_bench.factory.context import Context

In = TypeVar("In", bound=Record)
Out = TypeVar("Out", bound=Record)
Zone = Literal["restricted", "clean"]
"""`restricted`: what the stage reads or writes may hold personal data; nothing of it reaches a
release."""
MERGED = "merged"
"""Why a unit ended that came in beside another of the same key: no stage's own reason."""


@dataclass(frozen=True)
class Kept(Generic[Out]):
    """The unit goes on, as `value`."""

    value: Out


@dataclass(frozen=True)
class Dropped:
    """The unit ends here."""

    reason: str
    """One of the stage's `reasons`; reports count by it."""
    evidence: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What a person can check the reason by, as plain JSON."""


class Flow(Record):
    """Where everything that came into a stage is now."""

    n_in: int = Field(default=0, ge=0)
    kept: int = Field(default=0, ge=0)
    dropped: dict[str, int] = {}
    """Reason -> units."""
    failed: int = Field(default=0, ge=0)
    pending: int = Field(default=0, ge=0)
    """Not settled yet: the command was stopped, the budget reached, or a batch is awaited."""

    @model_validator(mode="after")
    def _identity(self) -> Self:
        parts = self.kept + sum(self.dropped.values()) + self.failed + self.pending
        if parts != self.n_in:
            raise ValueError(f"in {self.n_in} != kept + dropped + failed + pending {parts}")
        return self

    @property
    def sentence(self) -> str:
        """The identity as one line for people."""
        dropped = sum(self.dropped.values())
        pending = f" + pending {self.pending}" if self.pending else ""
        return (
            f"in {self.n_in} = kept {self.kept} + dropped {dropped} + failed {self.failed}{pending}"
        )


class _Step(ABC):
    """What stages and folds have in common."""

    name: ClassVar[str]
    version: ClassVar[int]
    """Raised when the same input may now come out otherwise: every unit is settled again."""
    zone: ClassVar[Zone] = "clean"
    reasons: ClassVar[frozenset[str]] = frozenset()
    """Why a unit may be dropped; another reason is a fault of the stage."""
    prompts: ClassVar[tuple[Path, ...]] = ()
    """Prompt files that decide; their content is part of the stage's configuration."""
    collects: bool = False
    """Whether its calls are collected for a batch of the provider, instead of being asked."""

    def at(self, workspace: Path) -> Self:
        """The step as it works in a workspace, where that decides more than workspace.toml says."""
        del workspace
        return self

    def prepare(self, folder: Path, tell: Callable[[str], None]) -> None:
        """Bring what an older version left in the step's folder where it may be; before a run."""
        del folder, tell

    def settings(self) -> Mapping[str, Any]:
        """What decides beside code and prompts, as plain JSON: models, thresholds."""
        return {}

    def report(self, folder: Path) -> str:
        """Markdown below the figures of report.md; empty where there is nothing to show."""
        del folder
        return ""


class Stage(_Step, Generic[In, Out]):
    """Settles units one by one, many at a time."""

    takes: type[In]
    gives: type[Out]

    def needs(self, unit: In) -> Collection[str]:
        """What is scarce (`[resources]` of workspace.toml: a browser, a host) and is held while
        the unit is settled.
        """
        del unit
        return ()

    @abstractmethod
    async def settle(self, unit: In, ctx: Context) -> Kept[Out] | Dropped:
        """What becomes of one unit. What it raises leaves the unit failed: owed again."""


class Fold(_Step, Generic[In, Out]):
    """Decides over all units at once, the same whatever their order."""

    takes: type[In]
    gives: type[Out]

    @abstractmethod
    def fold(
        self, units: Iterable[In], prior: Mapping[str, Kept[Out] | Dropped], ctx: Context
    ) -> Iterator[tuple[str, Kept[Out] | Dropped]]:
        """(key of the unit, what becomes of it) for every unit that has no outcome yet.

        Args:
            units: all of them, old and new.
            prior: outcomes of earlier calls by key; they stand.
            ctx: asks no model and starts no attempt here.
        """


class Source(_Step, Generic[Out]):
    """The first step: it reads what comes from outside, at a size that no journal of units
    holds, and keeps its own books in its folder.
    """

    gives: type[Out]

    @abstractmethod
    async def run(
        self, ctx: Context, on_progress: Callable[[str], None], stop: threading.Event
    ) -> Flow:
        """Everything that came in is kept, dropped or counted. Once `stop` is set nothing further
        starts; stopped at any moment, the next call goes on.
        """

    @abstractmethod
    def flow(self, folder: Path) -> Flow:
        """What the last call came to; zeros before the first."""

    def problems(self, folder: Path) -> Iterator[str]:
        """What failed and what next, a line for each; the same command does not mend these."""
        del folder
        return iter(())

    @abstractmethod
    def kept(self, folder: Path) -> Iterator[Out]:
        """What goes on, one at a time in memory, in an order that is always the same."""

    @abstractmethod
    def find(self, folder: Path, key: str) -> Mapping[str, Any] | None:
        """Everything that is known of a unit, kept or dropped; None: it is not here."""


Step = Source[Any] | Stage[Any, Any] | Fold[Any, Any]


def checked_reason(
    step: Stage[Any, Any] | Fold[Any, Any], outcome: Kept[Any] | Dropped
) -> Kept[Any] | Dropped:
    """The outcome.

    Raises:
        ConfigError: it is dropped for a reason that the stage does not declare.
    """
    if isinstance(outcome, Dropped) and outcome.reason not in step.reasons:
        known = ", ".join(sorted(step.reasons)) or "none"
        raise ConfigError(f"stage {step.name}: reason '{outcome.reason}' is not one of: {known}")
    return outcome
