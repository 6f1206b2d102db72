import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from browseruse_bench.measure.intervals import bounded
from browseruse_bench.measure.ratios import Part, ratio_interval, share

counts = st.integers(1, 12).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
parts_of = st.lists(st.builds(lambda c, w: Part(*c, w), counts, st.integers(1, 9)), min_size=1)


def test_clusters_of_one_size_have_the_interval_of_their_shares():
    values = [0, 0, 0.25, 0.5, 1, 0, 0.25, 0.75]
    same = ratio_interval(Part(4 * value, 4) for value in values)
    assert same == pytest.approx(bounded(values), abs=1e-6)


@pytest.mark.parametrize(("n", "high"), [(298, 0.01000), (299, 0.00997)])
def test_without_a_flip_the_upper_end_is_the_rule_of_three(n, high):
    """298 comparisons do not show 1 % on one side, 299 do."""
    found = ratio_interval([Part(0, 1, n)], level=0.90)
    assert found[0] == 0
    assert found[1] == pytest.approx(1 - 0.05 ** (1 / n), rel=1e-6)
    assert found[1] == pytest.approx(high, abs=5e-6)
    assert (found[1] < 0.01) == (n == 299)


def test_both_ends_are_where_weights_drawn_at_random_refuse_the_share():
    """Parts of unlike sizes and weights that are not whole, against a Monte Carlo of the weights."""
    parts = [Part(0, 2, 3.25), Part(1, 2, 0.75), Part(1, 5, 0.5), Part(0, 5, 2)]
    low, high = ratio_interval(parts)
    rng = np.random.default_rng(0)
    weights = rng.gamma([part.weight for part in parts] + [1], size=(200_000, 5))

    def sums(r, extreme):
        return weights @ np.array([p.happened - r * p.could for p in parts] + [5 * extreme])

    assert (sums(low, -low) <= 0).mean() == pytest.approx(0.025, abs=0.0015)
    assert (sums(high, 1 - high) >= 0).mean() == pytest.approx(0.025, abs=0.0015)


@settings(max_examples=25)
@given(parts_of)
def test_the_interval_holds_the_share_and_the_order_does_not_matter(parts):
    found = share(parts)
    assert 0 <= found.low <= found.rate <= found.high <= 1
    assert share(parts[::-1]).low == pytest.approx(found.low, abs=1e-9)


@settings(max_examples=25)
@given(parts_of)
def test_what_did_not_happen_has_the_mirrored_interval(parts):
    low, high = ratio_interval(parts)
    mirrored = ratio_interval(Part(p.could - p.happened, p.could, p.weight) for p in parts)
    assert (1 - mirrored[1], 1 - mirrored[0]) == pytest.approx((low, high), abs=1e-9)


@settings(max_examples=25)
@given(parts_of)
def test_more_of_the_same_never_makes_it_longer(parts):
    low, high = ratio_interval(parts)
    again = ratio_interval([*parts, *parts])
    assert again[1] - again[0] <= high - low + 1e-6


def test_where_nothing_could_happen_there_is_no_rate():
    found = share([Part(0, 0)])
    assert (found.rate, found.low, found.high) == (None, None, None)
    with pytest.raises(ValueError, match="no share"):
        ratio_interval([])


@pytest.mark.parametrize("part", [Part(3, 2), Part(-1, 2), Part(1, 2, -1), Part(math.nan, 2)])
def test_what_is_no_part_of_a_whole_is_refused(part):
    with pytest.raises(ValueError, match="not a part"):
        share([part])
