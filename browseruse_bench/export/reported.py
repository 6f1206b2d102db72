"""Results of other programs as a run of ours: frozen, keyed, and marked as the agent's own word.

Nothing of what an imported trace shows was seen by a harness of ours. What the agent says that it
saw stands in the place of page texts, captured by the agent, and the policy of evidence is
`agent_reported` in every trace, verdict and report: such runs are never ranked with others. What
a format does not tell (times, addresses, cost, the machine) is unknown here, never 0; limits, which
an identity must have, are our defaults, and `settings.imported` says that nobody told them.
"""

from __future__ import annotations

import contextlib
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from browseruse_bench.benchmarks.load import Benchmark
from browseruse_bench.errors import ConfigError
from browseruse_bench.records.run import Attempt, AttemptEntry, Run, RunIdentity, Selection
from browseruse_bench.records.trace import (
    AgentId,
    BrowserId,
    Call,
    Guard,
    Limits,
    Observation,
    Outcome,
    OutcomeStatus,
    Page,
    Step,
    Trace,
)
from browseruse_bench.store.files import sha256_file, write_json
from browseruse_bench.store.journal import Journal
from browseruse_bench.store.run_folder import RunFolder
from browseruse_bench.store.trace_folder import freeze, put_evidence

BROWSER = "imported"
ANOTHER_TEXT = "its text is not that of the benchmark's task"
NO_TASK = "the benchmark has no such task"
GUARD = Guard(level="none", reason="imported: recorded by another program")


@dataclass(frozen=True, kw_only=True)
class Told:
    """One action of an attempt as its own program tells of it."""

    saw: str = ""
    """What the agent says that it saw before it acted; empty: nothing new."""
    calls: tuple[Call, ...] = ()
    url: str | None = None
    """The address of the page afterwards, where the record says it."""
    native_index: int | None = None
    """The turn of the agent's own loop."""


@dataclass(frozen=True, kw_only=True)
class Reported:
    """One attempt as its own program tells of it."""

    task_id: str
    text: str
    """Of the task, as the agent got it."""
    status: OutcomeStatus
    answer: str | None
    saw_at_end: str = ""
    steps: tuple[Told, ...]
    native: bytes
    """Its record, untouched."""
    where: str
    """For people: the line of the file."""


class Importer(Protocol):
    """Reads the results of one program."""

    agent: str
    """What runs of it are kept under."""
    benchmark: str
    """The benchmark that its results are of, if no other is named."""
    version: str
    """Goes up with each change of what is made of a file."""

    def read(self, path: Path) -> list[Reported]:
        """The attempts in a file, in its order.

        Raises:
            DataError: it is not of this format; every problem with its line.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class Imported:
    """What one import did."""

    folder: RunFolder
    run: Run
    n_new: int
    n_kept: int
    """Imported earlier."""
    skipped: Mapping[str, str] = field(default_factory=dict[str, str])
    """Line of the file -> why it is not in the run."""


@dataclass(frozen=True, kw_only=True)
class Source:
    """A file of results, and who made it."""

    path: Path
    format: str
    importer: Importer
    agent: AgentId

    @classmethod
    def of(cls, path: Path, format_: str, importer: Importer, model: str | None) -> Source:
        """A file that is read by an importer; its content is part of the agent's identity."""
        parameters = {"imported": format_, "importer": importer.version, "file": sha256_file(path)}
        agent = AgentId(name=importer.agent, version="unknown", model=model, parameters=parameters)
        return cls(path=path, format=format_, importer=importer, agent=agent)


def import_results(
    source: Source,
    benchmark: Benchmark,
    *,
    experiments: Path,
    now: Callable[[], str],
    on_imported: Callable[[AttemptEntry], None] | None = None,
) -> Imported:
    """Every attempt of the file at a task of the benchmark is a settled attempt of one run.

    The same file gives the same run: what is there is kept, what an earlier call left undone is
    done. Several attempts at one task are numbered in the order of the file.

    Raises:
        ConfigError: no attempt is at a task of the benchmark.
        DataError: the file is not of the format, or the run is damaged.
    """
    rows = source.importer.read(source.path)
    skipped = dict(_misfits(rows, benchmark))
    numbered = list(_numbered([row for row in rows if row.where not in skipped]))
    if not numbered:
        raise ConfigError(
            f"{source.path}: none of its {len(rows)} attempts is at a task of {benchmark.name}, "
            f"split {benchmark.split}: {_counted(skipped)}"
        )
    run = _run(source, benchmark, [attempt for attempt, _ in numbered], now())
    folder = RunFolder.at(experiments, run.identity, run.run_id)
    if (folder.path / "run.json").is_file():
        run = folder.read_run()
    else:
        folder.write_run(run)
    before = folder.attempts()
    with Journal(folder.attempts_path) as journal:
        for attempt, row in numbered:
            if attempt in before:
                continue
            entry = _freeze(row, attempt, run, folder, benchmark, now())
            journal.append(entry.as_json())
            if on_imported is not None:
                on_imported(entry)
    n_kept = sum(attempt in before for attempt, _ in numbered)
    return Imported(
        folder=folder, run=run, n_new=len(numbered) - n_kept, n_kept=n_kept, skipped=skipped
    )


def _misfits(rows: Sequence[Reported], benchmark: Benchmark) -> Iterator[tuple[str, str]]:
    tasks = {task.task_id: task for task in benchmark.tasks}
    for row in rows:
        task = tasks.get(row.task_id)
        if task is None:
            yield row.where, NO_TASK
        elif " ".join(task.task.split()) != " ".join(row.text.split()):
            yield row.where, ANOTHER_TEXT


def _counted(skipped: Mapping[str, str]) -> str:
    return "; ".join(f"{n} times: {why}" for why, n in Counter(skipped.values()).items())


def _numbered(rows: Sequence[Reported]) -> Iterator[tuple[Attempt, Reported]]:
    seen: Counter[str] = Counter()
    for row in rows:
        seen[row.task_id] += 1
        yield (row.task_id, seen[row.task_id]), row


def _run(source: Source, benchmark: Benchmark, attempts: Sequence[Attempt], started_at: str) -> Run:
    identity = RunIdentity(
        benchmark=benchmark.name,
        revision=benchmark.revision,
        split=benchmark.split,
        agent=source.agent,
        browser=BROWSER,
        limits=Limits(),
    )
    n_attempts = Counter(task_id for task_id, _ in attempts)
    repeats = sorted(set(n_attempts.values()))
    return Run(
        run_id=identity.run_id,
        identity=identity,
        benchmark_dir=str(benchmark.path),
        benchmark_sha256=benchmark.content_sha256,
        guard=GUARD,
        evidence_policy="agent_reported",
        settings={
            "imported": {"format": source.format, "file": source.path.name, "limits": "not told"}
        },
        selections=tuple(
            Selection(
                mode="ids",
                task_ids=tuple(task_id for task_id, n in n_attempts.items() if n >= repeat),
                repeat=repeat,
            )
            for repeat in repeats
        ),
        started_at=started_at,
    )


def _freeze(
    row: Reported,
    attempt: Attempt,
    run: Run,
    folder: RunFolder,
    benchmark: Benchmark,
    at: str,
) -> AttemptEntry:
    """The trace of one attempt, frozen in the run's folder, as an entry of the journal."""
    path = folder.try_path(*attempt, 1)
    with contextlib.suppress(FileNotFoundError):
        # What an import left that did not come to its end.
        shutil.rmtree(path)
    task_key = benchmark.task(row.task_id).view.key
    native = path / "native" / "record.json"
    native.parent.mkdir(parents=True)
    native.write_bytes(row.native)
    steps = [told_step(path, index, told) for index, told in enumerate(row.steps, 1)]
    final = told_step(path, len(steps) + 1, Told(saw=row.saw_at_end))
    trace = Trace.model_validate(
        {
            "run_id": run.run_id,
            "benchmark": benchmark.name,
            "split": benchmark.split,
            "task_id": row.task_id,
            "attempt": attempt[1],
            "try": 1,
            "task_key": task_key,
            "agent": run.identity.agent,
            "browser": BrowserId(kind=BROWSER),
            "limits": run.identity.limits,
            "guard": GUARD,
            "evidence_policy": "agent_reported",
            "started_at": None,
            "wall_s": None,
            "n_steps": len(steps),
            "outcome": Outcome(status=row.status, answer=row.answer),
            "final": final,
        }
    )
    return AttemptEntry.model_validate(
        {
            "task_id": row.task_id,
            "attempt": attempt[1],
            "try": 1,
            "task_key": task_key,
            "trace_key": freeze(path, trace, steps),
            "status": row.status,
            "n_steps": len(steps),
            "at": at,
        }
    )


def told_step(path: Path, index: int, told: Told) -> Step:
    """A step of which no time is known."""
    seen: tuple[Observation, ...] = ()
    if told.saw.strip():
        ref = put_evidence(path, told.saw.encode(errors="replace"), "txt")
        seen = (Observation(kind="text", ref=ref, timing="before", captured_by="agent"),)
    page = None if told.url is None else Page(url=told.url, tabs=(told.url,))
    return Step(
        index=index,
        native_index=told.native_index,
        calls=told.calls,
        page_after=page,
        observations=seen,
    )


def write_benchmark(rows: Sequence[Reported], folder: Path) -> None:
    """A benchmark folder of the tasks that these attempts are at, each in its first wording.

    Raises:
        ConfigError: the folder is already there.
    """
    if folder.exists() or folder.is_symlink():
        raise ConfigError(f"{folder} is already there: name it with --benchmark")
    tasks: dict[str, dict[str, str]] = {}
    for row in rows:
        tasks.setdefault(row.task_id, {"task_id": row.task_id, "task": row.text})
    info = {
        "name": folder.name,
        "description": "The tasks of imported results, in their own words.",
        "default_split": "All",
        "split": {"All": "tasks.json"},
    }
    write_json(folder / "data" / "tasks.json", [*tasks.values()])
    write_json(folder / "data_info.json", info)
