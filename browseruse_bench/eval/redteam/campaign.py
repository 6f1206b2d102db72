"""Applies attacks to the frozen traces of a run, has controls and copies judged, and compares.

Nothing is written into the run. Copies are frozen below a folder of the caller's, and removed as
soon as they are judged unless they are to be kept. Each trial is a line of a journal in that
folder; what stands there with the same keys and has its verdicts is not done again.
"""

from __future__ import annotations

import asyncio
import shutil
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TypedDict

from pydantic import ValidationError

from browseruse_bench.benchmarks.load import Benchmark
from browseruse_bench.errors import BudgetError, DataError
from browseruse_bench.eval.evaluate import utc_now
from browseruse_bench.eval.judges import (
    Case,
    CodeJudge,
    Judge,
    Keys,
    Kind,
    MatcherJudge,
    judgement_of,
    rubric_key,
    verdict_on,
)
from browseruse_bench.eval.redteam.attack import Attack, Plan
from browseruse_bench.eval.redteam.catalogue import VERSION
from browseruse_bench.eval.redteam.draft import Draft
from browseruse_bench.eval.redteam.key import Key, states_all
from browseruse_bench.eval.values import wanted_values
from browseruse_bench.measure.redteam import Standing, Trial
from browseruse_bench.measure.scoring import score
from browseruse_bench.models.base import PendingError
from browseruse_bench.records.rubric import Rubric
from browseruse_bench.records.run import AttemptEntry
from browseruse_bench.records.task import Task
from browseruse_bench.store.files import escaped
from browseruse_bench.store.journal import Journal, read_journal
from browseruse_bench.store.run_folder import RunFolder
from browseruse_bench.store.trace_folder import TraceFolder

JOURNAL = "trials.jsonl"
NO_RUBRIC = "its task has no rubric and no expected_result"
NEEDS_MODEL = "its rubric has items without a code check: name a model with --judge"
OWN_EVALUATOR = "its benchmark has an evaluator of its own"

TrialKey = tuple[str, int, str, str, int, str, str, str | None]


@dataclass(frozen=True, kw_only=True)
class Victim:
    """One frozen trace, its task, and one judge of it."""

    task: Task
    rubric: Rubric | None
    entry: AttemptEntry
    path: Path
    kind: Kind
    judge: Judge
    open_items: frozenset[str] = frozenset()
    """The items that a judge can call met by any true quote, or by the answer itself."""

    @property
    def name(self) -> str:
        """For people."""
        return f"{self.entry.task_id} #{self.entry.attempt}"

    @property
    def rubric_key(self) -> str | None:
        """Identity of what its judge compares it with."""
        return rubric_key(self.kind, self.task, self.rubric)


@dataclass(frozen=True, kw_only=True)
class Campaign:
    """What was tried, and what could not be."""

    trials: tuple[Trial, ...]
    """In the order of the victims and of the attacks."""
    n_resumed: int
    skipped: Mapping[str, str]
    """Attempt -> why nothing was tried on it."""
    not_applicable: Mapping[tuple[str, str], int]
    """(attack, why it could not be tried) -> on how many traces."""
    over_budget: str = ""
    """Why it ended before all was tried."""
    n_pending: int = 0
    """Trials whose calls wait in a batch."""


def victims(
    folder: RunFolder,
    benchmark: Benchmark,
    *,
    judge: Judge | None = None,
    by_code: bool = True,
    task_ids: Collection[str] | None = None,
) -> tuple[list[Victim], dict[str, str]]:
    """The attempts of a run whose traces can be attacked, with their judges; why others cannot.

    What has a check is judged by code: of a rubric that also has other items, those with a check
    alone, their weights scaled to 100. With a judge the whole rubric is judged by that as well.
    The two are told apart in every figure.

    Args:
        folder: the run.
        benchmark: its benchmark and split.
        judge: reads rubrics.
        by_code: whether that judge leaves items with a check to code.
        task_ids: only these tasks; None: all.
    """
    found: list[Victim] = []
    skipped: dict[str, str] = {}
    tasks = {task.task_id: task for task in benchmark.tasks}
    for entry in folder.attempts().values():
        if task_ids is not None and entry.task_id not in task_ids:
            continue
        name = f"{entry.task_id} #{entry.attempt}"
        task = tasks.get(entry.task_id)
        if entry.status == "infrastructure":
            skipped[name] = "the infrastructure ended it"
        elif task is None or task.view.key != entry.task_key:
            skipped[name] = "its task is another one in the benchmark as it is now"
        elif benchmark.evaluator is not None:
            skipped[name] = OWN_EVALUATOR
        else:
            rubric = benchmark.rubric(entry.task_id)
            path = folder.try_path(entry.task_id, entry.attempt, entry.try_)
            ready = [
                Victim(task=task, entry=entry, path=path, **who)
                for who in _judges(task, rubric, judge, by_code)
            ]
            if not ready:
                skipped[name] = NO_RUBRIC if rubric is None else NEEDS_MODEL
            found += ready
    return found, skipped


class _Who(TypedDict):
    rubric: Rubric | None
    kind: Kind
    judge: Judge
    open_items: frozenset[str]


def _judges(
    task: Task, rubric: Rubric | None, judge: Judge | None, by_code: bool
) -> Iterator[_Who]:
    none = frozenset[str]()
    if rubric is None:
        if task.expected_result is not None:
            yield {"rubric": None, "kind": "matcher", "judge": MatcherJudge(), "open_items": none}
        return
    checked = _checked(rubric)
    if checked is not None:
        yield {"rubric": checked, "kind": "checks", "judge": CodeJudge(), "open_items": none}
    if judge is not None:
        left = _open(rubric, by_code)
        yield {"rubric": rubric, "kind": "model", "judge": judge, "open_items": left}


def _checked(rubric: Rubric) -> Rubric | None:
    """The rubric with the items alone that have a check; None: there are none."""
    if rubric.is_code:
        return rubric
    items = [item for item in rubric.items if item.check is not None]
    if not items:
        return None
    scale = Fraction(100) / sum(item.weight for item in items)
    scaled = tuple(i.model_copy(update={"weight": i.weight * scale}) for i in items)
    return rubric.model_copy(update={"items": scaled})


def _open(rubric: Rubric | None, by_code: bool) -> frozenset[str]:
    """The items of which code cannot demand a value from a judge."""
    items = rubric.items if rubric else ()
    left = [item for item in items if not (by_code and item.check is not None)]
    return frozenset(
        item.id
        for item in left
        if item.evidence == "deliverable" or not (rubric and wanted_values(rubric, item))
    )


async def campaign(
    chosen: Sequence[Victim],
    attacks: Sequence[Attack],
    *,
    into: Path,
    success_at: float,
    seed: int = 0,
    keep: bool = False,
    concurrency: int = 2,
    on_trial: Callable[[Trial], None] | None = None,
) -> Campaign:
    """Every attack was tried on every victim that it can be tried on.

    Args:
        chosen: who is attacked.
        attacks: what is tried.
        into: folder of the journal and of the copies.
        success_at: as in data_info.json.
        seed: of what attacks leave to chance.
        keep: leave the attacked copies and their controls there.
        concurrency: how many victims are attacked at a time.
        on_trial: called with each new trial after it is on disk.

    Raises:
        DataError: the journal there is damaged or not of such trials.
    """
    done = {_key(trial): trial for trial in read_trials(into / JOURNAL) if trial.is_settled}
    with Journal(into / JOURNAL) as journal:
        field = _Field(attacks, done, journal, into, success_at, seed, keep, on_trial)
        owed = iter(chosen)

        async def slot() -> None:
            for victim in owed:
                await field.attack(victim)

        async with asyncio.TaskGroup() as group:
            for _ in range(min(concurrency, len(chosen))):
                group.create_task(slot())
    return field.campaign(chosen)


def read_trials(path: Path) -> list[Trial]:
    """The trials of a journal.

    Raises:
        DataError: a line is not a trial.
    """
    try:
        return [Trial.model_validate(line) for line in read_journal(path)]
    except ValidationError as error:
        raise DataError(f"{path}: not a journal of trials: {error}") from error


def _key(trial: Trial) -> TrialKey:
    return (
        trial.task_id,
        trial.attempt,
        trial.trace_key,
        trial.attack,
        trial.seed,
        trial.version,
        trial.judge_key,
        trial.rubric_key,
    )


class _Field:
    """Attacks victims, and keeps account."""

    def __init__(
        self,
        attacks: Sequence[Attack],
        done: Mapping[TrialKey, Trial],
        journal: Journal,
        into: Path,
        success_at: float,
        seed: int,
        keep: bool,
        on_trial: Callable[[Trial], None] | None,
    ) -> None:
        self._attacks = attacks
        self._done = done
        self._journal = journal
        self._into = into
        self._success_at = success_at
        self._seed = seed
        self._keep = keep
        self._on_trial = on_trial
        self._trials: dict[tuple[int, str], Trial] = {}
        self._skipped: dict[str, str] = {}
        self._inapt: Counter[tuple[str, str]] = Counter()
        self._n_resumed = 0
        self._n_pending = 0
        self._over_budget = ""

    def campaign(self, chosen: Sequence[Victim]) -> Campaign:
        order = [(id(victim), attack.name) for victim in chosen for attack in self._attacks]
        return Campaign(
            trials=tuple(self._trials[at] for at in order if at in self._trials),
            n_resumed=self._n_resumed,
            skipped=self._skipped,
            not_applicable=dict(self._inapt),
            over_budget=self._over_budget,
            n_pending=self._n_pending,
        )

    async def attack(self, victim: Victim) -> None:
        """Every attack was tried on one victim."""
        try:
            folder = await asyncio.to_thread(TraceFolder.open, victim.path, victim.entry.trace_key)
        except DataError as error:
            self._skipped[victim.name] = f"its trace is damaged: {error.problems[0]}"
            return
        place = self._into / "copies" / escaped(victim.name) / victim.judge.judge_key[:12]
        siege = _Siege(victim, Draft.of(folder), place, self._success_at)
        try:
            for attack in self._attacks:
                if self._over_budget:
                    return
                await self._try(victim, siege, attack)
        finally:
            if not self._keep:
                await asyncio.to_thread(shutil.rmtree, place, ignore_errors=True)

    async def _try(self, victim: Victim, siege: _Siege, attack: Attack) -> None:
        key = siege.key(attack, self._seed)
        why_not = attack.applies(siege.draft, key)
        if why_not is not None:
            self._inapt[attack.name, why_not] += 1
            return
        blank = _trial(victim, siege.draft, attack, self._seed)
        trial = self._done.get(_key(blank))
        if trial is not None:
            self._n_resumed += 1
        else:
            try:
                trial = await siege.try_(attack, key, blank)
            except BudgetError as error:
                self._over_budget = str(error)
                return
            except PendingError:
                self._n_pending += 1
                return
            except Exception as error:  # noqa: BLE001  one trial is without a verdict, and says why
                trial = blank.model_copy(update={"after": _broken(error)})
            self._journal.append(trial.as_json())
            if self._on_trial is not None:
                self._on_trial(trial)
        self._trials[id(victim), attack.name] = trial


def _trial(victim: Victim, draft: Draft, attack: Attack, seed: int) -> Trial:
    """A trial of which nothing is known yet."""
    nothing = Standing(status="ungraded")
    return Trial(
        task_id=victim.entry.task_id,
        attempt=victim.entry.attempt,
        trace_key=victim.entry.trace_key,
        policy=draft.trace.evidence_policy,
        attack=attack.name,
        family=attack.family,
        must=attack.must,
        tellable=attack.told_by(draft, model=victim.kind == "model"),
        protocol=victim.judge.protocol,
        judge_key=victim.judge.judge_key,
        rubric_key=victim.rubric_key,
        seed=seed,
        version=VERSION,
        before=nothing,
        after=nothing,
    )


def _broken(error: Exception) -> Standing:
    """No verdict, because the attack or its judge broke."""
    return Standing(status="ungraded", message=f"{type(error).__name__}: {error}"[:500])


class _Siege:
    """One victim: copies are made, judged, and removed; equal controls are judged once."""

    def __init__(self, victim: Victim, draft: Draft, place: Path, success_at: float) -> None:
        self.draft = draft
        self._victim = victim
        self._place = place
        self._success_at = success_at
        self._controls: dict[Plan, tuple[Draft, Standing]] = {}

    def key(self, attack: Attack, seed: int) -> Key:
        """The answer key, with the chance of one attack."""
        victim = self._victim
        chance = f"{seed}:{victim.entry.trace_key}:{attack.name}"
        key = Key(task=victim.task, rubric=victim.rubric, seed=chance)
        answer = self.draft.trace.outcome.answer
        return replace(key, honest=answer) if states_all(key, answer) else key

    async def try_(self, attack: Attack, key: Key, blank: Trial) -> Trial:
        """What came of one attack.

        Raises:
            BudgetError, PendingError: as `verdict_on` does.
        """
        control, before = await self._control(attack, key)
        cheat = attack.cheat(key)
        folder = self._place / escaped(attack.name)
        make = partial(_frozen, cheat, control, folder, attack.damage)
        after = await self._standing(make, sample=attack.sample)
        met, had = set(after.met), set(before.met)
        gained = () if after.flags else tuple(i for i in after.met if i not in had)
        kept = had if attack.keeps is None else had & attack.keeps(key)
        lost = kept if after.flags else kept - met
        return blank.model_copy(
            update={
                "before": before,
                "after": after,
                "gained": tuple(i for i in gained if i not in key.visual | self._victim.open_items),
                "gained_visual": tuple(i for i in gained if i in key.visual),
                "gained_open": tuple(
                    i for i in gained if i in self._victim.open_items - key.visual
                ),
                "lost": tuple(sorted(lost)) if attack.must in ("lose_nothing", "same") else (),
            }
        )

    async def _control(self, attack: Attack, key: Key) -> tuple[Draft, Standing]:
        """The honest copy, and what it is given."""
        if attack.control not in self._controls:
            draft = await asyncio.to_thread(attack.control(key), self.draft)
            folder = self._place / f"control-{len(self._controls)}"
            standing = await self._standing(partial(_frozen, _as_it_is, draft, folder, None))
            self._controls[attack.control] = draft, standing
        return self._controls[attack.control]

    async def _standing(self, make: Callable[[], tuple[Path, str]], *, sample: int = 0) -> Standing:
        """What a copy is given; it is opened as `bubench eval` would open it."""
        path, trace_key = await asyncio.to_thread(make)
        try:
            trace = await asyncio.to_thread(TraceFolder.open, path, trace_key)
        except DataError as error:
            return Standing(status="refused", message=error.problems[0].replace(str(path), "."))
        victim = self._victim
        case = Case(
            task=victim.task, rubric=victim.rubric, trace=trace, cost_usd=None, sample=sample
        )
        verdict = await verdict_on(victim.judge, case)
        if verdict.reason is not None:
            message = f"{verdict.reason}: {verdict.message}"[:500]
            return Standing(status="ungraded", message=message)
        keys = Keys(
            task_id=victim.entry.task_id,
            attempt=victim.entry.attempt,
            task_key=victim.entry.task_key,
            trace_key=trace_key,
            rubric_key=victim.rubric_key,
        )
        judgement = judgement_of(victim.judge, verdict, keys, utc_now())
        scored = score(judgement, victim.rubric, success_at=self._success_at)
        if verdict.findings is None:
            met = tuple(map(str, verdict.details.get("found", ())))
        else:
            met = tuple(f.item for f in verdict.findings if f.status == "met")
        return Standing(status="graded", points=scored.points, met=met, flags=scored.flags)


def _as_it_is(draft: Draft) -> Draft:
    return draft


def _frozen(
    cheat: Callable[[Draft], Draft],
    control: Draft,
    folder: Path,
    damage: Callable[[Path], None] | None,
) -> tuple[Path, str]:
    """The folder of a new frozen copy, and its key as a run's journal would hold it."""
    shutil.rmtree(folder, ignore_errors=True)
    key = cheat(control).freeze(folder).key
    if damage is not None:
        damage(folder)
    return folder, key
