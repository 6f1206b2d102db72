"""A trace is frozen as the harness stored it."""

import pytest

from browseruse_bench.errors import DataError
from browseruse_bench.records.trace import (
    AgentId,
    BrowserId,
    Guard,
    Limits,
    Observation,
    Outcome,
    Step,
    Trace,
)
from browseruse_bench.store.trace_folder import TraceFolder, freeze, put_evidence


def trace(ref):
    return Trace(
        run_id="r", benchmark="b", split="All", task_id="t", attempt=1, task_key="k",
        agent=AgentId(name="a", version="1"), browser=BrowserId(kind="none"), limits=Limits(),
        guard=Guard(level="none"), started_at="2026-01-01T00:00:00+00:00", wall_s=1, n_steps=0,
        outcome=Outcome(status="finished"),
        final=Step(index=1, t0=0, t1=0, observations=(Observation(kind="text", ref=ref),)),
    )  # fmt: skip


def test_evidence_that_an_agent_wrote_over_before_the_end_is_refused(tmp_path):
    """The manifest alone would call it genuine: it is made when the attempt is over."""
    ref = put_evidence(tmp_path, b"what the page showed", "txt")
    (tmp_path / "evidence" / ref).write_bytes(b"the answer")
    key = freeze(tmp_path, trace(ref), ())
    with pytest.raises(DataError, match=f"{ref}: changed since the harness stored it"):
        TraceFolder.open(tmp_path, key)


def test_evidence_as_the_harness_stored_it_is_read(tmp_path):
    ref = put_evidence(tmp_path, b"what the page showed", "txt")
    key = freeze(tmp_path, trace(ref), ())
    assert TraceFolder.open(tmp_path, key).evidence(ref) == b"what the page showed"
