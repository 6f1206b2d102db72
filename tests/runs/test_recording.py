from dataclasses import dataclass

import pytest

from browseruse_bench.agents.base import Stopped
from browseruse_bench.records.trace import Call, Limits, Observation, Page, Usage
from browseruse_bench.runs.recording import RecordingSink


@dataclass
class Seen:
    page: Page
    observations: tuple[Observation, ...] = ()
    errors: tuple[str, ...] = ()


class Recorder:
    def __init__(self):
        self.asked = []

    async def observe(self, target_id):
        self.asked.append(target_id)
        n = len(self.asked)
        return Seen(
            Page(target_id="T", url=f"http://x/{n}"),
            (Observation(kind="text", ref=f"{n}.txt"),),
        )


class Full:
    async def observe(self, target_id):
        raise OSError("disk full")


def call(name="click"):
    return Call(name=name, t0=0.0, t1=0.1)


async def test_each_action_is_a_step_with_the_state_after_it():
    """BL030: the state that follows the last action is always there."""
    sink = RecordingSink(Recorder(), Limits())
    await sink.action(call("a"), target_id="T")
    await sink.action(call("b"))
    final = await sink.final()
    assert [step.page_after.url for step in sink.steps] == ["http://x/1", "http://x/2"]
    assert sink.steps[1].page_before.url == "http://x/1"
    assert final.page_after.url == "http://x/3"
    assert final.index == 3


async def test_the_limit_counts_actions_and_the_last_one_is_still_recorded():
    sink = RecordingSink(Recorder(), Limits(max_steps=2))
    await sink.action(call())
    await sink.action(call())
    with pytest.raises(Stopped) as stopped:
        await sink.action(call())
    assert stopped.value.status == "step_limit"
    assert len(sink.steps) == 3


async def test_the_limit_counts_turns_of_a_framework_not_their_actions():
    sink = RecordingSink(Recorder(), Limits(max_steps=1))
    for _ in range(5):
        await sink.action(call(), native_index=1)
    with pytest.raises(Stopped):
        await sink.action(call(), native_index=2)


async def test_a_thought_belongs_to_the_first_action_of_its_turn():
    sink = RecordingSink(Recorder(), Limits())
    await sink.action(call(), native_index=1)
    await sink.action(call(), native_index=2)
    await sink.action(call(), native_index=2)
    await sink.thought("two", native_index=2)
    assert [step.thought and step.thought.text for step in sink.steps] == [None, "two", None]


async def test_a_fault_while_recording_is_the_harnesss_own():
    sink = RecordingSink(Full(), Limits())
    with pytest.raises(OSError, match="disk full"):
        await sink.action(call())
    assert isinstance(sink.fault, OSError)


async def test_the_last_word_on_a_models_use_counts():
    sink = RecordingSink(None, Limits())
    sink.usage(Usage(model="m", output_tokens=1))
    sink.usage(Usage(model="m", output_tokens=5))
    assert [u.output_tokens for u in sink.all_usage] == [5]
