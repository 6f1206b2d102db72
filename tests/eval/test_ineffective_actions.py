"""What an agent asked for is not what happened: only the harness's evidence says that."""

import pytest

from browseruse_bench.eval.checks import grade
from browseruse_bench.eval.corroboration import Evidence
from browseruse_bench.records.rubric import Rubric

SHOP = "http://shop.test/"
NO_ORDER = "CREATE TABLE orders (id INTEGER, item TEXT);"
ORDERED = NO_ORDER + "INSERT INTO orders VALUES (1, 'Kettle');"
CHECKS = {
    "answer": {"kind": "answer", "values": ["Order 4711"]},
    "url": {"kind": "url", "host": "shop.test", "path": "/ordered", "when": "any"},
    "state": {
        "kind": "state",
        "site": "shop.test",
        "sql": "SELECT item FROM orders",
        "equals": [["Kettle"]],
    },
    "probe": {"kind": "probe", "name": "done", "equals": True},
}
NOT_MET = {"answer": "unsupported", "url": "violated", "state": "violated", "probe": "violated"}
RESULTS = [
    "Element index 12 not found",
    "Clicked element 12: Order 4711 placed, now at http://shop.test/ordered",
    None,
]


def statuses(folder):
    items = [
        {"id": name, "requirement": name, "weight": 25, "check": check}
        for name, check in CHECKS.items()
    ]
    rubric = Rubric.model_validate({"task_id": "task-1", "items": items})
    return {finding.item: finding.status for finding in grade(folder, rubric).findings}


@pytest.mark.parametrize("result", RESULTS)
def test_a_click_that_changed_nothing_is_neither_done_nor_evidence_bl029(make_trace, result):
    """BL029: the framework reports no error, whatever the click's result says: the page, the
    site's state and the probe are as before, so no item is met.
    """
    page, call = make_trace.page, make_trace.call
    click = call("click", {"index": 12}, result=result)
    assert click.error is None
    folder = make_trace(
        page(SHOP, "Kettle. Buy", navigate=SHOP),
        page(SHOP, "Kettle. Buy", click),
        states={"shop.test": NO_ORDER},
        probes={"done": False},
        answer="Order 4711 was placed.",
    )
    assert statuses(folder) == NOT_MET


def test_a_click_that_worked_is_met_by_what_was_seen_bl029(make_trace):
    """The other side: nothing but the state of the world differs."""
    page, call = make_trace.page, make_trace.call
    folder = make_trace(
        page(SHOP, "Kettle. Buy", navigate=SHOP),
        page(f"{SHOP}ordered", "Thank you! Order 4711", call("click", {"index": 12})),
        states={"shop.test": ORDERED},
        probes={"done": True},
        answer="Order 4711 was placed.",
    )
    assert set(statuses(folder).values()) == {"met"}


def test_what_only_the_last_state_shows_is_seen_bl030(make_trace):
    """BL030: five steps, and the success stands in the final observation alone."""
    page = make_trace.page
    steps = [page(SHOP, f"step {n}", click={"index": n}) for n in range(1, 6)]
    folder = make_trace(
        *steps,
        final=page(f"{SHOP}ordered", "Thank you! Order 4711"),
        states={"shop.test": ORDERED},
        probes={"done": True},
        answer="Order 4711 was placed.",
    )
    assert set(statuses(folder).values()) == {"met"}


def test_a_quote_from_a_step_that_is_not_there_does_not_hold_bl004(make_trace):
    """BL004: a finding that cites step 12 of a trace of 8 steps."""
    page = make_trace.page
    evidence = Evidence(make_trace(*(page(SHOP, f"price {n}") for n in range(1, 9))))
    assert evidence.quote_problem(8, "price 8") is None
    assert evidence.quote_problem("final", "price 8") is None
    assert evidence.quote_problem(12, "price 8") == "it does not stand in the page at step 12"
    assert evidence.quote_problem(7, "price 8") == "it does not stand in the page at step 7"
