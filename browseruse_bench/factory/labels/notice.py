"""Whether the labels, their split and the record of looks are as they were left."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import Field, ValidationError

from browseruse_bench.errors import ConfigError, DataError
from browseruse_bench.factory.labels.chain import Chain, Head, Link, has
from browseruse_bench.factory.labels.lines import (
    Folder,
    Given,
    Looked,
    SealedEntry,
    SealedLabel,
    SealedUndo,
    Seen,
    Undone,
    sealed_entry,
)
from browseruse_bench.factory.labels.store import LabelStore
from browseruse_bench.measure.agreement import Agreement
from browseruse_bench.records.base import Record
from browseruse_bench.records.label import Verdict

_R = TypeVar("_R", bound=Record)


class Candidate(Record):
    """What is looked at: a prompt with a model, out of all that were in the choice."""

    prompt_hash: str
    """Of the normalised prompt: neither its name nor its spaces are in it."""
    prompt_sha256: str
    """Of the prompt as it is."""
    name: str
    """For people."""
    model: str
    among: tuple[str, ...]
    """Normalised hashes of all prompts that it was chosen from, sorted; its own is one."""


class Opened(Record):
    """A line of unsealed.jsonl, before a sealed label is read."""

    kind: Literal["opened"] = "opened"
    folder: str
    """Id of the labels folder."""
    candidate: Candidate
    verdicts: dict[str, Verdict | None]
    """Key of each task whose labels are read -> what the candidate says of it."""
    split: Head
    """How far the split's lock had come."""
    again: str = ""
    """Why labels are looked at that were looked at before."""
    at: str

    @property
    def tasks(self) -> tuple[str, ...]:
        """Keys of the tasks whose labels are read."""
        return tuple(self.verdicts)


class Result(Record):
    """A line, after it: what came of it."""

    kind: Literal["result"] = "result"
    of: int
    """Number of the line that opened it."""
    labels_key: str
    """Of the sealed labels that were read."""
    agreement: Agreement
    n_split: int = Field(ge=0)
    """Tasks whose labellers differ, without a majority: left out."""
    n_before: int = Field(ge=0)
    """Tasks whose labels an earlier look had read."""
    at: str


class Noted(Record):
    """A line of the witness: what a look was at, in hashes alone."""

    record: Head
    """How far the record had come."""
    path: str
    """Where the labels were."""
    among: tuple[str, ...]
    """Hashes of all prompts of the choice."""
    tasks: tuple[str, ...]
    """Hashes of the tasks' normalised texts."""
    at: str


@dataclass(frozen=True)
class State:
    """What the gate found when it looked whether everything is as it was left."""

    folder: Folder
    sealed: tuple[Link, ...]
    entries: tuple[SealedEntry, ...]
    """What the lines of `sealed` say."""
    looks: tuple[Link, ...]
    lock: tuple[Link, ...]
    witnessed: tuple[Noted, ...]

    @property
    def opened(self) -> dict[int, Opened]:
        """Number of the line -> what it opened."""
        return {link.n: read(Opened, link) for link in self.looks if link.entry["kind"] == "opened"}

    @property
    def results(self) -> dict[int, Result]:
        """Number of the line that opened it -> what came of it."""
        found = [read(Result, link) for link in self.looks if link.entry["kind"] == "result"]
        return {result.of: result for result in found}


def witness_folder() -> Path:
    """Where looks are noted outside of any workspace: $XDG_STATE_HOME/browseruse-bench/looks, or
    its default in the home folder.
    """
    given = os.environ.get("XDG_STATE_HOME", "")
    base = Path(given) if given.startswith("/") else Path.home() / ".local" / "state"
    return base / "browseruse-bench" / "looks"


def noticed(store: LabelStore, receipts: Sequence[Head] = ()) -> tuple[str, ...]:
    """Everything that isn't as it was left, one sentence each; empty: the gate can open.

    Args:
        store: the labels.
        receipts: heads of the record that were kept elsewhere.

    Raises:
        ConfigError: nothing is sealed here.
    """
    try:
        state = state_of(store)
        lost = [receipt for receipt in receipts if not has(state.looks, receipt)]
        told = (
            f"{store.looks.path}: it does not lead to the receipt {head.n}:{head.chain[:12]}...: "
            "it was cut off or put back; restore it"
            for head in lost
        )
        return (*problems_of(store, state), *told)
    except DataError as error:
        return error.problems


def state_of(store: LabelStore) -> State:
    """All chains, each of which holds in itself.

    Raises:
        ConfigError: nothing is sealed here.
        DataError: one does not hold, or is gone.
    """
    store.refresh()
    links = store.sealed.links()
    entries = tuple(sealed_entry(link) for link in links)
    if not links:
        if _stubs(store) or store.looks.path.exists():
            raise DataError(f"{store.sealed.path} is gone or empty: restore it")
        raise ConfigError(f"{store.folder}: no sealed label is here yet")
    if not isinstance(entries[0], Folder):
        raise DataError(f"{store.sealed.path}: does not begin with whose folder it is")
    lock = Chain(store.split.path).links()
    if not lock:
        raise DataError(f"{store.split.path} is gone or empty: restore it")
    folder = [entry for entry in entries if isinstance(entry, Folder)][-1]
    witnessed = tuple(read(Noted, link) for link in witness_of(folder.id).links())
    return State(folder, links, entries, store.looks.links(), lock, witnessed)


def _stubs(store: LabelStore) -> list[Given | Undone]:
    """Lines of labels.jsonl that stand for one of sealed.jsonl."""
    return [line for line in store.lines if not isinstance(line, Seen) and line.seal is not None]


def witness_of(folder: str) -> Chain:
    """What the witness knows of a folder of labels, by its id."""
    return Chain(witness_folder() / f"{folder}.jsonl")


def read(kind: type[_R], link: Link) -> _R:
    """What a line says.

    Raises:
        DataError: it is none of this kind.
    """
    try:
        return kind.model_validate(link.entry)
    except ValidationError as error:
        raise DataError(
            f"line {link.n} is no {kind.__name__}: {error.errors()[0]['msg']}"
        ) from error


def problems_of(store: LabelStore, state: State) -> tuple[str, ...]:
    """Where the files contradict each other, one sentence each."""
    return (
        *moved_problems(store, state),
        *_other_seals(store, state),
        *_cut_record(store, state),
        *_other_record(store, state),
        *_other_split(store, state),
    )


def moved_problems(store: LabelStore, state: State) -> list[str]:
    """Whether the folder is where its labels were sealed."""
    here = str(store.folder.resolve())
    if state.folder.path == here:
        return []
    return [
        f"{store.folder}: this folder was copied or moved from {state.folder.path}; if it was "
        'moved, say so once with --moved "WHY": it is written down, and looks made here count there'
    ]


def _other_seals(store: LabelStore, state: State) -> list[str]:
    """Each line of labels.jsonl must stand for the line of sealed.jsonl that it names."""
    stubs = _stubs(store)
    lost = [line for line in stubs if line.seal and not has(state.sealed, line.seal)]
    if lost:
        return [
            f"{store.sealed.path}: {len(lost)} sealed lines that labels.jsonl knows are not there "
            "as they were written: the file was cut off or put back; restore it"
        ]
    hidden = {line.id for line in stubs if isinstance(line, Given)}
    strange = [line for line in stubs if not _stands_for(line, state)]
    strange += [
        line
        for line in store.lines
        if isinstance(line, Undone) and line.id in hidden and line.seal is None
    ]
    if not strange:
        return []
    return [
        f"{store.folder / 'labels.jsonl'}: {len(strange)} lines about sealed labels are not as "
        "sealed.jsonl has them: they were changed or put in; restore it"
    ]


def _stands_for(line: Given | Undone, state: State) -> bool:
    assert line.seal is not None
    entry = state.entries[line.seal.n - 1]
    if isinstance(line, Undone):
        return isinstance(entry, SealedUndo) and entry.id == line.id
    return (
        isinstance(entry, SealedLabel)
        and entry.id == line.id
        and line.label is None
        and (entry.label.task, entry.label.labeller, entry.label.recheck)
        == (line.task, line.labeller, line.recheck)
    )


def _cut_record(store: LabelStore, state: State) -> list[str]:
    """The record must lead through every head that was noted elsewhere."""
    noted = [entry.record for entry in state.entries if isinstance(entry, Looked)]
    problems: list[str] = []
    if any(not has(state.looks, head) for head in noted):
        problems.append(
            f"{store.looks.path}: sealed.jsonl knows of looks that this record does not hold: it "
            "was cut off, removed or put back; restore it"
        )
    if any(not has(state.looks, note.record) for note in state.witnessed):
        problems.append(
            f"{store.looks.path}: {witness_of(state.folder.id).path} knows of looks that this record "
            "does not hold: they were made in a copy of this folder, or the folder was put back "
            "to an earlier state"
        )
    return problems


def _other_record(store: LabelStore, state: State) -> list[str]:
    others = [o for o in state.opened.values() if o.folder != state.folder.id]
    if not others:
        return []
    return [f"{store.looks.path}: {len(others)} looks in it are of another folder of labels"]


def _other_split(store: LabelStore, state: State) -> list[str]:
    if all(has(state.lock, opened.split) for opened in state.opened.values()):
        return []
    return [
        f"{store.split.path}: it does not lead through where it was at an earlier look: it was "
        "cut off or written anew; restore it"
    ]
