"""The design of the screen as tables, before a run is spent."""

from __future__ import annotations

from browseruse_bench.factory.workspace import Screen
from browseruse_bench.measure.sequential import (
    KINDS,
    MIXES,
    Kind,
    Terms,
    fixed,
    least_mean_runs,
    sequential,
)
from browseruse_bench.report.render import Table

RATES = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)
VERDICTS: dict[Kind, str] = {"nobody": "escalate", "some": "keep", "everyone": "too_easy"}


def terms_of(screen: Screen) -> Terms:
    """What the test of a workspace is about."""
    return Terms(max_runs=screen.max_runs, easy_at=screen.easy_at, fp=screen.fp, fn=screen.fn)


def tables(screen: Screen) -> list[Table]:
    """For every true pass rate the chance of each verdict and the mean runs; when it stops; what
    it saves.
    """
    terms = terms_of(screen)
    test = sequential(terms)
    outlooks = [(rate, test.outlook(rate)) for rate in sorted({*RATES, screen.easy_at})]
    title = (
        f"at most {terms.max_runs} runs; too easy from a true pass rate of {terms.easy_at:g}; the "
        f"grader passes {terms.fp:.0%} of what did not pass, and fails {terms.fn:.0%} of what did"
    )
    by_rate = Table(
        title=title,
        headers=("true pass rate", *VERDICTS.values(), "mean runs"),
        rows=tuple(
            (
                f"{rate:.2f}",
                *(f"{outlook.chances[kind]:.1%}" for kind in KINDS),
                f"{outlook.mean_runs:.2f}",
            )
            for rate, outlook in outlooks
        ),
    )
    stops = Table(
        title="verdict after so many runs, by passes; -: another run",
        headers=("runs", *map(str, range(terms.max_runs + 1))),
        rows=tuple(
            (
                str(n),
                *("-" if word is None else VERDICTS[word] for word in row),
                *([""] * (terms.max_runs - n)),
            )
            for n, row in enumerate(test.table)
            if n
        ),
    )
    return [by_rate, stops, _mixes(terms), _escalation(screen)]


def _mixes(terms: Terms) -> Table:
    test, full = sequential(terms), fixed(terms)
    rows: list[tuple[str, ...]] = []
    for name, shares in MIXES.items():
        mix = terms.mix(*shares)
        over, whole, least = test.over(mix), full.over(mix), least_mean_runs(test, mix)
        wrong = "; ".join(
            f"{VERDICTS[kind]} {over.error[kind]:.1%} ({whole.error[kind]:.1%})" for kind in KINDS
        )
        saved = terms.max_runs - over.mean_runs
        rows.append((name, f"{over.mean_runs:.2f}", f"{least:.2f}", f"{saved:.2f}", wrong))
    return Table(
        title=f"mixes of tasks; the fixed design makes {terms.max_runs} runs of each",
        headers=("tasks", "mean runs", "optimal rule, at least", "saved", "wrong (fixed design)"),
        rows=tuple(rows),
    )


def _escalation(screen: Screen) -> Table:
    n, fp, fn = screen.escalation_runs, screen.fp, screen.fn
    rows = [
        (f"{rate:.2f}", f"{1 - (1 - rate * (1 - fn) - (1 - rate) * fp) ** n:.1%}")
        for rate in (0.0, 0.1, 0.3, 0.5, 0.9)
    ]
    return Table(
        title=f"what is escalated: up to {n} runs of the stronger agent; one pass makes it hard",
        headers=("its true pass rate", "called hard"),
        rows=tuple(rows),
    )
