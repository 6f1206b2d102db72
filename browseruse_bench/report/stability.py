"""How much a verdict depends on when it was given: what regrades of frozen traces come to."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import TypeAdapter

from browseruse_bench.errors import ConfigError
from browseruse_bench.eval.disagreements import (
    Disagreement,
    about_integrity,
    about_item,
    judge_name,
)
from browseruse_bench.eval.regrading import Specimen
from browseruse_bench.eval.stability import LIMIT, THRESHOLD, Parameters
from browseruse_bench.measure.flips import (
    Pooled,
    Regrade,
    graded,
    met_against_violated,
    pairs_across,
    pooled,
)
from browseruse_bench.measure.ratios import Share, share
from browseruse_bench.records.base import Record
from browseruse_bench.records.judgement import Judgement
from browseruse_bench.records.run import Run
from browseruse_bench.report.regraded import JudgeRow, World, judge_row


class BetweenRow(Record):
    """One item, as two judges read it."""

    task_id: str
    item: str
    share: Share


class Between(Record):
    """Two judges on the same traces."""

    pooled: Pooled
    within: float | None
    """Mean of the pooled rates of both: what they would disagree at least if they were alike."""
    flags: Share
    """How often one finds the points forfeit and the other does not."""
    items: tuple[BetweenRow, ...]
    """Those that they disagree about, most first."""


class Stability(Record):
    """What `bubench stability` says of a run."""

    schema_version: int = 1
    run_id: str
    benchmark: str
    split: str
    agent: str
    model: str | None
    n_tasks: int
    n_traces: int
    n_fit: int
    """Traces of the run that could be regraded."""
    seed: int
    skipped: dict[str, int]
    """Why a trace cannot be regraded -> how many."""
    n_idle: int
    """Traces in which the agent did nothing: no model is asked, so they are not compared."""
    n_by_code: int
    """Items that code decides, which are not compared."""
    threshold: float
    judges: tuple[JudgeRow, ...]
    between: Between | None
    disagreements: tuple[Disagreement, ...]
    """Side by side; those about the items that flip most come first."""
    notes: tuple[str, ...]


def stability(
    run: Run,
    specimens: Sequence[Specimen],
    judgements: Iterable[Judgement],
    *,
    judge_keys: Sequence[str] = (),
    by_code: bool = True,
    parameters: Parameters | None = None,
    success_at: float = 100,
    threshold: float = THRESHOLD,
    limit: float = LIMIT,
    n_fit: int | None = None,
    seed: int = 0,
    skipped: Mapping[str, int] | None = None,
) -> Stability:
    """What the regrades of these traces come to.

    Args:
        run: run.json.
        specimens: the traces.
        judgements: all regrades there are; those of other traces, rubrics and judges are left out.
        judge_keys: one or two; none: whichever there are.
        by_code: whether items with a check were decided by code.
        parameters: judge key -> its models and how they are asked.
        success_at: points from which an attempt is a success.
        threshold: an item above it is listed for rewording.
        limit: what the pooled rate is claimed to be below.
        n_fit: traces that could be regraded.
        seed: of the choice of traces.
        skipped: why traces cannot be regraded, and how many.

    Raises:
        ConfigError: there are no regrades, or of more than two judges and none is named.
        DataError: findings that are not those of the rubric.
    """
    current = {(s.task.view.key, s.trace_key, s.rubric.key) for s in specimens}
    newest = {
        j.reuse_key: j for j in judgements if (j.task_key, j.trace_key, j.rubric_key) in current
    }
    keys = list(judge_keys) or _keys(newest.values())
    idle = {j.trace_key for j in newest.values() if _is_idle(j)}
    world = World.of(
        [s for s in specimens if s.trace_key not in idle],
        by_code=by_code,
        success_at=success_at,
        parameters=parameters or {},
    )
    given = [
        [j for j in newest.values() if j.judge_key == key and j.trace_key not in idle]
        for key in keys
    ]
    rows = tuple(
        judge_row(key, of_judge, world, threshold, limit)
        for key, of_judge in zip(keys, given, strict=True)
    )
    return Stability(
        run_id=run.run_id,
        benchmark=run.identity.benchmark,
        split=run.identity.split,
        agent=run.identity.agent.name,
        model=run.identity.agent.model,
        n_tasks=len({s.task.task_id for s in specimens}),
        n_traces=len(specimens),
        n_fit=len(specimens) if n_fit is None else n_fit,
        seed=seed,
        skipped=dict(sorted((skipped or {}).items())),
        n_idle=len(idle),
        n_by_code=sum(map(len, world.coded.values())),
        threshold=threshold,
        judges=rows,
        between=_between(given[0], given[1], world, rows) if len(rows) == 2 else None,
        disagreements=_disagreements([j for of_judge in given for j in of_judge], rows),
        notes=(*_notes(rows, world), *_policies(j for of_judge in given for j in of_judge)),
    )


_VOTES = TypeAdapter(list[dict[str, Any]])


def _is_idle(judgement: Judgement) -> bool:
    """Whether no model was asked, there being nothing to read; of a panel, none of it."""
    votes = judgement.details.get("votes")
    told = [judgement.details] if votes is None else _VOTES.validate_python(votes)
    return all(each.get("mode") == "none" for each in told)


def _keys(judgements: Iterable[Judgement]) -> list[str]:
    """The judges of these regrades, the first one first.

    Raises:
        ConfigError: none, or more than two.
    """
    names = {judgement.judge_key: judge_name(judgement) for judgement in judgements}
    if not names:
        raise ConfigError("nothing was regraded yet: name a judge with --judge")
    if len(names) > 2:
        listed = "; ".join(f"{name}, key {key[:12]}" for key, name in names.items())
        raise ConfigError(
            f"the regrades are of {len(names)} judges: {listed}; name one or two of them with "
            "--judge and --second-judge"
        )
    return list(names)


def _between(
    first: Sequence[Judgement], second: Sequence[Judgement], world: World, rows: Sequence[JudgeRow]
) -> Between:
    sides = [world.regrades(judgements) for judgements in (first, second)]
    ours, theirs = (graded(side) for side in sides)
    credit = pairs_across(ours, theirs, world.items)
    post = pairs_across(ours, theirs, world.items, differ=met_against_violated)
    flagged = [graded(map(_as_item, side)) for side in sides]
    flags = pairs_across(flagged[0], flagged[1], dict.fromkeys(world.items, (_FLAGGED,)))
    rates = [row.pooled.here.rate for row in rows]
    known = [rate for rate in rates if rate is not None]
    each = [
        BetweenRow(task_id=task_id, item=item, share=share(one.parts))
        for task_id, names in world.items.items()
        for item in names
        for one in [pairs_across(ours, theirs, {task_id: [item]})]
    ]
    return Between(
        pooled=pooled(credit, post, world.items),
        within=math.fsum(known) / len(known) if len(known) == len(rates) else None,
        flags=share(flags.parts),
        items=tuple(
            sorted((row for row in each if row.share.rate), key=lambda r: -(r.share.rate or 0))
        ),
    )


_FLAGGED = "integrity"


def _as_item(regrade: Regrade) -> Regrade:
    """The regrade with one item, that of being without a flag."""
    if regrade.statuses is None:
        return regrade
    return replace(regrade, statuses={_FLAGGED: "violated" if regrade.flags else "met"})


def _disagreements(
    judgements: Sequence[Judgement], rows: Sequence[JudgeRow]
) -> tuple[Disagreement, ...]:
    """About integrity first, being worth 100 points, then about items, those that flip most
    first.
    """
    by_task: dict[str, list[Judgement]] = {}
    for judgement in judgements:
        by_task.setdefault(judgement.task_id, []).append(judgement)
    rates: dict[tuple[str, str], float] = {}
    for row in rows:
        for item in row.items:
            key = (item.flips.task_id, item.flips.item)
            rates[key] = max(rates.get(key, 0.0), item.flips.shrunk or 0.0)
    ordered = sorted(rates, key=lambda key: -rates[key])
    return (
        *(pair for task_id in sorted(by_task) for pair in about_integrity(by_task[task_id])),
        *(p for task_id, item in ordered for p in about_item(by_task.get(task_id, ()), item)),
    )


def _policies(judgements: Iterable[Judgement]) -> Iterator[str]:
    policies = {str(j.details.get("evidence_policy", "harness")) for j in judgements}
    for policy in sorted(policies - {"harness"}):
        yield f"evidence: {policy}: findings rest on what the agent says that it saw"


def _notes(rows: Sequence[JudgeRow], world: World) -> Iterator[str]:
    if not any(world.items.values()):
        yield "code decides every item of these rubrics, so only integrity flags could flip"
    for row in rows:
        if row.by_code.n_disagreeing:
            yield f"{row.judge}: items that code decides flipped: a defect of the harness"
        if row.ungraded:
            yield (
                f"{row.judge}: {sum(row.ungraded.values())} of {row.n_regrades} regrades have no "
                "grade; `--retry-ungraded` asks again"
            )
