"""Whether people still label as they did: a blind sample, labelled once more.

A labeller is given tasks of its own again, without what it said. How far it agrees with its
earlier self is the ceiling for whoever is to agree with it; where later labels lean to one side,
the prompt that was chosen by the earlier ones follows what nobody thinks any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pydantic import Field

from browseruse_bench.factory.labels.store import LabelStore
from browseruse_bench.factory.search.decision import mcnemar, p_text
from browseruse_bench.factory.search.figures import Rate
from browseruse_bench.factory.search.report import coefficient
from browseruse_bench.measure.agreement import Coefficient, Labelled, agreement
from browseruse_bench.measure.intervals import LEVEL
from browseruse_bench.records.base import Record
from browseruse_bench.records.label import VERDICTS, Label
from browseruse_bench.report.render import NOTHING, Table, number


class Drift(Record):
    """One labeller, or all of them, against their earlier selves."""

    labeller: str | None
    """None: all together, each task and labeller once."""
    agreement: Rate
    """Of the tasks that were labelled again, those with the same verdict."""
    kappa: Coefficient
    confusion: tuple[tuple[int, ...], ...]
    """Rows: what was said first; columns: what was said later; in the order of VERDICTS."""
    n_now_suitable: int = Field(ge=0)
    """Tasks that are called suitable only later."""
    n_no_longer: int = Field(ge=0)
    """Tasks that were called suitable only at first."""
    p_shift: float
    """McNemar's exact test of these two against each other, two-sided."""
    days: float | None
    """Between the two, in the middle; None: not known."""
    n_not_blind: int = Field(ge=0)
    """Tasks that are left out: the labeller had seen what others, or it, had said."""

    @property
    def sentence(self) -> str:
        """Whether the standard moved, in words."""
        who = self.labeller or "all labellers"
        if not self.agreement.of:
            return f"{who}: nothing was labelled again blindly"
        shift = (
            f"the standard moved: {self.n_no_longer} tasks are no longer suitable, "
            f"{self.n_now_suitable} are now"
            if self.p_shift < 1 - LEVEL
            else "no shift is shown"
        )
        return (
            f"{who}: the same verdict on {self.agreement.text} of {self.agreement.of} tasks; "
            f"{shift} ({p_text(self.p_shift)})"
        )


class DriftReport(Record):
    """The drift of all who labelled again."""

    labellers: tuple[Drift, ...]
    together: Drift

    @property
    def sentences(self) -> list[str]:
        """In words."""
        return [f"{drift.sentence}." for drift in (*self.labellers, self.together)]


def drift(store: LabelStore) -> DriftReport:
    """Labels that were given twice by one labeller, apart from sealed ones."""
    before = {(label.task, label.labeller): label for label in store.labels()}
    pairs = [
        (before[again.task, again.labeller], again)
        for again in store.labels(recheck=True)
        if (again.task, again.labeller) in before
    ]
    names = sorted({again.labeller for _, again in pairs})
    return DriftReport(
        labellers=tuple(
            _drift(name, [pair for pair in pairs if pair[1].labeller == name]) for name in names
        ),
        together=_drift(None, pairs),
    )


def _drift(labeller: str | None, pairs: Sequence[tuple[Label, Label]]) -> Drift:
    blind = [(first, again) for first, again in pairs if again.blind]
    table = agreement(
        (
            Labelled(truth=first.verdict, verdict=again.verdict, cluster=first.task)
            for first, again in blind
        ),
        VERDICTS,
    )
    no_longer = sum(a.verdict == "suitable" != b.verdict for a, b in blind)
    now = sum(a.verdict != "suitable" == b.verdict for a, b in blind)
    return Drift(
        labeller=labeller,
        agreement=Rate.of_counts(sum(a.verdict == b.verdict for a, b in blind), len(blind)),
        kappa=table.kappa,
        confusion=table.confusion,
        n_now_suitable=now,
        n_no_longer=no_longer,
        p_shift=mcnemar(no_longer, now),
        days=_days(blind),
        n_not_blind=len(pairs) - len(blind),
    )


def _days(pairs: Sequence[tuple[Label, Label]]) -> float | None:
    found: list[float] = []
    for first, again in pairs:
        try:
            passed = datetime.fromisoformat(again.at) - datetime.fromisoformat(first.at)
        except (ValueError, TypeError):
            return None
        found.append(passed.total_seconds() / 86_400)
    return sorted(found)[len(found) // 2] if found else None


def table(report: DriftReport) -> Table:
    """The drift, one line a labeller."""
    rows = [_row(found) for found in (*report.labellers, report.together)]
    return Table(
        title="Labels given twice",
        headers=(
            "labeller",
            "tasks",
            "same verdict",
            "kappa",
            "now suitable",
            "no longer",
            "p of a shift",
            "days between",
            "not blind",
        ),
        rows=tuple(rows),
        right=frozenset({1, 4, 5, 6, 7, 8}),
    )


def _row(found: Drift) -> tuple[str, ...]:
    values: tuple[Any, ...] = (
        found.labeller or "all",
        found.agreement.of,
        found.agreement.text,
        coefficient(found.kappa),
        found.n_now_suitable,
        found.n_no_longer,
        p_text(found.p_shift).removeprefix("p = ") if found.agreement.of else NOTHING,
        number(found.days),
        found.n_not_blind,
    )
    return tuple(map(str, values))
