"""Every call of a model, kept by its content: what was asked once is never paid for again.

    calls/<2 hex>/<key>.json                     one answered call
    calls/<2 hex>/<key>-malformed-1.json         one that gave nothing to use: kept, no answer
    calls/models/<model key>.json                which model a key means
    calls/spending.jsonl                         what was spent, see models.spending_log
    calls/.locks/                                of what is asked at the moment

The key is that of the model (everything that makes its answers another model's) and of the
request (messages, bytes of images, schema, parameters, sample number). Tasks and processes that
ask the same at the same time ask once. Whatever dies when: a call is there whole or not at all,
and a file that was damaged since is told from a whole one, said, and asked again.

Requests are not kept unless that is asked for; their digest is. Restricted ones go to a folder
of their own that nobody else can open.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import os
import re
import secrets
from collections.abc import AsyncGenerator, Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from browseruse_bench.errors import ConfigError, DataError, StoreError
from browseruse_bench.models.base import (
    CallError,
    Clearance,
    Finish,
    MalformedError,
    Model,
    ModelId,
    OutageError,
    Params,
    PendingError,
    RefusalError,
    Reply,
    Request,
    TooLongError,
    TruncatedError,
)
from browseruse_bench.models.locks import FileLock
from browseruse_bench.models.spending_log import Spending, SpendingLine, What
from browseruse_bench.records.base import Record, content_key
from browseruse_bench.records.run import Tokens
from browseruse_bench.records.trace import Usage
from browseruse_bench.store.files import read_json, write_atomic, write_json
from browseruse_bench.store.redact import Redactor

Status = Literal["answered", "outage", "truncated", "refusal", "too_long", "malformed", "failed"]
_FAILURES: dict[type[CallError], Status] = {
    OutageError: "outage",
    TruncatedError: "truncated",
    RefusalError: "refusal",
    TooLongError: "too_long",
    MalformedError: "malformed",
}
_HEX = re.compile(r"[0-9a-f]{64}")
_REF = re.compile(r"[0-9a-f]{64}(?:-[a-z_]+-[1-9]\d*)?")
_BEFORE = b'{"call":'
_BETWEEN = b',"sha256":"'
_BEHIND = b'"}\n'
_FIRST_WAIT_S = 0.01
_LONGEST_WAIT_S = 0.5

_LOG = logging.getLogger(__name__)


class RequestDigest(Record):
    """What identifies a request and says how great it was, without a word of it."""

    id: str
    """Key of the request."""
    sample: int = 0
    n_messages: int
    n_chars: int
    images: tuple[str, ...] = ()
    """SHA-256 of each."""
    schema_name: str | None = None
    params: Params = Params()

    @classmethod
    def of(cls, request: Request) -> RequestDigest:
        """The digest of a request."""
        return cls(
            id=request.key,
            sample=request.sample,
            n_messages=len(request.messages),
            n_chars=len(request.text),
            images=tuple(image.sha256 for image in request.images),
            schema_name=None if request.schema_ is None else request.schema_name,
            params=request.params,
        )


class Call(Record):
    """One call as it is kept."""

    schema_version: Literal[1] = 1
    id: str
    """`call_key` of model and request."""
    status: Status = "answered"
    model: str
    """Label."""
    model_key: str
    purpose: str
    scope: str = ""
    via: Literal["live", "batch"] = "live"
    request: RequestDigest
    kept: dict[str, Any] | None = None
    """The request itself, where requests are kept."""
    raw: str
    value: Any = None
    finish: Finish | None = None
    usage: Usage | None = None
    """None: nothing was paid."""
    n_asked: int = 1
    seconds: float = 0
    error: str | None = None
    asked_at: str
    at: str
    """When the reply was there."""

    @property
    def reply(self) -> Reply:
        """Its answer, as it was given when it was asked."""
        assert self.usage is not None
        return Reply(
            value=self.value,
            raw=self.raw,
            finish=self.finish or "stop",
            usage=self.usage,
            call=self.id,
            from_ledger=True,
            n_asked=self.n_asked,
            seconds=self.seconds,
        )


def call_key(model_key: str, request: Request) -> str:
    """Identity of a call."""
    return content_key([model_key, request.key])


class Ledger:
    """The calls below one folder; several processes may use it."""

    def __init__(
        self,
        path: Path,
        *,
        private: bool = False,
        keep_requests: bool = False,
        say: Callable[[str], None] = _LOG.warning,
    ) -> None:
        """Open the folder, which need not be there yet.

        Args:
            path: the folder.
            private: nobody but the user may open it or a file of it.
            keep_requests: keep the messages of requests, too.
            say: told once of each damaged file.
        """
        self.path = path
        self.private = private
        self.keep_requests = keep_requests
        self._say = say
        self._known: set[str] = set()
        self._told: set[Path] = set()

    def find(self, key: str) -> Call | None:
        """The answered call with this key; None: there is none, or its file is damaged."""
        path = self._path(key)
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        try:
            call = _parsed(content)
            if call.id != key or call.status != "answered":
                raise ValueError(f"it is the call {call.id[:12]}, {call.status}")
        except ValueError as error:
            self._tell(path, error)
            return None
        return call

    def read(self, ref: str) -> Call:
        """The call that a result names, one that failed too.

        Raises:
            DataError: there is none, or its file is damaged.
        """
        path = self._path(ref)
        if _REF.fullmatch(ref) is None or not path.is_file():
            raise DataError(f"{self.path}: no call {ref}")
        try:
            return _parsed(path.read_bytes())
        except ValueError as error:
            raise DataError(f"{path}: damaged ({error})") from error

    def put(self, call: Call) -> Call:
        """Keep an answered call; returns it as it is kept, without our own secrets.

        Raises:
            StoreError: it could not be written.
        """
        path = self._path(call.id)
        if path.exists() and self.find(call.id) is None:
            path.replace(path.with_suffix(".damaged"))
        return self._write(path, call)

    def put_failed(self, call: Call) -> str:
        """Keep a call that gave nothing to use, beside those before it; returns its name.

        To be called by the holder of the key's `flight`.

        Raises:
            StoreError: it could not be written.
        """
        number = 1
        while (path := self._path(f"{call.id}-{call.status}-{number}")).exists():
            number += 1
        self._write(path, call)
        return path.stem

    def calls(self, *, failed: bool = False) -> Iterator[Call]:
        """All answered calls, or all that gave nothing to use, one after the other; damaged
        files are said and left out.
        """
        for path in self.files():
            if (_HEX.fullmatch(path.stem) is None) != failed:
                continue
            try:
                yield _parsed(path.read_bytes())
            except ValueError as error:
                self._tell(path, error)

    def every(self) -> Iterator[Call]:
        """All calls, also those that gave nothing to use."""
        yield from self.calls()
        yield from self.calls(failed=True)

    def files(self) -> Iterator[Path]:
        """The file of each call, in order."""
        for number in range(256):
            folder = self.path / f"{number:02x}"
            if folder.is_dir():
                for path in sorted(folder.iterdir()):
                    if path.suffix == ".json" and _REF.fullmatch(path.stem):
                        yield path

    def models(self) -> dict[str, ModelId]:
        """Which models were asked, by their key.

        Raises:
            DataError: a file of `models/` is damaged.
        """
        found: dict[str, ModelId] = {}
        for path in sorted((self.path / "models").glob("*.json")):
            try:
                model = ModelId.model_validate(read_json(path))
            except ValidationError as error:
                raise DataError(f"{path}: not a model: {error}") from error
            found[model.key] = model
        return found

    def note_model(self, model: ModelId) -> None:
        """`models` knows it."""
        key = model.key
        path = self.path / "models" / f"{key}.json"
        if key not in self._known and not path.exists():
            self._make()
            write_json(path, model.as_json())
        self._known.add(key)

    @contextlib.asynccontextmanager
    async def flight(self, key: str) -> AsyncGenerator[None]:
        """Alone with a key among all processes, waiting for the one that asks it now."""
        self._make()
        wait_s = _FIRST_WAIT_S
        while (lock := FileLock.take(self.path / ".locks" / key)) is None:
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, _LONGEST_WAIT_S)
        try:
            yield
        finally:
            lock.release()

    def _tell(self, path: Path, error: Exception) -> None:
        """Once of each file, however often it is read."""
        if path not in self._told:
            self._told.add(path)
            self._say(f"{path}: damaged ({error}): counts as never asked")

    def _path(self, ref: str) -> Path:
        return self.path / ref[:2] / f"{ref}.json"

    def _make(self) -> None:
        if self.path.is_dir() and not self.private:
            return
        self.path.mkdir(parents=True, exist_ok=True)
        if self.private:
            self.path.chmod(0o700)

    def _write(self, path: Path, call: Call) -> Call:
        content = _content(call)
        try:
            self._make()
            write_atomic(path, content, mode=0o600 if self.private else 0o644)
        except OSError as error:
            raise StoreError(f"{path}: what was asked could not be kept: {error}") from error
        return _parsed(content)


def _content(call: Call) -> bytes:
    redactor = Redactor.of_environment()
    # A raw reply is JSON inside of JSON, where a value is spelled in a third way.
    call = call.model_copy(update={"raw": redactor.own(call.raw)})
    text = redactor.own(call.as_line())
    inner = text.encode(errors="replace")
    digest = hashlib.sha256(inner).hexdigest().encode()
    return _BEFORE + inner + _BETWEEN + digest + _BEHIND


def _parsed(content: bytes) -> Call:
    """The call that a file holds.

    Raises:
        ValueError: the file is not what was written.
    """
    end = len(content) - len(_BETWEEN) - 64 - len(_BEHIND)
    inner, digest = content[len(_BEFORE) : end], content[-64 - len(_BEHIND) : -len(_BEHIND)]
    if hashlib.sha256(inner).hexdigest().encode() != digest:
        raise ValueError("its checksum does not fit")
    try:
        return Call.model_validate_json(inner)
    except ValidationError as error:
        raise ValueError(f"not a call: {error.errors()[0]['msg']}") from error


def restore_spending(path: Path, *ledgers: Ledger) -> None:
    """Where `spending.jsonl` is missing beside calls, it is there again with what they cost, so
    that no limit forgets them. What was cut off is in no call, and stays forgotten.
    """
    if path.exists() or not any(True for ledger in ledgers for _ in ledger.files()):
        return
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with temporary.open("w", encoding="utf-8") as file:
            for call in (c for ledger in ledgers for c in ledger.every()):
                if call.usage is not None:
                    file.write(_paid_line(call, call.usage).as_line() + "\n")
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):
            path.hardlink_to(temporary)
    finally:
        temporary.unlink(missing_ok=True)


def _paid_line(call: Call, usage: Usage) -> SpendingLine:
    return SpendingLine(
        id=f"kept-{secrets.token_hex(8)}",
        at=call.at,
        purpose=call.purpose,
        scope=call.scope,
        model=call.model,
        outcome="answered" if call.status == "answered" else "failed",
        cost_usd=usage.cost_usd,
        tokens=Tokens.of([usage]),
        price_source=usage.price_source,
    )


@dataclass
class _Flight:
    task: asyncio.Task[Reply]
    n_waiting: int = 0


class LedgerModel:
    """Asks a model what the ledger does not know, and keeps what it says."""

    def __init__(
        self,
        inner: Model,
        ledger: Ledger,
        *,
        restricted: Ledger | None = None,
        spending: Spending | None = None,
        scope: str = "",
        now: Callable[[], str] | None = None,
    ) -> None:
        """Ask `inner`.

        Args:
            inner: what is asked.
            ledger: where calls are kept.
            restricted: where those are kept that may hold personal data; None: such a request
                is refused.
            spending: counts what was answered without being paid for.
            scope: what the calls are a part of.
            now: the time, ISO 8601.
        """
        self._inner = inner
        self.ledger = ledger
        self._restricted = restricted
        self._spending = spending
        self._scope = scope
        self._now = now or _utc_now
        self._key = inner.id.key
        self._flights: dict[tuple[bool, str], _Flight] = {}

    @property
    def id(self) -> ModelId:
        """That of the model that is asked."""
        return self._inner.id

    @property
    def may_see(self) -> Clearance:
        """As the model that is asked."""
        return self._inner.may_see

    async def ask(self, request: Request, *, purpose: str, restricted: bool = False) -> Reply:
        """The kept answer to an equal request, or a new one, which is then kept.

        Of several that ask the same at a time one asks; the others get its answer, or its
        failure. `call` of a reply or a CallError names what is kept.
        """
        if restricted and self.may_see != "restricted":
            raise ConfigError(f"model {self.id.label} is not cleared for restricted text")
        ledger = self._ledger(restricted)
        key = call_key(self._key, request)
        call = ledger.find(key)
        if call is not None:
            return self._reused(call.reply, purpose)
        place = (restricted, key)
        flight = self._flights.get(place)
        # One of another event loop cannot be waited for; the lock of the key can.
        if flight is not None and flight.task.get_loop() is asyncio.get_running_loop():
            return self._reused(await _result(flight), purpose)
        task = asyncio.create_task(
            self._ask_alone(ledger, key, request, purpose=purpose, restricted=restricted)
        )
        flight = self._flights[place] = _Flight(task)
        task.add_done_callback(lambda done: self._landed(place, done))
        return await _result(flight)

    def _landed(self, place: tuple[bool, str], task: asyncio.Task[Reply]) -> None:
        flight = self._flights.get(place)
        if flight is not None and flight.task is task:
            del self._flights[place]

    def _ledger(self, restricted: bool) -> Ledger:
        if not restricted:
            return self.ledger
        if self._restricted is None:
            raise ConfigError(
                f"{self.ledger.path}: a restricted request is kept in no folder that others can "
                "open; give a folder for restricted calls"
            )
        return self._restricted

    def _reused(self, reply: Reply, purpose: str) -> Reply:
        if self._spending is not None:
            self._spending.reuse(What(self._scope, purpose, self.id.label), reply.usage)
        return reply.model_copy(update={"from_ledger": True})

    async def _ask_alone(
        self, ledger: Ledger, key: str, request: Request, *, purpose: str, restricted: bool
    ) -> Reply:
        """Ask, alone with the key; what another process was told meanwhile is the answer."""
        async with ledger.flight(key):
            if (call := ledger.find(key)) is not None:
                return self._reused(call.reply, purpose)
            draft = Call(
                id=key,
                model=self.id.label,
                model_key=self._key,
                purpose=purpose,
                scope=self._scope,
                request=RequestDigest.of(request),
                kept=request.as_json() if ledger.keep_requests else None,
                raw="",
                asked_at=self._now(),
                at="",
            )
            ledger.note_model(self.id)
            try:
                reply = await self._inner.ask(request, purpose=purpose, restricted=restricted)
            except PendingError:
                raise
            except CallError as error:
                # What already has a name is kept: the answer of a batch that is told now.
                if error.call is None:
                    error.call = ledger.put_failed(failed_call(draft, error, self._now()))
                raise
            kept = ledger.put(answered_call(draft, reply, self._now()))
            return kept.reply.model_copy(update={"from_ledger": reply.from_ledger})


def answered_call(draft: Call, reply: Reply, at: str) -> Call:
    """The call, with its answer."""
    return draft.model_copy(
        update={
            "raw": reply.raw,
            "value": reply.value,
            "finish": reply.finish,
            "usage": reply.usage,
            "n_asked": reply.n_asked,
            "seconds": reply.seconds,
            "at": at,
        }
    )


def failed_call(draft: Call, error: CallError, at: str) -> Call:
    """The call, with what went wrong and what came all the same."""
    status = next((s for kind, s in _FAILURES.items() if isinstance(error, kind)), "failed")
    return draft.model_copy(
        update={
            "status": status,
            "raw": error.raw,
            "usage": error.usage,
            "error": Redactor.of_environment().said(str(error)),
            "at": at,
        }
    )


async def _result(flight: _Flight) -> Reply:
    """What a flight comes to. It goes on while anybody waits for it."""
    flight.n_waiting += 1
    try:
        return await asyncio.shield(flight.task)
    finally:
        flight.n_waiting -= 1
        if not flight.task.done() and flight.n_waiting == 0:
            flight.task.cancel()
            await asyncio.wait({flight.task})


def _utc_now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
