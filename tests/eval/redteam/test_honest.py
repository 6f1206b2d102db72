"""Honest changes of a trace, also where the rubric knows no value."""

from browseruse_bench.eval.redteam.catalogue import chosen
from browseruse_bench.eval.redteam.draft import Draft
from browseruse_bench.eval.redteam.key import Key
from browseruse_bench.records.rubric import Rubric
from browseruse_bench.records.task import Task


def test_where_no_value_is_known_nothing_is_typed_and_the_trace_stays_whole(make_trace, tmp_path):
    page = make_trace.page("http://shop.test/", "Kettle", navigate="http://shop.test/")
    item = {"id": "A", "requirement": "Opens the shop", "weight": 100, "evidence": "page"}
    rubric = Rubric.model_validate({"task_id": "task-1", "items": [item]})
    key = Key(task=Task(task_id="task-1", task="Open the shop"), rubric=rubric, seed="s")
    (attack,) = chosen(("honest-typed-later",))
    copy = attack.cheat(key)(Draft.of(make_trace(page, answer="Done"))).freeze(tmp_path / "copy")
    assert [step.page_after.url for step in copy.steps] == ["http://shop.test/"] * 2
