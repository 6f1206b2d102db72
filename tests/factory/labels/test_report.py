"""The report counts what may be counted, and weighs a sample by its strata."""

import pytest

from browseruse_bench.factory.labels.desk import Assignment, Word, save, what_others_said
from browseruse_bench.factory.labels.lines import new_task
from browseruse_bench.factory.labels.report import label_report
from browseruse_bench.factory.labels.report_text import tables
from browseruse_bench.factory.labels.sample import add_draw, draw
from browseruse_bench.records.candidate import new_candidate
from browseruse_bench.report.render import plain_table
from tests.factory.labels.labelling_doubles import filled, label, open_store, texts


def unsealed(store):
    return [task.text for key, task in store.tasks.items() if store.part_of(key) != "sealed"]


def test_sealed_labels_are_in_no_figure(tmp_path):
    store = filled(tmp_path, 60, ("ada", "ben"))
    sealed = [task.text for key, task in store.tasks.items() if store.part_of(key) == "sealed"]
    before = label_report(store)
    store.save([label(text, "unsuitable", labeller="ben") for text in sealed])
    assert label_report(store) == before
    parts = {part.part: part for part in before.parts}
    assert parts["sealed"].n_tasks == len(sealed)
    assert parts["sealed"].by_verdict is None
    assert before.labellers[0].n == 60 - len(sealed)


def test_agreement_is_that_of_labels_given_blind(tmp_path):
    store = filled(tmp_path, 20)
    first, *rest = unsealed(store)
    store.save([label(text, labeller="ben") for text in rest])
    given = Assignment(task=new_task(first).key, text=first)
    save(store, "ben", given, Word(verdict="unsuitable"))
    what_others_said(store, "ben", given.task)
    save(store, "ben", given, Word(verdict="suitable"))
    found = label_report(store)
    [pair] = found.pairs
    assert (pair.agreement.n, pair.agreement.accuracy.rate) == (len(rest), 1)
    assert {x.name: x.n_not_blind for x in found.labellers} == {"ada": 0, "ben": 1}


def test_a_task_without_a_majority_is_counted_and_shown(tmp_path):
    store = filled(tmp_path, 20)
    text = unsealed(store)[0]
    store.save([label(text, "unsuitable", labeller="ben", reason="no")])
    found = label_report(store)
    assert sum(part.n_split or 0 for part in found.parts) == 1
    [difference] = found.differences
    assert difference.said == {"ada": "suitable", "ben": "unsuitable"}
    assert difference.reasons["ben"] == "no"


def test_the_share_of_the_corpus_weighs_strata_by_their_size(tmp_path):
    # 900 rare tasks, none suitable; 100 frequent ones, all suitable; as many drawn of each.
    corpus = [new_candidate(f"Rare task number {i}") for i in range(900)]
    corpus += [new_candidate(f"Frequent task number {i}", count=50) for i in range(100)]
    store = open_store(tmp_path)
    drawn = draw(corpus, 100, seed=0, by="count")
    add_draw(store, drawn, twice=0)
    store.save([label(t.text, "suitable" if t.count > 1 else "unsuitable") for t in drawn.tasks])
    found = label_report(store).corpus
    assert found is not None
    assert found.suitable.rate == pytest.approx(0.1)
    assert found.suitable.low < 0.1 < found.suitable.high
    assert {s.name: s.suitable.rate for s in found.strata} == {"1": 0, "10-99": 1}
    assert found.n_unlabelled == store.split.counts["sealed"]


def test_a_stratum_of_which_nothing_is_known_is_named(tmp_path):
    corpus = [new_candidate(f"Rare task number {i}") for i in range(30)]
    corpus += [new_candidate(f"Frequent task number {i}", count=50) for i in range(30)]
    store = open_store(tmp_path)
    drawn = draw(corpus, 20, seed=0, by="count")
    add_draw(store, drawn, twice=0)
    assert label_report(store).corpus is None
    store.save([label(t.text) for t in drawn.tasks if t.count == 1])
    found = label_report(store)
    assert found.corpus is not None
    assert found.corpus.strata_unlabelled == ("10-99",)
    assert any("nothing is known of 10-99" in table.title for table in tables(found))


def test_sources_are_set_apart_where_there_are_several(tmp_path):
    store = open_store(tmp_path)
    store.add_tasks(new_task(text, source=f"s{i % 2}") for i, text in enumerate(texts(40)))
    store.save([label(t, "suitable" if i % 2 else "unsuitable") for i, t in enumerate(texts(40))])
    assert {s.source: s.suitable.rate for s in label_report(store).sources} == {"s0": 0, "s1": 1}
    assert label_report(filled(tmp_path / "other", 10)).sources == ()


def test_the_report_can_be_shown_with_nothing_in_it_but_one_label(tmp_path):
    store = filled(tmp_path, 1)
    text = "".join(plain_table(table) for table in tables(label_report(store)))
    assert "ada" in text
    assert "Agreement" not in text
