"""An environment of its own for each foreign library: made once a session, and only by its tests."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest


@functools.cache
def environment(*packages: str, python: str | None = None) -> Path:
    """The python of a new environment with these packages.

    Skips where the registry cannot be reached, unless the oracles are required.
    """
    folder = Path(tempfile.mkdtemp(prefix="foreign-"))
    _made.append(folder)
    uv = shutil.which("uv")
    found = folder / "bin" / "python"
    base = _interpreter(python)
    if uv is not None:
        commands = [
            [uv, "venv", "--quiet", "--no-python-downloads", "--python", base, str(folder)],
            [uv, "pip", "install", "--quiet", "--python", str(found), *packages],
        ]
    else:
        commands = [
            [base, "-m", "venv", str(folder)],
            [str(found), "-m", "pip", "install", "--quiet", *packages],
        ]
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        if done.returncode:
            _not_to_be_had(f"{' '.join(packages)}: {done.stderr.strip()[-300:]}")
    return found


_made: list[Path] = []


def remove_all() -> None:
    """Environments are some hundred megabytes each."""
    while _made:
        shutil.rmtree(_made.pop(), ignore_errors=True)
    environment.cache_clear()


def _interpreter(version: str | None) -> str:
    if version is None or sys.version_info[:2] == tuple(map(int, version.split("."))):
        return sys.executable
    kept = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
    found = str(kept[-1]) if kept else shutil.which(f"python{version}")
    if found is None:
        _not_to_be_had(f"no Python {version} on this machine")
    return found


def _not_to_be_had(why: str):
    if os.environ.get("BUBENCH_ORACLE_DATA"):
        pytest.fail(f"required where BUBENCH_ORACLE_DATA is set: {why}")
    pytest.skip(why)


def run(python: Path, script: str, *arguments: Any, **more: Any) -> Any:
    """The JSON that the script prints as its last line."""
    home = python.parents[1] / "home"
    home.mkdir(exist_ok=True)
    env = {
        "PATH": f"{python.parent}:/usr/bin:/bin",
        "HOME": str(home),
        "HF_HUB_OFFLINE": "1",
        **more,
    }
    done = subprocess.run(
        [str(python), "-c", script, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
        env=env,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.strip().splitlines()[-1])
