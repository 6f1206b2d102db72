"""Rebuild the benchmark LocalSites: tasks, rubrics, solutions and the wrong attempts.

    python benchmarks/LocalSites/build.py            write everything below this folder
    python benchmarks/LocalSites/build.py --check    fail if a file is not what would be written

Every module `builder/<site>.py` gives `drafts()`, and `PROBES` if its rubrics need any. What
it writes depends on nothing but those modules and the data of the sites, so that two builds
agree byte for byte.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER))

from builder.draft import Draft  # noqa: E402  its folder is not a package of ours

from browseruse_bench.benchmarks.rubric_lint import lint  # noqa: E402
from browseruse_bench.records.rubric import CANARY, Rubric, release_problems  # noqa: E402
from browseruse_bench.records.solution import Solution  # noqa: E402
from browseruse_bench.records.task import Task  # noqa: E402
from browseruse_bench.store.files import segment_problem, write_atomic  # noqa: E402

WRONG = FOLDER.parents[1] / "tests" / "localsites" / "wrong.json"
MODULES = ("flights", "shop", "miniwob", "docs", "multi")
DIFFICULTIES = ("easy", "medium", "hard")
MOST_PER_TEMPLATE = 6
EASY_AT_MOST = 5
HARD_AT_LEAST = 15

SITES = {
    "docs.test": "browseruse_bench.sites.docs:DocsSite",
    "flights.test": "browseruse_bench.sites.flights:FlightsSite",
    "miniwob.test": "browseruse_bench.sites.miniwob:MiniwobSite",
    "shop.test": "browseruse_bench.sites.shop:ShopSite",
}
DESCRIPTION = (
    "Tasks on four real websites that are served on this machine: a datasette over flights "
    "out of New York, a shop, MiniWoB++ pages and a documentation site."
)


def main(arguments: list[str] | None = None) -> int:
    """Build, print the table of paths, and write or check; the exit status."""
    parser = argparse.ArgumentParser(description="Rebuild LocalSites.")
    parser.add_argument("--check", action="store_true", help="write nothing, compare")
    check = parser.parse_args(arguments).check
    drafts, probes = collect(MODULES)
    problems = check_drafts(drafts)
    if problems:
        print("\n".join(problems), file=sys.stderr)
        return 3
    files = render(drafts, probes)
    print(table(drafts))
    stale = differences(files)
    if check:
        for path in stale:
            print(f"{path}: not what build.py writes; run it", file=sys.stderr)
        return 3 if stale else 0
    write(files)
    print(f"{len(drafts)} tasks; {len(stale)} files changed")
    return 0


def collect(modules: Iterable[str]) -> tuple[list[Draft], dict[str, Any]]:
    """The drafts and probes of those builder modules that exist, in this order."""
    drafts: list[Draft] = []
    probes: dict[str, Any] = {}
    for name in modules:
        if not (FOLDER / "builder" / f"{name}.py").exists():
            continue
        module = importlib.import_module(f"builder.{name}")
        drafts += module.drafts()
        own = getattr(module, "PROBES", {})
        for probe in probes.keys() & own.keys():
            raise ValueError(f"builder/{name}.py: probe '{probe}' is defined twice")
        probes |= own
    return drafts, probes


def check_drafts(drafts: list[Draft]) -> list[str]:
    """Every way in which the drafts break the rules of this benchmark, one line each."""
    problems = [
        f"{what}: {n} times" for what, n in Counter(d.task_id for d in drafts).items() if n > 1
    ]
    problems += [
        f"template {name}: {n} tasks, at most {MOST_PER_TEMPLATE}"
        for name, n in Counter(d.template for d in drafts).items()
        if n > MOST_PER_TEMPLATE
    ]
    for draft in drafts:
        problems += [f"{draft.task_id}: {problem}" for problem in check_draft(draft)]
    return problems


def check_draft(draft: Draft) -> Iterator[str]:
    """What is wrong with one draft; records that do not parse are reported too."""
    if problem := segment_problem(draft.task_id):
        yield f"the id {problem}"
    try:
        task, rubric = Task.model_validate(task_row(draft)), Rubric.model_validate(rubric_of(draft))
        solution = Solution.model_validate(draft.solution)
        Solution.model_validate(draft.wrong.solution)
    except ValueError as error:
        yield str(error)
        return
    yield from _check_rubric(rubric, task)
    yield from _check_path(draft, solution.n_steps)
    if not 0 <= draft.wrong.points < 100:
        yield f"the wrong attempt is worth {draft.wrong.points} points"
    if draft.website not in SITES:
        yield f"the website {draft.website} is not one of {', '.join(SITES)}"
    if CANARY.search(json.dumps(task.row)):
        yield "the task holds a canary"


def _check_rubric(rubric: Rubric, task: Task) -> Iterator[str]:
    for item in rubric.items:
        if item.check is None:
            yield f"item {item.id} has no check"
    for fact in rubric.facts:
        if fact.how != "site":
            yield f"fact {fact.id} is not how='site'"
        if fact.kind == "present" and not fact.url:
            yield f"fact {fact.id} has no url"
    yield from release_problems(rubric)
    for remark in lint(rubric, task):
        yield f"{', '.join(remark.ids) or remark.part}: {remark.text} [{remark.rule}]"


def _check_path(draft: Draft, n_steps: int) -> Iterator[str]:
    if draft.difficulty not in DIFFICULTIES:
        yield f"the difficulty '{draft.difficulty}' is not one of {', '.join(DIFFICULTIES)}"
    if draft.difficulty == "easy" and n_steps > EASY_AT_MOST:
        yield f"easy, with {n_steps} steps"
    if draft.difficulty == "hard" and n_steps < HARD_AT_LEAST:
        yield f"hard, with {n_steps} steps only"


def task_row(draft: Draft) -> dict[str, Any]:
    """The task as a row of tasks.json."""
    row = {
        "task_id": draft.task_id,
        "task": draft.task,
        "website": draft.website,
        "start_url": draft.start_url,
        "category": draft.category,
        "difficulty": draft.difficulty,
        "template": draft.template,
        "expected_result": draft.expected_result,
        "requires_login": draft.requires_login,
    }
    return {name: value for name, value in row.items() if value is not None}


def rubric_of(draft: Draft) -> dict[str, Any]:
    """The rubric, with the key of the task and a canary that follows from the task's id."""
    canary = hashlib.sha256(f"LocalSites canary {draft.task_id}".encode()).hexdigest()[:16]
    return {
        "task_id": draft.task_id,
        "task_key": Task.model_validate(task_row(draft)).view.key,
        "revision": 1,
        "canary": f"BUB-CANARY-{canary}",
        "facts": draft.facts,
        "failures": draft.failures,
        "items": draft.items,
    }


def render(drafts: list[Draft], probes: dict[str, Any]) -> dict[Path, bytes]:
    """Every file of the benchmark that is built, with its content."""
    rows = [task_row(draft) for draft in drafts]
    files = {
        FOLDER / "data_info.json": _json(data_info(probes)),
        FOLDER / "data" / "tasks.json": _json(rows),
    }
    for name in DIFFICULTIES:
        subset = [row for row in rows if row["difficulty"] == name]
        files[FOLDER / "data" / f"tasks_{name}.json"] = _json(subset)
    for draft in drafts:
        files[FOLDER / "rubrics" / f"{draft.task_id}.json"] = _json(rubric_of(draft))
        files[FOLDER / "solutions" / f"{draft.task_id}.json"] = _json(draft.solution)
    files[FOLDER / "MANIFEST.json"] = _json(manifest(files))
    files[WRONG] = _json({draft.task_id: vars(draft.wrong) for draft in drafts})
    return files


def data_info(probes: dict[str, Any]) -> dict[str, Any]:
    """What data_info.json says."""
    return {
        "name": "LocalSites",
        "description": DESCRIPTION,
        "default_split": "All",
        "split": {
            "All": "tasks.json",
            **{name.capitalize(): f"tasks_{name}.json" for name in DIFFICULTIES},
        },
        "sites": SITES,
        "network": "sites",
        "probes": probes,
        "success_at": 100,
    }


def manifest(files: dict[Path, bytes]) -> dict[str, Any]:
    """The hash of each built file, by its path in the folder."""
    hashes = {
        path.relative_to(FOLDER).as_posix(): hashlib.sha256(content).hexdigest()
        for path, content in files.items()
    }
    return {"files": hashes}


def differences(files: dict[Path, bytes]) -> list[Path]:
    """Files that are missing, differ, or are there although nothing writes them."""
    changed = [p for p, content in files.items() if not p.exists() or p.read_bytes() != content]
    return sorted([*changed, *leftovers(files)])


def leftovers(files: dict[Path, bytes]) -> list[Path]:
    """Files of earlier tasks in the folders that only this script writes."""
    folders = ("data", "rubrics", "solutions")
    there = [p for name in folders for p in (FOLDER / name).glob("*.json")]
    return [path for path in there if path not in files]


def write(files: dict[Path, bytes]) -> None:
    """Put every file in its place and remove what earlier builds left."""
    for path in leftovers(files):
        path.unlink()
    for path, content in files.items():
        if not path.exists() or path.read_bytes() != content:
            write_atomic(path, content)


def table(drafts: list[Draft]) -> str:
    """Template, task and the length of the shortest path that the oracle knows, per task."""
    lines = [f"{'template':24} {'task':28} {'difficulty':10} steps"]
    for draft in drafts:
        steps = Solution.model_validate(draft.solution).n_steps
        lines.append(f"{draft.template:24} {draft.task_id:28} {draft.difficulty:10} {steps:5}")
    count = Counter(draft.difficulty for draft in drafts)
    templates = len({draft.template for draft in drafts})
    lines.append(f"{templates} templates; " + ", ".join(f"{count[d]} {d}" for d in DIFFICULTIES))
    return "\n".join(lines)


def _json(value: Any) -> bytes:
    text = json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)
    return (text + "\n").encode()


if __name__ == "__main__":
    sys.exit(main())
