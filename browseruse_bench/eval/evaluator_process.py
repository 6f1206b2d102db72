"""A benchmark's own evaluator, held in processes that may hang, crash and print as they like."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import os
import re
import signal
import sys
from collections import deque
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, cast

from pydantic import ValidationError

from browseruse_bench.errors import BenchError, BudgetError, ConfigError, EvaluatorError
from browseruse_bench.eval import matcher
from browseruse_bench.eval.judges import Case, Verdict
from browseruse_bench.models.base import CallError, Model, Request
from browseruse_bench.records.base import content_key
from browseruse_bench.records.trace import Usage, summed

RESULT_SCHEMA = 1
"""Version of the `result` that an evaluator is given."""
_SAMPLES = 10_000
"""Sample numbers that one grading may use; the next grading has the next ones."""
LINE_LIMIT = 64 * 1024 * 1024
_STDERR_LINES = 40
_SECRET_NAME = re.compile("key|token|secret|pass|credential|cookie|auth|dsn", re.IGNORECASE)
_SECRET_VALUE = re.compile(r"://[^/\s:@]*:[^/\s@]+@")


def clean_environment(environment: dict[str, str]) -> dict[str, str]:
    """The environment without variables that look like keys, tokens or passwords."""
    return {
        name: value
        for name, value in environment.items()
        if not _SECRET_NAME.search(name) and not _SECRET_VALUE.search(value)
    }


@dataclass(frozen=True, kw_only=True)
class EvaluatorSpec:
    """Which evaluator, and how long it may take."""

    target: str
    """ "module:Class", or the absolute path of an evaluator.py."""
    fallback: Path | None = None
    """Used where the module of `target` does not exist."""
    timeout_s: float = 120
    """The longest that one call may take."""
    start_timeout_s: float = 60


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """What an evaluator process says about itself when it is ready."""

    name: str
    identity: str
    note: str


class _Gone(Exception):  # noqa: N818  a state of the process, turned into a verdict
    """The process ended or was ended; the message says how."""


class EvaluatorProcess:
    """One process with the evaluator in it; a new one is started after a hang or a crash."""

    def __init__(self, spec: EvaluatorSpec) -> None:
        """Nothing is started yet."""
        self._spec = spec
        self._process: asyncio.subprocess.Process | None = None
        self._drain: asyncio.Task[None] | None = None
        self._stderr: deque[str] = deque(maxlen=_STDERR_LINES)
        self._n = 0
        self.loaded: Loaded | None = None

    async def start(self) -> Loaded:
        """Start the process and load the evaluator.

        Raises:
            EvaluatorError: it cannot be loaded, or its source changed since the first start.
        """
        arguments = [self._spec.target]
        if self._spec.fallback is not None:
            arguments.append(str(self._spec.fallback))
        self._stderr.clear()
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "browseruse_bench.eval.serve", *arguments),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=clean_environment(dict(os.environ)),
            start_new_session=True,
            limit=LINE_LIMIT,
        )
        self._drain = asyncio.create_task(self._keep_stderr(self._process))
        try:
            async with asyncio.timeout(self._spec.start_timeout_s):
                message = await self._receive()
        except TimeoutError:
            await self.close()
            raise EvaluatorError(
                f"evaluator '{self._spec.target}': not ready after {self._spec.start_timeout_s:g} s"
            ) from None
        except _Gone as gone:
            raise EvaluatorError(f"evaluator '{self._spec.target}': {gone}") from None
        return await self._greet(message)

    async def _greet(self, message: dict[str, Any]) -> Loaded:
        if "fatal" in message:
            await self.close()
            raise EvaluatorError(str(message["fatal"]))
        loaded = Loaded(**message["ready"])
        if self.loaded is not None and loaded.identity != self.loaded.identity:
            await self.close()
            raise EvaluatorError(
                f"evaluator '{loaded.name}': its source changed while it was judging; run "
                "`bubench eval` again"
            )
        self.loaded = loaded
        return loaded

    async def evaluate(
        self, task_id: str, result: dict[str, Any], asked: Asked | None = None
    ) -> Verdict:
        """What the evaluator says of one attempt; every failure of it is a verdict too.

        Args:
            task_id: of the attempt.
            result: as documented at BaseEvaluator.
            asked: answers what it asks a model, and keeps account; None: no model was named.

        Raises:
            BudgetError: the budget does not allow what it asked; there is no verdict.
        """
        asked = asked or Asked(None)
        try:
            if self._process is None:
                await self.start()
            async with asyncio.timeout(self._spec.timeout_s) as clock:
                message = await self._ask(task_id, result, asked, clock)
        except TimeoutError:
            await self.close()
            return _failed(f"no reply within {self._spec.timeout_s:g} s", self._tail())
        except _Gone as gone:
            return _failed(str(gone), self._tail())
        except EvaluatorError as error:
            return _failed(str(error), self._tail())
        except BaseException:
            # A reply to this call must not be read as that to the next one.
            await self.close()
            raise
        return asked.settled(verdict_of(message))

    async def _ask(
        self, task_id: str, result: dict[str, Any], asked: Asked, clock: asyncio.Timeout
    ) -> dict[str, Any]:
        assert self._process is not None
        assert self._process.stdin is not None
        self._n += 1
        request = {"n": self._n, "task_id": task_id, "result": result}
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            await self._process.stdin.drain()
        except OSError:
            raise await self._gone() from None
        message = await self._reply(asked, clock)
        if message.get("n") != self._n:
            await self.close()
            raise _Gone("the evaluator's process answered out of order")
        return message

    async def _reply(self, asked: Asked, clock: asyncio.Timeout) -> dict[str, Any]:
        """The next message that is no question; questions are answered meanwhile, and what the
        model takes for them is not the evaluator's time.
        """
        loop = asyncio.get_running_loop()
        left_s = 0.0
        reading = asyncio.ensure_future(self._receive())
        answering: set[asyncio.Task[None]] = set()
        try:
            while True:
                done, _ = await asyncio.wait(
                    {reading, *answering}, return_when=asyncio.FIRST_COMPLETED
                )
                ended = done & answering
                answering -= ended
                for task in ended:
                    task.result()
                if ended and not answering:
                    clock.reschedule(loop.time() + left_s)
                if reading not in done:
                    continue
                message = reading.result()
                if "ask" not in message or message.get("n") != self._n:
                    return message
                if not answering:
                    left_s = (clock.when() or loop.time()) - loop.time()
                    clock.reschedule(None)
                answering.add(asyncio.create_task(self._answer(message, asked)))
                reading = asyncio.ensure_future(self._receive())
        finally:
            for task in (reading, *answering):
                task.cancel()

    async def _answer(self, message: dict[str, Any], asked: Asked) -> None:
        answer = {"n": self._n, "ask": message["ask"], **await asked.answer(message["request"])}
        process = self._process
        if process is not None and process.stdin is not None:
            with contextlib.suppress(OSError):
                process.stdin.write(json.dumps(answer).encode() + b"\n")
                await process.stdin.drain()

    async def _receive(self) -> dict[str, Any]:
        assert self._process is not None
        assert self._process.stdout is not None
        try:
            line = await self._process.stdout.readline()
            message: Any = json.loads(line) if line.endswith(b"\n") else None
        except ValueError:
            await self.close()
            raise _Gone(f"the reply is not one JSON line below {LINE_LIMIT} bytes") from None
        if not isinstance(message, dict):
            raise await self._gone()
        return cast("dict[str, Any]", message)

    async def _gone(self) -> _Gone:
        process = self._process
        assert process is not None
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), 5)
        status = process.returncode
        await self.close()
        how = (
            f"was killed by {signal.Signals(-status).name}"
            if status is not None and status < 0
            else f"ended with status {status}"
        )
        return _Gone(f"the evaluator's process {how}")

    async def _keep_stderr(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None
        while chunk := await process.stderr.read(65536):
            self._stderr.extend(chunk.decode(errors="replace").splitlines())

    def _tail(self) -> str:
        return "\n".join(line[:2000] for line in self._stderr)

    async def close(self) -> None:
        """End the process and all that it started; nothing happens if there is none."""
        process, drain = self._process, self._drain
        self._process = self._drain = None
        if process is None or drain is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), 5)
            await asyncio.wait_for(drain, 1)
        drain.cancel()


class Asked:
    """What an evaluator asked a model for one verdict, and what that cost."""

    def __init__(self, model: Model | None, *, sample: int = 0, restricted: bool = False) -> None:
        """Answer by `model`, None: none was named; `sample` is the number of the grading."""
        self._model = model
        self._sample = sample
        self._restricted = restricted
        self._usage: list[Usage] = []
        self._calls: list[str] = []
        self._failed: list[str] = []

    async def answer(self, wire: Any) -> dict[str, Any]:
        """The reply as plain JSON, or what went wrong.

        Raises:
            BudgetError: nothing may be asked any more.
        """
        if self._model is None:
            why = "this evaluator asks a model: name it with --judge provider:name"
            return {"error": why, "kind": "config"}
        try:
            request = Request.model_validate(wire)
            own = request.sample + _SAMPLES * self._sample
            reply = await self._model.ask(
                request.model_copy(update={"sample": own}),
                purpose="evaluator",
                restricted=self._restricted,
            )
        except BudgetError:
            raise
        except BenchError as error:
            if isinstance(error, CallError):
                self._keep(error.usage, error.call)
            self._failed.append(str(error))
            kind = "config" if isinstance(error, ConfigError) else "model"
            return {"error": str(error), "kind": kind}
        except ValidationError as error:
            return {"error": f"not a request: {error}", "kind": "config"}
        self._keep(reply.usage, reply.call)
        return {"reply": reply.as_json()}

    def _keep(self, usage: Usage | None, call: str | None) -> None:
        if usage is not None:
            self._usage.append(usage)
        if call is not None:
            self._calls.append(call)

    def settled(self, verdict: Verdict) -> Verdict:
        """The verdict with what was asked for it."""
        details = dict(verdict.details)
        if self._calls:
            details["calls"] = self._calls
        if self._failed:
            details["failed_calls"] = self._failed
        return replace(verdict, details=details, usage=summed(self._usage))


def verdict_of(message: dict[str, Any]) -> Verdict:
    """The verdict that a reply of the evaluator's process stands for."""
    if "error" in message:
        if message.get("kind") == "no_reference":
            return Verdict(reason="no_reference", message=message["error"])
        if message.get("kind") == "model":
            return Verdict(reason="judge_fault", message=message["error"])
        return _failed(message["error"], message["traceback"])
    value: dict[str, Any] = message["value"]
    problem = reply_problem(value)
    if problem is not None:
        return _failed(f"malformed result: {problem}", json.dumps(value)[:4000])
    details = dict(value.get("evaluation_details") or {})
    known = ("predicted_label", "score", "evaluation_details")
    extras = {key: inner for key, inner in value.items() if key not in known}
    if extras:
        details["extra"] = extras
    return Verdict(
        label=cast("Literal[0, 1]", int(value["predicted_label"])),
        score=float(value["score"]),
        details=details,
    )


def reply_problem(value: dict[str, Any]) -> str | None:
    """Why a reply of evaluate_task is not well formed; None if it is.

    `predicted_label` is 0, 1, true or false, `score` a finite number of 0..100 (a bool is
    none), `evaluation_details` a dict or absent. No text is read as a number.
    """
    for key in ("predicted_label", "score"):
        if key not in value:
            return f"{key}: missing"
    label, score = value["predicted_label"], value["score"]
    if not isinstance(label, int) or label not in (0, 1):
        return f"predicted_label: {json.dumps(label)[:80]} is not 0 or 1"
    if isinstance(score, bool) or not isinstance(score, int | float):
        return f"score: {json.dumps(score)[:80]} is not a number"
    if isinstance(score, float) and not math.isfinite(score):
        return f"score: {json.dumps(score)[:80]} is not a number"
    if not 0 <= score <= 100:
        return f"score: {json.dumps(score)[:80]} is not within 0..100"
    details = value.get("evaluation_details")
    if details is not None and not isinstance(details, dict):
        return f"evaluation_details: {type(details).__name__}, not a dict"
    return None


def _failed(message: str, log: str) -> Verdict:
    line = " ".join(message.split())[:500]
    return Verdict(
        reason="evaluator_error",
        message=line,
        details={"traceback": log.strip()[-8000:]} if log.strip() else {},
    )


def result_of(case: Case) -> dict[str, Any]:
    """The `result` that evaluate_task is given; documented at BaseEvaluator."""
    trace = case.trace.trace
    return {
        "task_id": case.task.task_id,
        "task": case.task.row,
        "answer": trace.outcome.answer,
        "status": trace.outcome.status,
        "steps": [step.model_dump(mode="json") for step in case.trace.steps],
        "final": trace.final.model_dump(mode="json"),
        "trace_dir": str(case.trace.path.resolve()),
        "metrics": {
            "n_steps": trace.n_steps,
            "wall_s": trace.wall_s,
            "cost_usd": case.cost_usd,
            "usage": [usage.model_dump(mode="json") for usage in trace.usage],
        },
    }


class EvaluatorJudge:
    """Asks the benchmark's own evaluator, in as many processes as may work at a time."""

    basis: Literal["evaluator"] = "evaluator"

    def __init__(
        self, spec: EvaluatorSpec, *, n_processes: int = 1, model: Model | None = None
    ) -> None:
        """Nothing is started yet; `start` comes first. `model` answers what it asks."""
        self._model = model
        self._all = [EvaluatorProcess(spec) for _ in range(n_processes)]
        # Last in, first out: what one process can do starts no second one.
        self._idle: asyncio.LifoQueue[EvaluatorProcess] = asyncio.LifoQueue()
        for process in reversed(self._all):
            self._idle.put_nowait(process)
        self._loaded: Loaded | None = None

    async def start(self) -> Loaded:
        """Load the evaluator once, so that a broken one is known before anything is judged.

        Raises:
            ConfigError: it cannot be loaded.
        """
        try:
            loaded = await self._all[0].start()
        except EvaluatorError as error:
            raise ConfigError(str(error)) from error
        for process in self._all:
            process.loaded = loaded
        self._loaded = loaded
        return loaded

    @property
    def protocol(self) -> str:
        """`evaluator:<class>`."""
        assert self._loaded is not None
        return f"evaluator:{self._loaded.name}"

    @property
    def judge_key(self) -> str:
        """Of the evaluator's sources, the matcher that it may call and the result's form."""
        assert self._loaded is not None
        key = ["evaluator", self._loaded.identity, matcher.VERSION, RESULT_SCHEMA]
        # Whether it asks a model is not known before it does.
        return content_key(key if self._model is None else [*key, self._model.id.key])

    async def judge(self, case: Case) -> Verdict:
        """The evaluator's verdict; any failure of it leaves the attempt ungraded."""
        process = await self._idle.get()
        try:
            asked = Asked(self._model, sample=case.sample)
            return await process.evaluate(case.task.task_id, result_of(case), asked)
        finally:
            self._idle.put_nowait(process)

    async def close(self) -> None:
        """End all processes."""
        for process in self._all:
            await process.close()
