"""`bubench benchmark audit`: what does nothing earns nothing, measured."""

import json

import pytest
from click.testing import CliRunner

from browseruse_bench.cli.root import bubench
from tests.report.made_run import MadeBenchmark, evaluator, row, rubric

JUDGE = """
def believes(text, sample):
    raise AssertionError("nobody asks about an attempt that did nothing")
"""


@pytest.fixture
def bench(tmp_path, monkeypatch):
    """A benchmark that can be changed before `load`; the working directory is a project's."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "judges.py").write_text(JUDGE)
    return MadeBenchmark(tmp_path / "benchmarks" / "Made", [row("a"), row("b"), row("c")])


def audit(*arguments, status=0):
    done = CliRunner().invoke(bubench, ["benchmark", "audit", "Made", *map(str, arguments)])
    assert done.exit_code == status, done.output + repr(done.exception)
    return done


def worths(done):
    return {task["task_id"]: task["worth"] for task in json.loads(done.stdout)["tasks"]}


def test_what_earns_nothing_is_said_by_kind_of_judge_and_nothing_is_left_behind(bench, tmp_path):
    bench.rows = [row("a"), row("b", expected_result="7"), row("c"), row("d"), row("e")]
    bench.rubrics = {"a": rubric("a", 40, 60), "c": rubric("c", 100, check=False)}
    bench.rows[4]["requires_login"] = True
    bench.load()
    done = audit("--json")
    assert worths(done) == {
        "a": "nothing",
        "b": "nothing",
        "c": "needs_model",
        "d": "no_reference",
        "e": "not_attempted",
    }
    told = audit().stdout
    assert "name a model with --judge" in told
    assert "needs a login" in told
    assert not (tmp_path / "experiments").exists()


def test_an_evaluator_that_pays_for_nothing_is_exit_3_and_the_tasks_are_named(bench):
    bench.evaluator = evaluator(
        'score = 10 if task_id == "b" else 0\n'
        'return {"predicted_label": 1 if task_id == "c" else 0, "score": score,\n'
        '        "evaluation_details": {}}'
    )
    bench.load()
    done = audit("--json", status=3)
    assert worths(done) == {"a": "nothing", "b": "points", "c": "points"}
    assert [task["points"] for task in json.loads(done.stdout)["tasks"]] == [0, 10, 0]
    assert "doing nothing earns points at 2 of 3 tasks (b, c)" in done.stderr
    assert worths(audit("--json", "--task-ids", "a")) == {"a": "nothing"}


def test_with_a_judge_named_nothing_is_left_that_needs_one(bench):
    bench.rubrics = {name: rubric(name, 40, 60, check=False) for name in "abc"}
    bench.load()
    assert set(worths(audit("--json")).values()) == {"needs_model"}
    judged = audit("--json", "--judge", "scripted:judges.py:believes")
    assert set(worths(judged).values()) == {"nothing"}
    assert "/" in json.loads(judged.stdout)["tasks"][0]["protocol"]


def test_an_evaluator_that_fails_is_no_zero_but_exit_4(bench):
    bench.evaluator = evaluator('raise KeyError("answer")')
    bench.rows = [row("a")]
    bench.load()
    done = audit("--json", status=4)
    assert worths(done) == {"a": "not_judged"}
    assert "1 of 1 tasks have no verdict (a)" in done.stderr


@pytest.mark.browser
def test_a_rubric_that_an_untouched_site_meets_is_found(bench):
    """BL042"""
    sql = "SELECT count(*) > 0 FROM products"
    untouched = {"kind": "state", "site": "shop.test", "sql": sql, "equals": [[1]]}
    bench.rows = [row("a", website="shop.test", start_url="http://shop.test/")]
    bench.info = {"sites": {"shop.test": "browseruse_bench.sites.shop:ShopSite"}}
    bench.rubrics = {"a": rubric("a", 40, 60)}
    bench.rubrics["a"]["items"][1]["check"] = untouched
    bench.load()
    done = audit("--json", status=3)
    (task,) = json.loads(done.stdout)["tasks"]
    assert (task["points"], task["met"]) == (60, ["I1"])
