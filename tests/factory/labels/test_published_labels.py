"""The first real labels: two annotators of 520 public tasks, 120 of them in common."""

import os
from pathlib import Path

import pytest

from browseruse_bench.factory.labels.gate import candidate, look, sealed_tasks
from browseruse_bench.factory.labels.importing import add, read_labels
from browseruse_bench.factory.labels.report import label_report, pairs
from browseruse_bench.factory.labels.split import part_of
from tests.factory.labels.labelling_doubles import open_store

DATA = os.environ.get("BUBENCH_ORACLE_DATA")
pytestmark = [
    pytest.mark.oracle,
    pytest.mark.skipif(not DATA, reason="BUBENCH_ORACLE_DATA names no folder"),
]
TAGS = {"vague": "too_vague", "login": "needs_login", "hard": "hard"}


@pytest.fixture(scope="module")
def read():
    path = Path(DATA or "") / "suitability" / "labels.jsonl"
    return read_labels(path, tags=TAGS, at="2026-01-01T00:00:00+00:00")


@pytest.fixture
def store(tmp_path, read):
    store = open_store(tmp_path)
    add(store, read)
    return store


def test_agreement_and_kappa_of_the_annotators_are_the_published_ones(read):
    [pair] = pairs(read.labels)
    assert pair.agreement.n == 120
    assert pair.agreement.accuracy.rate == pytest.approx(0.967, abs=0.0005)
    assert pair.agreement.kappa.value == pytest.approx(0.897, abs=0.0005)


def test_the_split_has_its_sizes_and_leaves_none_out(store, read):
    assert store.split.counts == {"development": 415, "validation": 58, "sealed": 47}
    assert all(part_of(task.text) == store.part_of(task.key) for task in read.tasks)


def test_what_is_not_sealed_is_reported_and_nothing_else(store):
    found = label_report(store)
    assert [part.n_tasks for part in found.parts] == [415, 58, 47]
    [pair] = found.pairs
    assert pair.agreement.n == sum(
        1
        for key in store.tasks
        if store.part_of(key) != "sealed"
        and (key, "A") in store.given()
        and (key, "B") in store.given()
    )
    rates = {s.source: s.suitable.rate for s in found.sources}
    # The label nearly follows the source.
    assert rates["odysseys"] > 0.85
    assert rates["webbench"] < 0.05


def test_one_look_at_the_sealed_tenth_is_recorded(store):
    tasks = sealed_tasks(store)
    what = candidate("Call all unsuitable", name="none", model="rule")
    found = look(store, what, {task.key: "unsuitable" for task in tasks})
    assert found.result.agreement.n + found.result.n_split == len(tasks) == 47
    assert found.result.agreement.accuracy.rate == pytest.approx(46 / 47)
