"""The one place that reads sealed labels, and the record of every time it did.

A look is four lines of thought: is everything as it was left (`noticed`), may this candidate be
looked at (`admit`), what does it say of the sealed texts (asked outside, without labels), how far
is that right (`look`). Verdicts are in the record before a sealed label is read, so that a look
that was cut off is ended with those, and with no others.

What is noticed: lines of any of the files that were changed, put in, taken out or cut off; a
folder that was copied, moved or put back to an earlier state; a candidate under another name,
with other spaces, case or invisible characters, or with another model; one that was in a choice that
was looked at through another. Other candidates may look again, if that is asked for, and then the
result says that its labels were seen before. What cannot be: somebody who reads sealed.jsonl by other
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


def admit(store: LabelStore, what: Candidate, *, again: str = "", moved: str = "") -> bool:
    """This candidate may be looked at; nothing is read, and nothing was asked of a model yet.

    Args:
        store: the labels.
        what: the candidate.
        again: why sealed labels are looked at that were looked at for other candidates.
        moved: why the folder is at another place than it was.

    Returns:
        Whether a look at it was cut off: `look` ends that, and no verdict is needed.

    Raises:
        ConfigError: it, or one that it was chosen among, was looked at before; or labels were,
            and `again` is empty.
        DataError: something isn't as it was left; all of it is listed.
    """
    with locked(store.folder):
        return _admitted(store, _refuse_noticed(store, moved), what, again) is not None


def _admitted(store: LabelStore, state: State, what: Candidate, again: str) -> int | None:
    """Number of the line of a look at just this that was cut off; None: it is a new look."""
    results = state.results
    for n, opened in state.opened.items():
        same = opened.candidate.prompt_hash == what.prompt_hash
        if n not in results and same and opened.candidate.model == what.model:
            return n
        if what.prompt_hash in opened.candidate.among:
            _refuse_second(store, opened, what, same=same)
    tasks = sealed_tasks(store)
    seen = _looked_at(state) | _looked_at_elsewhere(state, what, tasks)
    n_seen = sum(task.key in seen for task in tasks)
    if n_seen and not again:
        raise ConfigError(
            f"{store.looks.path}: {n_seen} of the {len(tasks)} sealed labels were looked at "
            'before, for other candidates; --again "WHY" looks at them once more, and the result '
            "says that it is not a first look"
        )
    return None


def _looked_at_elsewhere(state: State, what: Candidate, tasks: Sequence[LabelTask]) -> set[str]:
    """Keys of those tasks whose labels were looked at in other folders, as the witness knows.

    Raises:
        ConfigError: they were looked at there for this candidate, or for a choice that held it.
    """
    own = witness_of(state.folder.id).path
    seen: set[str] = set()
    for path in sorted(witness_folder().glob("*.jsonl")):
        notes = [] if path == own else [read(Noted, link) for link in Chain(path).links()]
        for note in notes:
            common = {task.key for task in tasks if task.text_hash in note.tasks}
            if common and what.prompt_hash in note.among:
                raise ConfigError(
                    f"{path}: on {note.at} this candidate, or a choice that held it, was looked "
                    f"at on {len(common)} of these tasks, in another folder of labels "
                    f"({note.path}): a second look would choose by what is sealed; nothing was "
                    "read"
                )
            seen |= common
    return seen


def _refuse_second(store: LabelStore, opened: Opened, what: Candidate, *, same: bool) -> NoReturn:
    was = opened.candidate
    named = f"'{was.name}'" if was.name == what.name else f"'{was.name}' (here '{what.name}')"
    model = "" if was.model == what.model else f", then with {was.model}"
    told = (
        f"this prompt was looked at on {opened.at} as {named}{model}"
        if same
        else f"this prompt was one of the {len(was.among)} candidates that were looked at on "
        f"{opened.at} through {named}"
    )
    raise ConfigError(
        f"{store.looks.path}: {told}: a second look at one set of candidates would choose by "
        "what is sealed; nothing was read"
    )


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
        verdicts: what it says of each of `sealed_tasks`; None: nothing that can be used. A look
            that was cut off is ended with those of then.
        again: as for `admit`.
        moved: as for `admit`.

    Raises:
        ConfigError: as for `admit`, or verdicts are missing.
        DataError: as for `admit`.
        StoreError: the record cannot be written; then nothing was read.
    """
    with locked(store.folder):
        state = _refuse_noticed(store, moved)
        n = _admitted(store, state, what, again)
        if n is None:
            elsewhere = _looked_at_elsewhere(state, what, sealed_tasks(store))
            before = _looked_at(state) | elsewhere
            opened = _opened(store, state, what, verdicts, again)
            link = store.looks.append_all([opened.model_dump(mode="json")], state.looks)[-1]
            # Noted elsewhere before a label is read: from here on the look cannot be unmade
            # by taking away the record alone.
            _note(store, state, opened, link.head)
            n = link.n
        else:
            opened = state.opened[n]
            before = {t for m, o in state.opened.items() if m < n for t in o.tasks}
        result = _result(store, state, opened, n=n, before=before)
        # With its nulls: a figure without a denominator has none, and says so.
        link = store.looks.append_all([result.model_dump(mode="json")])[-1]
        witness = _note(store, state, opened, link.head)
        return Look(opened, result, link.head, witness)


def _opened(
    store: LabelStore,
    state: State,
    what: Candidate,
    verdicts: Mapping[str, Verdict | None],
    again: str,
) -> Opened:
    tasks = tuple(task.key for task in sealed_tasks(store))
    lacking = set(tasks) - set(verdicts)
    if lacking:
        raise ConfigError(f"no verdict is given of {len(lacking)} of {len(tasks)} sealed tasks")
    return Opened(
        folder=state.folder.id,
        candidate=what,
        verdicts={key: verdicts[key] for key in tasks},
        split=state.lock[-1].head,
        again=again,
        at=store.clock(),
    )


def _note(store: LabelStore, state: State, opened: Opened, head: Head) -> Path | None:
    """Note how far the record has come, in sealed.jsonl and with the witness."""
    store.sealed.append_all([Looked(record=head).as_json()])
    note = Noted(
        record=head,
        path=str(store.folder.resolve()),
        among=opened.candidate.among,
        tasks=tuple(store.task(key).text_hash for key in opened.tasks),
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
        Labelled(truth=truth, verdict=opened.verdicts[key], cluster=key)
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
