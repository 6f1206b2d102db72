"""A small client of the Chrome DevTools Protocol: one socket, flattened sessions.

Nothing is asked of the browser that a caller did not ask for: no domain is enabled and no
target is attached by the client itself.
"""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Callable
from typing import Any, cast
from urllib.parse import urlsplit

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, WebSocketException

from browseruse_bench.errors import BrowserError

EventCallback = Callable[[dict[str, Any], str | None], None]
"""Called with the event's parameters and its session (None for the browser's own events)."""

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


class CDP:
    """An open connection to a browser; made by `connect`.

    Events are delivered in the order in which they arrived, and before the reply to a call
    that was sent after them. When the socket closes, every pending call fails at once.
    """

    def __init__(self, socket: ClientConnection) -> None:
        """Read from `socket` until it closes."""
        self._socket = socket
        self._last_id = 0
        self._pending: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._callbacks: dict[str, list[EventCallback]] = defaultdict(list)
        self._closed = False
        self._reader = asyncio.create_task(self._read())

    @classmethod
    async def connect(cls, ws_url: str, *, timeout_s: float = 10.0) -> CDP:
        """Connect to ws://HOST:PORT/devtools/...

        Raises:
            BrowserError: nobody answers there, or not as a browser does.
            TimeoutError: no answer in time.
        """
        try:
            socket = await connect(
                ws_url,
                max_size=None,
                compression=None,
                ping_interval=None,
                open_timeout=timeout_s,
                # An HTTP proxy of the environment is for the web, not for this machine.
                proxy=None if urlsplit(ws_url).hostname in LOOPBACK else True,
            )
        except TimeoutError:
            place = shown(ws_url)
            raise TimeoutError(f"no browser answered at {place} within {timeout_s:g} s") from None
        except (OSError, WebSocketException) as error:
            why = str(error).replace(ws_url, shown(ws_url))
            raise BrowserError(
                f"cannot connect to the browser at {shown(ws_url)}: {why}"
            ) from error
        return cls(socket)

    @property
    def closed(self) -> bool:
        """Whether the socket is closed, by whichever side."""
        return self._closed

    def on(self, method: str, callback: EventCallback) -> None:
        """Call `callback` for each event `method`; it must return at once."""
        self._callbacks[method].append(callback)

    async def send(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        *,
        session: str | None = None,
        timeout_s: float = 5.0,
    ) -> dict[str, Any]:
        """Call `method` and return its result.

        Raises:
            BrowserError: the browser refused, or the socket is or becomes closed.
            TimeoutError: no reply in time; a late one is dropped.
        """
        if self._closed:
            raise BrowserError(f"{method}: the browser's socket is closed")
        self._last_id += 1
        call_id = self._last_id
        message: dict[str, Any] = {"id": call_id, "method": method, "params": params or {}}
        if session is not None:
            message["sessionId"] = session
        reply: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._pending[call_id] = reply
        try:
            async with asyncio.timeout(timeout_s):
                await self._socket.send(json.dumps(message))
                answer = await reply
        except TimeoutError:
            raise TimeoutError(f"{method}: no reply within {timeout_s:g} s") from None
        except ConnectionClosed:
            raise BrowserError(f"{method}: the browser's socket is closed") from None
        finally:
            self._pending.pop(call_id, None)
        if "error" in answer:
            raise BrowserError(f"{method}: {_error_text(answer['error'])}")
        return cast("dict[str, Any]", answer["result"])

    async def close(self) -> None:
        """Close the socket; may be called again. The browser goes on."""
        self._closed = True
        # A browser that hangs never answers the closing handshake.
        self._socket.transport.abort()
        await asyncio.wait([self._reader])

    async def _read(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            async for text in self._socket:
                message = json.loads(text)
                if "id" in message:
                    reply = self._pending.get(message["id"])
                    if reply is not None and not reply.done():
                        reply.set_result(message)
                else:
                    params, session = message.get("params", {}), message.get("sessionId")
                    for callback in self._callbacks.get(message["method"], ()):
                        # Not called here: an error in a callback must not stop the reading.
                        loop.call_soon(callback, params, session)
        except ConnectionClosed:
            pass  # said to every caller below
        finally:
            self._closed = True
            for reply in self._pending.values():
                if not reply.done():
                    reply.set_result({"error": {"message": "the browser's socket closed"}})


def shown(url: str) -> str:
    """The address without what may be a key: user, password, path and query."""
    parts = urlsplit(url)
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{parts.hostname}{port}"


def _error_text(error: dict[str, Any]) -> str:
    data = error.get("data")
    return f"{error.get('message', error)}" + (f" ({data})" if data else "")
