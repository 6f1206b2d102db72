import json

import pytest

from browseruse_bench.benchmarks.folder import find
from browseruse_bench.benchmarks.load import load_benchmark
from browseruse_bench.benchmarks.scaffold import new_benchmark, plan_split, write_split
from browseruse_bench.benchmarks.validate import examine
from browseruse_bench.errors import ConfigError, DataError
from browseruse_bench.store.files import read_json
from tests.benchmarks.small import TASKS


@pytest.mark.parametrize("with_evaluator", [False, True])
def test_a_new_benchmark_has_the_guides_layout_and_no_problem(tmp_path, with_evaluator):
    folder = new_benchmark("YourBenchmark", tmp_path / "benchmarks", with_evaluator=with_evaluator)
    for name in ("README.md", "data/tasks.json", "data_info.json"):
        assert (folder / name).is_file()
    assert (folder / "evaluator.py").is_file() == with_evaluator
    examined = examine(find("YourBenchmark", cwd=tmp_path))
    assert (examined.problems, examined.warnings) == ((), ())
    sizes = {name: len(tasks) for name, tasks in examined.splits.items()}
    assert sizes == {"All": 2, "Easy": 1, "Medium": 1, "Hard": 0}


def test_nothing_of_the_package_is_left_unnamed_in_a_new_benchmark(tmp_path):
    folder = new_benchmark("Über-Bench 2", tmp_path, with_evaluator=True)
    source = (folder / "evaluator.py").read_text()
    compile(source, "evaluator.py", "exec")
    assert "class BerBench2Evaluator(BaseEvaluator)" in source
    assert "NAME" not in (folder / "README.md").read_text()


def test_a_class_name_cannot_begin_with_a_digit(tmp_path):
    folder = new_benchmark("2048", tmp_path, with_evaluator=True)
    assert "class My2048Evaluator(BaseEvaluator)" in (folder / "evaluator.py").read_text()


def test_an_existing_folder_is_refused_and_left_alone(tmp_path):
    (tmp_path / "Mine").mkdir()
    with pytest.raises(ConfigError, match="already there"):
        new_benchmark("Mine", tmp_path)
    assert list((tmp_path / "Mine").iterdir()) == []


@pytest.mark.parametrize("name", ["../Mine", "a/b", "", "..", "CON", ".hidden", "x" * 200])
def test_a_name_that_is_no_folder_name_is_refused(tmp_path, name):
    with pytest.raises(ConfigError, match="benchmark name"):
        new_benchmark(name, tmp_path / "benchmarks")
    assert list(tmp_path.iterdir()) == []


def test_split_sorts_by_difficulty_whatever_its_case(make, tmp_path):
    folder = make([*TASKS, {"task_id": "d", "task": "T.", "difficulty": "HARD", "x": 1}])
    plan = plan_split(find("Small", cwd=tmp_path))
    assert not (folder / "data" / "tasks_hard.json").exists()
    write_split(plan)
    assert [t.task_id for t in load_benchmark("Small", "Hard", cwd=tmp_path).tasks] == ["c", "d"]
    assert [t.task_id for t in load_benchmark("Small", "Easy", cwd=tmp_path).tasks] == ["b"]
    assert load_benchmark("Small", "Medium", cwd=tmp_path).tasks == ()
    assert read_json(folder / "data" / "tasks_hard.json")[1]["x"] == 1
    assert plan.notes == ("in no subset, for want of a difficulty easy, medium or hard: 'a'",)


def test_split_keeps_what_data_info_says_and_in_its_order(make, tmp_path):
    extra = {"version_info": {"b": 1, "a": 2}, "split": {"All": "tasks.json", "Odd": "odd.json"}}
    folder = make(info=extra, files={"data/odd.json": [TASKS[0]]})
    write_split(plan_split(find("Small", cwd=tmp_path)))
    info = json.loads((folder / "data_info.json").read_text())
    assert list(info["split"]) == ["All", "Odd", "Easy", "Medium", "Hard"]
    assert list(info["version_info"]) == ["b", "a"]
    assert read_json(folder / "data" / "odd.json") == [TASKS[0]]


def test_split_mends_the_subset_files_that_are_missing_or_stale(make, tmp_path):
    split = {"All": "tasks.json", "Easy": "easy.json", "Hard": "tasks_hard.json"}
    folder = make(info={"split": split}, files={"data/easy.json": [TASKS[2]]})
    write_split(plan_split(find("Small", cwd=tmp_path)))
    assert read_json(folder / "data" / "easy.json") == [TASKS[1]]
    assert not (folder / "data" / "tasks_easy.json").exists()
    assert examine(find("Small", cwd=tmp_path)).problems == ()


def test_split_twice_changes_nothing(make, tmp_path):
    folder = make()
    write_split(plan_split(find("Small", cwd=tmp_path)))
    before = {p: p.read_bytes() for p in folder.rglob("*.json")}
    write_split(plan_split(find("Small", cwd=tmp_path)))
    assert {p: p.read_bytes() for p in folder.rglob("*.json")} == before


def test_split_does_not_overwrite_a_file_that_no_split_names(make, tmp_path):
    folder = make(files={"data/tasks_easy.json": ["mine"]})
    with pytest.raises(ConfigError, match=r"tasks_easy\.json is there"):
        plan_split(find("Small", cwd=tmp_path))
    assert read_json(folder / "data" / "tasks_easy.json") == ["mine"]


def test_split_of_an_invalid_benchmark_lists_its_problems(make, tmp_path):
    make([{"task_id": "a"}])
    with pytest.raises(DataError, match="task: missing"):
        plan_split(find("Small", cwd=tmp_path))


def test_split_writes_rows_as_published_so_that_the_mapping_still_holds(make, tmp_path):
    rows = [{"id": 1, "query": "Q?", "level": "easy"}, {"id": 2, "query": "R?", "level": "hard"}]
    fields = {"task_id": {"name": "id", "convert": "string"}, "task": "query"}
    make(rows, info={"fields": {**fields, "difficulty": "level"}})
    write_split(plan_split(find("Small", cwd=tmp_path)))
    assert [t.task_id for t in load_benchmark("Small", "Hard", cwd=tmp_path).tasks] == ["2"]
