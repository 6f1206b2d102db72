import asyncio
import json

import pytest
from click.testing import CliRunner

from browseruse_bench.cli.root import bubench
from browseruse_bench.eval.evaluate import evaluate_run
from tests.report.made_run import MadeBenchmark, MadeRun, row, rubric


@pytest.fixture
def run(tmp_path):
    """Code finds "a" right and one of two items of "b" wrong."""
    rubrics = {"a": rubric("a", 100), "b": rubric("b", 50, 50)}
    bench = MadeBenchmark(tmp_path / "Made", [row("a"), row("b")], rubrics=rubrics)
    loaded = bench.load()
    made = MadeRun.of(tmp_path / "experiments", loaded)
    for task_id in "ab":
        made.settle(loaded, task_id, "An answer")
    asyncio.run(evaluate_run(made.folder, loaded))
    return made


def agreement(*arguments):
    return CliRunner().invoke(bubench, ["agreement", *map(str, arguments)])


def put(tmp_path, text):
    path = tmp_path / "labels.csv"
    path.write_text(text)
    return path


def test_labels_of_people_are_compared_with_the_run(run, tmp_path):
    labels = put(tmp_path, "task_id,label\na,success\nb,success\n")
    shown = agreement(run.folder.path, "--labels", labels, "--json")
    assert shown.exit_code == 0, shown.output
    ((compared,),) = [topic["compared"] for topic in json.loads(shown.stdout)["topics"]]
    assert compared["agreement"]["confusion"] == [[1, 1], [0, 0]]
    assert "Labels of attempts" in agreement(run.folder.path, "--labels", labels).stdout
    assert (
        "## Labels of attempts"
        in agreement(run.folder.path, "--labels", labels, "--markdown").stdout
    )


def test_before_anything_is_judged_it_says_what_judges(run, tmp_path):
    run.folder.judgements_path.unlink()
    shown = agreement(run.folder.path, "--labels", put(tmp_path, "task_id,label\na,success\n"))
    assert (shown.exit_code, "`bubench eval`" in shown.stderr) == (2, True)


def test_unknown_ids_are_exit_3_all_at_once(run, tmp_path):
    labels = put(tmp_path, "task_id,item,label\nx,,1\na,I9,1\ny,,1\n")
    shown = agreement(run.folder.path, "--labels", labels)
    assert shown.exit_code == 3
    assert [word in shown.stderr for word in ("'x'", "'I9'", "'y'")] == [True] * 3


def test_a_code_is_refused_until_it_is_declared(run, tmp_path):
    """BL061: what a 2 means is said, and the count of it stands beside the rate either way."""
    labels = put(tmp_path, "task_id,label\na,1\nb,2\n")
    assert agreement(run.folder.path, "--labels", labels).exit_code == 3
    declared = agreement(run.folder.path, "--labels", labels, "--missing", "2")
    assert (declared.exit_code, "1 ('2' 1)" in declared.stdout) == (0, True)
    own = agreement(run.folder.path, "--labels", labels, "--class", "2")
    assert "Each class of attempts against all others" in own.stdout


def test_a_table_of_others_needs_no_run(tmp_path):
    table = put(tmp_path, "site,person,model\nx,1,1\nx,0,1\ny,1,\ny,0,0\n")
    shown = agreement(
        "--csv", table, "--truth", "person", "--verdict", "model", "--group", "site", "--json"
    )
    assert shown.exit_code == 0, shown.output
    (topic,) = json.loads(shown.stdout)["topics"]
    assert [each["group"] for each in topic["compared"]] == [None, "x", "y"]
    assert topic["compared"][0]["agreement"]["missing"]["verdict"] == 1


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ([], "--labels"),
        (["--truth", "a", "--labels", "l.csv"], "--csv"),
        (["--csv", "t.csv", "--truth", "a"], "--verdict"),
        (["run-1", "--csv", "t.csv", "--truth", "a", "--verdict", "b"], "run-1"),
        (["--csv", "t.csv", "--truth", "a", "--verdict", "b", "--labels", "l.csv"], "--labels"),
        (["--labels", "l.csv", "--missing", "1"], "meaning already"),
    ],
)
def test_a_mixture_of_run_and_table_is_refused_in_a_line(arguments, word):
    shown = agreement(*arguments)
    assert shown.exit_code == 2
    assert word in shown.stderr
    assert "Traceback" not in shown.output
