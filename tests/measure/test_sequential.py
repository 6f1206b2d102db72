"""The sequential test: enumeration against every sequence, errors, and the optimal rule."""

from __future__ import annotations

import itertools
import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from browseruse_bench.measure.sequential import (
    KINDS,
    MIXES,
    Terms,
    Test,
    best,
    fixed,
    least_mean_runs,
    sequential,
)

TERMS = st.builds(
    Terms,
    max_runs=st.integers(1, 8),
    easy_at=st.sampled_from([0.5, 0.75, 0.9, 1.0]),
    fp=st.floats(0, 0.3),
    fn=st.floats(0, 0.3),
)


def play(test: Test, passes: list[bool]) -> tuple[str, int]:
    """What the test says of these runs, and after how many."""
    for n in range(len(passes) + 1):
        word = test.after(n, sum(passes[:n]))
        if word is not None:
            return word, n
    raise AssertionError("the test did not stop")


@settings(max_examples=25, deadline=None)
@given(TERMS, st.floats(0, 1))
def test_the_outlook_is_the_sum_over_every_sequence_of_runs(terms: Terms, rate: float) -> None:
    test, q = sequential(terms, wrong_runs=40), terms.judged(rate)
    chances, mean = dict.fromkeys(KINDS, 0.0), 0.0
    for passes in itertools.product([False, True], repeat=terms.max_runs):
        chance = math.prod(q if one else 1 - q for one in passes)
        word, n = play(test, list(passes))
        chances[word] += chance
        mean += n * chance
    outlook = test.outlook(rate)
    assert outlook.mean_runs == pytest.approx(mean)
    assert outlook.chances == pytest.approx(chances)


def test_the_outlook_is_what_a_simulation_of_tasks_and_grader_gives() -> None:
    terms, rng, n = Terms(), random.Random(5), 20_000
    test = sequential(terms)
    for rate in (0.0, 0.3, 0.95):
        words, runs = dict.fromkeys(KINDS, 0), 0
        for _ in range(n):
            passed = [rng.random() < rate for _ in range(terms.max_runs)]
            judged = [rng.random() >= terms.fn if p else rng.random() < terms.fp for p in passed]
            word, used = play(test, judged)
            words[word] += 1
            runs += used
        outlook = test.outlook(rate)
        for kind in KINDS:
            chance = outlook.chances[kind]
            sigma = math.sqrt(chance * (1 - chance) / n) + 1e-9
            assert abs(words[kind] / n - chance) < 4.5 * sigma
        assert runs / n == pytest.approx(outlook.mean_runs, abs=0.1)


@settings(max_examples=20, deadline=None)
@given(TERMS)
def test_every_test_stops_by_its_last_run_and_its_chances_sum_to_one(terms: Terms) -> None:
    test = sequential(terms)
    assert all(word is not None for word in test.table[-1])
    for rate in (0.0, 0.2, 0.7, 1.0):
        outlook = test.outlook(rate)
        assert sum(outlook.chances.values()) == pytest.approx(1)
        assert 0 <= outlook.mean_runs <= terms.max_runs + 1e-9
        assert sum(test.posterior(terms.max_runs, 1).values()) == pytest.approx(1)


def test_an_impossible_task_shows_a_pass_in_eight_runs_with_34_percent_chance() -> None:
    q = Terms().judged(0.0)
    assert 1 - (1 - q) ** 8 == pytest.approx(0.34, abs=0.005)
    test = sequential(Terms())
    assert test.after(8, 0) == "nobody"
    # One pass in eight is far likelier from one in twenty wrong than it seems.
    assert test.posterior(8, 1)["nobody"] > 0.35


@pytest.mark.parametrize("name", MIXES)
def test_mean_runs_are_within_5_percent_of_the_optimal_rule_at_the_same_errors(name: str) -> None:
    terms = Terms()
    mix = terms.mix(*MIXES[name])
    test = sequential(terms)
    mean = test.over(mix).mean_runs
    assert least_mean_runs(test, mix) <= mean <= 1.05 * least_mean_runs(test, mix)


@settings(max_examples=10, deadline=None)
@given(st.sampled_from(sorted(MIXES)), st.floats(5, 400), st.floats(5, 400), st.floats(5, 400))
def test_no_optimal_rule_with_as_few_errors_needs_less_than_the_bound(
    name: str, nobody: float, some: float, everyone: float
) -> None:
    terms = Terms(max_runs=5)
    mix, test = terms.mix(*MIXES[name]), sequential(Terms(max_runs=5))
    wrong = test.over(mix).wrong
    other, value = best(terms, mix, {"nobody": nobody, "some": some, "everyone": everyone})
    there = other.over(mix)
    costs = {"nobody": nobody, "some": some, "everyone": everyone}
    assert value == pytest.approx(
        there.mean_runs + sum(costs[kind] * there.wrong[kind] for kind in KINDS)
    )
    if all(there.wrong[kind] <= wrong[kind] for kind in KINDS):
        assert there.mean_runs >= least_mean_runs(test, mix) - 1e-9


def test_errors_of_each_kind_stay_within_two_points_of_the_fixed_design() -> None:
    terms = Terms()
    mix = terms.mix(1 / 3, 1 / 3, 1 / 3)
    early, full = sequential(terms).over(mix).error, fixed(terms).over(mix).error
    assert fixed(terms).over(mix).mean_runs == pytest.approx(8)
    for kind in KINDS:
        assert early[kind] == pytest.approx(full[kind], abs=0.02)


def test_dearer_errors_buy_more_runs_and_fewer_errors() -> None:
    terms = Terms()
    mix = terms.mix(1 / 3, 1 / 3, 1 / 3)
    found = [sequential(terms, wrong_runs=cost).over(mix) for cost in (5, 20, 80, 320)]
    runs = [over.mean_runs for over in found]
    wrong = [sum(over.wrong.values()) for over in found]
    assert runs == sorted(runs)
    assert wrong == sorted(wrong, reverse=True)


@pytest.mark.parametrize(
    "wrong", [{"max_runs": 0}, {"easy_at": 0}, {"easy_at": 1.1}, {"fp": 0.5}, {"fn": -0.1}]
)
def test_terms_without_meaning_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="needs"):
        Terms(**wrong)
