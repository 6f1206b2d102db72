"""What a stage is: a named, versioned, typed step from one record to one outcome.

A `Stage` settles one unit by itself, and may ask models or start attempts for it. A `Fold`
decides over a whole set at once: it is deterministic, offline, and asks nobody. Neither knows of
concurrency, journals, resume, budgets, progress or reports: that is the runner's.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar

from browseruse_bench.errors import ConfigError
from browseruse_bench.records.base import Record

if TYPE_CHECKING:
    from browseruse_bench.factory.context import Context

In = TypeVar("In", bound=Record)
Out = TypeVar("Out", bound=Record)
Zone = Literal["restricted", "clean"]
"""`restricted`: what the stage reads or writes may hold personal data; nothing of it reaches a
release."""


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

    def settings(self) -> Mapping[str, Any]:
        """What decides beside code and prompts, as plain JSON: models, thresholds."""
        return {}


class Stage(_Step, Generic[In, Out]):
    """Settles units one by one, many at a time."""

    takes: type[In]
    gives: type[Out]

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


Step = Stage[Any, Any] | Fold[Any, Any]


def checked_reason(step: Step, outcome: Kept[Any] | Dropped) -> Kept[Any] | Dropped:
    """The outcome.

    Raises:
        ConfigError: it is dropped for a reason that the stage does not declare.
    """
    if isinstance(outcome, Dropped) and outcome.reason not in step.reasons:
        known = ", ".join(sorted(step.reasons)) or "none"
        raise ConfigError(f"stage {step.name}: reason '{outcome.reason}' is not one of: {known}")
    return outcome
