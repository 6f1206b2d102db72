"""Attempts at one candidate, through the harness: each is made once, whatever happens meanwhile.

A candidate has a folder in the stage's: `screen-<key>/`, a benchmark of this one task that holds
nothing but its text, and `runs/`, an experiments folder. Attempt n of an agent that has settled
there is never made again.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from pathlib import Path

from browseruse_bench.benchmarks.load import Benchmark
from browseruse_bench.errors import BudgetError, ConfigError, StageError
from browseruse_bench.factory.context import Resources
from browseruse_bench.factory.screen.screened import Role
from browseruse_bench.factory.workspace import CONFIG, Screen, WorkspaceConfig
from browseruse_bench.models.spec import ModelSpec, model_spec
from browseruse_bench.models.spending import cost_of
from browseruse_bench.records.candidate import Candidate
from browseruse_bench.records.run import AttemptEntry
from browseruse_bench.records.trace import AgentId, Limits
from browseruse_bench.runs.execute import execute
from browseruse_bench.runs.plan import Plan, RunRequest, plan
from browseruse_bench.store.files import read_json, write_json
from browseruse_bench.store.run_folder import RunFolder, find_runs
from browseruse_bench.store.trace_folder import TraceFolder

BROWSER = "browser"
"""The resource of workspace.toml that an attempt holds a place at."""


@dataclass(frozen=True, kw_only=True)
class Made:
    """One settled attempt."""

    entry: AttemptEntry
    folder: RunFolder
    benchmark: Benchmark
    agent: AgentId

    def trace(self) -> TraceFolder:
        """Its frozen trace.

        Raises:
            DataError: it is damaged.
        """
        entry = self.entry
        path = self.folder.try_path(entry.task_id, entry.attempt, entry.try_)
        return TraceFolder.open(path, entry.trace_key)


@dataclass(kw_only=True)
class Spent:
    """What all attempts of the screen have cost so far."""

    limit_usd: float | None
    usd: float = 0.0

    @classmethod
    def of(cls, folder: Path, limit_usd: float | None) -> Spent:
        """Counted from the journals of all runs in a stage's folder; only where it is limited."""
        found = cls(limit_usd=limit_usd)
        if limit_usd is not None:
            for candidate in sorted(folder.glob("tasks/*/runs")):
                for run in find_runs(candidate):
                    found.usd += sum(entry.cost_usd or 0.0 for entry in run.entries())
        return found

    def check(self) -> None:
        """Another attempt may start.

        Raises:
            BudgetError: it may not.
        """
        if self.limit_usd is not None and self.usd >= self.limit_usd:
            raise BudgetError(
                f"{CONFIG}: [screen] usd = {self.limit_usd:g} is reached: "
                f"{self.usd:.2f} USD were spent on attempts"
            )


@dataclass(frozen=True, kw_only=True)
class Attempts:
    """Makes attempts at candidates."""

    workspace: Path
    folder: Path
    """The stage's."""
    config: WorkspaceConfig
    resources: Resources
    places: asyncio.Semaphore
    """As many as this machine carries; `[resources] browser` may allow fewer."""
    spent: Spent

    @property
    def _screen(self) -> Screen:
        return self.config.screen

    def home(self, unit: Candidate) -> Path:
        """The folder of a candidate."""
        return self.folder / "tasks" / unit.key[:16]

    async def made(self, unit: Candidate, role: Role, number: int) -> Made:
        """Attempt `number` of an agent, made now unless it settled before.

        Raises:
            BudgetError: it may not start.
            ConfigError: the agent cannot be had, or is not the one that is pinned.
            StageError: the infrastructure ended it after all tries: it is owed, and no evidence.
        """
        planned = await asyncio.to_thread(self._plan, unit, role, number)
        task_id = unit.key[:16]
        done = planned.folder.attempts().get((task_id, number))
        if done is None or done.status == "infrastructure":
            self.spent.check()
            async with self.resources.hold(BROWSER), self.places:
                done = await self._carry_out(planned, task_id, number)
        if done.status == "infrastructure":
            raise StageError(f"attempt {number} of the {role} agent: {done.reason}; it is owed")
        return Made(
            entry=done,
            folder=planned.folder,
            benchmark=planned.benchmark,
            agent=planned.run.identity.agent,
        )

    async def _carry_out(self, planned: Plan, task_id: str, number: int) -> AttemptEntry:
        n_before = len(planned.earlier)
        executed = await execute(planned, on_settled=lambda _: None, stop=asyncio.Event())
        entries = planned.folder.entries()
        self.spent.usd += sum(entry.cost_usd or 0.0 for entry in entries[n_before:])
        done = planned.folder.attempts().get((task_id, number))
        if done is None:
            if executed.over_budget:
                raise BudgetError(f"{CONFIG}: [screen] usd: {executed.over_budget}")
            raise StageError(f"attempt {number} was not made; it is owed")
        return done

    def _plan(self, unit: Candidate, role: Role, number: int) -> Plan:
        screen = self._screen
        text, spec = self._model(role)
        request = RunRequest(
            agent=screen.agent,
            model=text,
            benchmark=str(self._benchmark(unit)),
            browser=screen.browser,
            repeat=number,
            concurrency=1,
            limits=Limits(max_steps=screen.max_steps, timeout_s=screen.timeout_s),
            run_id=role,
            budget_usd=None if spec else screen.usd,
            experiments=self.home(unit) / "runs",
            sites=screen.sites,
        )
        planned = plan(request)
        found = planned.run.identity.agent
        if screen.agent_version is not None and found.version != screen.agent_version:
            raise ConfigError(
                f"{CONFIG}: [screen] agent_version pins {found.name} {screen.agent_version}, but "
                f"{found.version} is installed; install that one, or begin anew with another"
            )
        self._pin(role, found)
        if spec is None or planned.asks is None:
            return planned
        if screen.usd is not None and cost_of(spec)(1, 1) is None:
            raise ConfigError(
                f"{CONFIG}: [screen] usd: no price is known for models.{spec.label}; give it "
                "usd_per_million, or leave the limit out"
            )
        return replace(planned, asks=spec, budget_usd=screen.usd)

    def _pin(self, role: Role, agent: AgentId) -> None:
        """All candidates of a screen are attempted by the same agent: the first one is written
        down.

        Raises:
            ConfigError: this is another name, version, model or setting.
        """
        path = self.folder / f"agent-{role}.json"
        if not path.exists():
            write_json(path, agent.as_json())
            return
        pinned = AgentId.model_validate(read_json(path))
        if pinned != agent:
            raise ConfigError(
                f"{path}: the {role} agent is {_told(pinned)}, but here it is {_told(agent)}; use "
                "that one, or begin anew: `bubench factory run screen --restart`"
            )

    def _model(self, role: Role) -> tuple[str | None, ModelSpec | None]:
        """What `bubench run --model` would be told, and the model behind it where workspace.toml
        says more of it than that can: its key, its price.
        """
        name = self.config.roles.get(role)
        if name is None or name not in self.config.models:
            return name, None
        named = self.config.models[name]
        if named.id.startswith("scripted:"):
            return named.id, None
        what = f"{CONFIG}: [roles] {role}"
        spec = model_spec(name, what=what, cwd=self.workspace, config=CONFIG)
        if named.base_url is None:
            return named.id, spec
        return f"openai-compatible:{spec.name}@{named.base_url}", spec

    def _benchmark(self, unit: Candidate) -> Path:
        folder = self.home(unit) / f"screen-{unit.key[:16]}"
        info = folder / "data_info.json"
        if not info.exists():
            (folder / "data").mkdir(parents=True, exist_ok=True)
            rows = [{"task_id": unit.key[:16], "task": unit.text}]
            write_json(folder / "data" / "tasks.json", rows)
            write_json(info, {"split": {"All": "tasks.json"}})
        return folder.resolve()


def _told(agent: AgentId) -> str:
    more = f" {agent.parameters}" if agent.parameters else ""
    return f"{agent.name} {agent.version}, {agent.model or 'no model'}{more}"
