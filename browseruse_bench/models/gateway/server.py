"""The endpoint: on this machine only, one token per attempt, nothing but what is in its table.

    async with Gateway() as gateway:
        access = gateway.open(meter)          access.endpoint: where to ask, with which token
        ...
        await gateway.close(access)           its token is worth nothing from now on

A request is looked at in this order: whom it says that it is for (`Host`, against names that
were made to lead here; a browser's `Origin` is turned away), its token, its path, its length,
its body. What is not in the table of paths is not there, however it is spelled.
"""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from browseruse_bench.errors import ConfigError
from browseruse_bench.models.gateway.call import Call, Denied, read_call
from browseruse_bench.models.gateway.endpoint import Endpoint
from browseruse_bench.models.gateway.forward import Broken, Cleaner, Upstream, Way
from browseruse_bench.models.gateway.meter import Meter
from browseruse_bench.models.gateway.tokens import Grant, Grants, shown
from browseruse_bench.models.gateway.wires import WIRES, Json, Wire, wires_of
from browseruse_bench.models.listening import serving
from browseruse_bench.models.open import limiter_of
from browseruse_bench.models.spec import ModelSpec
from browseruse_bench.store.redact import register

if TYPE_CHECKING:
    import httpx

HOST = "127.0.0.1"
MAX_BODY_BYTES = 32 * 2**20
"""As much as any provider takes of one request."""
BODY_S = 60.0
"""How long a client may take to send its request."""
CLOSE_S = 0.5
"""How long calls of a token that is taken back may go on: an agent's last one is just ending."""

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


@dataclass(frozen=True)
class Access:
    """An open way to a model."""

    endpoint: Endpoint
    grant: Grant


class Gateway:
    """The endpoint of this process."""

    def __init__(self, *, port: int = 0) -> None:
        """Listen at `port` of 127.0.0.1 once it is entered; 0: any that is free."""
        self._wanted_port = port
        self.port = 0
        self._grants = Grants()
        self._http: httpx.AsyncClient | None = None
        self._stack = AsyncExitStack()
        self.faults: list[Exception] = []
        """What went wrong in the gateway itself; the meter of the call knows it, too."""

    async def __aenter__(self) -> Gateway:
        """Start.

        Raises:
            ConfigError: the libraries are not there, or the port is taken.
        """
        check_libraries()
        import httpx

        self._http = httpx.AsyncClient(
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=32),
            headers={"user-agent": f"browseruse-bench/{version('browseruse-bench')}"},
            # The way to the web may lead through a proxy; never the way to this machine.
            mounts={f"all://{host}": None for host in ("127.0.0.1", "localhost", "[::1]")},
            follow_redirects=False,
        )
        self.port = await self._stack.enter_async_context(
            serving(self._app, HOST, self._wanted_port, grace_s=1)
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        """End: all tokens are taken back, and what is under way is cut off and counted."""
        for grant in self._grants.all():
            await self._close(grant, grace_s=0)
        await self._stack.aclose()
        if self._http is not None:
            await self._http.aclose()

    @property
    def url(self) -> str:
        """http://127.0.0.1:PORT."""
        return f"http://{HOST}:{self.port}"

    def open(self, meter: Meter, way: Way | None = None) -> Access:
        """A new token for the model of `meter`, which counts what is asked with it.

        Args:
            meter: counts, and says which model.
            way: where answers come from; None: from the model's provider.

        Raises:
            ConfigError: the model is not one that is asked over a wire.
        """
        spec = meter.spec
        if not wires_of(spec.provider):
            raise ConfigError(f"model {spec.label}: is asked over no wire, so through no gateway")
        if spec.key is not None:
            if not (spec.key.isascii() and spec.key.isprintable()):
                raise ConfigError(
                    f"{spec.key_name or 'the key'} of {spec.label}: holds what no header can, such "
                    "as a line's end or a letter beyond ASCII"
                )
            register(spec.key)
        grant = Grant(meter, way or self._upstream(spec))
        return Access(Endpoint(self.url, self._grants.issue(grant), spec.provider), grant)

    def _upstream(self, spec: ModelSpec) -> Upstream:
        assert self._http is not None
        return Upstream(
            spec=spec,
            http=self._http,
            limiter=limiter_of(spec),
            cleaner=Cleaner([] if spec.key is None else [spec.key]),
        )

    async def close(self, access: Access) -> None:
        """Take the token back; when this returns all its calls are counted."""
        await self._close(access.grant, grace_s=CLOSE_S)

    async def _close(self, grant: Grant, *, grace_s: float) -> None:
        self._grants.revoke(grant)
        await grant.close(grace_s)

    async def _app(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request. Returning without an end makes the server cut the connection."""
        client = _Client(send)
        try:
            await self._answer(scope, receive, client)
        except Denied as denied:
            await client.failed(denied, _wire_like(scope))
        except (Broken, _Gone):
            return
        except Exception as error:  # noqa: BLE001  it would be lost in the server
            self.faults.append(error)
            fault = Denied(500, f"the harness failed: {type(error).__name__}", "harness")
            await client.failed(fault, _wire_like(scope))

    async def _answer(self, scope: Scope, receive: Receive, client: _Client) -> None:
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        _check_host(headers, self.port)
        grant = self._grants.find(shown(headers, query))
        if grant is None or grant.revoked:
            raise Denied(
                401,
                "no token that is open: give the one of this attempt, and no other key beside it",
                "invalid_api_key",
            )
        spec = grant.meter.spec
        path = str(scope["raw_path"].decode("latin-1"))
        if (scope["method"], path) == ("GET", "/v1/models"):
            await client.whole(200, _models(spec))
            return
        wire = _route(path, spec, self.url)
        if scope["method"] != "POST":
            raise Denied(405, f"{path} takes POST only", "method_not_allowed")
        if ("alt", "sse") not in query and wire.queries(path):
            raise Denied(400, f"{path}: give ?alt=sse", "invalid_request")
        with grant.place():
            call = read_call(wire, path, await _body(headers, receive), spec)
            carried = asyncio.create_task(self._carry(grant, call, headers, client))
            grant.add(carried)
            await _unless_gone(carried, receive)

    async def _carry(
        self, grant: Grant, call: Call, headers: Sequence[tuple[bytes, bytes]], client: _Client
    ) -> None:
        """Let one call through. However it ends, it is counted once, and before its last word
        is passed on.
        """

        async def settle() -> None:
            if not call.settled:
                call.settled = True
                call.seconds = time.monotonic() - call.began
                await _to_its_end(grant.meter.end(call))

        named = {name.decode("latin-1"): value.decode("latin-1") for name, value in headers}
        try:
            try:
                await grant.meter.begin(call)
                await grant.way.forward(call, named, client, settle)
            except asyncio.CancelledError:
                if call.why:
                    call.answered()  # the provider failed first, and the client left for that
                call.ended("left", "the client went away, or its attempt was over")
                raise
            except Denied as denied:
                call.ended("denied", str(denied))
                raise
            finally:
                await settle()
        except (Denied, Broken):
            raise
        except Exception as error:
            grant.meter.failed(error)
            raise
        await client.finish()


async def _to_its_end(work: Coroutine[Any, Any, None]) -> None:
    """Do it wholly, also where whoever waits for it is cancelled meanwhile."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise


class _Client:
    """Whoever asked; see `forward.Client`."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._started = False

    async def start(self, status: int, headers: Sequence[tuple[str, str]]) -> None:
        self._started = True
        raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
        await self._send({"type": "http.response.start", "status": status, "headers": raw})

    async def piece(self, content: bytes) -> None:
        await self._send({"type": "http.response.body", "body": content, "more_body": True})

    async def finish(self) -> None:
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def whole(self, status: int, body: Json, headers: Sequence[tuple[str, str]] = ()) -> None:
        content = json.dumps(body).encode()
        kind = ("content-type", "application/json")
        await self.start(status, [kind, ("content-length", str(len(content))), *headers])
        await self.piece(content)
        await self.finish()

    async def failed(self, denied: Denied, wire: Wire) -> None:
        """Say why not, in the words of a wire; nothing, where an answer has begun."""
        if self._started:
            return
        body = wire.error(denied.status, f"bubench gateway: {denied}", denied.code)
        again = denied.retry_after_s is not None or denied.status in (502, 504)
        # The request may not have been read to its end.
        headers = [("connection", "close"), ("x-should-retry", "true" if again else "false")]
        if denied.retry_after_s is not None:
            headers.append(("retry-after", str(math.ceil(denied.retry_after_s))))
        await self.whole(denied.status, body, headers)


class _Gone(Exception):  # noqa: N818
    """Nobody waits for an answer."""


async def _unless_gone(carried: asyncio.Task[None], receive: Receive) -> None:
    """Wait for a call to end; cut it off when its client goes away.

    Raises:
        Denied, Broken: as the call.
        _Gone: nobody waits for an answer.
    """

    async def gone() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    leaving = asyncio.create_task(gone())
    try:
        await asyncio.wait({carried, leaving}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        leaving.cancel()
        if not carried.done():
            carried.cancel()
            await asyncio.wait({carried})
    if carried.cancelled():
        raise _Gone
    carried.result()


async def _body(headers: Sequence[tuple[bytes, bytes]], receive: Receive) -> bytes:
    named = dict(headers)
    if named.get(b"content-encoding", b"identity").lower() != b"identity":
        raise Denied(415, "send the body as it is, not compressed", "invalid_request")
    too_long = Denied(413, f"the body has more than {MAX_BODY_BYTES} bytes", "request_too_large")
    if int(named.get(b"content-length", b"0")) > MAX_BODY_BYTES:
        raise too_long
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_S):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise _Gone
                body += message.get("body", b"")
                if len(body) > MAX_BODY_BYTES:
                    raise too_long
                if not message.get("more_body", False):
                    return bytes(body)
    except TimeoutError:
        raise Denied(408, f"the body did not come within {BODY_S:g} s", "timeout") from None


def _check_host(headers: Sequence[tuple[bytes, bytes]], port: int) -> None:
    hosts = [value.decode("latin-1").lower() for name, value in headers if name == b"host"]
    if len(hosts) != 1 or hosts[0] not in (f"{HOST}:{port}", f"localhost:{port}"):
        raise Denied(421, f"this is {HOST}:{port} and answers to no other name", "wrong_host")
    if any(name == b"origin" for name, _ in headers):
        raise Denied(403, "no page of a browser may ask here", "browser")


def _route(path: str, spec: ModelSpec, url: str) -> Wire:
    """The wire that is spoken at a path.

    Raises:
        Denied: there is none, or the token's model is asked over another; says what to do.
    """
    served = {at: wire for wire in wires_of(spec.provider) for at in wire.paths(spec)}
    if path in served:
        return served[path]
    ways = ", ".join(f"POST {url}{at} ({wire.name})" for at, wire in served.items())
    if _known(path) is not None:
        raise Denied(
            400,
            f"'{spec.name}' of {spec.provider} is not asked over this wire, and nothing is "
            f"translated; ask it at {ways}",
            "wrong_wire",
        )
    raise Denied(404, f"no such path; '{spec.name}' is asked at {ways}", "not_found")


def _known(path: str) -> Wire | None:
    """The wire that a path looks like, whatever the model."""
    for wire in WIRES:
        if path.startswith(wire.looks_like):
            return wire
    return None


def _wire_like(scope: Scope) -> Wire:
    """The wire in whose words a client hears of an error."""
    return _known(str(scope["raw_path"].decode("latin-1"))) or WIRES[0]


def _models(spec: ModelSpec) -> Json:
    """The one model of a token, as its provider's own list would have it."""
    if spec.provider == "anthropic":
        entry = {"type": "model", "id": spec.name, "display_name": spec.name}
        entry["created_at"] = "1970-01-01T00:00:00Z"
        ends = {"first_id": spec.name, "last_id": spec.name, "has_more": False}
        return {"data": [entry], **ends}
    entry = {"id": spec.name, "object": "model", "created": 0, "owned_by": spec.provider}
    return {"object": "list", "data": [entry]}


def check_libraries() -> None:
    """The libraries that a gateway needs are there.

    Raises:
        ConfigError: they are not; says what to install.
    """
    missing = [name for name in ("httpx", "uvicorn") if find_spec(name) is None]
    if missing:
        raise ConfigError(
            f"the gateway needs {' and '.join(missing)}: pip install 'browseruse-bench[models]' "
            "(or give an agent the key itself: bubench run --no-gateway)"
        )
