"""Tasks on flights.test. Every answer is computed by SQL from the database that is served.

Templates, by the length of the path:

    count      one filter, one number                                            easy
    aircraft   two filters, a sort, and the aircraft that the first row links to  medium
    compare    the worst delay of five airlines, one after the other              hard
    weather    a day from one table, that day's wind from another                 hard
    oldest     three filters, a sort, and six aircraft looked up                  hard
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any

from builder.draft import Draft, Wrong

from browseruse_bench.sites.flights import database

HOST = "flights.test"
HOME = f"http://{HOST}/"
CHECKED_ON = "2026-11-30"
PROBES: dict[str, Any] = {}

ROWS = "table.rows-and-columns tbody tr"
AIRPORT = {"EWR": "Newark (EWR)", "JFK": "Kennedy (JFK)", "LGA": "LaGuardia (LGA)"}

Steps = list[dict[str, Any]]


def drafts() -> Iterator[Draft]:
    """All tasks of this site; each template asserts what makes its answers unique."""
    connection = sqlite3.connect(f"file:{database()}?mode=ro", uri=True)
    try:
        yield from _count(connection)
        yield from _aircraft(connection)
        yield from _compare(connection)
        yield from _weather(connection)
        yield from _oldest(connection)
    finally:
        connection.close()


# Actions


def css(selector: str, nth: int = 0) -> dict[str, Any]:
    return {"css": selector, "nth": nth} if nth else {"css": selector}


def click(selector: str, nth: int = 0) -> dict[str, Any]:
    return {"click": css(selector, nth)}


def cell(column: str, name: str) -> dict[str, Any]:
    """Store the text of the first row's cell."""
    return {"extract": {"css": f"{ROWS} td.col-{column}", "as": name}}


def label(column: str, name: str) -> dict[str, Any]:
    """Store the name that a reference is shown under, without its code."""
    return {"extract": {"css": f"{ROWS} td.col-{column} a", "as": name}}


def open_flights() -> Steps:
    return [{"navigate": HOME}, click("a[href='/nyc/flights']")]


def add_filter(column: str, value: str | int, op: str | None = None) -> Steps:
    """Fill in the empty filter row and apply it."""
    choose: Steps = [{"select": {"in": css("select[name='_filter_column']"), "option": column}}]
    if op:
        choose.append({"select": {"in": css("select[name='_filter_op']"), "option": op}})
    field = css("input[name='_filter_value']")
    typed: Steps = [{"type": {"into": field, "text": str(value)}}, {"key": "Enter"}]
    return [*choose, *typed, filtered(column, value, op)]


def change_filter(column: str, old: str, value: str) -> Steps:
    """Put another value into the filter that now has `old`."""
    field = css(f"input.filter-value[value='{old}']")
    return [{"type": {"into": field, "text": value}}, {"key": "Enter"}, filtered(column, value)]


def filtered(column: str, value: str | int, op: str | None = None) -> dict[str, Any]:
    """Wait until the page says that this filter is applied."""
    sign = {None: "=", "gt": ">", "gte": "\u2265"}[op]
    shown = value if isinstance(value, int) else f'"{value}"'
    return {"wait": {"text": f"{column} {sign} {shown}"}}


def sort_down(column: str) -> Steps:
    """Sort by the column, largest first: the first click sorts upwards."""
    header = f"th[data-column='{column}'] a"
    return [click(header), {"wait": {"text": "▼"}}, click(header), {"wait": {"text": "▲"}}]


def done(text: str) -> Steps:
    return [{"done": text}]


# Rubrics


def answer(
    item: str, requirement: str, weight: int, values: list[Any], **check: Any
) -> dict[str, Any]:
    return {
        "id": item,
        "requirement": requirement,
        "facts": ["F1"],
        "weight": weight,
        "check": {"kind": "answer", "values": values, **check},
    }


def page_open(item: str, requirement: str, weight: int, path: str, **query: str) -> dict[str, Any]:
    check = {"kind": "url", "host": HOST, "path": path, "query": query, "when": "final"}
    return {"id": item, "requirement": requirement, "weight": weight, "check": check}


def fact(number: int, claim: str, values: list[Any], path: str, quote: str) -> dict[str, Any]:
    return {
        "id": f"F{number}",
        "claim": claim,
        "values": values,
        "url": HOME + path,
        "quote": quote,
        "how": "site",
        "checked_on": CHECKED_ON,
    }


def _one(connection: sqlite3.Connection, sql: str, *values: Any) -> tuple[Any, ...]:
    """The only row of a query."""
    (row,) = connection.execute(sql, values).fetchall()
    return row


def _airline(connection: sqlite3.Connection, carrier: str) -> str:
    return _one(connection, "SELECT name FROM airlines WHERE carrier = ?", carrier)[0].rstrip(".")


# Templates


def _count(connection: sqlite3.Connection) -> Iterator[Draft]:
    cases = (
        ("dep_delay", 180, "departed more than 180 minutes late (dep_delay above 180)"),
        ("arr_delay", 120, "arrived more than 120 minutes late (arr_delay above 120)"),
        ("air_time", 380, "spent more than 380 minutes in the air (air_time above 380)"),
    )
    start = HOME + "nyc/flights"
    for number, (column, bound, phrase) in enumerate(cases, 1):
        query = "SELECT count(*) FROM flights WHERE {} {} ?"
        (n,) = _one(connection, query.format(column, ">"), bound)
        (at_least,) = _one(connection, query.format(column, ">="), bound)
        assert n != at_least, "the bound itself occurs, so > and >= differ"
        shown = {"extract": {"css": "h3", "regex": r"([\d,]+) rows?", "as": "n"}}
        yield Draft(
            task_id=f"flights-count-{number}",
            template="flights-count",
            task=f"How many of the flights in the table flights {phrase}? Filter the table "
            "so that it shows exactly these flights, leave the filtered table open, and tell "
            "me the number.",
            website=HOST,
            start_url=start,
            category="Travel",
            difficulty="easy",
            expected_result=str(n),
            items=[
                answer("A1_number", f"Says that there are {n} such flights.", 70, [n],
                       match="number", seen=[f"{n:,} rows"]),
                page_open("A2_filtered_table", f"The table, filtered to {column} above {bound}, "
                          "is open at the end.", 30, "/nyc/flights",
                          **{f"{column}__gt": str(bound)}),
            ],
            facts=[
                fact(1, f"{n} flights have {column} > {bound}.", [n],
                     f"nyc/flights?{column}__gt={bound}", f"{n:,} rows"),
            ],
            failures=[
                {"text": "Counts the flights at the bound too.",
                 "looks_like": f"a filter with ≥, and the answer {at_least}"},
            ],
            solution=[{"navigate": start}, *add_filter(column, bound, "gt"), shown, *done("{n}")],
            wrong=Wrong(
                why="Filters with ≥, so that flights at the bound are counted too.",
                solution=[
                    {"navigate": start}, *add_filter(column, bound, "gte"), shown, *done("{n}"),
                ],
                points=0,
            ),
        )  # fmt: skip


_WORST = """
    SELECT f.dep_delay, f.tailnum, p.model, f.date FROM flights f
    LEFT JOIN planes p USING (tailnum) WHERE carrier = ? AND {}
    ORDER BY f.dep_delay DESC LIMIT 2
"""


def _worst(
    connection: sqlite3.Connection, carrier: str, origin: str | None
) -> tuple[int, str, str, str]:
    """(delay, tail number, model, date) of the one flight with the longest delay."""
    where = "f.origin = ?" if origin else "? IS NULL"
    first, second = connection.execute(_WORST.format(where), (carrier, origin)).fetchall()
    assert first[0] > second[0], "the longest delay is one flight's alone"
    return first


def _aircraft(connection: sqlite3.Connection) -> Iterator[Draft]:
    cases = (("DL", "LGA"), ("AA", "JFK"), ("EV", "LGA"), ("B6", "EWR"))
    for number, (carrier, origin) in enumerate(cases, 1):
        delay, tail, model, _ = _worst(connection, carrier, origin)
        _, other_tail, other_model, _ = _worst(connection, carrier, None)
        airline = _airline(connection, carrier)
        begin = [*open_flights(), *add_filter("carrier", carrier)]
        finish = [
            *sort_down("dep_delay"), click(f"{ROWS} td.col-tailnum a"),
            cell("tailnum", "tail"), cell("model", "model"),
        ]  # fmt: skip
        say = "The aircraft is {tail}, model {model}."
        if (other_tail, other_model) == (tail, model):
            wrong = Wrong(
                why="Goes back to the list of flights instead of leaving the aircraft open.",
                solution=[*begin, *add_filter("origin", origin), *finish, {"back": True},
                          *done(say)],
                points=80,
            )  # fmt: skip
        else:
            assert other_tail != tail
            assert other_model != model
            wrong = Wrong(
                why=f"Forgets {origin} and takes the airline's longest delay anywhere.",
                solution=[*begin, *finish, *done(say)],
                points=0,
            )
        yield Draft(
            task_id=f"flights-aircraft-{number}",
            template="flights-aircraft",
            task=f"Find the flight of {airline} ({carrier}) out of {AIRPORT[origin]} that left "
            "with the longest departure delay. Which aircraft was it, by tail number, and which "
            "model is that aircraft? Leave the aircraft's own page open when you are done.",
            website=HOST,
            start_url=HOME,
            category="Travel",
            difficulty="medium",
            expected_result=f"{tail}, {model}",
            items=[
                answer("A1_tail_number", f"Says that the aircraft is {tail}.", 30, [tail],
                       match="text", seen=[tail]),
                answer("A2_model", f"Says that its model is {model}.", 50, [model],
                       match="text", seen=[model, tail]),
                page_open("A3_page_open", f"The page of {tail} is open at the end.", 20,
                          f"/nyc/planes/{tail}"),
            ],
            facts=[
                fact(1, f"The longest departure delay of {carrier} at {origin} is {delay} "
                     f"minutes, with {tail}, a {model}.", [tail, model],
                     f"nyc/planes/{tail}", model),
            ],
            solution=[*begin, *add_filter("origin", origin), *finish, *done(say)],
            wrong=wrong,
        )  # fmt: skip


def _compare(connection: sqlite3.Connection) -> Iterator[Draft]:
    cases = (
        ("LGA", ("DL", "UA", "WN", "AA", "B6")),
        ("JFK", ("9E", "AA", "B6", "VX", "UA")),
    )
    for number, (origin, carriers) in enumerate(cases, 1):
        longest = {
            c: _one(connection,
                    "SELECT max(dep_delay) FROM flights WHERE carrier = ? AND origin = ?",
                    c, origin)[0]
            for c in carriers
        }  # fmt: skip
        best = min(longest, key=lambda c: longest[c])
        early = min(carriers[:3], key=lambda c: longest[c])
        assert len(set(longest.values())) == len(carriers)
        assert best != early
        names = {c: _airline(connection, c) for c in carriers}
        listed = ", ".join(f"{names[c]} ({c})" for c in carriers)

        def visit(carriers: Sequence[str], best: str, origin: str = origin) -> Steps:
            current = carriers[0]
            steps = [*open_flights(), *add_filter("origin", origin),
                     *add_filter("carrier", current), *sort_down("dep_delay")]  # fmt: skip
            for carrier in carriers:
                if carrier != current:
                    steps += change_filter("carrier", current, carrier)
                    current = carrier
                if carrier == best:
                    steps += [label("carrier", "name"), cell("dep_delay", "delay")]
            return [*steps, *done("{name}, {delay} minutes")]

        yield Draft(
            task_id=f"flights-compare-{number}",
            template="flights-compare",
            task=f"I fly out of {AIRPORT[origin]} and want the airline with the best worst case. "
            f"Look up the longest departure delay out of {origin} of each of these five airlines: "
            f"{listed}. Which one has the smallest longest delay, and how many minutes is that? "
            "Name only that airline and its minutes.",
            website=HOST,
            start_url=HOME,
            category="Travel",
            difficulty="hard",
            expected_result=f"{names[best]}, {longest[best]} minutes",
            items=[
                answer("A1_airline", f"Names {names[best]}, having seen all five delays.", 60,
                       [f"{names[best]}|OR|{names[best].split()[0]}|OR|{best}"], match="text",
                       seen=[*longest.values()]),
                answer("A2_minutes", f"Says that its longest delay is {longest[best]} minutes.",
                       40, [longest[best]], match="number", seen=[longest[best]]),
            ],
            facts=[
                fact(1, f"Longest departure delays at {origin}: "
                     + ", ".join(f"{c} {m}" for c, m in longest.items()) + " minutes.",
                     list(longest.values()),
                     f"nyc/flights?origin__exact={origin}&_sort_desc=dep_delay"
                     f"&carrier__exact={best}", str(longest[best])),
            ],
            solution=visit(carriers, best),
            wrong=Wrong(
                why="Stops after the first three airlines.",
                solution=visit(carriers[:3], early),
                points=0,
            ),
        )  # fmt: skip


def _weather(connection: sqlite3.Connection) -> Iterator[Draft]:
    for number, (carrier, origin) in enumerate((("UA", "LGA"), ("WN", "EWR")), 1):
        delay, _, _, date = _worst(connection, carrier, origin)
        wind_of = "SELECT max(wind_speed) FROM weather WHERE date = ?"
        (wind,) = _one(connection, wind_of + " AND origin = ?", date, origin)
        (elsewhere,) = _one(connection, wind_of, date)
        assert wind != elsewhere, "another airport had more wind, so that the filter matters"
        airline = _airline(connection, carrier)
        begin = [
            *open_flights(), *add_filter("carrier", carrier), *add_filter("origin", origin),
            *sort_down("dep_delay"), cell("dep_delay", "delay"),
            click("p.crumbs a[href='/nyc']"), click("a[href='/nyc/weather']"),
            *add_filter("date", date),
        ]  # fmt: skip
        finish = [
            *sort_down("wind_speed"), cell("wind_speed", "wind"),
            *done("The delay was {delay} minutes; the highest wind speed was {wind}."),
        ]  # fmt: skip
        yield Draft(
            task_id=f"flights-weather-{number}",
            template="flights-weather",
            task=f"How long was the longest departure delay of {airline} ({carrier}) out of "
            f"{AIRPORT[origin]}, in minutes? And on the date of that flight, what was the "
            f"highest wind speed (wind_speed) that the weather table gives for {origin}?",
            website=HOST,
            start_url=HOME,
            category="Travel",
            difficulty="hard",
            expected_result=f"{delay} minutes; {wind}",
            items=[
                answer("A1_delay", f"Says that the delay was {delay} minutes.", 40, [delay],
                       match="number", seen=[delay]),
                answer("A2_wind", f"Says that the highest wind speed was {wind}.", 60, [wind],
                       match="number", seen=[wind]) | {"facts": ["F2"]},
            ],
            facts=[
                fact(1, f"The longest departure delay of {carrier} at {origin} is {delay} "
                     f"minutes, on {date}.", [delay],
                     f"nyc/flights?carrier__exact={carrier}&origin__exact={origin}"
                     "&_sort_desc=dep_delay", str(delay)),
                fact(2, f"The highest wind speed at {origin} on {date} is {wind}.", [wind],
                     f"nyc/weather?date__exact={date}&origin__exact={origin}"
                     "&_sort_desc=wind_speed", str(wind)),
            ],
            solution=[*begin, *add_filter("origin", origin), *finish],
            wrong=Wrong(
                why=f"Takes the wind of whichever airport had most, not that of {origin}.",
                solution=[*begin, *finish],
                points=40,
            ),
        )  # fmt: skip


_SIX = """
    SELECT f.dep_delay, f.tailnum, p.year FROM flights f LEFT JOIN planes p USING (tailnum)
    WHERE carrier = ? AND origin = ? AND date = ? ORDER BY f.dep_delay DESC LIMIT 7
"""


def _oldest(connection: sqlite3.Connection) -> Iterator[Draft]:
    cases = (("UA", "EWR", "2013-01-04"), ("DL", "JFK", "2013-01-13"), ("B6", "JFK", "2013-01-10"))
    for number, (carrier, origin, date) in enumerate(cases, 1):
        rows = connection.execute(_SIX, (carrier, origin, date)).fetchall()
        years = [year for _, _, year in rows[:6]]
        assert len({delay for delay, _, _ in rows}) == 7, "the first six are certain"
        assert None not in years
        assert years.count(min(years)) == 1
        place = years.index(min(years))
        assert place >= 3, "who looks at the first three misses it"
        tail, year = rows[place][1:]
        begin = [
            *open_flights(), *add_filter("carrier", carrier), *add_filter("origin", origin),
            *add_filter("date", date), *sort_down("dep_delay"),
        ]  # fmt: skip
        # The oracle knows which one it is and looks at it last, so that its page stays open.
        order = [n for n in range(6) if n != place] + [place]
        early = sorted(range(3), key=lambda n: -years[n])
        assert years[early[-1]] != year
        yield Draft(
            task_id=f"flights-oldest-{number}",
            template="flights-oldest",
            task=f"Take the six flights of {_airline(connection, carrier)} ({carrier}) out of "
            f"{AIRPORT[origin]} on {date} with the longest departure delays, and look up the "
            "aircraft of each. Which of the six aircraft is the oldest? Give its tail number "
            "and the year that it was built, and leave its page open.",
            website=HOST,
            start_url=HOME,
            category="Travel",
            difficulty="hard",
            expected_result=f"{tail}, {year}",
            items=[
                answer("A1_tail_number", f"Names {tail}, having seen the years of all six.", 50,
                       [tail], match="text", seen=[tail, *sorted(set(years))]),
                answer("A2_year", f"Says that it was built in {year}.", 30, [year],
                       match="number", seen=[year]),
                page_open("A3_page_open", f"The page of {tail} is open at the end.", 20,
                          f"/nyc/planes/{tail}"),
            ],
            facts=[
                fact(1, f"Of the six, {tail} is the oldest, built in {year}; the years are "
                     f"{', '.join(map(str, years))}, in order of the delay.", [tail, year],
                     f"nyc/planes/{tail}", str(year)),
            ],
            failures=[
                {"text": "Takes the aircraft of the longest delay, or looks at only some.",
                 "looks_like": "fewer than six aircraft pages"},
            ],
            solution=[*begin, *_look_up(order)],
            wrong=Wrong(
                why="Looks at the first three aircraft only.",
                solution=[*begin, *_look_up(early)],
                points=0,
            ),
        )  # fmt: skip


def _look_up(order: list[int]) -> Steps:
    """Open the aircraft of these rows one after the other, and name the last one."""
    steps: Steps = []
    for place, row in enumerate(order):
        if place:
            steps.append({"back": True})
        steps += [click(f"{ROWS} td.col-tailnum a", row), {"wait": {"text": "planes: "}}]
    return [*steps, cell("tailnum", "tail"), cell("year", "year"), *done("{tail}, built in {year}")]
