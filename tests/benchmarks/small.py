"""What the tests of benchmark folders are made from."""

import json
from pathlib import Path
from typing import Any

TASKS = [
    {"task_id": "a", "task": "Find the price of the lamp.", "website": "shop.test"},
    {"task_id": "b", "task": "Order the lamp.", "difficulty": "easy", "category": "Shop"},
    {"task_id": "c", "task": "Order two lamps.", "difficulty": "hard", "category": "Shop"},
]
INFO = {"name": "Small", "default_split": "All", "split": {"All": "tasks.json"}}


def put(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(value, bytes):
        path.write_bytes(value)
    elif isinstance(value, str):
        path.write_text(value, encoding="utf-8", newline="")
    else:
        path.write_text(json.dumps(value), encoding="utf-8")


def rubric(task_id: str = "a", **changes: Any) -> dict[str, Any]:
    item = {"id": "A1", "requirement": "It is so.", "weight": 100}
    return {"task_id": task_id, "items": [item], **changes}


def check(value: dict[str, Any]) -> dict[str, Any]:
    """A rubric of one item with this check."""
    return rubric(items=[{"id": "A1", "requirement": "So.", "weight": 100, "check": value}])
