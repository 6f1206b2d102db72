"""`bubench compare`, and the files that `report` and `leaderboard` draw."""

import asyncio
import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from browseruse_bench.cli.root import bubench
from browseruse_bench.eval.evaluate import evaluate_run
from browseruse_bench.eval.matcher import VERSION
from tests.report.made_run import MadeBenchmark, MadeRun, row


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """Two judged runs of twelve tasks: one all right, the other all wrong."""
    monkeypatch.chdir(tmp_path)
    rows = [row(f"t{n}", expected_result="Paris") for n in range(12)]
    loaded = MadeBenchmark(tmp_path / "benchmarks" / "Made", rows).load()
    made = []
    for agent, answer in (("good", "Paris"), ("bad", "Rome")):
        run = MadeRun.of(tmp_path / "experiments", loaded, agent=agent)
        for task in loaded.tasks:
            run.settle(loaded, task.task_id, answer)
        asyncio.run(evaluate_run(run.folder, loaded))
        made.append(run)
    return made


def bub(*arguments):
    return CliRunner().invoke(bubench, [str(argument) for argument in arguments])


def test_it_says_whether_two_runs_differ(runs):
    good, bad = (run.run.run_id for run in runs)
    done = bub("compare", good, bad)
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("Points: good is better by 100.0 points [")
    assert "p < 0.001, on 12 common tasks" in done.stdout
    assert "McNemar's p" in done.stdout


def test_runs_are_named_by_id_or_by_folder(runs):
    good, bad = runs
    assert bub("compare", good.folder.path, bad.run.run_id).exit_code == 0


def test_json_and_markdown_and_html_are_what_they_say(runs, tmp_path):
    ids = [run.run.run_id for run in runs]
    found = json.loads(bub("compare", *ids, "--json", "--html", "c.html").stdout)
    assert found["verdict"] == "first is better"
    assert found["points"]["n_tasks"] == 12
    assert bub("compare", *ids, "--markdown").stdout.startswith("# good and bad\n")
    assert (tmp_path / "c.html").read_text().startswith("<!doctype html>")


def test_the_target_and_the_difference_to_see_can_be_chosen(runs):
    ids = [run.run.run_id for run in runs]
    found = json.loads(bub("compare", *ids, "--target", "attempts", "--json").stdout)
    assert found["target"] == "new attempts"
    for wrong in (("--see", "0"), ("--see", "101"), ("--target", "agents")):
        assert bub("compare", *ids, *wrong).exit_code == 2


def test_unlike_runs_are_exit_2_with_the_reason_bl062(runs):
    good, bad = runs
    path = bad.folder.judgements_path
    path.write_text(
        path.read_text().replace(f'"matcher/{VERSION}"', f'"matcher/{VERSION}, three screenshots"')
    )
    done = bub("compare", good.run.run_id, bad.run.run_id)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "cannot be compared: their protocols differ on 12 of 12 common tasks" in done.stderr


def test_a_run_that_is_not_there_is_exit_2(runs):
    done = bub("compare", runs[0].run.run_id, "no-such-run")
    assert done.exit_code == 2
    assert "no-such-run" in done.stderr


def test_report_and_leaderboard_write_html_and_pictures_beside_their_output(runs, tmp_path):
    pytest.importorskip("matplotlib")
    for verb in (("report", runs[0].run.run_id), ("leaderboard",)):
        done = bub(*verb, "--json", "--html", "x/page.html", "--plot", "x/plot.svg")
        assert done.exit_code == 0, done.output
        json.loads(done.stdout)
        assert "<svg" in (tmp_path / "x" / "page.html").read_text()
        assert b"<svg" in (tmp_path / "x" / "plot.svg").read_bytes()


def test_a_plot_without_matplotlib_is_exit_2_and_says_what_to_install(runs, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    done = bub("report", runs[0].run.run_id, "--plot", "p.png")
    assert done.exit_code == 2
    assert "pip install 'browseruse-bench[plots]'" in done.stderr


def test_the_leaderboard_shows_intervals_rates_and_effort(runs):
    text = bub("leaderboard").stdout
    assert "75.8 to 100.0" in text
    assert "effective n" in text
    assert "seconds" in text
    assert "Repeats" not in text


def test_matplotlib_is_imported_only_where_a_plot_is_asked_for(runs):
    code = (
        "import sys\nfrom click.testing import CliRunner\n"
        "from browseruse_bench.cli.root import bubench\n"
        "for verb in (['leaderboard', '--html', 'x.html'], ['report', '--html', 'y.html']):\n"
        "    assert CliRunner().invoke(bubench, verb).exit_code == 0\n"
        "print([m for m in ('matplotlib', 'numpy', 'scipy') if m in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
