"""A run on disk: where its parts are, and what its journals say."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from browseruse_bench.errors import DataError
from browseruse_bench.records.judgement import Judgement
from browseruse_bench.records.run import Attempt, AttemptEntry, Run, RunIdentity
from browseruse_bench.store.files import escaped, read_json, write_json
from browseruse_bench.store.journal import read_journal

_Line = TypeVar("_Line", AttemptEntry, Judgement)


@dataclass(frozen=True)
class RunFolder:
    """experiments/<benchmark>/<split>/<agent>/<model>/<run-id>/."""

    path: Path

    @classmethod
    def at(cls, root: Path, identity: RunIdentity, run_id: str) -> RunFolder:
        """The folder of a run below the experiments folder `root`; it need not exist."""
        model = identity.agent.model or "no-model"
        parts = (identity.benchmark, identity.split, identity.agent.name, model, run_id)
        return cls(root.joinpath(*(escaped(part) for part in parts)))

    @property
    def attempts_path(self) -> Path:
        """The journal of settled attempts."""
        return self.path / "attempts.jsonl"

    @property
    def judgements_path(self) -> Path:
        """The journal of judgements."""
        return self.path / "judgements.jsonl"

    @property
    def calls_path(self) -> Path:
        """The model calls of agents that went through the gateway, and what they cost."""
        return self.path / "calls"

    def try_path(self, task_id: str, attempt: int, try_: int) -> Path:
        """Where the trace of one try of one attempt is."""
        return self.path / "tasks" / escaped(task_id) / str(attempt) / f"try-{try_}"

    def read_run(self) -> Run:
        """run.json.

        Raises:
            DataError: missing or not a run.
        """
        path = self.path / "run.json"
        if not path.is_file():
            raise DataError(f"{self.path}: no run.json: not a run folder")
        try:
            return Run.model_validate(read_json(path))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            place = ".".join(map(str, first["loc"])) or "all of it"
            raise DataError(f"{path}: not a run: {place}: {first['msg']}") from error

    def write_run(self, run: Run) -> None:
        """Put run.json in place, atomically."""
        write_json(self.path / "run.json", run.as_json())

    def attempts(self) -> dict[Attempt, AttemptEntry]:
        """The newest entry of each attempt that settled.

        Raises:
            DataError: a line of the journal is damaged.
        """
        return newest(self.entries())

    def entries(self) -> list[AttemptEntry]:
        """Every settled try, oldest first.

        Raises:
            DataError: a line of the journal is damaged.
        """
        return _parse(self.attempts_path, AttemptEntry)

    def judgements(self) -> list[Judgement]:
        """All judgements, oldest first.

        Raises:
            DataError: a line of the journal is damaged.
        """
        return _parse(self.judgements_path, Judgement)


def _parse(path: Path, record: type[_Line]) -> list[_Line]:
    *lines, _torn = path.read_bytes().split(b"\n") if path.exists() else [b""]
    try:
        return [record.model_validate_json(line) for line in lines]
    except ValidationError:
        pass
    # Slower, and says which line is wrong and how.
    try:
        return [record.model_validate(line) for line in read_journal(path)]
    except ValidationError as error:
        raise DataError(f"{path}: {error}") from error


def newest(entries: Iterable[AttemptEntry]) -> dict[Attempt, AttemptEntry]:
    """The last entry of each attempt."""
    return {(entry.task_id, entry.attempt): entry for entry in entries}


def find_runs(root: Path) -> list[RunFolder]:
    """Every run below an experiments folder, sorted by path."""
    return [RunFolder(path.parent) for path in sorted(root.glob("*/*/*/*/*/run.json"))]
