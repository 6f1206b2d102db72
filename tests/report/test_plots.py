"""Pictures as files: by matplotlib where it is, and with a clear word where it is not."""

import asyncio
import sys

import pytest

from browseruse_bench.errors import ConfigError
from browseruse_bench.eval.evaluate import evaluate_run
from browseruse_bench.report.leaderboard import build
from browseruse_bench.report.plots import plot_leaderboard, plot_report
from browseruse_bench.report.summary import summarise
from tests.report.made_run import MadeBenchmark, MadeRun, row


@pytest.fixture
def loaded(tmp_path):
    rows = [
        row(task, expected_result="Paris", difficulty=d, category="$x_$")
        for task, d in (("a", "easy"), ("b", "hard"))
    ]
    return MadeBenchmark(tmp_path / "Made", rows).load()


@pytest.fixture
def run(tmp_path, loaded):
    """A run whose names would be mathematics to matplotlib."""
    made = MadeRun.of(tmp_path / "experiments", loaded, agent="$\\frac$ <b>", model="$\\x$")
    made.settle(loaded, "a", "Paris")
    made.settle(loaded, "b", "Rome")
    asyncio.run(evaluate_run(made.folder, loaded))
    return made


@pytest.mark.parametrize(("name", "start"), [("p.png", b"\x89PNG"), ("p.SVG", b"<?xml")])
def test_the_pictures_are_files_of_their_kind_and_the_same_each_time(
    tmp_path, loaded, run, name, start
):
    pytest.importorskip("matplotlib")
    summary, board = summarise(run.folder, loaded), build(tmp_path / "experiments")
    for plot, what in ((plot_report, summary), (plot_leaderboard, board)):
        plot(what, tmp_path / "one" / name)
        plot(what, tmp_path / "two" / name)
        first, second = ((tmp_path / folder / name).read_bytes() for folder in ("one", "two"))
        assert first.startswith(start)
        assert first == second


def test_without_the_extra_it_says_what_to_install(tmp_path, loaded, run, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ConfigError, match=r"pip install 'browseruse-bench\[plots\]'"):
        plot_report(summarise(run.folder, loaded), tmp_path / "p.png")
    assert not (tmp_path / "p.png").exists()


def test_another_kind_of_file_is_refused(tmp_path, loaded, run):
    with pytest.raises(ConfigError, match="must end in .png or .svg"):
        plot_report(summarise(run.folder, loaded), tmp_path / "p.pdf")
