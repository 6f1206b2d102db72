"""Whatever an agent does to itself and to its folders, it is its own error, and the run goes on."""

import asyncio
import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from browseruse_bench.agents.base import AgentReport
from browseruse_bench.records.trace import Call
from browseruse_bench.store.trace_folder import TraceFolder
from tests.runs.doubles import Echo

FINE = AgentReport(status="finished", answer="fine")


def _cancels_itself(workspace):
    raise asyncio.CancelledError


def _interrupts(workspace):
    raise KeyboardInterrupt


def _removes_its_folders(workspace):
    shutil.rmtree(workspace.files)
    shutil.rmtree(workspace.native)
    return FINE


def _removes_the_trace(workspace):
    shutil.rmtree(workspace.files.parent)
    return FINE


def _puts_a_link_in_place(workspace):
    workspace.files.rmdir()
    workspace.files.symlink_to(Path.cwd())
    return FINE


def _leaves_links_and_a_pipe(workspace):
    (workspace.files / "link").symlink_to("/etc/hosts")
    (workspace.files / "gone").symlink_to("nowhere")
    os.mkfifo(workspace.files / "pipe")
    return FINE


def _saves_a_manifest(workspace):
    (workspace.files / "MANIFEST.json").write_text("{}")
    return FINE


def _gives_a_file_a_name_of_no_encoding(workspace):
    Path(os.fsdecode(os.fsencode(workspace.files) + b"/\xff\n.txt")).write_text("x")
    return FINE


WAYS = {
    "exits": (lambda _: sys.exit(7), "agent_error"),
    "interrupts": (_interrupts, "agent_error"),
    "cancels itself": (_cancels_itself, "agent_error"),
    "reports a text": (lambda _: "fine", "agent_error"),
    "reports use that is none": (
        lambda _: AgentReport(status="finished", usage=("x",)),  # type: ignore[arg-type]
        "agent_error",
    ),
    "blames the infrastructure": (
        lambda _: AgentReport(status="infrastructure", answer="wrong"),
        "agent_error",
    ),
    "removes its folders": (_removes_its_folders, "finished"),
    "removes the trace": (_removes_the_trace, "finished"),
    "puts a link in place": (_puts_a_link_in_place, "finished"),
    "leaves links and a pipe": (_leaves_links_and_a_pipe, "finished"),
    "saves a manifest": (_saves_a_manifest, "finished"),
    "gives a file a name of no encoding": (_gives_a_file_a_name_of_no_encoding, "finished"),
}


class Hostile(Echo):
    """Does what the task's text names."""

    name = "hostile"

    async def attempt(self, view, session, limits, sink, workspace):
        await sink.action(Call(name="click"))
        return WAYS[view.text][0](workspace) if view.text in WAYS else FINE


@pytest.mark.parametrize("way", WAYS)
def test_it_settles_with_a_trace_that_can_be_read_and_the_next_task_is_made(
    benchmark, carry_out, way
):
    benchmark(way, "an honest task")
    planned, _, _ = carry_out(agent="tests.runs.test_hostile_agents:Hostile", concurrency=1)
    entries = planned.folder.attempts()
    assert {key[0]: e.status for key, e in entries.items()} == {
        "t1": WAYS[way][1], "t2": "finished",
    }  # fmt: skip
    for (task_id, number), entry in entries.items():
        TraceFolder.open(planned.folder.try_path(task_id, number, entry.try_), entry.trace_key)


def test_an_agent_that_blames_the_infrastructure_gets_no_second_try(benchmark, carry_out):
    benchmark("blames the infrastructure")
    planned, _, _ = carry_out(agent="tests.runs.test_hostile_agents:Hostile", retries=2)
    (entry,) = planned.folder.attempts().values()
    assert (entry.status, entry.try_) == ("agent_error", 1)


def test_what_a_model_cost_is_unknown_where_its_agent_does_not_say(benchmark, carry_out):
    benchmark("fine")
    planned, _, _ = carry_out(model="openai:gpt-x")
    (entry,) = planned.folder.attempts().values()
    assert entry.cost_usd is None


def test_a_file_named_like_the_manifest_is_frozen_too(benchmark, carry_out):
    benchmark("saves a manifest")
    planned, _, _ = carry_out(agent="tests.runs.test_hostile_agents:Hostile")
    path = planned.folder.try_path("t1", 1, 1)
    assert "files/MANIFEST.json" in json.loads((path / "MANIFEST.json").read_text())
