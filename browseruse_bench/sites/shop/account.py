"""Signing in, the address book, and what can be done with an order."""

from __future__ import annotations

import csv
import hmac
import io
import sqlite3

from starlette.responses import Response

from browseruse_bench.sites.shop.browse import page_number
from browseruse_bench.sites.shop.catalogue import TODAY
from browseruse_bench.sites.shop.prices import DELIVERIES
from browseruse_bench.sites.shop.store import password_hash
from browseruse_bench.sites.shop.visit import Halt, Visit, line_of_text, local_path, whole_number

ORDERS_PER_PAGE = 5
REASONS = ("Arrived damaged", "Wrong size", "Not as described", "No longer needed")
RESOLUTIONS = ("Refund", "Replacement")
FIELDS = {
    "label": ("Label", 30),
    "recipient": ("Recipient", 80),
    "street": ("Street and number", 80),
    "postcode": ("Postcode", 10),
    "city": ("City", 60),
}


def show_login(visit: Visit) -> Response:
    """The form to sign in with."""
    if visit.customer is not None:
        return visit.go("/account")
    return visit.page(
        "login.html", problem=None, email="", next=visit.request.query_params.get("next", "")
    )


def login(visit: Visit) -> Response:
    """Sign in; the cart of the visitor joins the customer's own."""
    email = visit.form.get("email", "").strip().lower()[:100]
    customer = visit.one("SELECT * FROM customers WHERE email = ?", email)
    # An unknown address costs the same work as a known one.
    given = password_hash(visit.form.get("password", "")[:200], email)
    if customer is None or not hmac.compare_digest(given, customer["password"]):
        return visit.page(
            "login.html",
            status=422,
            problem="E-mail address or password is wrong.",
            email=email,
            next=visit.form.get("next", ""),
        )
    guest_cart = visit.session["cart_id"] if visit.session else None
    visit.begin(_own_cart(visit, customer["id"], guest_cart), customer["id"])
    return visit.go(local_path(visit.form.get("next") or "/account"), "welcome")


def _own_cart(visit: Visit, customer_id: int, guest_cart: int | None) -> int:
    own = visit.one("SELECT id FROM carts WHERE customer_id = ?", customer_id)
    cart_id = own["id"] if own else visit.run("INSERT INTO carts DEFAULT VALUES")
    visit.run("UPDATE carts SET customer_id = ? WHERE id = ?", customer_id, cart_id)
    if guest_cart is not None and guest_cart != cart_id:
        visit.run(
            "INSERT INTO cart_lines (cart_id, product_id, quantity)"
            " SELECT ?, product_id, quantity FROM cart_lines WHERE cart_id = ? ORDER BY id"
            " ON CONFLICT (cart_id, product_id) DO UPDATE SET quantity = excluded.quantity",
            cart_id,
            guest_cart,
        )
        visit.run("DELETE FROM cart_lines WHERE cart_id = ?", guest_cart)
    return int(cart_id)


def logout(visit: Visit) -> Response:
    """Sign out."""
    visit.end()
    return visit.go("/", "bye")


def account(visit: Visit) -> Response:
    """The ways into the account."""
    return visit.page("account.html", me=visit.signed_in)


def addresses(visit: Visit) -> Response:
    """The address book."""
    rows = visit.all(
        "SELECT * FROM addresses WHERE customer_id = ? ORDER BY id", visit.signed_in["id"]
    )
    return visit.page("addresses.html", addresses=rows)


def new_address(visit: Visit) -> Response:
    """An empty address form."""
    _ = visit.signed_in
    return visit.page(
        "address.html",
        address=dict.fromkeys(FIELDS, ""),
        action="/account/addresses/new",
        fields=FIELDS,
        next=visit.request.query_params.get("next", ""),
    )


def edit_address(visit: Visit) -> Response:
    """The form with an address of the book."""
    row = _address(visit)
    return visit.page(
        "address.html",
        address=dict(row),
        action=f"/account/addresses/{row['id']}",
        fields=FIELDS,
        next="",
    )


def _address(visit: Visit) -> sqlite3.Row:
    row = visit.one(
        "SELECT * FROM addresses WHERE id = ? AND customer_id = ?",
        # A larger number is none that SQLite knows.
        min(visit.request.path_params["address_id"], 2**62),
        visit.signed_in["id"],
    )
    if row is None:
        raise Halt(404, "There is no such address in your address book.")
    return row


def _sent_address(visit: Visit) -> list[str]:
    return [
        line_of_text(visit.form.get(field, ""), what=what, longest=longest)
        for field, (what, longest) in FIELDS.items()
    ]


def add_address(visit: Visit) -> Response:
    """Put an address into the book; the first one is the default."""
    me = visit.signed_in["id"]
    visit.run(
        "INSERT INTO addresses (customer_id, label, recipient, street, postcode, city, is_default)"
        " VALUES (?, ?, ?, ?, ?, ?,"
        " NOT EXISTS (SELECT 1 FROM addresses WHERE customer_id = ?))",
        me,
        *_sent_address(visit),
        me,
    )
    return visit.go(local_path(visit.form.get("next") or "/account/addresses"), "saved")


def save_address(visit: Visit) -> Response:
    """Change an address of the book."""
    visit.run(
        "UPDATE addresses SET label = ?, recipient = ?, street = ?, postcode = ?, city = ?"
        " WHERE id = ?",
        *_sent_address(visit),
        _address(visit)["id"],
    )
    return visit.go("/account/addresses", "saved")


def delete_address(visit: Visit) -> Response:
    """Take an address out of the book; the default one stays."""
    row = _address(visit)
    if row["is_default"]:
        raise Halt(422, "The default address cannot be deleted. Make another one the default.")
    visit.run("DELETE FROM addresses WHERE id = ?", row["id"])
    return visit.go("/account/addresses", "deleted")


def default_address(visit: Visit) -> Response:
    """Make an address the default."""
    row = _address(visit)
    visit.run("UPDATE addresses SET is_default = (id = ?) WHERE customer_id = ?",
              row["id"], visit.signed_in["id"])  # fmt: skip
    return visit.go("/account/addresses", "default")


def orders(visit: Visit) -> Response:
    """The customer's orders, newest first."""
    me = visit.signed_in["id"]
    counted = visit.one("SELECT count(*) AS n FROM orders WHERE customer_id = ?", me)
    n_pages = max(1, -(-(int(counted["n"]) if counted else 0) // ORDERS_PER_PAGE))
    page = page_number(visit.request.query_params.get("page", "1"), n_pages)
    rows = visit.all(
        "SELECT * FROM orders WHERE customer_id = ? ORDER BY id DESC LIMIT ? OFFSET ?",
        me,
        ORDERS_PER_PAGE,
        (page - 1) * ORDERS_PER_PAGE,
    )
    return visit.page(
        "orders.html",
        orders=rows,
        page=page,
        n_pages=n_pages,
        page_address="?page={}".format,
    )


def _order(visit: Visit) -> sqlite3.Row:
    row = visit.one(
        "SELECT * FROM orders WHERE number = ? AND customer_id = ?",
        visit.request.path_params["number"],
        visit.signed_in["id"],
    )
    if row is None:
        raise Halt(404, "You have no such order.")
    return row


def _order_lines(visit: Visit, order_id: int) -> list[sqlite3.Row]:
    return visit.all(
        "SELECT l.*, p.name, p.slug, coalesce((SELECT sum(quantity) FROM returns r"
        " WHERE r.order_line_id = l.id), 0) AS n_returned"
        " FROM order_lines l JOIN products p ON p.id = l.product_id"
        " WHERE l.order_id = ? ORDER BY l.id",
        order_id,
    )


def order(visit: Visit) -> Response:
    """One order."""
    return _order_page(visit, "order.html")


def confirmation(visit: Visit) -> Response:
    """One order as a page to print; opened in a tab of its own."""
    return _order_page(visit, "confirmation.html")


def _order_page(visit: Visit, template: str) -> Response:
    row = _order(visit)
    returns = visit.all(
        "SELECT r.*, p.name FROM returns r JOIN order_lines l ON l.id = r.order_line_id"
        " JOIN products p ON p.id = l.product_id WHERE l.order_id = ? ORDER BY r.id",
        row["id"],
    )
    return visit.page(
        template,
        order=row,
        lines=_order_lines(visit, row["id"]),
        returns=returns,
        delivery=DELIVERIES[row["delivery"]],
    )


def cancel(visit: Visit) -> Response:
    """Cancel an order that has not left; its goods go back into stock."""
    row = _order(visit)
    if row["status"] != "processing":
        raise Halt(409, "Only orders that are still processing can be cancelled.")
    visit.run("UPDATE orders SET status = 'cancelled' WHERE id = ?", row["id"])
    for line in _order_lines(visit, row["id"]):
        visit.run("UPDATE products SET stock = stock + ? WHERE id = ?",
                  line["quantity"], line["product_id"])  # fmt: skip
    return visit.go(f"/orders/{row['number']}", "cancelled")


def _delivered(visit: Visit) -> sqlite3.Row:
    row = _order(visit)
    if row["status"] != "delivered":
        raise Halt(409, "Only goods that have been delivered can be sent back.")
    return row


def return_form(visit: Visit) -> Response:
    """The form to send something back."""
    row = _delivered(visit)
    return visit.page(
        "return.html",
        order=row,
        lines=_order_lines(visit, row["id"]),
        reasons=REASONS,
        resolutions=RESOLUTIONS,
    )


def request_return(visit: Visit) -> Response:
    """Ask to send some of one product back."""
    row = _delivered(visit)
    lines = {str(line["id"]): line for line in _order_lines(visit, row["id"])}
    line = lines.get(visit.form.get("line", ""))
    reason, resolution = visit.form.get("reason", ""), visit.form.get("resolution", "")
    if line is None:
        raise Halt(422, "Please choose the item to send back.")
    if reason not in REASONS or resolution not in RESOLUTIONS:
        raise Halt(422, "Please choose a reason and what you would like.")
    left = int(line["quantity"]) - int(line["n_returned"])
    if left < 1:
        raise Halt(409, "All of this item is already on its way back.")
    quantity = whole_number(visit.form.get("quantity", ""), what="Quantity", low=1, high=left)
    visit.run(
        "INSERT INTO returns (order_line_id, quantity, reason, resolution, requested_on)"
        " VALUES (?, ?, ?, ?, ?)",
        line["id"],
        quantity,
        reason,
        resolution,
        TODAY.isoformat(),
    )
    return visit.go(f"/orders/{row['number']}", "return")


def invoice(visit: Visit) -> Response:
    """The invoice of an order as a CSV file to download."""
    row = _order(visit)
    out = io.StringIO()
    sheet = csv.writer(out)
    sheet.writerow(("order", "item", "quantity", "unit_eur", "line_eur"))
    for line in _order_lines(visit, row["id"]):
        cents = int(line["unit_cents"])
        sheet.writerow(
            (
                row["number"],
                line["name"],
                line["quantity"],
                f"{cents / 100:.2f}",
                f"{cents * line['quantity'] / 100:.2f}",
            )
        )
    sheet.writerow((row["number"], "TOTAL", "", "", f"{row['total_cents'] / 100:.2f}"))
    return Response(
        out.getvalue(),
        media_type="text/csv",
        headers={"content-disposition": f'attachment; filename="invoice-{row["number"]}.csv"'},
    )
