"""What several attempts at a task are worth: at least one of k right, and all of k right."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from browseruse_bench.measure.intervals import LEVEL, Interval, mean_interval
from browseruse_bench.measure.tally import Placed
from browseruse_bench.records.base import Record


class Share(Record):
    """A mean over tasks, 0..1, with what is known of it."""

    mean: float | None
    """Over the tasks with at least k graded attempts; None: there are none."""
    interval: Interval | None
    """For new tasks."""
    lower: float
    """Over all tasks with at least k selected attempts, what is not graded as failures."""
    upper: float
    """The same with what is not graded as successes."""


class PassK(Record):
    """Estimates for one k. Attempts that ended by infrastructure or have no verdict are no
    trials; tasks that are short of graded attempts for it are counted, and are in the bounds.
    """

    k: int
    any: Share
    """pass@k: at least one of k attempts is a success."""
    all: Share
    """pass^k: all of k attempts are."""
    n_tasks: int
    """Tasks with at least k selected attempts."""
    n_short: int
    """Those of them with fewer than k graded ones."""


def pass_at(n: int, c: int, k: int) -> float:
    """The unbiased estimate of P(at least one of k attempts succeeds).

    Args:
        n: trials, at least k.
        c: successes among them.
        k: at least 1.

    Raises:
        ValueError: not 1 <= k <= n, or not 0 <= c <= n.

    Source: Chen et al., Evaluating Large Language Models Trained on Code, 2021, equation 1.
    """
    _check(n, c, k)
    return (math.comb(n, k) - math.comb(n - c, k)) / math.comb(n, k)


def pass_all(n: int, c: int, k: int) -> float:
    """The unbiased estimate of P(all of k attempts succeed), written pass^k.

    Args:
        n: trials, at least k.
        c: successes among them.
        k: at least 1.

    Raises:
        ValueError: not 1 <= k <= n, or not 0 <= c <= n.

    Source: Yao et al., tau-bench: A Benchmark for Tool-Agent-User Interaction in Real-World
    Domains, 2024, section 4.
    """
    _check(n, c, k)
    return math.comb(c, k) / math.comb(n, k)


def _check(n: int, c: int, k: int) -> None:
    if not 1 <= k <= n or not 0 <= c <= n:
        raise ValueError(f"n {n}, c {c}, k {k}: needs 1 <= k <= n and 0 <= c <= n")


def pass_k(placed: Sequence[Placed], *, level: float = LEVEL) -> tuple[PassK, ...]:
    """Estimates for k = 1, 2, 4, 8, ... and the largest number of attempts at one task.

    Returns:
        Nothing where no task has more than one selected attempt.
    """
    tasks: dict[str, list[Placed]] = {}
    for p in placed:
        tasks.setdefault(p.task_id, []).append(p)
    largest = max(map(len, tasks.values()), default=1)
    if largest == 1:
        return ()
    counts = [
        (
            len(attempts),
            sum(p.score is not None for p in attempts),
            sum(p.score is not None and p.score.success for p in attempts),
        )
        for attempts in tasks.values()
    ]
    ks = [2**i for i in range(largest.bit_length()) if 2**i < largest]
    return tuple(_for(k, counts, level) for k in (*ks, largest))


def _for(k: int, counts: Sequence[tuple[int, int, int]], level: float) -> PassK:
    enough = [count for count in counts if count[0] >= k]
    return PassK(
        k=k,
        any=_share(pass_at, k, enough, level),
        all=_share(pass_all, k, enough, level),
        n_tasks=len(enough),
        n_short=sum(graded < k for _, graded, _ in enough),
    )


def _share(
    estimate: Callable[[int, int, int], float],
    k: int,
    counts: Sequence[tuple[int, int, int]],
    level: float,
) -> Share:
    """Over tasks with at least k selected attempts: (selected, graded, successes) of each."""
    known = [estimate(graded, right, k) for _, graded, right in counts if graded >= k]
    lower = [estimate(selected, right, k) for selected, _, right in counts]
    upper = [estimate(selected, selected - graded + right, k) for selected, graded, right in counts]
    return Share(
        mean=math.fsum(known) / len(known) if known else None,
        interval=mean_interval(
            [(value,) for value in known], top=1, target="new tasks", level=level
        ),
        lower=math.fsum(lower) / len(lower),
        upper=math.fsum(upper) / len(upper),
    )
