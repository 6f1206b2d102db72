"""A plug-in is found by its name, in the table or among the entry points of what is installed."""

import subprocess
import sys

import pytest

from browseruse_bench.errors import AgentError, BenchError, BrowserError, ConfigError, boundary
from browseruse_bench.registry import Registry, load

PACKAGE = """
from pathlib import Path
from browseruse_bench.agents.nop import NopAgent

class Idle(NopAgent):
    name = "idle"

ENTRY = {"data_dir": "mine"}
"""
POINTS = """
[browseruse_bench.agents]
idle = my_plugin:Idle
[browseruse_bench.benchmarks]
Mine = my_plugin:ENTRY
"""


@pytest.fixture
def installed(tmp_path):
    """A folder of installed packages with one that brings an agent and a benchmark along."""
    info = tmp_path / "site" / "my_plugin-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-plugin\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(POINTS)
    (tmp_path / "site" / "my_plugin.py").write_text(PACKAGE)
    data = tmp_path / "site" / "mine" / "data"
    data.mkdir(parents=True)
    (data.parent / "data_info.json").write_text('{"split": {"All": "tasks.json"}}')
    (data / "tasks.json").write_text('[{"task_id": "a", "task": "T."}]')
    return tmp_path / "site"


def test_an_installed_package_brings_its_agent_and_its_benchmark(installed, tmp_path):
    (tmp_path / "empty").mkdir()
    code = (
        f"import sys; sys.path.append({str(installed)!r})\n"
        "from browseruse_bench.cli import main\n"
        "sys.argv = ['bubench', 'run', '--agent', 'idle', '--benchmark', 'Mine', '--dry-run']\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path / "empty",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "a #1" in done.stdout
    assert "/idle/" in done.stdout


def test_a_name_is_looked_up_in_the_table_and_imported_only_then():
    table = Registry("thing", {"one": "json:loads", "broken": "no_such_module:x"})
    assert table.get("one")("[1]") == [1]
    assert table.names() == ("broken", "one")
    with pytest.raises(ConfigError, match="thing 'broken': cannot load 'no_such_module:x'"):
        table.get("broken")


def test_an_unknown_name_lists_all_and_the_nearest():
    with pytest.raises(ConfigError, match="unknown thing 'onne'; did you mean 'one'"):
        Registry("thing", {"one": "json:loads"}).get("onne")


@pytest.mark.parametrize("target", ["json", "json:", ":loads"])
def test_what_is_no_module_and_attribute_is_refused(target):
    with pytest.raises(ConfigError, match="not of the form module:Attr"):
        load(target, "thing")


@pytest.mark.parametrize(
    ("raised", "kind", "text"),
    [
        (KeyError("x"), BrowserError, "start: KeyError: 'x'"),
        (TimeoutError(), BrowserError, "start: timed out"),
        (AgentError("its own"), AgentError, "its own"),
    ],
)
def test_a_boundary_takes_on_what_nobody_has_and_lets_the_rest_through(raised, kind, text):
    with pytest.raises(BenchError) as caught, boundary(BrowserError, "start"):
        raise raised
    assert (type(caught.value), str(caught.value)) == (kind, text)
