"""Which run a command means."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from browseruse_bench.agents import AGENTS
from browseruse_bench.benchmarks.folder import find
from browseruse_bench.benchmarks.load import Benchmark, load_benchmark
from browseruse_bench.errors import ConfigError, DataError
from browseruse_bench.models.spec import model_label
from browseruse_bench.records.run import Run
from browseruse_bench.store.run_folder import RunFolder, find_runs

_SHOWN = 8


def find_run(
    root: Path,
    *,
    benchmark: str | None = None,
    split: str | None = None,
    agent: str | None = None,
    model: str | None = None,
    run_id: str | None = None,
) -> tuple[RunFolder, Run]:
    """The run that all of the given names fit; of several, the one that was active last.

    A run is active when it starts, is gone on with, or settles an attempt.

    Raises:
        ConfigError: none fits; says what is there and what to type.
        DataError: the run that `run_id` names is damaged.
    """
    runs = _readable(root, run_id)
    wanted = {
        "benchmark": benchmark,
        "split": split,
        "agent": agent,
        "model": None if model is None else model_label(model),
        "run-id": run_id,
    }
    fitting = [(f, r) for f, r in runs if _fits(r, wanted)]
    if not fitting and not runs:
        for folder in find_runs(root):
            folder.read_run()  # all of them are damaged: the first one says how
    if not fitting:
        raise ConfigError(_none_fits(root, wanted, runs))
    return max(fitting, key=lambda pair: (_last_active(*pair), str(pair[0].path)))


def _readable(root: Path, run_id: str | None) -> list[tuple[RunFolder, Run]]:
    runs: list[tuple[RunFolder, Run]] = []
    for folder in find_runs(root):
        try:
            runs.append((folder, folder.read_run()))
        except (DataError, OSError):
            if folder.path.name == run_id:
                raise
    return runs


def _names(run: Run) -> dict[str, str | None]:
    identity = run.identity
    return {
        "benchmark": identity.benchmark,
        "split": identity.split,
        "agent": identity.agent.name,
        "model": identity.agent.model,
        "run-id": run.run_id,
    }


def _fits(run: Run, wanted: dict[str, str | None]) -> bool:
    names = _names(run)
    return all(value is None or names[key] == value for key, value in wanted.items())


def _last_active(folder: RunFolder, run: Run) -> float:
    """Seconds since the epoch. The files' times count too: a run that was gone on with and
    settled nothing is still the one that was just asked for.
    """
    started = datetime.fromisoformat(run.started_at)
    times = [started.replace(tzinfo=started.tzinfo or UTC).timestamp()]
    for path in (folder.path / "run.json", folder.attempts_path):
        if path.exists():
            times.append(path.stat().st_mtime)
    return max(times)


def _none_fits(root: Path, wanted: dict[str, str | None], runs: list[tuple[RunFolder, Run]]) -> str:
    asked = " ".join(f"--{key} {value}" for key, value in wanted.items() if value is not None)
    what = f"no run below {root} fits {asked}" if asked else f"there is no run below {root}"
    if not runs:
        command = "bubench run"
        for key in ("agent", "benchmark"):
            command += f" --{key} {wanted[key] or key.upper()}"
        return f"{what}; nothing was run there yet: start with `{command}`"
    newest = sorted(runs, key=lambda pair: _last_active(*pair), reverse=True)[:_SHOWN]
    lines = [
        "  " + " ".join(f"--{k} {v}" for k, v in _names(run).items() if v is not None)
        for _, run in newest
    ]
    more = f"\n  ... and {len(runs) - _SHOWN} more" if len(runs) > _SHOWN else ""
    return f"{what}; the runs there, newest first, are:\n" + "\n".join(lines) + more


def benchmark_of(run: Run) -> tuple[Benchmark | None, str]:
    """The benchmark of a run, from its folder or by its name; else why it is not at hand."""
    identity = run.identity
    why = ""
    for place in dict.fromkeys((run.benchmark_dir, identity.benchmark)):
        try:
            return load_benchmark(place, identity.split), ""
        except (ConfigError, DataError) as error:
            why = why or f"benchmark {identity.benchmark} is not at hand: {error}"
    return None, why


def benchmark_name(name_or_path: str | None) -> str | None:
    """The name of a benchmark that may be given by its folder; a name may be one that is not
    at hand any more.
    """
    if name_or_path is None:
        return None
    try:
        return find(name_or_path).name
    except ConfigError:
        return name_or_path


def agent_name(agent: str | None) -> str | None:
    """The name that runs of an agent are kept under; it may be given as "module:Class"."""
    if agent is None or ":" not in agent:
        return agent
    try:
        return str(getattr(AGENTS.get(agent), "name", agent))
    except ConfigError:
        return agent


def open_run(
    root: Path,
    id_or_folder: str | None,
    *,
    benchmark: str | None = None,
    split: str | None = None,
    agent: str | None = None,
    model: str | None = None,
) -> tuple[RunFolder, Run]:
    """The run in a folder, or the one that `find_run` finds.

    Raises:
        ConfigError: there is none.
        DataError: it is damaged.
    """
    if id_or_folder is not None and (Path(id_or_folder) / "run.json").is_file():
        folder = RunFolder(Path(id_or_folder))
        return folder, folder.read_run()
    return find_run(
        root, benchmark=benchmark, split=split, agent=agent, model=model, run_id=id_or_folder
    )
