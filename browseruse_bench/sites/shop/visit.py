"""One request of one visitor: who asks, what was sent, and how the answer is made."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from browseruse_bench.sites.shop.catalogue import money, weight
from browseruse_bench.sites.shop.prices import DELIVERIES
from browseruse_bench.sites.shop.store import Store

SESSION = "larkfield_session"
CONSENT = "cookie_choice"
NEWSLETTER = "newsletter"
LISTINGS = "listings"

NOTICES = {
    "added": "The item was added to your cart.",
    "cart": "Your cart was updated.",
    "removed": "The item was removed from your cart.",
    "coupon": "The coupon was applied.",
    "no-coupon": "The coupon was removed.",
    "saved": "The address was saved.",
    "deleted": "The address was deleted.",
    "default": "The default address was changed.",
    "wished": "The item is on your wish list.",
    "unwished": "The item was taken off your wish list.",
    "cancelled": "The order was cancelled.",
    "return": "The return was requested.",
    "subscribed": "You are subscribed to the newsletter.",
    "welcome": "You are signed in.",
    "bye": "You are signed out.",
}


class Halt(Exception):  # noqa: N818  it is an answer, not an error of the shop
    """The request ends here with this status and message."""

    def __init__(self, status: int, message: str) -> None:
        """Answer `message` with the HTTP status `status`; nothing is changed."""
        super().__init__(message)
        self.status = status
        self.message = message


class SignIn(Exception):  # noqa: N818
    """The page is for customers who have signed in."""


def _stars(rating: float) -> str:
    return f"{rating:.1f} out of 5"


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(money=money, weight=weight, stars=_stars)
    environment.globals["deliveries"] = DELIVERIES  # pyright: ignore[reportArgumentType]
    return environment


_ENVIRONMENT = _environment()


@dataclass
class Visit:
    """A request in work. The database is in a transaction that ends with the answer."""

    request: Request
    store: Store
    form: Mapping[str, str]
    session: sqlite3.Row | None
    customer: sqlite3.Row | None
    new_token: str | None = None
    """The cookie to hand out: set when a session began, empty when it ended."""

    @classmethod
    def of(cls, request: Request, store: Store, form: Mapping[str, str]) -> Visit:
        """Recognise the visitor by the session cookie."""
        token = request.cookies.get(SESSION, "")
        session = store.db.execute("SELECT * FROM sessions WHERE token = ?", (token,)).fetchone()
        customer = None
        if session is not None and session["customer_id"] is not None:
            customer = store.db.execute(
                "SELECT * FROM customers WHERE id = ?", (session["customer_id"],)
            ).fetchone()
        return cls(request, store, form, session, customer)

    @property
    def db(self) -> sqlite3.Connection:
        """The database."""
        return self.store.db

    def one(self, sql: str, *values: str | float | None) -> sqlite3.Row | None:
        """The first row of a query."""
        return self.db.execute(sql, values).fetchone()

    def all(self, sql: str, *values: str | float | None) -> list[sqlite3.Row]:
        """All rows of a query."""
        return self.db.execute(sql, values).fetchall()

    def run(self, sql: str, *values: str | float | None) -> int:
        """Carry out a change; the id of the row that was inserted last."""
        return self.db.execute(sql, values).lastrowid or 0

    @property
    def signed_in(self) -> sqlite3.Row:
        """The customer.

        Raises:
            SignIn: nobody has signed in.
        """
        if self.customer is None:
            raise SignIn
        return self.customer

    def cart(self) -> sqlite3.Row | None:
        """The visitor's cart, if there is one."""
        if self.session is None:
            return None
        return self.one("SELECT * FROM carts WHERE id = ?", self.session["cart_id"])

    def cart_id(self) -> int:
        """The id of the visitor's cart; without a session one begins."""
        if self.session is None:
            self.begin(self.run("INSERT INTO carts DEFAULT VALUES"), None)
        assert self.session is not None
        return int(self.session["cart_id"])

    def begin(self, cart_id: int, customer_id: int | None) -> None:
        """Begin a new session; the one before it, if any, ends."""
        self.end()
        session_id = self.run(
            "INSERT INTO sessions (token, customer_id, cart_id) VALUES ('', ?, ?)",
            customer_id,
            cart_id,
        )
        token = self.store.token(session_id)
        self.run("UPDATE sessions SET token = ? WHERE id = ?", token, session_id)
        self.session = self.one("SELECT * FROM sessions WHERE id = ?", session_id)
        self.new_token = token

    def end(self) -> None:
        """End the session."""
        if self.session is not None:
            self.run("DELETE FROM sessions WHERE id = ?", self.session["id"])
            self.session = None
            self.new_token = ""

    def page(self, template: str, *, status: int = 200, **values: Any) -> Response:
        """A page of the shop."""
        text = _ENVIRONMENT.get_template(template).render(
            customer=self.customer,
            n_items=self._n_items(),
            notice=NOTICES.get(self.request.query_params.get("notice", "")),
            ask_cookies=CONSENT not in self.request.cookies,
            ask_newsletter=values.pop("ask_newsletter", False),
            here=self.request.url.path
            + (f"?{self.request.url.query}" if self.request.url.query else ""),
            search=values.pop("search", ""),
            **values,
        )
        return HTMLResponse(text, status)

    def go(self, path: str, notice: str | None = None) -> Response:
        """Send the browser on to a page, with one of NOTICES shown there."""
        if notice:
            path += ("&" if "?" in path else "?") + urlencode({"notice": notice})
        return RedirectResponse(path, 303)

    def _n_items(self) -> int:
        if self.session is None:
            return 0
        row = self.one(
            "SELECT coalesce(sum(quantity), 0) AS n FROM cart_lines WHERE cart_id = ?",
            self.session["cart_id"],
        )
        return int(row["n"]) if row else 0


def local_path(path: str) -> str:
    """`path` if it leads to a page of the shop itself, else the front page."""
    plain = path.startswith("/") and not path.startswith(("//", "/\\"))
    return path if plain and path.isprintable() else "/"


def whole_number(text: str, *, what: str, low: int, high: int) -> int:
    """The number that was sent.

    Raises:
        Halt: it is none, or outside low..high.
    """
    if not (text.isascii() and text.isdigit() and len(text) <= 9 and low <= int(text) <= high):
        raise Halt(422, f"{what} must be a whole number from {low} to {high}.")
    return int(text)


def line_of_text(text: str, *, what: str, longest: int) -> str:
    """One line of text as it was sent, without white space around it.

    Raises:
        Halt: it is empty, too long, or holds control characters.
    """
    text = text.strip()
    if not text:
        raise Halt(422, f"{what} is missing.")
    if len(text) > longest or not text.isprintable():
        raise Halt(422, f"{what} must be one line of at most {longest} characters.")
    return text
