"""What a run's folder holds must be fit to be shown: no name of a machine or a user, no key."""

import os
import re
import socket
import subprocess
import sys
import uuid

import pytest

from browseruse_bench.records.run import Machine

SECRETS = {
    "OPENAI_API_KEY": "sk-planted-0123456789abcdef",
    "MY_SERVICE": "https://planted-user:planted-password@host.test/",
    "PLAIN_NAME": "planted-value-of-a-variable",
}
WHO = {"USER": "planted-user-name", "LOGNAME": "planted-user-name", "HOSTNAME": "planted-host"}


def holding(folder, text):
    needle = text.encode().lower()
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files
    return [path.name for path in files if needle in path.read_bytes().lower()]


@pytest.fixture
def run_folder(benchmark, project):
    benchmark("a", "raise")
    command = (
        *(sys.executable, "-m", "browseruse_bench", "run", "--benchmark", "Small"),
        *("--agent", "tests.runs.doubles:Echo", "--browser", "none"),
    )
    path = os.pathsep.join([*sys.path])
    env = {**os.environ, **SECRETS, **WHO, "PYTHONPATH": path}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 4), done.stderr
    (journal,) = project.glob("experiments/*/*/*/*/*/attempts.jsonl")
    return journal.parent


def test_no_host_user_or_hardware_address_is_written_peers(run_folder):
    """peers: host name, user and MAC go into each result."""
    names = [*WHO.values(), socket.gethostname()]
    mac = f"{uuid.getnode():012x}"
    names += [mac, ":".join(re.findall("..", mac))]
    assert {name: holding(run_folder, name) for name in names if len(name) > 3} == {
        name: [] for name in names if len(name) > 3
    }
    assert set(Machine.model_fields) == {"system", "python", "n_cores", "memory_gb"}


def test_no_value_of_the_environment_is_written_bl097(run_folder):
    """BL097, peers: redaction by key name misses what is elsewhere. Nothing is redacted here:
    no variable gets in.
    """
    planted = (*SECRETS.values(), "planted-password", "planted-user")
    assert {text: holding(run_folder, text) for text in planted} == {text: [] for text in planted}
