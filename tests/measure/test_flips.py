import itertools
import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from browseruse_bench.measure.flips import (
    Regrade,
    claim,
    flips,
    graded,
    item_flips,
    met_against_violated,
    pairs_across,
    pairs_of,
    pooled,
    shrink,
)
from browseruse_bench.measure.shrinkage import Prior

STATUSES = ["met", "violated", "not_assessable", "unsupported"]
M, V, N, U = STATUSES


def regrades(task_id, trace, *rows, items="AB"):
    """One regrade per row: a status for each item, or None for an ungraded one."""
    return [
        Regrade(
            task_id=task_id,
            trace=trace,
            sample=sample,
            statuses=None if row is None else dict(zip(items, row, strict=True)),
        )
        for sample, row in enumerate(rows)
    ]


def by_item(found):
    return {(each.task_id, each.item): each for each in found}


def test_the_rate_is_the_share_of_unordered_pairs_pooled_over_traces():
    given_ = [
        *regrades("t", "x", (M, V), (M, V), (M, V), (V, V)),
        *regrades("t", "y", (M, M), (V, M)),
    ]
    found = by_item(item_flips(graded(given_), {"t": "AB"}))
    item = found["t", "A"].credit
    assert (item.n_disagreeing, item.n_pairs) == (3 + 1, 6 + 1)
    assert item.share.rate == pytest.approx(4 / 7)
    assert found["t", "B"].credit.share.rate == 0
    assert found["t", "A"].n_traces == 2


def test_unlike_statuses_without_credit_are_no_flip_and_the_posts_measure_sees_less():
    given_ = regrades("t", "x", (V, M), (N, N), (U, V))
    found = by_item(item_flips(graded(given_), {"t": "AB"}))
    assert found["t", "A"].credit.n_disagreeing == 0
    assert found["t", "B"].credit.n_disagreeing == 2
    assert found["t", "B"].post.n_disagreeing == 1
    assert found["t", "B"].post.n_pairs == found["t", "B"].credit.n_pairs == 3


def test_means_that_agree_hide_no_flip_bl052():
    """Two regrades of 50 points each, of unlike halves: the scores agree, both items flip."""
    found = item_flips(graded(regrades("t", "x", (M, V), (V, M))), {"t": "AB"})
    assert [each.credit.share.rate for each in found] == [1, 1]


def test_an_ungraded_regrade_forms_no_pair_and_is_no_agreement():
    """Two graded and three ungraded ones are one pair, not ten."""
    given_ = regrades("t", "x", (M, M), None, (M, V), None, None)
    found = by_item(item_flips(graded(given_), {"t": "AB"}))
    assert found["t", "A"].credit.n_pairs == found["t", "B"].credit.n_pairs == 1
    assert found["t", "B"].credit.share.rate == 1


def test_an_item_that_was_never_compared_has_no_rate():
    found = item_flips(graded(regrades("t", "x", (M, M), None)), {"t": "AB", "u": "A"})
    assert [(each.credit.share.rate, each.shrunk, each.n_traces) for each in found] == [
        (None, None, 0)
    ] * 3


rows = st.lists(
    st.one_of(st.none(), st.tuples(st.sampled_from(STATUSES), st.sampled_from(STATUSES))),
    max_size=7,
)
worlds = st.dictionaries(
    st.sampled_from(["t", "u", "v"]), st.dictionaries(st.sampled_from("xyz"), rows), max_size=3
)


def all_of(world):
    return [r for t, traces in world.items() for x, rows_ in traces.items()
            for r in regrades(t, x, *rows_)]  # fmt: skip


@settings(max_examples=25)
@given(worlds)
def test_counts_are_those_of_looking_at_every_pair(world):
    given_ = all_of(world)
    items = dict.fromkeys(world, "AB")
    credit = pairs_of(graded(given_), items)
    post = pairs_of(graded(given_), items, differ=met_against_violated)
    found = pooled(credit, post, items)
    pairs = [
        (one.statuses[item], other.statuses[item])
        for one, other in itertools.combinations(given_, 2)
        if (one.task_id, one.trace) == (other.task_id, other.trace)
        and None not in (one.statuses, other.statuses)
        for item in "AB"
    ]
    assert found.n_pairs == len(pairs)
    assert found.n_disagreeing == sum((a == M) != (b == M) for a, b in pairs)
    each = item_flips(graded(given_), items)
    assert sum(e.credit.n_disagreeing for e in each) == found.n_disagreeing
    assert sum(e.post.n_disagreeing for e in each) == sum({a, b} == {M, V} for a, b in pairs)
    assert sum(e.credit.n_pairs for e in each) == found.n_pairs
    assert all(e.post.n_disagreeing <= e.credit.n_disagreeing for e in each)
    if pairs:
        assert found.here.rate == pytest.approx(found.n_disagreeing / len(pairs))


@settings(max_examples=25)
@given(worlds, st.randoms(use_true_random=False))
def test_the_order_of_regrades_and_tasks_changes_nothing(world, rng):
    given_ = all_of(world)
    items = dict.fromkeys(sorted(world), "AB")
    shuffled = rng.sample(given_, len(given_))
    assert item_flips(graded(given_), items) == item_flips(graded(shuffled), items)
    one, other = (pairs_of(graded(each), items) for each in (given_, shuffled))
    assert one == other


@settings(max_examples=25)
@given(worlds, worlds)
def test_pairs_across_two_judges_are_those_of_looking_at_every_pair(ours, theirs):
    items = dict.fromkeys("tuv", "AB")
    first, second = all_of(ours), all_of(theirs)
    found = pairs_across(graded(first), graded(second), items)
    pairs = [
        sum((one.statuses[i] == M) != (other.statuses[i] == M) for i in "AB")
        for one in first
        for other in second
        if (one.task_id, one.trace) == (other.task_id, other.trace)
        and None not in (one.statuses, other.statuses)
    ]
    parts = [part for task in found.by_task.values() for part in task]
    assert sum(part.weight for part in parts) == len(pairs)
    assert sum(part.happened * part.weight for part in parts) == sum(pairs)


@pytest.mark.parametrize(("k", "n"), [(2, 1), (5, 2.5), (10, 5)])
def test_k_regrades_of_a_trace_are_half_as_many_comparisons(k, n):
    """Not k * (k - 1) / 2: ten regrades are 45 pairs, and tell as much as five pairs apart."""
    traces = graded(regrades("t", "x", *[(M, M)] * k))
    pairs = pairs_of(traces, {"t": "AB"})
    assert claim(pairs, 0.01).n_comparisons == pytest.approx(n)
    assert item_flips(traces, {"t": "A"})[0].credit.share.n_effective == pytest.approx(n)


def test_two_judges_are_as_many_comparisons_as_the_one_with_fewer_regrades():
    first = graded(regrades("t", "x", *[(M, M)] * 6))
    second = graded(regrades("t", "x", *[(M, M)] * 3))
    pairs = pairs_across(first, second, {"t": "AB"})
    assert sum(part.weight for part in pairs.parts) == pytest.approx(3)


def world_of(n_traces, k, *, flipping=0):
    """Stable traces, of which `flipping` have one regrade that differs in one item."""
    found = []
    for n in range(n_traces):
        given_ = [(M, V)] * k
        if n < flipping:
            given_[0] = (V, V)
        found += regrades(f"t{n % 50}", f"x{n}", *given_)
    items = {f"t{n % 50}": "AB" for n in range(n_traces)}
    return pairs_of(graded(found), items)


def test_119_traces_of_5_regrades_do_not_show_1_percent_and_120_do():
    """120 x 5 / 2 = 300 comparisons without a flip; 119 x 5 / 2 = 297.5 are too few."""
    short, enough = (claim(world_of(n, 5), 0.01) for n in (119, 120))
    assert not short.shown
    assert short.more_regrades == 2
    assert enough.shown
    assert enough.upper < 0.01
    assert (enough.more_regrades, enough.n_comparisons) == (0, pytest.approx(300))


def test_a_claim_is_not_made_from_few_pairs_however_they_agree():
    one = claim(pairs_of(graded(regrades("t", "x", (M, M), (M, M))), {"t": "AB"}), 0.01)
    assert not one.shown
    assert one.more_regrades == 595  # 2 * 298.07 comparisons, less one
    nothing = claim(pairs_of({}, {}), 0.01)
    assert (nothing.shown, nothing.upper) == (False, None)
    assert nothing.more_regrades == 597


def test_with_flips_the_claim_needs_more_and_at_the_limit_no_number_shows_it():
    few = claim(world_of(120, 5, flipping=1), 0.01)
    assert not few.shown
    assert few.more_regrades > 0
    many = claim(world_of(120, 5, flipping=12), 0.01)
    assert (many.shown, many.more_regrades) == (False, None)


def test_the_number_of_regrades_that_is_asked_for_shows_it_and_fewer_do_not():
    pairs = world_of(120, 5, flipping=2)
    now = claim(pairs, 0.01)
    assert not now.shown
    for more, shown in ((now.more_regrades, True), (now.more_regrades - 10, False)):
        times = 1 + more / 2 / now.n_comparisons
        again = claim(replace(pairs, comparisons=pairs.comparisons * times), 0.01)
        assert again.shown is shown


def test_other_tasks_take_tasks():
    found = claim(world_of(100, 6), 0.01)
    assert found.shown
    assert found.more_tasks == 299 - 50


def test_shrinking_draws_rates_of_few_comparisons_most():
    given_ = [
        *regrades("t", "x", (M, M), (V, M)),
        *[r for n in range(20) for r in regrades("u", f"y{n}", (M, M), (V, M), (M, M), (V, M))],
    ]
    found = item_flips(graded(given_), {"t": "A", "u": "A"})
    few, many = shrink(found, Prior(mean=0.01, strength=10))
    assert few.credit.share.rate > many.credit.share.rate
    assert few.shrunk < many.shrunk


def test_flags_and_other_values_are_compared_by_being_unlike():
    found = flips([[True, False, False], [False, False], [True]])
    assert (found.n_disagreeing, found.n_pairs) == (2, 4)


# ---- judges whose true flip rates are known -------------------------------------------------


def judge_world(rng, n_tasks, n_traces, n_items, kind):
    """(task, trace, item) -> probability of credit."""
    draw = {
        "nine of ten are stable": lambda: 0 if rng.random() < 0.9 else rng.choice([0.5, 0.2, 0.1]),
        "all flip rarely": lambda: 0.005,
        "all flip always": lambda: 0.5,
    }[kind]
    rates = {(t, i): draw() for t in range(n_tasks) for i in range(n_items)}
    return {
        (t, x, i): rate * (1 if rng.random() < 0.7 else rng.random())
        for (t, i), rate in rates.items()
        for x in range(n_traces)
    }


def graded_by(rng, world, k, *, together):
    """k regrades of each trace. `together`: one draw decides all items of a call."""
    n_items = 1 + max(i for _, _, i in world)
    traces = {}
    for t, x in sorted({(t, x) for t, x, _ in world}):
        rows_ = []
        for _ in range(k):
            one = rng.random()
            draws = [one if together else rng.random() for _ in range(n_items)]
            rows_.append({str(i): M if draws[i] < world[t, x, i] else V for i in range(n_items)})
        traces.setdefault(str(t), {})[str(x)] = rows_
    return traces


def true_rate(world):
    return sum(2 * p * (1 - p) for p in world.values()) / len(world)


KINDS = ["nine of ten are stable", "all flip rarely", "all flip always"]
# Of 80 intervals that hold the truth with 95 % each, fewer than 69 do so once in 500 times.
SAMPLES, LEAST = 80, 69 / 80


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_the_pooled_rate_is_unbiased_and_its_interval_holds_the_truth(kind, together):
    rng = random.Random(f"{kind}{together}")
    world = judge_world(rng, 15, 2, 4, kind)
    items = {str(t): "0123" for t in range(15)}
    truth = true_rate(world)
    found = [
        pooled(p := pairs_of(graded_by(rng, world, 5, together=together), items), p, items).here
        for _ in range(SAMPLES)
    ]
    mean = sum(each.rate for each in found) / SAMPLES
    spread = (sum((each.rate - mean) ** 2 for each in found) / SAMPLES) ** 0.5
    assert mean == pytest.approx(truth, abs=4 * spread / SAMPLES**0.5 + 1e-9)
    assert sum(each.low <= truth <= each.high for each in found) / SAMPLES >= LEAST


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_the_interval_for_new_tasks_holds_the_mean_of_their_kind(kind, together):
    rng = random.Random(f"new {kind}{together}")
    items = {str(t): "0123" for t in range(15)}
    truth = sum(true_rate(judge_world(rng, 15, 2, 4, kind)) for _ in range(100)) / 100
    held = 0
    for _ in range(SAMPLES):
        world = judge_world(rng, 15, 2, 4, kind)
        pairs = pairs_of(graded_by(rng, world, 5, together=together), items)
        found = pooled(pairs, pairs, items).new_tasks
        held += found.low <= truth <= found.high
    assert held / SAMPLES >= LEAST


@pytest.mark.parametrize("p", [0.0, 0.02, 0.1, 0.5])
def test_the_interval_of_an_item_holds_its_true_rate_bl051(p):
    """A frozen trace regraded by a judge that gives credit with a known probability."""
    rng = random.Random(p)
    truth = 2 * p * (1 - p)
    found = [
        flips([[rng.random() < p for _ in range(10)] for _ in range(3)]).share for _ in range(400)
    ]
    assert sum(each.rate for each in found) / 400 == pytest.approx(truth, abs=0.02)
    assert sum(each.low <= truth <= each.high for each in found) / 400 >= 0.93


def test_the_interval_would_not_hold_if_pairs_were_taken_for_independent():
    """The test above can fail: with one comparison for each pair it covers far less."""
    rng = random.Random(11)
    world = judge_world(rng, 20, 2, 5, "all flip rarely")
    items = {str(t): "01234" for t in range(20)}
    truth, held = true_rate(world), 0
    for _ in range(60):
        pairs = pairs_of(graded_by(rng, world, 12, together=True), items)
        naive = pooled(replace(pairs, comparisons=1.0), pairs, items).here
        held += naive.low <= truth <= naive.high
    assert held / 60 < 0.8
