"""Two runs are compared on the tasks that both have, and a difference is shown or it is not."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from browseruse_bench.measure.intervals import t_quantile
from browseruse_bench.measure.paired import mcnemar, paired, sign_flips


def compared(first, second, *, top=1.0, **options):
    """Of runs given as one letter or list of values per task."""

    def of(run):
        return {f"t{n}": [v] if isinstance(v, (int, float)) else v for n, v in enumerate(run)}

    return paired(of(first), of(second), top=top, rng=random.Random(1), **options)


values = st.lists(st.sampled_from([0, 25, 50, 100]), max_size=3)


@pytest.mark.parametrize(
    ("differences", "p"),
    [([20, -10, 35, 5, 0, 40, -5, 15, 30, -20, 25, 10], 0.0595703125),
     ([0.25, 0.5, -0.25, 0, 0, 1, 1, -0.5, 0.75, 0.25], 0.1328125)],
)  # fmt: skip
def test_counted_sign_flips_agree_with_scipy(differences, p):
    """Made by scipy.stats.permutation_test(permutation_type="samples", n_resamples=inf) of
    scipy 1.17.1.
    """
    assert sign_flips(differences, random.Random(0)) == (p, "sign flips, counted")


@pytest.mark.parametrize(
    ("b", "c", "p"),
    [(5, 12, 0.143463134765625), (1, 9, 0.021484375), (3, 3, 1), (0, 6, 0.03125), (0, 0, 1)],
)
def test_mcnemar_agrees_with_statsmodels_and_with_the_sign_flips(b, c, p):
    """Made by mcnemar(exact=True) of statsmodels 0.15.0."""
    assert mcnemar(b, c) == p
    found = compared([1] * b + [0] * c + [1] * 5, [0] * b + [1] * c + [1] * 5)
    assert (found.p, found.p_mcnemar) == (pytest.approx(p), p)


def test_drawn_sign_flips_are_near_the_counted_ones_and_repeatable():
    rng = random.Random(5)
    differences = [round(rng.gauss(0.05, 0.2), 3) for _ in range(40)]
    few = [d for d in differences if d][:12]
    counted, how = sign_flips(few, rng)
    assert how == "sign flips, counted"
    everything = sign_flips(differences, random.Random(1))
    assert everything == sign_flips(differences, random.Random(1))
    assert everything[1] == "sign flips, drawn"
    # The same by the normal approximation of the sum of signs.
    z = abs(sum(differences)) / math.sqrt(sum(d * d for d in differences))
    assert everything[0] == pytest.approx(math.erfc(z / math.sqrt(2)), abs=0.02)


def test_a_drawn_p_is_never_zero():
    differences = [0.5 + n / 1000 + n * n / 1e5 for n in range(60)]
    p, how = sign_flips(differences, random.Random(1), draws=999)
    assert (p, how) == (1 / 1000, "sign flips, drawn")


def test_shares_of_three_attempts_do_not_hide_a_tie():
    """1 - 2/3 and 1/3 are the same difference, whatever the rounding."""
    differences = [1 - 2 / 3, 1 / 3 - 0, -(1 - 2 / 3), 2 / 3 - 1 / 3]
    assert sign_flips(differences, random.Random(1))[0] == 10 / 16


def test_the_interval_is_bonett_and_price_s():
    """Of 40 pairs only the first succeeds in 9 and only the second in 3: shares (9 + 1) / 42
    and (3 + 1) / 42, with t in place of the normal quantile.
    """
    found = compared([1] * 9 + [0] * 3 + [1] * 28, [0] * 9 + [1] * 3 + [1] * 28)
    one, two = 10 / 42, 4 / 42
    half = t_quantile(0.975, 39) * math.sqrt((one + two - (one - two) ** 2) / 42)
    assert found.interval.low == pytest.approx(one - two - half)
    assert found.interval.high == pytest.approx(one - two + half)
    assert found.difference == pytest.approx(6 / 40)


def test_only_common_tasks_count_and_the_others_are_told():
    first = {"a": [100.0], "b": [0.0], "c": [], "x": [100.0]}
    second = {"a": [100.0], "b": [100.0], "c": [0.0], "y": [0.0], "z": [0.0]}
    found = paired(first, second, top=100, rng=random.Random(1))
    assert (found.n_tasks, found.n_only_first, found.n_only_second) == (2, 1, 3)
    assert (found.means, found.difference) == ((50, 100), -50)
    assert (found.n_better, found.n_worse) == (0, 1)


def test_without_common_tasks_there_is_no_difference_and_no_p_BL057():
    found = paired({"a": [1.0]}, {"b": [1.0]}, top=1, rng=random.Random(1))
    assert (found.n_tasks, found.difference, found.interval, found.p) == (0, None, None, None)
    assert not found.differs
    assert (found.tasks_to_see(0.1), found.smallest_seen) == (None, None)


def test_one_common_task_gives_no_interval_BL057():
    found = compared([1], [0])
    assert (found.difference, found.interval, found.p) == (1, None, 1)
    assert not found.differs


def test_runs_that_agree_on_every_task_differ_by_nothing_but_not_for_certain():
    found = compared([1] * 58, [1] * 58)
    assert (found.difference, found.p) == (0, 1)
    assert -0.06 < found.interval.low < -0.03
    assert 0.03 < found.interval.high < 0.06


def test_a_clear_difference_is_shown_and_a_small_one_is_not():
    assert compared([1] * 20 + [0] * 10, [0] * 20 + [0] * 10).differs
    assert not compared([1] * 3 + [0] * 27, [0] * 3 + [0] * 27).differs


def test_how_many_tasks_see_a_difference_is_the_usual_formula():
    """(1.96 + 0.8416)^2 * variance / difference^2."""
    found = compared([0, 100] * 50, [100, 0] * 50, top=100)
    squared = found.spread**2
    assert squared == pytest.approx(100**2, rel=0.05)
    assert found.tasks_to_see(10) == math.ceil(7.8489 * squared / 100)
    assert found.smallest_seen == pytest.approx(2.8016 * found.spread / 10, rel=1e-3)


def test_for_new_attempts_only_the_spread_within_tasks_counts():
    """The runs differ by +1 and -1 on half of the tasks each, and always so."""
    first, second = [[1, 1, 1], [0, 0, 0]] * 15, [[0, 0, 0], [1, 1, 1]] * 15
    new = compared(first, second)
    again = compared(first, second, target="new attempts")
    assert again.interval.target == "new attempts"
    assert again.interval.high < new.interval.high / 2


@given(
    st.dictionaries(st.sampled_from("abcdefgh"), values),
    st.dictionaries(st.sampled_from("abcdefgh"), values),
)
def test_the_other_way_round_is_the_same_with_the_other_sign(first, second):
    one = paired(first, second, top=100, rng=random.Random(1))
    two = paired(second, first, top=100, rng=random.Random(1))
    assert one.p == two.p
    assert one.p_mcnemar == two.p_mcnemar
    assert (one.n_only_first, one.n_better) == (two.n_only_second, two.n_worse)
    if one.difference is None:
        assert one.n_tasks == 0
        return
    assert one.difference == pytest.approx(-two.difference)
    if one.interval is None:
        assert one.n_tasks == 1
        return
    assert one.interval.low == pytest.approx(-two.interval.high)
    assert -100 <= one.interval.low <= one.difference <= one.interval.high <= 100
