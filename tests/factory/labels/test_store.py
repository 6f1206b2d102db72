"""Labels are appended, and the newest that was not taken back counts."""

import multiprocessing
import stat
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from browseruse_bench.errors import ConfigError, DataError, StoreError
from browseruse_bench.factory.labels import store as store_module
from browseruse_bench.factory.labels.lines import new_task
from browseruse_bench.factory.labels.store import LabelStore
from tests.factory.labels.labelling_doubles import filled, label, open_store, texts


def of_part(store, part):
    return next(key for key in store.tasks if store.part_of(key) == part)


def text_of(store, part):
    return store.task(of_part(store, part)).text


def test_a_label_counts_for_every_reader_once_it_is_saved(tmp_path):
    store, other = open_store(tmp_path), open_store(tmp_path)
    store.add_tasks([new_task(texts(1)[0])])
    store.save([label(texts(1)[0], "unsuitable", tags=("too_easy",), hard=False)])
    other.refresh()
    [found] = other.labels()
    assert (found.verdict, found.tags, found.hard) == ("unsuitable", ("too_easy",), False)
    assert other.labels() == open_store(tmp_path).labels()


def test_the_newest_label_of_a_labeller_counts_and_labellers_stand_side_by_side(tmp_path):
    store = filled(tmp_path, 1, ("ada", "ben"))
    store.save([label(texts(1)[0], "uncertain")])
    assert {x.labeller: x.verdict for x in store.labels()} == {
        "ada": "uncertain",
        "ben": "suitable",
    }


def test_sealed_verdicts_and_reasons_stand_in_no_file_but_their_own(tmp_path):
    store = open_store(tmp_path)
    store.add_tasks(new_task(text) for text in texts(60))
    for text in texts(60):
        store.save([label(text, reason=f"reason-{new_task(text).key}")])
    sealed = [key for key in store.tasks if store.part_of(key) == "sealed"]
    assert sealed
    others = "".join(p.read_text() for p in tmp_path.iterdir() if p.name != "sealed.jsonl")
    own = (tmp_path / "sealed.jsonl").read_text()
    for key in store.tasks:
        assert (f"reason-{key}" in own) is (key in sealed)
        assert (f"reason-{key}" in others) is (key not in sealed)
    assert stat.S_IMODE((tmp_path / "sealed.jsonl").stat().st_mode) == 0o600


def test_sealed_labels_are_counted_but_never_given(tmp_path):
    store = filled(tmp_path)
    assert len(store.given()) == 60
    assert len(store.labels()) == 60 - store.split.counts["sealed"]
    assert all(store.part_of(x.task) != "sealed" for x in store.labels())
    with pytest.raises(ConfigError, match="unseal"):
        store.labels("sealed")


def test_the_word_on_another_text_or_task_is_refused(tmp_path):
    store = filled(tmp_path, 2)
    one, other = texts(2)
    with pytest.raises(ConfigError, match="another text"):
        store.save([label(one).model_copy(update={"text_hash": label(other).text_hash})])
    with pytest.raises(ConfigError, match="no task"):
        store.save([label("never drawn")])


@pytest.mark.parametrize("part", ["development", "sealed"])
def test_undo_takes_back_ones_own_newest_label_over_and_over(tmp_path, part):
    store = filled(tmp_path, 60, ("ada", "ben"))
    text = text_of(store, part)
    store.save([label(text, "uncertain")])
    store.save([label(text, "unsuitable")])
    before = (tmp_path / "labels.jsonl").read_bytes()
    undone = store.undo("ada")
    assert undone is not None
    assert undone.task == label(text).task
    again = open_store(tmp_path)
    undone_twice = again.undo("ada")
    assert undone_twice is not None
    assert undone_twice.task == label(text).task
    assert (tmp_path / "labels.jsonl").read_bytes().startswith(before)
    assert (label(text).task, "ada") in again.given()
    assert len(again.given()) == 120


def test_undo_leaves_imports_and_others_alone(tmp_path):
    store = open_store(tmp_path)
    store.add_tasks(new_task(text) for text in texts(2))
    store.save([label(texts(2)[0])], imported=True)
    store.save([label(texts(2)[1], labeller="ben")])
    assert store.undo("ada") is None
    assert len(store.given()) == 2


def test_a_recheck_stands_beside_the_first_word(tmp_path):
    store = filled(tmp_path, 3)
    text = text_of(store, "development")
    store.save([label(text, "unsuitable", recheck=True)])
    assert {x.verdict for x in store.labels()} == {"suitable"}
    assert [x.verdict for x in store.labels(recheck=True)] == ["unsuitable"]


@settings(max_examples=30)
@given(cut=st.integers(min_value=0), name=st.sampled_from(["labels.jsonl", "tasks.jsonl"]))
def test_a_file_cut_at_any_byte_loses_what_stood_behind_and_goes_on(tmp_path_factory, cut, name):
    folder = tmp_path_factory.mktemp("labels")
    whole = filled(folder, 12)
    if name == "tasks.jsonl":
        (folder / "labels.jsonl").unlink()
        (folder / "sealed.jsonl").unlink()
    content = (folder / name).read_bytes()
    kept = content[: cut % (len(content) + 1)]
    (folder / name).write_bytes(kept)
    store = open_store(folder)
    n = kept.count(b"\n")
    assert len(store.given() if name == "labels.jsonl" else store.tasks) == n
    store.add_tasks(new_task(text) for text in texts(12))
    store.save([label(text) for text in texts(12)])
    again = open_store(folder)
    assert again.tasks == whole.tasks
    assert set(again.given()) == set(whole.given())


def test_a_process_that_ends_between_the_files_leaves_a_sealed_label_that_counts(
    tmp_path, monkeypatch
):
    store = filled(tmp_path, 60)
    text = text_of(store, "sealed")
    before = len(store.given())
    real = LabelStore._append

    def dies(self, name, entries):
        raise StoreError("killed")

    monkeypatch.setattr(LabelStore, "_append", dies)
    with pytest.raises(StoreError):
        store.save([label(text, labeller="ben")])
    monkeypatch.setattr(LabelStore, "_append", real)
    again = open_store(tmp_path)
    assert len(again.given()) == before
    again.save([label(text, labeller="cy")])
    assert {who for key, who in again.given() if key == label(text).task} == {"ada", "ben", "cy"}


def test_lines_taken_out_of_labels_are_put_back_for_sealed_ones(tmp_path):
    store = filled(tmp_path, 60)
    path = tmp_path / "labels.jsonl"
    kept = [line for line in path.read_text().splitlines() if '"seal"' not in line]
    path.write_text("\n".join(kept) + "\n")
    again = open_store(tmp_path)
    assert len(again.given()) == len(kept)
    again.save([label(text_of(store, "sealed"), labeller="ben")])
    assert len(again.given()) == 61


def test_a_damaged_line_is_named(tmp_path):
    filled(tmp_path, 3)
    path = tmp_path / "labels.jsonl"
    path.write_text(path.read_text().replace('"verdict":"suitable"', '"verdict":"good"', 1))
    with pytest.raises(DataError, match="line 1 is damaged"):
        open_store(tmp_path)


def test_a_file_that_shrinks_under_a_reader_is_noticed(tmp_path):
    store = filled(tmp_path, 3)
    path = tmp_path / "labels.jsonl"
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(DataError, match="shorter"):
        store.refresh()


def _label_all(folder, who):
    store = open_store(folder)
    for text in texts(40):
        store.save([label(text, labeller=who)])


def test_several_processes_label_at_once_and_no_line_is_lost(tmp_path):
    store = open_store(tmp_path)
    store.add_tasks(new_task(text) for text in texts(40))
    context = multiprocessing.get_context("spawn")
    people = [context.Process(target=_label_all, args=(tmp_path, who)) for who in ("a", "b", "c")]
    for person in people:
        person.start()
    for person in people:
        person.join()
    assert [person.exitcode for person in people] == [0, 0, 0]
    again = open_store(tmp_path)
    assert len(again.given()) == 120
    assert again.sealed.links()


def test_our_own_secrets_are_taken_out_and_the_chain_holds(tmp_path, monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", "s3cr3t-value-0123456789")
    store = open_store(tmp_path)
    store.add_tasks(new_task(text) for text in texts(60))
    store.save([label(text, reason="is s3cr3t-value-0123456789 here") for text in texts(60)])
    assert all("s3cr3t" not in p.read_text() for p in tmp_path.glob("*.jsonl"))
    monkeypatch.delenv("SOME_API_KEY")
    assert len(open_store(tmp_path).sealed.links()) > 1


def test_what_the_folder_may_not_be_given_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be written"):
        LabelStore(tmp_path / "file" / "labels").add_tasks([new_task("a task")])


def test_the_clock_of_the_store_is_utc():
    assert store_module.utc_now().endswith("+00:00")


_LABELLING = """
import sys
from pathlib import Path
from tests.factory.labels.labelling_doubles import label, open_store, texts
store = open_store(Path(sys.argv[1]))
for text in texts(400):
    store.save([label(text)])
    print(label(text).task, flush=True)
"""


def test_what_was_saved_is_there_after_a_kill_at_any_moment(tmp_path):
    store = open_store(tmp_path)
    store.add_tasks(new_task(text) for text in texts(400))
    saved = set()
    for n_lines in (1, 7, 23):
        process = subprocess.Popen(
            [sys.executable, "-c", _LABELLING, str(tmp_path)],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        for _ in range(n_lines):
            saved.add(process.stdout.readline().strip())
        process.kill()
        saved |= {line.strip() for line in process.stdout.readlines() if line.endswith("\n")}
        process.wait()
        process.stdout.close()
        again = open_store(tmp_path)
        assert saved <= {task for task, _ in again.given()}
    assert len(saved) < 400
