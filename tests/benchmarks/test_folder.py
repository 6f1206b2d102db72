import sys
from pathlib import Path

import pytest

import browseruse_bench.benchmarks as table
from browseruse_bench.benchmarks import folder as folders
from browseruse_bench.benchmarks.folder import all_places, find, module_exists
from browseruse_bench.errors import ConfigError

GUIDE = {
    "LexBench-Browser": ...,
    "Online-Mind2Web": ...,
    "BrowseComp": ...,
    "YourBenchmark": {
        "data_dir": "benchmarks/YourBenchmark",
        "evaluator": "browseruse_bench.eval.your_evaluator:YourBenchmarkEvaluator",
    },
}


class _Point:
    """An installed package's entry point."""

    def __init__(self, name, value):
        self.name, self.value = name, value


@pytest.fixture
def entry_point(monkeypatch):
    def _add(name, value):
        monkeypatch.setattr(folders, "entry_points", lambda group: [_Point(name, value)])

    return _add


def test_a_folder_below_benchmarks_is_found_without_editing_the_package(make, tmp_path):
    folder = make()
    place = find("Small", cwd=tmp_path)
    assert place.path == folder
    assert (place.found, place.evaluator, place.problem) == ("folder", None, None)


def test_a_folder_is_found_from_below(make, tmp_path):
    folder = make()
    deep = tmp_path / "notes" / "today"
    deep.mkdir(parents=True)
    assert find("Small", cwd=deep).path == folder


def test_the_nearest_folder_of_a_name_wins(make, tmp_path):
    make()
    near = tmp_path / "inner" / "benchmarks" / "Small"
    near.mkdir(parents=True)
    (near / "data_info.json").write_text("{}")
    assert find("Small", cwd=tmp_path / "inner").path == near
    places = {p.name: p.path for p in all_places(tmp_path / "inner")}
    assert places["Small"] == near


def test_the_table_of_the_guide_works_word_for_word(make, tmp_path, monkeypatch):
    monkeypatch.setattr(table, "BENCHMARKS", GUIDE)
    folder = make(name="YourBenchmark", files={"evaluator.py": "raise SystemExit('never run')"})
    place = find("YourBenchmark", cwd=tmp_path)
    assert (place.path, place.found) == (folder, "table")
    assert place.evaluator == str(folder / "evaluator.py")
    assert "your_evaluator" in place.notes[0]
    assert "is used" in place.notes[0]


def test_an_ellipsis_stands_for_the_folder_of_that_name(tmp_path, monkeypatch):
    monkeypatch.setattr(table, "BENCHMARKS", GUIDE)
    place = find("BrowseComp", cwd=tmp_path)
    assert place.path.name == "BrowseComp"
    assert (place.path / "data_info.json").is_file()


def test_packaged_benchmarks_survive_a_replaced_table(tmp_path, monkeypatch):
    monkeypatch.setattr(table, "BENCHMARKS", GUIDE)
    assert find("LocalSites", cwd=tmp_path).found == "packaged"
    monkeypatch.delattr(table, "BENCHMARKS")
    assert find("LexBench-Browser", cwd=tmp_path).found == "packaged"


def test_an_installed_wheel_finds_its_builtin_folders(make, tmp_path, monkeypatch):
    monkeypatch.setattr(folders, "SOURCE_ROOT", tmp_path / "site-packages")
    monkeypatch.setattr(folders, "BUILTIN", make(name="LocalSites").parent)
    elsewhere = tmp_path.parent
    assert find("LocalSites", cwd=elsewhere).path == folders.BUILTIN / "LocalSites"


def test_the_users_folder_of_a_registered_name_is_used_instead_of_the_packaged_one(make, tmp_path):
    mine = make(name="Online-Mind2Web")
    assert find("Online-Mind2Web", cwd=tmp_path).path == mine


def test_the_registered_evaluator_wins_where_its_module_exists(make, tmp_path, monkeypatch):
    target = "browseruse_bench.errors:DataError"
    monkeypatch.setattr(table, "BENCHMARKS", {"Small": {"evaluator": target}})
    make(files={"evaluator.py": ""})
    place = find("Small", cwd=tmp_path)
    assert place.evaluator == target
    assert "not used" in place.notes[0]


def test_names_are_matched_exactly_and_the_nearest_is_named(make, tmp_path):
    make()
    with pytest.raises(ConfigError, match="did you mean 'Small'") as caught:
        find("small", cwd=tmp_path)
    assert "LocalSites" in str(caught.value)
    with pytest.raises(ConfigError, match="unknown benchmark ''"):
        find("", cwd=tmp_path)


def test_a_path_is_a_benchmark_of_its_folders_name(make, tmp_path):
    folder = make()
    moved = tmp_path / "elsewhere" / "Moved"
    moved.parent.mkdir()
    folder.rename(moved)
    assert find("elsewhere/Moved", cwd=tmp_path).name == "Moved"
    assert find(str(moved), cwd=tmp_path).path == moved


def test_the_path_of_a_registered_benchmark_keeps_its_name_and_evaluator(
    make, tmp_path, monkeypatch
):
    entry = {"data_dir": "benchmarks/Small", "evaluator": "browseruse_bench.errors:DataError"}
    monkeypatch.setattr(table, "BENCHMARKS", {"Registered": entry})
    place = find(str(make()), cwd=tmp_path)
    assert (place.name, place.evaluator) == ("Registered", entry["evaluator"])


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        (7, "an entry is a dict"),
        ({"data_dir": 7}, "data_dir"),
        ({"evaluator": "no_colon"}, "module:Class"),
        ({"data_dir": "nowhere/Small"}, "no folder 'nowhere/Small'"),
    ],
)
def test_a_broken_registration_is_listed_with_its_problem(tmp_path, monkeypatch, entry, text):
    monkeypatch.setattr(table, "BENCHMARKS", {"Small": entry})
    place = next(p for p in all_places(tmp_path) if p.name == "Small")
    assert text in (place.problem or "")


def test_an_entry_point_brings_a_benchmark_beside_its_module(
    make, tmp_path, monkeypatch, entry_point
):
    folder = make(name="Theirs")
    (folder.parent / "their_package.py").write_text('WHERE = {"data_dir": "Theirs"}\n')
    monkeypatch.syspath_prepend(str(folder.parent))
    entry_point("Installed", "their_package:WHERE")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    place = find("Installed", cwd=elsewhere)
    assert (place.path, place.found) == (folder, "entry point")


def test_a_broken_entry_point_does_not_break_the_list(tmp_path, monkeypatch, entry_point):
    (tmp_path / "broken_package.py").write_text("raise RuntimeError('no licence')")
    monkeypatch.syspath_prepend(str(tmp_path))
    entry_point("Installed", "broken_package:WHERE")
    place = next(p for p in all_places(tmp_path) if p.name == "Installed")
    assert "no licence" in (place.problem or "")


def test_looking_for_a_module_runs_nothing(tmp_path, monkeypatch):
    package = tmp_path / "trap_package"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('was run')")
    (package / "inner.py").write_text("raise RuntimeError('was run')")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert module_exists("trap_package.inner")
    assert not module_exists("trap_package.missing")
    assert not module_exists("trap_package.inner.deeper")
    assert not module_exists("no_such_package")
    assert "trap_package" not in sys.modules


def test_hidden_and_foreign_folders_are_no_benchmarks(make, tmp_path):
    make(name=".hidden")
    (tmp_path / "benchmarks" / "scripts").mkdir()
    names = {p.name for p in all_places(tmp_path)}
    assert names.isdisjoint({".hidden", "scripts"})


def test_the_four_benchmarks_of_the_table_are_found_in_this_checkout(tmp_path: Path):
    found = {p.name: p for p in all_places(tmp_path)}
    for name in ("LexBench-Browser", "Online-Mind2Web", "BrowseComp", "LocalSites"):
        assert found[name].found == "table"
        assert found[name].problem is None
