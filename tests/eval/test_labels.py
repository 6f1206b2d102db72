import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from browseruse_bench.errors import DataError
from browseruse_bench.eval.labels import Label, read_labels, read_rows, undeclared

CSV = "task_id,attempt,item,label,labeller\na,1,,success,ada\na,1,I0,Met,ada\na,2,,,ben\n"


def put(tmp_path, text, name="labels.csv"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_csv_with_bom_and_crlf_is_read(tmp_path):
    found = read_labels(put(tmp_path, b"\xef\xbb\xbf" + CSV.replace("\n", "\r\n").encode()))
    assert [(x.task_id, x.attempt, x.item, x.said, x.labeller) for x in found.labels] == [
        ("a", 1, None, "success", "ada"),
        ("a", 1, "I0", "met", "ada"),
        ("a", 2, None, "", "ben"),
    ]


@pytest.mark.parametrize("form", ["list", "lines"])
def test_json_says_the_same_with_numbers_and_truth_values(tmp_path, form):
    rows = [{"task_id": "a", "attempt": 1, "label": 1}, {"task_id": "b", "label": False}]
    text = json.dumps(rows) if form == "list" else "\n".join(map(json.dumps, rows))
    found = read_labels(put(tmp_path, text, "labels.jsonl" if form == "lines" else "l.json"))
    assert [(x.task_id, x.said) for x in found.labels] == [("a", "1"), ("b", "false")]


def test_all_lines_that_are_no_label_are_named_at_once(tmp_path):
    text = "task_id,attempt,label\n,1,success\na,0,success\na,x,success\nb,1,failure\n"
    with pytest.raises(DataError) as raised:
        read_labels(put(tmp_path, text))
    assert [("line 2" in p, "line 3" in p, "line 4" in p) for p in raised.value.problems] == [
        (True, False, False),
        (False, True, False),
        (False, False, True),
    ]


def test_one_person_labels_a_thing_once(tmp_path):
    """BL061: an id that is there twice is reported."""
    text = "task_id,label,labeller\na,1,ada\na,0,ada\na,0,ben\n"
    with pytest.raises(DataError, match="'a' #1 by ada: labelled twice"):
        read_labels(put(tmp_path, text))


def test_columns_that_are_not_ours_are_told_not_dropped_in_silence(tmp_path):
    found = read_labels(put(tmp_path, "task_id,label,confidence\na,1,high\n"))
    assert found.ignored == ("confidence",)


@pytest.mark.parametrize(
    ("text", "name", "match"),
    [
        ("task_id,label\na\n", "l.csv", "line 2: not 2 cells"),
        ("task_id,label\na,1,2\n", "l.csv", "line 2: not 2 cells"),
        ("task_id,task_id\na,1\n", "l.csv", "each column once"),
        ("", "l.csv", "each column once"),
        ("task_id,label\n", "l.csv", "holds no label"),
        ('task_id,label\n"a,1\n', "l.csv", "line"),
        ('{"a": 1}\nno', "l.jsonl", "JSON"),
        ("[1]", "l.json", "JSON"),
        (b"\xff", "l.csv", "not UTF-8"),
    ],
)
def test_a_damaged_file_is_an_error_with_its_place(tmp_path, text, name, match):
    with pytest.raises(DataError, match=match):
        read_labels(put(tmp_path, text, name))


def test_a_file_that_is_not_there_is_said(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        read_rows(tmp_path / "none.csv")


def test_many_problems_are_counted_after_the_first_ones(tmp_path):
    text = "task_id,attempt,label\n" + "a,0,1\n" * 50
    with pytest.raises(DataError) as raised:
        read_labels(put(tmp_path, text))
    assert len(raised.value.problems) == 21
    assert raised.value.problems[-1] == "... and 30 more"


def test_a_code_that_means_nothing_is_named_with_what_to_type():
    lines = undeclared(
        [("2", "x"), ("2", "y"), ("ok", "z"), ("unsure", "w")], {"ok"}, missing={"unsure"}
    )
    assert len(lines) == 1
    assert "'2' (2 times, first at x)" in lines[0]
    assert "--missing '2'" in lines[0]


@settings(max_examples=40)
@given(st.text(min_size=1, max_size=20), st.text(max_size=20))
def test_any_text_that_csv_can_hold_comes_back_as_it_was(task_id, note):
    """Line ends inside a cell too."""
    import csv
    import io

    from browseruse_bench.eval import labels

    made = io.StringIO(newline="")
    writer = csv.writer(made)
    writer.writerows([["task_id", "label", "note"], [task_id, "1", note]])
    ((_, row),) = labels._csv_rows("l.csv", made.getvalue())
    assert (row["task_id"], row["note"]) == (task_id, note)


@pytest.mark.parametrize(
    ("said", "adjudication"),
    [("Agree", True), ("disagree", True), ("met", False), ("cannot tell", False)],
)
def test_what_is_an_adjudication(said, adjudication):
    assert Label(task_id="a", label=said).is_adjudication is adjudication
