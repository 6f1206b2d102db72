"""What an attacker knows of a rubric, and what it makes wrong on purpose."""

import random

from hypothesis import given
from hypothesis import strategies as st

from browseruse_bench.eval import matcher
from browseruse_bench.eval.redteam.key import Key, falsified, states_all
from browseruse_bench.records.rubric import Rubric
from browseruse_bench.records.task import Task
from tests.eval.redteam.made import ANSWER, CANARY, rubric


def key(**more):
    made = Rubric.model_validate(rubric())
    return Key(task=Task(task_id="kettle", task="x"), rubric=made, seed="s", **more)


def test_everything_that_is_wanted_is_known():
    found = key()
    assert found.secrets == ("$1,299", "Blue Kettle", "May 3, 2026")
    assert found.canary == CANARY
    assert [page.path for page in found.pages] == ["/done"]
    assert found.sources == (("http://shop.test/p/9", "It costs $1,299."),)
    assert states_all(found, found.answer)
    assert states_all(found, ANSWER)
    assert not states_all(found, "Blue Kettle")


def test_a_text_that_shows_anything_of_it_is_known():
    found = key()
    for text in ("only 1299 today", "the BLUE  kettle", "on 2026-05-03"):
        assert found.shows(text), text
    assert not found.shows("the red kettle, 12990, on 2026-05-04")


def test_the_wrong_answer_states_nothing_of_it():
    for seed in range(20):
        wrong = Key(task=key().task, rubric=key().rubric, seed=str(seed)).wrong
        assert matcher.match(("$1,299", "Blue Kettle", "May 3, 2026"), wrong).share == 0


def test_without_a_rubric_the_expected_result_is_the_key():
    task = Task(task_id="x", task="x", expected_result=["Paris |OR| Lutetia", 5])
    found = Key(task=task, rubric=None, seed="s")
    assert found.secrets == ("Paris", "5")
    assert found.answer == "Paris\n5"
    assert found.canary is None


VALUES = st.one_of(
    st.integers(-(10**6), 10**6),
    st.sampled_from(["yes", "false", "$1,299", "Blue Kettle", "A320-211", "2026-05-03", "5 km"]),
)


@given(VALUES, st.integers())
def test_a_falsified_value_is_another_one_of_its_kind(value, seed):
    other = falsified(value, random.Random(seed))
    assert other != value
    assert type(other) is type(value)
