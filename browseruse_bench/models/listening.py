"""An HTTP application that answers at a port while a block lasts."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from browseruse_bench.errors import ConfigError

_WAITING = 512


@asynccontextmanager
async def serving(app: Any, host: str, port: int, *, grace_s: int) -> AsyncGenerator[int]:
    """`app`, an ASGI application, answers at a port, which is told.

    Args:
        app: what answers.
        host: the address to listen at.
        port: the port; 0: any that is free.
        grace_s: how long answers may go on when the block is left.

    Raises:
        ConfigError: the address is not to be had.
    """
    listening = _listen(host, port)
    server = _quiet_server(app, grace_s)
    running = asyncio.create_task(server.serve(sockets=[listening]))
    try:
        while not server.started:
            if running.done():
                running.result()
                raise ConfigError(f"the server could not start at port {port}")
            await asyncio.sleep(0.005)
        yield int(listening.getsockname()[1])
    finally:
        server.should_exit = True
        await running


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Only of a socket that is named as TCP does asyncio send small pieces at once: otherwise
    # the end of each answer waits 40 ms for the client's system.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(_WAITING)
        listening.setblocking(False)
    except OSError as error:
        listening.close()
        raise ConfigError(
            f"{host}, --port {port}: {error.strerror}; use another, or 0 for any"
        ) from error
    return listening


def _quiet_server(app: Any, grace_s: int) -> Any:
    """A server that says nothing, and leaves the process's signals alone."""
    import uvicorn

    class Server(uvicorn.Server):
        @contextmanager
        def capture_signals(self) -> Generator[None]:
            yield

    return Server(
        uvicorn.Config(
            app,
            http="h11",
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            log_level="critical",
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            timeout_keep_alive=75,
            timeout_graceful_shutdown=grace_s,
        )
    )
