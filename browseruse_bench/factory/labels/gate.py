"""The one place that reads sealed labels, and the record of every time it did.

A look is four lines of thought: is everything as it was left (`noticed`), may this candidate be
looked at (`admit`), what does it say of the sealed texts (asked outside, without labels), how far
is that right (`look`). Verdicts are in the record before a sealed label is read, so that a look
that was cut off can be ended with the same verdicts, and with no others.

What is noticed: lines of any of the files that were changed, put in, taken out or cut off; a
folder that was copied, moved or put back to an earlier state; a candidate under another name,
with other spaces, case or invisible characters, or with another model; a set that shares a
candidate with one that was looked at. What cannot be: somebody who reads sealed.jsonl by other
means, or who rewrites the folder and the witness together.

Source: RL-environments post, section 2.2; when a second look is none of the same is ours.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from browseruse_bench.errors import ConfigError, DataError, StoreError
from browseruse_bench.factory.labels.chain import Chain, Head, locked
from browseruse_bench.factory.labels.lines import (
    Folder,
    LabelTask,
    Looked,
    SealedLabel,
    SealedUndo,
)
from browseruse_bench.factory.labels.notice import (
    Candidate,
    Noted,
    Opened,
    Result,
    State,
    moved_problems,
    problems_of,
    read,
    state_of,
    witness_folder,
    witness_of,
)
from browseruse_bench.factory.labels.store import LabelStore
from browseruse_bench.factory.search.examples import majority
from browseruse_bench.measure.agreement import Labelled, agreement
from browseruse_bench.records.base import content_key
from browseruse_bench.records.label import VERDICTS, Verdict, text_hash

CANNOT = (
    "The record shows a careless second look. It cannot stop somebody who reads sealed.jsonl by "
    "other means, or who rewrites this folder and the witness together."
)


def candidate(prompt: str, *, name: str, model: str, among: Sequence[str] = ()) -> Candidate:
    """The candidate of a prompt's text.

    Args:
        prompt: its text.
        name: what people call it.
        model: what answers.
        among: texts of all prompts that it was chosen from.
    """
    own = text_hash(prompt)
    return Candidate(
        prompt_hash=own,
        prompt_sha256=hashlib.sha256(prompt.encode(errors="replace")).hexdigest(),
        name=name,
        model=model,
        among=tuple(sorted({own, *map(text_hash, among)})),
    )


def _refuse_noticed(store: LabelStore, moved: str) -> State:
    """What the gate is to go by, once a move that is owned up to is written down.

    Raises:
        DataError: something isn't as it was left; all of it is listed.
    """
    state = state_of(store)
    if moved and moved_problems(store, state):
        at = store.clock()
        path = str(store.folder.resolve())
        line = Folder(id=state.folder.id, path=path, why=moved, at=at)
        store.sealed.append_all([line.as_json()], state.sealed)
        state = state_of(store)
    problems = problems_of(store, state)
    if problems:
        raise DataError([*problems, "the sealed labels stay closed"])
    store.mend(state.sealed)
    return state


def sealed_tasks(store: LabelStore) -> tuple[LabelTask, ...]:
    """The tasks with a sealed label that counts, sorted by key: texts, no labels."""
    store.refresh()
    keys = {given.task for given in store.given().values() if given.label is None}
    return tuple(store.task(key) for key in sorted(keys))


def admit(store: LabelStore, what: Candidate, *, again: str = "", moved: str = "") -> None:
    """This candidate may be looked at; nothing is read, and nothing was asked of a model yet.

    Args:
        store: the labels.
        what: the candidate.
        again: why sealed labels are looked at that were looked at for other candidates.
        moved: why the folder is at another place than it was.

    Raises:
        ConfigError: it, or one that it was chosen among, was looked at before; or labels were,
            and `again` is empty.
        DataError: something isn't as it was left; all of it is listed.
    """
    with locked(store.folder):
        _admitted(store, _refuse_noticed(store, moved), what, again, verdicts=None)


def _admitted(
    store: LabelStore,
    state: State,
    what: Candidate,
    again: str,
    *,
    verdicts: Mapping[str, Verdict | None] | None,
) -> int | None:
    """Number of the line of a look at just this that was cut off; None: it is a new look."""
    results = state.results
    for n, opened in state.opened.items():
        common = set(opened.candidate.among) & set(what.among)
        same = opened.candidate.prompt_hash == what.prompt_hash
        if n not in results and same and opened.candidate.model == what.model:
            # Ended with the same verdicts it tells nothing that the first would not have told.
            if verdicts is None or _key(verdicts, opened.tasks) == opened.verdicts_key:
                return n
            raise ConfigError(
                f"{store.looks.path}: the look of {opened.at} was cut off, and its verdicts were "
                "others; it can be ended with those only"
            )
        if common:
            _refuse_second(store, opened, what, common, same=same)
    _refuse_elsewhere(state, what, {task.key for task in sealed_tasks(store)})
    before = _looked_at(state)
    seen = [task.key for task in sealed_tasks(store) if task.key in before]
    if seen and not again:
        raise ConfigError(
            f"{store.looks.path}: {len(seen)} of the sealed labels were looked at before, for "
            'other candidates; --again "WHY" looks at them once more, and the result says that it '
            "is not a first look"
        )
    return None


def _refuse_elsewhere(state: State, what: Candidate, tasks: set[str]) -> None:
    """No other folder of labels was looked at for these candidates and tasks.

    Raises:
        ConfigError: one was.
    """
    own = witness_of(state.folder.id).path
    for path in sorted(witness_folder().glob("*.jsonl")):
        notes = [] if path == own else [read(Noted, link) for link in Chain(path).links()]
        for note in notes:
            common = tasks & set(note.tasks)
            if common and set(note.among) & set(what.among):
                raise ConfigError(
                    f"{path}: on {note.at} these candidates were looked at on {len(common)} of "
                    f"these tasks, in another folder of labels ({note.path}): a second look would "
                    "choose by what is sealed; nothing was read"
                )


def _refuse_second(
    store: LabelStore, opened: Opened, what: Candidate, common: set[str], *, same: bool
) -> NoReturn:
    was = opened.candidate
    named = f"'{was.name}'" if was.name == what.name else f"'{was.name}' (here '{what.name}')"
    model = "" if was.model == what.model else f", then with {was.model}"
    told = (
        f"this prompt was looked at on {opened.at} as {named}{model}"
        if same
        else f"{len(common)} of the {len(what.among)} candidates were in the choice that was looked "
        f"at on {opened.at} through {named}"
    )
    raise ConfigError(
        f"{store.looks.path}: {told}: a second look at one set of candidates would choose by "
        "what is sealed; nothing was read"
    )


def _key(verdicts: Mapping[str, Verdict | None], tasks: Sequence[str]) -> str:
    return content_key({task: verdicts.get(task) for task in tasks})


def _looked_at(state: State) -> set[str]:
    return {task for opened in state.opened.values() for task in opened.tasks}


@dataclass(frozen=True)
class Look:
    """What a look came to."""

    opened: Opened
    result: Result
    receipt: Head
    """Kept elsewhere, it shows later that the record was not cut off."""
    witness: Path | None
    """Where it is noted outside of the workspace; None: that could not be written."""


def look(
    store: LabelStore,
    what: Candidate,
    verdicts: Mapping[str, Verdict | None],
    *,
    again: str = "",
    moved: str = "",
) -> Look:
    """Read the sealed labels once, and write down what came of it.

    Args:
        store: the labels.
        what: the candidate.
        verdicts: what it says of each of `sealed_tasks`; None: nothing that can be used.
        again: as for `admit`.
        moved: as for `admit`.

    Raises:
        ConfigError: as for `admit`, or verdicts are missing.
        DataError: as for `admit`.
        StoreError: the record cannot be written; then nothing was read.
    """
    with locked(store.folder):
        state = _refuse_noticed(store, moved)
        tasks = tuple(task.key for task in sealed_tasks(store))
        lacking = set(tasks) - set(verdicts)
        if lacking:
            raise ConfigError(f"no verdict is given of {len(lacking)} of {len(tasks)} sealed tasks")
        n = _admitted(store, state, what, again, verdicts=verdicts)
        if n is None:
            before = _looked_at(state)
            opened = Opened(
                folder=state.folder.id,
                candidate=what,
                tasks=tasks,
                verdicts_key=_key(verdicts, tasks),
                split=state.lock[-1].head,
                again=again,
                at=store.clock(),
            )
            link = store.looks.append_all([opened.as_json()], state.looks)[-1]
            # Noted elsewhere before a label is read: from here on the look cannot be unmade
            # by taking away the record alone.
            _note(store, state, opened, link.head)
            n = link.n
        else:
            opened = state.opened[n]
            before = {t for m, o in state.opened.items() if m < n for t in o.tasks}
        result = _result(store, state, opened, verdicts, n=n, before=before)
        # With its nulls: a figure without a denominator has none, and says so.
        link = store.looks.append_all([result.model_dump(mode="json")])[-1]
        witness = _note(store, state, opened, link.head)
        return Look(opened, result, link.head, witness)


def _note(store: LabelStore, state: State, opened: Opened, head: Head) -> Path | None:
    """Note how far the record has come, in sealed.jsonl and with the witness."""
    store.sealed.append_all([Looked(record=head).as_json()])
    note = Noted(
        record=head,
        path=str(store.folder.resolve()),
        among=opened.candidate.among,
        tasks=opened.tasks,
        at=opened.at,
    )
    witness = witness_of(state.folder.id)
    try:
        with locked(witness.path.parent):
            witness.append_all([note.as_json()])
    except StoreError:
        return None
    return witness.path


def _result(
    store: LabelStore,
    state: State,
    opened: Opened,
    verdicts: Mapping[str, Verdict | None],
    *,
    n: int,
    before: set[str],
) -> Result:
    """Compare what the candidate says with the sealed labels."""
    labels = _sealed_labels(state)
    by_task: dict[str, list[Verdict]] = {}
    for label in labels:
        by_task.setdefault(label.label.task, []).append(label.label.verdict)
    truths = {key: majority(by_task[key]) for key in opened.tasks if key in by_task}
    things = [
        Labelled(truth=truth, verdict=verdicts[key], cluster=key)
        for key, truth in truths.items()
        if truth is not None
    ]
    return Result(
        of=n,
        labels_key=content_key(sorted([label.id, label.salt] for label in labels)),
        agreement=agreement(things, VERDICTS),
        n_split=sum(truth is None for truth in truths.values()),
        n_before=len(before & set(opened.tasks)),
        at=store.clock(),
    )


def _sealed_labels(state: State) -> list[SealedLabel]:
    """Of each labeller and task the newest that was not taken back."""
    undone = {entry.id for entry in state.entries if isinstance(entry, SealedUndo)}
    newest: dict[tuple[str, str], SealedLabel] = {}
    for entry in state.entries:
        if isinstance(entry, SealedLabel) and entry.id not in undone and not entry.label.recheck:
            newest[entry.label.task, entry.label.labeller] = entry
    return list(newest.values())


def record(store: LabelStore) -> tuple[dict[str, Any], ...]:
    """All looks, as they were written.

    Raises:
        DataError: the record does not hold.
    """
    return tuple(link.entry for link in store.looks.links())
