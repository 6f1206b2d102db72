import json

import pytest
from click.testing import CliRunner

from browseruse_bench.agents import environments
from browseruse_bench.cli.root import bubench
from tests.agents.test_environments import registry

__all__ = ["registry"]


def call(*arguments):
    return CliRunner().invoke(bubench, ["agents", *arguments])


def test_an_agent_is_installed_listed_and_healthy(registry):
    missing = call("doctor", "--json")
    assert missing.exit_code == 0
    assert json.loads(missing.stdout)[0]["mend"] == "bubench agents install tinyagent"

    done = call("install", "tinyagent")
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("tinyagent 1.0 in ")
    assert call("install", "tinyagent").stdout.endswith("already\n")
    assert call("install", "tinyagent", "--quiet").stdout == ""
    assert call("doctor").stdout == "tinyagent: ok\n"


def test_a_damaged_environment_is_status_1_with_the_command_that_mends_it(registry):
    call("install", "tinyagent")
    found = environments.environment("tinyagent")
    (metadata,) = found.path.glob("lib/*/site-packages/tinyagent-1.0.dist-info/METADATA")
    metadata.unlink()
    done = call("doctor")
    assert done.exit_code == 1
    assert "mend it: bubench agents install tinyagent --again" in done.stdout
    assert call("install", "tinyagent", "--again").exit_code == 0
    assert call("doctor").exit_code == 0


def test_the_list_says_of_each_agent_whether_it_is_ready(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    rows = {row["agent"]: row for row in json.loads(call("list", "--json").stdout)}
    assert set(rows) == {"browser-use", "nop", "oracle"}
    assert rows["nop"]["installed"] is True
    assert rows["browser-use"]["installed"] is False
    assert "bubench agents install browser-use" in call("list").stdout


@pytest.mark.parametrize("agent", ["nop", "oracle"])
def test_an_agent_of_the_package_needs_nothing(agent):
    done = call("install", agent)
    assert (done.exit_code, done.stdout) == (0, f"{agent} needs no environment of its own\n")


def test_an_unknown_agent_is_status_2_with_the_nearest_name():
    done = call("install", "browser-us")
    assert done.exit_code == 2
    assert "did you mean 'browser-use'" in done.stderr
