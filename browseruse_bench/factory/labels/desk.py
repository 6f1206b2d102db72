"""What a labeller is given, and gives back: plain functions for the terminal and the web.

Nobody is shown what another one said of a task before their own word on it is saved; whoever was
shown it labels the task, from then on, as not blind. Sealed labels are shown to nobody.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from browseruse_bench.errors import ConfigError
from browseruse_bench.factory.labels.lines import LabelTask
from browseruse_bench.factory.labels.sample import hashed
from browseruse_bench.factory.labels.store import LabelStore
from browseruse_bench.records.label import Label, ReasonTag, Verdict

_LABELLER = re.compile(r"[\w.@-]{1,60}")


@dataclass(frozen=True, kw_only=True)
class Assignment:
    """A task to label: nothing in it tells what others said, or which part it is in."""

    task: str
    """Its key."""
    text: str
    recheck: bool = False


@dataclass(frozen=True, kw_only=True)
class Word:
    """What a labeller says of a task."""

    verdict: Verdict
    hard: bool | None = None
    reason: str = ""
    tags: tuple[ReasonTag, ...] = ()
    seconds: float | None = None


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far labelling is."""

    n_tasks: int
    n_labelled: int
    """Tasks with at least one label."""
    n_wanted: int
    """Labels that are wanted in all: some tasks want two."""
    n_given: int
    """Of those."""
    n_mine: int
    n_left_for_me: int


def checked_labeller(name: str) -> str:
    """A name that can stand in files and reports.

    Raises:
        ConfigError: it cannot.
    """
    plain = name.strip()
    if not _LABELLER.fullmatch(plain):
        raise ConfigError(
            f"labeller '{name}': 1 to 60 letters, digits and . _ @ - (a name, or a pseudonym)"
        )
    return plain


def owed(store: LabelStore, labeller: str) -> tuple[LabelTask, ...]:
    """Tasks that want a label of this labeller, in an order of the labeller's own.

    A task wants so many labellers; who has labelled it is asked no second time. The order is by
    hash, so that what is labelled at any moment is a random part of the sample, and a second
    label looks like any other.
    """
    by: dict[str, set[str]] = {}
    for task, who in store.given():
        by.setdefault(task, set()).add(who)
    found = [
        (key, task)
        for key, task in store.tasks.items()
        if labeller not in by.get(key, set()) and len(by.get(key, set())) < task.wanted
    ]
    found.sort(key=lambda pair: hashed(0, pair[0], f"order\0{labeller}"))
    return tuple(task for _, task in found)


def rechecks_owed(store: LabelStore, labeller: str, n: int) -> tuple[LabelTask, ...]:
    """Those of `n` tasks that this labeller labelled before and is to label again.

    They are drawn by hash from what can be read again: sealed labels stay closed.
    """
    mine = [
        task
        for (task, who), given in store.given().items()
        if who == labeller and given.label is not None
    ]
    done = {task for task, who in store.given(recheck=True) if who == labeller}
    drawn = sorted(mine, key=lambda key: hashed(0, key, f"recheck\0{labeller}"))[:n]
    return tuple(store.task(key) for key in drawn if key not in done)


def next_task(
    store: LabelStore, labeller: str, *, rechecks: int = 0, skipped: Sequence[str] = ()
) -> Assignment | None:
    """What this labeller is to label next; None: nothing is left.

    Args:
        store: the labels.
        labeller: who asks.
        rechecks: give so many of their own tasks again instead of new ones.
        skipped: keys that come only when nothing else is left, in the order in which they were
            put off.
    """
    store.refresh()
    left = rechecks_owed(store, labeller, rechecks) if rechecks else owed(store, labeller)
    if not left:
        return None
    by_key = {task.key: task for task in left}
    later = [key for key in skipped if key in by_key]
    first = next((key for key in by_key if key not in later), later[0] if later else "")
    return Assignment(task=first, text=by_key[first].text, recheck=bool(rechecks))


def save(store: LabelStore, labeller: str, assignment: Assignment, word: Word) -> Label:
    """The label, once it is on disk.

    Raises:
        ConfigError: the labeller's name cannot stand in a report, or the task is not here.
        StoreError: it cannot be written.
    """
    task = store.task(assignment.task)
    label = Label(
        task=assignment.task,
        text_hash=task.text_hash,
        verdict=word.verdict,
        hard=word.hard,
        reason=word.reason.strip(),
        tags=word.tags,
        seconds=None if word.seconds is None else round(word.seconds, 1),
        labeller=checked_labeller(labeller),
        at=store.clock(),
        blind=not store.has_seen(labeller, assignment.task),
        recheck=assignment.recheck,
    )
    store.save([label])
    return label


def undo(store: LabelStore, labeller: str) -> Assignment | None:
    """Take back this labeller's newest label; its task is to be labelled again."""
    taken = store.undo(labeller)
    if taken is None:
        return None
    text = store.task(taken.task).text
    return Assignment(task=taken.task, text=text, recheck=taken.recheck)


def what_others_said(store: LabelStore, labeller: str, task: str) -> tuple[Label, ...]:
    """What others said of a task that this labeller has labelled; that it was shown is noted.

    Raises:
        ConfigError: the labeller has not labelled it yet, or it is sealed.
    """
    store.refresh()
    given = store.given()
    mine = given.get((task, labeller))
    if mine is None:
        raise ConfigError(
            f"task '{task[:16]}': what others said is shown once your own label is saved"
        )
    if mine.label is None:
        raise ConfigError(f"task '{task[:16]}': its labels are sealed, for everybody")
    store.note_seen(labeller, task)
    return tuple(
        other.label
        for (key, who), other in given.items()
        if key == task and who != labeller and other.label is not None
    )


def progress(store: LabelStore, labeller: str) -> Progress:
    """How far labelling is, for everybody and for one labeller."""
    store.refresh()
    by: dict[str, int] = {}
    mine = 0
    for task, who in store.given():
        by[task] = by.get(task, 0) + 1
        mine += who == labeller
    tasks = store.tasks
    return Progress(
        n_tasks=len(tasks),
        n_labelled=len(by),
        n_wanted=sum(task.wanted for task in tasks.values()),
        n_given=sum(min(by.get(key, 0), task.wanted) for key, task in tasks.items()),
        n_mine=mine,
        n_left_for_me=len(owed(store, labeller)),
    )
