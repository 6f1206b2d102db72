"""The cart and the wish list."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from starlette.responses import Response

from browseruse_bench.sites.shop import prices
from browseruse_bench.sites.shop.browse import find_product
from browseruse_bench.sites.shop.catalogue import TODAY
from browseruse_bench.sites.shop.visit import Halt, Visit, local_path, whole_number


def lines_of(visit: Visit, cart_id: int) -> list[sqlite3.Row]:
    """The lines of a cart with their products, in the order in which they were added."""
    return visit.all(
        "SELECT l.id AS line_id, l.quantity, p.*, c.slug AS category FROM cart_lines l"
        " JOIN products p ON p.id = l.product_id JOIN categories c ON c.id = p.category_id"
        " WHERE l.cart_id = ? ORDER BY l.id",
        cart_id,
    )


def sums_of(
    visit: Visit, cart: sqlite3.Row, lines: Sequence[sqlite3.Row], *, delivery: str | None
) -> prices.Total:
    """What a cart costs with its coupon, gift wrap and this delivery."""
    coupon = visit.one(
        "SELECT k.*, c.slug AS category FROM coupons k LEFT JOIN categories c"
        " ON c.id = k.category_id WHERE k.code = ?",
        cart["coupon_code"],
    )
    return prices.total(
        [
            prices.Priced(
                category=x["category"], unit_cents=x["price_cents"], quantity=x["quantity"]
            )
            for x in lines
        ],
        discount=prices.Discount(
            percent=coupon["percent"],
            category=coupon["category"],
            minimum_cents=coupon["minimum_cents"],
        )
        if coupon
        else None,
        delivery=delivery,
        gift_wrap=bool(cart["gift_wrap"]),
    )


def show_cart(visit: Visit) -> Response:
    """The cart with its sums."""
    return _cart_page(visit, None, 200)


def _cart_page(visit: Visit, problem: str | None, status: int) -> Response:
    cart = visit.cart()
    lines = lines_of(visit, cart["id"]) if cart else []
    sums = sums_of(visit, cart, lines, delivery=None) if cart else None
    return visit.page(
        "cart.html", status=status, cart=cart, lines=lines, sums=sums, problem=problem
    )


def add_to_cart(visit: Visit) -> Response:
    """Put some of a product into the cart, beside what is there of it."""
    product = find_product(visit, visit.form.get("product", ""))
    quantity = whole_number(
        visit.form.get("quantity", "1"), what="Quantity", low=1, high=prices.MAX_PER_PRODUCT
    )
    _put(visit, visit.cart_id(), product, quantity)
    return visit.go("/cart", "added")


def _put(visit: Visit, cart_id: int, product: sqlite3.Row, quantity: int) -> None:
    there = visit.one(
        "SELECT quantity FROM cart_lines WHERE cart_id = ? AND product_id = ?",
        cart_id,
        product["id"],
    )
    wanted = quantity + (int(there["quantity"]) if there else 0)
    most = min(int(product["stock"]), prices.MAX_PER_PRODUCT)
    if wanted > most:
        raise Halt(422, f"Only {most} of {product['name']} can be ordered.")
    visit.run(
        "INSERT INTO cart_lines (cart_id, product_id, quantity) VALUES (?, ?, ?)"
        " ON CONFLICT (cart_id, product_id) DO UPDATE SET quantity = excluded.quantity",
        cart_id,
        product["id"],
        wanted,
    )


def update_cart(visit: Visit) -> Response:
    """Change how many of a product are in the cart."""
    line = _line(visit)
    most = min(int(line["stock"]), prices.MAX_PER_PRODUCT)
    quantity = whole_number(visit.form.get("quantity", ""), what="Quantity", low=1, high=most)
    visit.run("UPDATE cart_lines SET quantity = ? WHERE id = ?", quantity, line["id"])
    return visit.go("/cart", "cart")


def remove_from_cart(visit: Visit) -> Response:
    """Take a product out of the cart."""
    visit.run("DELETE FROM cart_lines WHERE id = ?", _line(visit)["id"])
    return visit.go("/cart", "removed")


def _line(visit: Visit) -> sqlite3.Row:
    line = visit.one(
        "SELECT l.*, p.stock FROM cart_lines l JOIN products p ON p.id = l.product_id"
        " WHERE l.cart_id = ? AND p.slug = ?",
        visit.session["cart_id"] if visit.session else None,
        visit.form.get("product", ""),
    )
    if line is None:
        raise Halt(404, "This product is not in your cart.")
    return line


def apply_coupon(visit: Visit) -> Response:
    """Use a coupon for the cart; it takes the place of an earlier one."""
    code = visit.form.get("code", "").strip().upper()[:40]
    coupon = visit.one("SELECT * FROM coupons WHERE code = ?", code)
    cart = visit.cart()
    if cart is None:
        raise Halt(422, "Your cart is empty.")
    if coupon is None:
        return _cart_page(visit, f"There is no coupon {code}.", 422)
    if coupon["valid_until"] < TODAY.isoformat():
        return _cart_page(visit, f"The coupon {code} has expired.", 422)
    sums = sums_of(visit, cart, lines_of(visit, cart["id"]), delivery=None)
    if sums.goods < coupon["minimum_cents"]:
        return _cart_page(visit, f"The cart is too small for the coupon {code}.", 422)
    visit.run("UPDATE carts SET coupon_code = ? WHERE id = ?", code, cart["id"])
    return visit.go("/cart", "coupon")


def remove_coupon(visit: Visit) -> Response:
    """Take the coupon off the cart."""
    visit.run("UPDATE carts SET coupon_code = NULL WHERE id = ?", visit.cart_id())
    return visit.go("/cart", "no-coupon")


def show_wishlist(visit: Visit) -> Response:
    """The customer's wish list."""
    items = visit.all(
        "SELECT p.* FROM wishlist_items w JOIN products p ON p.id = w.product_id"
        " WHERE w.customer_id = ? ORDER BY w.id",
        visit.signed_in["id"],
    )
    return visit.page("wishlist.html", items=items)


def wish(visit: Visit) -> Response:
    """Put a product on the wish list; twice is as good as once."""
    product = find_product(visit, visit.form.get("product", ""))
    visit.run(
        "INSERT INTO wishlist_items (customer_id, product_id) VALUES (?, ?)"
        " ON CONFLICT (customer_id, product_id) DO NOTHING",
        visit.signed_in["id"],
        product["id"],
    )
    return visit.go("/wishlist", "wished")


def unwish(visit: Visit) -> Response:
    """Take a product off the wish list."""
    product = find_product(visit, visit.form.get("product", ""))
    visit.run(
        "DELETE FROM wishlist_items WHERE customer_id = ? AND product_id = ?",
        visit.signed_in["id"],
        product["id"],
    )
    return visit.go("/wishlist", "unwished")


def wish_to_cart(visit: Visit) -> Response:
    """Move a product from the wish list into the cart."""
    product = find_product(visit, visit.form.get("product", ""))
    _put(visit, visit.cart_id(), product, 1)
    unwish(visit)
    return visit.go("/cart", "added")


def subscribe(visit: Visit) -> Response:
    """Put an address on the newsletter's list."""
    email = visit.form.get("email", "").strip().lower()
    if not 3 <= len(email) <= 100 or "@" not in email[1:-1] or not email.isprintable():
        raise Halt(422, "Please enter an e-mail address.")
    visit.run(
        "INSERT INTO newsletter VALUES (?, ?) ON CONFLICT DO NOTHING", email, TODAY.isoformat()
    )
    response = visit.go(local_path(visit.form.get("next", "/")), "subscribed")
    response.set_cookie("newsletter", "subscribed", samesite="lax")
    return response
