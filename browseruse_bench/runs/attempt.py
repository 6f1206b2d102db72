"""One try of one attempt: sites, browser, agent, evidence; then the trace is frozen."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Awaitable, Generator, Mapping
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
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
from browseruse_bench.runs.recording import RecordingSink
from browseruse_bench.sites.process import Lease, SitePool
from browseruse_bench.store.processes import owned_folder
from browseruse_bench.store.run_folder import RunFolder
from browseruse_bench.store.trace_folder import freeze, put_evidence

GRACE_S = 5.0
"""How long an agent that was told to end may take to do so."""


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


@dataclass(frozen=True, kw_only=True)
class Owed:
    """An attempt that is to be made."""

    task: Task
    attempt: int


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


async def attempt_once(setting: Setting, owed: Owed, try_: int) -> AttemptEntry:
    """Make one try and freeze its trace; returns the journal's line for it.

    Whatever the agent, the browser or a site does ends in an outcome of the trace. Only the
    harness's own store can raise (a full disk, say).
    """
    task = owed.task
    path = setting.folder.try_path(task.task_id, owed.attempt, try_)
    path.mkdir(parents=True)
    started = datetime.now(UTC)
    with _workspace(setting, task, path) as (workspace, work):
        seen = await _try(setting, owed, path, workspace, work)
    trace = Trace.model_validate(
        {
            "run_id": setting.run.run_id,
            "benchmark": setting.benchmark.name,
            "split": setting.run.identity.split,
            "task_id": task.task_id,
            "attempt": owed.attempt,
            "try": try_,
            "task_key": task.view.key,
            "agent": setting.run.identity.agent,
            "browser": seen.browser,
            "limits": setting.run.identity.limits,
            "sites": setting.run.identity.sites,
            "stand_in": bool(setting.run.stand_in_hosts),
            "guard": seen.guard,
            "started_at": started.isoformat(timespec="milliseconds"),
            "wall_s": round(seen.wall_s, 3),
            "n_steps": len(seen.steps),
            "outcome": seen.outcome,
            "usage": seen.usage,
            "final": seen.final,
            "errors": seen.errors,
        }
    )
    trace_key = await asyncio.to_thread(freeze, path, trace, seen.steps)
    costs = [usage.cost_usd for usage in trace.usage]
    if trace.agent.model is not None and not costs:
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
            "at": datetime.now(UTC).isoformat(timespec="milliseconds"),
        }
    )


@contextmanager
def _workspace(setting: Setting, task: Task, path: Path) -> Generator[tuple[Workspace, Path]]:
    """The folders of a try; the temporary ones are gone afterwards, empty kept ones too.

    The temporary folder has a short path of its own: Chromium puts a socket in it, whose
    path the system limits to about 100 bytes.
    """
    with owned_folder(setting.folder.path) as work:
        workspace = Workspace(
            files=path / "files",
            native=path / "native",
            scratch=work / "scratch",
            attachments=work / "attachments",
            owner=setting.folder.path,
        )
        for folder in (workspace.files, workspace.native, workspace.scratch, workspace.attachments):
            folder.mkdir()
        for attachment in task.attachments:
            target = workspace.attachments / attachment.name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(setting.benchmark.path / "data" / attachment.name, target)
        yield workspace, work
        for folder in (workspace.files, workspace.native):
            _tidy(folder)


def _tidy(folder: Path) -> None:
    """Leave what can be frozen: files and folders, no links and pipes, no empty folder.

    The agent may have removed the folder, or put anything else in its place.
    """
    if folder.is_symlink() or not folder.is_dir():
        folder.unlink(missing_ok=True)
        return
    for path in list(folder.rglob("*")):
        if path.is_symlink() or not (path.is_dir() or path.is_file()):
            path.unlink()
    if not any(folder.iterdir()):
        folder.rmdir()


async def _try(setting: Setting, owed: Owed, path: Path, workspace: Workspace, work: Path) -> _Seen:
    """Carry out one try; a failure of browser, site or harness is an infrastructure outcome."""
    sink = RecordingSink(None, setting.run.identity.limits)
    session: Session | None = None
    try:
        async with AsyncExitStack() as stack:
            lease = await stack.enter_async_context(setting.sites.lease())
            request = SessionRequest(
                work=work,
                downloads=work / "downloads",
                owner=setting.folder.path,
                hosts=lease.hosts,
                fence=setting.fence,
                storage_state=setting.storage_state if owed.task.requires_login else None,
            )
            session = await stack.enter_async_context(setting.backend.open(request))
            recorder = None
            if session.ws_url is not None:
                recorder = await Recorder.connect(session.ws_url, path)
                stack.push_async_callback(recorder.close)
            sink = RecordingSink(recorder, setting.run.identity.limits)
            report, outcome = await _supervised(setting, owed, session, sink, workspace, recorder)
            wall_s = sink.now()
            evidence = _Evidence(path, recorder, lease, request.downloads)
            final, errors = await evidence.final(sink, setting.benchmark, owed.task.task_id)
            if recorder is not None and _lost(setting, session, recorder):
                outcome = Outcome(status="infrastructure", reason="the browser died")
    except (BrowserError, SiteError, OSError) as error:
        return _failed(sink, session, f"{type(error).__name__}: {error}")
    return _Seen(
        outcome=outcome,
        steps=tuple(sink.steps),
        final=final,
        usage=report.usage if report and report.usage else sink.all_usage,
        browser=session.browser,
        guard=session.watch.fill(session.guard),
        errors=(*(report.errors if report else ()), *errors),
        wall_s=wall_s,
    )


def _failed(sink: RecordingSink, session: Session | None, reason: str) -> _Seen:
    now = sink.now()
    return _Seen(
        outcome=Outcome(status="infrastructure", reason=reason),
        steps=tuple(sink.steps),
        final=Step(index=len(sink.steps) + 1, t0=now, t1=now, errors=(reason,)),
        usage=sink.all_usage,
        browser=session.browser if session else BrowserId(kind="none started"),
        guard=(
            session.watch.fill(session.guard)
            if session
            else Guard(level="none", reason="no browser started")
        ),
        errors=(reason,),
        wall_s=now,
    )


def _lost(setting: Setting, session: Session, recorder: Recorder) -> bool:
    """Whether the browser is gone, by the harness's own socket and process."""
    return recorder.lost or not setting.backend.alive(session)


async def _supervised(
    setting: Setting,
    owed: Owed,
    session: Session,
    sink: RecordingSink,
    workspace: Workspace,
    recorder: Recorder | None,
) -> tuple[AgentReport | None, Outcome]:
    """Let the agent work until it ends, reaches a limit, falls silent or loses its browser."""
    limits = setting.run.identity.limits
    attempt = asyncio.ensure_future(
        _attempted(setting.agent.attempt(owed.task.view, session, limits, sink, workspace))
    )
    try:
        while not attempt.done():
            silent_s = time.monotonic() - sink.last_sign
            left_s = min(limits.timeout_s - sink.now(), limits.step_timeout_s - silent_s)
            if left_s <= 0:
                overall = sink.now() >= limits.timeout_s
                limit = (
                    f"{limits.timeout_s:g} s"
                    if overall
                    else f"{limits.step_timeout_s:g} s without a step"
                )
                return None, Outcome(status="time_limit", reason=limit)
            if recorder is not None and _lost(setting, session, recorder):
                return None, Outcome(status="infrastructure", reason="the browser died")
            await asyncio.wait({attempt}, timeout=min(left_s, 0.5))
        if sink.fault is not None:
            raise sink.fault
        return _reported(attempt)
    finally:
        if not attempt.done():
            attempt.cancel()
            # An agent that ignores its cancellation is left behind: its browser and its
            # processes end with the session.
            await asyncio.wait({attempt}, timeout=GRACE_S)


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
        TypeAdapter(tuple[Usage, ...]).validate_python(report.usage)
        TypeAdapter(tuple[str, ...]).validate_python(report.errors)
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
        ref = await asyncio.to_thread(put_evidence, self.path, target.read_bytes(), "sqlite")
        target.unlink()
        return [Observation(kind="state", ref=ref, url=host)]

    def _downloads(self) -> list[Observation]:
        if not self.downloads.is_dir():
            return []
        whole = [p for p in sorted(self.downloads.iterdir()) if p.suffix != ".crdownload"]
        return [
            Observation(
                kind="download",
                ref=put_evidence(self.path, file.read_bytes(), file.suffix[1:21] or "bin"),
                name=file.name,
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
