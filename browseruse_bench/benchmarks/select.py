"""Which tasks of a split are attempted. Pure: the same arguments give the same tasks."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from browseruse_bench.errors import ConfigError
from browseruse_bench.records.run import Mode
from browseruse_bench.records.task import Task
from browseruse_bench.registry import unknown_name


@dataclass(frozen=True)
class Selected:
    """The tasks to attempt, in order, and what the user should know about the choice."""

    tasks: tuple[Task, ...]
    notes: tuple[str, ...] = ()


def select(
    tasks: Sequence[Task],
    *,
    mode: Mode = "all",
    count: int | None = None,
    seed: int = 0,
    task_ids: Sequence[str] = (),
    category: Sequence[str] = (),
    difficulty: Sequence[str] = (),
    exclude: Collection[str] = (),
) -> Selected:
    """Choose tasks.

    `exclude` and the filters come first, then the mode chooses among what is left:

    - all: every task, in file order.
    - first_n: the first `count` in file order.
    - sample_n: the `count` with the lowest SHA-256 of seed and task id, in that order: it
      does not depend on file order, and a larger count keeps what a smaller one chose.
    - ids: exactly `task_ids`, in the order given.

    Args:
        tasks: a split, in file order.
        mode: see above.
        count: for first_n and sample_n only. More than there are takes all and says so.
        seed: of sample_n.
        task_ids: for ids only; an id that is given twice counts once and is noted.
        category: any of these, whatever their case; empty: all.
        difficulty: likewise.
        exclude: ids that are never selected; each that would have been is noted.

    Returns:
        Possibly no task, with a note: if the split is empty, or all that was left is excluded.

    Raises:
        ConfigError: an argument is missing, does not belong to the mode or is below 1; an id,
            category or difficulty that no task has; filters that no task passes together.
    """
    _check_arguments(mode, count, task_ids)
    if mode == "ids":
        _check_ids(tasks, task_ids)
    if not tasks:
        return Selected((), ("the split has no task",))
    passing = _filtered(tasks, category, difficulty)
    excluded = set(exclude)
    if mode == "ids":
        return _by_id(passing, task_ids, excluded)
    left = [task for task in passing if task.task_id not in excluded]
    notes = [_excluded_note(t.task_id) for t in passing if t.task_id in excluded]
    if count is not None and count > len(left):
        word = "task matches" if len(left) == 1 else "tasks match"
        notes.append(f"{len(left)} {word}; --count {count} selects all {len(left)}")
    if mode == "sample_n":
        left.sort(key=lambda task: _rank(seed, task.task_id))
    return Selected(tuple(left[:count]), tuple(notes))


def _check_arguments(mode: Mode, count: int | None, task_ids: Sequence[str]) -> None:
    counted = mode in ("first_n", "sample_n")
    if counted and count is None:
        raise ConfigError(f"--mode {mode} needs --count")
    if not counted and count is not None:
        raise ConfigError(f"--count belongs to --mode first_n or sample_n, not to {mode}")
    if count is not None and count < 1:
        raise ConfigError(f"--count {count}: must be 1 or more")
    if mode == "ids" and not task_ids:
        raise ConfigError("--mode ids needs --task-ids")
    if mode != "ids" and task_ids:
        raise ConfigError(f"--task-ids belongs to --mode ids, not to {mode}")


def _check_ids(tasks: Sequence[Task], task_ids: Sequence[str]) -> None:
    known = {task.task_id: None for task in tasks}
    unknown = [task_id for task_id in dict.fromkeys(task_ids) if task_id not in known]
    if unknown:
        raise ConfigError("\n".join(_unknown_id(task_id, tuple(known)) for task_id in unknown))


def _unknown_id(task_id: str, known: tuple[str, ...]) -> str:
    if len(known) <= 10:
        return unknown_name("task", task_id, known)
    # The nearest of thousands of ids helps; all of them do not.
    line, _, _ = unknown_name("task", task_id, known).rpartition("known: ")
    return f"{line}the split has {len(known)} tasks: {', '.join(known[:3])}, ..."


def _filtered(
    tasks: Sequence[Task], category: Sequence[str], difficulty: Sequence[str]
) -> list[Task]:
    passing = list(tasks)
    for kind, wanted, value in (
        ("category", category, _category),
        ("difficulty", difficulty, _difficulty),
    ):
        if wanted:
            chosen = _known_values(kind, wanted, tasks, value)
            passing = [task for task in passing if (value(task) or "").casefold() in chosen]
    if not passing:
        raise ConfigError(
            f"no task has category {' or '.join(category)} and difficulty {' or '.join(difficulty)}"
        )
    return passing


def _category(task: Task) -> str | None:
    return task.category


def _difficulty(task: Task) -> str | None:
    return task.difficulty


def _known_values(
    kind: str, wanted: Sequence[str], tasks: Sequence[Task], value: Callable[[Task], str | None]
) -> set[str]:
    known = tuple(sorted({v for task in tasks if (v := value(task))}))
    folded = {v.casefold() for v in known}
    unknown = [w for w in wanted if w.casefold() not in folded]
    if unknown:
        raise ConfigError("\n".join(unknown_name(kind, w, known) for w in unknown))
    return {w.casefold() for w in wanted}


def _by_id(passing: Sequence[Task], task_ids: Sequence[str], excluded: set[str]) -> Selected:
    by_id = {task.task_id: task for task in passing}
    chosen: dict[str, Task] = {}
    notes: dict[str, None] = {}
    for task_id in task_ids:
        if task_id in chosen:
            notes[f"'{task_id}' is given more than once and counts once"] = None
        elif task_id not in by_id:
            notes[f"'{task_id}' is left out by the filter"] = None
        elif task_id in excluded:
            notes[_excluded_note(task_id)] = None
        else:
            chosen[task_id] = by_id[task_id]
    return Selected(tuple(chosen.values()), tuple(notes))


def _excluded_note(task_id: str) -> str:
    return f"'{task_id}' is excluded by the benchmark and never selected"


def _rank(seed: int, task_id: str) -> bytes:
    return hashlib.sha256(f"{seed}\0{task_id}".encode()).digest()
