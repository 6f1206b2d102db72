"""Stage screen: whether a task can be done at all, and whether it is hard, by real attempts.

A reference agent attempts it, run after run, until the sequential test decides; the runs are
judged with notes that grow. Before a verdict all of them are judged again with the last notes.
What nobody passes goes to a stronger agent, which tells hard from impossible.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from browseruse_bench.errors import ConfigError
from browseruse_bench.factory.context import Context
from browseruse_bench.factory.screen.attempts import Attempts, Made, Spent
from browseruse_bench.factory.screen.design import terms_of
from browseruse_bench.factory.screen.grader import COMPLETED, NOTES, Grader, Seen
from browseruse_bench.factory.screen.screened import Role, Screened, ScreenRun, Verdict
from browseruse_bench.factory.screen.why import IMPOSSIBLE, questions, why
from browseruse_bench.factory.stage import Dropped, Kept, Stage
from browseruse_bench.factory.stage_folder import StageFolder
from browseruse_bench.factory.workspace import CONFIG, WorkspaceConfig
from browseruse_bench.measure.sequential import Kind, Test, sequential
from browseruse_bench.records.candidate import Candidate
from browseruse_bench.records.task import Task
from browseruse_bench.records.trace import AgentId
from browseruse_bench.report.render import Table, markdown_table
from browseruse_bench.runs.capacity import auto_concurrency, free_memory_gb, n_cores

_PER_CORE = 2
_KEPT: frozenset[Verdict] = frozenset({"keep", "hard"})


@dataclass
class _Shared:
    """What all candidates of one command share."""

    places: asyncio.Semaphore
    spent: Spent


@dataclass
class _Screening:
    """One candidate while it is screened."""

    unit: Candidate
    attempts: Attempts
    grader: Grader
    test: Test
    made: list[Made] = field(default_factory=list[Made])
    seen: list[Seen] = field(default_factory=list[Seen])
    first: list[bool | None] = field(default_factory=list["bool | None"])
    edited: list[bool | None] = field(default_factory=list["bool | None"])
    roles: list[Role] = field(default_factory=list[Role])

    async def run(self, role: Role, number: int) -> bool | None:
        """One attempt, judged with the notes of now, and what it taught written down."""
        made = await self.attempts.made(self.unit, role, number)
        seen = await self.grader.judge(made)
        self.made.append(made)
        self.seen.append(seen)
        self.first.append(seen.passed)
        self.edited.append(await self.grader.note(made, seen))
        self.roles.append(role)
        return seen.passed

    async def again(self) -> None:
        """Every attempt is judged with the last notes; one that now cannot be told, as before."""
        for n, made in enumerate(self.made):
            seen = await self.grader.judge(made)
            if seen.passed is not None:
                self.seen[n] = seen

    def counted(self) -> tuple[int, int]:
        """Runs of the reference agent that are evidence, and how many of them passed."""
        told = [
            seen.passed
            for seen, role in zip(self.seen, self.roles, strict=True)
            if role == "reference" and seen.passed is not None
        ]
        return len(told), sum(told)

    async def word(self) -> Kind | None:
        """What the test says; None: the judge could not tell too often.

        A run that is no evidence is made up for, as often as the test may run at most.
        """
        most = self.test.terms.max_runs
        for number in range(1, 2 * most + 1):
            await self.run("reference", number)
            if self.test.after(*self.counted()) is None:
                continue
            await self.again()
            word = self.test.after(*self.counted())
            if word is not None:
                return word
        return None

    def result(self, verdict: Verdict, reason: str) -> Screened:
        """The record of it all."""
        n, passed = self.counted()
        agents: dict[Role, AgentId] = {}
        for made, role in zip(self.made, self.roles, strict=True):
            agents[role] = made.agent
        return Screened(
            candidate=self.unit,
            verdict=verdict,
            reason=reason,
            n_runs=n,
            n_passed=passed,
            posterior={k: round(v, 4) for k, v in self.test.posterior(n, passed).items()},
            agents=agents,
            runs=tuple(self._run_of(i) for i in range(len(self.made))),
            leads=self.grader.leads,
        )

    def _run_of(self, i: int) -> ScreenRun:
        made, seen = self.made[i], self.seen[i]
        return ScreenRun(
            role=self.roles[i],
            attempt=made.entry.attempt,
            trace_key=made.entry.trace_key,
            passed=seen.passed,
            at_first=self.first[i],
            edited=self.edited[i],
            ending=made.entry.status,
            cause=seen.cause,
            cost_usd=made.entry.cost_usd,
        )


class Screening(Stage[Candidate, Screened]):
    """Keeps what is possible and hard enough."""

    name = "screen"
    version = 1
    zone = "clean"
    takes, gives = Candidate, Screened
    reasons = frozenset(
        {"too_easy", "partial", "pending", *(f"impossible_{n}" for n in IMPOSSIBLE)}
    )
    prompts = (NOTES, COMPLETED)

    def __init__(self, config: WorkspaceConfig) -> None:
        """Of a workspace."""
        self._config = config
        self._test = sequential(terms_of(config.screen))
        self._shared: WeakKeyDictionary[asyncio.AbstractEventLoop, _Shared] = WeakKeyDictionary()

    def settings(self) -> Mapping[str, Any]:
        """Agent, models, and what the test is about; limits in USD are not among it."""
        screen = self._config.screen.as_json()
        return {
            **{name: value for name, value in screen.items() if name != "usd"},
            **{role: self._config.behind(role) for role in ("reference", "escalation", "judge")},
        }

    async def settle(self, unit: Candidate, ctx: Context) -> Kept[Screened] | Dropped:
        """As the runs say."""
        self._refuse_without_roles()
        attempts = self._attempts(ctx)
        home = attempts.home(unit)
        home.mkdir(parents=True, exist_ok=True)
        task = Task(task_id=unit.key[:16], task=unit.text)
        screening = _Screening(
            unit=unit,
            attempts=attempts,
            grader=Grader(home, task, ctx.model("judge"), ctx.clock),
            test=self._test,
        )
        word = await screening.word()
        if word is None:
            return _settled(screening.result("pending", "too many runs could not be judged"))
        if word == "nobody":
            return await self._escalated(screening, task, ctx)
        n, passed = screening.counted()
        said: Verdict = "too_easy" if word == "everyone" else "keep"
        return _settled(screening.result(said, f"{passed} of {n} runs passed"))

    def _refuse_without_roles(self) -> None:
        """Before a run is spent.

        Raises:
            ConfigError: nobody judges, or nobody takes what the reference agent does not pass.
        """
        missing = [role for role in ("judge", "escalation") if role not in self._config.roles]
        if missing:
            raise ConfigError(
                f"{CONFIG}: [roles] names no {' and no '.join(missing)}: the judge reads every "
                "run, and the escalation is a stronger model for what nobody passes"
            )

    async def _escalated(
        self, screening: _Screening, task: Task, ctx: Context
    ) -> Kept[Screened] | Dropped:
        """What the stronger agent makes of a task that the other one does not pass."""
        for number in range(1, self._config.screen.escalation_runs + 1):
            if await screening.run("escalation", number):
                reason = f"the stronger agent passed in its run {number}"
                return _settled(screening.result("hard", reason))
        asked = questions(task)
        model = ctx.model("escalation")
        judgements = [
            await screening.grader.judge_with(model, made, asked)
            for made, role in zip(screening.made, screening.roles, strict=True)
            if role == "escalation"
        ]
        found = why(judgements)
        return _settled(screening.result(found.verdict, found.reason), found.cause)

    def _attempts(self, ctx: Context) -> Attempts:
        loop = asyncio.get_running_loop()
        shared = self._shared.get(loop)
        if shared is None:
            n = auto_concurrency(_PER_CORE, cores=n_cores(), free_gb=free_memory_gb())
            spent = Spent.of(ctx.folder, self._config.screen.usd)
            shared = self._shared[loop] = _Shared(asyncio.Semaphore(n), spent)
        return Attempts(
            workspace=ctx.workspace,
            folder=ctx.folder,
            config=self._config,
            resources=ctx.resources,
            places=shared.places,
            spent=shared.spent,
        )

    def report(self, folder: Path) -> str:
        """Runs against the fixed design, how often notes change, how alike failures are."""
        found = screened(StageFolder(folder), self.version)
        if not found:
            return ""
        figures = markdown_table(_figures(found, self._test.terms.max_runs))
        waves = markdown_table(_waves(found))
        parts = ("## Runs\n", figures, "## Notes changed after the judgement of each wave\n", waves)
        return "\n".join(parts)


def _settled(screened: Screened, cause: str = "") -> Kept[Screened] | Dropped:
    if screened.verdict in _KEPT:
        return Kept(screened)
    reason = f"{screened.verdict}_{cause}" if cause else screened.verdict
    return Dropped(reason, {"screened": screened.as_json()})


def screened(folder: StageFolder, version: int) -> list[Screened]:
    """Everything that was screened, kept and dropped."""
    found: list[Screened] = []
    for entry in folder.entries(version):
        value = entry.value
        if entry.status == "dropped":
            value = (entry.evidence or {}).get("screened")
        if value is not None:
            found.append(Screened.model_validate(value))
    return found


def _figures(found: list[Screened], most: int) -> Table:
    runs = [run for one in found for run in one.runs]
    mean = sum(one.n_runs for one in found) / len(found)
    costs = [run.cost_usd for run in runs]
    known = [cost for cost in costs if cost is not None]
    unknown = f", {len(costs) - len(known)} not known" if len(known) < len(costs) else ""
    turned = sum(run.passed is not run.at_first for run in runs)
    pairs, alike = alikeness(found)
    agents = sorted(
        {f"{role}: {_agent(agent)}" for one in found for role, agent in one.agents.items()}
    )
    rows = (
        *(("agent", agent) for agent in agents),
        ("verdicts", ", ".join(f"{v} {n}" for v, n in Counter(o.verdict for o in found).items())),
        ("runs of the reference", f"{mean:.2f} a task; the fixed design: {most}"),
        ("runs that are no evidence", str(sum(run.passed is None for run in runs))),
        ("verdicts on runs that the last notes turned", f"{turned} of {len(runs)}"),
        ("pairs of failures of a task with the same cause", f"{alike} of {pairs}"),
        ("attempts", f"{sum(known):.2f} USD{unknown}"),
    )
    return Table(title="", headers=("what", "value"), rows=rows)


def _agent(agent: AgentId) -> str:
    return f"{agent.name} {agent.version}, {agent.model or 'no model'}"


def alikeness(found: list[Screened]) -> tuple[int, int]:
    """Pairs of failed runs of the reference agent at one task, and how many of them failed for
    the same cause. The post wants failures that tell something instead of all looking alike.
    """
    pairs = alike = 0
    for one in found:
        causes = [
            run.cause or run.ending
            for run in one.runs
            if run.role == "reference" and run.passed is False
        ]
        for first, second in combinations(causes, 2):
            pairs += 1
            alike += first == second
    return pairs, alike


def _waves(found: list[Screened]) -> Table:
    """How often the grader changed the notes, by which run of a task it was."""
    rows: list[tuple[str, str, str]] = []
    for wave in range(max(len(one.runs) for one in found)):
        told = [one.runs[wave].edited for one in found if len(one.runs) > wave]
        known = [edited for edited in told if edited is not None]
        rate = f"{sum(known) / len(known):.0%}" if known else "-"
        rows.append((str(wave + 1), str(len(known)), rate))
    return Table(
        title="",
        headers=("wave", "tasks", "changed"),
        rows=tuple(rows),
    )
