"""Tasks and labels for tests of labelling, and a clock that ticks."""

from __future__ import annotations

import itertools

from browseruse_bench.factory.labels.lines import new_task
from browseruse_bench.factory.labels.store import LabelStore
from browseruse_bench.records.label import Label, text_hash


def ticking():
    seconds = itertools.count()
    return lambda: f"2026-01-01T00:{next(seconds) // 60:02}:00+00:00"


def open_store(folder) -> LabelStore:
    return LabelStore(folder, clock=ticking())


def texts(n: int) -> list[str]:
    return [f"Find the cheapest offer of kind {i} and tell its price" for i in range(n)]


def label(text: str, verdict="suitable", labeller="ada", **more) -> Label:
    given = {"reason": "because", "at": "2026-01-01T00:00:00+00:00", **more}
    return Label(
        task=new_task(text).key,
        text_hash=text_hash(text),
        verdict=verdict,
        labeller=labeller,
        **given,
    )


def filled(folder, n: int = 60, labellers=("ada",)) -> LabelStore:
    """A store with tasks that all labellers call suitable."""
    store = open_store(folder)
    store.add_tasks(new_task(text) for text in texts(n))
    for who in labellers:
        store.save([label(text, labeller=who) for text in texts(n)])
    return store
