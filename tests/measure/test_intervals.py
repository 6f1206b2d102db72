"""Intervals: against published numbers, and honest at the ends of the range."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from browseruse_bench.measure.intervals import (
    bounded,
    mean_interval,
    n_effective,
    t_quantile,
    wilson,
)

NEW, AGAIN = "new tasks", "new attempts"
points = st.lists(st.floats(0, 100), min_size=1, max_size=4)
runs = st.lists(points, min_size=2, max_size=12)


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0, 0.1611), (1, 29, 0.0061, 0.1718)],
)  # fmt: skip
def test_wilson_gives_the_published_intervals(successes, n, low, high):
    """Newcombe, Stat. Med. 17 (1998), table I, method 3."""
    assert wilson(successes, n) == (pytest.approx(low, abs=5e-5), pytest.approx(high, abs=5e-5))


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [(0, 58, 0, 0.06211786), (58, 58, 0.93788214, 1), (7, 20, 0.18119182, 0.56714572), (199, 200, 0.9722263, 0.99911683)],
)  # fmt: skip
def test_wilson_agrees_with_statsmodels(successes, n, low, high):
    """Made by proportion_confint(method="wilson") of statsmodels 0.15.0."""
    assert wilson(successes, n) == (pytest.approx(low, abs=1e-8), pytest.approx(high, abs=1e-8))


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [
        # Newcombe 1998, table I, method 5.
        (81, 263, 0.2527, 0.3676), (15, 148, 0.0578, 0.1617), (0, 20, 0, 0.1684), (1, 29, 0.0009, 0.1776),
        # proportion_confint(method="beta") of statsmodels 0.15.0.
        (0, 58, 0, 0.06162101), (58, 58, 0.93837899, 1), (7, 20, 0.1539092, 0.59218853), (199, 200, 0.9724581, 0.99987342),
    ],
)  # fmt: skip
def test_bounded_is_clopper_pearson_where_all_is_0_or_1(successes, n, low, high):
    found = bounded([1] * successes + [0] * (n - successes))
    assert found == (pytest.approx(low, abs=5e-5), pytest.approx(high, abs=5e-5))


@pytest.mark.parametrize(
    ("values", "low", "high"),
    [([0.5] * 10, 0.3457, 0.6543), ([0.2, 0.9], 0.0672, 0.9553), ([0.2, 0.9, 0.3], 0.1105, 0.8881)],
)  # fmt: skip
def test_bounded_is_the_quantile_that_drawing_the_weights_gives(values, low, high):
    """Made by two million draws of the weights with numpy."""
    found = bounded(values)
    assert found == (pytest.approx(low, abs=3e-4), pytest.approx(high, abs=3e-4))


@pytest.mark.parametrize(
    ("p", "df", "expected"),
    [(0.9, 1, 3.0776835), (0.975, 1, 12.7062047), (0.975, 2, 4.3026527), (0.975, 3, 3.1824463), (0.995, 7, 3.4994833),
     (0.975, 57, 2.0024655), (0.995, 150, 2.6090026), (0.975, 1000, 1.9623391)],
)  # fmt: skip
def test_t_quantiles_agree_with_scipy(p, df, expected):
    """Made by scipy.stats.t.ppf of scipy 1.17.1."""
    assert t_quantile(p, df) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("value", [0, 33.3, 100])
@pytest.mark.parametrize("target", [NEW, AGAIN])
@pytest.mark.parametrize("repeats", [1, 3])
def test_values_that_are_all_alike_still_have_an_interval_BL057(value, target, repeats):
    """A bootstrap or a t interval has no width here."""
    found = mean_interval([[value] * repeats] * 20, top=100, target=target)
    assert 0 <= found.low <= value <= found.high <= 100
    assert found.high - found.low > 3


def test_one_attempt_gives_no_interval_and_nothing_gives_none_BL057():
    for target in (NEW, AGAIN):
        assert mean_interval([[50.0]], top=100, target=target) is None
        assert mean_interval([], top=100, target=target) is None
        assert mean_interval([[]], top=100, target=target) is None


def test_one_task_says_nothing_of_new_tasks_but_of_new_attempts_at_it():
    assert mean_interval([[1.0] * 50], top=1, target=NEW) is None
    again = mean_interval([[1.0] * 50], top=1, target=AGAIN)
    assert 0.9 < again.low < 0.95
    assert again.high == 1


def test_partial_scores_are_no_yes_and_no_BL057():
    """Scores 0, 25 and 100 mixed: the interval is of their mean, and inside the range."""
    found = mean_interval([[0], [25], [100], [0], [25]], top=100, target=NEW)
    assert found.method == "bounded"
    assert 0 <= found.low < 30 < found.high <= 100


@pytest.mark.parametrize("value", [-0.1, 100.1])
def test_a_value_outside_the_range_is_refused_bl058(value):
    with pytest.raises(ValueError, match="outside 0..100"):
        mean_interval([[50], [value]], top=100, target=NEW)


def test_repeats_of_a_task_do_not_count_as_tasks():
    """Twenty tasks whose five attempts always agree say as much as twenty attempts."""
    once = [[float(n % 2)] for n in range(20)]
    five = [values * 5 for values in once]
    one, many = (mean_interval(tasks, top=1, target=NEW) for tasks in (once, five))
    assert (one.n_effective, many.n_effective) == (20, 20)
    assert many.high - many.low > 0.9 * (one.high - one.low)
    assert mean_interval(five, top=1, target=AGAIN).high - 0.5 < 0.5 * (many.high - 0.5)


def test_the_effective_number_is_kish_s():
    """Design effect by hand: tasks (1, 1), (1, 0), (0, 0), (1, 1)."""
    tasks = [[1, 1], [1, 0], [0, 0], [1, 1]]
    pooled = (5 * (3 / 8) ** 2 + 3 * (5 / 8) ** 2) / 7 / 8
    clustered = (2 * (3 / 8) ** 2 + (1 / 8) ** 2 + (5 / 8) ** 2) / 3 / 4
    assert n_effective(tasks) == pytest.approx(8 * pooled / clustered)
    assert n_effective([[1, 0]] * 4) == 8
    assert n_effective([[1, 1]] * 4) == 4


def test_with_single_attempts_new_attempts_get_the_interval_of_new_tasks():
    tasks = [[0.0], [25.0], [100.0], [60.0]]
    new, again = (mean_interval(tasks, top=100, target=target) for target in (NEW, AGAIN))
    assert (again.low, again.high, again.target) == (new.low, new.high, AGAIN)


def test_a_few_tasks_of_a_single_attempt_do_not_hide_what_the_others_tell():
    repeated = [[1.0, 1.0]] * 10 + [[0.0, 0.0]] * 10
    new = mean_interval(repeated, top=1, target=NEW)
    again = mean_interval([*repeated[:-2], [0.0], [0.0]], top=1, target=AGAIN)
    assert again.method == "stratified"
    assert again.high - again.low < 0.7 * (new.high - new.low)
    mostly_single = [[1.0]] * 10 + [[0.0, 0.0]] * 9
    assert mean_interval(mostly_single, top=1, target=AGAIN).method == "bounded"


@given(runs, st.sampled_from([NEW, AGAIN]), st.randoms(use_true_random=False))
def test_the_interval_holds_the_mean_stays_in_range_and_knows_no_order(tasks, target, rng):
    found = mean_interval(tasks, top=100, target=target)
    mean = math.fsum(math.fsum(values) / len(values) for values in tasks) / len(tasks)
    assert 0 <= found.low <= mean + 1e-9
    assert mean - 1e-9 <= found.high <= 100
    assert 1 <= found.n_effective < math.inf
    shuffled = [rng.sample(values, len(values)) for values in rng.sample(tasks, len(tasks))]
    other = mean_interval(shuffled, top=100, target=target)
    assert other.low == pytest.approx(found.low, abs=1e-4)
    assert other.high == pytest.approx(found.high, abs=1e-4)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_bounded_turns_with_the_scale(values):
    low, high = bounded(values)
    turned = bounded([1 - value for value in values])
    assert turned == (pytest.approx(1 - high, abs=1e-5), pytest.approx(1 - low, abs=1e-5))


@given(runs, st.sampled_from([NEW, AGAIN]))
def test_a_higher_level_is_never_shorter(tasks, target):
    narrow, wide = (
        mean_interval(tasks, top=100, target=target, level=level) for level in (0.8, 0.99)
    )
    assert wide.low <= narrow.low + 1e-4
    assert narrow.high <= wide.high + 1e-4
