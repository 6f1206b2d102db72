"""A sequential test of how often a task is passed, with its exact behaviour.

A task is passed by `nobody` (its true pass rate is 0), by `everyone` (at least `easy_at`), or by
`some`. Runs are made one after another; after each the test stops with one of these words or goes
on, and it stops after `max_runs` in any case. A grader that errs is in the likelihood: a run that
did not pass counts as one with chance `fp`, one that passed does not with chance `fn`. The state
of a test is (runs, passes), so that everything about it is a sum over at most
(max_runs + 1)(max_runs + 2)/2 states: nothing here is simulated.

The rule is the Bayes rule of backward induction (Wald; Arrow, Blackwell and Girshick, Bayes and
minimax solutions of sequential decision problems, 1949): it stops where a further run costs more
than it is expected to save, when a wrong word costs as much as `wrong_runs` runs and the three
kinds of tasks are equally likely.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

Kind = Literal["nobody", "some", "everyone"]
KINDS: tuple[Kind, Kind, Kind] = ("nobody", "some", "everyone")
WRONG_RUNS = 160.0
"""Runs that a wrong word is worth. The errors are then within two points of those of the fixed
design for each kind (benches/screen.py prints both)."""
_MIDDLE, _TOP = 18, 3
"""Points at which pass rates between 0 and `easy_at`, and from there to 1, are taken."""
Mix = Mapping[float, float]
"""True pass rate -> share of the tasks; the shares sum to 1."""
_Table = tuple[tuple["Kind | None", ...], ...]


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What a test is about."""

    max_runs: int = 8
    easy_at: float = 0.9
    """True pass rate from which on everyone passes."""
    fp: float = 0.05
    """Chance that a run that did not pass is judged as passed."""
    fn: float = 0.1
    """Chance that a run that passed is judged as not passed."""

    def __post_init__(self) -> None:
        """Refuse what has no meaning.

        Raises:
            ValueError: a value is out of its range.
        """
        if self.max_runs < 1 or not 0 < self.easy_at <= 1:
            raise ValueError("needs max_runs >= 1 and 0 < easy_at <= 1")
        if not (0 <= self.fp < 0.5 and 0 <= self.fn < 0.5):
            raise ValueError("needs 0 <= fp < 0.5 and 0 <= fn < 0.5")

    def judged(self, rate: float) -> float:
        """Chance that a run is judged as passed, at this true pass rate."""
        return rate * (1 - self.fn) + (1 - rate) * self.fp

    def kind(self, rate: float) -> Kind:
        """What a task of this true pass rate is."""
        if rate == 0:
            return "nobody"
        return "everyone" if rate >= self.easy_at else "some"

    def mix(self, nobody: float, some: float, everyone: float) -> dict[float, float]:
        """Tasks of the three kinds in these shares; even pass rates within a kind."""
        found = {0.0: nobody}
        for i in range(_MIDDLE):
            found[self.easy_at * (i + 0.5) / _MIDDLE] = some / _MIDDLE
        for i in range(_TOP):
            rate = self.easy_at + (1 - self.easy_at) * i / (_TOP - 1)
            found[rate] = found.get(rate, 0.0) + everyone / _TOP
        return found


@dataclass(frozen=True)
class Outlook:
    """What a test comes to, before a run is spent."""

    chances: dict[Kind, float]
    """Of each word."""
    mean_runs: float


@dataclass(frozen=True)
class Test:
    """A test: what it says after each number of runs and passes."""

    __test__ = False
    terms: Terms
    table: _Table
    """[runs][passes]: the word with which it stops; None: it goes on."""

    def after(self, n: int, passes: int) -> Kind | None:
        """The word after n runs, `passes` of which were judged as passed; None: run again."""
        return self.table[n][passes]

    def outlook(self, rate: float) -> Outlook:
        """Exact behaviour on a task of this true pass rate."""
        q = self.terms.judged(rate)
        chances: dict[Kind, float] = dict.fromkeys(KINDS, 0.0)
        here, mean = [1.0], 0.0
        for n, row in enumerate(self.table):
            there = [0.0] * (n + 2)
            for passes, word in enumerate(row):
                if word is None:
                    there[passes + 1] += here[passes] * q
                    there[passes] += here[passes] * (1 - q)
                else:
                    chances[word] += here[passes]
                    mean += n * here[passes]
            here = there
        return Outlook(chances, mean)

    def over(self, mix: Mix) -> Over:
        """Exact behaviour over tasks of these pass rates."""
        wrong: dict[Kind, float] = dict.fromkeys(KINDS, 0.0)
        share: dict[Kind, float] = dict.fromkeys(KINDS, 0.0)
        mean = 0.0
        for rate, weight in mix.items():
            outlook, kind = self.outlook(rate), self.terms.kind(rate)
            share[kind] += weight
            wrong[kind] += weight * (1 - outlook.chances[kind])
            mean += weight * outlook.mean_runs
        return Over(share, wrong, mean)

    @cached_property
    def _even(self) -> dict[float, float]:
        return self.terms.mix(1 / 3, 1 / 3, 1 / 3)

    def posterior(self, n: int, passes: int) -> dict[Kind, float]:
        """Chance of each kind after these runs, where all kinds were equally likely before."""
        found: dict[Kind, float] = dict.fromkeys(KINDS, 0.0)
        for rate, weight in self._even.items():
            q = self.terms.judged(rate)
            found[self.terms.kind(rate)] += weight * q**passes * (1 - q) ** (n - passes)
        total = math.fsum(found.values())
        return {kind: value / total for kind, value in found.items()}


@dataclass(frozen=True)
class Over:
    """What a test comes to over a mix of tasks."""

    share: dict[Kind, float]
    """Of the tasks that are of each kind."""
    wrong: dict[Kind, float]
    """Share of all tasks that are of this kind and were called otherwise."""
    mean_runs: float

    @property
    def error(self) -> dict[Kind, float]:
        """Chance that a task of this kind is called otherwise; kinds that are not there are left
        out.
        """
        return {kind: self.wrong[kind] / n for kind, n in self.share.items() if n > 0}


def sequential(terms: Terms, *, wrong_runs: float = WRONG_RUNS) -> Test:
    """The test that `factory` uses: the best one where all kinds are equally likely."""
    mix = terms.mix(1 / 3, 1 / 3, 1 / 3)
    return best(terms, mix, dict.fromkeys(KINDS, wrong_runs))[0]


def fixed(terms: Terms) -> Test:
    """The test that always makes `max_runs` runs, and then says what is likeliest."""
    last = sequential(terms).table[terms.max_runs]
    going: list[tuple[Kind | None, ...]] = [(None,) * (n + 1) for n in range(terms.max_runs)]
    return Test(terms, (*going, last))


def best(terms: Terms, mix: Mix, costs: Mapping[Kind, float]) -> tuple[Test, float]:
    """The optimal stopping rule, by backward induction.

    Args:
        terms: what the test is about.
        mix: the tasks.
        costs: runs that it costs to call a task of a kind otherwise.

    Returns:
        The rule, and the least value of mean runs + sum of cost times share called otherwise.
    """
    points = [
        (weight, terms.judged(rate), KINDS.index(terms.kind(rate)))
        for rate, weight in mix.items()
        if weight > 0
    ]
    below: list[float] = []
    rows: list[tuple[Kind | None, ...]] = []
    for n in range(terms.max_runs, -1, -1):
        values: list[float] = []
        words: list[Kind | None] = []
        for passes in range(n + 1):
            mass = [0.0, 0.0, 0.0]
            for weight, q, kind in points:
                mass[kind] += weight * q**passes * (1 - q) ** (n - passes)
            value, word = _stopped(mass, costs)
            if n < terms.max_runs:
                going = sum(mass) + below[passes] + below[passes + 1]
                if going < value:
                    value, word = going, None
            values.append(value)
            words.append(word)
        below = values
        rows.append(tuple(words))
    return Test(terms, tuple(reversed(rows))), below[0]


def _stopped(mass: Sequence[float], costs: Mapping[Kind, float]) -> tuple[float, Kind | None]:
    """The cheapest word where the kinds have these chances, and what it costs."""
    each = [costs[kind] * of for kind, of in zip(KINDS, mass, strict=True)]
    total = sum(each)
    word = min(range(3), key=lambda i: total - each[i])
    return total - each[word], KINDS[word]


def least_mean_runs(test: Test, mix: Mix) -> float:
    """Fewer runs no rule needs that calls tasks of each kind otherwise no oftener than `test`.

    For any costs, the least of (mean runs + costs times wrong) is at most what a rule with these
    error rates comes to (Lagrange): the costs are moved, one by one, to the highest such bound.
    A bound stays one wherever the search ends, so what is printed against it is never too good.
    """
    wrong = test.over(mix).wrong

    def bound(costs: Mapping[Kind, float]) -> float:
        _, least = best(test.terms, mix, costs)
        return least - math.fsum(costs[kind] * wrong[kind] for kind in KINDS)

    costs: dict[Kind, float] = dict.fromkeys(KINDS, WRONG_RUNS)
    highest, factor = bound(costs), 2.0
    while factor > 1.02:
        moved = False
        for kind in KINDS:
            for by in (factor, 1 / factor):
                tried = dict(costs)
                tried[kind] *= by
                found = bound(tried)
                if found > highest + 1e-9:
                    highest, costs, moved = found, tried, True
        if not moved:
            factor **= 0.5
    return highest


MIXES: dict[str, tuple[float, float, float]] = {
    "the post's (40 % kept)": (0.36, 0.29, 0.35),
    "hard": (0.60, 0.25, 0.15),
    "easy": (0.15, 0.25, 0.60),
    "mostly between": (0.20, 0.60, 0.20),
}
"""Shares that nobody, some and everyone pass. The post keeps a little over 40 % of the tasks: with
a third of what nobody passes found possible by a stronger model, .29 + .36/3 = .41; how the rest
divides it does not say."""
