"""The network of one session, which its browser and worker are alone in, seen from outside.

It is made by the session's first enclosed process (`enclose`), whose door hands out sockets of
it: so the harness listens and connects inside without being there.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from browseruse_bench.browsers.guard.serving import Server, Streams, join
from browseruse_bench.errors import BrowserError

PROXY = ("127.0.0.2", 3128)
"""Where the browser's proxy listens inside: on an address that no endpoint of a model has."""
_PATIENCE_S = 30.0
_CONNECT_S = 15.0
_MESSAGE_BYTES = 16
_MAX_DESCRIPTORS = 4


class Door:
    """The harness's end of what keeps an enclosed process alive; closed, the process ends."""

    def __init__(self) -> None:
        """Open both ends; `theirs` is to be inherited by the process."""
        self._ours, self._theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._ours.setblocking(False)
        self._asking = asyncio.Lock()

    @property
    def theirs(self) -> int:
        """The descriptor that the process gets."""
        return self._theirs.fileno()

    def handed_over(self) -> None:
        """The process has it, so that only the process's end is left."""
        self._theirs.close()

    def close(self) -> None:
        """Let the process end."""
        self._theirs.close()
        self._ours.close()

    async def receive(self) -> list[int]:
        """The descriptors of the next message.

        Raises:
            BrowserError: the process ended, is silent, or could not do what it was asked.
        """
        loop = asyncio.get_running_loop()
        ready = asyncio.Event()
        loop.add_reader(self._ours, ready.set)
        try:
            async with asyncio.timeout(_PATIENCE_S):
                await ready.wait()
        except TimeoutError:
            raise BrowserError("the guard's namespaces are silent") from None
        finally:
            loop.remove_reader(self._ours)
        try:
            said, descriptors, _, _ = socket.recv_fds(
                self._ours, _MESSAGE_BYTES, _MAX_DESCRIPTORS, socket.MSG_CMSG_CLOEXEC
            )
        except OSError:  # it ended, and did not hear what it was asked
            said, descriptors = b"", []
        if not descriptors:
            what = "made no socket" if said else "are gone"
            raise BrowserError(f"the guard's namespaces {what}")
        return descriptors

    async def new_socket(self, family: socket.AddressFamily) -> socket.socket:
        """A TCP socket of the network inside.

        Raises:
            BrowserError: as for `receive`.
        """
        asking = asyncio.ensure_future(self._ask(family))
        try:
            # A question whose answer nobody takes would be answered to the next one who asks.
            return await asyncio.shield(asking)
        except asyncio.CancelledError:
            asking.add_done_callback(_drop)
            raise

    async def _ask(self, family: socket.AddressFamily) -> socket.socket:
        async with self._asking:
            try:
                self._ours.send(b"6" if family == socket.AF_INET6 else b"4")
            except OSError:
                raise BrowserError("the guard's namespaces are gone") from None
            (descriptor,) = await self.receive()
        made = socket.socket(fileno=descriptor)
        made.setblocking(False)
        return made


class Network:
    """One session's network: no way out but what the harness listens to inside."""

    def __init__(self) -> None:
        """It is made when the first process that gets `entrance` starts."""
        self._door: Door | None = None
        self._spaces: Sequence[int] = ()
        self._first: socket.socket | None = None

    @property
    def spaces(self) -> tuple[int, ...]:
        """Descriptors of the namespaces that a later process joins; empty before they are made."""
        return tuple(self._spaces)

    async def opened(self, door: Door) -> None:
        """Take over what the first process has made.

        Raises:
            BrowserError: it could not.
        """
        *self._spaces, first = await door.receive()
        self._first = socket.socket(fileno=first)
        self._first.setblocking(False)
        self._door = door

    def close(self) -> None:
        """Let go of it; it is gone when its processes are."""
        if self._door is not None:
            self._door.close()
        if self._first is not None:
            self._first.close()
        for descriptor in self._spaces:
            os.close(descriptor)
        self._spaces = ()

    async def listen(self, address: tuple[str, int]) -> socket.socket:
        """A socket that is bound to an address inside.

        Raises:
            BrowserError: the namespaces are gone, or the address is in use.
        """
        made = await self._socket(address[0])
        try:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            made.bind(address)
        except OSError as error:
            made.close()
            raise BrowserError(
                f"cannot listen inside, {address[0]}:{address[1]}: {error}"
            ) from error
        return made

    async def connect(self, address: tuple[str, int]) -> Streams:
        """A connection to a server inside.

        Raises:
            BrowserError: the namespaces are gone.
            OSError, TimeoutError: nobody answers.
        """
        made = await self._socket(address[0])
        try:
            async with asyncio.timeout(_CONNECT_S):
                await asyncio.get_running_loop().sock_connect(made, address)
                return await asyncio.open_connection(sock=made)
        except BaseException:
            made.close()
            raise

    async def _socket(self, host: str) -> socket.socket:
        if self._door is None:
            raise BrowserError("the guard's namespaces are not there yet")
        if ":" in host:
            return await self._door.new_socket(socket.AF_INET6)
        first, self._first = self._first, None
        return first or await self._door.new_socket(socket.AF_INET)


class _Inwards(Server):
    """A port of this machine's loopback that leads to a server inside."""

    def __init__(self, network: Network, address: tuple[str, int]) -> None:
        super().__init__()
        self._network = network
        self._address = address

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            inside = await self._network.connect(self._address)
        except BrowserError:
            return  # the session ends
        await _through((reader, writer), inside)


class _Outwards(Server):
    """A port inside that leads to the same one of this machine's loopback."""

    def __init__(self, address: tuple[str, int]) -> None:
        super().__init__()
        self._address = address

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(_CONNECT_S):
            outside = await asyncio.open_connection(*self._address)
        await _through((reader, writer), outside)


@asynccontextmanager
async def led_inwards(network: Network, address: tuple[str, int]) -> AsyncGenerator[int]:
    """The port of this machine's loopback by which the harness reaches a server inside."""
    server = _Inwards(network, address)
    await server.start()
    try:
        yield server.port
    finally:
        await server.close()


@asynccontextmanager
async def led_outwards(
    network: Network, addresses: Sequence[tuple[str, int]]
) -> AsyncGenerator[None]:
    """Inside, loopback addresses are answered by the same ones of this machine.

    Raises:
        BrowserError: one of them is in use inside.
    """
    async with AsyncExitStack() as stack:
        for host, port in dict.fromkeys(addresses):
            for place in ("127.0.0.1", "::1") if host == "localhost" else (host,):
                try:
                    listener = await network.listen((place, port))
                except BrowserError:
                    if host == "localhost" and place == "::1":
                        continue  # a kernel without version 6
                    raise
                server = _Outwards((host, port))
                await server.start(listener)
                stack.push_async_callback(server.close)
        yield


async def _through(outer: Streams, inner: Streams) -> None:
    try:
        await join(outer, inner, until_both=False)
    finally:
        inner[1].close()


def _drop(asking: asyncio.Future[socket.socket]) -> None:
    with contextlib.suppress(BrowserError, asyncio.CancelledError):
        asking.result().close()
