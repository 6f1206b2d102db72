"""Plain requests to a provider with the key of a model, for its batch API."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

from browseruse_bench.errors import ConfigError
from browseruse_bench.models.base import OutageError
from browseruse_bench.models.failures import retry_after
from browseruse_bench.models.spec import ModelSpec
from browseruse_bench.store.redact import Redactor

if TYPE_CHECKING:
    import httpx

_TRIES = 5
_FIRST_WAIT_S = 1.0
_LONGEST_WAIT_S = 60.0
_BLOCK_BYTES = 2**20
_TIMEOUT_S = 300.0
_MAX_SAID = 500

Sleep = Callable[[float], Coroutine[Any, Any, None]]


class RefusedError(OutageError):
    """The provider said no (4xx): nothing of what was asked for was done."""

    def __init__(self, message: str, *, status: int, retry_after_s: float | None) -> None:
        """Say why; `retry_after_s` is how long the provider asked to wait."""
        super().__init__(message)
        self.status = status
        self.retry_after_s = retry_after_s

    @property
    def may_pass(self) -> bool:
        """Whether the same request may be let through later."""
        return self.status in (408, 409, 425, 429)


class Http:
    """Asks one address with one key, which goes nowhere else: redirects are not followed."""

    def __init__(
        self,
        spec: ModelSpec,
        base_url: str,
        headers: dict[str, str],
        *,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        """Ask below `base_url`; `sleep` waits between tries."""
        self.label = spec.label
        self._key = spec.key
        self._base_url = base_url.rstrip("/")
        self._headers = headers
        self._sleep = sleep

    async def once(self, method: str, path: str, **content: Any) -> dict[str, Any]:
        """The JSON object that one request gives.

        Raises:
            RefusedError: the provider said no.
            OutageError: anything else; what was asked for may have been done all the same.
        """
        what = f"{method} {path}"
        async with self._client() as client, self._outages(what):
            response = await client.request(method, self._base_url + path, **content)
            self._refuse(response, what)
        try:
            value: Any = response.json()
        except ValueError as error:
            raise OutageError(self._said(f"{what}: not JSON: {error}")) from error
        if not isinstance(value, dict):
            raise OutageError(self._said(f"{what}: not an object"))
        return cast("dict[str, Any]", value)

    async def again(self, method: str, path: str, **content: Any) -> dict[str, Any]:
        """As `once`, tried again where that may help: for what may be asked twice."""
        wait_s = _FIRST_WAIT_S
        for _ in range(_TRIES - 1):
            asked_wait_s = None
            try:
                return await self.once(method, path, **content)
            except RefusedError as error:
                if not error.may_pass:
                    raise
                asked_wait_s = error.retry_after_s
            except OutageError:
                pass
            await self._sleep(wait_s if asked_wait_s is None else asked_wait_s)
            wait_s = min(2 * wait_s, _LONGEST_WAIT_S)
        return await self.once(method, path, **content)

    @asynccontextmanager
    async def stream(self, path: str) -> AsyncGenerator[AsyncIterator[bytes]]:
        """The bytes of a file, in the order in which they come.

        Raises:
            OutageError: also in the middle of it.
        """
        what = f"GET {path}"
        async with (
            self._client() as client,
            self._outages(what),
            client.stream("GET", self._base_url + path) as response,
        ):
            if response.status_code >= 300:
                await response.aread()
            self._refuse(response, what)
            yield response.aiter_bytes(_BLOCK_BYTES)

    def _client(self) -> httpx.AsyncClient:
        try:
            import httpx
        except ImportError as error:
            raise ConfigError(
                f"{self.label}: batches need more packages: "
                f"pip install 'browseruse-bench[models]' ({error})"
            ) from error
        return httpx.AsyncClient(headers=self._headers, timeout=_TIMEOUT_S, follow_redirects=False)

    @asynccontextmanager
    async def _outages(self, what: str) -> AsyncGenerator[None]:
        import httpx

        try:
            yield
        except httpx.HTTPError as error:
            raise OutageError(self._said(f"{what}: {error!r}")) from error

    def _refuse(self, response: httpx.Response, what: str) -> None:
        status = response.status_code
        if status < 300:
            return
        words = self._said(f"{what}: {status}: {_message(response.content)}")
        if status < 500:
            wait = retry_after(response.headers, now=time.time())
            raise RefusedError(words, status=status, retry_after_s=wait)
        raise OutageError(words)

    def _said(self, text: str) -> str:
        more = [self._key] if self._key else []
        words = " ".join(Redactor.of_environment(more=more).said(text).split())
        return f"{self.label}: {words[:_MAX_SAID]}"


def _message(content: bytes) -> str:
    """What an error's body says."""
    text = content.decode(errors="replace")
    try:
        value: Any = json.loads(text)
    except ValueError:
        return text
    if isinstance(value, dict):
        inner: Any = cast("dict[str, Any]", value).get("error", cast("Any", value))
        if isinstance(inner, dict):
            return str(cast("dict[str, Any]", inner).get("message", inner))
        return str(inner)
    return text
