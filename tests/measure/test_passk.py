"""pass@k and pass^k: over attempts with a verdict only, and no task is dropped."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from browseruse_bench.measure.passk import pass_all, pass_at, pass_k
from browseruse_bench.measure.tally import Placed
from browseruse_bench.records.score import Score


def placed(**tasks: str) -> list[Placed]:
    """Per task a letter per attempt: `+` success, `-` none, `i` infrastructure, `u` ungraded."""
    where = {"+": "graded", "-": "graded", "i": "infrastructure", "u": "ungraded"}
    return [
        Placed(
            task_id=task,
            attempt=number,
            where=where[letter],
            reason="judge_fault" if letter == "u" else None,
            score=Score(
                raw_points=0, points=100.0 * (letter == "+"), reward=0, success=letter == "+"
            )
            if letter in "+-"
            else None,
        )
        for task, letters in tasks.items()
        for number, letter in enumerate(letters, 1)
    ]


@given(st.lists(st.booleans(), min_size=1, max_size=8), st.data())
def test_both_are_the_share_of_all_subsets(outcomes, data):
    """The definition: over every choice of k of the n attempts."""
    k = data.draw(st.integers(1, len(outcomes)))
    subsets = list(combinations(outcomes, k))
    n, c = len(outcomes), sum(outcomes)
    assert pass_at(n, c, k) == pytest.approx(sum(map(any, subsets)) / len(subsets))
    assert pass_all(n, c, k) == pytest.approx(sum(map(all, subsets)) / len(subsets))


def test_pass_at_k_is_that_of_the_program_of_its_paper():
    """Chen et al. 2021, figure 3: 1 - prod(1 - k / arange(n - c + 1, n + 1))."""
    product = 1.0
    for i in range(200 - 13 + 1, 201):
        product *= 1 - 10 / i
    assert pass_at(200, 13, 10) == pytest.approx(1 - product)


@pytest.mark.parametrize(("n", "c", "k"), [(3, 1, 4), (3, 4, 1), (3, -1, 1), (3, 1, 0)])
def test_counts_that_cannot_be_are_refused(n, c, k):
    with pytest.raises(ValueError, match="needs 1 <= k <= n"):
        pass_at(n, c, k)
    with pytest.raises(ValueError, match="needs 1 <= k <= n"):
        pass_all(n, c, k)


def test_one_success_among_four_slots_is_not_100_percent_BL055():
    """success, infra, infra, infra: no estimate for k = 4, and bounds that say how little is
    known; the share of k = 1 has its bounds beside it.
    """
    found = {each.k: each for each in pass_k(placed(a="+iii"))}
    assert sorted(found) == [1, 2, 4]
    four = found[4]
    assert (four.n_tasks, four.n_short) == (1, 1)
    assert (four.all.mean, four.all.lower, four.all.upper) == (None, 0, 1)
    assert (four.any.mean, four.any.lower, four.any.upper) == (None, 1, 1)
    one = found[1]
    assert (one.all.mean, one.all.lower, one.all.upper) == (1, 0.25, 1)


def test_a_task_without_any_verdict_stays_in_the_count_and_in_the_bounds_BL055():
    found = {each.k: each for each in pass_k(placed(a="++", b="ii", c="u-"))}
    assert (found[1].n_tasks, found[1].n_short) == (3, 1)
    assert found[1].all.mean == 0.5
    assert (found[2].n_tasks, found[2].n_short) == (3, 2)
    assert (found[2].all.mean, found[2].all.lower, found[2].all.upper) == (1, 1 / 3, 2 / 3)
    assert found[2].all.interval is None


def test_a_run_of_single_attempts_has_none():
    assert pass_k(placed(a="+", b="-")) == ()
    assert pass_k([]) == ()


@given(st.lists(st.text("+-iu", min_size=1, max_size=5), min_size=1, max_size=6))
def test_the_bounds_meet_in_the_mean_where_nothing_is_missing_and_all_is_never_above_any(tasks):
    found = pass_k(placed(**{f"t{n}": letters for n, letters in enumerate(tasks)}))
    for each in found:
        for share in (each.any, each.all):
            assert 0 <= share.lower <= share.upper <= 1
            if each.n_short == 0 and not any(x in "iu" for t in tasks for x in t):
                assert share.mean == pytest.approx(share.lower) == pytest.approx(share.upper)
        assert each.all.lower <= each.any.lower
