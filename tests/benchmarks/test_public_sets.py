"""Public task sets load through the mappings that their folders declare.

The sets are not part of this repository: BUBENCH_ORACLE_DATA names the folder they are in.
"""

import json
import os
from collections import Counter
from pathlib import Path

import pytest

from browseruse_bench.benchmarks.folder import SOURCE_ROOT, find
from browseruse_bench.benchmarks.load import load_benchmark
from browseruse_bench.benchmarks.problems import lines
from browseruse_bench.benchmarks.validate import examine
from browseruse_bench.errors import DataError
from tests.benchmarks.small import put

DATA = os.environ.get("BUBENCH_ORACLE_DATA")
pytestmark = [
    pytest.mark.oracle,
    pytest.mark.skipif(DATA is None, reason="BUBENCH_ORACLE_DATA names no folder of public sets"),
]

PUBLIC = Path(DATA or "")
WEBVOYAGER = {"task_id": "id", "task": "ques", "website": "web_name", "start_url": "web"}
ODYSSEYS = {"task": "confirmed_task", "difficulty": "level"}


@pytest.fixture
def expected():
    return json.loads((PUBLIC / "expected.json").read_text())


def place(tmp_path, name, info, files):
    folder = tmp_path / "benchmarks" / name
    put(folder / "data_info.json", info)
    (folder / "data").mkdir()
    for source, target in files.items():
        (folder / "data" / target).symlink_to(PUBLIC / source)
    return folder


def own_info(folder, **changes):
    info = json.loads((SOURCE_ROOT / "benchmarks" / folder / "data_info.json").read_text())
    return {**info, **changes}


def load_clean(name, tmp_path, split=None):
    found = examine(find(name, cwd=tmp_path))
    assert lines(found.problems) == ()
    return load_benchmark(name, split, cwd=tmp_path)


def test_lexbench_loads_through_our_mapping(tmp_path):
    files = [*own_info("LexBench-Browser")["split"].values()]
    place(
        tmp_path,
        "LexBench-Browser",
        own_info("LexBench-Browser"),
        {f"lexbench/{file}": file for file in files},
    )
    benchmark = load_clean("LexBench-Browser", tmp_path)
    assert len(benchmark.tasks) == 210
    assert all(t.task_id.isdigit() and t.website and t.category for t in benchmark.tasks)
    assert not any(t.requires_login for t in benchmark.tasks)
    made = [benchmark.rubric(t.task_id) for t in benchmark.tasks]
    assert all(
        r.success_at == t.row["score_threshold"] for r, t in zip(made, benchmark.tasks, strict=True)
    )
    sizes = {
        s: len(load_clean("LexBench-Browser", tmp_path, s).tasks) for s in benchmark.info.split
    }
    assert sizes == {"All": 210, "global": 92, "lexmount": 118, "sample50": 50}
    assert any("the agent sees the same as in" in line for line in benchmark.warnings)


def test_lexbench_as_published_says_which_mapping_is_missing(tmp_path):
    info = json.loads((PUBLIC / "lexbench" / "data_info.json").read_text())
    place(tmp_path, "LexBench-Browser", info, {"lexbench/task.jsonl": "task.jsonl"})
    with pytest.raises(DataError, match='"task_id": {"name": "id", "convert": "string"}'):
        load_benchmark("LexBench-Browser", cwd=tmp_path)


def test_lexbench_2_loads_through_the_same_mapping(tmp_path):
    split = {"All": "task.jsonl", "Challenge100": "task_challenge_100.jsonl"}
    info = own_info("LexBench-Browser", name="LexBench2", split=split)
    place(tmp_path, "LexBench2", info, {f"lexbench2/{f}": f for f in split.values()})
    assert len(load_clean("LexBench2", tmp_path).tasks) == 150
    challenge = load_clean("LexBench2", tmp_path, "Challenge100")
    assert len(challenge.tasks) == 100
    assert "rubrics" in challenge.tasks[0].row
    assert "requirement" not in challenge.tasks[0].view.as_line()


def test_online_mind2web_loads_through_our_mapping(tmp_path, expected):
    source = "online-mind2web/tasks_06042025.json"
    place(
        tmp_path, "Online-Mind2Web", own_info("Online-Mind2Web"), {source: "Online_Mind2Web.json"}
    )
    tasks = load_clean("Online-Mind2Web", tmp_path).tasks
    assert len(tasks) == 300
    levels = Counter(task.difficulty for task in tasks)
    assert levels == expected["online_mind2web_human"]["level_counts"]


def test_a_subset_of_another_revision_is_caught(tmp_path):
    info = own_info("Online-Mind2Web", split={"All": "all.json", "Hard": "hard.jsonl"})
    files = {"tasks_06042025.json": "all.json", "hard.jsonl": "hard.jsonl"}
    place(tmp_path, "Online-Mind2Web", info, {f"online-mind2web/{k}": v for k, v in files.items()})
    with pytest.raises(DataError) as caught:
        load_benchmark("Online-Mind2Web", "Hard", cwd=tmp_path)
    assert len(caught.value.problems) == 19


@pytest.mark.parametrize(
    ("file", "key"),
    [("WebVoyager_data.jsonl", "orig"), ("WebVoyager_data_08312025.jsonl", "fara_2025_08")],
)
def test_webvoyager_loads_through_a_mapping(tmp_path, expected, file, key):
    info = {"split": {"All": file}, "fields": WEBVOYAGER}
    place(tmp_path, "WebVoyager", info, {f"webvoyager/{file}": file})
    tasks = load_clean("WebVoyager", tmp_path).tasks
    assert len(tasks) == expected["webvoyager"][key]
    assert all(task.start_url and task.website for task in tasks)


def test_gaia_rows_of_webvoyager_keep_the_declared_id(tmp_path):
    info = {"split": {"All": "g.jsonl"}, "fields": {"task_id": "id", "task": "ques"}}
    place(tmp_path, "GAIA", info, {"webvoyager/GAIA_web.jsonl": "g.jsonl"})
    tasks = load_clean("GAIA", tmp_path).tasks
    assert len(tasks) == 90
    assert tasks[0].task_id == "level1-0"


def test_odysseys_loads_through_a_mapping(tmp_path, expected):
    info = {"split": {"All": "odysseys.json"}, "fields": ODYSSEYS}
    place(tmp_path, "Odysseys", info, {"odysseys/odysseys.json": "odysseys.json"})
    tasks = load_clean("Odysseys", tmp_path).tasks
    assert len(tasks) == expected["odysseys"]["tasks"]
    levels = Counter(task.difficulty for task in tasks)
    assert [levels[k] for k in ("easy", "medium", "hard")] == (
        expected["odysseys"]["easy_medium_hard"]
    )


def test_the_encrypted_rows_of_browsecomp_are_said_to_be_unsupported(tmp_path):
    place(tmp_path, "BrowseComp", own_info("BrowseComp"), {"browsecomp/task.jsonl": "task.jsonl"})
    with pytest.raises(DataError, match=r"1266 rows; the rows are encrypted.*not supported yet"):
        load_benchmark("BrowseComp", cwd=tmp_path)


def test_every_webarena_task_passes_the_search_for_placeholders(tmp_path, expected):
    rows = json.loads((PUBLIC / "webarena" / "test.raw.json").read_text())
    tasks = [{"task_id": str(row["task_id"]), "task": row["intent"]} for row in rows]
    folder = place(tmp_path, "WebArena", {"split": {"All": "t.json"}}, {})
    put(folder / "data" / "t.json", tasks)
    assert len(load_clean("WebArena", tmp_path).tasks) == expected["webarena"]["tasks"]
