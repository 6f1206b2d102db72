"""Whatever text an agent hands in, the attempt settles, and its trace can be read again."""

import json

import pytest

from browseruse_bench.agents.base import AgentReport
from browseruse_bench.records.trace import Call
from browseruse_bench.store.trace_folder import TraceFolder
from tests.runs.doubles import Echo

TEXTS = ["a\u2028b\u2029c\u0085d", "a\r\nb\rc\vd\fe", "a\x1cb\x1dc\x1ed", "\x00", "\ufeff{}", ""]


class Speaks(Echo):
    """Says what the task's text holds, as JSON, in a call, its result and its answer."""

    name = "speaks"

    async def attempt(self, view, session, limits, sink, workspace):
        text = json.loads(view.text)
        if isinstance(text, str):
            await sink.action(Call(name="type", arguments={"text": text}, result=text))
        return AgentReport(status="finished", answer=text, claimed_success=None)


@pytest.fixture
def traces(benchmark, carry_out):
    def made(*texts):
        benchmark(*(json.dumps(text) for text in texts))
        planned, _, _ = carry_out(agent="tests.runs.test_strange_words:Speaks")
        return [
            TraceFolder.open(planned.folder.try_path(*key, entry.try_), entry.trace_key)
            for key, entry in planned.folder.attempts().items()
        ]

    return made


def test_every_kind_of_line_end_in_a_text_comes_back_as_it_was(traces):
    """A trace is read line by line, and only a line feed ends a line."""
    found = {t.trace.outcome.answer: t.steps[0].calls[0].result for t in traces(*TEXTS)}
    assert found == {text: text for text in TEXTS}


@pytest.mark.parametrize("answer", [42, ["a"], {"a": 1}])
def test_an_answer_that_is_no_text_is_the_agents_error_and_the_others_go_on(traces, answer):
    outcomes = {t.trace.task_id: t.trace.outcome for t in traces("fine", answer, "fine too")}
    assert {task_id: o.status for task_id, o in outcomes.items()} == {
        "t1": "finished", "t2": "agent_error", "t3": "finished",
    }  # fmt: skip
    assert outcomes["t2"].answer is None


def test_half_a_surrogate_pair_is_written_as_a_question_mark(traces):
    """It is no character, so no file in UTF-8 can hold it."""
    found = {t.trace.task_id: t.trace.outcome for t in traces("fine", "half \ud83d of one", "too")}
    assert {task_id: (o.status, o.answer) for task_id, o in found.items()} == {
        "t1": ("finished", "fine"),
        "t2": ("finished", "half ? of one"),
        "t3": ("finished", "too"),
    }
