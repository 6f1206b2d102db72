"""What a run's folder holds must be fit to be shown: no name of a machine or a user, no key."""

import os
import re
import socket
import subprocess
import sys
import uuid

import pytest

from browseruse_bench.records.run import Machine
from browseruse_bench.store.trace_folder import TraceFolder

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


def test_what_a_worker_tells_of_its_secrets_greps_to_zero_bl097(benchmark, project):
    """BL097: planted in calls, thoughts, results, errors, logs, file names, native records,
    answers, exceptions, parameters and the command line; looked for in every byte and word.
    """
    benchmark("a", "falls over")
    key = "planted-k3y-0123456789"
    command = (
        *(sys.executable, "-m", "browseruse_bench", "run", "--benchmark", "Small"),
        *("--agent", "tests.runs.leaky:Leaky", "--browser", "none", "--json"),
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "LEAKY_MODEL_KEY": key}
    for n in range(2):  # the second goes on with the same run, although its identity was cleaned
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert ("0 to make" in done.stderr) == (n == 1)
        (journal,) = project.glob("experiments/*/*/*/*/*/attempts.jsonl")
        folder = journal.parent
        for planted in (key, "sk-shape0123456789", "planted-user", "planted-endpoint"):
            assert planted not in done.stdout + done.stderr
            # A deliverable is the agent's product: it loses our own secrets only.
            kept = [] if planted in (key, "planted-user") else ["[redacted].txt"] * 2
            assert holding(folder, planted) == kept, planted
    traces = [TraceFolder.open(m.parent) for m in folder.glob("tasks/*/1/try-1/MANIFEST.json")]
    assert len(traces) == 2
    first = min(traces, key=lambda trace: trace.trace.task_id)
    assert first.trace.outcome.answer == "the key is [redacted]"
    assert "Bearer [redacted] and [redacted]" in str(first.steps[0].calls[0].result)
    assert (
        b"calling with Bearer [redacted]"
        in (first.path / "native" / "worker.stderr.log").read_bytes()
    )
    assert (first.path / "native" / "raw.bin").read_bytes() == b"\xff\x00" + b"*" * 22 + b"\xfe"
    assert [path.name for path in folder.rglob("*") if key in path.name] == []


def test_an_error_that_is_printed_holds_no_secret_bl097(project, monkeypatch):
    """BL097: also where Python itself would print what an exception holds."""
    (project / "leak.py").write_text("import os\nraise RuntimeError(os.environ['MY_TOKEN'])\n")
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([*sys.path, str(project)]),
        "MY_TOKEN": "planted-t0ken-0123456789",
    }
    command = (
        *(sys.executable, "-m", "browseruse_bench", "run", "--benchmark"),
        *("LocalSites", "--agent", "leak:Agent", "--browser", "none"),
    )
    for debug in ((), ("--debug",)):
        arguments = (*command[:3], *debug, *command[3:])
        done = subprocess.run(arguments, env=env, capture_output=True, text=True, check=False)
        assert done.returncode != 0
        assert "RuntimeError" in done.stderr
        assert "planted" not in done.stdout + done.stderr
