"""Whose rubrics can be read: a publisher's row -> a rubric of the load profile.

Each is a pure function `rubric(row) -> Rubric | None`; None: the row brings none. It takes a row
as published, or as a task's row with `task_id` in place of the publisher's own name of the id.
What it cannot keep whole it refuses with a DataError that lists all problems of the row.
"""

from __future__ import annotations

from browseruse_bench.registry import Registry

PUBLISHERS = Registry(
    "publisher",
    {
        "bu_bench": "browseruse_bench.benchmarks.publishers.bu_bench:rubric",
        "lexbench1": "browseruse_bench.benchmarks.publishers.lexbench1:rubric",
        "lexbench2": "browseruse_bench.benchmarks.publishers.lexbench2:rubric",
        "odysseys": "browseruse_bench.benchmarks.publishers.odysseys:rubric",
    },
)
