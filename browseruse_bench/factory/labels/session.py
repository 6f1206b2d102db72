"""One person's sitting: task after task, with undo, time spent and rate; no terminal in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from browseruse_bench.factory.labels import desk
from browseruse_bench.factory.labels.desk import Assignment, Progress
from browseruse_bench.factory.labels.form import Form, pressed
from browseruse_bench.factory.labels.store import LabelStore

IDLE_S = 120.0
"""A longer pause between two keys counts as this long: nobody labels at lunch."""


@dataclass(frozen=True, kw_only=True)
class Rate:
    """How fast this sitting goes."""

    n_saved: int
    per_hour: float | None
    """Labels per hour of labelling; None: none yet."""
    median_s: float | None
    left_s: float | None
    """Until this labeller has nothing left, at the mean so far."""


class Session:
    """Hands keys to the form, and does what it asks for."""

    def __init__(
        self,
        store: LabelStore,
        labeller: str,
        *,
        monotonic: Callable[[], float],
        needs_reason: bool = True,
        rechecks: int = 0,
    ) -> None:
        """Go on where this labeller stopped."""
        self._store = store
        self._labeller = desk.checked_labeller(labeller)
        self._monotonic = monotonic
        self._needs_reason = needs_reason
        self._rechecks = rechecks
        self._skipped: list[str] = []
        self._spent: list[float] = []
        self._active_s = 0.0
        self._last_key = monotonic()
        self.assignment: Assignment | None = None
        self.form = Form(needs_reason=needs_reason)
        self.is_over = False
        self._next()

    @property
    def progress(self) -> Progress:
        """How far labelling is."""
        return desk.progress(self._store, self._labeller)

    @property
    def rate(self) -> Rate:
        """How fast this sitting goes."""
        n = len(self._spent)
        if not n:
            return Rate(n_saved=0, per_hour=None, median_s=None, left_s=None)
        total = sum(self._spent)
        mean = total / n
        return Rate(
            n_saved=n,
            per_hour=3600 / mean if mean > 0 else None,
            median_s=median(self._spent),
            left_s=mean * self._n_left(),
        )

    def _n_left(self) -> int:
        if self._rechecks:
            return len(desk.rechecks_owed(self._store, self._labeller, self._rechecks))
        return self.progress.n_left_for_me

    def press(self, key: str) -> None:
        """Do what a key means.

        Raises:
            StoreError: a label cannot be written; it is still in the form.
        """
        now = self._monotonic()
        self._active_s += min(now - self._last_key, IDLE_S)
        self._last_key = now
        if self.assignment is None:
            if key in ("q", "ctrl-d", "escape"):
                self.is_over = True
            elif key == "z":
                self._undo()
            return
        self.form, action = pressed(self.form, key)
        if action == "save":
            self._save(self.assignment)
        elif action == "undo":
            self._undo()
        elif action == "skip":
            self._skip(self.assignment)
        elif action == "quit":
            self.is_over = True

    def _save(self, assignment: Assignment) -> None:
        seconds = self._active_s
        desk.save(self._store, self._labeller, assignment, self.form.word(seconds))
        self._spent.append(seconds)
        self._next()

    def _skip(self, assignment: Assignment) -> None:
        # To the end of those put off, so that skipping goes round.
        self._skipped = [key for key in self._skipped if key != assignment.task]
        self._skipped.append(assignment.task)
        self._next()

    def _undo(self) -> None:
        taken = desk.undo(self._store, self._labeller)
        if taken is None:
            self.form = Form(needs_reason=self._needs_reason, message="nothing to take back")
            return
        if self._spent:
            self._spent.pop()
        self._show(taken)
        self.form = Form(needs_reason=self._needs_reason, message="taken back: say it again")

    def _next(self) -> None:
        found = desk.next_task(
            self._store, self._labeller, rechecks=self._rechecks, skipped=self._skipped
        )
        self._show(found)

    def _show(self, assignment: Assignment | None) -> None:
        self.assignment = assignment
        self.form = Form(needs_reason=self._needs_reason)
        self._active_s = 0.0
        self._last_key = self._monotonic()
