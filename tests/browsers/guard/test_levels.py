"""The best level that the machine allows is taken, and what was asked for is never weakened."""

import asyncio

import pytest

from browseruse_bench.browsers.guard import confine, confinement, levels
from browseruse_bench.browsers.guard.canary import canary
from browseruse_bench.browsers.guard.confinement import Confinement, Report, why_not_confined
from browseruse_bench.browsers.guard.proxy import Reach
from browseruse_bench.browsers.guard.watch import Watch
from browseruse_bench.errors import BrowserError, ConfigError
from browseruse_bench.store.processes import end, spawn

here = pytest.mark.skipif(why_not_confined() is not None, reason=str(why_not_confined()))


@pytest.fixture
def unconfined(monkeypatch):
    monkeypatch.setattr(levels, "why_not_confined", lambda: "this kernel has none")


def test_without_landlock_auto_takes_flags_and_says_why(unconfined):
    guard = levels.choose("auto")
    assert guard.level == "flags"
    assert guard.reason == "not confined: this kernel has none"


def test_without_landlock_confined_is_refused_not_weakened(unconfined):
    with pytest.raises(ConfigError, match="--guard confined: this kernel has none; use"):
        levels.choose("confined")


@here
def test_auto_takes_confined_where_it_is_to_be_had():
    assert levels.choose("auto").level == "confined"
    assert levels.choose("flags").level == "flags"
    assert levels.choose("observed").level == "observed"


def test_a_level_that_is_not_there_yet_is_refused():
    with pytest.raises(ConfigError, match="--guard layered"):
        levels.choose("layered")


@here
@pytest.mark.parametrize(("abi", "fits"), [(0, False), (3, False), (4, True)])
def test_landlock_needs_to_know_tcp(monkeypatch, abi, fits):
    monkeypatch.setattr(confine, "landlock_abi", lambda: abi)
    why = confinement.why_not_confined.__wrapped__()
    assert (why is None or "Landlock" not in why) is fits


async def started(tmp_path, argv, **changes):
    """The probes of a process that was started confined, and its exit status."""
    async with canary() as bird:
        given = Confinement(bird=bird, reach=Reach(public=False), hidden=(tmp_path,))
        report, watch = Report(), Watch()
        command = report.command(given.allowing(**changes), argv)
        owned = await spawn(command, owner=tmp_path, kind="test", pass_fds=(report.descriptor,))
        try:
            await report.settle(watch, "test")
        finally:
            status = await owned.process.wait()
            await end(owned)
    return watch.probes, status


@here
async def test_the_canaries_of_a_start_are_told(tmp_path):
    (tmp_path / "key").write_text("x")
    probes, status = await started(tmp_path, ["/bin/sh", "-c", "exit 3"])
    assert status == 3
    assert probes == {f"test: {name}": "blocked" for name in ("file", "port", "udp", "raw")}


@here
async def test_a_canary_that_is_reached_is_an_error(tmp_path):
    (tmp_path / "key").write_text("x")
    with pytest.raises(BrowserError, match=r"does not hold.*test: file"):
        await started(tmp_path, ["/bin/true"], readable=[tmp_path / "key"], writable=[tmp_path])


@here
async def test_a_process_that_dies_before_it_is_confined_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(confinement, "PROGRAM", tmp_path / "missing.py")
    with pytest.raises(BrowserError, match="could not confine the test"):
        await started(tmp_path, ["/bin/true"])


async def test_a_canary_is_gone_afterwards():
    async with canary() as bird:
        assert bird.file.exists()
        _, writer = await asyncio.open_connection("127.0.0.1", bird.port)
        writer.close()
        await asyncio.sleep(0.05)
        assert bird.n_touched == 1
    assert not bird.file.exists()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", bird.port)
