import os
import shutil

import pytest

from browseruse_bench.errors import ConfigError, DataError
from browseruse_bench.report.find import benchmark_of, find_run, open_run
from tests.report.made_run import MadeBenchmark, MadeRun, row

LONG_AGO, NOW = 1_000_000_000, 2_000_000_000


@pytest.fixture
def bench(tmp_path):
    return MadeBenchmark(tmp_path / "Made", [row("a", expected_result="Paris")]).load()


@pytest.fixture
def root(tmp_path):
    return tmp_path / "experiments"


def run_of(root, bench, run_id, *, active=LONG_AGO, **options) -> MadeRun:
    made = MadeRun.of(root, bench, run_id=run_id, **options)
    for path in made.folder.path.iterdir():
        os.utime(path, (active, active))
    return made


def test_of_several_runs_the_one_that_was_active_last_is_meant(root, bench):
    run_of(root, bench, "old", started_at="2020-01-01T00:00:00+00:00")
    run_of(root, bench, "new", started_at="2021-01-01T00:00:00+00:00")
    assert find_run(root, benchmark="Made", agent="scripted")[1].run_id == "new"
    gone_on = root.glob("*/*/*/*/old/run.json")
    os.utime(next(gone_on), (NOW, NOW))
    assert find_run(root, benchmark="Made", agent="scripted")[1].run_id == "old"


def test_a_run_that_was_just_asked_for_and_settled_nothing_is_the_newest(root, bench):
    """BL021: an older run is not judged in its place."""
    old = run_of(root, bench, "old")
    old.settle(bench, "a", "Paris")
    os.utime(old.folder.attempts_path, (LONG_AGO, LONG_AGO))
    run_of(root, bench, "empty", active=NOW)
    assert find_run(root)[1].run_id == "empty"


def test_an_unknown_run_id_is_refused_although_older_runs_are_there(root, bench):
    """BL021."""
    run_of(root, bench, "there", model="openai/gpt-5")
    with pytest.raises(ConfigError) as error:
        find_run(root, run_id="does-not-exist", agent="scripted")
    assert "--run-id does-not-exist" in str(error.value)
    assert "--agent scripted --model openai/gpt-5 --run-id there" in str(error.value)


def test_where_nothing_was_run_the_command_to_type_is_said(root):
    with pytest.raises(ConfigError, match="`bubench run --agent nop --benchmark Made`"):
        find_run(root, agent="nop", benchmark="Made")


@pytest.mark.parametrize("other", [{"agent": "x"}, {"model": "x"}, {"split": "x"}])
def test_each_name_must_fit(root, bench, other):
    run_of(root, bench, "there")
    with pytest.raises(ConfigError, match="no run"):
        find_run(root, **other)


def test_a_damaged_run_is_an_error_only_where_it_is_asked_for(root, bench):
    run_of(root, bench, "good")
    bad = run_of(root, bench, "bad")
    (bad.folder.path / "run.json").write_text("{")
    assert find_run(root)[1].run_id == "good"
    with pytest.raises(DataError):
        find_run(root, run_id="bad")


def test_a_run_is_opened_by_its_folder(root, bench):
    made = run_of(root, bench, "there")
    assert open_run(root / "elsewhere", str(made.folder.path))[1].run_id == "there"


def test_a_benchmark_that_is_gone_is_not_at_hand_and_says_so(root, bench):
    run = run_of(root, bench, "there").run
    assert benchmark_of(run)[0] is not None
    shutil.rmtree(bench.path)
    found, why = benchmark_of(run)
    assert found is None
    assert "Made is not at hand" in why
