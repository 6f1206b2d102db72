"""docs/localsites.md says of each template what the files say."""

import re
from collections import defaultdict
from pathlib import Path

from browseruse_bench.benchmarks.load import load_benchmark

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_lists_every_template_with_its_tasks_and_paths():
    benchmark = load_benchmark(str(ROOT / "benchmarks" / "LocalSites"))
    templates = defaultdict(list)
    for task in benchmark.tasks:
        templates[task.task_id.rpartition("-")[0]].append(task)
    wanted = []
    for name, tasks in templates.items():
        paths = sorted({benchmark.solution(task.task_id).n_steps for task in tasks})
        (difficulty,) = {task.difficulty for task in tasks}
        shown = f"{paths[0]} to {paths[-1]}" if len(paths) > 1 else f"{paths[0]}"
        wanted.append(f"| `{name}` | {len(tasks)} | {difficulty} | {shown} |")
    page = (ROOT / "docs" / "localsites.md").read_text()
    assert re.findall(r"^(\| `\w+-\w+` \|[^|]+\|[^|]+\|[^|]+\|)", page, re.MULTILINE) == wanted
    n_long = sum(benchmark.solution(task.task_id).n_steps >= 15 for task in benchmark.tasks)
    assert f"{len(benchmark.tasks)} tasks from {len(templates)} templates" in page
    assert f"{n_long} tasks have a shortest path of 15 actions or more" in page
