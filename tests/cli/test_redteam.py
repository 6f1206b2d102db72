"""`bubench redteam`."""

import json

import pytest
from click.testing import CliRunner

from browseruse_bench.cli.root import bubench
from tests.eval.conftest import MakeTrace
from tests.eval.redteam.made import Made


@pytest.fixture
def made(tmp_path, monkeypatch):
    """A run of one honest trace, in the experiments folder of the working directory."""
    monkeypatch.chdir(tmp_path)
    return Made(tmp_path, MakeTrace(tmp_path))


def bub(*arguments):
    return CliRunner().invoke(bubench, [str(argument) for argument in arguments])


def test_it_attacks_the_newest_run_and_says_what_came_of_it(made):
    done = bub("redteam", "--attacks", "typed,honest-untouched,clicked-together")
    assert done.exit_code == 0, done.output
    assert "attacks that gain" in done.stdout
    rows = {line.split("  ")[0]: line.split() for line in done.stdout.splitlines()}
    assert rows["attacks that gain"][3:6] == ["0", "1", "0.0%"]
    assert rows["honest copies that lose"][4:7] == ["0", "1", "0.0%"]
    assert rows["attacks that only a judge can tell"][7:10] == ["1", "1", "100.0%"]
    assert "clicked-together" in done.stdout
    assert "A1_price" in done.stdout
    assert f"run {made.run.run.run_id}" in done.stderr


def test_json_holds_every_figure_and_markdown_every_attack(made):
    found = json.loads(bub("redteam", made.run.run.run_id, "--attacks", "files", "--json").stdout)
    assert found["n_trials"] == 8
    (judge,) = found["judges"]
    assert judge["gains"]["failed"] == 0
    assert judge["gains"]["n"] == 8
    assert judge["gains"]["wilson"][1] == pytest.approx(0.3244, abs=0.001)
    text = bub("redteam", made.folder.path, "--attacks", "files", "--markdown").stdout
    assert text.startswith("# Red team on run-")
    assert "- manifest-removed: the manifest is taken away" in text


def test_it_goes_on_where_it_stopped_in_a_folder_of_its_own(made, tmp_path):
    first = bub("redteam", "--attacks", "typed", "--into", "rt", "--keep-copies", "--json")
    assert first.exit_code == 0, first.output
    assert len(list((tmp_path / "rt").rglob("MANIFEST.json"))) == 2
    again = json.loads(bub("redteam", "--attacks", "typed", "--into", "rt", "--json").stdout)
    assert again["n_resumed"] == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--attacks", "typd"], "did you mean 'typed'"),
        (["--keep-copies"], "name one with --into"),
        (["--task-ids", "nobody"], "no task nobody in this run"),
        (["run-of-nobody"], "run-of-nobody"),
        (["--panel", "a", "--judge", "b"], "exclude each other"),
    ],
)
def test_what_is_typed_wrongly_is_exit_2_and_says_so(made, arguments, said):
    done = bub("redteam", *arguments)
    assert done.exit_code == 2
    assert said in done.stderr


def test_a_folder_within_the_run_is_refused(made):
    done = bub("redteam", "--attacks", "typed", "--into", made.folder.path / "rt")
    assert done.exit_code == 2
    assert "stays as it is" in done.stderr


def test_a_run_that_only_a_model_can_judge_says_to_name_one(made):
    for item in made.bench.rubrics["kettle"]["items"]:
        item.pop("check")
    made.bench.load()
    done = bub("redteam")
    assert done.exit_code == 2
    assert "name a model with --judge" in done.stderr


def test_attacks_are_listed_without_a_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = bub("redteam", "--list", "--attacks", "files")
    assert done.exit_code == 0
    assert len(done.stdout.splitlines()) == 9


def test_a_judge_that_is_named_is_attacked_too_with_figures_of_its_own(made, tmp_path):
    source = "from tests.eval.findings.believer import Believer\nbelieves = Believer()\n"
    (tmp_path / "judge.py").write_text(source)
    command = (
        *("redteam", "--judge", "scripted:judge.py:believes", "--judge-all", "--json"),
        *("--attacks", "typed,clicked-together,verdict-in-page,honest-untouched"),
    )
    done = bub(*command)
    assert done.exit_code == 0, done.output
    by_code, by_judge = json.loads(done.stdout)["judges"]
    assert by_code["protocol"].startswith("code-checks/")
    assert by_judge["protocol"].startswith("findings/")
    assert (by_judge["gains"]["failed"], by_judge["gains"]["n"]) == (0, 1)
    assert by_judge["gains_in_pages"]["n"] == 2
    assert by_judge["gains_in_pages"]["failed"] == 1
    assert "judge:" in done.stderr
    again = bub(*command)
    assert "from the ledger" in again.stderr
    assert json.loads(again.stdout)["judges"] == [by_code, by_judge]
