"""The folder of labels: append-only, for several people at once, with the sealed ones apart.

    tasks.jsonl        tasks that are to be labelled, each once
    labels.jsonl       labels, undos, and who was shown what others said; of a sealed label only
                       that it was given, and by whom
    sealed.jsonl       the sealed labels: a hash chain that `gate` alone reads
    split.lock.jsonl   which part each task is in
    draws.jsonl        how tasks were drawn
    unsealed.jsonl     every look at sealed labels

A label counts when its line is on disk. What a line says is never changed: an undo is a line.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from browseruse_bench.errors import ConfigError, DataError, StoreError
from browseruse_bench.factory.labels.chain import Chain, Head, Link, locked
from browseruse_bench.factory.labels.lines import (
    LINE,
    Folder,
    Given,
    LabelTask,
    Line,
    SealedLabel,
    SealedUndo,
    Seen,
    Undone,
    sealed_entry,
)
from browseruse_bench.factory.labels.split import LOCK, Part, Rule, Split
from browseruse_bench.factory.workspace import Workspace
from browseruse_bench.records.base import Record, canonical_json
from browseruse_bench.records.label import Label
from browseruse_bench.store.journal import Journal
from browseruse_bench.store.redact import Redactor

NAME = "labels"


@dataclass
class _Log:
    """Reads a journal's whole lines as they come, each once."""

    path: Path
    parse: Callable[[bytes], Any]
    entries: list[Any] = field(default_factory=list[Any])
    _offset: int = 0

    def refresh(self) -> None:
        """Read what came since the last time.

        Raises:
            DataError: a whole line is damaged, or the file is shorter than it was.
        """
        if not self.path.exists():
            if self._offset:
                raise DataError(f"{self.path} is gone")
            return
        with self.path.open("rb") as file:
            file.seek(0, 2)
            if file.tell() < self._offset:
                raise DataError(f"{self.path} is shorter than it was: it is append-only")
            file.seek(self._offset)
            *lines, _torn = file.read().split(b"\n")
        for line in lines:
            try:
                self.entries.append(self.parse(line))
            except ValidationError as error:
                raise DataError(
                    f"{self.path}: line {len(self.entries) + 1} is damaged "
                    f"({error.errors()[0]['msg']}); restore it, or remove that line"
                ) from error
            self._offset += len(line) + 1


def utc_now() -> str:
    """The time now, ISO 8601 in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


class LabelStore:
    """The labels of a workspace. Several processes may hold one each."""

    def __init__(self, folder: Path, *, clock: Callable[[], str] = utc_now) -> None:
        """Read the folder; nothing is written until something is added."""
        self.folder = folder
        self.clock = clock
        self._tasks = _Log(folder / "tasks.jsonl", LabelTask.model_validate_json)
        self._lines = _Log(folder / "labels.jsonl", LINE.validate_json)
        self._by_key: dict[str, LabelTask] = {}
        self._n_tasks = 0
        self._split: Split | None = None
        self._lock_size = -1
        self.refresh()

    @property
    def split(self) -> Split:
        """The split, as it is frozen."""
        if self._split is None:
            self._split = Split.open(self.folder)
        return self._split

    @classmethod
    def of(cls, workspace: Workspace) -> LabelStore:
        """The labels of a workspace."""
        return cls(workspace.zone("restricted") / NAME)

    @property
    def sealed(self) -> Chain:
        """sealed.jsonl, which `gate` alone reads."""
        return Chain(self.folder / "sealed.jsonl", mode=0o600)

    @property
    def looks(self) -> Chain:
        """unsealed.jsonl: the record of looks."""
        return Chain(self.folder / "unsealed.jsonl")

    def refresh(self) -> None:
        """Read what others wrote meanwhile.

        Raises:
            DataError: a line is damaged.
        """
        lock = self.folder / LOCK
        size = lock.stat().st_size if lock.exists() else 0
        if size != self._lock_size:
            self._split, self._lock_size = Split.open(self.folder), size
        self._tasks.refresh()
        self._lines.refresh()
        for task in self._tasks.entries[self._n_tasks :]:
            self._by_key.setdefault(task.key, task)
        self._n_tasks = len(self._tasks.entries)

    @property
    def tasks(self) -> dict[str, LabelTask]:
        """All tasks by key, in the order in which they came."""
        return dict(self._by_key)

    def task(self, key: str) -> LabelTask:
        """The task of a key.

        Raises:
            ConfigError: there is none.
        """
        found = self._by_key.get(key)
        if found is None:
            raise ConfigError(f"{self.folder}: no task '{key[:16]}' is here to be labelled")
        return found

    def freeze(self, rule: Rule) -> Split:
        """Freeze the split's rule, before the first task.

        Raises:
            ConfigError: it is frozen already, otherwise than this.
        """
        with locked(self.folder):
            self._write_split((), rule)
        return self.split

    def add_tasks(self, tasks: Iterable[LabelTask]) -> tuple[LabelTask, ...]:
        """Have tasks labelled; those that are new to the folder are given back."""
        with locked(self.folder):
            self.refresh()
            new = {task.key: task for task in tasks if task.key not in self._by_key}
            # The part is fixed before anything can be said of the task.
            self._write_split((task.text_hash for task in new.values()), None)
            if new:
                self._append("tasks.jsonl", (task.as_json() for task in new.values()))
            self.refresh()
        return tuple(new.values())

    def _write_split(self, hashes: Iterable[str], rule: Rule | None) -> None:
        split = Split.open(self.folder, rule)
        if rule is not None and split.rule != rule:
            raise ConfigError(
                f"{split.path}: the split is frozen with {split.rule.as_line()}; it never changes"
            )
        split.freeze(hashes)
        self._split, self._lock_size = split, split.path.stat().st_size

    def save(self, labels: Sequence[Label], *, imported: bool = False) -> tuple[Given, ...]:
        """Write labels: those of sealed tasks into their own file first.

        Raises:
            ConfigError: a task is not here.
            StoreError: they cannot be written; then none of them counts.
        """
        with locked(self.folder):
            self.refresh()
            for label in labels:
                if label.text_hash != self.task(label.task).text_hash:
                    raise ConfigError(f"task '{label.task[:16]}': its label is of another text")
            given = [self._given(label, imported=imported) for label in labels]
            secret = [
                SealedLabel(id=line.id, salt=secrets.token_hex(16), imported=imported, label=label)
                for line, label in zip(given, labels, strict=True)
                if self.part_of(label.task) == "sealed"
            ]
            heads = dict(zip((s.id for s in secret), self._seal(secret), strict=True))
            lines = [
                line.model_copy(update={"label": None, "seal": heads[line.id]})
                if line.id in heads
                else line
                for line in given
            ]
            self._append("labels.jsonl", (line.as_json() for line in lines))
            self.refresh()
        return tuple(lines)

    def _given(self, label: Label, *, imported: bool) -> Given:
        return Given(
            id=secrets.token_hex(8),
            task=label.task,
            text_hash=label.text_hash,
            labeller=label.labeller,
            at=label.at,
            recheck=label.recheck,
            imported=imported,
            label=label,
        )

    def undo(self, labeller: str) -> Given | None:
        """Take back the newest label of a labeller that still counts; imports stay.

        Returns:
            What was taken back; None: there is nothing.
        """
        with locked(self.folder):
            self.refresh()
            mine = [g for g in self._standing() if g.labeller == labeller and not g.imported]
            if not mine:
                return None
            last = mine[-1]
            seal = self._seal([SealedUndo(id=last.id)])[0] if last.label is None else None
            line = Undone(id=last.id, labeller=labeller, at=self.clock(), seal=seal)
            self._append("labels.jsonl", [line.as_json()])
            self.refresh()
        return last

    def note_seen(self, labeller: str, task: str) -> None:
        """Write that somebody was shown what others said of a task."""
        with locked(self.folder):
            line = Seen(task=task, labeller=labeller, at=self.clock())
            self._append("labels.jsonl", [line.as_json()])
            self.refresh()

    def has_seen(self, labeller: str, task: str) -> bool:
        """Whether somebody was shown what others said of a task."""
        return any(
            isinstance(line, Seen) and line.labeller == labeller and line.task == task
            for line in self._lines.entries
        )

    def _seal(self, entries: Sequence[SealedLabel | SealedUndo]) -> list[Head]:
        """Append to sealed.jsonl; the first time after whose folder it is."""
        if not entries:
            return []
        links = self.sealed.links()
        self.mend(links)
        first: list[Record] = []
        if not links:
            path = str(self.folder.resolve())
            first = [Folder(id=secrets.token_hex(16), path=path, at=self.clock())]
        added = self.sealed.append_all([e.as_json() for e in (*first, *entries)], links)
        return [link.head for link in added[len(first) :]]

    def mend(self, links: Sequence[Link]) -> int:
        """Every line of sealed.jsonl has its line in labels.jsonl; called under the lock.

        A process that was stopped between the two files leaves some out, and so does somebody
        who takes lines out of labels.jsonl.

        Returns:
            How many were put back.
        """
        known = {line.seal.n for line in self.lines if not isinstance(line, Seen) and line.seal}
        back: list[Given | Undone] = []
        by_id: dict[str, Label] = {}
        for link in links:
            entry = sealed_entry(link)
            if isinstance(entry, SealedLabel):
                by_id[entry.id] = entry.label
                if link.n not in known:
                    given = self._given(entry.label, imported=entry.imported)
                    hidden = {"id": entry.id, "label": None, "seal": link.head}
                    back.append(given.model_copy(update=hidden))
            elif isinstance(entry, SealedUndo) and link.n not in known:
                labeller = by_id[entry.id].labeller
                at = self.clock()
                back.append(Undone(id=entry.id, labeller=labeller, at=at, seal=link.head))
        if back:
            self._append("labels.jsonl", (line.as_json() for line in back))
            self.refresh()
        return len(back)

    def _append(self, name: str, entries: Iterable[dict[str, Any]]) -> None:
        own = Redactor.of_environment().own
        plain = [json.loads(own(canonical_json(entry))) for entry in entries]
        try:
            with Journal(self.folder / name) as journal:
                journal.append_all(plain)
        except OSError as error:
            raise StoreError(f"{self.folder / name}: cannot be written: {error}") from error

    def part_of(self, key: str) -> Part:
        """The part of a task."""
        return self.split.part_of_hash(self.task(key).text_hash)

    @property
    def lines(self) -> tuple[Line, ...]:
        """labels.jsonl, as it is."""
        return tuple(self._lines.entries)

    def _standing(self) -> Iterator[Given]:
        undone = {line.id for line in self._lines.entries if isinstance(line, Undone)}
        for line in self._lines.entries:
            if isinstance(line, Given) and line.id not in undone:
                yield line

    def given(self, *, recheck: bool = False) -> dict[tuple[str, str], Given]:
        """(task, labeller) -> the line that counts, in the order in which it was first labelled.

        Args:
            recheck: those of rechecks instead.
        """
        return {(g.task, g.labeller): g for g in self._standing() if g.recheck is recheck}

    def labels(self, part: Part | None = None, *, recheck: bool = False) -> tuple[Label, ...]:
        """The labels that count, of development and validation or one of them.

        Raises:
            ConfigError: sealed ones are asked for.
        """
        if part == "sealed":
            raise ConfigError("sealed labels are read by `bubench factory unseal` alone")
        return tuple(
            g.label
            for g in self.given(recheck=recheck).values()
            if g.label is not None
            and (part is None or self.split.part_of_hash(g.text_hash) == part)
        )
