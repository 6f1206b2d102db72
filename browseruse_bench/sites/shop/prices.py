"""What a cart costs: goods, discount, delivery and gift wrap, all in cents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

WRAP_CENTS = 250
FREE_FROM_CENTS = 7500
MAX_PER_PRODUCT = 20


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """A way to deliver a parcel."""

    key: str
    name: str
    cents: int
    promise: str


DELIVERIES = {
    "standard": Delivery(
        key="standard", name="Standard delivery", cents=490, promise="3 to 5 working days"
    ),
    "express": Delivery(
        key="express", name="Express delivery", cents=990, promise="next working day"
    ),
    "evening": Delivery(
        key="evening", name="Evening delivery", cents=1250, promise="next day, 18:00 to 21:00"
    ),
}


@dataclass(frozen=True, kw_only=True)
class Discount:
    """What a coupon takes off."""

    percent: int
    category: str | None
    minimum_cents: int


@dataclass(frozen=True, kw_only=True)
class Priced:
    """One line of a cart: its category, unit price and quantity."""

    category: str
    unit_cents: int
    quantity: int

    @property
    def cents(self) -> int:
        """What the line costs."""
        return self.unit_cents * self.quantity


@dataclass(frozen=True, kw_only=True)
class Total:
    """The sums of a cart or an order; `total` is what is paid."""

    goods: int
    discount: int
    delivery: int
    wrap: int

    @property
    def total(self) -> int:
        """Goods less discount, with delivery and wrap."""
        return self.goods - self.discount + self.delivery + self.wrap


def total(
    lines: Sequence[Priced],
    *,
    discount: Discount | None = None,
    delivery: str | None = None,
    gift_wrap: bool = False,
) -> Total:
    """The sums of these lines. Standard delivery is free from €75.00 after the discount.

    Args:
        delivery: a key of DELIVERIES; None while none has been chosen.
    """
    goods = sum(line.cents for line in lines)
    off = _taken_off(lines, discount, goods) if discount else 0
    fee = DELIVERIES[delivery].cents if delivery else 0
    if delivery == "standard" and goods - off >= FREE_FROM_CENTS:
        fee = 0
    return Total(goods=goods, discount=off, delivery=fee, wrap=WRAP_CENTS if gift_wrap else 0)


def _taken_off(lines: Sequence[Priced], discount: Discount, goods: int) -> int:
    """The discount, rounded half up to a cent; nothing below the minimum."""
    if goods < discount.minimum_cents:
        return 0
    base = sum(line.cents for line in lines if discount.category in (None, line.category))
    return (base * discount.percent + 50) // 100
