"""From a workspace's labels to examples."""

from __future__ import annotations

import itertools

from browseruse_bench.factory.labels.store import LabelStore
from browseruse_bench.factory.search.examples import Example, Examples, Part, majority
from browseruse_bench.factory.search.figures import Rate
from browseruse_bench.measure.agreement import Coefficient, alpha
from browseruse_bench.records.base import Record
from browseruse_bench.records.label import Label


class People(Record):
    """How far the people agree whom a labeller is to agree with."""

    n_tasks: int
    """Tasks that at least two of them labelled."""
    n_pairs: int
    """Pairs of labels of one task."""
    agreement: Rate
    alpha: Coefficient


def by_task(store: LabelStore) -> dict[str, list[Label]]:
    """The labels of each task that is not sealed, in the order of the labellers' names."""
    found: dict[str, list[Label]] = {}
    for label in sorted(store.labels(), key=lambda label: (label.task, label.labeller)):
        found.setdefault(label.task, []).append(label)
    return found


def examples_of(store: LabelStore, *, seed: int = 0) -> Examples:
    """Every labelled task that is not sealed. What most of its labellers say is the truth; a task
    without such a majority is left out and counted.
    """
    found: list[Example] = []
    n_split = 0
    for key, labels in by_task(store).items():
        truth = majority([label.verdict for label in labels])
        if truth is None:
            n_split += 1
            continue
        found.append(
            Example(
                key=key,
                text=store.task(key).text,
                truth=truth,
                part=_part(store, key),
                reasons=tuple(label.reason for label in labels),
                tags=tuple(sorted({tag for label in labels for tag in label.tags})),
            )
        )
    return Examples.of(found, seed=seed, n_split=n_split)


def _part(store: LabelStore, key: str) -> Part:
    if store.part_of(key) == "validation":
        return "validation"
    return store.split.half_of_hash(store.task(key).text_hash)


def people(store: LabelStore) -> People:
    """The agreement among people, on the tasks that several labelled: who agrees with them better
    than they do with each other has learned something else.
    """
    several = {key: labels for key, labels in by_task(store).items() if len(labels) > 1}
    pairs = [
        one.verdict == other.verdict
        for labels in several.values()
        for one, other in itertools.combinations(labels, 2)
    ]
    return People(
        n_tasks=len(several),
        n_pairs=len(pairs),
        agreement=Rate.of_counts(sum(pairs), len(pairs)),
        alpha=alpha((key, [label.verdict for label in labels]) for key, labels in several.items()),
    )
