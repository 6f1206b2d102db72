"""The customers of the shop with their addresses, wish lists and earlier orders."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Literal

from browseruse_bench.sites.shop.catalogue import TODAY, Product, catalogue
from browseruse_bench.sites.shop.draw import Draw

OrderStatus = Literal["processing", "shipped", "delivered", "cancelled"]


@dataclass(frozen=True, kw_only=True)
class Address:
    """Where parcels can go; the first one of a customer is the default."""

    label: str
    recipient: str
    street: str
    postcode: str
    city: str


@dataclass(frozen=True, kw_only=True)
class Line:
    """So many of one product."""

    product: Product
    quantity: int


@dataclass(frozen=True, kw_only=True)
class Order:
    """An order from before today, paid at the prices of today."""

    id: int
    customer: str
    placed_on: date
    status: OrderStatus
    address: Address
    delivery: str
    lines: tuple[Line, ...]

    @property
    def number(self) -> str:
        """The number that customers see."""
        return order_number(self.id)

    @property
    def goods_cents(self) -> int:
        """Sum of the lines."""
        return sum(line.product.price_cents * line.quantity for line in self.lines)


@dataclass(frozen=True, kw_only=True)
class Customer:
    """Someone with an account."""

    id: int
    email: str
    name: str
    password: str
    addresses: tuple[Address, ...]
    wishlist: tuple[Product, ...]
    n_orders: int


@dataclass(frozen=True, kw_only=True)
class Coupon:
    """A code that takes something off the goods in the cart."""

    code: str
    percent: int
    category: str | None
    minimum_cents: int
    valid_until: date
    description: str


COUPONS = (
    Coupon(
        code="WELCOME10",
        percent=10,
        category=None,
        minimum_cents=5000,
        valid_until=date(2026, 12, 31),
        description="10 % off everything, for carts of at least €50.00",
    ),
    Coupon(
        code="GREEN15",
        percent=15,
        category="garden",
        minimum_cents=0,
        valid_until=date(2026, 12, 31),
        description="15 % off all garden goods",
    ),
    Coupon(
        code="RIDE20",
        percent=20,
        category="cycling",
        minimum_cents=8000,
        valid_until=date(2027, 1, 31),
        description="20 % off all cycling goods, for carts of at least €80.00",
    ),
    Coupon(
        code="SUMMER25",
        percent=25,
        category=None,
        minimum_cents=0,
        valid_until=date(2026, 8, 31),
        description="25 % off everything",
    ),
)


def order_number(order_id: int) -> str:
    """The number of an order as customers see it."""
    return f"LK-{10480 + order_id}"


def _address(label: str, recipient: str, street: str, postcode: str, city: str) -> Address:
    return Address(label=label, recipient=recipient, street=street, postcode=postcode, city=city)


_PEOPLE: tuple[tuple[str, str, str, int, tuple[Address, ...]], ...] = (
    (
        "mara.lindqvist@mail.test",
        "Mara Lindqvist",
        "birch-kettle-42",
        8,
        (
            _address("Home", "Mara Lindqvist", "Tallgatan 18", "41302", "Vinterhamn"),
            _address("Work", "Mara Lindqvist", "Dock Street 7", "41455", "Vinterhamn"),
            _address("Parents", "Elsa Lindqvist", "Kyrkvägen 3", "53210", "Stenby"),
        ),
    ),
    (
        "tomas.oyelaran@mail.test",
        "Tomas Oyelaran",
        "quiet-river-77",
        14,
        (
            _address("Home", "Tomas Oyelaran", "Mill Lane 40", "20095", "Osterbrook"),
            _address("Office", "Tomas Oyelaran", "Canal Row 112", "20457", "Osterbrook"),
            _address("Allotment", "Tomas Oyelaran", "Plot 9, Heron Path", "21109", "Ferrow"),
            _address("Grandmother", "Abeni Oyelaran", "Rose Court 5", "23552", "Lindmouth"),
        ),
    ),
    (
        "ines.carvalho@mail.test",
        "Inês Carvalho",
        "paper-lantern-9",
        6,
        (
            _address("Home", "Inês Carvalho", "Rua do Moinho 21", "4050", "Portomar"),
            _address("Studio", "Inês Carvalho", "Travessa Azul 2", "4100", "Portomar"),
        ),
    ),
    (
        "pavel.novotny@mail.test",
        "Pavel Novotný",
        "seven-bridges-15",
        12,
        (
            _address("Home", "Pavel Novotný", "Lipová 64", "60200", "Brnice"),
            _address("Workshop", "Pavel Novotný", "Tovární 8", "61700", "Brnice"),
            _address("Cabin", "Pavel Novotný", "Pod Lesem 1", "67801", "Kopanec"),
        ),
    ),
)


@functools.lru_cache(maxsize=4)
def customers(seed: int) -> tuple[Customer, ...]:
    """All customers in order of their ids, which start at 1."""
    draw, goods = Draw(seed), catalogue(seed)
    return tuple(
        Customer(
            id=index,
            email=email,
            name=name,
            password=password,
            addresses=addresses,
            wishlist=draw.several(goods, 5, email, "wishlist"),
            n_orders=n_orders,
        )
        for index, (email, name, password, n_orders, addresses) in enumerate(_PEOPLE, 1)
    )


@functools.lru_cache(maxsize=4)
def orders(seed: int) -> tuple[Order, ...]:
    """All earlier orders in order of their ids, which start at 1: the oldest first."""
    draw = Draw(seed)
    plan = sorted(
        (TODAY - timedelta(days=_age(draw, customer, n)), customer.id, n, customer)
        for customer in customers(seed)
        for n in range(customer.n_orders)
    )
    return tuple(
        _order(seed, index, placed_on, customer, n)
        for index, (placed_on, _, n, customer) in enumerate(plan, 1)
    )


def _age(draw: Draw, customer: Customer, n: int) -> int:
    """Days since the customer's nth newest order."""
    return 1 + 2 * n + n * n + draw.below(2, customer.email, n, "age")


def _order(seed: int, index: int, placed_on: date, customer: Customer, n: int) -> Order:
    draw, key = Draw(seed), (customer.email, n)
    goods = draw.several(catalogue(seed), draw.between(1, 3, *key, "lines"), *key, "goods")
    return Order(
        id=index,
        customer=customer.email,
        placed_on=placed_on,
        status=_status(draw, n, key),
        address=draw.pick(customer.addresses, *key, "address"),
        delivery=draw.pick(("standard", "standard", "express"), *key, "delivery"),
        lines=tuple(
            Line(product=product, quantity=draw.between(1, 3, *key, product.id, "quantity"))
            for product in goods
        ),
    )


def _status(draw: Draw, n: int, key: tuple[str | int, ...]) -> OrderStatus:
    """The three newest orders still wait, the next two travel, the others have arrived."""
    if n < 3:
        return "processing"
    if n < 5:
        return "shipped"
    return "cancelled" if draw.below(6, *key, "status") == 0 else "delivered"
