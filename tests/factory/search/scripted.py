"""A labeller and a proposer behind the interface of models, and labels in a workspace."""

import asyncio

from browseruse_bench.factory.labels.lines import new_task
from browseruse_bench.factory.labels.store import LabelStore
from browseruse_bench.factory.search.bench import Limits
from browseruse_bench.factory.search.examples import Examples
from browseruse_bench.factory.search.labelled import People
from browseruse_bench.factory.search.labelled import people as people_of
from browseruse_bench.factory.search.labeller import Prompt
from browseruse_bench.factory.search.run import Asked, search
from browseruse_bench.models.ledger import Ledger, LedgerModel
from browseruse_bench.models.scripted import ScriptedModel
from browseruse_bench.records.label import Label
from tests.factory.search.simulated import World, examples

AT = "2026-05-01T00:00:00+00:00"


def parsed(text):
    """(version, task) of what a labeller is asked."""
    prompt, _, task = text.partition("\nThe task:\n\n")
    return prompt.partition("\n\nReply with these")[0], task


def said(verdict, reason="it seems so", **more):
    return {"reason": reason, "quote": "", "tags": [], "verdict": verdict, **more}


class Labeller:
    """Answers as a world does; counts what it was asked."""

    def __init__(self, world, given):
        self.world = world
        self.by_text = {example.text: example for example in given.all}
        self.asked = []

    def __call__(self, text, sample):
        version, task = parsed(text)
        self.asked.append((version, task))
        return said(self.world.answer(version, self.by_text[task]).verdict)


class Proposer:
    """Proposes versions in an order, so many at a time; a turn asked again says the same."""

    def __init__(self, order, n=4):
        self.order = order
        self.n = n
        self.asked = []

    def __call__(self, text, sample):
        self.asked.append(text)
        start = (sample - 1) * self.n
        return {
            "variants": [
                {"change": f"change to {v}", "text": v} for v in self.order[start : start + self.n]
            ]
        }


def nobody():
    return People.model_validate(
        {
            "n_tasks": 0,
            "n_pairs": 0,
            "agreement": {"hits": 0, "of": 0, "rate": None, "low": None, "high": None},
            "alpha": {"value": None, "low": None, "high": None},
        }
    )


class Setting:
    """A search in a folder, whose models stand behind a ledger; made anew it is another process."""

    def __init__(self, root, qualities, *, n=(20, 12, 8), seed=1, **more):
        self.root = root
        self.order = list(qualities)
        self.examples = more.pop("examples", None) or examples(*n, seed=seed)
        self.world = World(qualities, seed=seed)
        self.labeller = more.pop("labeller", None) or Labeller(self.world, self.examples)
        self.proposer = more.pop("proposer", None) or Proposer(self.order[1:])
        self.more = more

    def model(self, answers, label):
        return LedgerModel(
            ScriptedModel(answers, label=label, may_see=self.more.get("may_see", "restricted")),
            Ledger(self.root / "calls"),
            restricted=Ledger(self.root / "restricted" / "calls", private=True),
        )

    @property
    def asked(self):
        return Asked(
            folder=self.root / "restricted" / "search",
            examples=self.examples,
            people=self.more.get("people", nobody()),
            labeller=self.model(self.labeller, "small"),
            proposer=self.model(self.proposer, "great"),
            first=Prompt(text=self.order[0]),
            limits=Limits(
                **{"versions": len(self.order), "look": 6, **self.more.get("limits", {})}
            ),
            method=self.more.get("method", "own"),
        )

    def search(self):
        return asyncio.run(search(self.asked))


def labelled(folder, rows):
    """A store of (text, {labeller: verdict or Label fields})."""
    store = LabelStore(folder, clock=lambda: AT)
    store.add_tasks([new_task(text, at=AT) for text, _ in rows])
    save(store, rows)
    return store


def save(store, rows, **more):
    labels = []
    for text, by in rows:
        task = new_task(text)
        for labeller, verdict in by.items():
            given = verdict if isinstance(verdict, dict) else {"verdict": verdict}
            labels.append(
                Label.model_validate(
                    {"task": task.key, "text_hash": task.text_hash, "labeller": labeller,
                     "reason": f"{labeller} says so", "at": AT, **more, **given}
                )
            )  # fmt: skip
    store.save(labels)


__all__ = ["AT", "Examples", "Labeller", "Proposer", "Setting", "labelled", "people_of", "save"]
