"""How far a labeller agrees with people, what it costs, and whether two figures differ."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from browseruse_bench.factory.search.bench import Answer
from browseruse_bench.factory.search.book import total
from browseruse_bench.factory.search.decision import (
    independent_interval,
    mcnemar,
    p_text,
    paired_interval,
)
from browseruse_bench.factory.search.examples import Example
from browseruse_bench.measure.agreement import Coefficient, Labelled, agreement
from browseruse_bench.measure.intervals import LEVEL, wilson
from browseruse_bench.records.base import Record
from browseruse_bench.records.label import VERDICTS, Verdict


class Rate(Record):
    """How many of how many, with Wilson's 95 % interval."""

    hits: int = Field(ge=0)
    of: int = Field(ge=0)
    rate: float | None
    """None, as the interval: there was nothing to count."""
    low: float | None
    high: float | None

    @classmethod
    def of_counts(cls, hits: int, of: int) -> Rate:
        """The rate of a count."""
        if not of:
            return cls(hits=hits, of=of, rate=None, low=None, high=None)
        low, high = wilson(hits, of)
        return cls(hits=hits, of=of, rate=hits / of, low=low, high=high)

    @property
    def text(self) -> str:
        """As in `81.1% (71.8 to 87.9)`."""
        if self.rate is None or self.low is None or self.high is None:
            return "-"
        return f"{100 * self.rate:.1f}% ({100 * self.low:.1f} to {100 * self.high:.1f})"


class Figures(Record):
    """One prompt with one model, on one part of the labels."""

    agreement: Rate
    """Of all tasks; one on which nothing was said counts as wrong."""
    n_silent: int
    kappa: Coefficient
    """Of the tasks on which something was said."""
    recall: dict[Verdict, Rate]
    """Of the tasks that people call so, those that it calls so."""
    said_suitable: Rate
    n_rejected: int
    """Tasks that people call suitable and it does not."""
    n_accepted: int
    """Tasks that it calls suitable and people do not."""
    p_leaning: float
    """McNemar's exact test of these two against each other, two-sided."""
    cost_usd: float | None
    """None: not known."""
    usd_per_thousand: float | None
    """Tasks that are read."""
    usd_per_thousand_suitable: float | None
    """Tasks that it calls suitable, in a corpus like these; None: it calls none so."""
    seconds: float | None
    """Of one call, on average."""

    @property
    def leaning(self) -> str:
        """Whether it is shown to reject more of what people accept than it accepts of what they
        reject, or the other way round; empty: neither.
        """
        if self.p_leaning >= 1 - LEVEL:
            return ""
        return "over-conservative" if self.n_rejected > self.n_accepted else "over-generous"


def figures(examples: Sequence[Example], answers: Sequence[Answer]) -> Figures:
    """The figures of answers to examples, in the same order."""
    pairs = [(e.truth, a.verdict) for e, a in zip(examples, answers, strict=True)]
    n, cost = len(pairs), total(a.cost_usd for a in answers)
    n_said = sum(verdict == "suitable" for _, verdict in pairs)
    rejected = sum(truth == "suitable" != verdict for truth, verdict in pairs)
    accepted = sum(truth != "suitable" == verdict for truth, verdict in pairs)
    whole = agreement(
        (
            Labelled(truth=e.truth, verdict=a.verdict, cluster=e.key)
            for e, a in zip(examples, answers, strict=True)
        ),
        VERDICTS,
    )
    return Figures(
        agreement=Rate.of_counts(sum(truth == verdict for truth, verdict in pairs), n),
        n_silent=sum(verdict is None for _, verdict in pairs),
        kappa=whole.kappa,
        recall={
            kind: Rate.of_counts(
                sum(truth == verdict == kind for truth, verdict in pairs),
                sum(truth == kind for truth, _ in pairs),
            )
            for kind in VERDICTS
        },
        said_suitable=Rate.of_counts(n_said, n),
        n_rejected=rejected,
        n_accepted=accepted,
        p_leaning=mcnemar(rejected, accepted),
        cost_usd=cost,
        usd_per_thousand=None if cost is None or not n else 1000 * cost / n,
        usd_per_thousand_suitable=None if cost is None or not n_said else 1000 * cost / n_said,
        seconds=sum(a.seconds for a in answers) / n if n else None,
    )


class Difference(Record):
    """Two figures of agreement, first minus second."""

    first: Rate
    second: Rate
    difference: float
    low: float
    high: float
    p: float | None
    """McNemar's exact test, two-sided, where both are of the same tasks."""

    @property
    def shown(self) -> bool:
        """Whether a difference is shown."""
        if self.p is not None:
            return self.p < 1 - LEVEL
        return not self.low <= 0 <= self.high

    @property
    def sentence(self) -> str:
        """The two, and whether they differ, in words."""
        n = f"{self.first.of}" if self.p is not None else f"{self.first.of} and {self.second.of}"
        p = "" if self.p is None else f", {p_text(self.p)}"
        what = "a difference is shown" if self.shown else "no difference is shown"
        return (
            f"{_percent(self.first)} against {_percent(self.second)} on {n} tasks: {what} "
            f"({100 * self.difference:+.1f} points, 95% interval {100 * self.low:+.1f} to "
            f"{100 * self.high:+.1f}{p})"
        )


def _percent(rate: Rate) -> str:
    return "-" if rate.rate is None else f"{100 * rate.rate:.1f}%"


def same_tasks(first: Sequence[bool], second: Sequence[bool]) -> Difference | None:
    """Two labellers on the same tasks, in the same order; None: there are none."""
    n = len(first)
    if not n:
        return None
    only_first = sum(a and not b for a, b in zip(first, second, strict=True))
    only_second = sum(b and not a for a, b in zip(first, second, strict=True))
    low, high = paired_interval(only_first, only_second, n)
    return Difference(
        first=Rate.of_counts(sum(first), n),
        second=Rate.of_counts(sum(second), n),
        difference=(only_first - only_second) / n,
        low=low,
        high=high,
        p=mcnemar(only_first, only_second),
    )


def other_tasks(first: Rate, second: Rate) -> Difference | None:
    """One labeller on two sets of tasks; None: one of them is empty."""
    if first.rate is None or second.rate is None:
        return None
    low, high = independent_interval((first.hits, first.of), (second.hits, second.of))
    return Difference(
        first=first,
        second=second,
        difference=first.rate - second.rate,
        low=low,
        high=high,
        p=None,
    )


def right(examples: Sequence[Example], answers: Sequence[Answer]) -> tuple[bool, ...]:
    """For each example, whether the answer is what people said."""
    return tuple(a.verdict == e.truth for e, a in zip(examples, answers, strict=True))
