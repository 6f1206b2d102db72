"""Labels of a file come in whole, once, and what is wrong with it is said all at once."""

import json

import pytest

from browseruse_bench.errors import DataError
from browseruse_bench.factory.labels.importing import add, read_labels
from tests.factory.labels.labelling_doubles import open_store

AT = "2026-02-02T00:00:00+00:00"


def written(folder, content, name="labels.jsonl"):
    path = folder / name
    path.write_text(content if isinstance(content, str) else "\n".join(map(json.dumps, content)))
    return path


def read(path, **tags):
    return read_labels(path, tags=tags, at=AT)


NESTED = [
    {
        "text": "Find a flat in Rome",
        "source": "web",
        "labels": [
            {"annotator": "A", "label": "unsuitable", "reason": "vague", "tags": ["vague", "odd"]},
            {"annotator": "B", "label": "suitable", "reason": "fine", "tags": ["hard"]},
        ],
    }
]


def test_nested_and_flat_rows_say_the_same(tmp_path):
    nested = read(written(tmp_path, NESTED), vague="too_vague", hard="hard")
    flat = read(
        written(
            tmp_path,
            "text,source,labeller,verdict,reason,tags,hard\n"
            'Find a flat in Rome,web,A,unsuitable,vague,"vague; odd",\n'
            "Find a flat in Rome,web,B,Suitable,fine,,yes\n",
            "labels.csv",
        ),
        vague="too_vague",
    )
    assert nested == flat
    one, other = nested.labels
    assert (one.tags, one.other_tags, one.hard, one.at) == (("too_vague",), ("odd",), None, AT)
    assert (other.verdict, other.hard, other.labeller) == ("suitable", True, "B")
    assert dict(nested.other_tags) == {"odd": 1}
    assert nested.tasks[0].source == "web"


def test_an_import_brings_all_labels_once(tmp_path):
    store = open_store(tmp_path / "labels")
    found = read(written(tmp_path, NESTED))
    first, second = add(store, found), add(store, found)
    assert (first.n_tasks, first.n_labels, first.n_known) == (1, 2, 0)
    assert (second.n_tasks, second.n_labels, second.n_known) == (0, 0, 2)
    assert len(store.given()) == 2
    assert [task.wanted for task in store.tasks.values()] == [2]


def test_more_people_can_be_asked_than_the_file_has(tmp_path):
    store = open_store(tmp_path / "labels")
    add(store, read(written(tmp_path, NESTED)), wanted=3)
    assert [task.wanted for task in store.tasks.values()] == [3]


def test_all_that_is_wrong_is_said_at_once(tmp_path):
    rows = [
        {"text": "", "labeller": "A", "label": "suitable"},
        {"text": "a", "labeller": "A", "label": "good"},
        {"text": "b", "labeller": "A B", "label": "suitable"},
        {"text": "c", "labeller": "A", "label": "suitable", "seconds": -1},
        {"text": "d", "labeller": "A", "label": "suitable", "hard": "maybe"},
        {"text": "e", "labeller": "A", "label": "suitable", "tags": 7},
        {"text": ["f"], "labeller": "A", "label": "suitable"},
        {"text": "twice", "labeller": "A", "label": "suitable"},
        {"text": "twice", "labeller": "A", "label": "unsuitable"},
    ]
    with pytest.raises(DataError) as error:
        read(written(tmp_path, rows))
    told = [
        "line 1: text: is empty",
        "line 2: verdict",
        "line 3: labeller 'A B'",
        "line 4: seconds",
        "line 5: hard: 'maybe'",
        "line 6: tags",
        "line 7: text: is no text",
        "'twice' is labelled 2 times by A",
    ]
    assert len(error.value.problems) == len(told)
    for part, problem in zip(told, error.value.problems, strict=True):
        assert part in problem


@pytest.mark.parametrize("content", ["", "text,labeller,label\n"])
def test_a_file_without_labels_is_refused(tmp_path, content):
    with pytest.raises(DataError):
        read(written(tmp_path, content, "labels.csv"))


def test_labels_that_are_no_objects_are_refused(tmp_path):
    with pytest.raises(DataError, match="number 1 is no object"):
        read(written(tmp_path, [{"text": "a", "labels": ["suitable"]}]))


def test_a_text_stays_as_it_is_to_the_space(tmp_path):
    rows = [{"text": "  Find it.\n", "labeller": "A", "label": "suitable"}]
    assert read(written(tmp_path, rows)).tasks[0].text == "  Find it.\n"
