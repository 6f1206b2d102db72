"""Whether a rubric still holds: its file is the one that was read, no later check found one of its
facts changed, and its facts are recent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from browseruse_bench.benchmarks.fact_checks import FactFolder
from browseruse_bench.benchmarks.references import FACTS, RUBRICS, read_rubric
from browseruse_bench.errors import DataError
from browseruse_bench.records.rubric import Rubric
from browseruse_bench.store.files import escaped


@dataclass
class Freshness:
    """What makes the rubrics of a benchmark folder stale."""

    folder: Path
    """The benchmark's."""
    today: Callable[[], date]
    max_age_days: int | None = None
    """A fact that was checked longer ago makes its rubric stale; None: it does not."""
    _seen: dict[str, tuple[tuple[int, int], str]] = field(
        default_factory=dict[str, tuple[tuple[int, int], str]]
    )

    def problem(self, rubric: Rubric) -> str | None:
        """Why this rubric gives no reward now; None: it does."""
        return self._changed(rubric) or self._rotted(rubric) or self._old(rubric)

    def _changed(self, rubric: Rubric) -> str | None:
        path = self.folder / RUBRICS / f"{escaped(rubric.task_id)}.json"
        try:
            stat = path.stat()
        except FileNotFoundError:
            # Rubrics may stand in the rows themselves; a file that went away was read before.
            return "its file is gone" if rubric.task_id in self._seen else None
        version = (stat.st_mtime_ns, stat.st_size)
        seen = self._seen.get(rubric.task_id)
        if seen is None or seen[0] != version:
            try:
                key = read_rubric(path).key
            except DataError as error:
                return f"its file is no longer a rubric: {str(error).splitlines()[0]}"
            seen = self._seen[rubric.task_id] = (version, key)
        if seen[1] != rubric.key:
            return "its file was changed since this server started: start it again"
        return None

    def _rotted(self, rubric: Rubric) -> str | None:
        """What `bubench facts verify --live` found of it last."""
        try:
            for fact, known in FactFolder(self.folder / FACTS).rotted(rubric):
                why = known.check.outcome if known.check is not None else "changed"
                return f"fact {fact.id} no longer holds since {known.since}: {why}"
        except DataError as error:
            return f"the checks of its facts cannot be read: {str(error).splitlines()[0]}"
        return None

    def _old(self, rubric: Rubric) -> str | None:
        if self.max_age_days is None:
            return None
        for fact in rubric.facts:
            if fact.checked_on is None:
                return f"fact {fact.id} bears no date"
            age = (self.today() - date.fromisoformat(fact.checked_on)).days
            if age > self.max_age_days:
                return f"fact {fact.id} was checked {age} days ago, on {fact.checked_on}"
        return None
