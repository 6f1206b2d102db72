"""One try of one attempt: sites, browser, agent, evidence; then the trace is frozen."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from browseruse_bench.agents.base import Agent, AgentReport, Stopped, Workspace
from browseruse_bench.benchmarks.load import Benchmark
from browseruse_bench.browsers.base import Backend, Session, SessionRequest
from browseruse_bench.browsers.recorder import Recorder
from browseruse_bench.errors import AgentError, BenchError, BrowserError, SiteError
from browseruse_bench.records.data_info import Probe
from browseruse_bench.records.rubric import ProbeCheck, Rubric, StateCheck
from browseruse_bench.records.run import AttemptEntry, Run, Tokens
from browseruse_bench.records.task import Task
from browseruse_bench.records.trace import (
    BrowserId,
    Guard,
    Observation,
    Outcome,
    Step,
    Trace,
    Usage,
)
from browseruse_bench.runs.budget import unpriced
from browseruse_bench.runs.metering import Metered, Metering
from browseruse_bench.runs.recording import RecordingSink
from browseruse_bench.runs.workspace import Place, Places
from browseruse_bench.sites.process import Lease, SitePool
from browseruse_bench.store.redact import Redaction, Redactor
from browseruse_bench.store.run_folder import RunFolder
from browseruse_bench.store.trace_folder import freeze, put_evidence

GRACE_S = 5.0
"""How long an agent that was told to end may take to do so."""
DIED = "the browser died"
"""Begins the reason of a try whose browser died while the agent had it."""
CLOSED = "the agent closed its browser"
_CONTROL_S = 1.0
"""How long a browser without an agent must live to show that browsers can."""
_REPORTED = TypeAdapter(tuple[tuple[Usage, ...], tuple[str, ...]])


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What all attempts of a run share."""

    run: Run
    folder: RunFolder
    benchmark: Benchmark
    agent: Agent
    backend: Backend
    sites: SitePool
    fence: bool
    storage_state: Path | None
    retries: int
    places: Places
    redactor: Redactor
    stop: asyncio.Event
    """Set when the command is to end: what ends now may have been ended with it."""
    metering: Metering | None = None
    """The way to the agent's model; None: it asks none, or at its provider."""


@dataclass(frozen=True, kw_only=True)
class Owed:
    """An attempt that is to be made."""

    task: Task
    attempt: int
    n_deaths: int = 0
    """Tries so far whose browser died while the agent had it."""


@dataclass(frozen=True, kw_only=True)
class _Seen:
    """What one try left behind, before it is frozen."""

    outcome: Outcome
    steps: tuple[Step, ...]
    final: Step
    usage: tuple[Usage, ...]
    browser: BrowserId
    guard: Guard
    errors: tuple[str, ...]
    wall_s: float
    """From the moment the browser was the agent's to its end: no set-up of sites."""
    began: bool = True
    """Whether the agent began, and so may have asked a model."""
    reported: tuple[Usage, ...] | None = None
    """What the agent said of its use, where the gateway counted `usage`."""


async def attempt_once(setting: Setting, owed: Owed, try_: int) -> AttemptEntry:
    """Make one try and freeze its trace; returns the journal's line for it.

    Whatever the agent, the browser or a site does ends in an outcome of the trace. Only the
    harness's own store can raise (a full disk, say).
    """
    task = owed.task
    path = setting.folder.try_path(task.task_id, owed.attempt, try_)
    path.mkdir(parents=True)
    started = datetime.now(UTC)
    with setting.places.make() as place:
        for attachment in task.attachments:
            source = setting.benchmark.path / "data" / attachment.name
            target = place.workspace.attachments / attachment.name
            target.parent.mkdir(parents=True, exist_ok=True)
            await asyncio.to_thread(shutil.copyfile, source, target)
        seen = await _try(setting, owed, path, place, scope=f"{task.task_id}#{owed.attempt}.{try_}")
        trace = _trace(setting, owed, try_, started, seen)

        def settle() -> str:
            place.keep(path, setting.redactor)
            return freeze(path, trace, seen.steps)

        trace_key = await asyncio.to_thread(settle)
    costs = [usage.cost_usd for usage in trace.usage]
    if trace.agent.model is not None and seen.began and not costs and trace.usage_by is None:
        costs = [None]  # a model was asked, and nobody said for how much
    return AttemptEntry.model_validate(
        {
            "task_id": task.task_id,
            "attempt": owed.attempt,
            "try": try_,
            "task_key": trace.task_key,
            "trace_key": trace_key,
            "status": trace.outcome.status,
            "reason": trace.outcome.reason,
            "n_steps": trace.n_steps,
            "wall_s": trace.wall_s,
            "cost_usd": None if None in costs else sum(c for c in costs if c is not None),
            "tokens": Tokens.of(trace.usage) if trace.usage or not costs else None,
            "usage_by": trace.usage_by,
            "at": datetime.now(UTC).isoformat(timespec="milliseconds"),
        }
    )


def _trace(setting: Setting, owed: Owed, try_: int, started: datetime, seen: _Seen) -> Trace:
    run = setting.run
    return Trace.model_validate(
        {
            "run_id": run.run_id,
            "benchmark": setting.benchmark.name,
            "split": run.identity.split,
            "task_id": owed.task.task_id,
            "attempt": owed.attempt,
            "try": try_,
            "task_key": owed.task.view.key,
            "agent": run.identity.agent,
            "browser": seen.browser,
            "limits": run.identity.limits,
            "sites": run.identity.sites,
            "stand_in": bool(run.stand_in_hosts),
            "guard": seen.guard,
            "started_at": started.isoformat(timespec="milliseconds"),
            "wall_s": round(seen.wall_s, 3),
            "n_steps": len(seen.steps),
            "outcome": _clean(seen.outcome, setting.redactor),
            "usage": seen.usage,
            "usage_by": None if seen.reported is None else "gateway",
            "reported_usage": seen.reported,
            "final": seen.final,
            "errors": tuple(map(setting.redactor.said, seen.errors)),
        }
    )


def _clean(outcome: Outcome, redactor: Redactor) -> Outcome:
    """The outcome without secrets; the answer is evidence, and loses own ones only."""
    answer = None if outcome.answer is None else redactor.own(outcome.answer)
    return outcome.model_copy(update={"reason": redactor.said(outcome.reason), "answer": answer})


async def _try(setting: Setting, owed: Owed, path: Path, place: Place, *, scope: str) -> _Seen:
    """Carry out one try; a failure of browser, site or harness is an infrastructure outcome."""
    redaction = Redaction(setting.redactor)
    sink = RecordingSink(None, setting.run.identity.limits, redaction=redaction)
    session: Session | None = None
    live: _Live | None = None
    try:
        async with AsyncExitStack() as stack:
            lease = await stack.enter_async_context(setting.sites.lease())
            login = setting.storage_state if owed.task.requires_login else None
            folders = place.workspace
            request = replace(
                _request(setting, lease, place.browser, login),
                readable=(folders.files, folders.attachments, folders.scratch),
            )
            session = await stack.enter_async_context(setting.backend.open(request))
            recorder = None
            if session.ws_url is not None:
                recorder = await Recorder.connect(session.ws_url, path, redaction)
                stack.push_async_callback(recorder.close)
            sink = RecordingSink(recorder, setting.run.identity.limits, redaction=redaction)
            evidence = _Evidence(path, recorder, lease, request.downloads, setting.redactor)
            metered = None
            if setting.metering is not None:
                metered = await stack.enter_async_context(setting.metering.attempt(scope, sink))
            live = _Live(setting, owed, session, recorder, sink, place, evidence, metered)
            return await live.seen()
    except (BrowserError, SiteError, OSError) as error:
        failed = _failed(sink, session, f"{type(error).__name__}: {error}")
    except Exception as error:  # noqa: BLE001  a fault of the harness is never the agent's
        failed = _failed(sink, session, f"the harness failed: {type(error).__name__}: {error}")
    return replace(failed, began=live is not None)


def _request(setting: Setting, lease: Lease, work: Path, login: Path | None) -> SessionRequest:
    return SessionRequest(
        hidden=(setting.benchmark.path.resolve(), setting.folder.path.resolve()),
        work=work,
        downloads=work / "downloads",
        owner=setting.folder.path,
        hosts=lease.hosts,
        fence=setting.fence,
        storage_state=login,
    )


def _failed(sink: RecordingSink, session: Session | None, reason: str) -> _Seen:
    now = sink.now()
    return _Seen(
        outcome=Outcome(status="infrastructure", reason=reason),
        steps=tuple(sink.steps),
        final=Step(index=len(sink.steps) + 1, t0=now, t1=now, errors=(reason,)),
        usage=sink.all_usage,
        reported=None if sink.counted is None else sink.reported,
        browser=session.browser if session else BrowserId(kind="none started"),
        guard=(
            session.watch.fill(session.guard)
            if session
            else Guard(level="none", reason="no browser started")
        ),
        errors=(reason,),
        wall_s=now,
    )


@dataclass(frozen=True)
class _Live:
    """One try while its browser is there."""

    setting: Setting
    owed: Owed
    session: Session
    recorder: Recorder | None
    sink: RecordingSink
    place: Place
    evidence: _Evidence
    metered: Metered | None

    async def seen(self) -> _Seen:
        """Let the agent work, and take the last evidence.

        Raises:
            BrowserError, SiteError, OSError: the harness could not see or keep it, although
                the browser lives.
        """
        report: AgentReport | None = None
        wall_s: float | None = None
        errors: tuple[str, ...] = ()
        try:
            report, outcome = await self._supervised()
            wall_s = self.sink.now()
            outcome = await self._settled(outcome)
            final, errors = await self.evidence.final(
                self.sink, self.setting.benchmark, self.owed.task.task_id
            )
        except (BrowserError, OSError) as error:
            if not self._lost():
                raise
            now = self.sink.now()
            if self.metered is not None:
                await self.metered.settle()
            errors = (f"{type(error).__name__}: {error}",)
            final = Step(index=len(self.sink.steps) + 1, t0=now, t1=now, errors=errors)
            outcome = Outcome(status="infrastructure", reason=DIED)
        if self._lost():
            death = await self._death()
            # An agent that ended well and then closed its browser keeps what it reported.
            ended_well = report is not None and outcome.status != "agent_error"
            if not (ended_well and death.reason == CLOSED):
                outcome = death
        return _Seen(
            outcome=outcome,
            steps=tuple(self.sink.steps),
            final=final,
            usage=self._usage(report),
            reported=None if self.sink.counted is None else self._reported_usage(report),
            browser=self.session.browser,
            guard=self.session.watch.fill(self.session.guard),
            errors=(*(report.errors if report else ()), *errors),
            wall_s=self.sink.now() if wall_s is None else wall_s,
        )

    async def _settled(self, outcome: Outcome) -> Outcome:
        """How the try ended, once none of its calls goes on."""
        if self.metered is None:
            return outcome
        await self.metered.settle()
        if self.sink.fault is not None:
            raise self.sink.fault
        return self.metered.outcome(outcome)

    def _usage(self, report: AgentReport | None) -> tuple[Usage, ...]:
        if self.sink.counted is not None:
            return self.sink.counted
        return self._reported_usage(report)

    def _reported_usage(self, report: AgentReport | None) -> tuple[Usage, ...]:
        return report.usage if report and report.usage else self.sink.reported

    def _lost(self) -> bool:
        """Whether the browser is gone, by the harness's own socket and process."""
        if self.recorder is None:
            return False
        return self.recorder.lost or not self.setting.backend.alive(self.session)

    async def _death(self) -> Outcome:
        """Whose fault it is that the browser is gone.

        An agent must not leave the denominator, or earn another try, by ending its browser:
        one that was closed in order was closed by the agent, and one that died on every try,
        two at least, died of the agent if a browser without one lives.
        """
        if await self._was_closed():
            return Outcome(status="agent_error", reason=CLOSED)
        n_deaths = self.owed.n_deaths + 1
        if n_deaths >= max(2, self.setting.retries + 1) and await self._another_lives():
            reason = f"{DIED} on each of {n_deaths} tries, and one without an agent lives"
            return Outcome(status="agent_error", reason=reason)
        return Outcome(status="infrastructure", reason=DIED)

    async def _was_closed(self) -> bool:
        """Whether the browser ended in order, and not with the whole command."""
        backend, deadline = self.setting.backend, self.sink.now() + GRACE_S
        # The socket closes a little before the process ends, which is seen before its status.
        while (status := backend.exit_status(self.session)) is None:
            if self.sink.now() > deadline:
                return False
            await asyncio.sleep(0.05)
        if status != 0:
            return False
        await asyncio.sleep(0.5)  # at a shutdown of the machine all get their signal at once
        return not self.setting.stop.is_set()

    async def _another_lives(self) -> bool:
        request = _request(self.setting, self.evidence.lease, self.setting.places.folder(), None)
        try:
            async with self.setting.backend.open(request) as other:
                await asyncio.sleep(_CONTROL_S)
                return self.setting.backend.alive(other)
        except (BrowserError, OSError):
            return False

    async def _supervised(self) -> tuple[AgentReport | None, Outcome]:
        """Let the agent work until it ends, reaches a limit, falls silent or loses its browser."""
        attempt = asyncio.ensure_future(
            _attempted(
                self.setting.agent.attempt(
                    self.owed.task.view,
                    self.session,
                    self.setting.run.identity.limits,
                    self.sink,
                    self._workspace,
                )
            )
        )
        try:
            while not attempt.done():
                left_s, reached = self._left()
                if left_s <= 0:
                    return None, reached
                if self._lost():
                    return None, Outcome(status="infrastructure", reason=DIED)
                await asyncio.wait({attempt}, timeout=min(left_s, 0.5))
            if self.sink.fault is not None:
                raise self.sink.fault
            return self._reported(attempt)
        finally:
            if not attempt.done():
                attempt.cancel()
                # An agent that ignores its cancellation is left behind: its browser and its
                # processes end with the session.
                await asyncio.wait({attempt}, timeout=GRACE_S)

    @property
    def _workspace(self) -> Workspace:
        endpoint = None if self.metered is None else self.metered.endpoint
        return replace(self.place.workspace, endpoint=endpoint)

    def _left(self) -> tuple[float, Outcome]:
        """Seconds to the nearest limit, and the outcome when it is reached."""
        limits, sink = self.setting.run.identity.limits, self.sink
        ends = [
            (limits.timeout_s - sink.now(), "time_limit", f"{limits.timeout_s:g} s"),
            (
                limits.step_timeout_s - sink.silent_s,
                "time_limit",
                f"{limits.step_timeout_s:g} s without a step",
            ),
        ]
        if sink.spent_s is not None:
            # It was told, and may take as long to end in order.
            ends.append((GRACE_S - sink.spent_s, "budget_limit", sink.spent or ""))
        left_s, status, reason = min(ends)
        return left_s, Outcome.model_validate({"status": status, "reason": reason})

    def _reported(self, attempt: asyncio.Future[AgentReport]) -> tuple[AgentReport | None, Outcome]:
        """What the agent says of its end, unless the harness knows better."""
        report, outcome = _reported(attempt)
        usage = report.usage if report and self.sink.counted is None else ()
        spent = self.sink.spent or unpriced(usage, self.setting.run.identity.limits.cost_usd)
        if spent and outcome.status in ("finished", "gave_up", "budget_limit"):
            outcome = Outcome(status="budget_limit", reason=spent)
        return report, outcome


async def _attempted(attempt: Awaitable[AgentReport]) -> AgentReport:
    """What the agent reports; its exits are errors of its own, and end nothing but itself."""
    try:
        return await attempt
    except (SystemExit, KeyboardInterrupt) as error:
        raise AgentError(f"{type(error).__name__}: {error}") from error


def _reported(attempt: asyncio.Future[AgentReport]) -> tuple[AgentReport | None, Outcome]:
    if attempt.cancelled():
        return None, Outcome(status="agent_error", reason="the agent cancelled itself")
    error = attempt.exception()
    if isinstance(error, Stopped):
        return None, Outcome(status=error.status)
    if isinstance(error, BenchError):
        return None, Outcome(status="agent_error", reason=str(error))
    if error is not None:
        return None, Outcome(status="agent_error", reason=f"{type(error).__name__}: {error}")
    report = attempt.result()
    if not isinstance(report, AgentReport):  # pyright: ignore[reportUnnecessaryIsInstance]
        reason = f"the agent's report is not an AgentReport but {type(report).__name__}"
        return None, Outcome(status="agent_error", reason=reason)
    if report.status == "infrastructure":
        # It would be owed again: that is for the harness alone to say.
        reason = f"the agent reported a failure of the infrastructure: {report.reason}"
        return report, Outcome(status="agent_error", reason=reason.removesuffix(": "))
    try:
        _REPORTED.validate_python((report.usage, report.errors))
        outcome = Outcome(
            status=report.status,
            reason=report.reason,
            answer=report.answer,
            self_reported_success=report.claimed_success,
        )
    except ValidationError as invalid:
        problem = invalid.errors()[0]
        where = ".".join(str(part) for part in problem["loc"])
        reason = f"the agent's report is not well formed: {where}: {problem['msg']}"
        return None, Outcome(status="agent_error", reason=reason)
    return report, outcome


@dataclass(frozen=True)
class _Evidence:
    """Collects what only the live page and the live sites can show."""

    path: Path
    recorder: Recorder | None
    lease: Lease
    downloads: Path
    redactor: Redactor

    async def final(
        self, sink: RecordingSink, benchmark: Benchmark, task_id: str
    ) -> tuple[Step, tuple[str, ...]]:
        """The last state with downloads, probes and snapshots, and what went wrong with them."""
        step = await sink.final()
        rubric = benchmark.rubric(task_id)
        observations = list(step.observations)
        errors = list(step.errors)
        if self.recorder is not None:
            probes = await self.recorder.run_probes(
                sink.last_target, wanted_probes(rubric, benchmark.info.probes)
            )
            observations += probes.observations
            errors += probes.errors
        observations += await asyncio.to_thread(self._downloads)
        for host in self.lease.hosts:
            if wants_snapshot(rubric, host):
                observations += await self._snapshot(host)
        final = step.model_copy(
            update={"observations": tuple(observations), "errors": tuple(errors)}
        )
        return final, tuple(errors)

    async def _snapshot(self, host: str) -> list[Observation]:
        target = self.path / f"{host}.snapshot"
        if not await self.lease.snapshot(host, target):
            return []
        content = self.redactor.own_bytes(target.read_bytes())
        ref = await asyncio.to_thread(put_evidence, self.path, content, "sqlite")
        target.unlink()
        return [Observation(kind="state", ref=ref, url=host)]

    def _downloads(self) -> list[Observation]:
        if not self.downloads.is_dir():
            return []
        told = self.recorder.downloads if self.recorder is not None else ()
        address = {d.name: self.redactor.own(d.url) for d in told if d.state == "completed"}
        whole = [p for p in sorted(self.downloads.iterdir()) if p.suffix != ".crdownload"]
        return [
            Observation(
                kind="download",
                ref=put_evidence(
                    self.path,
                    self.redactor.own_bytes(file.read_bytes()),
                    self.redactor.own(file.suffix[1:21]) or "bin",
                ),
                name=self.redactor.own(file.name),
                url=address.get(file.name),
            )
            for file in whole
            if file.is_file() and not file.is_symlink()
        ]


def wanted_probes(rubric: Rubric | None, probes: Mapping[str, Probe]) -> dict[str, Probe]:
    """The probes that a rubric's checks name; all of them where there is no rubric."""
    if rubric is None:
        return dict(probes)
    named = {i.check.name for i in rubric.items if isinstance(i.check, ProbeCheck)}
    return {name: probe for name, probe in probes.items() if name in named}


def wants_snapshot(rubric: Rubric | None, host: str) -> bool:
    """Whether a site's state is evidence: a check names it, or there is no rubric yet."""
    if rubric is None:
        return True
    return any(isinstance(i.check, StateCheck) and i.check.site == host for i in rubric.items)
