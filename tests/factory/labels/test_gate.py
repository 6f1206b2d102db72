"""The gate opens once for a set of candidates, and says what was done behind its back."""

import json
import shutil

import pytest

from browseruse_bench.errors import ConfigError, DataError, StoreError
from browseruse_bench.factory.labels import gate
from browseruse_bench.factory.labels.chain import Chain
from browseruse_bench.factory.labels.gate import admit, candidate, look, sealed_tasks
from browseruse_bench.factory.labels.lines import new_task
from browseruse_bench.factory.labels.notice import noticed, witness_folder
from browseruse_bench.records.label import Label
from tests.factory.labels.labelling_doubles import filled, label, open_store, texts

PROMPT = "Say whether the task suits a benchmark."
OTHERS = [f"Version {n}: is the task suitable?" for n in range(20)]


@pytest.fixture
def store(tmp_path):
    return filled(tmp_path / "labels", 120)


def chosen(prompt=PROMPT, name="v7", model="small", among=OTHERS):
    return candidate(prompt, name=name, model=model, among=among)


def all_say(store, verdict="suitable"):
    return {task.key: verdict for task in sealed_tasks(store)}


def copied(store):
    """As it is now, kept apart, to be put back later."""
    aside = store.folder.with_name("aside")
    shutil.copytree(store.folder, aside)
    return aside


def put_back(aside, store, *names):
    for name in names or [p.name for p in store.folder.iterdir()]:
        (store.folder / name).unlink(missing_ok=True)
        if (aside / name).exists():
            shutil.copy2(aside / name, store.folder / name)
    return open_store(store.folder)


def edit(path, old, new):
    content = path.read_text()
    assert old in content
    path.write_text(content.replace(old, new, 1))


# What a look says.


def test_a_look_compares_verdicts_with_the_sealed_labels_alone(store):
    tasks = sealed_tasks(store)
    said = {task.key: "unsuitable" if n < 3 else "suitable" for n, task in enumerate(tasks)}
    found = look(store, chosen(), said).result.agreement
    assert found.n == len(tasks) > 5
    assert found.accuracy.rate == pytest.approx((len(tasks) - 3) / len(tasks))
    assert found.of("suitable").recall.rate == pytest.approx((len(tasks) - 3) / len(tasks))


def test_the_record_holds_prompt_hash_model_date_and_result(store):
    look(store, chosen(), all_say(store))
    opened, result = gate.record(store)
    assert opened["candidate"]["prompt_hash"] == chosen().prompt_hash
    assert opened["candidate"]["model"] == "small"
    assert opened["at"].startswith("2026-01-01T")
    assert result["agreement"]["accuracy"]["rate"] == 1


def test_labels_that_were_taken_back_or_replaced_do_not_count(store):
    first, second = (task.text for task in sealed_tasks(store)[:2])
    store.save([label(first, "unsuitable")])
    store.save([label(second, "unsuitable", labeller="ben")])
    store.undo("ben")
    found = look(store, chosen(), all_say(store)).result
    assert found.agreement.n == len(sealed_tasks(store))
    assert found.agreement.of("unsuitable").truth_rate.happened == 1


def test_a_task_whose_labellers_differ_is_left_out_and_counted(store):
    store.save([label(sealed_tasks(store)[0].text, "unsuitable", labeller="ben")])
    found = look(store, chosen(), all_say(store)).result
    assert (found.n_split, found.agreement.n) == (1, len(sealed_tasks(store)) - 1)


def test_what_the_candidate_did_not_answer_is_counted_as_missing(store):
    said = {**all_say(store), sealed_tasks(store)[0].key: None}
    found = look(store, chosen(), said).result
    assert found.agreement.missing.verdict == 1


def test_a_look_without_a_verdict_of_each_task_reads_nothing(store):
    with pytest.raises(ConfigError, match="no verdict is given of"):
        look(store, chosen(), {})
    assert gate.record(store) == ()


def test_without_sealed_labels_there_is_nothing_to_look_at(tmp_path):
    with pytest.raises(ConfigError, match="no sealed label"):
        admit(open_store(tmp_path / "labels"), chosen())


# Second looks.


@pytest.mark.parametrize(
    "second",
    [
        chosen(),
        chosen(name="renamed"),
        chosen(model="large"),
        chosen(prompt=f"  {PROMPT.upper()}\n"),
        chosen(prompt=PROMPT.replace("task", "ta\u200bsk")),
        chosen(prompt=PROMPT, among=()),
        chosen(prompt=OTHERS[3]),
        chosen(prompt=OTHERS[0], among=["A new one"]),
    ],
    ids=[
        "same",
        "renamed",
        "another model",
        "another dress",
        "invisible",
        "alone",
        "runner-up",
        "in a new set",
    ],
)
def test_a_second_look_at_one_set_of_candidates_is_refused(store, second):
    look(store, chosen(), all_say(store))
    for again in ("", "I insist"):
        with pytest.raises(ConfigError, match="second look"):
            admit(store, second, again=again)
        with pytest.raises(ConfigError, match="second look"):
            look(store, second, all_say(store, "unsuitable"), again=again)
    assert len(gate.record(store)) == 2


def test_a_renamed_candidate_is_called_by_both_names(store):
    look(store, chosen(), all_say(store))
    with pytest.raises(ConfigError, match=r"looked at on .* as 'v7' \(here 'brand-new'\)"):
        admit(store, chosen(name="brand-new"))


def test_another_set_looks_again_only_on_request_and_the_result_says_so(store):
    look(store, chosen(), all_say(store))
    # A later search begins with the same first version as the one before it.
    other = chosen(prompt="Quite another prompt", among=[OTHERS[0], "and its rival"])
    with pytest.raises(ConfigError, match="--again"):
        admit(store, other)
    admit(store, other, again="a new search on new labels")
    found = look(store, other, all_say(store), again="a new search on new labels")
    assert found.result.n_before == len(sealed_tasks(store))
    assert found.opened.again == "a new search on new labels"


def test_a_look_that_was_cut_off_ends_with_the_verdicts_of_then_and_no_others(store, monkeypatch):
    def dies(*args, **kwargs):
        raise StoreError("killed")

    monkeypatch.setattr(gate, "_result", dies)
    with pytest.raises(StoreError):
        look(store, chosen(), all_say(store))
    monkeypatch.undo()
    store = open_store(store.folder)
    n = len(sealed_tasks(store))
    late = next(t for t in (f"late {i}" for i in range(99)) if store.split.part_of(t) == "sealed")
    store.add_tasks([new_task(late)])
    store.save([label(late)])
    assert admit(store, chosen())
    found = look(store, chosen(), all_say(store, "unsuitable"))
    assert (found.result.n_before, found.result.agreement.n) == (0, n)
    assert found.result.agreement.accuracy.rate == 1
    with pytest.raises(ConfigError, match="second look"):
        look(store, chosen(), all_say(store))


def test_nothing_is_read_where_the_record_cannot_be_written(store, monkeypatch):
    def dies(self, entries, links=None):
        raise StoreError("disk full")

    monkeypatch.setattr(Chain, "append_all", dies)
    monkeypatch.setattr(gate, "_result", lambda *a, **k: pytest.fail("labels were read"))
    with pytest.raises(StoreError):
        look(store, chosen(), all_say(store))


# Attacks on the files.


def refused(store, match):
    """Noticed, and said by whatever would open the gate."""
    assert any(match in problem for problem in noticed(store)), noticed(store)
    with pytest.raises(DataError, match="stay closed|restore") as error:
        admit(store, chosen(prompt="A fresh prompt", among=()), again="x")
    assert match in str(error.value)


def test_untouched_files_are_not_complained_of(store):
    assert noticed(store) == ()
    look(store, chosen(), all_say(store))
    assert noticed(open_store(store.folder)) == ()


@pytest.mark.parametrize(
    ("old", "new"),
    [('"model":"small"', '"model":"large"'), ('"at":"2026', '"at":"2027'), ('"n":2', '"n":3')],
)
def test_editing_the_record_is_noticed(store, old, new):
    look(store, chosen(), all_say(store))
    edit(store.looks.path, old, new)
    refused(open_store(store.folder), "chain breaks")


def test_editing_the_record_and_chaining_it_anew_is_noticed(store):
    look(store, chosen(), all_say(store))
    entries = [json.loads(json.dumps(entry)) for entry in gate.record(store)]
    entries[0]["candidate"]["among"] = ["0" * 64]
    store.looks.path.unlink()
    store.looks.append_all(entries)
    refused(open_store(store.folder), "does not hold")


@pytest.mark.parametrize("keep", [0, 1])
def test_cutting_off_the_record_is_noticed(store, keep):
    look(store, chosen(), all_say(store))
    lines = store.looks.path.read_bytes().splitlines(keepends=True)
    store.looks.path.write_bytes(b"".join(lines[:keep]))
    refused(open_store(store.folder), "cut off")


def test_cutting_the_record_within_its_last_line_is_noticed(store):
    look(store, chosen(), all_say(store))
    store.looks.path.write_bytes(store.looks.path.read_bytes()[:-1])
    refused(open_store(store.folder), "cut off")


def test_removing_the_record_is_noticed(store):
    look(store, chosen(), all_say(store))
    store.looks.path.unlink()
    refused(open_store(store.folder), "removed")


@pytest.mark.parametrize("names", [("unsealed.jsonl",), ("unsealed.jsonl", "sealed.jsonl"), ()])
def test_putting_back_files_that_were_copied_before_the_look_is_noticed(store, names):
    aside = copied(store)
    look(store, chosen(), all_say(store))
    refused(put_back(aside, store, *names), "put back")


def test_a_look_in_a_copy_of_the_folder_is_refused(store):
    copy = open_store(copied(store))
    refused(copy, "copied or moved from")


def test_a_look_in_a_copy_that_is_said_to_be_moved_shows_in_the_original(store):
    copy = open_store(copied(store))
    look(copy, chosen(), all_say(copy), moved="a new disk")
    refused(open_store(store.folder), "made in a copy")


def test_a_folder_that_was_moved_goes_on_once_that_is_owned_up_to(store):
    look(store, chosen(), all_say(store))
    store.folder.rename(store.folder.with_name("elsewhere"))
    moved = open_store(store.folder.with_name("elsewhere"))
    other = chosen(prompt="Another prompt", among=())
    with pytest.raises(DataError, match="copied or moved"):
        admit(moved, other, again="why not")
    admit(moved, other, again="why not", moved="a new disk")
    assert noticed(open_store(moved.folder)) == ()
    assert any(link.entry.get("why") == "a new disk" for link in moved.sealed.links())


def test_the_same_labels_in_a_new_folder_give_no_second_look(store, tmp_path):
    look(store, chosen(), all_say(store))
    fresh = filled(tmp_path / "fresh", 120)
    assert noticed(fresh) == ()
    with pytest.raises(ConfigError, match="in another folder of labels"):
        look(fresh, chosen(name="again"), all_say(fresh))
    other = chosen(prompt="Another prompt", among=())
    with pytest.raises(ConfigError, match="--again"):
        admit(fresh, other)
    assert look(fresh, other, all_say(fresh), again="x").result.n_before == len(sealed_tasks(fresh))


def test_the_same_labels_of_texts_in_another_dress_give_no_second_look(store, tmp_path):
    look(store, chosen(), all_say(store))
    fresh = open_store(tmp_path / "fresh")
    dressed = [f" {text.upper()}" for text in texts(120)]
    fresh.add_tasks(new_task(text) for text in dressed)
    fresh.save([label(text) for text in dressed])
    with pytest.raises(ConfigError, match="in another folder of labels"):
        admit(fresh, chosen())


def test_of_two_that_were_let_in_at_once_only_the_first_looks(store):
    one, other = chosen(), chosen(prompt=OTHERS[0])
    admit(store, one)
    admit(open_store(store.folder), other)
    look(store, one, all_say(store))
    with pytest.raises(ConfigError, match="second look"):
        look(open_store(store.folder), other, all_say(store))


def test_a_record_copied_from_another_folder_is_noticed(store, tmp_path):
    other = filled(tmp_path / "other", 120)
    look(other, chosen(prompt="Of the other folder", among=()), all_say(other))
    shutil.copy2(other.looks.path, store.looks.path)
    refused(open_store(store.folder), "of another folder")


def test_editing_a_sealed_label_is_noticed(store):
    edit(store.sealed.path, '"verdict":"suitable"', '"verdict":"unsuitable"')
    refused(open_store(store.folder), "chain breaks")


def test_editing_a_sealed_label_and_chaining_all_anew_is_noticed(store):
    entries = [json.loads(json.dumps(link.entry)) for link in store.sealed.links()]
    entries[3]["label"]["verdict"] = "unsuitable"
    store.sealed.path.unlink()
    store.sealed.append_all(entries)
    refused(open_store(store.folder), "cut off or put back")


def test_cutting_off_sealed_labels_is_noticed(store):
    lines = store.sealed.path.read_bytes().splitlines(keepends=True)
    store.sealed.path.write_bytes(b"".join(lines[:-2]))
    refused(open_store(store.folder), "2 sealed lines")


def test_removing_the_sealed_labels_is_noticed(store):
    store.sealed.path.unlink()
    refused(open_store(store.folder), "is gone or empty")


def test_taking_a_sealed_label_out_of_the_count_is_undone(store):
    n = len(sealed_tasks(store))
    path = store.folder / "labels.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    victim = next(i for i, line in enumerate(lines) if '"seal"' in line)
    path.write_text("".join(lines[:victim] + lines[victim + 1 :]))
    again = open_store(store.folder)
    assert len(sealed_tasks(again)) == n - 1
    admit(again, chosen())
    assert len(sealed_tasks(again)) == n


@pytest.mark.parametrize("change", ["undo", "task", "open"])
def test_forging_lines_about_sealed_labels_is_noticed(store, change):
    path = store.folder / "labels.jsonl"
    lines = path.read_text().splitlines()
    victim = next(i for i, line in enumerate(lines) if '"seal"' in line)
    line = json.loads(lines[victim])
    if change == "undo":
        lines.append(
            json.dumps({"kind": "undo", "id": line["id"], "labeller": "ada", "at": line["at"]})
        )
    elif change == "task":
        lines[victim] = json.dumps({**line, "task": "f" * 64})
    else:
        said: Label = label(texts(1)[0])
        lines[victim] = json.dumps({**line, "label": said.as_json()})
    path.write_text("\n".join(lines) + "\n")
    refused(open_store(store.folder), "not as sealed.jsonl has them")


def test_writing_the_split_anew_is_noticed(store):
    look(store, chosen(), all_say(store))
    hashes = [link.entry["text_hash"] for link in Chain(store.split.path).links()[1:]]
    rule = Chain(store.split.path).links()[0].entry
    store.split.path.unlink()
    Chain(store.split.path).append_all(
        [rule, *({"text_hash": h, "part": "sealed"} for h in hashes)]
    )
    refused(open_store(store.folder), "written anew")


def test_the_witness_holds_hashes_and_no_text_or_verdict(store):
    found = look(store, chosen(), all_say(store))
    assert found.witness is not None
    content = found.witness.read_text()
    assert "unsuitable" not in content
    assert "suitable" not in content
    assert "cheapest" not in content
    assert sealed_tasks(store)[0].text_hash in content


def test_a_look_without_a_witness_says_so(store, monkeypatch, tmp_path):
    (tmp_path / "no-folder").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "no-folder"))
    assert look(store, chosen(), all_say(store)).witness is None
    assert witness_folder().parts[-2:] == ("browseruse-bench", "looks")


def test_a_receipt_that_the_record_does_not_lead_to_is_noticed(store):
    found = look(store, chosen(), all_say(store))
    assert noticed(store, [found.receipt]) == ()
    strange = found.receipt.model_copy(update={"chain": "0" * 64})
    [problem] = noticed(store, [strange])
    assert "receipt" in problem


def test_a_changed_witness_is_noticed(store):
    found = look(store, chosen(), all_say(store))
    edit(found.witness, '"n":1', '"n":9')
    refused(open_store(store.folder), "chain breaks")
