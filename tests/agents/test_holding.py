"""A confined worker gets a proxy, its model's own endpoint, and no home of the user."""

import sys
from pathlib import Path

import pytest

from browseruse_bench.agents.base import Workspace
from browseruse_bench.agents.holding import Worker, _endpoints, _needs, held
from browseruse_bench.browsers.base import Session
from browseruse_bench.browsers.guard.canary import canary
from browseruse_bench.browsers.guard.confinement import PACKAGE, Confinement
from browseruse_bench.browsers.guard.proxy import Reach
from browseruse_bench.records.trace import BrowserId, Guard


def session(confinement=None):
    return Session(
        browser=BrowserId(kind="test"),
        guard=Guard(level="confined" if confinement else "flags"),
        ws_url="ws://127.0.0.1:1/devtools/browser/x",
        http_url="http://127.0.0.1:1",
        target_id="T0",
        confinement=confinement,
    )


@pytest.fixture
def workspace(tmp_path):
    names = ("files", "native", "scratch", "attachments", "owner")
    return Workspace(**{name: tmp_path / name for name in names})


def worker(**changes):
    given = {
        "argv": [sys.executable, "-V"],
        "env": {"HOME": "/home/me"},
        "readable": (),
        "told": {},
    }
    return Worker(**{**given, **changes})


async def test_below_confined_a_worker_starts_as_it_is(workspace):
    async with held(worker(), session(), workspace) as start:
        assert start.argv == [sys.executable, "-V"]
        assert start.env == {"HOME": "/home/me"}
        assert start.pass_fds == ()


async def test_a_confined_worker_gets_a_proxy_and_a_home_of_its_own(workspace):
    told = {"model": {"base_url": "http://127.0.0.1:8901/v1"}, "script": ["http://127.0.0.1:7777/"]}
    async with canary() as bird:
        base = Confinement(bird=bird, reach=Reach(public=False), hidden=(), ports=(9222,))
        async with held(worker(told=told), session(base), workspace) as start:
            words = list(start.argv)
            ports = {int(words[n + 1]) for n, word in enumerate(words) if word == "--tcp"}
            proxy = int(start.env["HTTPS_PROXY"].rpartition(":")[2])
            assert ports == {9222, proxy, 8901}
            assert start.env["HOME"] == str(workspace.scratch)
            assert "127.0.0.1" in start.env["NO_PROXY"]
            assert words[words.index("--") + 1 :] == [sys.executable, "-V"]
            start.report.give_up()


def test_an_endpoint_is_what_is_called_one():
    told = {
        "model": {"base_url": "https://models.test/v1", "name": "http://127.0.0.1:1"},
        "OPENAI_BASE_URL": "http://10.0.0.5:8000/v1",
        "script": [[{"navigate": {"url": "http://127.0.0.1:2/"}}]],
        "base_url": None,
    }
    assert sorted(_endpoints(told)) == [("10.0.0.5", 8000), ("models.test", 443)]


def test_what_a_program_needs_is_its_environment_and_never_the_folder_around_it(tmp_path):
    script = tmp_path / "project" / "worker.py"
    script.parent.mkdir()
    script.write_text("")
    needs = _needs([sys.executable, str(script)])
    assert Path(sys.prefix) in needs or Path(sys.base_prefix) in needs
    assert script in needs
    assert script.parent not in needs
    own = PACKAGE / "agents" / "protocol.py"
    assert own.parent in _needs([sys.executable, str(own)])
    tool = tmp_path / "project" / "bin" / "tool"
    tool.parent.mkdir()
    tool.write_text("")
    assert _needs([str(tool)]) == [tool, tool.resolve()]
