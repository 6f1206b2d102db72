"""The reward endpoint over HTTP: who may ask, how much, in which form."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from browseruse_bench.errors import ConfigError
from browseruse_bench.export.reward.intake import MAX_JSON_BYTES, MAX_ZIP_BYTES, Taken
from browseruse_bench.export.reward.service import Service, retry_after
from browseruse_bench.export.reward.wire import (
    MAX_SAMPLE,
    PATH,
    Pending,
    Refused,
    no_reward,
    openapi,
)

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

BODY_S = 120.0
"""How long a client may take to send its request."""
MAX_WAIT_S = 600.0
WAIT_S = 300.0
END_S = 15
"""How long answers may go on when the server ends."""
MAX_UPLOADS = 16
"""So many bodies are taken in at a time."""

Handler = Callable[["Request"], Awaitable["Response"]]


def check_libraries() -> None:
    """The libraries that the endpoint needs are there.

    Raises:
        ConfigError: they are not; says what to install.
    """
    missing = [name for name in ("starlette", "uvicorn") if find_spec(name) is None]
    if missing:
        raise ConfigError(
            f"serve-reward needs {' and '.join(missing)}: pip install 'browseruse-bench[models]'"
        )


def make_app(service: Service, token: str) -> Starlette:
    """The application; the service must be entered while it is served."""
    from starlette.applications import Starlette
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    endpoint = _Endpoint(service, token)

    async def unrouted(request: Request, error: Exception) -> Response:
        status = int(getattr(error, "status_code", 500))
        why = "this method is not taken here" if status == 405 else "no such path"
        return _refusal(Refused(status, "not_found" if status == 404 else "method", why))

    async def health(_request: Request) -> Response:
        return JSONResponse({"status": "ending" if service.closing else "ok"})

    async def description(_request: Request) -> Response:
        return JSONResponse(openapi(f"Rewards of {service.benchmark.name}"))

    return Starlette(
        routes=[
            Route("/healthz", health),
            Route("/openapi.json", description),
            Route("/v1/tasks", endpoint.guarded(endpoint.tasks)),
            Route(PATH, endpoint.guarded(endpoint.grade), methods=["POST"]),
            Route(PATH + "/{id}", endpoint.guarded(endpoint.grading)),
        ],
        exception_handlers={404: unrouted, 405: unrouted},
    )


class _Endpoint:
    def __init__(self, service: Service, token: str) -> None:
        self._service = service
        self._token = token.encode()
        self._uploads = 0

    def guarded(self, handler: Handler) -> Handler:
        """As `handler`, for who shows the token; what it refuses becomes an answer."""

        async def answer(request: Request) -> Response:
            try:
                self._authorize(request.headers)
                return await handler(request)
            except Refused as refused:
                return _refusal(refused)
            except Exception as error:  # noqa: BLE001  never a reward, never a cut connection
                self._service.faults.append(error)
                return _refusal(
                    Refused(500, "server", f"the server failed: {type(error).__name__}")
                )

        return answer

    def _authorize(self, headers: Mapping[str, str]) -> None:
        kind, _, shown = headers.get("authorization", "").partition(" ")
        given = shown.strip().encode("utf-8", "replace")
        if kind.lower() != "bearer" or not hmac.compare_digest(given, self._token):
            raise Refused(401, "unauthorized", "give the token: Authorization: Bearer TOKEN")

    async def tasks(self, request: Request) -> Response:
        from starlette.responses import JSONResponse

        states = await asyncio.to_thread(self._service.tasks)
        return JSONResponse([state.as_json() for state in states])

    async def grade(self, request: Request) -> Response:
        wait_s = _number(request, "wait_s", MAX_WAIT_S, WAIT_S)
        if self._service.closing:
            raise Refused(503, "ending", "the server is ending; ask again", retry_s=5)
        if self._uploads >= MAX_UPLOADS:
            why = f"{MAX_UPLOADS} uploads are under way"
            raise Refused(503, "busy", why, retry_s=1)
        self._uploads += 1
        try:
            taken = await self._take(request)
        finally:
            self._uploads -= 1
        id = await self._service.submit(taken)
        return await self._outcome(id, wait_s)

    async def grading(self, request: Request) -> Response:
        wait_s = _number(request, "wait_s", MAX_WAIT_S, 0)
        return await self._outcome(str(request.path_params["id"]), wait_s)

    async def _outcome(self, id: str, wait_s: float) -> Response:
        from starlette.responses import JSONResponse

        graded = await self._service.outcome(id, wait_s)
        if graded is None:
            headers = {"location": f"{PATH}/{id}", "retry-after": "1"}
            return JSONResponse(Pending(id=id).as_json(), 202, headers)
        return JSONResponse(graded.as_json())

    async def _take(self, request: Request) -> Taken:
        """The trace in the body.

        Raises:
            Refused: there is none.
        """
        if request.headers.get("content-encoding", "identity").lower() != "identity":
            raise Refused(415, "encoding", "send the body as it is, without Content-Encoding")
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        intake = self._service.intake
        if kind == "application/json":
            return await asyncio.to_thread(intake.json, await _body(request, MAX_JSON_BYTES))
        if kind != "application/zip":
            why = "Content-Type is application/json, or application/zip for a frozen trace"
            raise Refused(415, "media_type", why)
        sample = int(_number(request, "sample", MAX_SAMPLE, 0))
        wanted = request.query_params.get("rubric_key")
        path = intake.scratch()
        try:
            await _spooled(request, path, MAX_ZIP_BYTES)
            return await asyncio.to_thread(intake.zip, path, sample, wanted)
        finally:
            path.unlink(missing_ok=True)


async def _body(request: Request, limit: int) -> bytes:
    body = bytearray()
    async for piece in _pieces(request, limit):
        body += piece
    return bytes(body)


async def _spooled(request: Request, path: Path, limit: int) -> None:
    with path.open("xb") as file:
        async for piece in _pieces(request, limit):
            await asyncio.to_thread(file.write, piece)


async def _pieces(request: Request, limit: int) -> AsyncGenerator[bytes]:
    """The body, piece by piece.

    Raises:
        Refused: it is longer than `limit`, slow, or was cut off.
    """
    from starlette.requests import ClientDisconnect

    too_large = Refused(413, "too_large", f"the body has more than {limit} bytes")
    length = request.headers.get("content-length", "0")
    if length.isdecimal() and int(length) > limit:
        raise too_large
    n_bytes = 0
    try:
        async with asyncio.timeout(BODY_S):
            async for piece in request.stream():
                n_bytes += len(piece)
                if n_bytes > limit:
                    raise too_large
                yield piece
    except TimeoutError:
        raise Refused(408, "slow", f"the body did not come within {BODY_S:g} s") from None
    except ClientDisconnect:
        raise Refused(400, "cut_off", "the body was cut off") from None


def _number(request: Request, name: str, most: float, default: float) -> float:
    given = request.query_params.get(name)
    if given is None:
        return default
    try:
        value = float(given)
    except ValueError:
        value = -1
    if not 0 <= value <= most or (name == "sample" and value != int(value)):
        raise Refused(400, "parameter", f"{name}: is a number from 0 to {most:g}")
    return value


def _refusal(refused: Refused) -> Response:
    from starlette.responses import JSONResponse

    headers: dict[str, str] = {}
    if refused.retry_s is not None:
        headers["retry-after"] = retry_after(refused.retry_s)
    if refused.status == 401:
        headers["www-authenticate"] = "Bearer"
    if refused.status in (408, 413, 415, 503):
        # The body may not have been read to its end.
        headers["connection"] = "close"
    return JSONResponse(no_reward(refused).as_json(), refused.status, headers)
