"""A builder of frozen traces: say what the agent did and what the harness saw.

def test_x(make_trace):
    page = make_trace.page
    folder = make_trace(
        page("http://shop.test/", "Kettle $30", navigate="http://shop.test/"),
        page("http://shop.test/cart", "Total $30", click={"css": "#buy"}),
        answer="The total is $30",
    )
"""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from browseruse_bench.records.trace import (
    AgentId,
    BrowserId,
    Call,
    Guard,
    Limits,
    Observation,
    Outcome,
    Page,
    Step,
    Trace,
)
from browseruse_bench.store.trace_folder import TraceFolder, freeze, put_evidence


@dataclass(frozen=True)
class Seen:
    """One step: the calls of the agent, and the page that the harness saw afterwards."""

    url: str
    text: str | None
    calls: tuple[Call, ...]
    options: dict[str, Any] = field(default_factory=dict)


def page(url: str, text: str | None, *calls: Call, **actions: Any) -> Seen:
    """A step with whole calls, and calls as name=argument (a text or a dict of arguments).

    `_target`, `_document`, `_by` ("agent") and `_before` (text before the calls) set what
    their names say, `_shot` (bytes) is a picture of the page and `_title` its title.
    `text=None` leaves the page without a text observation.
    """
    options = {k: actions.pop(k) for k in list(actions) if k.startswith("_")}
    named = tuple(call(name, argument) for name, argument in actions.items())
    return Seen(url, text, (*calls, *named), options)


def call(name: str, argument: Any = None, **more: Any) -> Call:
    """A call with its arguments: a dict, or one value under "value"."""
    arguments = argument if isinstance(argument, dict) else {"value": argument}
    return Call(name=name, arguments={} if argument is None else arguments, **more)


def sqlite_bytes(script: str, scratch: Path) -> bytes:
    """The bytes of a database that a SQL script makes."""
    path = scratch / "made.sqlite"
    path.unlink(missing_ok=True)
    connection = sqlite3.connect(path)
    connection.executescript(script)
    connection.close()
    return path.read_bytes()


class _Builder:
    def __init__(self, folder: Path, scratch: Path) -> None:
        self.folder = folder
        self.scratch = scratch

    def step(self, index: int, seen: Seen, before: Page | None) -> Step:
        target = seen.options.get("_target", "T1")
        title = seen.options.get("_title", "")
        made = Page(target_id=target, url=seen.url, title=title, tabs=(seen.url,))
        document = seen.options.get("_document")
        if document is not None:
            made = made.model_copy(update={"document_id": document})
        observations = [
            Observation(
                kind="text",
                ref=put_evidence(self.folder, text.encode(), "txt"),
                url=seen.url,
                timing=timing,
                captured_by=seen.options.get("_by", "harness"),
            )
            for timing, text in (("before", seen.options.get("_before")), ("after", seen.text))
            if text is not None
        ]
        if (shot := seen.options.get("_shot")) is not None:
            observations.append(
                Observation(
                    kind="screenshot",
                    ref=put_evidence(self.folder, shot, "png"),
                    url=seen.url,
                    captured_by=seen.options.get("_by", "harness"),
                )
            )
        return Step(
            index=index,
            t0=float(index),
            t1=float(index) + 0.5,
            target_id=target,
            calls=seen.calls,
            page_before=before,
            page_after=made,
            observations=tuple(observations),
        )

    def extra(
        self, states: dict[str, str | bytes], probes: dict[str, Any], downloads: dict[str, bytes]
    ) -> list[Observation]:
        found: list[Observation] = []
        for host, state in states.items():
            content = sqlite_bytes(state, self.scratch) if isinstance(state, str) else state
            ref = put_evidence(self.folder, content, "sqlite")
            found.append(Observation(kind="state", ref=ref, url=host))
        for name, value in probes.items():
            ref = put_evidence(self.folder, json.dumps(value).encode(), "json")
            found.append(Observation(kind="probe", ref=ref, name=name))
        for name, content in downloads.items():
            ref = put_evidence(self.folder, content, "bin")
            found.append(
                Observation(kind="download", ref=ref, name=name, url=f"http://shop.test/{name}")
            )
        return found


class MakeTrace:
    """Calling it freezes one more trace; `page` and `call` say what is in it."""

    page = staticmethod(page)
    call = staticmethod(call)

    def __init__(self, tmp_path: Path) -> None:
        self.tmp_path = tmp_path
        self.count = 0

    def __call__(
        self,
        *steps: Seen,
        final: Seen | None = None,
        states: dict[str, str | bytes] | None = None,
        probes: dict[str, Any] | None = None,
        downloads: dict[str, bytes] | None = None,
        files: dict[str, bytes] | None = None,
        folder: Path | None = None,
        **trace: Any,
    ) -> TraceFolder:
        """Freeze a trace.

        Without `final` the last page is seen once more at the end, as a recorder would.
        `states` are SQL scripts (or the bytes of a database) by host, `trace` are fields of
        the trace or of its outcome: answer, status, evidence_policy, task_id, ...
        """
        self.count += 1
        where = folder or self.tmp_path / f"trace-{self.count}"
        where.mkdir(parents=True, exist_ok=True)
        builder = _Builder(where, self.tmp_path)
        made: list[Step] = []
        for index, seen in enumerate(steps, 1):
            made.append(builder.step(index, seen, made[-1].page_after if made else None))
        end = Step(index=len(made) + 1, t0=99, t1=99)
        if last := final or (replace(steps[-1], calls=()) if steps else None):
            before = made[-1].page_after if made else None
            end = builder.step(len(made) + 1, replace(last, options=_lasting(last)), before)
        extra = builder.extra(states or {}, probes or {}, downloads or {})
        end = end.model_copy(update={"observations": (*end.observations, *extra)})
        for name, content in (files or {}).items():
            path = where / "files" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        key = freeze(where, _trace(trace, made, end), made)
        return TraceFolder.open(where, key)


def _lasting(seen: Seen) -> dict[str, Any]:
    return {k: v for k, v in seen.options.items() if k != "_before"}


def _trace(fields: dict[str, Any], steps: list[Step], final: Step) -> Trace:
    outcome = Outcome(
        status=fields.pop("status", "finished"),
        answer=fields.pop("answer", None),
        reason=fields.pop("reason", ""),
        self_reported_success=fields.pop("claimed", None),
    )
    common: dict[str, Any] = {
        "run_id": "run-1",
        "benchmark": "Made",
        "split": "All",
        "task_id": "task-1",
        "attempt": 1,
        "task_key": "0" * 64,
        "agent": AgentId(name="scripted", version="1"),
        "browser": BrowserId(kind="none"),
        "limits": Limits(),
        "guard": Guard(level="none"),
        "started_at": "2026-01-01T00:00:00Z",
        "wall_s": 1,
    }
    return Trace(**common | fields, n_steps=len(steps), outcome=outcome, final=final)


@pytest.fixture
def make_trace(tmp_path: Path) -> MakeTrace:
    """Freezes traces made of `make_trace.page(...)` steps."""
    return MakeTrace(tmp_path)
