"""An agent in a process of its own, one per attempt, spoken to in JSON lines."""

from __future__ import annotations

import asyncio
import json
import os
import time
from abc import abstractmethod
from asyncio.subprocess import PIPE
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Literal

from pydantic import ValidationError

from browseruse_bench.agents.base import Agent, AgentReport, Sink, Stopped, Workspace
from browseruse_bench.agents.holding import Held, Worker, held
from browseruse_bench.agents.protocol import (
    FROM_WORKER,
    MAX_LINE_BYTES,
    Action,
    Attempt,
    End,
    Exit,
    FromWorker,
    Heartbeat,
    Ready,
    Recorded,
    StepDone,
    UsageSoFar,
    WorkerLimits,
)
from browseruse_bench.browsers.base import Session
from browseruse_bench.errors import AgentError
from browseruse_bench.models.gateway.endpoint import Endpoint
from browseruse_bench.records.base import Record, canonical_json
from browseruse_bench.records.task import TaskView
from browseruse_bench.records.trace import Call, Limits
from browseruse_bench.store.process_table import memory_gb
from browseruse_bench.store.processes import Owned, end, spawn

READY_S = 60.0
"""How long a worker may take to start."""
MEMORY_LOOK_S = 0.25
"""How often a worker's memory is looked at where it is limited."""
EXIT_S = 5.0
"""How long a worker may take to exit after its end."""
PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR")
"""Variables of the harness's environment that a worker gets; a list of what it may see,
because a list of what it may not see is never complete."""


class WorkerAgent(Agent):
    """Runs `command()` for each attempt and holds it to the protocol."""

    @abstractmethod
    def command(self) -> Sequence[str]:
        """The worker's argv."""

    def readable(self) -> Sequence[Path]:
        """What a confined worker reads beside its environment, its own file and the folders of
        its attempt; nothing by default.
        """
        return ()

    def settings(self, view: TaskView) -> Mapping[str, Any]:
        """What the worker is told beside the protocol's own fields; JSON, and no secret."""
        return {}

    def settings_through(self, view: TaskView, endpoint: Endpoint) -> Mapping[str, Any]:
        """As `settings`, where the model of `asks` is asked at an endpoint of the harness."""
        del endpoint
        return self.settings(view)

    def secrets_through(self, endpoint: Endpoint) -> Mapping[str, str]:
        """What the worker gets then in place of `secrets`: the variables by which the
        provider's own client library finds the endpoint, and its token.
        """
        return endpoint.variables

    async def attempt(
        self, view: TaskView, session: Session, limits: Limits, sink: Sink, workspace: Workspace
    ) -> AgentReport:
        """Run one worker.

        Raises:
            AgentError: the worker broke the protocol, fell over or left without an end.
        """
        log = workspace.native / "worker.stderr.log"
        through = workspace.endpoint
        secrets = self.secrets() if through is None else self.secrets_through(through)
        settings = self.settings(view) if through is None else self.settings_through(view, through)
        worker = Worker(
            argv=self.command(),
            env=_environment(workspace, secrets),
            readable=self.readable(),
            told={**secrets, **settings},
        )
        async with held(worker, session, workspace) as start:
            with log.open("wb") as stderr:
                owned = await self._spawn(start, workspace, stderr)
            talk = _Talk(owned, sink, workspace)
            order = _order(self.setup.model, view, start.session, limits, workspace, settings)
            try:
                await start.settle()
                return await _within_memory(talk.attempt(order), owned, limits.memory_gb)
            except AgentError as error:
                raise AgentError(f"{error}{_tail(log)}") from error
            finally:
                await end(owned)

    async def _spawn(self, start: Held, workspace: Workspace, stderr: BinaryIO) -> Owned:
        with start.handing_over():
            return await spawn(
                start.argv,
                owner=workspace.owner,
                kind="worker",
                env=start.env,
                cwd=workspace.scratch,
                stdin=PIPE,
                stdout=PIPE,
                stderr=stderr,
                pass_fds=start.pass_fds,
            )


def _environment(workspace: Workspace, secrets: Mapping[str, str]) -> dict[str, str]:
    passed = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    return {**passed, "TMPDIR": str(workspace.scratch), **secrets}


async def _within_memory(
    talking: Coroutine[Any, Any, AgentReport], owned: Owned, limit_gb: float | None
) -> AgentReport:
    """What the talk comes to, unless the worker's session uses more than it may before.

    Raises:
        AgentError: it used more; the caller ends its whole group.
    """
    talk = asyncio.ensure_future(talking)
    try:
        while not (await asyncio.wait({talk}, timeout=limit_gb and MEMORY_LOOK_S))[0]:
            used_gb = await asyncio.to_thread(memory_gb, owned.pgid)
            if limit_gb is not None and used_gb > limit_gb:
                raise AgentError(
                    f"worker: used {used_gb:.2f} GB of memory, {limit_gb:g} are allowed"
                )
        return talk.result()
    finally:
        if not talk.done():
            talk.cancel()
            await asyncio.wait({talk})


class _Talk:
    """One conversation with one worker."""

    def __init__(self, owned: Owned, sink: Sink, workspace: Workspace) -> None:
        self._owned = owned
        self._sink = sink
        self._native = workspace.native / "steps.jsonl"
        self._n = 0
        self._buffer = bytearray()
        self._stop: Literal["step_limit", "time_limit", "budget_limit"] | None = None
        self._told = False
        self._made = time.monotonic()
        self._order_s = 0.0

    async def attempt(self, order: Attempt) -> AgentReport:
        try:
            first = await asyncio.wait_for(self._receive(), READY_S)
        except TimeoutError:
            raise AgentError(f"worker: not ready within {READY_S:g} s") from None
        if not isinstance(first, Ready):
            raise AgentError(f"worker: began with '{first.type}', not with ready")
        self._order_s = time.monotonic() - self._made
        await self._send(order)
        while not isinstance(message := await self._receive(), End):
            await self._handle(message)
        with suppress(BrokenPipeError, ConnectionResetError):
            # A worker that left right after its end has said all that counts.
            await self._send(Exit())
            with suppress(TimeoutError):
                await asyncio.wait_for(self._owned.process.wait(), EXIT_S)
        return self._report(message)

    def _report(self, message: End) -> AgentReport:
        return AgentReport(
            status=self._stop or message.status,
            answer=message.answer,
            claimed_success=message.claimed_success,
            reason=message.reason,
            usage=message.usage,
            errors=message.errors,
        )

    async def _handle(self, message: FromWorker) -> None:
        if isinstance(message, Heartbeat):
            self._sink.alive()
        elif isinstance(message, UsageSoFar):
            try:
                self._sink.usage(message.usage)
            except Stopped as stopped:
                # The worker hears of it with the answer to what it says next.
                self._stop = self._stop or stopped.status
        elif isinstance(message, (Action, StepDone)):
            self._n += 1
            if message.n != self._n:
                raise AgentError(f"worker: message {message.n} where {self._n} was due")
            await self._record(message)
            await self._send(Recorded(n=message.n, stop=self._stop))
            self._told = self._stop is not None
        else:
            raise AgentError(f"worker: '{message.type}' out of order")

    async def _record(self, message: Action | StepDone) -> None:
        if isinstance(message, StepDone):
            if message.native is not None:
                with self._native.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(message.native, ensure_ascii=False) + "\n")
            if message.thought:
                await self._sink.thought(message.thought, native_index=message.index)
            return
        if self._told:
            raise AgentError("worker: went on after it was told to stop")
        try:
            await self._sink.action(
                self._timed(message.call), target_id=message.focus, native_index=message.index
            )
        except Stopped as stopped:
            self._stop = stopped.status

    def _timed(self, call: Call) -> Call:
        """The call on the attempt's clock, which began before the worker was started."""
        times = {
            name: round(value + self._order_s, 3)
            for name, value in (("t0", call.t0), ("t1", call.t1))
            if value is not None
        }
        return call.model_copy(update=times)

    async def _send(self, message: Record) -> None:
        stdin = self._owned.process.stdin
        assert stdin is not None
        stdin.write(canonical_json(message.as_json()).encode() + b"\n")
        await stdin.drain()

    async def _receive(self) -> FromWorker:
        line = await self._line()
        try:
            return FROM_WORKER.validate_json(line)
        except ValidationError as error:
            problem = error.errors()[0]
            place = ".".join(str(part) for part in problem["loc"])
            shown = line[:80].decode(errors="replace")
            raise AgentError(
                f"worker: not a message ({place} {problem['msg']}): {shown}"
            ) from error

    async def _line(self) -> bytes:
        stdout = self._owned.process.stdout
        assert stdout is not None
        while (cut := self._buffer.find(b"\n")) < 0:
            if len(self._buffer) > MAX_LINE_BYTES:
                raise AgentError(f"worker: a line of more than {MAX_LINE_BYTES} bytes")
            chunk = await stdout.read(2**16)
            if not chunk:
                torn = " in the middle of a line" if self._buffer else ""
                status = await self._owned.process.wait()
                raise AgentError(f"worker: left without an end{torn} (exit status {status})")
            self._buffer += chunk
        line = bytes(self._buffer[:cut])
        del self._buffer[: cut + 1]
        return line


def _order(
    model: str | None,
    view: TaskView,
    session: Session,
    limits: Limits,
    workspace: Workspace,
    settings: Mapping[str, Any],
) -> Attempt:
    return Attempt(
        attempt=view.task_id,
        task=view,
        cdp_url=session.http_url,
        ws_url=session.ws_url,
        target_id=session.target_id,
        model=model,
        work=str(workspace.scratch),
        files=str(workspace.files),
        native=str(workspace.native),
        attachments=str(workspace.attachments),
        downloads=None if workspace.downloads is None else str(workspace.downloads),
        settings=dict(settings),
        limits=WorkerLimits(
            steps=limits.max_steps,
            seconds=limits.timeout_s,
            step_s=limits.step_timeout_s,
            cost_usd=limits.cost_usd,
        ),
    )


def _tail(log: Path) -> str:
    """The last line that a worker wrote to stderr, as a parenthesis."""
    lines = log.read_bytes()[-2000:].decode(errors="replace").strip().splitlines()
    if not lines:
        return ""
    last = lines[-1][:300]
    if last.startswith("ModuleNotFoundError"):
        last += (
            "; behind the guard a worker reads its own file, and what its agent's `readable` names"
        )
    return f" ({last})"
