"""Reading a verdict from a judge's prose. BL032, BL033, BL034, and what a peer got wrong."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from browseruse_bench.eval.stated import stated

WORDS = {"success": 1, "failure": 0}


def read(reply):
    return stated(reply, "status", WORDS).value


@pytest.mark.parametrize(
    "reply",
    [
        'Thoughts: all done.\nStatus: "success"',
        "Thoughts: all done. Status: success",
        "**Status**: success",
        "**Status: success**",
        "Status: **Success**.",
        "status : SUCCESS",
        "Status: `success`\n",
        "Status: “success”",
        "Status:\tsuccess  ",
        "STATUS = success",
        "Status:\nsuccess",
        "The page says Status: Processing, as wanted.\nStatus: success",
        "Ｓtatus： success",
        "<think>Status: failure, at first</think>\nStatus: success",
        'I answer with Status: "success" or "failure".\nThoughts: fine.\nStatus: "success"',
    ],
)
def test_a_verdict_is_read_in_whatever_dress(reply):
    assert read(reply) == 1


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "The agent did it with success.",
        "Status: unsuccessful",
        "Status: UNSUCCESSFUL",
        "Status: not success",
        "Status: partial success",
        "Status: success?",
        "Status: success/failure",
        'Status: "success" or "failure"',
        "Status: met",
        "Status: Erfolg",
        "Status: success\nStatus: failure",
        "Status: failure\nOn second thoughts: Status: success",
        "<think>Status: success",
        "<think>Status: success</think>",
        "<THINKING>\nStatus: success\n</THINKING> I am not sure.",
        "Substatus: success",
        "Status success",
        "Status:",
        "The page says Status: Processing, Status: failure\nStatus: success",
        '{"Status": "success", "note": 1}',
    ],
)
def test_what_is_not_exactly_a_verdict_is_none_and_never_a_failure(reply):
    found = stated(reply, "status", WORDS)
    assert found.value is None
    assert found.why_not


@given(st.text(), st.sampled_from(["success", "failure"]), st.text())
def test_text_around_a_verdict_never_turns_it_over(before, verdict, after):
    found = read(f"{before}\nStatus: {verdict}\n{after}")
    assert found in (WORDS[verdict], None)
