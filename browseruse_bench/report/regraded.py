"""What the regrades of one judge come to."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, TypeVar

from browseruse_bench.errors import DataError
from browseruse_bench.eval.disagreements import judge_name
from browseruse_bench.eval.regrading import Specimen
from browseruse_bench.eval.stability import Parameters
from browseruse_bench.measure.flips import (
    Claim,
    Flips,
    ItemFlips,
    Items,
    Pooled,
    Regrade,
    Traces,
    claim,
    flips,
    graded,
    item_flips,
    met_against_violated,
    pairs_of,
    pooled,
    shrink,
)
from browseruse_bench.measure.shrinkage import Prior, fit_prior
from browseruse_bench.measure.variance import Components, components
from browseruse_bench.records.base import Record
from browseruse_bench.records.judgement import Judgement
from browseruse_bench.records.rubric import Rubric
from browseruse_bench.records.score import Score
from browseruse_bench.report.summary import Cost


class ItemRow(Record):
    """One item, as it was read."""

    flips: ItemFlips
    requirement: str
    weight: float
    over: bool
    """Whether its rate, drawn towards the prior, is above the threshold."""


class FlagRow(Record):
    """One integrity flag over all traces; it takes all 100 points."""

    flag: str
    """`any`: whether there is one at all, and so no points."""
    flips: Flips
    n_raised: int
    """Graded regrades that carry it."""


class JudgeRow(Record):
    """What the regrades of one judge come to."""

    judge: str
    judge_key: str
    parameters: dict[str, Any] | None
    """Its models and how they are asked; None: not known here."""
    n_regrades: int
    n_graded: int
    ungraded: dict[str, int]
    """Reason -> regrades; they form no pair, so they never count as agreement."""
    n_short: int
    """Traces with fewer than two graded regrades: nothing is known of them."""
    pooled: Pooled
    claim: Claim
    prior: Prior
    items: tuple[ItemRow, ...]
    """Those that flip most come first."""
    flags: tuple[FlagRow, ...]
    by_code: Flips
    """Of items that code decides: anything but 0 is a defect of ours."""
    success: Flips
    """Of success or none."""
    points_apart: float | None
    """Mean difference of the points of two regrades of one trace; None: no pair."""
    variance: Components
    """Of the points, in squared points."""
    cost: Cost


@dataclass(frozen=True, kw_only=True)
class World:
    """What is compared."""

    rubrics: Mapping[str, Rubric]
    items: Items
    """That a judge decides."""
    coded: Items
    """That code decides."""
    traces: Collection[str]
    success_at: float
    parameters: Parameters

    @classmethod
    def of(
        cls,
        specimens: Sequence[Specimen],
        *,
        by_code: bool,
        success_at: float,
        parameters: Parameters,
    ) -> World:
        rubrics = {specimen.task.task_id: specimen.rubric for specimen in specimens}

        def chosen(coded: bool) -> dict[str, list[str]]:
            return {
                task_id: [i.id for i in rubric.items if (by_code and i.check is not None) is coded]
                for task_id, rubric in sorted(rubrics.items())
            }

        return cls(
            rubrics=rubrics,
            items=chosen(False),
            coded=chosen(True),
            traces=[specimen.trace_key for specimen in specimens],
            success_at=success_at,
            parameters=parameters,
        )

    def regrades(self, judgements: Iterable[Judgement]) -> list[Regrade]:
        """What the judgements say.

        Raises:
            DataError: findings that are not those of the rubric.
        """
        try:
            return [
                Regrade.of(j, self.rubrics[j.task_id], success_at=self.success_at)
                for j in judgements
            ]
        except ValueError as error:
            raise DataError(f"stability.jsonl: {error}") from error


def judge_row(
    key: str, judgements: Sequence[Judgement], world: World, threshold: float, limit: float
) -> JudgeRow:
    """The figures of one judge.

    Args:
        key: of the judge.
        judgements: its regrades of the traces that are compared.
        world: what is compared.
        threshold: an item above it is listed for rewording.
        limit: what the pooled rate is claimed to be below.

    Raises:
        DataError: findings that are not those of the rubric.
    """
    regrades = world.regrades(judgements)
    traces = graded(regrades)
    credit = pairs_of(traces, world.items)
    post = pairs_of(traces, world.items, differ=met_against_violated)
    found = item_flips(traces, world.items)
    prior = fit_prior(
        [
            (f.credit.share.rate, f.credit.share.n_effective)
            for f in found
            if f.credit.share.rate is not None
        ]
    )
    parameters = world.parameters.get(key)
    n_graded = Counter(j.trace_key for j in judgements if j.status == "graded")
    names = Counter(map(judge_name, judgements))
    return JudgeRow(
        judge=max(names, key=lambda name: (len(name), name)) if names else key[:12],
        judge_key=key,
        parameters=None if parameters is None else dict(parameters),
        n_regrades=len(judgements),
        n_graded=n_graded.total(),
        ungraded=dict(sorted(Counter(str(j.reason) for j in judgements if j.reason).items())),
        n_short=sum(n_graded[trace] < 2 for trace in world.traces),
        pooled=pooled(credit, post, world.items),
        claim=claim(credit, limit, ungraded=1 - n_graded.total() / max(1, len(judgements))),
        prior=prior,
        items=_item_rows(shrink(found, prior), world, threshold),
        flags=_flag_rows(regrades),
        by_code=flips(_values(traces, world.coded)),
        success=flips(_by_trace(regrades, lambda s: s.success).values()),
        points_apart=_points_apart(_by_trace(regrades, lambda s: s.points)),
        variance=_variance(regrades),
        cost=_cost(judgements),
    )


def _item_rows(found: Iterable[ItemFlips], world: World, threshold: float) -> tuple[ItemRow, ...]:
    items = {
        (task_id, item.id): item
        for task_id, rubric in world.rubrics.items()
        for item in rubric.items
    }
    rows = [
        ItemRow(
            flips=each,
            requirement=items[each.task_id, each.item].requirement,
            weight=float(items[each.task_id, each.item].weight),
            over=each.shrunk is not None and each.shrunk > threshold,
        )
        for each in found
    ]
    return tuple(sorted(rows, key=lambda r: (-(r.flips.shrunk or 0), -r.weight)))


def _values(traces: Traces, items: Items) -> list[list[bool]]:
    return [
        [statuses[item] == "met" for statuses in trace]
        for task_id, names in items.items()
        for trace in traces.get(task_id, {}).values()
        for item in names
    ]


def _flag_rows(regrades: Sequence[Regrade]) -> tuple[FlagRow, ...]:
    kinds = sorted({flag for regrade in regrades for flag in regrade.flags})

    def row(name: str, holds: Callable[[Regrade], bool]) -> FlagRow:
        traces: dict[str, list[bool]] = {}
        for regrade in regrades:
            if regrade.statuses is not None:
                traces.setdefault(regrade.trace, []).append(holds(regrade))
        return FlagRow(
            flag=name, flips=flips(traces.values()), n_raised=sum(map(sum, traces.values()))
        )

    every = row("any", lambda regrade: bool(regrade.flags))
    return (every, *(row(kind, lambda regrade, kind=kind: kind in regrade.flags) for kind in kinds))


_Of = TypeVar("_Of")


def _by_trace(regrades: Iterable[Regrade], of: Callable[[Score], _Of]) -> dict[str, list[_Of]]:
    """Trace -> what its graded regrades have."""
    traces: dict[str, list[_Of]] = {}
    for regrade in regrades:
        if regrade.score is not None:
            traces.setdefault(regrade.trace, []).append(of(regrade.score))
    return traces


def _points_apart(traces: Mapping[str, Sequence[float]]) -> float | None:
    apart = [abs(a - b) for points in traces.values() for a, b in combinations(points, 2)]
    return math.fsum(apart) / len(apart) if apart else None


def _variance(regrades: Iterable[Regrade]) -> Components:
    nested: dict[str, dict[str, list[float]]] = {}
    for regrade in regrades:
        if regrade.score is not None:
            attempts = nested.setdefault(regrade.task_id, {})
            attempts.setdefault(regrade.trace, []).append(regrade.score.points)
    return components(nested)


def _cost(judgements: Iterable[Judgement]) -> Cost:
    """What the judge cost, over its regrades."""
    costs = [usage.cost_usd for judgement in judgements for usage in judgement.usage]
    known = [cost for cost in costs if cost is not None]
    n_unknown = len(costs) - len(known)
    total = round(math.fsum(known), 6)
    return Cost(
        cost_usd=total if costs and not n_unknown else None, known_usd=total, n_unknown=n_unknown
    )
