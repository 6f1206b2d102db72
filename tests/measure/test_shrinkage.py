import random

import pytest

from browseruse_bench.measure.shrinkage import DEFAULT, LEAST_ITEMS, Prior, fit_prior


def test_few_items_get_the_default_and_its_mean_is_the_posts():
    assert fit_prior([(0.5, 5)] * (LEAST_ITEMS - 1)) is DEFAULT
    assert fit_prior([(0.5, 5)] * LEAST_ITEMS).fitted
    assert DEFAULT.mean == 0.01
    assert not DEFAULT.fitted


def test_items_without_a_comparison_teach_nothing():
    assert fit_prior([(0.0, 0.0)] * 50) is DEFAULT


@pytest.mark.parametrize(("a", "b"), [(0.5, 9.5), (2, 38), (0.2, 0.8)])
def test_the_spread_of_the_rates_is_found_again(a, b):
    rng = random.Random(3)
    items = []
    for _ in range(400):
        rate = rng.betavariate(a, b)
        items.append((sum(rng.random() < rate for _ in range(20)) / 20, 20))
    prior = fit_prior(items)
    assert prior.mean == pytest.approx(a / (a + b), rel=0.25)
    assert 0.5 <= prior.strength / (a + b) <= 2


def test_an_estimate_lies_between_the_prior_and_what_was_seen():
    prior = Prior(mean=0.02, strength=10)
    assert prior.shrunk(1.0, 1) == pytest.approx(1.2 / 11)
    assert prior.shrunk(0.0, 30) == pytest.approx(0.2 / 40)
    assert prior.shrunk(0.5, 1e9) == pytest.approx(0.5)


def test_shrunk_rates_are_nearer_to_the_truth_than_raw_ones():
    rng = random.Random(4)
    truth = [rng.betavariate(0.3, 5) for _ in range(300)]
    n = 5
    raw = [sum(rng.random() < rate for _ in range(n)) / n for rate in truth]
    prior = fit_prior([(rate, n) for rate in raw])

    def error(estimates):
        return sum((e - t) ** 2 for e, t in zip(estimates, truth, strict=True))

    assert error(prior.shrunk(rate, n) for rate in raw) < 0.6 * error(raw)


def test_without_any_flip_the_mean_is_below_the_default_and_above_0():
    prior = fit_prior([(0.0, 5)] * 100)
    assert 0 < prior.mean < DEFAULT.mean
