"""The journal holds the tokens of each attempt, by kind; what nobody told is unknown, not 0."""

import pytest

from browseruse_bench.agents.base import AgentReport
from browseruse_bench.records.run import Tokens
from browseruse_bench.records.trace import Usage
from tests.runs.doubles import Echo

USED = (
    Usage(model="a", uncached_tokens=1, cached_tokens=2, reasoning_tokens=3, output_tokens=4),
    Usage(model="b", uncached_tokens=10, output_tokens=40),
)


class Spender(Echo):
    """Reports what it used of two models."""

    async def attempt(self, view, session, limits, sink, workspace):
        return AgentReport(status="finished", answer="x", usage=USED)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"agent": "tests.runs.test_tokens:Spender", "model": "openai:m"},
         Tokens(uncached=11, cached=2, reasoning=3, output=44)),
        ({"model": "openai:m"}, None),
        ({}, Tokens()),
    ],
    ids=["told", "of a model and not told", "of no model"],
)  # fmt: skip
def test_an_attempt_settles_with_its_tokens(benchmark, carry_out, options, expected):
    benchmark("a")
    planned, _, _ = carry_out(**options)
    (entry,) = planned.folder.attempts().values()
    assert entry.tokens == expected
