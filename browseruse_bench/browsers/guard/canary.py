"""Canaries: a file and a port that nothing guarded may reach, and what comes of trying."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import tempfile
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from browseruse_bench.browsers.cdp import CDP
from browseruse_bench.browsers.guard.watch import Watch

PATIENCE_S = 30.0
_PORTS_TRIED = 20


@dataclass(kw_only=True)
class Canary:
    """A readable file and a port of this machine that hears TCP and UDP."""

    file: Path
    port: int
    n_touched: int = 0
    """How often somebody connected to the port, or sent a datagram there."""


@asynccontextmanager
async def canary(folder: Path | None = None) -> AsyncGenerator[Canary]:
    """A canary that is there until the block is left; its file is in `folder`, which goes even
    where this process is killed, or else in the system's folder for temporary files.
    """
    handle, name = tempfile.mkstemp(prefix="bubench-canary-", suffix=".html", dir=folder)
    os.write(handle, b"<title>canary</title>")
    os.close(handle)
    bird = Canary(file=Path(name).resolve(), port=0)

    def touched(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        bird.n_touched += 1
        writer.close()

    try:
        async with AsyncExitStack() as stack:
            stream, datagrams = _pair_of_sockets()
            bird.port = stream.getsockname()[1]
            server = await asyncio.start_server(touched, sock=stream)
            stack.callback(server.close)
            hears = partial(_Hears, bird)
            loop = asyncio.get_running_loop()
            transport, _ = await loop.create_datagram_endpoint(hears, sock=datagrams)
            stack.callback(transport.close)
            yield bird
    finally:
        bird.file.unlink(missing_ok=True)


class _Hears(asyncio.DatagramProtocol):
    def __init__(self, bird: Canary) -> None:
        self._bird = bird

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        self._bird.n_touched += 1


def _pair_of_sockets() -> tuple[socket.socket, socket.socket]:
    """A TCP and a UDP socket on one port of 127.0.0.1 that the system chose."""
    for left in range(_PORTS_TRIED, 0, -1):
        stream = socket.create_server(("127.0.0.1", 0))
        datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            datagrams.bind(stream.getsockname())
        except OSError:
            stream.close()
            datagrams.close()
            if left == 1:
                raise
        else:
            return stream, datagrams
    raise AssertionError("the last one raises")


async def try_port(cdp: CDP, target_id: str, bird: Canary, watch: Watch) -> None:
    """Try the canary's port from an open page, which stays as it was.

    Raises:
        BrowserError: it was reached, so the guard does not hold.
        TimeoutError: the browser is silent.
    """
    session = await _attach(cdp, target_id)
    url = json.dumps(f"http://127.0.0.1:{bird.port}/")
    asking = f"fetch({url}, {{mode: 'no-cors'}}).then(() => 0, () => 0)"
    call = {"expression": asking, "awaitPromise": True}
    await cdp.send("Runtime.evaluate", call, session=session, timeout_s=PATIENCE_S)
    await cdp.send("Target.detachFromTarget", {"sessionId": session}, timeout_s=PATIENCE_S)
    watch.settle("page: port", reached=bird.n_touched > 0)


async def try_file(cdp: CDP, bird: Canary, watch: Watch) -> None:
    """Try to open the canary's file in a page of its own that is gone afterwards.

    Raises:
        BrowserError: it was opened, so the guard does not hold.
        TimeoutError: the browser is silent.
    """
    made = await cdp.send(
        "Target.createBrowserContext", {"disposeOnDetach": True}, timeout_s=PATIENCE_S
    )
    context: dict[str, Any] = {"browserContextId": made["browserContextId"]}
    try:
        page = {"url": "about:blank", "background": True, **context}
        created = await cdp.send("Target.createTarget", page, timeout_s=PATIENCE_S)
        session = await _attach(cdp, created["targetId"])
        opening = {"url": bird.file.as_uri()}
        went = await cdp.send("Page.navigate", opening, session=session, timeout_s=PATIENCE_S)
    finally:
        if not cdp.closed:
            await cdp.send("Target.disposeBrowserContext", context, timeout_s=PATIENCE_S)
    watch.settle("page: file", reached="errorText" not in went)


async def _attach(cdp: CDP, target_id: str) -> str:
    attach = {"targetId": target_id, "flatten": True}
    attached = await cdp.send("Target.attachToTarget", attach, timeout_s=PATIENCE_S)
    return str(attached["sessionId"])
