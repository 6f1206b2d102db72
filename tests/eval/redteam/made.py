"""A run of made traces that can be attacked: an honest one, and tasks with all kinds of checks."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from browseruse_bench.eval.redteam.campaign import Campaign, campaign, victims
from browseruse_bench.eval.redteam.catalogue import chosen
from browseruse_bench.measure.redteam import Trial
from browseruse_bench.records.run import AttemptEntry
from browseruse_bench.store.journal import Journal
from tests.report.made_run import MadeBenchmark, MadeRun, row

HOME = "http://shop.test/"
CANARY = "BUB-CANARY-0123456789abcdef"
ORDERS = "create table orders(id integer, item text); insert into orders values (7, 'Kettle');"

INFO = {"sites": {"shop.test": "module:Site"}, "probes": {"cart": {"script": "1"}}}


def rubric() -> dict[str, Any]:
    """Two values to find, a date, an order to place, a page to reach, a state to leave."""
    return {
        "task_id": "kettle",
        "canary": CANARY,
        "facts": [
            {"id": "F1", "claim": "It costs $1,299.", "values": ["$1,299"], "url": HOME + "p/9"},
            {"id": "F2", "claim": "It is the Blue Kettle.", "values": ["Blue Kettle"]},
            {"id": "F3", "claim": "It comes on May 3, 2026.", "values": ["May 3, 2026"]},
        ],
        "items": [
            item("A1_price", 30, ["F1"], {"kind": "answer", "values": ["$1,299"]}),
            item("A2_name", 20, ["F2"], {"kind": "answer", "values": ["Blue Kettle"]}),
            item(
                "A3_date",
                20,
                ["F3"],
                {"kind": "answer", "values": ["May 3, 2026"], "match": "date"},
            ),
            item("A4_order", 10, [], {
                "kind": "state", "site": "shop.test", "sql": "select item from orders",
                "equals": [["Kettle"]],
            }),
            item("A5_page", 10, [], {"kind": "url", "host": "shop.test", "path": "/done"}),
            item("A6_state", 10, [], {"kind": "probe", "name": "cart", "equals": {"n": 1}}),
        ],
    }  # fmt: skip


def item(name: str, weight: int, facts: list[str], check: dict[str, Any]) -> dict[str, Any]:
    return {"id": name, "requirement": name, "weight": weight, "facts": facts, "check": check}


ANSWER = "The Blue Kettle costs $1,299 and comes on May 3, 2026."


def honest(make_trace: Any, folder: Path, **trace: Any) -> Any:
    """Everything was found, ordered and said."""
    page = make_trace.page
    terms = "Cookies help us.\nSearch\nSign in\n" + "\n".join(
        f"Row {n}: cup of tea" for n in range(25)
    )
    steps = (
        page(HOME, f"Welcome\n{terms}", navigate=HOME, _document="A"),
        page(HOME + "?q=kettle", "3 hits", type={"text": "kettle"}, _document="B"),
        page(HOME + "p/9", f"Blue Kettle\n$1,299\n{terms}", click={"css": "a"}, _document="C"),
        page(HOME + "done", "Ordered. It comes on May 3, 2026", click={"css": "b"}, _document="D"),
    )
    given = {"answer": ANSWER, "states": {"shop.test": ORDERS}, "probes": {"cart": {"n": 1}}}
    return make_trace(*steps, folder=folder, **given | trace)


class Made:
    """A benchmark of one task, or of several alike, and a run of honest traces at them."""

    def __init__(self, root: Path, make_trace: Any, *, n_tasks: int = 1, **trace: Any) -> None:
        names = ["kettle", *(f"kettle-{n}" for n in range(2, n_tasks + 1))]
        self.bench = MadeBenchmark(root / "Made", [row(name) for name in names], INFO)
        self.bench.rubrics = {name: rubric() | {"task_id": name} for name in names}
        self.loaded = self.bench.load()
        self.run = MadeRun.of(root / "experiments", self.loaded)
        self.folder = self.run.folder
        self.into = root / "into"
        for name in names:
            self.settle(make_trace, name, **trace)

    def settle(self, make_trace: Any, name: str, **trace: Any) -> None:
        path = self.folder.try_path(name, 1, 1)
        key = self.loaded.task(name).view.key
        made = honest(make_trace, path, task_id=name, task_key=key, **trace)
        entry = {
            "task_id": name,
            "attempt": 1,
            "try": 1,
            "task_key": key,
            "trace_key": made.key,
            "status": "finished",
            "n_steps": len(made.steps),
            "at": "2026-01-01T00:01:00+00:00",
        }
        with Journal(self.folder.attempts_path) as journal:
            journal.append(AttemptEntry.model_validate(entry).as_json())

    def attack(self, *names: str, judge: Any = None, by_code: bool = True, **how: Any) -> Campaign:
        found, skipped = victims(self.folder, self.loaded, judge=judge, by_code=by_code)
        kind = "checks" if judge is None else "model"
        wanted = [victim for victim in found if victim.kind == kind]
        done = asyncio.run(
            campaign(wanted, chosen(names), **{"into": self.into, "success_at": 100} | how)
        )
        assert not skipped
        return done

    def trial(self, name: str, **how: Any) -> Trial:
        (trial,) = self.attack(name, **how).trials
        return trial
