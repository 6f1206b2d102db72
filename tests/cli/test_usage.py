"""What is typed wrongly is refused: status 2, a message on stderr, and nothing is written."""

import subprocess
import sys

import pytest
from click.testing import CliRunner

from browseruse_bench.cli.root import VERBS, bubench
from tests.benchmarks.small import put

RUN = ("run", "--agent", "nop", "--benchmark", "Small")
EVAL = ("eval", "--agent", "nop", "--benchmark", "Small")
WRONG = [
    # (what is typed, what the message names)
    (("evaluatee",), "evaluatee"),
    (("benchmark", "vaildate", "Small"), "vaildate"),
    (("benchmark", "validate", "Small", "extra"), "extra"),
    (("benchmark", "new", "Mine", "--with-evalautor"), "--with-evalautor"),
    (("run", "--agnt", "nop", "--benchmark", "Small"), "--agnt"),
    (("run", "--benchmark", "Small"), "--agent"),
    ((*RUN, "extra"), "extra"),
    ((*RUN, "--cuont", "1"), "--cuont"),
    ((*RUN, "--mode", "firstn"), "firstn"),
    ((*RUN, "--mode", "first_n", "--count", "-1"), "-1"),
    ((*RUN, "--mode", "first_n", "--count", "three"), "three"),
    ((*RUN, "--timeout", "nan"), "--timeout"),
    ((*RUN, "--step-timeout", "inf"), "--step-timeout"),
    ((*RUN, "--concurrency", "0"), "concurrency"),
    ((*RUN, "--concurrency", "\u00b2"), "concurrency"),
    ((*RUN, "--cdp-url", "http://127.0.0.1:1"), "--browser cdp"),
    ((*RUN, "--site", "example.com=no_such_module:Site"), "no_such_module"),
    ((*RUN, "--task-ids", "a,NoSuch"), "NoSuch"),
    ((*RUN, "--split", "Hrad"), "Hrad"),
    ((*RUN, "--run-id", "../x"), "../x"),
    (("run", "--agent", "nopp", "--benchmark", "Small"), "nopp"),
    (("run", "--agent", "nop", "--benchmark", "Smal"), "Smal"),
    (("run", "--agent", "nop", "--benchmark", "Small", "--browser", "chrme"), "chrme"),
    (("eval", "extra-arg"), "--agent"),
    ((*EVAL, "extra-arg"), "extra-arg"),
    ((*EVAL, "--force-reeval"), "--force-reeval"),
    ((*EVAL, "--task-ids", ","), "--task-ids"),
    ((*EVAL, "--panel", ","), "--panel"),
    (("models", "batch", "export", "b", "--max-mb", "nan"), "--max-mb"),
    (("models", "batch", "submit", "b", "--price-factor", "nan"), "--price-factor"),
    (EVAL, "no run below experiments"),
    (("report", "one", "two"), "two"),
    (("leaderboard", "extra"), "extra"),
    (("leaderboard", "--json", "--markdown"), "one of --json and --markdown"),
    (("redteam", "--markdown", "--json"), "one of --json and --markdown"),
    (("rubric", "diff", "a", "b", "--markdown", "--json"), "one of --json and --markdown"),
    (("list", "extra"), "extra"),
    (("demo", "extra"), "extra"),
    (("demo", "--count", "0"), "0"),
    (("doctor", "extra"), "extra"),
    (("--debgu", "list"), "--debgu"),
]


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "benchmarks" / "Small"
    put(folder / "data_info.json", {"split": {"All": "tasks.json"}})
    put(folder / "data" / "tasks.json", [{"task_id": "a", "task": "T.", "expected_result": "x"}])
    return tmp_path


def files(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(("typed", "named"), WRONG, ids=[" ".join(w[0]) for w in WRONG])
def test_what_is_typed_wrongly_is_refused_and_writes_nothing_BL094(project, typed, named):  # noqa: N802
    """BL094; peers: mistyped flags are accepted, `--count -1` runs all but the last."""
    before = files(project)
    done = CliRunner().invoke(bubench, typed)
    assert done.exit_code == 2, done.output
    assert named in done.stderr
    assert done.stdout == ""
    assert files(project) == before


def test_the_process_itself_ends_with_status_2_BL094(project):  # noqa: N802
    done = subprocess.run(
        [sys.executable, "-m", "browseruse_bench", "evaluatee"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "evaluatee" in done.stderr


@pytest.mark.parametrize("verb", VERBS)
def test_help_of_every_verb_is_no_error(project, verb):
    done = CliRunner().invoke(bubench, [verb, "--help"])
    assert done.exit_code == 0
    assert "Usage" in done.stdout
    assert list(project.glob("experiments*")) == []
