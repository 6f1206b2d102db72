"""The network of a session is reached from outside by sockets of it, and only the harness's."""

import asyncio
import socket
import sys
from asyncio.subprocess import PIPE
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from browseruse_bench.browsers.guard.canary import canary
from browseruse_bench.browsers.guard.confinement import Confinement, Report, why_not_layered
from browseruse_bench.browsers.guard.network import Door, Network, led_inwards, led_outwards
from browseruse_bench.browsers.guard.proxy import Reach
from browseruse_bench.browsers.guard.watch import Watch
from browseruse_bench.errors import BrowserError
from browseruse_bench.store.processes import end, spawn

pytestmark = pytest.mark.skipif(why_not_layered() is not None, reason=str(why_not_layered()))

PYTHON = Path(sys.executable).resolve()
TALKS = """
import socket, sys
for line in sys.stdin:
    host, port = line.split()
    try:
        with socket.create_connection((host, int(port)), 5) as there:
            print(there.makefile().readline().strip(), flush=True)
    except OSError as error:
        print(type(error).__name__, flush=True)
"""
SERVES = """
import socket
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
while True:
    client, _ = server.accept()
    client.sendall(b"you said " + client.recv(100))
    client.close()
"""


@pytest.fixture
def network():
    network = Network()
    yield network
    network.close()


@asynccontextmanager
async def inside(network, script, folder, ports=()):
    """A Python that runs a script inside, with pipes."""
    async with canary() as bird:
        given = Confinement(bird=bird, reach=Reach(public=False), hidden=(), network=network)
        given = given.allowing(readable=(PYTHON.parents[1],), ports=ports)
        report = Report()
        argv = [str(PYTHON), "-I", "-S", "-c", script]
        command = report.command(given, argv)
        owned = await spawn(
            command, owner=folder, kind="test", pass_fds=report.pass_fds, stdin=PIPE, stdout=PIPE
        )
        try:
            await report.settle(Watch(), "test")
            yield owned.process
        finally:
            report.close()
            await asyncio.wait_for(owned.process.wait(), 10)
            await end(owned)


@asynccontextmanager
async def greeting(host="127.0.0.1", port=0):
    async def greet(_reader, writer):
        writer.write(b"hello\n")
        writer.close()

    server = await asyncio.start_server(greet, host, port)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


async def asked(process, host, port):
    process.stdin.write(f"{host} {port}\n".encode())
    return (await asyncio.wait_for(process.stdout.readline(), 10)).decode().strip()


async def test_what_is_led_outwards_is_reached_at_its_own_address_and_nothing_else(
    network, tmp_path
):
    async with greeting() as model, greeting() as other:
        ports = (model, other)
        async with inside(network, TALKS, tmp_path, ports) as process:
            assert await asked(process, "127.0.0.1", model) == "ConnectionRefusedError"
            async with led_outwards(network, [("localhost", model), ("localhost", model)]):
                for host in ("127.0.0.1", "localhost"):
                    assert await asked(process, host, model) == "hello"
                assert await asked(process, "127.0.0.1", other) == "ConnectionRefusedError"
            assert await asked(process, "127.0.0.1", model) == "ConnectionRefusedError"


@pytest.mark.skipif(not socket.has_ipv6, reason="no version 6 of the protocol here")
async def test_an_endpoint_of_version_6_is_led_outwards(network, tmp_path):
    try:
        async with (
            greeting("::1") as model,
            inside(network, TALKS, tmp_path, (model,)) as process,
            led_outwards(network, [("::1", model)]),
        ):
            assert await asked(process, "::1", model) == "hello"
    except OSError as error:
        pytest.skip(f"no ::1 here: {error}")


async def test_an_address_that_is_in_use_inside_is_said(network, tmp_path):
    async with inside(network, SERVES, tmp_path) as process:
        port = int(await process.stdout.readline())
        with pytest.raises(BrowserError, match=f"cannot listen inside, 127.0.0.1:{port}"):
            async with led_outwards(network, [("127.0.0.1", port)]):
                pass


async def test_a_server_inside_is_reached_through_a_port_of_the_harness(network, tmp_path):
    async with inside(network, SERVES, tmp_path) as process:
        port = int(await process.stdout.readline())
        async with led_inwards(network, ("127.0.0.1", port)) as outside:
            for word in (b"one", b"two"):
                reader, writer = await asyncio.open_connection("127.0.0.1", outside)
                writer.write(word)
                assert await asyncio.wait_for(reader.read(), 10) == b"you said " + word
                writer.close()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", outside)


async def test_nobody_inside_is_a_connection_that_ends(network, tmp_path):
    async with inside(network, TALKS, tmp_path), led_inwards(network, ("127.0.0.1", 1)) as outside:
        reader, writer = await asyncio.open_connection("127.0.0.1", outside)
        assert await asyncio.wait_for(reader.read(), 10) == b""
        writer.close()


async def test_a_question_that_was_given_up_spoils_no_later_one(network, tmp_path):
    async with inside(network, TALKS, tmp_path):
        (await network.listen(("127.0.0.1", 4000))).close()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(network.listen(("::1", 4000)), 0)
        made = await network.listen(("127.0.0.1", 4000))
        assert made.family == socket.AF_INET
        made.close()


async def test_without_its_process_there_are_no_sockets(network, tmp_path):
    with pytest.raises(BrowserError, match="not there yet"):
        await network.listen(("127.0.0.1", 0))
    async with inside(network, TALKS, tmp_path) as process:
        process.kill()
        await process.wait()
        # The first one came at once, so that a program that ends at once is told of, not this.
        (await network.listen(("127.0.0.1", 0))).close()
        with pytest.raises(BrowserError, match="are gone"):
            await network.listen(("127.0.0.1", 0))


async def test_a_door_that_closes_without_a_word_is_an_error():
    door = Door()
    door.handed_over()
    with pytest.raises(BrowserError, match="are gone"):
        await door.receive()
    door.close()
