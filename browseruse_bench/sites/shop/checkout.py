"""From the cart to an order: address, delivery, review, order."""

from __future__ import annotations

import sqlite3

from starlette.responses import Response

from browseruse_bench.sites.shop.basket import lines_of, sums_of
from browseruse_bench.sites.shop.catalogue import TODAY
from browseruse_bench.sites.shop.people import order_number
from browseruse_bench.sites.shop.prices import DELIVERIES
from browseruse_bench.sites.shop.visit import Halt, Visit, whole_number

LONGEST_NOTE = 200


def _cart(visit: Visit) -> tuple[sqlite3.Row, list[sqlite3.Row]]:
    """The customer's cart, which holds something."""
    _ = visit.signed_in
    cart = visit.cart()
    lines = lines_of(visit, cart["id"]) if cart else []
    if cart is None or not lines:
        raise Halt(422, "Your cart is empty.")
    return cart, lines


def _addresses(visit: Visit) -> list[sqlite3.Row]:
    return visit.all(
        "SELECT * FROM addresses WHERE customer_id = ? ORDER BY is_default DESC, id",
        visit.signed_in["id"],
    )


def show_address(visit: Visit) -> Response:
    """Step 1: where to."""
    cart, _ = _cart(visit)
    addresses = _addresses(visit)
    chosen = cart["address_id"] or (addresses[0]["id"] if addresses else None)
    return visit.page("checkout_address.html", addresses=addresses, chosen=chosen)


def choose_address(visit: Visit) -> Response:
    """Keep the address; on to the delivery."""
    cart, _ = _cart(visit)
    address_id = whole_number(
        visit.form.get("address", ""), what="Address", low=1, high=999_999_999
    )
    if address_id not in {row["id"] for row in _addresses(visit)}:
        raise Halt(404, "There is no such address in your address book.")
    visit.run("UPDATE carts SET address_id = ? WHERE id = ?", address_id, cart["id"])
    return visit.go("/checkout/delivery")


def show_delivery(visit: Visit) -> Response:
    """Step 2: how, and whether it is a present."""
    cart, _ = _cart(visit)
    if cart["address_id"] is None:
        return visit.go("/checkout/address")
    return visit.page("checkout_delivery.html", cart=cart, longest=LONGEST_NOTE)


def choose_delivery(visit: Visit) -> Response:
    """Keep the delivery and the gift options; on to the review."""
    cart, _ = _cart(visit)
    delivery = visit.form.get("delivery", "")
    note = " ".join(visit.form.get("gift_note", "").split())
    if delivery not in DELIVERIES:
        raise Halt(422, "Please choose a delivery.")
    if len(note) > LONGEST_NOTE:
        raise Halt(422, f"The gift note must have at most {LONGEST_NOTE} characters.")
    visit.run(
        "UPDATE carts SET delivery = ?, gift_wrap = ?, gift_note = ? WHERE id = ?",
        delivery,
        int(visit.form.get("gift_wrap") == "yes"),
        note,
        cart["id"],
    )
    return visit.go("/checkout/review")


def show_review(visit: Visit) -> Response:
    """Step 3: all of it once more."""
    cart, lines = _cart(visit)
    if cart["address_id"] is None:
        return visit.go("/checkout/address")
    if cart["delivery"] is None:
        return visit.go("/checkout/delivery")
    address = visit.one("SELECT * FROM addresses WHERE id = ?", cart["address_id"])
    sums = sums_of(visit, cart, lines, delivery=cart["delivery"])
    return visit.page("checkout_review.html", cart=cart, lines=lines, address=address, sums=sums)


def place_order(visit: Visit) -> Response:
    """Place the order: stock goes down and the cart is empty."""
    cart, lines = _cart(visit)
    address = visit.one("SELECT * FROM addresses WHERE id = ?", cart["address_id"])
    if address is None or cart["delivery"] is None:
        return visit.go("/checkout/address")
    for line in lines:
        if line["quantity"] > line["stock"]:
            raise Halt(409, f"Only {line['stock']} of {line['name']} are left.")
    number = _record(visit, cart, lines, address)
    visit.run("DELETE FROM cart_lines WHERE cart_id = ?", cart["id"])
    visit.run(
        "UPDATE carts SET coupon_code = NULL, address_id = NULL, delivery = NULL,"
        " gift_wrap = 0, gift_note = '' WHERE id = ?",
        cart["id"],
    )
    return visit.go(f"/checkout/thanks/{number}")


def _record(visit: Visit, cart: sqlite3.Row, lines: list[sqlite3.Row], address: sqlite3.Row) -> str:
    sums = sums_of(visit, cart, lines, delivery=cart["delivery"])
    order_id = visit.run(
        "INSERT INTO orders (number, customer_id, placed_on, status, recipient, street, postcode,"
        " city, delivery, gift_wrap, gift_note, coupon_code, goods_cents, discount_cents,"
        " delivery_cents, wrap_cents, total_cents)"
        " VALUES ('', ?, ?, 'processing', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        visit.signed_in["id"],
        TODAY.isoformat(),
        address["recipient"],
        address["street"],
        address["postcode"],
        address["city"],
        cart["delivery"],
        cart["gift_wrap"],
        cart["gift_note"],
        cart["coupon_code"],
        sums.goods,
        sums.discount,
        sums.delivery,
        sums.wrap,
        sums.total,
    )
    number = order_number(order_id)
    visit.run("UPDATE orders SET number = ? WHERE id = ?", number, order_id)
    for line in lines:
        visit.run(
            "INSERT INTO order_lines (order_id, product_id, quantity, unit_cents)"
            " VALUES (?, ?, ?, ?)",
            order_id,
            line["id"],
            line["quantity"],
            line["price_cents"],
        )
        visit.run(
            "UPDATE products SET stock = stock - ? WHERE id = ?", line["quantity"], line["id"]
        )
    return number


def thanks(visit: Visit) -> Response:
    """The order was placed."""
    number = visit.request.path_params["number"]
    order = visit.one(
        "SELECT * FROM orders WHERE number = ? AND customer_id = ?", number, visit.signed_in["id"]
    )
    if order is None:
        raise Halt(404, "You have no such order.")
    return visit.page("thanks.html", order=order)
