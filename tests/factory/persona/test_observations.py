import json
import os
import re
from datetime import date
from pathlib import Path

import pytest

from browseruse_bench.factory.persona.observations import observations

TODAY = date(2026, 6, 1)


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("a flight on 30 July 2025", ["past_date"]),
        ("a flight on May 31st, 2026", ["past_date"]),
        ("a flight on 2026-05-31", ["past_date"]),
        ("a flight on 2026-06-01", []),
        ("a flight on June 2, 2026", []),
        ("on 31 February 2020", ["past_date"]),
        ("Version May 20 2020x", []),
        ("a stay from March 20-27, 2024, for two", ["past_date"]),
        ("from 30 May to June 3, 2026", []),
        ("a trip in May 2026 or June 2026", ["past_date"]),
        ("the NHL standings of 2023-24", ["past_year"]),
        ("novels of 2025 and 2026", ["past_year"]),
        ("the $2024 watch, part 2024-XR, v2.2024", []),
        ("Check my Google Calendar", ["account"]),
        ("Log in and open my last orders", ["account", "account"]),
        ("How do I open an account at a bank?", []),
        ("Find the calendar of the Louvre", []),
    ],
)
def test_accounts_and_past_dates_are_seen(text, kinds):
    assert [seen.kind for seen in observations(text, TODAY)] == kinds


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("Give me today's word of the day", ["moving", "moving"]),
        ("What is the latest price of silver?", ["moving"]),
        ("Take the quiz and tell me your quiz score", ["interactive", "interactive"]),
        ("Book a room; ask me if anything is unclear", ["interactive", "interactive"]),
        ("Which currencies does the museum take?", []),
        ("What are the results of the quiz show from Graz?", []),
    ],
)
def test_answers_that_move_and_questions_to_the_user_are_seen_bl074(text, kinds):
    seen = observations(text, TODAY)
    assert [one.kind for one in seen] == kinds
    assert all(text[one.start : one.end].strip() for one in seen)


ROOT = Path(os.environ.get("BUBENCH_ORACLE_DATA", "/nowhere"))
OLD = ROOT / "webvoyager/WebVoyager_data.jsonl"


@pytest.mark.oracle
@pytest.mark.skipif(not OLD.is_file(), reason="no BUBENCH_ORACLE_DATA")
def test_old_dates_of_a_public_benchmark_are_seen_bl074():
    tasks = [json.loads(line)["ques"] for line in OLD.read_text().splitlines()]
    old = [task for task in tasks if re.search(r"\b202[0-4]\b", task)]
    kinds = [{seen.kind for seen in observations(task, TODAY)} for task in old]
    seen = [bool(found & {"past_date", "past_year"}) for found in kinds]
    assert len(old) > 85
    assert sum(seen) >= len(old) - 2, [
        t for t, is_seen in zip(old, seen, strict=True) if not is_seen
    ]
    recent = [task for task in tasks if not re.search(r"\b20[012]\d\b", task)]
    assert not any(
        one.kind in ("past_date", "past_year") for t in recent for one in observations(t, TODAY)
    )
