"""A broken rubric is refused before a browser starts and before anything is judged."""

import json

import pytest
from click.testing import CliRunner

from browseruse_bench.cli.root import bubench
from tests.runs.doubles import told

RUN = ("run", "--agent", "tests.runs.doubles:Echo", "--benchmark", "Small", "--browser", "none")
EVAL = ("eval", "--agent", "echo", "--benchmark", "Small")


def item(**more):
    check = {"kind": "url", "host": "shop.test"}
    return {"id": "A1", "requirement": "So.", "weight": 100, "check": check, **more}


BROKEN = [
    ([item(weight=99)], "weights sum to 99"),
    ([item(weight=0)], "weight"),
    ([item(weight=True)], "weight"),
    ([item(weight="100")], "weight"),
    ([item(facts=["F9"])], "fact 'F9' is cited but not stated"),
    ([item(check={"kind": "url", "host": ""})], "host"),
    ([item(check={"kind": "state", "site": "x.test", "sql": "SELECT 1", "equals": []})], "x.test"),
    ([], "items"),
]


@pytest.mark.parametrize(("items", "named"), BROKEN)
def test_no_attempt_is_made_and_nothing_is_judged_by_a_broken_rubric_bl005(
    benchmark, carry_out, project, items, named
):
    """BL005, BL004, BL002: found at load, with the file; never after the work was paid for."""
    folder = benchmark("a", "b")
    carry_out()
    before = len(told())
    (folder / "rubrics").mkdir()
    rubric = folder / "rubrics" / "t1.json"
    rubric.write_text(json.dumps({"task_id": "t1", "items": items}))
    for verb in ((*RUN, "--fresh"), EVAL):
        done = CliRunner().invoke(bubench, verb)
        assert done.exit_code == 3, done.output
        assert "rubrics/t1.json" in done.stderr
        assert named in done.stderr
    assert len(told()) == before
    assert list(project.glob("experiments/**/judgements.jsonl")) == []
    assert len(list(project.glob("experiments/**/run.json"))) == 1
