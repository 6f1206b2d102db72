"""The split follows from the text, and nothing that comes later moves it."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from browseruse_bench.errors import ConfigError, DataError
from browseruse_bench.factory.labels.lines import new_task
from browseruse_bench.factory.labels.split import LOCK, Rule, Split, half_of, part_of
from browseruse_bench.records.label import normal_text, text_hash
from tests.factory.labels.labelling_doubles import filled, label, open_store, texts


def test_shares_are_those_of_the_rule():
    parts = [part_of(text) for text in texts(20_000)]
    halves = [half_of(text) for text in texts(20_000) if part_of(text) == "development"]
    assert parts.count("development") / 20_000 == pytest.approx(0.8, abs=0.01)
    assert parts.count("validation") / 20_000 == pytest.approx(0.1, abs=0.01)
    assert halves.count("search") / len(halves) == pytest.approx(0.5, abs=0.015)


def test_known_texts_stay_where_they_are():
    # Literal on purpose: another hash or normalisation would move every split that exists.
    assert text_hash("Find a flat in Rome") == (
        "79d340ba3154e38893b150f62541fbda1dbfbf9c9acf15c0d31298a7b801f589"
    )
    parts = [part_of(text) for text in texts(14)]
    assert [i for i, part in enumerate(parts) if part == "validation"] == [3, 12]
    assert [i for i, part in enumerate(parts) if part == "sealed"] == [4]


@pytest.mark.parametrize(
    "other",
    [
        "find A flat  in Rome ",
        "Find\na\tflat in\u00a0Rome",
        "Find a \u200bflat in Rome",
        "\uff26ind a flat in Rome",
        "Find a flat\u00ad in Rome",
    ],
)
def test_a_text_in_another_dress_is_in_the_same_part(other):
    assert text_hash(other) == text_hash("Find a flat in Rome")


@given(st.text(max_size=40))
def test_normalising_twice_changes_nothing(text):
    assert normal_text(normal_text(text)) == normal_text(text)


@settings(max_examples=25)
@given(
    first=st.lists(st.text(min_size=1, max_size=12), min_size=1, max_size=8),
    later=st.lists(st.text(min_size=1, max_size=12), max_size=8),
)
def test_later_tasks_and_labels_never_move_older_ones(tmp_path_factory, first, later):
    store = open_store(tmp_path_factory.mktemp("labels"))
    store.add_tasks(new_task(text) for text in first)
    before = {key: store.part_of(key) for key in store.tasks}
    lines = store.split.path.read_bytes()
    store.add_tasks(new_task(text) for text in later)
    store.save([label(text, "unsuitable") for text in later])
    again = open_store(store.folder)
    assert {key: again.part_of(key) for key in before} == before
    assert store.split.path.read_bytes().startswith(lines)


def test_the_lock_outweighs_a_rule_that_would_now_say_otherwise(tmp_path, monkeypatch):
    store = filled(tmp_path, 30)
    before = {key: store.part_of(key) for key in store.tasks}
    monkeypatch.setattr(
        "browseruse_bench.factory.labels.split._part_of_hash", lambda *_: "validation"
    )
    assert {key: open_store(tmp_path).part_of(key) for key in before} == before


def test_another_salt_gives_another_split():
    moved = [part_of(t) != part_of(t, Rule(salt="2")) for t in texts(400)]
    assert 0.2 < sum(moved) / 400 < 0.5


def test_a_frozen_rule_is_not_replaced(tmp_path):
    store = filled(tmp_path, 5)
    with pytest.raises(ConfigError, match="never changes"):
        store.freeze(Rule(salt="other"))
    assert open_store(tmp_path).split.rule == Rule()


def test_a_rule_chosen_before_the_first_task_holds(tmp_path):
    open_store(tmp_path).freeze(Rule(salt="s", development=0.5, validation=0.25))
    store = filled(tmp_path, 200)
    assert store.split.rule.salt == "s"
    assert 0.15 < store.split.counts["sealed"] / 200 < 0.35


def test_a_rule_that_seals_nothing_is_refused():
    with pytest.raises(ValueError, match="nothing to be sealed"):
        Rule(development=0.9, validation=0.1)


def test_a_changed_lock_is_refused(tmp_path):
    store = filled(tmp_path, 20)
    lines = store.split.path.read_text().splitlines()
    line = json.loads(lines[3])
    line["entry"]["part"] = "development" if line["entry"]["part"] == "sealed" else "sealed"
    lines[3] = json.dumps(line)
    store.split.path.write_text("\n".join(lines) + "\n")
    with pytest.raises(DataError, match="chain breaks at line 4"):
        open_store(tmp_path)


def test_a_lost_lock_beside_labels_is_refused(tmp_path):
    filled(tmp_path, 20)
    (tmp_path / LOCK).unlink()
    with pytest.raises(DataError, match="could open what is sealed"):
        Split.open(tmp_path)


def test_a_torn_last_line_of_the_lock_is_written_again(tmp_path):
    store = filled(tmp_path, 20)
    whole = store.split.path.read_bytes()
    store.split.path.write_bytes(whole[:-9])
    again = open_store(tmp_path)
    again.add_tasks([new_task("One more task to be done")])
    assert len(Split.open(tmp_path)._parts) == 20
    assert again.part_of(new_task(texts(20)[-1]).key) == store.part_of(new_task(texts(20)[-1]).key)
