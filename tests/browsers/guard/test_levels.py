"""The best level that the machine allows is taken, and what was asked for is never weakened."""

import asyncio

import pytest

from browseruse_bench.browsers.guard import confine, confinement, levels
from browseruse_bench.browsers.guard.canary import canary
from browseruse_bench.browsers.guard.confinement import (
    Confinement,
    Report,
    why_not_confined,
    why_not_layered,
)
from browseruse_bench.browsers.guard.network import Network
from browseruse_bench.browsers.guard.proxy import Reach
from browseruse_bench.browsers.guard.watch import Watch
from browseruse_bench.errors import BrowserError, ConfigError
from browseruse_bench.store.processes import end, spawn

here = pytest.mark.skipif(why_not_confined() is not None, reason=str(why_not_confined()))


NO_NAMESPACES, NO_LANDLOCK = "no namespaces here", "this kernel has none"


@pytest.fixture
def machine(monkeypatch):
    """Makes this machine one that allows some of the levels."""

    def make(*, layered=True, confined=True):
        monkeypatch.setattr(levels, "why_not_layered", lambda: None if layered else NO_NAMESPACES)
        monkeypatch.setattr(levels, "why_not_confined", lambda: None if confined else NO_LANDLOCK)

    return make


@pytest.mark.parametrize(
    ("layered", "confined", "level", "reason"),
    [
        (True, True, "layered", ""),
        (True, False, "layered", ""),
        (False, True, "confined", f"not layered: {NO_NAMESPACES}"),
        (False, False, "flags", f"not layered: {NO_NAMESPACES}; not confined: {NO_LANDLOCK}"),
    ],
)
def test_auto_takes_the_best_level_and_says_why_no_better_one(
    machine, layered, confined, level, reason
):
    machine(layered=layered, confined=confined)
    guard = levels.choose("auto")
    assert (guard.level, guard.reason) == (level, reason)


@pytest.mark.parametrize(("level", "why"), [("layered", NO_NAMESPACES), ("confined", NO_LANDLOCK)])
def test_a_level_that_is_asked_for_is_refused_not_weakened(machine, level, why):
    machine(layered=False, confined=False)
    with pytest.raises(ConfigError, match=f"--guard {level}: {why}; use"):
        levels.choose(level)


@pytest.mark.parametrize("level", ["layered", "confined", "flags", "observed"])
def test_a_level_that_is_asked_for_is_taken_although_a_better_one_is_there(machine, level):
    machine()
    guard = levels.choose(level)
    assert guard.level == level
    assert guard.reason == ("" if level == "layered" else f"asked for with --guard {level}")


def test_the_mechanism_says_what_holds(machine, monkeypatch):
    machine()
    for landlock, users in ((True, False), (False, True)):
        monkeypatch.setattr(levels, "has_landlock", lambda has=landlock: has)
        monkeypatch.setattr(levels, "takes_user_namespace", lambda has=users: has)
        mechanism = levels.choose("layered").mechanism
        assert ("Landlock" in mechanism) is landlock
        assert ("inside one of users" in mechanism) is users
        assert "seccomp" in mechanism


@here
@pytest.mark.parametrize(("abi", "fits"), [(0, False), (3, False), (4, True)])
def test_landlock_needs_to_know_tcp(monkeypatch, abi, fits):
    monkeypatch.setattr(confine, "landlock_abi", lambda: abi)
    why = confinement.why_not_confined.__wrapped__()
    assert (why is None or "Landlock" not in why) is fits


@pytest.fixture(params=["confined", "layered"])
def network(request):
    """None, or the network in which what `started` starts is enclosed."""
    why_not = {"confined": why_not_confined, "layered": why_not_layered}[request.param]()
    if why_not is not None:
        pytest.skip(why_not)
    if request.param == "confined":
        yield None
        return
    network = Network()
    yield network
    network.close()


async def started(tmp_path, network, argv, **changes):
    """The probes of a process that was started held, and its exit status."""
    async with canary() as bird:
        reach = Reach(public=False)
        given = Confinement(bird=bird, reach=reach, hidden=(tmp_path,), network=network)
        report, watch = Report(), Watch()
        command = report.command(given.allowing(**changes), argv)
        owned = await spawn(command, owner=tmp_path, kind="test", pass_fds=report.pass_fds)
        try:
            await report.settle(watch, "test")
        finally:
            status = await owned.process.wait()
            await end(owned)
            report.close()
        assert bird.n_touched == 0
    return watch.probes, status


async def test_the_canaries_of_a_start_are_told(tmp_path, network):
    (tmp_path / "key").write_text("x")
    probes, status = await started(tmp_path, network, ["/bin/sh", "-c", "exit 3"])
    assert status == 3
    assert probes == {f"test: {name}": "blocked" for name in ("file", "port", "udp", "raw")}


async def test_a_canary_that_is_reached_is_an_error(tmp_path, network):
    (tmp_path / "key").write_text("x")
    with pytest.raises(BrowserError, match=r"does not hold.*test: file"):
        await started(
            tmp_path, network, ["/bin/true"], readable=[tmp_path / "key"], writable=[tmp_path]
        )


async def test_a_process_that_dies_before_it_is_held_is_an_error(tmp_path, network, monkeypatch):
    monkeypatch.setattr(confinement, "PROGRAM", tmp_path / "missing.py")
    monkeypatch.setattr(confinement, "ENCLOSED", ("-c", "raise SystemExit(1)"))
    with pytest.raises(BrowserError, match="could not confine the test"):
        await started(tmp_path, network, ["/bin/true"])


async def test_a_canary_is_gone_afterwards():
    async with canary() as bird:
        assert bird.file.exists()
        _, writer = await asyncio.open_connection("127.0.0.1", bird.port)
        writer.close()
        await asyncio.sleep(0.05)
        assert bird.n_touched == 1
    assert not bird.file.exists()
    assert bird.n_touched == 1
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", bird.port)
