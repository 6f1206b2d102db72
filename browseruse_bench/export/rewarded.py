"""Python packages whose reward is asked of `bubench serve-reward`: verifiers v1 and OpenEnv.

    <out>/pyproject.toml, README.md
    <out>/<package>/tasks.json      what agents see of the tasks, with their keys
    <out>/<package>/reward.py       asks the endpoint
    <out>/<package>/...             the environment in the words of its library

The answer key never is in such a package: it stays with the endpoint.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

from browseruse_bench.benchmarks.load import Benchmark
from browseruse_bench.errors import ConfigError
from browseruse_bench.export.outgoing import Exported, Wish, benchmark_splits, whole_folder

_ANSWERS = "--answers: the answer key stays with `bubench serve-reward`; it is never in a package"


def write_verifiers(source: str, out: Path, wish: Wish) -> Exported:
    """A taskset package of verifiers v1 is at `out`; raises as `outgoing.Exporter`."""
    modules = {"taskset.py": "verifiers/taskset.py.txt", "reward.py": "reward.py.txt"}
    start = 'from .taskset import BrowserTaskset\n\n__all__ = ["BrowserTaskset"]\n'
    return _write(source, out, wish, modules, start, "verifiers>=0.4")


def write_openenv(source: str, out: Path, wish: Wish) -> Exported:
    """A server and client of OpenEnv are at `out`; raises as `outgoing.Exporter`."""
    names = ("app", "client", "environment", "models")
    modules = {f"{name}.py": f"openenv/{name}.py.txt" for name in names}
    start = "from .client import BrowserEnv\nfrom .models import BrowserAction, TaskObservation\n\n"
    start += '__all__ = ["BrowserAction", "BrowserEnv", "TaskObservation"]\n'
    modules["reward.py"] = "reward.py.txt"
    return _write(source, out, wish, modules, start, "openenv-core>=0.3")


def _write(
    source: str,
    out: Path,
    wish: Wish,
    modules: Mapping[str, str],
    start: str,
    requires: str,
) -> Exported:
    if wish.answers:
        raise ConfigError(_ANSWERS)
    benchmark = benchmark_splits(source, wish)[0]
    name = package_name(benchmark)
    library = re.split("[>=]", requires)[0]
    with whole_folder(out) as folder:
        package = folder / name
        package.mkdir()
        (package / "__init__.py").write_text(f'"""{name}: tasks for browser agents."""\n\n{start}')
        templates = files("browseruse_bench.export") / "packages"
        for module, template in modules.items():
            (package / module).write_text((templates / template).read_text())
        (package / "tasks.json").write_text(json.dumps(_rows(benchmark), indent=2) + "\n")
        (folder / "pyproject.toml").write_text(_project(name, requires))
        (folder / "README.md").write_text(_readme(benchmark, name, library))
        if library == "openenv-core":
            manifest = ("spec_version: 1", f"name: {name}", "type: space", "runtime: fastapi",
                        f"app: {name}.app:app", "port: 8000")  # fmt: skip
            (folder / "openenv.yaml").write_text("\n".join(manifest) + "\n")
    return Exported(n_tasks=len(benchmark.tasks))


def package_name(benchmark: Benchmark) -> str:
    """A name that Python can import, from the benchmark's."""
    plain = re.sub(r"[^a-z0-9]+", "_", benchmark.name.lower()).strip("_")
    return f"bubench_{plain or 'tasks'}"


def _rows(benchmark: Benchmark) -> list[dict[str, object]]:
    """What agents see, with the key by which the endpoint knows the wording."""
    if any(task.attachments for task in benchmark.tasks):
        raise ConfigError(f"{benchmark.name}: tasks with attachments are not part of this format")
    return [{**task.view.as_json(), "task": task.task, "task_key": task.view.key}
            for task in benchmark.tasks]  # fmt: skip


def _project(name: str, requires: str) -> str:
    return "\n".join(
        (
            "[project]",
            f'name = "{name.replace("_", "-")}"',
            'version = "0.1.0"',
            'requires-python = ">=3.11"',
            f'dependencies = ["{requires}"]',
            "",
            "[build-system]",
            'requires = ["hatchling"]',
            'build-backend = "hatchling.build"',
            "",
            "[tool.hatch.build.targets.wheel]",
            f'packages = ["{name}"]',
            "",
        )
    )


def _readme(benchmark: Benchmark, name: str, library: str) -> str:
    return (
        f"# {name}\n\n{len(benchmark.tasks)} tasks of {benchmark.name}, split {benchmark.split}, "
        f"revision `{benchmark.revision}`, for {library}.\n\nThe reward is asked of `bubench "
        f"serve-reward --benchmark {benchmark.name}`: set REWARD_URL and REWARD_TOKEN. What it "
        "grades is the agent's own word (`agent_reported`). No answer key is in this package.\n"
    )
