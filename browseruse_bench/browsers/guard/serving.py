"""Servers of the harness that end with what they are for, and bytes that go through them."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from abc import ABC, abstractmethod

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]

_CHUNK = 2**16


class Server(ABC):
    """Listens on a port of 127.0.0.1, or on a socket that is given, until it is closed."""

    limit = 2**16
    """The longest line, and half of what is read ahead, in bytes."""

    def __init__(self) -> None:
        """Nothing listens yet."""
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()
        self.port = 0

    async def start(self, listener: socket.socket | None = None) -> None:
        """Listen on a bound socket, or on a port that the system chose."""
        if listener is None:
            server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=self.limit)
        else:
            server = await asyncio.start_server(self._serve, sock=listener, limit=self.limit)
        self._server = server
        self.port = server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Stop listening and cut what is open."""
        if self._server is not None:
            self._server.close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    @abstractmethod
    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection, which is closed afterwards; a connection that fails is over."""

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            await self.answer(reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError):
            pass  # the client or the server went away, or never said what it wants
        except asyncio.CancelledError:
            pass  # the session ends; asyncio would log a cancelled handler as an error
        finally:
            self._open.discard(task)
            writer.close()


async def join(one: Streams, other: Streams, *, until_both: bool) -> None:
    """Pass bytes on in both directions until both sides have ended, or only `other`; then none
    is read any more.
    """
    outwards = asyncio.create_task(_pump(one[0], other[1]))
    inwards = asyncio.create_task(_pump(other[0], one[1]))
    try:
        await asyncio.gather(*((inwards, outwards) if until_both else (inwards,)))
    finally:
        for pump in (inwards, outwards):
            pump.cancel()
        await asyncio.gather(inwards, outwards, return_exceptions=True)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Pass on all that comes until it ends; then say so on the other side."""
    while data := await reader.read(_CHUNK):
        writer.write(data)
        await writer.drain()
    if writer.can_write_eof():
        with contextlib.suppress(OSError):
            writer.write_eof()
