"""Records of the real library (see make_records.py), and what is made of them."""

import json
from pathlib import Path

import pytest

from browseruse_bench.agents.browser_use import native

RECORDS = Path(__file__).with_name("records")
NAMES = ("finished", "failed", "stuck", "vanished", "model_error", "timed_out", "crashed")


def record(name):
    return json.loads((RECORDS / f"{name}.json").read_text())


def ended(name, **changed):
    stored = record(name)
    given = {
        "n_steps": stored.get("n_steps", len(stored["history"])),
        "max_steps": stored["limits"]["max_steps"],
        "run_error": stored.get("run_error"),
        "stopped": stored.get("stopped"),
    }
    return native.end(stored["history"], **{**given, **changed})


def calls(name):
    return [call for step in native.steps(record(name)["history"]) for call in step.calls]


@pytest.mark.parametrize("name", ["finished", "failed", "stuck", "vanished", "model_error"])
def test_the_status_is_that_which_the_attempt_had(name):
    outcome = record(name)["outcome"]
    end = ended(name)
    assert end.status == outcome["status"]
    assert end.answer == outcome.get("answer")
    assert end.claimed_success == outcome.get("self_reported_success")
    assert end.reason == outcome["reason"]


@pytest.mark.parametrize(
    ("name", "status", "answer", "claim"),
    [
        ("finished", "finished", "There are 17.", True),
        ("failed", "gave_up", "Too many for me.", False),
        ("stuck", "gave_up", None, None),
        ("vanished", "step_limit", None, None),
        ("model_error", "agent_error", None, None),
    ],
)
def test_ends_are_told_apart(name, status, answer, claim):
    end = ended(name)
    assert (end.status, end.answer, end.claimed_success) == (status, answer, claim)


def test_the_last_text_is_no_answer_unless_the_agent_was_done_bl008():
    """BL008: 4 steps of 40, the last of which waited."""
    history = [turn(n, {"wait": {"seconds": 3}}, "Waited for 3 seconds") for n in range(1, 5)]
    end = native.end(history, n_steps=4, max_steps=40)
    assert end.answer is None
    assert end.status == "agent_error"
    assert end.reason == "ended without being done, after 4 of 40 steps"
    assert len(native.steps(history)) == 4


@pytest.mark.parametrize(
    ("success", "claim"), [(True, True), (False, False), (None, None), ("yes", None)]
)
def test_what_the_agent_claims_stays_three_valued_bl009(success, claim):
    """BL009: None is never turned into True."""
    done = turn(1, {"done": {"text": "x"}}, "x", is_done=True, success=success)
    assert native.end([done], n_steps=1, max_steps=9).claimed_success is claim


def test_the_step_limit_is_found_by_counting_bl027():
    """BL027: without an error entry for it, and only where it was really reached."""
    history = [turn(n, {"wait": {"seconds": 1}}, "Waited") for n in (1, 2, 3)]
    assert native.end(history, n_steps=3, max_steps=3).status == "step_limit"
    assert native.end(history, n_steps=3, max_steps=4).status == "agent_error"


def test_the_librarys_own_entry_for_the_limit_is_no_step():
    stored = record("vanished")["history"]
    assert stored[-1]["metadata"] is None
    assert [step.index for step in native.steps(stored)] == [1, 2, 3, 4]


def test_a_click_on_a_vanished_element_is_an_error_although_the_library_says_none_bl029():
    """BL029."""
    stored = record("vanished")["history"]
    (clicked,) = stored[1]["result"]
    assert clicked.get("error") is None
    first, *others = calls("vanished")
    assert first.error is None
    assert others
    assert all("999999 not available" in call.error for call in others if call.name == "click")


@pytest.mark.parametrize(
    ("said", "failed"),
    [
        ("Element index 12 not found", True),
        ("Element index 3 not available - page may have changed. Try refreshing", True),
        ("Text 'kettle' not found or not visible on page", True),
        ('Clicked a "404 not found"', False),
        ("Found 3 elements", False),
        ("The element of surprise: Element index 12 not found", False),
    ],
)
def test_only_the_librarys_own_words_make_an_error(said, failed):
    call = native.call({"click": {"index": 12}}, {"extracted_content": said})
    assert (call.error == said) is failed
    assert call.result == said


def test_a_model_that_failed_has_the_providers_words():
    end = ended("model_error")
    assert end.reason == "the model failed 4 times in a row: the account has no credit"
    turns = native.steps(record("model_error")["history"])
    assert [turn.model_failed for turn in turns] == [False, True, True, True, True]
    assert turns[1].calls == ()


def test_a_model_that_never_answered_is_an_error_also_at_the_step_limit():
    history = record("model_error")["history"][1:]
    assert native.end(history, n_steps=4, max_steps=4).status == "agent_error"


def test_the_reason_of_a_stuck_agent_is_its_failing_action():
    assert ended("stuck").reason.startswith("stuck: 4 failing steps in a row: ")
    assert ended("stuck").reason.endswith("Element with index 1 does not exist.")


def test_the_turn_that_was_cut_off_is_not_in_the_record_of_a_timed_out_attempt():
    (step,) = native.steps(record("timed_out")["history"])
    assert [call.name for call in step.calls] == ["navigate"]
    end = ended("timed_out", stopped="time_limit")
    assert (end.status, end.answer) == ("time_limit", None)
    assert record("timed_out")["outcome"]["status"] == "time_limit"


def test_a_crashed_worker_leaves_the_turns_that_it_told_of():
    (step,) = native.steps(record("crashed")["history"])
    assert step.calls[0].arguments == {"url": "http://docs.test/", "new_tab": False}
    assert record("crashed")["outcome"]["status"] == "agent_error"


def test_what_the_library_raised_is_an_error_of_the_agent():
    end = ended("timed_out", run_error="RuntimeError: no browser")
    assert (end.status, end.reason) == ("agent_error", "RuntimeError: no browser")


def test_a_call_is_named_neutrally_and_says_what_it_acted_on():
    first, second, third = calls("finished")
    assert (first.name, first.native_name) == ("navigate", "navigate")
    assert (second.name, second.target) == ("click", 'a "Grouping"')
    assert third.name == "done"


def test_only_actions_that_were_carried_out_are_calls():
    """The library drops the rest of a turn when the page changes."""
    item = turn(1, {"click": {"index": 1}}, "Clicked")
    item["model_output"]["action"].append({"click": {"index": 2}})
    (step,) = native.steps([item])
    assert [call.arguments["index"] for call in step.calls] == [1]


def test_a_thought_is_all_that_the_model_said():
    output = {"thinking": "T", "evaluation_previous_goal": "E", "memory": "", "next_goal": "N"}
    assert native.thought(output) == "T\nEvaluation: E\nNext goal: N"
    assert native.thought({"memory": ""}) is None
    assert native.thought(None) is None


@pytest.mark.parametrize("name", NAMES)
def test_no_record_names_a_folder_of_the_machine(name):
    text = (RECORDS / f"{name}.json").read_text()
    assert "/tmp/" not in text
    assert "/home/" not in text


def test_an_empty_history_is_an_error_and_has_no_answer():
    end = native.end([], n_steps=0, max_steps=5)
    assert (end.status, end.answer, end.claimed_success) == ("agent_error", None, None)
    assert native.steps([]) == ()


def turn(number, action, said, **result):
    return {
        "model_output": {"action": [action], "next_goal": "go on"},
        "result": [{"extracted_content": said, **result}],
        "state": {"interacted_element": [None]},
        "metadata": {"step_number": number},
    }
