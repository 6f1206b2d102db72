import json

import pytest
from click.testing import CliRunner

from browseruse_bench.cli.root import bubench
from browseruse_bench.eval.findings.prompts import rubric_text
from browseruse_bench.records.rubric import Rubric
from browseruse_bench.records.rubric_text import markdown
from tests.benchmarks.small import INFO, TASKS, put
from tests.records.made_rubrics import released

RUBRIC = Rubric.model_validate(released())


@pytest.fixture
def cli(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def _run(*arguments, status=0):
        result = CliRunner().invoke(bubench, ["rubric", *map(str, arguments)])
        assert result.exit_code == status, result.output
        return result

    return _run


@pytest.fixture
def revisions(tmp_path):
    """rubrics/kettle/r1.json and r2.json, which has other weights."""
    folder = tmp_path / "rubrics" / "kettle"
    put(folder / "r1.json", released())
    first, second = released()["items"]
    items = [{**first, "weight": 70}, {**second, "weight": 30}]
    put(folder / "r2.json", released(items=items, revision=2))
    return folder


def test_check_passes_a_sound_file_and_says_so(cli, revisions):
    output = cli("check", revisions / "r1.json", "--profile", "release").output
    assert output.endswith("2 items, for release: nothing found\n")


def test_check_lists_all_problems_and_exits_with_3(cli, tmp_path):
    broken = released(canary=None, task_key=None)
    put(tmp_path / "kettle.json", broken)
    assert cli("check", "kettle.json").exit_code == 0
    result = cli("check", "kettle.json", "--profile", "release", status=3)
    assert result.stderr.splitlines()[:2] == [
        "kettle.json: canary: missing", "kettle.json: task_key: missing",
    ]  # fmt: skip
    value = json.loads(
        cli("check", "kettle.json", "--profile", "release", "--json", status=3).stdout
    )
    assert value["errors"] == 2
    assert value["findings"][0] == {
        "level": "error", "rule": "release", "file": "kettle.json", "item": None,
        "field": "canary", "text": "missing",
    }  # fmt: skip


def test_check_takes_a_benchmark_by_name(cli, tmp_path):
    put(tmp_path / "benchmarks" / "Small" / "data_info.json", INFO)
    put(tmp_path / "benchmarks" / "Small" / "data" / "tasks.json", TASKS)
    output = cli("check", "Small").output
    assert "Small: 0 rubrics, 0 items, for load, 3 tasks without a rubric" in output
    assert "did you mean 'Small'?" in cli("check", "Smal", status=2).stderr


def test_check_takes_a_publishers_file(cli, tmp_path):
    put(tmp_path / "o.json", [{"task_id": "a", "rubrics": {"R1": {"requirement": "So."}}}])
    assert "1 rubrics" in cli("check", "o.json", "--from", "odysseys").output
    assert "unknown publisher" in cli("check", "o.json", "--from", "nobody", status=2).stderr


def test_show_prints_the_document_the_json_or_what_a_judge_gets(cli, revisions):
    path = revisions / "r1.json"
    assert cli("show", path).output == markdown(RUBRIC)
    assert cli("show", path, "--judge").output == rubric_text(RUBRIC, RUBRIC.items, ()) + "\n"
    assert json.loads(cli("show", path, "--json").output) == RUBRIC.as_json()
    assert cli("show", f"{revisions}@2").output.startswith("# Rubric of kettle, revision 2")
    cli("show", path, "--json", "--judge", status=2)


def test_show_takes_a_task_of_a_benchmark(cli):
    assert "### A1_goods (35 points)" in cli("show", "LocalSites", "shop-order-1").output
    assert "name a task; 58 of its" in cli("show", "LocalSites", status=2).stderr
    said = cli("show", "LocalSites", "shop-order-9", status=2).stderr
    assert "did you mean 'shop-order-" in said


def test_show_says_what_keeps_a_file_from_being_a_rubric(cli, tmp_path):
    put(tmp_path / "x.json", {"task_id": "x", "items": []})
    assert "x.json.items" in cli("show", "x.json", status=3).stderr
    for verb in ("show", "check"):
        assert "none.json: no such file" in cli(verb, "none.json", status=2).stderr


@pytest.mark.parametrize(
    "pair",
    [("rubrics/kettle/r1.json", "rubrics/kettle/r2.json"),
     ("rubrics/kettle@1", "rubrics/kettle@2"),
     ("rubrics/kettle/r2.json@1", "rubrics/kettle/r1.json@2")],
)  # fmt: skip
def test_diff_takes_files_and_revisions(cli, revisions, pair):
    assert cli("diff", *pair).output.splitlines()[:3] == [
        "reweighted items.A1_price.weight", "  - 60", "  + 70",
    ]  # fmt: skip
    value = json.loads(cli("diff", *pair, "--json").output)
    assert [c["kind"] for c in value["changes"]] == ["reweighted", "reweighted", "changed"]
    assert "## items.A1_price.weight: reweighted" in cli("diff", *pair, "--markdown").output
    cli("diff", *pair, "--json", "--markdown", status=2)


def test_a_revision_that_is_not_there_is_refused_with_those_that_are(cli, revisions):
    said = cli("diff", f"{revisions}@1", f"{revisions}@3", status=2).stderr
    assert "no revision 3; there are: 1, 2" in said


def test_a_file_whose_name_has_an_at_sign_is_that_file(cli, tmp_path):
    put(tmp_path / "a@2", released())
    assert cli("show", "a@2").output == markdown(RUBRIC)
