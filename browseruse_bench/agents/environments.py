"""Environments of agents: each framework's dependencies in a virtual environment of its own.

An environment is named after the hash of its pinned requirements, so that another pin is
another environment and an old run's environment is never changed under it. It is built in a
temporary folder and renamed: it is there whole, or not at all.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from browseruse_bench.errors import AgentError, ConfigError
from browseruse_bench.registry import unknown_name
from browseruse_bench.store.files import write_json

REQUIREMENTS = {
    "browser-use": Path(__file__).with_name("browser_use") / "requirements.txt",
}
"""Agent -> its pinned requirements, every file with its hashes."""

MARKER = "environment.json"
"""Written last: an environment without it is not whole."""

_UNREACHABLE = re.compile(
    r"dns error|failed to lookup|name resolution|error sending request|connection refused"
    r"|connect(ion)? (error|timed? ?out)|newconnectionerror|network is unreachable|no route to host"
    r"|operation timed out|read timed out|max retries exceeded|failed to fetch",
    re.IGNORECASE,
)


@dataclass(frozen=True, kw_only=True)
class Environment:
    """Where the environment of an agent is, or would be."""

    agent: str
    path: Path
    requirements: Path
    pins: Mapping[str, str]
    """Package -> version, as pinned."""

    @property
    def python(self) -> Path:
        """The environment's own Python."""
        return self.path / "bin" / "python"

    @property
    def installed(self) -> bool:
        """Whether it is there, whole, and its Python still exists."""
        return (self.path / MARKER).is_file() and self.python.exists()


@dataclass(frozen=True, kw_only=True)
class Installed:
    """What `install` did."""

    environment: Environment
    tool: str
    """"uv" or "pip"; "" where nothing had to be done."""
    seconds: float


def environment(agent: str, *, data: Path | None = None) -> Environment:
    """The environment of an agent below the user's data folder; it need not exist.

    Raises:
        ConfigError: no agent of that name has an environment.
    """
    if agent not in REQUIREMENTS:
        raise ConfigError(unknown_name("agent environment", agent, tuple(sorted(REQUIREMENTS))))
    requirements = REQUIREMENTS[agent]
    content = requirements.read_bytes()
    name = f"{agent}-{hashlib.sha256(content).hexdigest()[:12]}"
    pins = dict(re.findall(r"^([a-z0-9._-]+)==([^\s;\\]+)", content.decode(), re.MULTILINE))
    folder = (data or data_folder()) / "agents" / name
    return Environment(agent=agent, path=folder, requirements=requirements, pins=pins)


def data_folder() -> Path:
    """XDG_DATA_HOME/browseruse-bench, or its default in the home folder."""
    given = os.environ.get("XDG_DATA_HOME", "")
    base = Path(given) if given.startswith("/") else Path.home() / ".local" / "share"
    return base / "browseruse-bench"


def find(agent: str) -> Environment:
    """The installed environment of an agent.

    Raises:
        ConfigError: it is not installed; says what to type.
    """
    found = environment(agent)
    if not found.installed:
        raise ConfigError(
            f"agent '{agent}' is not installed here; type `bubench agents install {agent}`"
        )
    return found


def install(agent: str, *, data: Path | None = None, again: bool = False) -> Installed:
    """Have the environment of an agent in place, built by uv where it is found, else by pip.

    Args:
        agent: name of the agent.
        data: the data folder, if not the user's own.
        again: build it anew although it is there.

    Raises:
        ConfigError: no agent of that name has an environment.
        AgentError: it could not be built; says why in one line, and where the output is.
    """
    wanted = environment(agent, data=data)
    start = time.monotonic()
    wanted.path.parent.mkdir(parents=True, exist_ok=True)
    with _only_one(wanted):
        if wanted.installed and not again:
            return Installed(environment=wanted, tool="", seconds=time.monotonic() - start)
        _remove_leftovers(wanted)
        temporary = wanted.path.with_name(f"{wanted.path.name}.{secrets.token_hex(4)}.tmp")
        tool = "pip" if _uv() is None else "uv"
        try:
            _build(wanted, temporary)
            seconds = time.monotonic() - start
            facts = {"agent": agent, "tool": tool, "seconds": round(seconds, 1)}
            write_json(temporary / MARKER, facts)
            _put(temporary, wanted.path)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
    return Installed(environment=wanted, tool=tool, seconds=time.monotonic() - start)


def check(agent: str) -> str | None:
    """What is wrong with the installed environment of an agent; None if nothing is.

    Starts its Python and compares the versions that are there with the pinned ones.
    """
    found = environment(agent)
    if not found.installed:
        return "not installed"
    try:
        done = subprocess.run(
            [str(found.python), "-I", "-c", _VERSIONS],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        there: dict[str, str] = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        return f"its Python does not run: {error}"
    if agent not in there:
        return f"{agent} is missing from it"
    differing = [
        f"{name} {there[name]} where {version} is pinned"
        for name, version in found.pins.items()
        if name in there and there[name] != version
    ]
    return "; ".join(differing[:3]) or None


_VERSIONS = """
import json, re
from importlib.metadata import distributions
names = {re.sub(r"[-_.]+", "-", d.name).lower(): d.version for d in distributions()}
print(json.dumps(names))
"""


@contextmanager
def _only_one(wanted: Environment) -> Generator[None]:
    """Wait until nobody else installs this agent; the system ends a dead holder's lock."""
    with wanted.path.with_name(f".{wanted.agent}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _remove_leftovers(wanted: Environment) -> None:
    for left in wanted.path.parent.glob(f"{wanted.agent}-*.tmp"):
        shutil.rmtree(left, ignore_errors=True)


def _put(temporary: Path, target: Path) -> None:
    """Rename into place; what was there before, broken or to be built anew, goes."""
    if target.exists():
        old = target.with_name(f"{target.name}.{secrets.token_hex(4)}.tmp")
        target.rename(old)
        temporary.rename(target)
        shutil.rmtree(old, ignore_errors=True)
        return
    temporary.rename(target)


def _uv() -> str | None:
    return shutil.which("uv")


def _build(wanted: Environment, folder: Path) -> None:
    """A virtual environment with exactly the pinned packages, their byte code compiled."""
    log = wanted.path.with_name(f"{wanted.path.name}.log")
    log.unlink(missing_ok=True)
    python = str(folder / "bin" / "python")
    # The pins are all there is to install; older versions of pip also refuse, with hashes, a
    # dependency that names an extra of a package that is pinned without it.
    pinned = ("--require-hashes", "--no-deps", "-r", str(wanted.requirements))
    uv = _uv()
    if uv is not None:
        _run([uv, "venv", "--python", sys.executable, str(folder)], wanted, log)
        _run([uv, "pip", "install", "--compile-bytecode", "--python", python, *pinned], wanted, log)
    else:
        _run([sys.executable, "-m", "venv", str(folder)], wanted, log)
        pip = [python, "-m", "pip", "install", "--disable-pip-version-check", "--compile"]
        _run([*pip, *pinned], wanted, log)


def _run(argv: Sequence[str], wanted: Environment, log: Path) -> None:
    """Run one command, its output in `log`.

    Raises:
        AgentError: it failed; one line says why.
    """
    # The byte code is wanted: every attempt starts a Python that imports the framework.
    env = {
        n: v for n, v in os.environ.items() if n not in ("PYTHONDONTWRITEBYTECODE", "VIRTUAL_ENV")
    }
    with log.open("ab") as output:
        status = subprocess.run(
            argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=env, check=False
        ).returncode
    if status == 0:
        return
    said = log.read_text(errors="replace")
    raise AgentError(f"{wanted.agent}: not installed: {_why(said, status)} (all output in {log})")


def _why(said: str, status: int) -> str:
    lines = [line.strip(" ×╰─▶├│") for line in said.splitlines() if line.strip(" ×╰─▶├│")]
    if any(_UNREACHABLE.search(line) for line in lines):
        return (
            "the package registry cannot be reached; check the network, or name another one by "
            "UV_INDEX_URL or PIP_INDEX_URL"
        )
    errors = [line for line in lines if line.lower().startswith("error")] or lines
    return errors[-1][:300] if errors else f"exit status {status}"
