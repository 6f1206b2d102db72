import json

import pytest
from click.testing import CliRunner

from browseruse_bench import factory
from browseruse_bench.cli.root import bubench
from browseruse_bench.registry import Registry


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    from browseruse_bench.factory import pipeline

    stages = Registry(
        "stage",
        {
            name: f"tests.factory.made_stages:{kind}"
            for name, kind in (
                ("lines", "made_lines"),
                ("shorten", "made_shorten"),
                ("shout", "made_shout"),
            )
        },
    )
    monkeypatch.setattr(factory, "STAGES", stages)
    monkeypatch.setattr(pipeline, "STAGES", stages)
    monkeypatch.chdir(tmp_path)
    done = bub("init", "w")
    assert done.exit_code == 0, done.output
    (tmp_path / "w" / "corpus.txt").write_text("find a hotel\n\n#no\nbuy a book\n")
    monkeypatch.chdir(tmp_path / "w")
    return tmp_path / "w"


def bub(*arguments):
    return CliRunner().invoke(bubench, ["factory", *arguments])


def test_run_ends_with_the_funnel_and_status_shows_it_again(workspace):
    done = bub("run")
    assert done.exit_code == 0, done.output
    assert "in 4 = kept 3 + dropped 1 + failed 0" in done.stderr
    assert "1 (hash 1)" in done.stdout
    assert bub("status").stdout == done.stdout
    rows = json.loads(bub("status", "--json").stdout)
    assert [row["flow"]["kept"] for row in rows] == [3, 2, 2]
    assert "1 (hash 1)" in bub("report").stdout


def test_report_of_a_stage_is_written_and_shown(workspace):
    bub("run", "--until", "shorten")
    shown = bub("report", "shorten").stdout
    assert "# shorten" in shown
    assert (workspace / "restricted" / "shorten" / "report.md").read_text() == shown


def test_show_tells_a_tasks_whole_history(workspace):
    bub("run")
    line = (workspace / "restricted" / "shorten" / "kept.jsonl").read_text().splitlines()[0]
    told = bub("show", json.loads(line)["unit"])
    assert [line for line in told.stdout.splitlines() if not line.startswith(" ")] == [
        "lines:",
        "shorten:",
        "shout:",
    ]
    assert len(json.loads(bub("show", json.loads(line)["unit"], "--json").stdout)) == 3


def test_wrong_words_are_exit_2_and_change_nothing(workspace):
    for arguments in (
        ("run", "shuot"),
        ("run", "--restart"),
        ("run", "shout"),
        ("show", "x"),
        ("report", "nothing"),
        ("init", "."),
        ("frobnicate",),
    ):
        assert bub(*arguments).exit_code == 2, arguments
    assert not list((workspace / "clean").iterdir())


def test_a_failed_unit_is_exit_4_and_mended_by_the_same_command(workspace):
    (workspace / "fail").write_text("")
    failed = bub("run")
    assert failed.exit_code == 4
    assert "shout: 2 failed, 0 pending" in failed.stderr
    (workspace / "fail").unlink()
    assert bub("run").exit_code == 0


def test_ctrl_c_reaches_a_source_and_is_exit_130_and_the_same_command_goes_on(workspace):
    (workspace / "signal").write_text("")
    stopped = bub("run")
    assert stopped.exit_code == 130, stopped.output
    assert "SIGINT: nothing further starts" in stopped.stderr
    assert "== shorten" not in stopped.stderr
    assert "lines" in stopped.stdout, "the funnel is shown all the same"
    assert bub("run").exit_code == 0
    rows = json.loads(bub("status", "--json").stdout)
    assert [row["flow"]["kept"] for row in rows] == [3, 2, 2]


def test_figures_that_must_be_equal_and_are_not_are_exit_1(workspace, monkeypatch):
    from browseruse_bench.factory.stage import Flow
    from tests.factory.test_pipeline import Lines

    bub("run")
    monkeypatch.setattr(Lines, "flow", lambda self, folder: Flow(n_in=7, kept=7))
    for arguments in (("status",), ("report",), ("report", "shout"), ("run",)):
        done = bub(*arguments)
        assert done.exit_code == 1, done.output
        assert "shorten takes 3, and lines keeps 7" in done.stderr


def test_show_says_of_a_withdrawn_task_that_it_does_not_count(workspace):
    bub("run")
    line = (workspace / "clean" / "shout" / "kept.jsonl").read_text().splitlines()[0]
    corpus = workspace / "corpus.txt"
    gone = [text for text in corpus.read_text().split("\n") if text[:5].upper() not in line]
    corpus.write_text("\n".join(gone))
    again = bub("run")
    assert again.exit_code == 0
    assert "shout: 1 units that settled here do not come in any more" in again.stderr
    told = bub("show", json.loads(line)["key"]).stdout
    assert "state: withdrawn: shorten does not keep it now" in told


def test_restart_begins_a_stage_anew_and_keeps_what_was(workspace):
    bub("run")
    assert bub("run", "shout", "--restart").exit_code == 0
    assert (workspace / "clean" / "shout.before-1" / "journal.jsonl").exists()
