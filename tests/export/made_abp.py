"""Lines as the Agent Browser Protocol's harness writes them."""

from __future__ import annotations

import json
from pathlib import Path


def line(task_id="t1", **more):
    """One attempt: it searched, and read a price."""
    fields = {
        "task_id": task_id,
        "task": f"Do {task_id}",
        "final_result_response": "The kettle costs $1,299.",
        "result_status": "success",
        "action_history": [
            "Navigate to https://shop.test/",
            "Click at (600, 475)",
            'Type "kettle"',
            "Press ENTER",
            "Scroll (delta_x=0, delta_y=400)",
        ],
        "thoughts": [
            "",
            "I see a search box.",
            "I see a search box.",
            "I see a search box.",
            "The kettle costs $1,299.",
        ],
    }
    return fields | more


def write(path: Path, *lines: dict) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in lines))
    return path
