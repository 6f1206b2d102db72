"""From a request to a plan: what is run, as which run, and what of it is still owed."""

from __future__ import annotations

import platform
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

from browseruse_bench.agents import AGENTS
from browseruse_bench.agents.base import Agent, AgentSetup
from browseruse_bench.benchmarks.folder import module_exists
from browseruse_bench.benchmarks.load import Benchmark, load_benchmark
from browseruse_bench.benchmarks.select import Selected, select
from browseruse_bench.browsers import BROWSERS
from browseruse_bench.browsers.base import Backend
from browseruse_bench.browsers.options import BrowserOptions, GuardChoice
from browseruse_bench.browsers.storage_state import read_storage_state
from browseruse_bench.errors import ConfigError
from browseruse_bench.models.gateway.server import check_libraries
from browseruse_bench.models.spec import ModelSpec
from browseruse_bench.models.spending import cost_of
from browseruse_bench.records.run import (
    Attempt,
    AttemptEntry,
    Machine,
    Mode,
    Run,
    RunIdentity,
    Selection,
)
from browseruse_bench.records.task import Task
from browseruse_bench.records.trace import AgentId, Limits
from browseruse_bench.runs.attempt import DIED, Owed
from browseruse_bench.runs.capacity import (
    auto_concurrency,
    free_memory_gb,
    memory_gb,
    n_cores,
)
from browseruse_bench.store.commit import running_commit
from browseruse_bench.store.files import segment_problem
from browseruse_bench.store.redact import Redactor
from browseruse_bench.store.run_folder import RunFolder, newest


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """What a user asks for."""

    agent: str
    benchmark: str
    model: str | None = None
    browser: str = "local"
    split: str | None = None
    mode: Mode = "all"
    count: int | None = None
    seed: int = 0
    task_ids: tuple[str, ...] = ()
    category: tuple[str, ...] = ()
    difficulty: tuple[str, ...] = ()
    repeat: int = 1
    concurrency: int | None = None
    """Attempts at once; None: as many as the machine carries."""
    per_host: int = 4
    """Attempts at once on one public website."""
    limits: Limits = field(default_factory=Limits)
    retries: int = 2
    """Tries again after an infrastructure failure, per attempt and command."""
    run_id: str | None = None
    fresh: bool = False
    budget_usd: float | None = None
    """What the run may cost in all; None: anything."""
    storage_state: Path | None = None
    sites: Mapping[str, str] = field(default_factory=dict[str, str])
    """Public host -> "module:Site" that stands in for it."""
    browser_path: Path | None = None
    cdp_url: str | None = None
    guard: GuardChoice = "auto"
    """The level that browsers and workers are held at."""
    gateway: bool = True
    """Whether an agent's model calls are led through the gateway, where it asks over a wire."""
    experiments: Path = Path("experiments")
    cwd: Path | None = None


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A run that can be carried out."""

    run: Run
    folder: RunFolder
    benchmark: Benchmark
    agent: Agent
    backend: Backend
    fence: bool
    storage_state: Path | None
    owed: tuple[Owed, ...]
    n_settled: int
    """Attempts of the run that settled earlier and are not made again."""
    no_login: tuple[Attempt, ...]
    """Attempts that need a login that was not given."""
    concurrency: int
    per_host: int
    retries: int
    notes: tuple[str, ...]
    redactor: Redactor
    """Knows this environment's secrets and the agent's."""
    budget_usd: float | None
    earlier: tuple[AttemptEntry, ...]
    """Every try that settled so far."""
    asks: ModelSpec | None
    """The model whose calls are led through the gateway; None: there are none."""


def plan(request: RunRequest) -> Plan:
    """Resolve a request against the benchmark and the run that may already be there.

    Nothing is written and no browser is started.

    Raises:
        ConfigError: a name, a flag or a combination is wrong.
        DataError: the benchmark or the run on disk is damaged.
    """
    benchmark = load_benchmark(request.benchmark, request.split, cwd=request.cwd)
    backend = _backend(request)
    agent = _agent(request, benchmark)
    _check_given(request)
    selected = _select(request, benchmark)
    asks = _asks(request, agent)
    redactor = Redactor.of_environment(more=agent.secrets().values())
    identity = _identity(request, benchmark, agent, backend)
    identity = identity.model_copy(update={"agent": _clean(identity.agent, redactor)})
    if identity.sites and not backend.maps_hosts:
        raise ConfigError(
            f"--browser {request.browser}: cannot reach the sites of {benchmark.name} "
            f"({', '.join(identity.sites)}) under their names; use --browser local"
        )
    folder, earlier, run_id = _find_run(request, identity)
    concurrency = _concurrency(request, agent)
    run = Run(
        run_id=run_id,
        identity=identity,
        benchmark_dir=redactor.said(_shown(benchmark.path, request.cwd or Path.cwd())),
        benchmark_sha256=benchmark.content_sha256,
        stand_in_hosts=tuple(sorted(request.sites)),
        guard=backend.guard(fence=identity.network == "sites"),
        versions=_versions(),
        commit=running_commit(),
        machine=_machine(),
        settings=_settings(request, concurrency, asks),
        selections=_grown(earlier, _selection(request, selected.tasks)),
        excluded=benchmark.info.exclude,
        started_at=earlier.started_at if earlier else _now(),
    )
    tasks = {task.task_id: task for task in benchmark.tasks}
    entries = folder.entries()
    owed, n_settled, no_login, gone = _owed(run, entries, tasks, request.storage_state is not None)
    gone_notes = (f"task '{t}' of this run is no longer in the benchmark" for t in gone)
    unused = request.model is not None and identity.agent.model is None
    model_notes = (f"agent '{request.agent}' asks no model: --model is not used",) * unused
    return Plan(
        run=run,
        folder=folder,
        benchmark=benchmark,
        agent=agent,
        backend=backend,
        fence=identity.network == "sites",
        storage_state=request.storage_state,
        owed=owed,
        n_settled=n_settled,
        no_login=no_login,
        concurrency=concurrency,
        per_host=request.per_host,
        retries=request.retries,
        notes=(*selected.notes, *gone_notes, *model_notes),
        redactor=redactor,
        budget_usd=request.budget_usd,
        earlier=tuple(entries),
        asks=asks,
    )


def _check_given(request: RunRequest) -> None:
    """What was given can be used, whatever the agent and the benchmark."""
    if request.storage_state is not None:
        read_storage_state(request.storage_state)
    if request.repeat < 1:
        raise ConfigError(f"--repeat {request.repeat}: must be at least 1")
    for host, target in request.sites.items():
        if not module_exists(target.partition(":")[0]):
            raise ConfigError(f"--site {host}={target}: there is no such module")


def _asks(request: RunRequest, agent: Agent) -> ModelSpec | None:
    """The model whose calls go through the gateway, if there is one; what limits and the gateway
    need is there.
    """
    asks = agent.asks() if request.gateway else None
    if asks is not None:
        check_libraries()
    _check_prices(request, agent, asks)
    return asks


def _check_prices(request: RunRequest, agent: Agent, asks: ModelSpec | None) -> None:
    """A limit in USD can be kept, as far as that is known before anything is spent."""
    limits = {"--budget-usd": request.budget_usd, "--max-cost-usd": request.limits.cost_usd}
    given = [name for name, usd in limits.items() if usd is not None]
    if not given:
        return
    # The gateway knows the price list; an agent knows what it was told.
    unpriced = agent.priced() is False if asks is None else cost_of(asks)(1, 1) is None
    if unpriced:
        name = request.model if asks is None else asks.label
        raise ConfigError(
            f"{given[0]}: no price is known for model '{name}', so its cost cannot be "
            "limited; give it a price, or leave the limit out"
        )


def _settings(request: RunRequest, concurrency: int, asks: ModelSpec | None) -> dict[str, Any]:
    budget = {} if request.budget_usd is None else {"budget_usd": request.budget_usd}
    return {
        "concurrency": concurrency,
        "storage_state": request.storage_state is not None,
        **budget,
        **({} if asks is None else {"gateway": True}),
    }


def _select(request: RunRequest, benchmark: Benchmark) -> Selected:
    return select(
        benchmark.tasks,
        mode=request.mode,
        count=request.count,
        seed=request.seed,
        task_ids=request.task_ids,
        category=request.category,
        difficulty=request.difficulty,
        exclude=benchmark.info.exclude,
    )


def _selection(request: RunRequest, tasks: Sequence[Task]) -> Selection:
    return Selection(
        mode=request.mode,
        count=request.count,
        seed=request.seed,
        category=request.category,
        difficulty=request.difficulty,
        task_ids=tuple(task.task_id for task in tasks),
        repeat=request.repeat,
    )


def _identity(
    request: RunRequest, benchmark: Benchmark, agent: Agent, backend: Backend
) -> RunIdentity:
    sites = {**benchmark.info.sites, **request.sites}
    network = benchmark.info.network or ("sites" if sites else "public")
    return RunIdentity(
        benchmark=benchmark.name,
        revision=benchmark.revision,
        split=benchmark.split,
        agent=agent.identity(),
        browser=request.browser,
        limits=request.limits,
        sites=sites,
        network=network,
        guard=backend.guard(fence=network == "sites").level,
    )


def _clean(agent: AgentId, redactor: Redactor) -> AgentId:
    """Which agent, without secrets, before that is compared, hashed or written."""
    return AgentId.model_validate(redactor.said_value(agent.as_json(), by_name=True))


def _backend(request: RunRequest) -> Backend:
    options = BrowserOptions(
        path=request.browser_path, cdp_url=request.cdp_url, guard=request.guard
    )
    if request.browser == "cdp" and request.cdp_url is None:
        raise ConfigError("--browser cdp: give the endpoint, --cdp-url http://host:port")
    if request.browser in ("local", "none") and request.cdp_url is not None:
        raise ConfigError(f"--cdp-url belongs to --browser cdp, not to {request.browser}")
    if request.browser in ("cdp", "none") and request.browser_path is not None:
        raise ConfigError(f"--browser-path belongs to --browser local, not to {request.browser}")
    return BROWSERS.get(request.browser)(options)


def _agent(request: RunRequest, benchmark: Benchmark) -> Agent:
    agent_class: Any = AGENTS.get(request.agent)
    if not (isinstance(agent_class, type) and issubclass(agent_class, Agent)):
        raise ConfigError(f"--agent {request.agent}: is not a subclass of agents.base.Agent")
    plays = agent_class.plays_solutions and bool(benchmark.references.solutions)
    setup = AgentSetup(
        model=request.model,
        solution_of=benchmark.solution if plays else None,
        solutions_key=benchmark.solutions_key() if plays else None,
    )
    agent = agent_class(setup)
    if request.browser == "none" and agent.needs_browser:
        raise ConfigError(f"--browser none: agent '{request.agent}' needs a browser")
    return agent


def _concurrency(request: RunRequest, agent: Agent) -> int:
    if request.concurrency is None:
        return auto_concurrency(agent.per_core, cores=n_cores(), free_gb=free_memory_gb())
    if request.concurrency < 1:
        raise ConfigError(f"--concurrency {request.concurrency}: must be at least 1, or auto")
    return request.concurrency


def _find_run(request: RunRequest, identity: RunIdentity) -> tuple[RunFolder, Run | None, str]:
    """The folder of the run, what it holds already, and its id.

    Without `--run-id` the newest run of the same identity goes on; `--fresh` begins the next.
    """
    if request.run_id is not None:
        problem = segment_problem(request.run_id)
        if problem:
            raise ConfigError(f"--run-id '{request.run_id}': {problem}")
        run_id = request.run_id
    else:
        run_id = _newest_id(request, identity)
    folder = RunFolder.at(request.experiments, identity, run_id)
    if not (folder.path / "run.json").exists():
        return folder, None, run_id
    if request.fresh:
        raise ConfigError(f"--fresh: run '{run_id}' is already there; give another --run-id")
    earlier = folder.read_run()
    differing = _differences(earlier.identity.as_json(), identity.as_json())
    if differing:
        raise ConfigError(
            f"run '{run_id}' in {folder.path} was started with other settings: "
            f"{'; '.join(differing)}; use another --run-id, or none"
        )
    return folder, earlier, run_id


def _newest_id(request: RunRequest, identity: RunIdentity) -> str:
    base = identity.run_id
    parent = RunFolder.at(request.experiments, identity, base).path.parent
    pattern = re.compile(rf"{re.escape(base)}(?:\.(\d+))?")
    found = [
        int(match.group(1) or 1)
        for path in (parent.iterdir() if parent.is_dir() else ())
        if (match := pattern.fullmatch(path.name)) and (path / "run.json").exists()
    ]
    number = max(found, default=0)
    if request.fresh or number == 0:
        number += 1
    return base if number == 1 else f"{base}.{number}"


def _differences(old: Mapping[str, Any], new: Mapping[str, Any], at: str = "") -> list[str]:
    """Each differing leaf as "path: old -> new"."""
    lines: list[str] = []
    for name in sorted({*old, *new}):
        a, b = old.get(name), new.get(name)
        if isinstance(a, dict) and isinstance(b, dict):
            nested = cast("dict[str, Any]", a), cast("dict[str, Any]", b)
            lines += _differences(*nested, f"{at}{name}.")
        elif a != b:
            lines.append(f"{at}{name}: {a!r} -> {b!r}")
    return lines


def _grown(earlier: Run | None, selection: Selection) -> tuple[Selection, ...]:
    if earlier is None:
        return (selection,)
    if selection in earlier.selections:
        return earlier.selections
    return (*earlier.selections, selection)


def _owed(
    run: Run, entries: Sequence[AttemptEntry], tasks: Mapping[str, Task], logged_in: bool
) -> tuple[tuple[Owed, ...], int, tuple[Attempt, ...], tuple[str, ...]]:
    """What is still to be made, how much is settled, what needs a login, what is gone.

    Infrastructure failures are owed again, as is an attempt at an earlier text of its task.
    """
    settled = newest(entries)
    deaths = Counter(
        (entry.task_id, entry.attempt, entry.task_key)
        for entry in entries
        if entry.status == "infrastructure" and entry.reason.startswith(DIED)
    )
    owed: list[Owed] = []
    no_login: list[Attempt] = []
    gone: list[str] = []
    n_settled = 0
    for task_id, attempt in run.wanted:
        task = tasks.get(task_id)
        entry = settled.get((task_id, attempt))
        if task is None:
            gone.append(task_id)
        elif entry and entry.status != "infrastructure" and entry.task_key == task.view.key:
            n_settled += 1
        elif task.requires_login and not logged_in:
            no_login.append((task_id, attempt))
        else:
            n_deaths = deaths[task_id, attempt, task.view.key]
            owed.append(Owed(task=task, attempt=attempt, n_deaths=n_deaths))
    return tuple(owed), n_settled, tuple(no_login), tuple(dict.fromkeys(gone))


def _shown(path: Path, cwd: Path) -> str:
    """A path as a result may hold it: without the name of a user where that can be helped."""
    for base, prefix in ((cwd.resolve(), ""), (Path.home(), "~/")):
        if path.is_relative_to(base):
            return prefix + path.relative_to(base).as_posix()
    return str(path)


def _versions() -> dict[str, str]:
    return {"browseruse-bench": version("browseruse-bench"), "python": platform.python_version()}


def _machine() -> Machine:
    return Machine(
        system=f"{platform.system()} {platform.machine()}",
        python=platform.python_version(),
        n_cores=n_cores(),
        memory_gb=round(memory_gb(), 1),
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
