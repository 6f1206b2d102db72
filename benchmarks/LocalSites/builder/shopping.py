"""How a customer walks through shop.test, and how a rubric looks into its database."""

from __future__ import annotations

from typing import Any

from browseruse_bench.sites.shop import prices
from browseruse_bench.sites.shop.catalogue import Product, catalogue, money
from browseruse_bench.sites.shop.people import Address, Coupon, Customer, customers, orders

HOST = "shop.test"
HOME = f"http://{HOST}/"
CHECKED_ON = "2026-11-30"
SEED = 0
"""The harness starts every site with this seed."""
LAST_ORDER = len(orders(SEED))
"""Id of the newest order before an attempt: those of the attempt have higher ones."""

Steps = list[dict[str, Any]]
Goods = tuple[tuple[str, int | str], ...]
"""Names of products with quantities; a text in place of a number names what was extracted."""


def product(name: str) -> Product:
    (found,) = (p for p in catalogue(SEED) if p.name == name)
    return found


def customer(first_name: str) -> Customer:
    (found,) = (c for c in customers(SEED) if c.name.split()[0] == first_name)
    return found


def address(person: Customer, label: str) -> Address:
    (found,) = (a for a in person.addresses if a.label == label)
    return found


def bill(
    goods: Goods, *, coupon: Coupon | None = None, delivery: str | None = None, wrap: bool = False
) -> int:
    """What these goods cost, in cents."""
    lines = [
        prices.Priced(
            category=product(name).category, unit_cents=product(name).price_cents, quantity=int(n)
        )
        for name, n in goods
    ]
    discount = coupon and prices.Discount(
        percent=coupon.percent, category=coupon.category, minimum_cents=coupon.minimum_cents
    )
    return prices.total(lines, discount=discount, delivery=delivery, gift_wrap=wrap).total


def credentials(person: Customer) -> str:
    return f"Sign in as {person.email} with the password {person.password}."


class Walk:
    """The actions of a visitor, in order; it knows when the shop shows its layers."""

    def __init__(self) -> None:
        self.steps: Steps = []
        self._n_listings = 0

    def enter(self) -> Walk:
        """Open the shop and answer the question about cookies."""
        self.steps.append({"navigate": HOME})
        return self.press("Only necessary")

    def sign_in(self, person: Customer) -> Walk:
        self.follow("Sign in").wait("E-mail address")
        self.write("E-mail address", person.email).write("Password", person.password)
        return self.press("Sign in to your account").wait("You are signed in.")

    def listing(self) -> Walk:
        """A list of products was opened; with the second one comes the newsletter."""
        self._n_listings += 1
        if self._n_listings == 2:
            self.wait("News from Larkfield").press("No thanks")
        return self

    def search(self, words: str) -> Walk:
        box = {"role": "searchbox", "name": "Search the shop"}
        self.steps += [{"type": {"into": box, "text": words}}, {"key": "Enter"}]
        return self.wait(f"Search results for “{words}”").listing()

    def find(self, name: str) -> Walk:
        """The page of a product, through the search."""
        return self.search(name).open(name)

    def open(self, name: str) -> Walk:
        return self.follow(name).wait("Newest reviews")

    def add(self, quantity: int | str) -> Walk:
        """Put the product of this page into the cart."""
        if quantity != 1:
            self.write("Quantity", str(quantity), role="spinbutton")
        return self.press("Add to cart").wait("The item was added to your cart.")

    def collect(self, goods: Goods) -> Walk:
        for name, quantity in goods:
            self.find(name).add(quantity)
        return self

    def check_out(
        self, label: str, delivery: str, *, wrap: bool = False, note: str | None = None
    ) -> Walk:
        """From the cart to a placed order."""
        self.follow("Go to checkout").wait("step 1 of 3").choose(label)
        self.press("Continue to delivery").wait("step 2 of 3")
        if delivery != "standard":
            self.choose(prices.DELIVERIES[delivery].name)
        if wrap:
            self.steps.append({"click": {"role": "checkbox", "name": "Gift wrap"}})
        if note is not None:
            self.write("Gift note", note)
        self.press("Continue to review").wait("step 3 of 3")
        return self.press("Place order").wait("Thank you")

    def orders(self, page: int = 1) -> Walk:
        self.follow("Orders").wait("Placed on")
        for n in range(2, page + 1):
            self.follow("Next page").wait(f"Page {n} of")
        return self

    def order(self, number: str) -> Walk:
        return self.follow(number).wait(f"Order {number}")

    def follow(self, name: str) -> Walk:
        self.steps.append({"click": {"role": "link", "name": name}})
        return self

    def press(self, name: str) -> Walk:
        self.steps.append({"click": {"role": "button", "name": name}})
        return self

    def choose(self, name: str) -> Walk:
        self.steps.append({"click": {"role": "radio", "name": name}})
        return self

    def write(self, name: str, text: str, *, role: str = "textbox") -> Walk:
        self.steps.append({"type": {"into": {"role": role, "name": name}, "text": text}})
        return self

    def select(self, name: str, option: str) -> Walk:
        self.steps.append({"select": {"in": {"role": "combobox", "name": name}, "option": option}})
        return self

    def back(self, n: int, text: str) -> Walk:
        """Go back `n` pages, to one with this text."""
        self.steps += [{"back": True}] * n
        return self.wait(text)

    def wait(self, text: str) -> Walk:
        self.steps.append({"wait": {"text": text}})
        return self

    def extract(self, css: str, name: str, regex: str | None = None) -> Walk:
        about = {"css": css, "as": name} | ({"regex": regex} if regex else {})
        self.steps.append({"extract": about})
        return self

    def done(self, text: str) -> Steps:
        return [*self.steps, {"done": text}]


# Rubrics


def state(
    item: str, requirement: str, weight: int, sql: str, rows: list[list[Any]], *facts: str
) -> dict[str, Any]:
    check = {"kind": "state", "site": HOST, "sql": " ".join(sql.split()), "equals": rows}
    return _item(item, requirement, weight, facts, check)


def answer(
    item: str, requirement: str, weight: int, values: list[Any], *facts: str, **check: Any
) -> dict[str, Any]:
    return _item(item, requirement, weight, facts, {"kind": "answer", "values": values, **check})


def _item(
    item: str, requirement: str, weight: int, facts: tuple[str, ...], check: dict[str, Any]
) -> dict[str, Any]:
    return {
        "id": item,
        "requirement": requirement,
        "facts": list(facts or ("F1",)),
        "weight": weight,
        "check": check,
    }


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


def price_fact(number: int, name: str) -> dict[str, Any]:
    """That a product is sold, at which price."""
    found = product(name)
    claim = f"{name} is sold for {found.price}; {found.stock} are in stock."
    return fact(number, claim, [name, found.price], f"product/{found.slug}", name)


def total_answer(item: str, weight: int, cents: int, *facts: str) -> dict[str, Any]:
    requirement = f"Says that the total is {money(cents)}."
    return answer(item, requirement, weight, [cents / 100], *facts, match="number")


def quoted(text: str) -> str:
    """A text as a literal of SQL."""
    return "'" + text.replace("'", "''") + "'"


_NEW = f"o.id > {LAST_ORDER} AND o.status = 'processing'"
NEW_LINES = f"""
    SELECT p.name, l.quantity FROM orders o JOIN order_lines l ON l.order_id = o.id
    JOIN products p ON p.id = l.product_id WHERE {_NEW} ORDER BY p.name
"""
NEW_ADDRESS = f"""
    SELECT c.email, o.recipient, o.street, o.postcode, o.city FROM orders o
    JOIN customers c ON c.id = o.customer_id WHERE {_NEW}
"""
NEW_DELIVERY = f"SELECT o.delivery FROM orders o WHERE {_NEW}"
NEW_NOTE = f"SELECT o.gift_note FROM orders o WHERE {_NEW}"
NEW_WRAP = f"SELECT o.gift_wrap FROM orders o WHERE {_NEW}"
CART_LINES = """
    SELECT p.name, l.quantity FROM cart_lines l JOIN products p ON p.id = l.product_id
    ORDER BY p.name
"""


def rows_of(goods: Goods) -> list[list[Any]]:
    """The lines of a cart or an order in the order of NEW_LINES and CART_LINES."""
    return [[name, n] for name, n in sorted(goods)]


def listed(goods: Goods) -> str:
    return " and ".join(f"{n} × {name}" for name, n in goods)


def goods_item(item: str, weight: int, goods: Goods, *facts: str) -> dict[str, Any]:
    requirement = f"Exactly one new order is placed, of {listed(goods)} and nothing else."
    return state(item, requirement, weight, NEW_LINES, rows_of(goods), *facts)


def address_item(
    item: str, weight: int, person: Customer, to: Address, *facts: str
) -> dict[str, Any]:
    requirement = f"{person.name}'s new order goes to {to.recipient}, {to.street}."
    row = [person.email, to.recipient, to.street, to.postcode, to.city]
    return state(item, requirement, weight, NEW_ADDRESS, [row], *facts)


def note_item(item: str, weight: int, note: str, *facts: str) -> dict[str, Any]:
    requirement = f"The gift note of the new order is: {note}"
    return state(item, requirement, weight, NEW_NOTE, [[note]], *facts)


def wrap_item(item: str, weight: int, *facts: str, wrapped: bool) -> dict[str, Any]:
    requirement = f"The new order goes {'gift wrapped' if wrapped else 'unwrapped'}."
    return state(item, requirement, weight, NEW_WRAP, [[int(wrapped)]], *facts)


def delivery_item(item: str, weight: int, delivery: str, *facts: str) -> dict[str, Any]:
    requirement = f"The new order goes by {prices.DELIVERIES[delivery].name.lower()}."
    return state(item, requirement, weight, NEW_DELIVERY, [[delivery]], *facts)


def delivery_fact(number: int, delivery: str) -> dict[str, Any]:
    way = prices.DELIVERIES[delivery]
    claim = f"{way.name} costs {money(way.cents)}."
    return fact(number, claim, [way.name], "help", f"{way.name}: {money(way.cents)}")


def address_fact(number: int, person: Customer, to: Address) -> dict[str, Any]:
    claim = f"{person.name}'s address {to.label} is {to.recipient}, {to.street}, {to.city}."
    return fact(number, claim, [to.street], "account/addresses", to.street)
