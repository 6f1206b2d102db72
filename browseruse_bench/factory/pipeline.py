"""The stages in their order: what one keeps is what the next one takes.

    filter ► suitability ► persona ► restyle ► screen ► fleet ► rubric ► stability ► select ► release

Whatever was settled stays settled: new files of the corpus flow through all stages, and nothing
old is done again.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from browseruse_bench.errors import ConfigError
from browseruse_bench.factory import STAGES
from browseruse_bench.factory.context import Context, Resources
from browseruse_bench.factory.entry import Entry
from browseruse_bench.factory.runner import Progress, Settled, Unitwise, run_fold, run_stage
from browseruse_bench.factory.stage import Flow, Fold, Source, Step
from browseruse_bench.factory.stage_folder import StageFolder
from browseruse_bench.factory.standing import Standing
from browseruse_bench.factory.workspace import BATCH, CONFIG, EngineName, Workspace
from browseruse_bench.models.base import Model
from browseruse_bench.models.open import open_model
from browseruse_bench.models.spending import Budget
from browseruse_bench.records.base import Record
from browseruse_bench.registry import unknown_name
from browseruse_bench.store.commit import running_commit


def utc_now() -> str:
    """The time now, ISO 8601 in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


_SHORTEST_KEY = 8


@dataclass(frozen=True)
class Chapter:
    """What one stage did with a unit."""

    stage: str
    entry: Entry | None
    """None: the stage is a source."""
    known: Mapping[str, Any]
    """What the source knows of it."""
    earlier: tuple[Entry, ...] = ()
    """Older lines of the journal: failures, other versions."""
    state: str = ""
    """Why its outcome does not count now; empty: it does."""

    @property
    def outs(self) -> frozenset[str]:
        """Every key under which it ever went on."""
        if self.entry is None:
            return frozenset({str(self.known.get("key", ""))})
        return frozenset(e.out for e in (self.entry, *self.earlier) if e.out is not None)

    def as_json(self) -> dict[str, Any]:
        """It as plain JSON, the stage first."""
        told: dict[str, Any] = {"stage": self.stage}
        if self.state:
            told["state"] = self.state
        told |= self.entry.as_json() if self.entry else dict(self.known)
        if self.earlier:
            told["earlier"] = [entry.as_json() for entry in self.earlier]
        return told


@dataclass(frozen=True)
class Pipeline:
    """Steps in order, over one workspace."""

    workspace: Workspace
    steps: tuple[Step, ...]
    commit: str | None = None
    clock: Callable[[], str] = utc_now

    def step(self, name: str) -> Step:
        """The step of a name.

        Raises:
            ConfigError: there is none; the nearest is named.
        """
        for step in self.steps:
            if step.name == name:
                return step
        raise ConfigError(unknown_name("stage", name, tuple(step.name for step in self.steps)))

    def chosen(self, names: Sequence[str], until: str | None) -> tuple[Step, ...]:
        """The named steps in their order, or all up to one.

        Raises:
            ConfigError: a name is unknown, or both are given.
        """
        if names and until is not None:
            raise ConfigError("name stages, or the last one with --until, not both")
        wanted = {self.step(name).name for name in names}
        if wanted:
            return tuple(step for step in self.steps if step.name in wanted)
        if until is None:
            return self.steps
        last = self.steps.index(self.step(until))
        return self.steps[: last + 1]

    def folder(self, step: Step) -> StageFolder:
        """The folder of a step."""
        return self.workspace.stage(step.name, step.zone)

    def before(self, step: Step) -> Step | None:
        """The step whose kept units this one takes; None: it is the first."""
        index = self.steps.index(step)
        return self.steps[index - 1] if index else None

    @cached_property
    def resources(self) -> Resources:
        """What is scarce, shared by all that runs here."""
        return Resources(self.workspace.config.resources)

    def ran(self, step: Step) -> bool:
        """Whether every step before this one ran here."""
        return all(self.folder(s).path.exists() for s in self.steps[: self.steps.index(step)])

    def standing(self, step: Unitwise) -> Standing:
        """The units that come into a step now, beside its journal; to be closed.

        Raises:
            ConfigError: a step before it never ran.
        """
        return Standing(step, self.folder(step), self.units(step))

    def kept(self, step: Step) -> Iterator[Record]:
        """What a step keeps of what comes in now, as records, in an order that is always the
        same.
        """
        if isinstance(step, Source):
            yield from step.kept(self.folder(step).path)
            return
        with self.standing(step) as standing:
            yield from standing.kept()

    def units(self, step: Step) -> Iterator[Record]:
        """What a step takes: all that the step before it keeps; nothing, for the first.

        Raises:
            ConfigError: the step before it never ran.
        """
        before = self.before(step)
        if before is None:
            return iter(())
        if not self.folder(before).path.exists():
            raise ConfigError(
                f"stage {step.name} takes what {before.name} keeps, and that never ran here; "
                f"`bubench factory run --until {step.name}` runs both"
            )
        return self.kept(before)

    def flow(self, step: Step) -> Flow:
        """Where everything that came into a step is now; zeros where nothing did."""
        if isinstance(step, Source):
            return step.flow(self.folder(step).path)
        if self.before(step) is None or not self.ran(step):
            return Flow()
        with self.standing(step) as standing:
            return standing.flow()

    async def run(
        self,
        step: Step,
        *,
        on_settled: Callable[[Progress], None],
        on_progress: Callable[[str], None],
        stop: asyncio.Event,
        restart: bool = False,
    ) -> Settled:
        """Run one step over everything that came in.

        Args:
            step: one of `steps`.
            on_settled: told of each unit of a stage.
            on_progress: told in words of what a source does.
            stop: when set, nothing further starts.
            restart: set aside what is there, and begin anew.

        Raises:
            ConfigError: its configuration changed, or the step before it never ran.
        """
        folder = self.folder(step)
        units = self.units(step)
        if restart:
            folder.set_aside()
        step.prepare(folder.path, on_progress)
        folder.claim(step, self.commit)
        ctx = self.context(step)
        if isinstance(step, Source):
            return await self._read(step, ctx, on_progress, stop)
        before = self.before(step)
        assert before is not None
        if isinstance(step, Fold):
            return await run_fold(step, units, folder, ctx, source=before.name)
        return await run_stage(
            step, units, folder, ctx, source=before.name, on_settled=on_settled, stop=stop
        )

    async def _read(
        self,
        step: Source[Any],
        ctx: Context,
        on_progress: Callable[[str], None],
        stop: asyncio.Event,
    ) -> Settled:
        """Run a source; its threads hear of `stop` as soon as it is set."""
        begun, before, halt = time.monotonic(), step.flow(ctx.folder).n_in, threading.Event()

        async def hear() -> None:
            await stop.wait()
            halt.set()

        hearing, idle = asyncio.create_task(hear()), False
        try:
            flow = await step.run(ctx, on_progress, halt)
            # To look whether there is something new is no work on what came in.
            idle = flow.n_in == before and not halt.is_set()
        finally:
            hearing.cancel()
            seconds = time.monotonic() - begun
            if not idle:
                self.folder(step).add_seconds(seconds)
        return Settled(flow=flow, n_now=flow.n_in - before, usage_now=(), seconds=seconds)

    def context(self, step: Step) -> Context:
        """What a step is handed: models under the ledger of its zone and the common budget."""
        workspace = self.workspace
        config = workspace.config
        batch = workspace.zone(step.zone) / BATCH if step.collects else None
        opened: dict[str, Model] = {}
        ask = opener(workspace, batch=batch)

        def open_role(role: str) -> Model:
            if role not in opened:
                opened[role] = ask(config.roles[role], f"{CONFIG}: [roles] {role}")
            return opened[role]

        return Context(
            workspace=workspace.path,
            folder=self.folder(step).path,
            open_model=open_role,
            clock=self.clock,
            seed=config.seed,
            resources=self.resources,
        )

    def history(self, key: str) -> list[Chapter]:
        """Everything that happened to a unit, stage by stage, also under its other keys.

        Args:
            key: of the unit in any stage, or 8 characters or more of its beginning.

        Raises:
            ConfigError: it is too short, or fits no unit.
        """
        if len(key) < _SHORTEST_KEY:
            raise ConfigError(f"'{key}': give {_SHORTEST_KEY} characters or more of a unit's key")
        for index, step in enumerate(self.steps):
            if isinstance(step, Source):
                known = step.find(self.folder(step).path, key)
                found = None if known is None else Chapter(step.name, None, known)
            else:
                found = self._find(step, lambda entry: _fits(entry, key))
            if found is not None:
                return [*self._earlier(index, found), found, *self._later(index, found)]
        raise ConfigError(f"no unit '{key}' in any stage of {self.workspace.path}")

    def _earlier(self, index: int, chapter: Chapter) -> list[Chapter]:
        chapters: list[Chapter] = []
        unit = chapter.entry.unit if chapter.entry else ""
        for step in reversed(self.steps[:index]):
            if isinstance(step, Source):
                known = step.find(self.folder(step).path, unit)
                chapters += [] if known is None else [Chapter(step.name, None, known)]
                break
            found = self._find(step, lambda entry, unit=unit: entry.out == unit)
            if found is None or found.entry is None:
                break
            chapters.append(found)
            unit = found.entry.unit
        return chapters[::-1]

    def _later(self, index: int, chapter: Chapter) -> list[Chapter]:
        chapters: list[Chapter] = []
        outs = chapter.outs
        for step in self.steps[index + 1 :]:
            found = self._find(step, lambda entry, outs=outs: entry.unit in outs)
            if found is None:
                break
            chapters.append(found)
            outs = found.outs
        return chapters

    def _find(self, step: Step, fits: Callable[[Entry], bool]) -> Chapter | None:
        """What a stage did with the first unit that fits, under all of its versions."""
        if isinstance(step, Source):
            return None
        lines: list[Entry] = []
        for entry in self.folder(step).lines():
            if entry.unit == lines[0].unit if lines else fits(entry):
                lines.append(entry)
        if not lines:
            return None
        # The unit may have settled before the line by which it was found.
        unit = lines[0].unit
        lines = [entry for entry in self.folder(step).lines() if entry.unit == unit]
        of_now = [entry for entry in lines if entry.version == step.version]
        newest = of_now[-1] if of_now else lines[-1]
        earlier = tuple(entry for entry in lines if entry is not newest)
        return Chapter(step.name, newest, {}, earlier, self._state(step, unit, newest))

    def _comes_in(self, step: Unitwise, unit: str) -> bool:
        with self.standing(step) as standing:
            return standing.is_in(unit)

    def _state(self, step: Unitwise, unit: str, newest: Entry) -> str:
        before = self.before(step)
        if before is None or not self.ran(step) or not self._comes_in(step, unit):
            name = "nothing" if before is None else before.name
            return f"withdrawn: {name} does not keep it now"
        if newest.version != step.version:
            return f"owed again: it settled under version {newest.version}"
        return ""


def opener(workspace: Workspace, *, batch: Path | None = None) -> Callable[[str, str], Model]:
    """Opens models of a workspace: (what workspace.toml calls it, where that stands) -> a model
    under the ledgers of both zones and the common budget.

    Args:
        workspace: whose models they are.
        batch: where calls wait for a batch of the provider; None: they are asked.
    """
    budget = Budget(workspace.config.budget.usd, name=f"{CONFIG}: [budget] usd")

    def opened(text: str, what: str) -> Model:
        return open_model(
            text,
            calls=workspace.calls("clean"),
            restricted_calls=workspace.calls("restricted"),
            budget=budget,
            cwd=workspace.path,
            batch=batch,
            config=CONFIG,
            what=what,
        )

    return opened


def _fits(entry: Entry, key: str) -> bool:
    return entry.unit.startswith(key) or (entry.out or "").startswith(key)


def open_pipeline(path: Path, *, engine: EngineName | None = None) -> Pipeline:
    """All stages over the workspace in a folder.

    Args:
        path: the folder.
        engine: who does the jobs of the filter; None: as workspace.toml says.

    Raises:
        ConfigError: it is no workspace, or its configuration is wrong.
    """
    workspace = Workspace.open(path)
    if engine is not None:
        workspace = workspace.with_engine(engine)
    steps = tuple(STAGES.get(name)(workspace.config).at(workspace.path) for name in STAGES)
    return Pipeline(workspace, steps, commit=running_commit())
