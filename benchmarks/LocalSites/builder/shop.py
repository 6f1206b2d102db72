"""Tasks on shop.test. Answers and wanted states come from the code that fills the shop.

Templates, by the length of the path:

    detail     two attributes from the page of one product                        easy
    filter     the cheapest product of a department under conditions              medium
    compare    an attribute that only the pages of the products show              medium
    cancel     the one waiting order with a certain product in it                 medium
    cart       goods and the coupon that the help page describes                  hard
    order      goods to an address, with a delivery and a gift note               hard
    reorder    the goods of an earlier order once more                            hard
    return     some of a product of an older order sent back, its invoice kept    hard
    addresses  one address changed, one added, one deleted, another default       hard
    wishlist   a wish list tidied up                                              hard
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from builder.draft import Draft, Wrong
from builder.shopping import (
    CART_LINES,
    HOME,
    HOST,
    SEED,
    Goods,
    Steps,
    Walk,
    address,
    address_fact,
    address_item,
    answer,
    bill,
    credentials,
    customer,
    delivery_fact,
    delivery_item,
    fact,
    goods_item,
    listed,
    note_item,
    price_fact,
    product,
    quoted,
    rows_of,
    state,
    total_answer,
    wrap_item,
)

from browseruse_bench.sites.shop.account import ORDERS_PER_PAGE
from browseruse_bench.sites.shop.catalogue import Product, catalogue, money, weight
from browseruse_bench.sites.shop.people import COUPONS, Address, Customer, Order, orders
from browseruse_bench.sites.shop.prices import DELIVERIES
from browseruse_bench.sites.shop.words import CATEGORIES


def drafts() -> Iterator[Draft]:
    """All tasks of this site; each template asserts what makes its result unique."""
    yield from _detail()
    yield from _filter()
    yield from _compare()
    yield from _cancel()
    yield from _cart()
    yield from _order()
    yield from _reorder()
    yield from _return()
    yield from _addresses()
    yield from _wishlist()


def _draft(template: str, number: int, **values: Any) -> Draft:
    return Draft(
        task_id=f"shop-{template}-{number}",
        template=f"shop-{template}",
        website=HOST,
        start_url=HOME,
        category="Shopping",
        **values,
    )


# Looking around


def _detail() -> Iterator[Draft]:
    cases = (("Oakmere Jetty Kettle", "Norrvik Basalt Kettle"), ("Quillon Yarrow Pannier", None))
    for number, (name, mistaken) in enumerate(cases, 1):
        it = product(name)
        grams, years = weight(it.weight_g), it.spec("Warranty")
        if mistaken:
            other = product(mistaken)
            assert weight(other.weight_g) != grams
            assert other.spec("Warranty") != years
            wrong = Wrong(
                why=f"Reads the page of {mistaken}, another {it.kind.lower()}.",
                solution=_read_details(Walk().enter().search(it.kind).open(mistaken)),
                points=0,
            )
        else:
            wrong = Wrong(
                why="Takes the size for the weight.",
                solution=Walk().enter().find(name).done(f"{it.size}, warranty {years}"),
                points=40,
            )
        yield _draft(
            "detail",
            number,
            task=f"I am thinking about the {name} from Larkfield. How much does it weigh, and "
            "how long is its warranty?",
            difficulty="easy",
            expected_result=f"{grams}; {years}",
            items=[
                answer("A1_weight", f"Says that it weighs {grams}.", 60,
                       [f"{grams}|OR|{it.weight_g} g|OR|{it.weight_g:,} g"], seen=[grams]),
                answer("A2_warranty", f"Says that the warranty is {years}.", 40, [years]),
            ],
            facts=[
                fact(1, f"{name} weighs {grams} and has a warranty of {years}.", [grams, years],
                     f"product/{it.slug}", f"Warranty {years}"),
            ],
            solution=_read_details(Walk().enter().find(name)),
            wrong=wrong,
        )  # fmt: skip


def _read_details(walk: Walk) -> Steps:
    row = "main table tr:nth-child({}) td"
    walk.extract(row.format(3), "weight").extract(row.format(7), "warranty")
    return walk.done("It weighs {weight} and has a warranty of {warranty}.")


def _filter() -> Iterator[Draft]:
    for number, slug in enumerate(("camping", "bags"), 1):
        (department,) = (c.name for c in CATEGORIES if c.slug == slug)
        good = sorted(
            (p for p in catalogue(SEED) if p.category == slug and p.rating >= 4),
            key=lambda p: p.price_cents,
        )
        sold_out, best, dearer = *good[:1], *[p for p in good if p.stock][:2]
        assert sold_out.stock == 0, "who forgets the stock takes another product"
        assert sold_out.price_cents < best.price_cents < dearer.price_cents
        query = f"category/{slug}?rating=4&in_stock=yes&sort=price"
        yield _draft(
            "filter",
            number,
            task=f"Which is the cheapest product in Larkfield's department {department} that is "
            "rated 4 or better and that I can order right now? Give me its name and its price.",
            difficulty="medium",
            expected_result=f"{best.name}, {best.price}",
            items=[
                answer("A1_name", f"Names {best.name}.", 60, [best.name]),
                answer("A2_price", f"Says that it costs {best.price}.", 40,
                       [best.price_cents / 100], match="number"),
            ],
            facts=[
                fact(1, f"{best.name} at {best.price} is the cheapest product of {department} "
                     "that is in stock and rated 4 or better.", [best.name, best.price],
                     query, best.name),
            ],
            failures=[
                {"text": "Takes a product that is sold out.", "looks_like": sold_out.name},
            ],
            solution=_narrow(department, in_stock=True),
            wrong=Wrong(
                why=f"Forgets the stock: {sold_out.name} is cheaper and sold out.",
                solution=_narrow(department, in_stock=False),
                points=0,
            ),
        )  # fmt: skip


def _narrow(department: str, *, in_stock: bool) -> Steps:
    walk = Walk().enter().follow(department).listing()
    walk.select("Rating", "4 and up").select("Sort by", "Price, lowest first")
    if in_stock:
        walk.steps.append({"click": {"role": "checkbox", "name": "In stock only"}})
    walk.press("Apply").listing()
    walk.extract(".card h2", "name").extract(".card .price", "price")
    return walk.done("{name} for {price}.")


def _compare() -> Iterator[Draft]:
    cases = (("Lantern", "Burn time", "burns the longest", "Which of them {}, and how long?"),)
    for number, (kind, label, phrase, question) in enumerate(cases, 1):
        goods = [p for p in catalogue(SEED) if p.kind == kind]
        longest, second, _ = sorted(goods, key=lambda p: -_figure(p, label))
        assert _figure(longest, label) > _figure(second, label)
        favourite = max(goods, key=lambda p: p.rating)
        assert favourite is not longest, "who goes by the rating takes another product"
        found, last = longest.spec(label), longest.name
        others = [p.name for p in goods if p is not longest]
        yield _draft(
            "compare",
            number,
            task=f"Larkfield sells three different {kind.lower()}s. {question.format(phrase)} "
            "Tell me its name, that figure and its price.",
            difficulty="medium",
            expected_result=f"{last}, {found}, {longest.price}",
            items=[
                answer("A1_name", f"Names {last}, having seen the figure of each.", 50, [last],
                       seen=[last, *(p.spec(label) for p in goods)]),
                answer("A2_figure", f"Says {found}.", 30, [found]),
                answer("A3_price", f"Says that it costs {longest.price}.", 20,
                       [longest.price_cents / 100], match="number"),
            ],
            facts=[
                fact(1, f"{label}: " + ", ".join(f"{p.name} {p.spec(label)}" for p in goods) + ".",
                     [last, found, longest.price], f"product/{longest.slug}",
                     f"{label} {found}"),
            ],
            solution=_look_at(kind, [*others, last]),
            wrong=Wrong(
                why=f"Goes by the rating and takes {favourite.name}.",
                solution=_look_at(kind, [favourite.name]),
                points=0,
            ),
        )  # fmt: skip


def _figure(it: Product, label: str) -> int:
    return int(it.spec(label).split()[0])


def _look_at(kind: str, names: list[str]) -> Steps:
    """Open these products of a kind, and tell of the last one."""
    walk = Walk().enter().search(kind.lower())
    for name in names[:-1]:
        walk.open(name).back(1, "Search results for")
        # Going back shows the list for the second time, with the newsletter over it.
        walk.listing()
    walk.open(names[-1]).extract("h1", "name").extract("main .price", "price")
    walk.extract("main table tr:nth-child(5) td", "figure")
    return walk.done("{name}: {figure}, {price}.")


# Orders that are there


def _order_with(person: Customer, name: str) -> tuple[Order, int, int]:
    """The customer's one order with this product, its page of the list, and the quantity."""
    mine = [o for o in reversed(orders(SEED)) if o.customer == person.email]
    (found,) = (o for o in mine if any(x.product.name == name for x in o.lines))
    (line,) = (x for x in found.lines if x.product.name == name)
    return found, mine.index(found) // ORDERS_PER_PAGE + 1, line.quantity


def _cancel() -> Iterator[Draft]:
    cases = (("Mara", "Havnes Prism Garden Hose"), ("Inês", "Talbeck Moss Frying Pan"))
    for number, (first_name, name) in enumerate(cases, 1):
        person = customer(first_name)
        target, page, _ = _order_with(person, name)
        waiting = [
            o for o in orders(SEED) if o.customer == person.email and o.status == "processing"
        ]
        other = next(o for o in waiting if o is not target)
        assert target in waiting
        assert page == 1
        assert len(waiting) == 3
        cents = bill(
            tuple((x.product.name, x.quantity) for x in target.lines), delivery=target.delivery
        )
        ids = f"SELECT id FROM customers WHERE email = {quoted(person.email)}"
        yield _draft(
            "cancel",
            number,
            task=f"{credentials(person)} Three of my orders at Larkfield are still processing. "
            f"Please cancel the one that contains the {name}, and leave the others alone. How "
            "much was the total of the cancelled order?",
            difficulty="medium",
            expected_result=f"{target.number} is cancelled; {money(cents)}",
            items=[
                state("A1_cancelled", f"Of the three orders exactly {target.number} is cancelled.",
                      70, "SELECT number FROM orders WHERE status = 'cancelled' AND number IN ("
                      + ", ".join(quoted(o.number) for o in waiting)
                      + f") AND customer_id IN ({ids})", [[target.number]]),
                total_answer("A2_total", 30, cents),
            ],
            facts=[
                fact(1, f"{name} is in {target.number}, whose total is {money(cents)}.",
                     [target.number, money(cents)], f"orders/{target.number}", money(cents)),
            ],
            failures=[
                {"text": "Dismisses the question whether to cancel.",
                 "looks_like": "the order's page still says processing"},
            ],
            solution=_cancel_orders(person, [target.number]),
            wrong=Wrong(
                why=f"Cancels {other.number} as well.",
                solution=_cancel_orders(person, [other.number, target.number]),
                points=30,
            ),
        )  # fmt: skip


def _cancel_orders(person: Customer, numbers: list[str]) -> Steps:
    walk = Walk().enter().sign_in(person)
    for number in numbers:
        walk.orders().order(number)
        walk.steps.append({"dialog": {"accept": True}})
        walk.press("Cancel this order").wait("The order was cancelled.")
    walk.extract("td.price", "total")
    return walk.done("The order is cancelled; its total was {total}.")


def _return() -> Iterator[Draft]:
    cases = (
        ("Mara", "Juniper & Row Lark Building Set", 2, "No longer needed", "Refund"),
        ("Pavel", "Oakmere Juno Water Filter", 2, "Not as described", "Replacement"),
    )
    for number, (first_name, name, n, reason, resolution) in enumerate(cases, 1):
        person = customer(first_name)
        mine = [o for o in orders(SEED) if o.customer == person.email and o.status == "delivered"]
        (target,) = (o for o in mine if any(x.product.name == name for x in o.lines))
        every = [o for o in reversed(orders(SEED)) if o.customer == person.email]
        page = every.index(target) // ORDERS_PER_PAGE + 1
        (bought,) = (x.quantity for x in target.lines if x.product.name == name)
        assert 1 < n < bought, "neither what the form offers nor all of it"
        assert sum(x.product.name == name for o in mine for x in o.lines) == 1
        walk = [Walk().enter().sign_in(person).orders(page).order(target.number) for _ in "ab"]
        yield _draft(
            "return",
            number,
            task=f"{credentials(person)} I want to send back {n} of the {bought} {name}s from "
            f"the order that was delivered to me; the reason is “{reason}”, and I would like a "
            f"{resolution.lower()}. Please request that return at Larkfield, and download the "
            "invoice of that order as well.",
            difficulty="hard",
            expected_result=f"{n} × {name} of {target.number} returned",
            items=[
                state("A1_goods", f"The only return is of {n} × {name}.", 40,
                      """SELECT p.name, r.quantity FROM returns r
                         JOIN order_lines l ON l.id = r.order_line_id
                         JOIN products p ON p.id = l.product_id ORDER BY r.id""",
                      [[name, n]]),
                state("A2_reason", f"The reason is “{reason}”.", 20,
                      "SELECT reason FROM returns", [[reason]]),
                state("A3_resolution", f"What is asked for is a {resolution.lower()}.", 20,
                      "SELECT resolution FROM returns", [[resolution]]),
                {"id": "A4_invoice", "requirement": f"The invoice of {target.number} was "
                 "downloaded.", "facts": ["F1"], "weight": 20,
                 "check": {"kind": "file", "name": f"invoice-{target.number}*.csv",
                           "host": "shop.test", "contains": f"{target.number},TOTAL"}},
            ],
            facts=[
                fact(1, f"{target.number} was delivered with {bought} × {name}.",
                     [target.number, name], f"orders/{target.number}", name),
            ],
            solution=_send_back(walk[0], name, n, reason, resolution),
            wrong=Wrong(
                why="Leaves the quantity at 1, which the form offers.",
                solution=_send_back(walk[1], name, 1, reason, resolution),
                points=60,
            ),
        )  # fmt: skip


def _send_back(walk: Walk, name: str, n: int, reason: str, resolution: str) -> Steps:
    walk.steps.append({"download": {"as": "invoice"}})
    walk.follow("Download the invoice").follow("Return an item").wait("Which item?").choose(name)
    if n != 1:
        walk.write("Quantity", str(n), role="spinbutton")
    walk.select("Reason", reason).choose(resolution)
    walk.press("Request the return").wait("The return was requested.")
    return walk.done("The return is requested; the invoice is {invoice}.")


# New orders


def _cart() -> Iterator[Draft]:
    cases: tuple[tuple[Goods, str, str], ...] = (
        ((("Lumora Nimbus Watering Can", 3), ("Pellworth North Card Game", 2)), "GREEN15",
         "garden goods"),
        ((("Norrvik Ridge Bike Light", 2), ("Talbeck Heron Lantern", 3)), "RIDE20",
         "cycling goods"),
    )  # fmt: skip
    mistaken = next(c for c in COUPONS if c.code == "WELCOME10")
    for number, (goods, code, what) in enumerate(cases, 1):
        (coupon,) = (c for c in COUPONS if c.code == code)
        cents = bill(goods, coupon=coupon)
        assert len({bill(goods), cents, bill(goods, coupon=mistaken)}) == 3
        yield _draft(
            "cart",
            number,
            task=f"Please fill a cart at Larkfield with {listed(goods)}. The help page tells of "
            f"a coupon for {what}: apply that one to the cart. You need not sign in, and do not "
            "order anything yet. What is the total that the cart shows then?",
            difficulty="hard",
            expected_result=money(cents),
            items=[
                state("A1_goods", f"The cart holds {listed(goods)} and nothing else.", 50,
                      CART_LINES, rows_of(goods), "F1", "F2"),
                state("A2_coupon", f"The coupon of the cart with these goods is {code}.", 30,
                      "SELECT DISTINCT coupon_code FROM carts k JOIN cart_lines l"
                      " ON l.cart_id = k.id", [[code]], "F3"),
                total_answer("A3_total", 20, cents, "F3"),
            ],
            facts=[
                *(price_fact(n, name) for n, (name, _) in enumerate(goods, 1)),
                fact(3, f"{code} gives {coupon.description}.", [code], "help",
                     f"{code} {coupon.description}"),
            ],
            solution=_fill(goods, code),
            wrong=Wrong(
                why=f"Applies {mistaken.code}, which is for everything, not for {what}.",
                solution=_fill(goods, mistaken.code),
                points=50,
            ),
        )  # fmt: skip


def _fill(goods: Goods, code: str) -> Steps:
    walk = Walk().enter().follow("Help").wait("Coupons").collect(goods)
    walk.write("Coupon code", code).press("Apply coupon").wait("The coupon was applied.")
    return walk.extract("td.price", "total").done("The total is {total}.")


def _order() -> Iterator[Draft]:
    cases: tuple[tuple[str, Goods, str, str, str], ...] = (
        ("Mara", (("Astrelle Onyx Card Game", 2), ("Lumora Aurora Jigsaw Puzzle", 1)), "Parents",
         "express", "Happy birthday, Elsa!"),
        ("Tomas", (("Quillon Zephyr Lantern", 4), ("Norrvik Moss Bird Feeder", 1)), "Grandmother",
         "evening", "For the long evenings"),
    )  # fmt: skip
    for number, (first_name, goods, label, delivery, note) in enumerate(cases, 1):
        person = customer(first_name)
        to = address(person, label)
        fewer = ((goods[0][0], 1), *goods[1:])
        cents = bill(goods, delivery=delivery, wrap=True)
        assert cents != bill(fewer, delivery=delivery, wrap=True)
        assert all(product(name).stock >= int(n) for name, n in goods)
        way = DELIVERIES[delivery].name.lower()
        yield _draft(
            "order",
            number,
            task=f"{credentials(person)} Then order {listed(goods)} at Larkfield for me, as one "
            f"order. It is a present: send it to my saved address “{label}” by {way}, have it "
            f"gift wrapped, and put exactly this on the gift note: {note} When the order is "
            "placed, tell me the total.",
            difficulty="hard",
            expected_result=money(cents),
            items=[
                goods_item("A1_goods", 35, goods, "F1", "F2"),
                address_item("A2_address", 25, person, to, "F3"),
                delivery_item("A3_delivery", 15, delivery, "F4"),
                wrap_item("A4_wrap", 5, "F1", wrapped=True),
                note_item("A5_note", 10, note, "F1"),
                total_answer("A6_total", 10, cents, "F1", "F2", "F4"),
            ],
            facts=[
                *(price_fact(n, name) for n, (name, _) in enumerate(goods, 1)),
                address_fact(3, person, to),
                delivery_fact(4, delivery),
            ],
            solution=_buy(person, goods, label, delivery, note),
            wrong=Wrong(
                why=f"Orders one {goods[0][0]} only.",
                solution=_buy(person, fewer, label, delivery, note),
                points=55,
            ),
        )  # fmt: skip


def _buy(person: Customer, goods: Goods, label: str, delivery: str, note: str) -> Steps:
    walk = Walk().enter().sign_in(person).collect(goods)
    walk.check_out(label, delivery, wrap=True, note=note)
    walk.extract("main", "total", r"Total: (€[\d.]+)")
    return walk.done("The order is placed; the total is {total}.")


def _reorder() -> Iterator[Draft]:
    for number, (first_name, label) in enumerate((("Pavel", "Cabin"),), 1):
        person = customer(first_name)
        to = address(person, label)
        mine = [o for o in reversed(orders(SEED)) if o.customer == person.email]
        target, earlier = [o for o in mine if o.address == to][:2]
        goods, old = (
            tuple((x.product.name, x.quantity) for x in o.lines) for o in (target, earlier)
        )
        assert dict(goods).keys() != dict(old).keys()
        assert all(product(name).stock >= n for name, n in (*goods, *old))
        page = mine.index(target) // ORDERS_PER_PAGE + 1
        yield _draft(
            "reorder",
            number,
            task=f"{credentials(person)} Look up my latest order at Larkfield that went to "
            f"{to.street} in {to.city}, and order the same goods in the same quantities once "
            f"more. They go to that address again (it is saved as “{label}”), this time by "
            "express delivery, as no present.",
            difficulty="hard",
            expected_result=listed(goods),
            items=[
                goods_item("A1_goods", 50, goods, "F1"),
                address_item("A2_address", 30, person, to, "F1"),
                delivery_item("A3_delivery", 20, "express", "F2"),
            ],
            facts=[
                fact(1, f"The latest order to {to.street} is {target.number}, of {listed(goods)}.",
                     [target.number, to.street, *dict(goods)], f"orders/{target.number}",
                     to.street),
                delivery_fact(2, "express"),
            ],
            failures=[
                {"text": "Repeats an order to that address which is not the latest.",
                 "looks_like": earlier.number},
            ],
            solution=_again(person, page, target, goods, label),
            wrong=Wrong(
                why=f"Repeats {earlier.number}, an earlier order to the same address.",
                solution=_again(
                    person, mine.index(earlier) // ORDERS_PER_PAGE + 1, earlier, old, label
                ),
                points=50,
            ),
        )  # fmt: skip


def _again(person: Customer, page: int, order: Order, goods: Goods, label: str) -> Steps:
    walk = Walk().enter().sign_in(person).orders(page).order(order.number)
    for place, (name, n) in enumerate(goods):
        if place:
            # From the cart over the product's page back to the order.
            walk.back(1, "Newest reviews").back(1, f"Order {order.number}")
        walk.open(name).add(n)
    walk.check_out(label, "express")
    return walk.done(f"{listed(goods)} ordered again.")


# The account


def _addresses() -> Iterator[Draft]:
    cases = (
        ("Mara", "Home", Address(label="Home", recipient="Mara Lindqvist", street="Fyrgatan 52",
         postcode="41811", city="Vinterhamn"), Address(label="Boathouse", recipient="Nils Berg",
         street="Pier 4", postcode="43022", city="Sandvik"), "Parents", "Work"),
        ("Tomas", "Office", Address(label="Office", recipient="Tomas Oyelaran",
         street="Signal Street 9", postcode="20611", city="Osterbrook"), Address(label="Sister",
         recipient="Yemi Oyelaran", street="Chapel Hill 31", postcode="24017", city="Marwick"),
         "Allotment", "Grandmother"),
    )  # fmt: skip
    for number, (first_name, label, moved, new, gone, default) in enumerate(cases, 1):
        person = customer(first_name)
        before = address(person, label)
        assert before.recipient == moved.recipient
        assert {before.street, before.postcode}.isdisjoint({moved.street, moved.postcode})
        assert person.addresses[0].label != default
        walks = [_tidy(person, before, moved, new, gone, d) for d in (default, None)]
        yield _draft(
            "addresses",
            number,
            task=f"{credentials(person)} Please bring my address book at Larkfield up to date. "
            f"“{label}” has moved to {moved.street}, {moved.postcode} {moved.city}. Add a new "
            f"address with the label “{new.label}”: {new.recipient}, {new.street}, "
            f"{new.postcode} {new.city}. Delete “{gone}”. And make “{default}” the default "
            "address.",
            difficulty="hard",
            items=[
                _address_item("A1_moved", 30, person, moved),
                _address_item("A2_added", 30, person, new),
                state("A3_deleted", f"“{gone}” is no longer in the address book.", 20,
                      f"SELECT count(*) FROM addresses WHERE customer_id = {person.id}"
                      f" AND label = {quoted(gone)}", [[0]]),
                state("A4_default", f"“{default}” is the default address.", 20,
                      f"SELECT label FROM addresses WHERE customer_id = {person.id}"
                      " AND is_default", [[default]]),
            ],
            facts=[address_fact(1, person, before)],
            solution=walks[0],
            wrong=Wrong(
                why="Forgets about the default address.", solution=walks[1], points=80
            ),
        )  # fmt: skip


def _address_item(item: str, points: int, person: Customer, to: Address) -> dict[str, Any]:
    return state(
        item,
        f"“{to.label}” is {to.recipient}, {to.street}, {to.postcode} {to.city}.",
        points,
        f"SELECT recipient, street, postcode, city FROM addresses WHERE customer_id = {person.id}"
        f" AND label = {quoted(to.label)}",
        [[to.recipient, to.street, to.postcode, to.city]],
    )


def _tidy(
    person: Customer, before: Address, moved: Address, new: Address, gone: str, default: str | None
) -> Steps:
    walk = Walk().enter().sign_in(person).follow("Account").follow("Address book")
    walk.follow(f"Edit {moved.label}").wait("Save address")
    walk.write("Street and number", moved.street).write("Postcode", moved.postcode)
    if moved.city != before.city:
        walk.write("City", moved.city)
    walk.press("Save address").wait("The address was saved.")
    walk.follow("Add an address").wait("Save address")
    walk.write("Label", new.label).write("Recipient", new.recipient)
    walk.write("Street and number", new.street).write("Postcode", new.postcode)
    walk.write("City", new.city).press("Save address").wait("The address was saved.")
    walk.press(f"Delete {gone}").wait("The address was deleted.")
    if default:
        walk.press(f"Make {default} the default").wait("The default address was changed.")
    return walk.done("The address book is up to date.")


def _wishlist() -> Iterator[Draft]:
    cases = (
        ("Inês", 70, ("Norrvik Orbit Speaker", "Havnes Willow Board Game"),
         "Juniper & Row Iris Mixing Bowl"),
    )  # fmt: skip
    for number, (first_name, limit, added, moved) in enumerate(cases, 1):
        person = customer(first_name)
        dear = sorted(
            (p for p in person.wishlist if p.price_cents > limit * 100),
            key=lambda p: -p.price_cents,
        )
        kept = [p.name for p in person.wishlist if p not in dear and p.name != moved]
        assert len(dear) == 2
        assert product(moved) in person.wishlist
        assert product(moved) not in dear
        assert not {product(name) for name in added} & set(person.wishlist)
        mine = (
            "SELECT p.name FROM wishlist_items w JOIN products p ON p.id = w.product_id"
            f" WHERE w.customer_id = {person.id}"
        )
        new_names = ", ".join(quoted(name) for name in added)
        yield _draft(
            "wishlist",
            number,
            task=f"{credentials(person)} Please tidy up my wish list at Larkfield: take off "
            f"everything that costs more than €{limit}, move the {moved} into my cart, and add "
            f"the {added[0]} and the {added[1]}. Everything else stays on the list.",
            difficulty="hard",
            items=[
                state("A1_left", "Beside what was to be added or moved, exactly "
                      f"{' and '.join(kept)} are left on the list.", 45, mine + f" AND p.name NOT IN ("
                      f"{new_names}, {quoted(moved)}) ORDER BY p.name",
                      [[name] for name in sorted(kept)], "F1", "F2"),
                state("A2_added", f"{added[0]} and {added[1]} are on the list.", 30,
                      mine + f" AND p.name IN ({new_names}) ORDER BY p.name",
                      [[name] for name in sorted(added)], "F3", "F4"),
                state("A3_moved", f"One {moved} is in the cart instead of on the list.", 25,
                      f"{CART_LINES.rpartition('ORDER')[0]} UNION ALL "
                      f"{mine.replace('p.name', 'p.name, 0', 1)} AND p.name = {quoted(moved)}",
                      [[moved, 1]], "F5"),
            ],
            facts=[
                price_fact(n, name)
                for n, name in enumerate((*(p.name for p in dear), *added, moved), 1)
            ],
            solution=_tidy_wishes(person, dear, moved, added),
            wrong=Wrong(
                why=f"Takes off only {dear[0].name}, the dearest.",
                solution=_tidy_wishes(person, dear[:1], moved, added),
                points=55,
            ),
        )  # fmt: skip


def _tidy_wishes(
    person: Customer, dear: list[Product], moved: str, added: tuple[str, ...]
) -> Steps:
    walk = Walk().enter().sign_in(person).follow("Wish list").wait(dear[0].name)
    for place, it in enumerate(dear):
        walk.press(f"Remove {it.name}")
        # The notice stays the same, so what tells the next page from this one is its address.
        if place + 1 < len(dear):
            walk.wait("The item was taken off your wish list.")
    walk.wait("The item was taken off your wish list.")
    walk.press(f"Move {moved} to cart").wait("The item was added to your cart.")
    for name in added:
        walk.find(name).press("Add to wish list").wait("The item is on your wish list.")
    return walk.done("The wish list is tidied up.")
