"""A labeller is given what is wanted, blind, and nothing twice."""

import dataclasses

import pytest

from browseruse_bench.errors import ConfigError
from browseruse_bench.factory.labels import desk
from browseruse_bench.factory.labels.desk import Assignment, Word
from browseruse_bench.factory.labels.lines import new_task
from tests.factory.labels.labelling_doubles import filled, open_store, texts


def stocked(folder, n=12, wanted=1):
    store = open_store(folder)
    store.add_tasks(new_task(text, wanted=wanted) for text in texts(n))
    return store


def label_all(store, who, verdict="suitable"):
    seen = []
    while (given := desk.next_task(store, who)) is not None:
        seen.append(given.task)
        desk.save(store, who, given, Word(verdict=verdict, reason="so"))
    return seen


def test_every_task_is_given_once_and_then_nothing_is_left(tmp_path):
    store = stocked(tmp_path)
    assert sorted(label_all(store, "ada")) == sorted(store.tasks)
    assert desk.next_task(store, "ada") is None
    assert desk.next_task(store, "ben") is None


def test_a_task_that_wants_two_is_given_to_a_second_person_and_never_to_the_same(tmp_path):
    store = stocked(tmp_path, wanted=2)
    label_all(store, "ada")
    label_all(store, "ben")
    assert desk.next_task(store, "cy") is None
    assert {len([1 for t, _ in store.given() if t == key]) for key in store.tasks} == {2}


def test_labellers_go_through_the_tasks_in_orders_of_their_own(tmp_path):
    store = stocked(tmp_path, n=30, wanted=2)
    orders = [[t.key for t in desk.owed(store, who)] for who in ("ada", "ben")]
    assert sorted(orders[0]) == sorted(orders[1])
    assert orders[0] != orders[1]


def test_an_assignment_tells_nothing_but_the_task(tmp_path):
    store = stocked(tmp_path, wanted=2)
    label_all(store, "ada", "unsuitable")
    given = desk.next_task(store, "ben")
    assert given is not None
    assert {f.name for f in dataclasses.fields(given)} == {"task", "text", "recheck"}
    assert given == Assignment(task=given.task, text=store.task(given.task).text)


def test_what_others_said_is_shown_only_after_ones_own_word(tmp_path):
    store = stocked(tmp_path, wanted=3)
    label_all(store, "ada", "unsuitable")
    key = next(key for key in store.tasks if store.part_of(key) == "development")
    with pytest.raises(ConfigError, match="once your own label is saved"):
        desk.what_others_said(store, "ben", key)
    given = Assignment(task=key, text=store.task(key).text)
    assert desk.save(store, "ben", given, Word(verdict="suitable")).blind
    [other] = desk.what_others_said(store, "ben", key)
    assert (other.labeller, other.verdict) == ("ada", "unsuitable")
    again = desk.save(open_store(tmp_path), "ben", given, Word(verdict="unsuitable"))
    assert not again.blind


def test_sealed_labels_are_shown_to_nobody(tmp_path):
    store = filled(tmp_path, 60, ("ada", "ben"))
    key = next(key for key in store.tasks if store.part_of(key) == "sealed")
    with pytest.raises(ConfigError, match="sealed, for everybody"):
        desk.what_others_said(store, "ada", key)


def test_what_was_put_off_comes_when_nothing_else_is_left(tmp_path):
    store = stocked(tmp_path, n=3)
    first, second, third = [task.key for task in desk.owed(store, "ada")]
    given = [
        desk.next_task(store, "ada", skipped=skipped)
        for skipped in ([], [first], [first, second], [third, first, second])
    ]
    assert [g.task for g in given if g] == [first, second, third, third]


def test_undo_gives_the_task_back_to_be_labelled_again(tmp_path):
    store = stocked(tmp_path)
    label_all(store, "ada")
    taken = desk.undo(store, "ada")
    assert taken is not None
    assert desk.next_task(store, "ada") == taken
    assert desk.undo(store, "nobody") is None


def test_rechecks_are_ones_own_unsealed_tasks_and_stand_beside_the_first_word(tmp_path):
    store = stocked(tmp_path, n=60)
    label_all(store, "ada")
    while (given := desk.next_task(store, "ada", rechecks=10)) is not None:
        assert given.recheck
        assert store.part_of(given.task) != "sealed"
        desk.save(store, "ada", given, Word(verdict="uncertain"))
    assert len(store.labels(recheck=True)) == 10
    assert {x.verdict for x in store.labels()} == {"suitable"}
    assert desk.next_task(store, "ben", rechecks=10) is None


def test_progress_counts_what_is_wanted_given_and_left(tmp_path):
    store = stocked(tmp_path, n=6, wanted=2)
    label_all(store, "ada")
    assert desk.progress(store, "ben") == desk.Progress(
        n_tasks=6, n_labelled=6, n_wanted=12, n_given=6, n_mine=0, n_left_for_me=6
    )
    assert desk.progress(store, "ada").n_left_for_me == 0


@pytest.mark.parametrize("name", ["", " ", "a b", "a/b", "x" * 61, "<b>"])
def test_a_name_that_cannot_stand_in_a_report_is_refused(name):
    with pytest.raises(ConfigError, match="labeller"):
        desk.checked_labeller(name)


def test_plain_names_are_taken():
    assert desk.checked_labeller(" ada.l@x.org ") == "ada.l@x.org"
