"""Samples are random, repeatable, and stand for the corpus with their weights."""

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from browseruse_bench.errors import ConfigError, DataError
from browseruse_bench.factory.labels.sample import DRAWS, Drawn, _dealt, add_draw, draw, last_draw
from browseruse_bench.records.candidate import new_candidate
from tests.factory.labels.labelling_doubles import open_store

CORPUS = [
    new_candidate(
        f"Task {i} " + "x" * (400 if i % 10 == 0 else 20),
        count=1 if i % 4 else 50,
        first_seen=f"2026-0{1 + i % 3}-01",
    )
    for i in range(600)
]


def keys(drawn: Drawn) -> list[str]:
    return [task.key for task in drawn.tasks]


@given(st.randoms(use_true_random=False))
def test_the_order_of_the_corpus_does_not_matter(rng: random.Random):
    some = CORPUS[:80]
    shuffled = rng.sample(some, len(some))
    assert draw(shuffled, 20, seed=1) == draw(some, 20, seed=1)


def test_a_larger_sample_holds_the_smaller_one_and_another_seed_is_another_sample():
    small, large = keys(draw(CORPUS, 50, seed=1)), keys(draw(CORPUS, 90, seed=1))
    assert large[:50] == small
    assert len(set(large)) == 90
    assert set(keys(draw(CORPUS, 50, seed=2))) != set(small)


def test_every_task_is_drawn_equally_often():
    n, some = 400, CORPUS[:20]
    drawn = Counter(key for seed in range(n) for key in keys(draw(some, 5, seed=seed)))
    # 100 expected; 45 is more than five standard deviations.
    assert all(abs(drawn[task.key] - n * 5 / 20) < 45 for task in some)


def test_fewer_tasks_than_asked_for_are_all_drawn():
    drawn = draw(CORPUS[:7], 100, seed=0)
    assert sorted(keys(drawn)) == sorted(task.key for task in CORPUS[:7])
    assert set(drawn.draw.weights.values()) == {1.0}


@pytest.mark.parametrize(
    ("by", "names"),
    [
        ("count", {"1", "10-99"}),
        ("length", {"under 100", "300-999"}),
        ("month", {"2026-01", "2026-02", "2026-03"}),
    ],
)
def test_strata_are_drawn_evenly_and_weights_add_up_to_the_corpus(by, names):
    drawn = draw(CORPUS, 60, seed=0, by=by).draw
    assert set(drawn.strata) == names
    assert {len(s.keys) for s in drawn.strata.values()} == {60 // len(names)}
    assert sum(drawn.weights.values()) == pytest.approx(len(CORPUS))
    assert all(drawn.stratum_of[key] == name for name, s in drawn.strata.items() for key in s.keys)


def test_a_share_of_the_sample_can_be_asked_of_a_stratum():
    drawn = draw(CORPUS, 60, seed=0, by="count", shares={"10-99": 0.75}).draw
    assert {name: len(s.keys) for name, s in drawn.strata.items()} == {"1": 15, "10-99": 45}


@given(
    sizes=st.dictionaries(st.text(max_size=3), st.integers(1, 40), min_size=1, max_size=5),
    more=st.integers(0, 120),
)
def test_what_is_dealt_is_what_was_asked_for_and_there(sizes, more):
    n = len(sizes) + more
    dealt = _dealt(sizes, n, {})
    assert sum(dealt.values()) == min(n, sum(sizes.values()))
    assert all(1 <= dealt[name] <= sizes[name] for name in sizes)


@pytest.mark.parametrize(
    ("shares", "match"),
    [
        ({"no such": 0.5}, "no stratum"),
        ({"1": 0.7, "10-99": 0.7}, "at most 1"),
        ({"1": -1}, "0..1"),
    ],
)
def test_shares_that_do_not_fit_are_refused(shares, match):
    with pytest.raises(ConfigError, match=match):
        draw(CORPUS, 60, seed=0, by="count", shares=shares)


def test_too_few_for_the_strata_and_an_empty_corpus_are_refused():
    with pytest.raises(ConfigError, match="3 strata"):
        draw(CORPUS, 2, seed=0, by="month")
    with pytest.raises(ConfigError, match="no task"):
        draw([], 2, seed=0)


def test_drawing_more_adds_and_drawing_otherwise_is_refused(tmp_path):
    store = open_store(tmp_path)
    assert len(add_draw(store, draw(CORPUS, 30, seed=1), twice=0)) == 30
    assert len(add_draw(store, draw(CORPUS, 50, seed=1), twice=0)) == 20
    with pytest.raises(ConfigError, match="two samples in one"):
        add_draw(store, draw(CORPUS, 50, seed=2), twice=0)
    with pytest.raises(ConfigError, match="two samples in one"):
        add_draw(store, draw(CORPUS, 50, seed=1, by="count"), twice=0)
    assert len(open_store(tmp_path).tasks) == 50
    found = last_draw(store)
    assert found is not None
    assert found.n == 50


def test_a_share_of_the_tasks_wants_two_labellers(tmp_path):
    store = open_store(tmp_path)
    add_draw(store, draw(CORPUS, 600, seed=1), twice=0.2)
    assert sum(task.wanted == 2 for task in store.tasks.values()) == pytest.approx(120, abs=40)


def test_a_damaged_draw_is_named(tmp_path):
    store = open_store(tmp_path)
    add_draw(store, draw(CORPUS, 3, seed=1), twice=0)
    (tmp_path / DRAWS).write_text('{"seed": "x"}\n')
    with pytest.raises(DataError, match="line 1 is damaged"):
        last_draw(store)
