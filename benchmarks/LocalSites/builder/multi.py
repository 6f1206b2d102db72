"""Tasks over two sites: something is looked up on one and then acted upon in the shop.

Templates, both of them long:

    flights    a number and an aircraft from flights.test, then an order in the shop
    docs       a function from docs.test, then an order in the shop
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

from builder import docs, flights
from builder.draft import Draft, Wrong
from builder.shopping import (
    HOST,
    Goods,
    Steps,
    Walk,
    address,
    address_fact,
    address_item,
    credentials,
    customer,
    delivery_fact,
    delivery_item,
    goods_item,
    note_item,
    price_fact,
    product,
    wrap_item,
)

from browseruse_bench.sites.flights import database
from browseruse_bench.sites.shop.people import Customer
from browseruse_bench.sites.shop.prices import MAX_PER_PRODUCT


def drafts() -> Iterator[Draft]:
    """All tasks over several sites."""
    connection = sqlite3.connect(f"file:{database()}?mode=ro", uri=True)
    try:
        yield from _flights(connection)
    finally:
        connection.close()
    docs.check_package()
    yield from _docs()


def _draft(template: str, number: int, **values: Any) -> Draft:
    return Draft(
        task_id=f"multi-{template}-{number}",
        template=f"multi-{template}",
        website=HOST,
        category="Shopping",
        difficulty="hard",
        **values,
    )


def _items(person: Customer, label: str, name: str, n: int, note: str) -> list[dict[str, Any]]:
    return [
        goods_item("A1_goods", 45, ((name, n),), "F1", "F2"),
        note_item("A2_note", 25, note, "F1"),
        address_item("A3_address", 15, person, address(person, label), "F3"),
        delivery_item("A4_delivery", 10, "standard", "F4"),
        wrap_item("A5_wrap", 5, "F1", wrapped=False),
    ]


def _can_be_ordered(name: str, n: int) -> bool:
    return 1 < n <= min(product(name).stock, MAX_PER_PRODUCT)


def _shop(person: Customer, goods: Goods, label: str, note: str) -> Walk:
    """Everything that is done in the shop."""
    return Walk().enter().sign_in(person).collect(goods).check_out(label, "standard", note=note)


# Flights

_MATCHING = """
    SELECT dep_delay, tailnum FROM flights WHERE carrier = ? AND dest = ? AND date = ? ORDER BY {}
"""


def _flights(connection: sqlite3.Connection) -> Iterator[Draft]:
    cases = (
        ("B6", "SJU", "2013-01-07", "Mara", "Pellworth Dune Umbrella", "Work"),
        ("MQ", "ATL", "2013-01-05", "Tomas", "Brambury Kelp Bike Pump", "Office"),
        ("AA", "LAX", "2013-01-12", "Pavel", "Norrvik Moss Bird Feeder", "Workshop"),
    )
    for number, (carrier, dest, date, first_name, name, label) in enumerate(cases, 1):
        values = (carrier, dest, date)
        rows = connection.execute(_MATCHING.format("dep_delay DESC"), values).fetchall()
        first = connection.execute(_MATCHING.format("id"), values).fetchone()
        n, tail = len(rows), rows[0][1]
        assert rows[0][0] > rows[1][0], "the longest delay is one flight's alone"
        assert tail != first[1], "who does not sort takes another aircraft"
        assert _can_be_ordered(name, n)
        person = customer(first_name)
        (airline,) = connection.execute(
            "SELECT name FROM airlines WHERE carrier = ?", (carrier,)
        ).fetchone()
        query = f"nyc/flights?carrier__exact={carrier}&dest__exact={dest}&date__exact={date}"
        yield _draft(
            "flights",
            number,
            start_url=flights.HOME,
            task=f"We settle a bet. Look at the table flights on {flights.HOME}: how many flights "
            f"of {airline.rstrip('.')} ({carrier}) to {dest} are there on {date}, and which "
            "aircraft, by tail number, had the longest departure delay among them? Then order "
            f"exactly as many pieces of the {name} as there were flights, at the shop on "
            f"http://{HOST}/. {credentials(person)} They go to my saved address “{label}” by "
            "standard delivery, without gift wrap, and the gift note is that tail number and "
            "nothing else.",
            expected_result=f"{n} flights, {tail}",
            items=_items(person, label, name, n, tail),
            facts=[
                flights.fact(1, f"On {date} {carrier} flew {n} times to {dest}; {tail} left "
                             f"{rows[0][0]} minutes late, the longest delay.", [n, tail],
                             f"{query}&_sort_desc=dep_delay", tail),
                price_fact(2, name),
                address_fact(3, person, address(person, label)),
                delivery_fact(4, "standard"),
            ],
            solution=_bet(values, person, name, label, in_order=True),
            wrong=Wrong(
                why="Takes the aircraft of the first row without sorting by the delay.",
                solution=_bet(values, person, name, label, in_order=False),
                points=75,
            ),
        )  # fmt: skip


def _bet(
    values: tuple[str, str, str], person: Customer, name: str, label: str, *, in_order: bool
) -> Steps:
    steps: Steps = flights.open_flights()
    for column, value in zip(("carrier", "dest", "date"), values, strict=True):
        steps += flights.add_filter(column, value)
    if in_order:
        steps += flights.sort_down("dep_delay")
    steps += [
        {"extract": {"css": "h3", "regex": r"([\d,]+) rows?", "as": "n"}},
        flights.cell("tailnum", "tail"),
    ]
    walk = _shop(person, ((name, "{n}"),), label, "{tail}")
    return [*steps, *walk.done("There were {n} flights; the goods are ordered.")]


# Documentation


def _docs() -> Iterator[Draft]:
    cases = (
        ("Others", "chunk_size", "map_if", "Inês", "Pellworth North Card Game", "Studio"),
        ("Selecting", "monotonic", "first", "Tomas", "Quillon Zephyr Lantern", "Allotment"),
    )
    for number, (title, parameter, near, first_name, name, label) in enumerate(cases, 1):
        (function,) = docs.takers(title, parameter)
        n, n_near = len(docs.parameters(function)), len(docs.parameters(near))
        assert near in docs.sections()[title]
        assert n != n_near
        assert _can_be_ordered(name, n)
        assert _can_be_ordered(name, n_near)
        person = customer(first_name)
        yield _draft(
            "docs",
            number,
            start_url=docs.HOME,
            task=f"The prizes of our quiz hide in the documentation on {docs.HOME}. In its "
            f"section {title} exactly one function has a parameter called {parameter}. Order at "
            f"the shop on http://{HOST}/ as many pieces of the {name} as that function has "
            f"parameters in all. {credentials(person)} Send them to my saved address “{label}” "
            "by standard delivery, without gift wrap; the gift note is the name of the function "
            "and nothing else.",
            expected_result=f"{function}, {n} parameters",
            items=_items(person, label, name, n, function),
            facts=[
                docs.signature_fact(1, function),
                price_fact(2, name),
                address_fact(3, person, address(person, label)),
                delivery_fact(4, "standard"),
            ],
            solution=[
                *docs.search(parameter, function),
                *_shop(person, ((name, n),), label, function).done(f"It is {function}."),
            ],
            wrong=Wrong(
                why=f"Takes {near} of the same section, which has no {parameter}.",
                solution=[
                    *docs.look_up(near),
                    *_shop(person, ((name, n_near),), label, near).done(f"It is {near}."),
                ],
                points=30,
            ),
        )  # fmt: skip
