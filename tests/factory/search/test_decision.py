"""What is shown of versions, and what is not."""

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from browseruse_bench.factory.search.decision import (
    HOPELESS,
    decide,
    holm,
    hopeless,
    independent_interval,
    misses_too_many,
    paired_interval,
    scored,
    survivors,
)
from browseruse_bench.factory.search.figures import Rate, other_tasks, same_tasks
from browseruse_bench.measure.paired import mcnemar

TRUTHS = ("suitable", "unsuitable", "unsuitable", "uncertain") * 25


def version(name, wrong=(), *, n=100, **more):
    """A version that is wrong on these examples."""
    said = ["unsuitable" if t == "suitable" else "suitable" for t in TRUTHS]
    return scored(
        name, name, [said[i] if i in wrong else TRUTHS[i] for i in range(n)], TRUTHS, **more
    )


def test_a_clear_winner_is_shown():
    decision = decide([version("a", range(30)), version("b"), version("c", range(20, 60))], 100)
    assert decision.chosen == "b"
    assert decision.shown
    assert decision.not_told_apart == ()
    assert "shown to be the best of 3 versions" in decision.sentence


def test_a_lead_that_chance_may_give_is_not_shown_and_that_is_said():
    decision = decide([version("a", range(6)), version("b", range(4, 8))], 100)
    assert decision.chosen == "b"
    assert not decision.shown
    assert decision.not_told_apart == ("a",)
    assert "100 labels cannot tell whether it is the best" in decision.sentence
    assert "show a lead of" in decision.sentence


def test_81_against_77_percent_on_90_tasks_is_no_difference():
    better = [i >= 17 for i in range(90)]
    worse = [i < 55 or i >= 76 for i in range(90)]
    assert (sum(better), sum(worse)) == (73, 69)
    found = same_tasks(better, worse)
    assert not found.shown
    assert found.sentence.startswith(
        "81.1% against 76.7% on 90 tasks: no difference is shown (+4.4"
    )


def test_81_against_77_percent_of_other_tasks_is_no_difference():
    found = other_tasks(Rate.of_counts(73, 90), Rate.of_counts(693, 900))
    assert "81.1% against 77.0% on 90 and 900 tasks: no difference is shown" in found.sentence


def test_a_difference_that_is_there_is_said_too():
    assert same_tasks([True] * 20, [False] * 20).sentence.startswith(
        "100.0% against 0.0% on 20 tasks: a difference is shown"
    )


@given(st.permutations(range(6)), st.integers(0, 2**32))
@settings(max_examples=30)
def test_the_order_of_versions_decides_nothing(order, seed):
    rng = random.Random(seed)
    versions = [
        version(f"v{i}", {j for j in range(100) if rng.random() < rng.choice([0.2, 0.4])})
        for i in range(6)
    ]
    shuffled = [versions[i] for i in order]
    assert decide(shuffled, 100) == decide(versions, 100)
    assert survivors(shuffled, 100, most=3) == survivors(versions, 100, most=3)


def test_what_agrees_alike_is_ordered_by_cost_then_length_never_by_its_turn():
    cheap, dear = version("dear but short", cost_usd=2.0), version("cheap", cost_usd=1.0)
    assert decide([cheap, dear], 100).chosen == decide([dear, cheap], 100).chosen == "cheap"
    short, long = version("short", cost_usd=1.0), version("quite long", cost_usd=1.0)
    assert decide([long, short], 100).chosen == "short"


def test_a_version_that_rejects_everything_is_not_chosen_however_well_it_agrees():
    truths = ("suitable",) * 12 + ("unsuitable",) * 88
    rejects = scored("rejects", "rejects", ["unsuitable"] * 100, truths)
    said = ["suitable"] * 10 + ["unsuitable"] * 2 + ["suitable"] * 20 + ["unsuitable"] * 68
    works = scored("works", "works", said, truths)
    assert rejects.share > works.share
    decision = decide([rejects, works], 100)
    assert decision.chosen == "works"
    assert decision.too_few_found == ("rejects",)
    assert decide([rejects], 100).chosen is None
    assert "fewer than 50% of the suitable" in decide([rejects], 100).sentence
    assert decide([rejects, works], 100, recall_floor=0).chosen == "rejects"


@pytest.mark.parametrize(("found", "misses"), [(5, True), (6, False)])
def test_the_floor_excludes_only_what_is_shown_to_be_below_it(found, misses):
    truths = ("suitable",) * 20
    said = ["suitable"] * found + ["uncertain"] * (20 - found)
    assert misses_too_many(scored("v", "v", said, truths), 0.5) is misses


def test_a_version_is_given_up_only_when_it_is_clearly_worse():
    best = version("best", range(20))
    assert mcnemar(0, 10) / 2 < HOPELESS < mcnemar(0, 9) / 2
    assert hopeless(version("ten behind", range(30), n=40), best)
    assert not hopeless(version("nine behind", range(29), n=40), best)
    assert not hopeless(version("ahead", (), n=40), best)


def test_what_was_given_up_is_neither_chosen_nor_compared():
    decision = decide([version("a", range(30)), version("b", (), n=25)], 100)
    assert decision.chosen == "a"
    assert decision.given_up == ("b",)
    assert decision.rivals == ()


def test_holm_corrects_for_all_and_never_turns_the_order():
    ps = {("a", "b"): 0.01, ("a", "c"): 0.04, ("b", "c"): 0.03}
    assert holm(ps) == pytest.approx({("a", "b"): 0.03, ("b", "c"): 0.06, ("a", "c"): 0.06})


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_a_corrected_p_is_never_smaller(ps):
    named = {("v", str(i)): p for i, p in enumerate(ps)}
    corrected = holm(named)
    assert all(p <= corrected[pair] <= 1 for pair, p in named.items())


def binomial(rng, n, p):
    return sum(rng.random() < p for _ in range(n))


@pytest.mark.parametrize(("n", "p"), [(40, 0.9), (90, 0.77), (40, 0.5)])
def test_the_interval_of_an_agreement_covers_the_truth(n, p):
    probabilities = [math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]
    rates = [Rate.of_counts(k, n) for k in range(n + 1)]
    covered = sum(q for q, r in zip(probabilities, rates, strict=True) if r.low <= p <= r.high)
    assert covered >= 0.93


def test_the_interval_of_a_paired_difference_covers_the_truth():
    rng = random.Random(7)
    n_in = 0
    for _ in range(600):
        draws = [(rng.random() < 0.81, rng.random() < 0.77) for _ in range(90)]
        first = sum(a and not b for a, b in draws)
        second = sum(b and not a for a, b in draws)
        low, high = paired_interval(first, second, 90)
        n_in += low <= 0.04 <= high
    assert n_in / 600 >= 0.93


def test_the_interval_of_a_difference_of_other_tasks_covers_the_truth():
    rng = random.Random(8)
    n_in = 0
    for _ in range(600):
        low, high = independent_interval(
            (binomial(rng, 200, 0.85), 200), (binomial(rng, 60, 0.8), 60)
        )
        n_in += low <= 0.05 <= high
    assert n_in / 600 >= 0.93
