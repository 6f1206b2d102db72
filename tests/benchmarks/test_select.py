import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from browseruse_bench.benchmarks.select import select
from browseruse_bench.errors import ConfigError
from browseruse_bench.records.task import Task

LEVELS = ("easy", "medium", "hard")


def tasks(n):
    return [
        Task(
            task_id=f"t{i}", task=f"T{i}", difficulty=LEVELS[i % 3], category=["Shop", "Map"][i % 2]
        )
        for i in range(n)
    ]


def ids(selected):
    return [task.task_id for task in selected.tasks]


def test_all_is_file_order():
    assert ids(select(tasks(4))) == ["t0", "t1", "t2", "t3"]


def test_first_n_is_file_order():
    assert ids(select(tasks(4), mode="first_n", count=2)) == ["t0", "t1"]


@pytest.mark.parametrize("mode", ["first_n", "sample_n"])
@pytest.mark.parametrize("count", [0, -1])
def test_a_count_below_1_is_refused_peers_first_n_count_minus_1(mode, count):
    with pytest.raises(ConfigError, match=f"--count {count}: must be 1 or more"):
        select(tasks(4), mode=mode, count=count)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"mode": "first_n"}, "needs --count"),
        ({"mode": "sample_n"}, "needs --count"),
        ({"mode": "all", "count": 2}, "--count belongs to"),
        ({"mode": "ids", "task_ids": ["t0"], "count": 1}, "--count belongs to"),
        ({"mode": "ids"}, "needs --task-ids"),
        ({"mode": "all", "task_ids": ["t0"]}, "--task-ids belongs to"),
    ],
)
def test_an_argument_that_is_missing_or_does_not_belong_is_refused(arguments, text):
    with pytest.raises(ConfigError, match=text):
        select(tasks(4), **arguments)


def test_a_count_beyond_the_size_takes_all_and_says_so():
    selected = select(tasks(2), mode="first_n", count=3)
    assert ids(selected) == ["t0", "t1"]
    assert selected.notes == ("2 tasks match; --count 3 selects all 2",)
    assert select(tasks(2), mode="first_n", count=2).notes == ()


@given(n=st.integers(1, 30), seed=st.integers(), order=st.randoms())
def test_a_sample_does_not_depend_on_file_order_and_grows(n, seed, order):
    shuffled = tasks(n)
    order.shuffle(shuffled)
    whole = ids(select(shuffled, mode="sample_n", count=n, seed=seed))
    for count in range(1, n + 1):
        assert ids(select(tasks(n), mode="sample_n", count=count, seed=seed)) == whole[:count]


def test_another_seed_gives_another_sample():
    samples = {tuple(ids(select(tasks(50), mode="sample_n", count=5, seed=s))) for s in range(5)}
    assert len(samples) == 5


def test_a_sample_ignores_the_global_random_state():
    random.seed(1)
    first = ids(select(tasks(50), mode="sample_n", count=5))
    random.seed(2)
    assert ids(select(tasks(50), mode="sample_n", count=5)) == first


def test_ids_come_in_the_order_given():
    assert ids(select(tasks(4), mode="ids", task_ids=["t3", "t1"])) == ["t3", "t1"]


def test_an_id_given_twice_counts_once_and_is_noted():
    selected = select(tasks(4), mode="ids", task_ids=["t3", "t1", "t3"])
    assert ids(selected) == ["t3", "t1"]
    assert selected.notes == ("'t3' is given more than once and counts once",)


def test_unknown_ids_are_refused_all_at_once_peers_task_ids_A_NoSuch():
    with pytest.raises(ConfigError) as caught:
        select(tasks(4), mode="ids", task_ids=["t1", "T2", "nosuch"])
    first, second = str(caught.value).split("\n")
    assert "unknown task 'T2'; did you mean 't2'?" in first
    assert "unknown task 'nosuch'" in second


def test_of_many_ids_only_the_nearest_is_named():
    with pytest.raises(ConfigError) as caught:
        select(tasks(3000), mode="ids", task_ids=["t29999"])
    assert "did you mean 't2999'?" in str(caught.value)
    assert "the split has 3000 tasks" in str(caught.value)
    assert len(str(caught.value)) < 200


def test_filters_ignore_case_and_combine():
    selected = select(tasks(12), category=["shop"], difficulty=["EASY", "Hard"])
    assert ids(selected) == ["t0", "t2", "t6", "t8"]


def test_an_unknown_filter_value_lists_the_known_ones():
    with pytest.raises(ConfigError, match="unknown category 'Food'.*known: Map, Shop"):
        select(tasks(4), category=["Food"])
    with pytest.raises(ConfigError, match="unknown difficulty 'hart'; did you mean 'hard'"):
        select(tasks(4), difficulty=["hart"])


def test_filters_that_nothing_passes_together_are_refused():
    with pytest.raises(ConfigError, match="no task has category Map and difficulty hard"):
        select(tasks(3), category=["Map"], difficulty=["hard"])


def test_a_filter_comes_before_the_count():
    assert ids(select(tasks(12), mode="first_n", count=2, difficulty=["hard"])) == ["t2", "t5"]


def test_an_id_that_the_filter_leaves_out_is_noted():
    selected = select(tasks(4), mode="ids", task_ids=["t0", "t1"], difficulty=["easy"])
    assert ids(selected) == ["t0"]
    assert selected.notes == ("'t1' is left out by the filter",)


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"mode": "first_n", "count": 4},
        {"mode": "sample_n", "count": 4},
        {"mode": "ids", "task_ids": ["t1", "t0", "t2", "t3"]},
    ],
)
def test_an_excluded_task_is_never_selected_and_is_noted(arguments):
    selected = select(tasks(4), exclude=["t1"], **arguments)
    assert sorted(ids(selected)) == ["t0", "t2", "t3"]
    assert "'t1' is excluded by the benchmark and never selected" in selected.notes


def test_an_empty_split_selects_nothing_and_says_so():
    selected = select([], mode="first_n", count=3, difficulty=["hard"])
    assert (selected.tasks, selected.notes) == ((), ("the split has no task",))
