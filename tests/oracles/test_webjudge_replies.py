"""1,536 raw replies of three judges, read by code and, for some, by a person."""

import hashlib
import json
import random
from pathlib import Path

import pytest

from browseruse_bench.eval.stated import stated

pytestmark = pytest.mark.oracle
LABELS = json.loads(Path(__file__).with_name("webjudge_labels.json").read_text())
"""First 16 hex digits of a reply's SHA-256 -> what it says. Drawn by random.Random(20261130) and
read before this parser was written. Two strategies (the last of the two words in the text, what
stands behind every label) differ on one reply, which tells of a page's own "Status:"; it was read
too."""
WORDS = {"success": "success", "failure": "failure"}


@pytest.fixture(scope="module")
def replies(data):
    path = data / "webjudge-on-arb" / "raw_judge_replies.jsonl"
    return [json.loads(line)["content"] for line in path.read_text().splitlines()]


def read(reply):
    return stated(reply, "status", WORDS).value


def test_every_label_that_a_person_gave_is_what_the_parser_reads(replies):
    by_hash = {hashlib.sha256(reply.encode()).hexdigest()[:16]: reply for reply in replies}
    assert set(LABELS) <= set(by_hash)
    assert len(LABELS) == 201
    assert {key: read(by_hash[key]) for key in LABELS} == LABELS


def test_all_replies_are_read(replies):
    assert len(replies) == 1536
    assert [read(reply) for reply in replies].count(None) == 0


MUTATIONS = {
    "bold": lambda reply, verdict: reply.replace("Status:", "**Status**:"),
    "bold verdict": lambda reply, verdict: (
        f"{reply[: reply.rindex('Status')]}Status: **{verdict}**"
    ),
    "typographic quotes": lambda reply, verdict: (
        f"{reply[: reply.rindex('Status')]}Status: “{verdict}”"
    ),
    "upper case": lambda reply, verdict: reply.upper(),
    "echo of the prompt": lambda reply, verdict: (
        f'Format: Thoughts: <your reasoning>\nStatus: "success" or "failure"\n\n{reply}'
    ),
    "opposite draft in reasoning": lambda reply, verdict: (
        f"<think>Status: {opposite(verdict)}</think>\n{reply}"
    ),
    "carriage returns": lambda reply, verdict: reply.replace("\n", "\r\n"),
}
UNREADABLE = {
    "opposite draft in the open": lambda reply, verdict: f"Status: {opposite(verdict)}\n{reply}",
    "reasoning that never ends": lambda reply, verdict: f"<think>{reply}",
    "hedged": lambda reply, verdict: f"{reply[: reply.rindex('Status')]}Status: partial {verdict}",
    "negated": lambda reply, verdict: f"{reply[: reply.rindex('Status')]}Status: not {verdict}",
    "cut": lambda reply, verdict: reply[: reply.rindex("Status")],
    "another word": lambda reply, verdict: f"{reply[: reply.rindex('Status')]}Status: un{verdict}",
}


def opposite(verdict):
    return {"success": "failure", "failure": "success"}[verdict]


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_reply_in_another_dress_says_the_same(replies, name):
    for reply in random.Random(1).sample(replies, 300):
        verdict = read(reply)
        assert read(MUTATIONS[name](reply, verdict)) == verdict, reply


def test_a_page_that_has_such_a_label_too_never_turns_a_verdict_over(replies):
    read_all_the_same = 0
    for reply in random.Random(3).sample(replies, 300):
        found = read(f"It saw Status: Processing there.\n{reply}")
        assert found in (read(reply), None)
        read_all_the_same += found is not None
    assert read_all_the_same > 250


@pytest.mark.parametrize("name", UNREADABLE)
def test_a_reply_that_is_spoilt_is_ungraded_and_never_the_opposite(replies, name):
    for reply in random.Random(2).sample(replies, 300):
        assert read(UNREADABLE[name](reply, read(reply))) is None, reply
