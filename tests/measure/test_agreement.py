"""Kappa and alpha against worked examples that were published."""

import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from browseruse_bench.measure.agreement import Labelled, agreement, alpha, cohen_kappa

# Krippendorff, Computing Krippendorff's Alpha-Reliability, 2011, section C: four observers,
# twelve units, "." where a value is missing. Nominal alpha .743.
FOUR = """
1 2 3 3 2 1 4 1 2 . . .
1 2 3 3 2 2 4 1 2 5 . 3
. 3 3 3 2 3 4 2 2 5 1 .
1 2 3 3 2 4 4 1 2 5 1 .
"""
# The same, section A: two observers, ten units, two classes. Alpha .095.
TWO = "0 1 0 0 0 0 0 0 1 0\n1 1 1 0 0 1 0 0 0 0"


def units(text):
    rows = [[None if v == "." else v for v in line.split()] for line in text.strip().splitlines()]
    return [(str(n), column) for n, column in enumerate(zip(*rows, strict=True))]


@pytest.mark.parametrize(("text", "expected"), [(FOUR, 0.743), (TWO, 0.095)])
def test_alpha_of_krippendorffs_own_examples(text, expected):
    assert round(alpha(units(text)).value, 3) == expected


def test_kappa_of_cohens_own_example():
    """Cohen 1960, table 1: 200 patients, three classes, shares in percent; kappa .492."""
    shares = [[44, 5, 1], [7, 20, 3], [9, 5, 6]]
    table = {(str(i), str(j)): 2 * n for i, row in enumerate(shares) for j, n in enumerate(row)}
    assert round(cohen_kappa(table), 3) == 0.492


def rows(*counts, clusters=None):
    """`(truth, verdict, n)`; each row its own cluster unless `clusters` says how many there are."""
    made = [(t, v) for t, v, n in counts for _ in range(n)]
    return [
        Labelled(truth=t, verdict=v, cluster=str(i % clusters if clusters else i))
        for i, (t, v) in enumerate(made)
    ]


def test_a_table_and_its_figures():
    found = agreement(rows(("1", "1", 8), ("0", "1", 2), ("1", "0", 4), ("0", "0", 6)), ["1", "0"])
    yes = found.of("1")
    assert found.confusion == ((8, 4), (2, 6))
    assert (yes.tp, yes.fp, yes.fn, yes.tn) == (8, 2, 4, 6)
    assert (yes.precision.rate, yes.recall.rate) == (0.8, pytest.approx(2 / 3))
    assert yes.f1.rate == pytest.approx(16 / 22)
    assert (yes.truth_rate.rate, yes.verdict_rate.rate) == (0.6, 0.5)
    assert found.accuracy.rate == 0.7
    assert found.kappa.value == pytest.approx(0.4)


def test_a_rate_without_a_denominator_is_none_never_0():
    found = agreement(rows(("0", "0", 5), ("1", "0", 2)), ["1", "0"])
    assert found.of("1").precision.rate is None
    assert found.of("1").recall.rate == 0
    empty = agreement([], ["1", "0"])
    assert (empty.accuracy.rate, empty.kappa.value, empty.alpha.value) == (None, None, None)
    assert empty.of("1").f1.rate is None


def test_where_chance_alone_always_agrees_there_is_no_coefficient():
    """ "100 % agreement" on one class says nothing."""
    found = agreement(rows(("0", "0", 50)), ["1", "0"])
    assert found.accuracy.rate == 1
    assert (found.kappa.value, found.alpha.value) == (None, None)


def test_what_is_missing_is_counted_by_whose_it_is_and_is_in_no_table():
    given_ = [
        *rows(("1", "1", 3), ("0", "1", 1)),
        *rows((None, "1", 4), ("1", None, 2), (None, None, 1)),
    ]
    found = agreement(given_, ["1", "0"])
    assert found.n == 4
    assert (found.missing.truth, found.missing.verdict, found.missing.both) == (4, 2, 1)
    assert found.missing.total + found.n == len(given_)


def test_a_label_that_is_no_class_is_refused():
    """A code such as 2 for "not executable" is a class, or missing by name: never dropped."""
    with pytest.raises(ValueError, match=r"not of the classes .*'2'"):
        agreement(rows(("1", "1", 3), ("2", "0", 1)), ["1", "0"])
    three = agreement(rows(("1", "1", 3), ("2", "0", 1), ("0", "0", 2)), ["1", "0", "2"])
    assert three.n == 6
    assert three.of("2").recall.rate == 0
    assert three.of("2").precision.rate is None


@pytest.mark.parametrize("classes", [["1"], ["1", "1"]])
def test_fewer_than_two_classes_are_refused(classes):
    with pytest.raises(ValueError, match="two classes"):
        agreement([], classes)


labels = st.sampled_from(["a", "b", "c", None])


@settings(max_examples=30)
@given(st.lists(st.tuples(labels, labels), min_size=1, max_size=40))
def test_figures_are_those_of_a_plain_computation(pairs):
    found = agreement(
        [Labelled(truth=t, verdict=v, cluster=str(i)) for i, (t, v) in enumerate(pairs)], "abc"
    )
    both = [(t, v) for t, v in pairs if t is not None and v is not None]
    matrix = np.array([[sum(p == (a, b) for p in both) for b in "abc"] for a in "abc"])
    assert (np.array(found.confusion) == matrix).all()
    if not both:
        return
    n = matrix.sum()
    chance = (matrix.sum(0) * matrix.sum(1)).sum() / n**2
    if chance < 1:
        assert found.kappa.value == pytest.approx((matrix.trace() / n - chance) / (1 - chance))
    coincidences = matrix + matrix.T
    totals = coincidences.sum(0)
    expected = (totals.sum() ** 2 - (totals**2).sum()) / (totals.sum() - 1)
    if expected > 0:
        observed = coincidences.sum() - coincidences.trace()
        assert found.alpha.value == pytest.approx(1 - observed / expected)


@settings(max_examples=20)
@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("ab")), min_size=2, max_size=30))
def test_exchanging_the_two_changes_no_coefficient(pairs):
    one = agreement([Labelled(truth=t, verdict=v, cluster="c") for t, v in pairs], "ab")
    other = agreement([Labelled(truth=v, verdict=t, cluster="c") for t, v in pairs], "ab")
    assert one.kappa.value == pytest.approx(other.kappa.value)
    assert one.alpha.value == pytest.approx(other.alpha.value)
    assert one.of("a").precision.rate == other.of("a").recall.rate


def test_one_cluster_has_no_interval_and_full_agreement_has_one():
    one = agreement(rows(("1", "1", 5), ("0", "0", 5), clusters=1), ["1", "0"])
    assert (one.kappa.value, one.kappa.low) == (1, None)
    many = agreement(rows(("1", "1", 5), ("0", "0", 5)), ["1", "0"])
    assert many.kappa.value == many.kappa.high == 1
    assert 0 < many.kappa.low < 0.6


def test_things_of_one_task_are_not_independent():
    """The same table from 100 rows of 10 tasks has a longer interval than from 100 tasks."""
    counts = (("1", "1", 40), ("0", "1", 10), ("1", "0", 10), ("0", "0", 40))
    apart, together = (agreement(rows(*counts, clusters=n), ["1", "0"]) for n in (100, 10))
    assert apart.kappa.value == together.kappa.value
    for name in ("kappa", "alpha", "accuracy"):
        one, other = getattr(apart, name), getattr(together, name)
        assert other.high - other.low > one.high - one.low


@pytest.mark.parametrize(
    ("m", "each", "prevalence", "right", "wrong", "odd"),
    [(20, 1, 0.3, 0.7, 0.1, 0), (60, 1, 0.1, 0.9, 0.05, 0), (20, 3, 0.5, 0.95, 0.02, 0.2)],
)
def test_intervals_hold_the_true_coefficient(m, each, prevalence, right, wrong, odd):
    """By simulation; in the last setting a fifth of the tasks has verdicts at random."""
    rng = random.Random(f"{m} {each}")

    def sample(n):
        found = []
        for cluster in range(n):
            strange = rng.random() < odd
            for _ in range(each):
                truth = rng.random() < prevalence
                verdict = rng.random() < (0.5 if strange else right if truth else wrong)
                found.append((str(int(truth)), str(int(verdict)), str(cluster)))
        return found

    truth = cohen_kappa(Counter((t, v) for t, v, _ in sample(20_000)))
    kappas = [
        agreement([Labelled(truth=t, verdict=v, cluster=c) for t, v, c in sample(m)], "10").kappa
        for _ in range(70)
    ]
    held = [k.low <= truth <= k.high for k in kappas if k.low is not None]
    assert len(held) >= 63
    assert sum(held) / len(held) >= 0.9
