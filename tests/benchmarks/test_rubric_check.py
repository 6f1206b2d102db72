import json

import pytest

from browseruse_bench.benchmarks.folder import find
from browseruse_bench.benchmarks.rubric_check import check_benchmark, check_file, check_published
from browseruse_bench.errors import ConfigError, DataError
from browseruse_bench.records.rubric import Rubric
from browseruse_bench.records.rubric_text import markdown
from browseruse_bench.records.task import TaskView
from tests.benchmarks.publishers.test_bu_bench import sealed
from tests.benchmarks.small import INFO, TASKS, put
from tests.records.made_rubrics import released


def lines(checked, level="error"):
    return [f.line for f in checked.findings if f.level == level]


def written(tmp_path, value, name="kettle.json"):
    put(tmp_path / name, value)
    return tmp_path / name


def test_a_sound_rubric_passes_both_profiles(tmp_path):
    path = written(tmp_path, released())
    for profile in ("load", "release"):
        checked = check_file(path, profile)
        assert (checked.n_errors, checked.findings) == (0, ())
    assert checked.lines()[-1].endswith("1 rubrics, 2 items, for release: nothing found")


def test_all_that_keeps_a_rubric_from_loading_is_listed_with_item_and_field(tmp_path):
    items = [
        {"id": "A1", "requirement": "So.", "weight": 0},
        {"id": "A2", "requirement": "", "weight": 40, "facts": ["F9"]},
        {"id": "A3", "requirement": "So.", "weight": 40, "facts": ["F8"]},
        {"id": "A3", "requirement": "So.", "weight": 30, "note": 1},
        {"id": "A3", "requirement": "So.", "weight": 30},
    ]
    checked = check_file(written(tmp_path, {"task_id": "t", "items": items, "x": 1}), "load")
    places = {(f.item, f.field.rpartition(".")[2] or f.field) for f in checked.findings}
    assert {("A1", "weight"), ("A2", "requirement"), ("A3", "note"), (None, "x")} <= places
    texts = [f.text for f in checked.findings]
    assert "items: 'A3' occurs twice" in texts
    assert "fact 'F8' is cited but not stated" in texts
    assert not any("sum" in text for text in texts), "the sum of what can be read means nothing"
    assert (checked.rubrics, {f.rule for f in checked.findings}) == ((), {"form"})


def test_a_wrong_sum_is_told_where_all_items_can_be_read(tmp_path):
    items = [{"id": "A1", "requirement": "So.", "weight": 40, "facts": ["F1"]}]
    texts = [f.text for f in check_file(
        written(tmp_path, {"task_id": "t", "items": items}), "load").findings]  # fmt: skip
    assert texts == ["fact 'F1' is cited but not stated", "weights sum to 40, not to 100"]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"\xff", "not UTF-8"),
        (b"{", "not JSON"),
        (b'{"task_id": "a", "task_id": "b"}', "'task_id' occurs twice"),
        (b"[]", "valid dictionary"),
    ],
)
def test_a_file_that_holds_no_rubric_is_one_finding(tmp_path, content, text):
    checked = check_file(written(tmp_path, content), "load")
    assert [text in f.text for f in checked.findings] == [True]


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        check_file(tmp_path / "none.json", "load")


DOUBTFUL = "States the price and the colour of the kettle."


def test_the_lint_advises_publishers_and_refuses_a_release(tmp_path):
    items = released()["items"]
    items[0]["requirement"] = DOUBTFUL
    path = written(tmp_path, released(items=items))
    assert lines(check_file(path, "load")) == []
    (advice,) = lines(check_file(path, "load"), "advice")
    assert advice.startswith(f"advice: {path}: A1_price.requirement: asks for several values")
    (error,) = lines(check_file(path, "release"))
    assert error == advice.removeprefix("advice: ")
    waiver = {"rule": "compound", "items": ["A1_price"], "reason": "One label."}
    waived = check_file(written(tmp_path, released(items=items, waivers=[waiver])), "release")
    assert (waived.n_errors, [f.level for f in waived.findings]) == (0, ["waived"])
    assert waived.findings[0].text.endswith("— One label.")


@pytest.mark.parametrize("weight", [60.0, "60/1"])
def test_a_release_writes_its_integers_as_integers(tmp_path, weight):
    items = released()["items"]
    items[0]["weight"] = weight
    path = written(tmp_path, released(items=items))
    assert check_file(path, "load").findings == ()
    (error,) = check_file(path, "release").findings
    assert (error.item, error.field) == ("A1_price", "weight")


def test_the_document_beside_a_rubric_must_be_what_it_renders_to(tmp_path):
    path = written(tmp_path, released())
    beside = path.with_suffix(".md")
    beside.write_bytes(markdown(Rubric.model_validate(released())).encode())
    assert check_file(path, "release").findings == ()
    beside.write_text(beside.read_text() + "\nAnd more.\n")
    assert [f.rule for f in check_file(path, "release").findings] == ["markdown"]
    assert [f.level for f in check_file(path, "load").findings] == ["advice"]


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "benchmarks" / "Small"
    put(folder / "data_info.json", INFO)
    put(folder / "data" / "tasks.json", TASKS)
    return folder


def test_a_benchmarks_rubrics_are_checked_together_with_their_tasks(folder):
    key = TaskView(task_id="a", text=TASKS[0]["task"], website="shop.test").key
    item = {"id": "A1", "requirement": "It is open.", "weight": 100,
            "check": {"kind": "url", "host": "shop.test"}}  # fmt: skip
    put(folder / "rubrics" / "a.json", {"task_id": "a", "task_key": key, "items": [item]})
    put(folder / "rubrics" / "b.json", {"task_id": "b", "task_key": "0" * 64, "items": [item]})
    put(folder / "rubrics" / "z.json", {"task_id": "z", "items": [item]})
    place = find(str(folder))
    checked = check_benchmark(place, "load")
    assert (len(checked.rubrics), checked.n_without) == (3, 1)
    errors, advice = lines(checked), lines(checked, "advice")
    assert [line.partition(":")[0] for line in errors] == ["rubrics/b.json", "rubrics/z.json"]
    assert "was written for another wording" in errors[0]
    assert any("rubrics/a.json" in line and "begins at shop.test" in line for line in advice)
    single = check_file(folder / "rubrics" / "b.json", "load")
    assert ["another wording" in line for line in lines(single)] == [True]


def test_rubrics_that_the_rows_bring_along_are_checked_where_no_file_is(folder):
    put(folder / "data_info.json", {**INFO, "rubrics": "odysseys"})
    entry = {"R1": {"requirement": DOUBTFUL, "verification": "Look."}}
    rows = [{**task, "rubrics": entry} for task in TASKS[:2]] + [{**TASKS[2], "rubrics": "{"}]
    put(folder / "data" / "tasks.json", rows)
    put(folder / "rubrics" / "a.json", {**released(), "task_id": "a", "task_key": None,
                                        "facts": released()["facts"]})  # fmt: skip
    checked = check_benchmark(find(str(folder)), "load")
    assert (len(checked.rubrics), checked.n_without) == (2, 1)
    assert [f.file for f in checked.findings if f.rule == "compound"] == ["tasks.json: task 'b'"]
    assert any("the rubric of task 'c': rubrics: not JSON" in line for line in lines(checked))


def test_an_unknown_publisher_is_a_problem_of_the_benchmark(folder):
    put(folder / "data_info.json", {**INFO, "rubrics": "odyssey"})
    (error,) = lines(check_benchmark(find(str(folder)), "load"))
    assert "did you mean 'odysseys'?" in error


def of_nobody(row):
    """An importer of a user's own, by the task's id."""
    if row["task_id"] == "a":
        raise KeyError("price")
    return None if row["task_id"] == "b" else "no rubric"


def test_an_importer_of_ones_own_may_fail_on_a_row_and_the_others_are_still_read(folder):
    name = f"{of_nobody.__module__}:of_nobody"
    put(folder / "data_info.json", {**INFO, "rubrics": name})
    first, second = lines(check_benchmark(find(str(folder)), "load"))
    assert "the rubric of task 'a': its importer: KeyError: 'price'" in first
    assert "the rubric of task 'c': its importer returned str, not a Rubric or None" in second


@pytest.mark.parametrize(
    "value",
    [None, 5, "x", [], {}, {"items": 5}, {"items": [5]}, {"items": [{}]}, {"items": [{"id": 5}]},
     {"task_id": "t", "items": [], "facts": {}}, {"items": {"id": "A"}, "rulings": "R"},
     {"task_id": "t", "items": [{"id": "A", "requirement": "So.", "weight": [1], "check": 1}]}],
)  # fmt: skip
def test_any_json_is_checked_to_the_end(tmp_path, value):
    checked = check_file(written(tmp_path, value), "release")
    assert checked.n_errors > 0
    assert all(finding.text for finding in checked.findings)


def test_a_publishers_file_is_checked_row_by_row(tmp_path):
    rows = [{"task_id": "a", "rubrics": {"R1": {"requirement": DOUBTFUL}}}, {"task_id": "b"},
            {"task_id": "c", "rubrics": {"R1": {}}},
            {"task_id": "d", "rubrics": {"R1": {"requirement": "找出价格。"}}}]  # fmt: skip
    path = tmp_path / "tasks.jsonl"
    put(path, "\n".join(map(json.dumps, rows)))
    checked = check_published(path, "odysseys", "load")
    assert (len(checked.rubrics), checked.n_without, checked.n_unread) == (2, 1, 1)
    assert lines(checked) == ["tasks.jsonl[2]: rubrics.R1.requirement: Field required"]
    assert "1 items not in English" in checked.lines()[-1]
    with pytest.raises(ConfigError, match="unknown publisher 'x'"):
        check_published(path, "x", "load")


@pytest.mark.parametrize("wrap", [list, lambda rows: {"tasks": rows, "revision": "r"}])
def test_what_a_sealed_file_says_is_quoted_only_on_demand(tmp_path, wrap):
    path = tmp_path / "Set.enc"
    row = {"id": "a", "rubric": f"A1_price: {DOUBTFUL}", "weights": {"A1_price": 100}}
    path.write_bytes(sealed(wrap([row])))
    silent = "\n".join(check_published(path, "bu_bench", "load").lines())
    assert "[compound]" in silent
    assert "colour" not in silent
    spoken = "\n".join(check_published(path, "bu_bench", "load", plaintext=True).lines())
    assert "colour" in spoken
    assert [p.name for p in tmp_path.iterdir()] == ["Set.enc"]


@pytest.mark.parametrize("value", [{"rows": []}, "text", [1]])
def test_a_sealed_file_without_a_list_of_tasks_is_refused(tmp_path, value):
    path = tmp_path / "Set.enc"
    path.write_bytes(sealed(value))
    with pytest.raises(DataError, match="is not a list of tasks"):
        check_published(path, "bu_bench", "load")


def test_the_embedded_benchmark_loads_without_a_remark():
    checked = check_benchmark(find("LocalSites"), "load")
    assert (checked.n_errors, checked.n_without) == (0, 0)
    assert checked.findings == ()
