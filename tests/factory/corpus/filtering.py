"""A workspace with files of submissions, and a filter run over it."""

import asyncio
import json
import random
import threading

from browseruse_bench.factory.context import Context
from browseruse_bench.factory.stages.filter import Filter
from browseruse_bench.factory.workspace import Corpus, WorkspaceConfig

COLUMNS = {"text": "prompt", "tag": "use", "time": "at", "count": "n"}
PLACES = ["Lisbon", "Bergen", "Tartu", "Quito", "Hobart", "Omaha", "Dakar", "Graz"]
THINGS = ["a quiet kettle", "trail shoes for wide feet", "a foldable kayak", "an oak bookshelf"]
WISHES = [
    "Find {thing} that ships to {place} and tell me the total price with delivery",
    "I am moving to {place} next spring: which shop there sells {thing} with a long warranty?",
    "Compare the three most reviewed offers of {thing} and say which one arrives first in {place}",
]


def row(text, *, tag="ok", at="2026-03-01T10:00:00Z", n=1):
    return {"prompt": text, "use": tag, "at": at, "n": n}


def submissions(seed=1, n=240):
    """Rows of few tasks in many forms, and some that must be dropped."""
    r = random.Random(seed)
    rows = []
    for i in range(n):
        text = r.choice(WISHES).format(thing=r.choice(THINGS), place=r.choice(PLACES))
        form = r.randrange(10)
        if form == 0:
            text = text.upper()
        elif form == 1:
            text = f"Please: {text}  "
        elif form == 2:
            text = text.replace("e", "ee", 1)
        elif form == 3:
            text += f" Use http://192.168.0.{i % 250}/ for it."
        elif form == 4:
            text = "Trova il treno più comodo per la città e scrivimi il prezzo del biglietto"
        elif form == 5:
            text = "hello"
        day = 1 + r.randrange(28)
        rows.append(row(text, tag=r.choice(["ok", "ok", "ok", "no"]), at=f"2026-03-{day:02}"))
    return rows


def write_lines(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))


def made_filter(root, **more):
    settings = {"paths": ("in",), "permitted_tags": ("ok",), "partitions": 2, **more}
    return Filter(WorkspaceConfig(name="w", corpus=Corpus(columns=COLUMNS, **settings)))


def context(root):
    (root / "filter").mkdir(exist_ok=True)
    return Context(
        workspace=root,
        folder=root / "filter",
        open_model=lambda role: {}[role],
        clock=lambda: "2026-04-01T00:00:00+00:00",
    )


def run(root, tell=lambda text: None, **more):
    """(the flow, kept tasks) after a run over all files of `root`/in."""
    stage = made_filter(root, **more)
    flow = asyncio.run(stage.run(context(root), tell, threading.Event()))
    return flow, list(stage.kept(root / "filter"))


def story(root):
    """What a finished filter says, without what depends on when or in how many parts."""
    import polars as pl

    folder = root / "filter" / "drops"
    said = ["key", "rows", "count", "first", "last", "text"]

    def lines(pattern, *columns):
        frame = pl.concat([pl.read_parquet(p) for p in sorted(folder.glob(pattern))])
        return sorted(map(str, frame.select(columns or frame.columns).rows()))

    return (
        lines("*/members/?????.parquet", "leader", "similarity", *said),
        lines("*/members/*.variants.parquet", "numbers", *said),
        lines("*/dropped/*.parquet"),
    )
