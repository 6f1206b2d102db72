"""Results of the Agent Browser Protocol are read as they are, and nothing is made up."""

import json
import os
from collections import Counter
from pathlib import Path

import pytest

from browseruse_bench.errors import DataError
from browseruse_bench.export.abp import Abp, _call
from tests.export.made_abp import line, write

DATA = os.environ.get("BUBENCH_ORACLE_DATA")


def read(tmp_path, *lines):
    return Abp().read(write(tmp_path / "results.jsonl", *lines))


def test_an_attempt_is_read_step_by_step(tmp_path):
    (found,) = read(tmp_path, line())
    assert (found.task_id, found.text, found.status) == ("t1", "Do t1", "finished")
    assert found.answer == "The kettle costs $1,299."
    assert [told.calls[0].name for told in found.steps] == [
        "navigate", "click", "type", "key", "scroll",
    ]  # fmt: skip
    assert [told.url for told in found.steps] == ["https://shop.test/", None, None, None, None]
    assert json.loads(found.native) == line()


def test_a_thought_of_several_actions_was_seen_once_before_the_first(tmp_path):
    (found,) = read(tmp_path, line())
    assert [told.saw for told in found.steps] == [
        "", "I see a search box.", "", "", "The kettle costs $1,299.",
    ]  # fmt: skip
    assert [told.native_index for told in found.steps] == [1, 2, 2, 2, 3]


def test_running_out_of_turns_is_a_limit_and_an_empty_answer_is_none(tmp_path):
    (found,) = read(tmp_path, line(result_status="error_max_turns", final_result_response=" "))
    assert (found.status, found.answer) == ("step_limit", None)


@pytest.mark.parametrize(
    ("action", "name", "arguments"),
    [
        ("Navigate to https://a.test/?q=1", "navigate", {"value": "https://a.test/?q=1"}),
        ("Navigate back", "back", {}),
        ("Navigate reload", "reload", {}),
        ("Click at (1, 2)", "click", {"at": "(1, 2)"}),
        ('Type "a "quoted" text"', "type", {"text": 'a "quoted" text'}),
        ('Type ""', "type", {"text": ""}),
        ("Press CONTROL+a", "key", {"value": "CONTROL+a"}),
        ("Drag from (1, 2) to (3, 4)", "drag", {"start": "(1, 2)", "end": "(3, 4)"}),
        (
            "Slider (horizontal) set to 22 [range 18-85]",
            "slider",
            {"kind": "(horizontal)", "value": "22", "range": "[range 18-85]"},
        ),
        ("Sing a song", "unknown", {"text": "Sing a song"}),
    ],
)
def test_a_sentence_becomes_a_call_and_is_kept(action, name, arguments):
    call, _ = _call(action)
    assert (call.name, call.arguments, call.native_name) == (name, arguments, action)


def test_every_problem_is_told_with_its_line(tmp_path):
    path = write(
        tmp_path / "r.jsonl",
        line(),
        line(result_status="won"),
        line(thoughts=["one"]),
        {k: v for k, v in line().items() if k != "task"},
        line(score=97),
    )
    path.write_text(path.read_text() + "not json\n")
    with pytest.raises(DataError) as error:
        Abp().read(path)
    problems = error.value.problems
    assert [p.split(":")[1] for p in problems] == ["2", "3", "4", "5", "6"]
    assert "'won' is none of success" in problems[0]
    assert "thoughts: 1, but 5 actions" in problems[1]
    assert "task" in problems[2]


def test_a_file_without_an_attempt_is_refused(tmp_path):
    (tmp_path / "r.jsonl").write_text("\n\n")
    with pytest.raises(DataError, match="no attempt in it"):
        Abp().read(tmp_path / "r.jsonl")


@pytest.mark.oracle
@pytest.mark.skipif(DATA is None, reason="BUBENCH_ORACLE_DATA names no folder of public data")
def test_the_published_results_are_read_whole():
    """301 rows at 300 tasks, one of them twice; 264 came to their end, 37 ran out of turns."""
    expected = json.loads((Path(DATA) / "expected.json").read_text())["abp_online_mind2web"]
    found = Abp().read(Path(DATA) / "abp-online-mind2web" / "results.jsonl")
    ids = Counter(row.task_id for row in found)
    assert len(found) == 301
    assert len(ids) == 300
    assert ids["b69eb4de621e9e265676daac44938f3f"] == 2
    statuses = Counter(row.status for row in found)
    assert statuses == {
        "finished": expected["self_reported_success"],
        "step_limit": expected["max_turns"],
    }
    assert all(row.answer is None for row in found if row.status == "step_limit")
    names = Counter(told.calls[0].name for row in found for told in row.steps)
    assert "unknown" not in names
    assert names["click"] == 3124
