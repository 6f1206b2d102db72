import random
import statistics

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from browseruse_bench.measure.variance import components

SD = {"task": 20.0, "run": 10.0, "judge": 5.0}


def drawn(rng, n_tasks, attempts, regrades):
    """A nested design whose sizes are drawn from the given ones; 0 regrades: all ungraded."""
    values = {}
    for task in range(n_tasks):
        of_task = rng.gauss(50, SD["task"])
        values[f"t{task}"] = {}
        for attempt in range(rng.choice(attempts)):
            of_run = rng.gauss(of_task, SD["run"])
            values[f"t{task}"][f"a{attempt}"] = [
                rng.gauss(of_run, SD["judge"]) for _ in range(rng.choice(regrades))
            ]
    return values


@pytest.mark.parametrize(
    ("attempts", "regrades"), [([3], [3]), ([1, 2, 4], [1, 2, 5]), ([2, 3], [0, 2, 3])]
)
def test_estimates_are_unbiased_in_balanced_and_unbalanced_designs_and_with_ungraded_ones(
    attempts, regrades
):
    """Estimates that came out below 0 and were set to 0 are rare with these sizes."""
    rng = random.Random(f"{attempts}{regrades}")
    found = [components(drawn(rng, 25, attempts, regrades)) for _ in range(225)]
    for name, sd in SD.items():
        estimates = [getattr(each, name) for each in found]
        error = statistics.stdev(estimates) / 15
        assert statistics.mean(estimates) == pytest.approx(sd**2, abs=3.5 * error)


def test_a_balanced_design_gives_the_text_book_mean_squares():
    values = {"a": {"1": [1, 3], "2": [5, 7]}, "b": {"1": [2, 2], "2": [8, 12]}}
    found = components(values)
    # Within attempts: (2 + 2 + 0 + 8) / 4. Attempts: 2 * (4 + 4 + 16 + 16) / 2. Tasks: 8 * 1.
    assert found.judge == 3
    assert found.run == pytest.approx((2 * (4 + 4 + 16 + 16) / 2 - 3) / 2)
    assert found.task == 0
    assert found.truncated == ("task",)
    assert (found.df_judge, found.df_run, found.mean) == (4, 2, 5)


def test_one_regrade_each_tells_nothing_of_the_judge_and_so_of_the_run():
    found = components({"a": {"1": [1], "2": [5]}, "b": {"1": [2]}})
    assert (found.judge, found.run, found.task, found.task_and_run) == (None,) * 4


def test_one_attempt_each_leaves_task_and_run_together():
    found = components({"a": {"1": [1, 3]}, "b": {"1": [9, 9]}, "c": {"1": [5, 5]}})
    assert found.run is None
    assert found.task is None
    assert found.task_and_run > 0
    assert found.of_mean(3, 1, 2) == pytest.approx(found.task_and_run / 3 + found.judge / 6)
    assert found.of_mean(3, 2, 2) is None


def test_one_task_has_no_variance_between_tasks():
    found = components({"a": {"1": [1, 3], "2": [7, 9]}})
    assert (found.task, found.task_and_run) == (None, None)
    assert found.run > 0


def test_nothing_graded_is_nothing():
    found = components({"a": {"1": []}})
    assert (found.task, found.run, found.judge, found.mean, found.n_regrades) == (None,) * 4 + (0,)


def test_the_variance_of_a_mean_is_what_a_mean_varies_by():
    rng = random.Random(9)
    whole = components(drawn(rng, 2000, [2], [3]))
    means = [components(drawn(rng, 10, [2], [3])).mean for _ in range(800)]
    assert whole.of_mean(10, 2, 3) == pytest.approx(statistics.variance(means), rel=0.15)


values = st.dictionaries(
    st.sampled_from("abcd"),
    st.dictionaries(st.sampled_from("123"), st.lists(st.integers(0, 100), max_size=4), max_size=3),
    max_size=4,
)


@settings(max_examples=25)
@given(values, st.integers(-50, 50))
def test_shifting_all_values_changes_no_component_and_none_is_below_0(design, by):
    found = components(design)
    moved = components(
        {
            t: {a: [v + by for v in vs] for a, vs in attempts.items()}
            for t, attempts in design.items()
        }
    )
    for name in ("task", "run", "task_and_run", "judge"):
        one, other = getattr(found, name), getattr(moved, name)
        assert (one is None) == (other is None)
        if one is not None:
            assert one >= 0
            assert one == pytest.approx(other, abs=1e-6)
