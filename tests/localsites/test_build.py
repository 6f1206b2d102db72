"""The builder of LocalSites: what it refuses, and that its output is what is committed."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import importlib
import importlib.util
import json
import os
import re
import sqlite3
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from browseruse_bench.benchmarks.folder import find
from browseruse_bench.benchmarks.rubric_check import check_benchmark
from browseruse_bench.records.data_info import DataInfo
from browseruse_bench.records.rubric import CANARY, AnswerCheck, Rubric, StateCheck
from browseruse_bench.records.rubric import release_problems as rubric_release_problems
from browseruse_bench.records.solution import Solution
from browseruse_bench.records.task import Task

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "benchmarks" / "LocalSites"


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("localsites_build", FOLDER / "build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


build = _load()
TASKS = [Task.model_validate(row) for row in json.loads((FOLDER / "data/tasks.json").read_text())]
TASK_IDS = [task.task_id for task in TASKS]


def rubric(task_id: str) -> Rubric:
    return Rubric.model_validate_json((FOLDER / "rubrics" / f"{task_id}.json").read_text())


def solution(task_id: str) -> Solution:
    return Solution.model_validate_json((FOLDER / "solutions" / f"{task_id}.json").read_text())


def asking(requirement: str, weight: int = 100, **fields: Any) -> dict[str, Any]:
    """An item that stands on fact F1 of `draft`."""
    check = {"kind": "answer", "values": fields.pop("values", ["4"])}
    item = {"id": "A1", "requirement": requirement, "weight": weight, "facts": ["F1"]}
    return {**item, "check": check, **fields}


def draft(**changes: Any) -> Any:
    """A sound draft with some of its fields changed."""
    check = {"kind": "answer", "values": ["4"], "match": "number"}
    path = [{"navigate": "http://flights.test/"}, {"done": "4"}]
    sound = build.Draft(
        task_id="flights-x-1",
        template="flights-x",
        task="How many?",
        website="flights.test",
        start_url="http://flights.test/",
        category="Travel",
        difficulty="easy",
        items=[
            {
                "id": "A1",
                "requirement": "Says 4.",
                "weight": 100,
                "facts": ["F1"],
                "check": check,
            }
        ],
        facts=[
            {
                "id": "F1",
                "claim": "There are 4.",
                "values": [4],
                "url": "http://flights.test/",
                "quote": "4 rows",
                "how": "site",
                "checked_on": "2026-11-30",
            }
        ],
        solution=path,
        wrong=importlib.import_module("builder.draft").Wrong(
            why="Guesses.", solution=[{"done": "5"}], points=0
        ),
    )
    return dataclasses.replace(sound, **changes)


def test_a_sound_draft_has_no_problem():
    assert build.check_drafts([draft()]) == []


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"task_id": "a/b"}, "the id has a path separator"),
        ({"task": " "}, "task"),
        ({"items": [{"id": "A1", "requirement": "r", "weight": 100}]}, "A1 has no check"),
        ({"items": [{"id": "A1", "requirement": "r", "weight": 99}]}, "weights sum to 99"),
        ({"items": [{"id": "A1", "requirement": "r", "weight": 0}]}, "weight is above 0"),
        ({"solution": [{"navigate": "http://flights.test/"}]}, "is done"),
        ({"solution": [{"back": True}] * 6 + [{"done": ""}]}, "easy, with 6 steps"),
        ({"difficulty": "hard"}, "hard, with 1 steps"),
        ({"difficulty": "trivial"}, "difficulty 'trivial'"),
        ({"website": "example.com"}, "website example.com"),
        ({"task": "Say BUB-CANARY-0123456789abcdef"}, "canary"),
        ({"facts": [{"id": "F1", "claim": "c"}]}, "facts.F1.checked_on: missing"),
        ({"items": [asking("Says 4 and explains why it is 4.")]}, r"A1: .* \[compound\]"),
        (
            {"items": [asking("Says 4.", 50), asking("Tells 4.", 50, id="A2")]},
            r"A1, A2: .* \[overlap\]",
        ),
        (
            {"task": "Which is it, 1234 or 5?", "items": [asking("Says 1234.", values=["1234"])]},
            r"A1: .* \[given_away\]",
        ),
    ],
)
def test_a_draft_that_breaks_a_rule_is_refused(changes: dict[str, Any], says: str):
    problems = build.check_drafts([draft(**changes)])
    assert any("flights-x-1" in p or "a/b" in p for p in problems)
    assert re.search(says, "\n".join(problems))


@pytest.mark.parametrize(("steps", "sound"), [(14, False), (15, True)])
def test_hard_means_fifteen_steps(steps: int, sound: bool):
    path = [{"back": True}] * steps + [{"done": ""}]
    assert (build.check_drafts([draft(difficulty="hard", solution=path)]) == []) is sound


def test_a_doubled_id_is_refused():
    assert build.check_drafts([draft(), draft()]) == ["flights-x-1: 2 times"]


@pytest.mark.parametrize(
    ("n", "problems"), [(6, []), (7, ["template flights-x: 7 tasks, at most 6"])]
)
def test_a_template_has_at_most_six_tasks(n: int, problems: list[str]):
    assert build.check_drafts([draft(task_id=f"flights-x-{i}") for i in range(n)]) == problems


def test_the_canary_follows_from_the_id_and_occurs_in_nothing_else_that_is_built():
    files = build.render([draft(), draft(task_id="flights-x-2")], {})
    canaries = {
        path.name: CANARY.findall(content.decode())
        for path, content in files.items()
        if CANARY.search(content.decode())
    }
    assert sorted(canaries) == ["flights-x-1.json", "flights-x-2.json"]
    assert all(len(found) == 1 for found in canaries.values())
    assert canaries["flights-x-1.json"] != canaries["flights-x-2.json"]
    assert files == build.render([draft(), draft(task_id="flights-x-2")], {})


def test_write_removes_what_an_earlier_build_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(build, "FOLDER", tmp_path)
    monkeypatch.setattr(build, "WRONG", tmp_path / "wrong.json")
    old = build.render([draft(task_id="flights-x-2")], {})
    build.write(old)
    assert build.differences(old) == []
    new = build.render([draft()], {})
    assert tmp_path / "rubrics" / "flights-x-2.json" in build.differences(new)
    build.write(new)
    assert build.differences(new) == []
    assert not (tmp_path / "rubrics" / "flights-x-2.json").exists()


@pytest.mark.slow
def test_the_committed_files_are_what_the_builder_writes():
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, str(FOLDER / "build.py"), "--check"],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr


def test_the_manifest_holds_the_hash_of_every_built_file():
    manifest = json.loads((FOLDER / "MANIFEST.json").read_text())["files"]
    there = {
        path.relative_to(FOLDER).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in [
            FOLDER / "data_info.json",
            *(
                p
                for name in ("data", "rubrics", "solutions")
                for p in (FOLDER / name).glob("*.json")
            ),
        ]
    }
    assert manifest == there


def test_the_subsets_split_the_tasks_by_difficulty():
    info = DataInfo.model_validate_json((FOLDER / "data_info.json").read_text())
    assert info.split["All"] == "tasks.json"
    parts = []
    for name in ("Easy", "Medium", "Hard"):
        rows = json.loads((FOLDER / "data" / info.split[name]).read_text())
        assert {row["difficulty"] for row in rows} == {name.lower()}
        parts += [row["task_id"] for row in rows]
    assert sorted(parts) == sorted(TASK_IDS)


def test_there_are_enough_tasks_templates_and_long_paths():
    templates = [task.row["template"] for task in TASKS]
    assert len(set(TASK_IDS)) == len(TASKS) >= 48
    assert len(set(templates)) >= 12
    assert max(templates.count(t) for t in templates) <= 6
    assert sum(solution(task.task_id).n_steps >= 15 for task in TASKS) >= 12


def test_every_rubric_passes_the_release_profile_without_a_remark_or_a_waiver():
    checked = check_benchmark(find("LocalSites"), "release")
    assert [finding.line for finding in checked.findings] == []
    assert len(checked.rubrics) == len(TASKS)


@pytest.mark.parametrize("task_id", TASK_IDS)
def test_a_rubric_is_fit_for_release_and_belongs_to_its_task(task_id: str):
    task = next(task for task in TASKS if task.task_id == task_id)
    own = rubric(task_id)
    assert rubric_release_problems(own) == []
    assert own.task_key == task.view.key
    assert own.canary is not None
    assert own.canary not in task.model_dump_json()


@pytest.mark.parametrize("task_id", TASK_IDS)
def test_a_wrong_attempt_differs_from_the_reference_and_is_worth_less(task_id: str):
    wrong = json.loads((ROOT / "tests/localsites/wrong.json").read_text())[task_id]
    assert Solution.model_validate(wrong["solution"]) != solution(task_id)
    assert 0 <= wrong["points"] < 100


@pytest.mark.parametrize("task_id", [i for i in TASK_IDS if i.startswith("flights-")])
def test_nothing_that_must_be_seen_on_flights_is_typed_by_the_solution(task_id: str):
    typed = {a.type.text for a in solution(task_id).root if a.type is not None}
    for item in rubric(task_id).items:
        if isinstance(item.check, AnswerCheck):
            seen = item.check.seen or item.check.values
            assert not typed & {str(value) for value in seen}


@pytest.fixture(scope="module")
def shop():
    """An empty database with the shop's tables."""
    schema = ROOT / "browseruse_bench" / "sites" / "shop" / "schema.sql"
    with contextlib.closing(sqlite3.connect(":memory:")) as database:
        database.executescript(schema.read_text())
        yield database


@pytest.mark.parametrize("task_id", TASK_IDS)
def test_a_state_check_is_one_select_that_fits_the_tables(task_id: str, shop: sqlite3.Connection):
    for item in rubric(task_id).items:
        if isinstance(item.check, StateCheck):
            assert item.check.site == "shop.test"
            assert item.check.sql.lstrip().lower().startswith(("select", "with"))
            assert shop.execute(f"EXPLAIN {item.check.sql}").fetchall()
