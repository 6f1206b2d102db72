"""What the deterministic stages say of nine tasks that people gave to agents."""

import json
import os
from datetime import date
from pathlib import Path

import pytest

from browseruse_bench.factory.corpus.local import find_local
from browseruse_bench.factory.persona.country import country_of
from browseruse_bench.factory.persona.detect import detect
from browseruse_bench.factory.persona.observations import observations

ROOT = Path(os.environ.get("BUBENCH_ORACLE_DATA", "/nowhere"))
FILE = ROOT / "real_user_tasks/from_github_issues.jsonl"
pytestmark = [
    pytest.mark.oracle,
    pytest.mark.skipif(not FILE.is_file(), reason="no BUBENCH_ORACLE_DATA"),
]


def real_tasks():
    return [json.loads(line)["task"] for line in FILE.read_text().splitlines()]


def said():
    tasks = real_tasks()
    return [
        {(hit.kind, task[hit.start : hit.end]) for hit in detect(task, country_of(task)[0])}
        for task in tasks
    ]


def test_contact_data_is_found_and_the_rest_is_left_alone():
    found = said()
    assert len(found) == 9
    assert found[0] == {("EMAIL", "xxxxxxx@gmail.com")}
    assert ("EMAIL", "jane.doe@example.com") in found[6]
    assert [i for i, hits in enumerate(found) if hits] == [0, 6]


def test_accounts_past_dates_and_local_addresses_are_said():
    seen = [
        {observation.kind for observation in observations(task, date(2026, 6, 1))}
        for task in real_tasks()
    ]
    assert {i for i, kinds in enumerate(seen) if "account" in kinds} == {0, 5}
    assert {i for i, kinds in enumerate(seen) if "past_date" in kinds} == {0}
    assert {i for i, kinds in enumerate(seen) if "past_year" in kinds} == {0}
    assert {i for i, kinds in enumerate(seen) if "moving" in kinds} == {0, 5}
    assert not any("interactive" in kinds for kinds in seen)
    assert [i for i, task in enumerate(real_tasks()) if find_local(task)] == [6]


def test_the_filter_keeps_eight_of_them_and_says_why_not_the_ninth(tmp_path):
    import polars as pl

    from tests.factory.corpus.filtering import row, run, write_lines

    tasks = real_tasks()
    write_lines(tmp_path / "in" / "tasks.jsonl", [row(task) for task in tasks])
    flow, kept = run(tmp_path)
    assert {task.text for task in kept} == {t for i, t in enumerate(tasks) if i != 6}
    assert flow.dropped == {"local_address": 1}
    dropped = pl.concat([pl.read_parquet(f) for f in tmp_path.rglob("dropped/*.parquet")])
    assert "host.docker.internal" in dropped["evidence"][0]
