"""The shop's database: a SQLite file, and the pristine copy that it goes back to."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import secrets
import sqlite3
import threading
from pathlib import Path

from browseruse_bench.sites.shop import prices
from browseruse_bench.sites.shop.catalogue import Product, catalogue
from browseruse_bench.sites.shop.people import COUPONS, Customer, Order, customers, orders
from browseruse_bench.sites.shop.words import CATEGORIES

_SCHEMA = Path(__file__).parent / "schema.sql"
_ROUNDS = 20_000


class Store:
    """One connection behind one lock; `db` is used only while `lock` is held."""

    def __init__(self, path: Path, seed: int) -> None:
        """Create the database at `path` with the content of `seed`."""
        self.lock = threading.Lock()
        self.db = _connect(path)
        self._pristine = sqlite3.connect(":memory:", check_same_thread=False)
        self._secret = secrets.token_bytes(32)
        with self.db:
            _fill(self.db, seed)
        self.db.backup(self._pristine)

    def token(self, session_id: int) -> str:
        """The cookie of a session: the same for the nth session after each reset of this
        process, and not to be guessed by who has read this code.
        """
        return hmac.new(self._secret, str(session_id).encode(), hashlib.sha256).hexdigest()

    def reset(self) -> None:
        """Bring back the state after creation, with all counters."""
        with self.lock:
            self._pristine.backup(self.db)

    def snapshot(self, path: Path) -> None:
        """Write the whole state as one SQLite file; a file that is there is replaced."""
        path.unlink(missing_ok=True)
        with self.lock, contextlib.closing(sqlite3.connect(path)) as copy:
            self.db.backup(copy)

    def close(self) -> None:
        """Close the connections."""
        with self.lock:
            self.db.close()
            self._pristine.close()


def _connect(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, check_same_thread=False)
    db.row_factory = sqlite3.Row
    # The file lives only as long as its process, so nothing is lost by not syncing.
    db.executescript(
        "PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF; PRAGMA foreign_keys = ON;"
    )
    return db


def password_hash(password: str, salt: str) -> str:
    """PBKDF2 of a password, as hexadecimal digits."""
    return hashlib.pbkdf2_hmac("sha256", password.encode(), salt.encode(), _ROUNDS).hex()


def _fill(db: sqlite3.Connection, seed: int) -> None:
    db.executescript(_SCHEMA.read_text(encoding="utf-8"))
    db.executemany(
        "INSERT INTO categories (slug, name) VALUES (?, ?)", [(c.slug, c.name) for c in CATEGORIES]
    )
    category_ids = {c.slug: n for n, c in enumerate(CATEGORIES, 1)}
    for product in catalogue(seed):
        _add_product(db, product, category_ids[product.category])
    db.executemany(
        "INSERT INTO coupons VALUES (?, ?, ?, ?, ?, ?)",
        [
            (
                c.code,
                c.percent,
                category_ids[c.category] if c.category else None,
                c.minimum_cents,
                c.valid_until.isoformat(),
                c.description,
            )
            for c in COUPONS
        ],
    )
    ids = {customer.email: _add_customer(db, customer) for customer in customers(seed)}
    for order in orders(seed):
        _add_order(db, order, ids[order.customer])


def _add_product(db: sqlite3.Connection, product: Product, category_id: int) -> None:
    words = " ".join(
        (product.name, product.brand, product.kind, product.category, product.colour)
    ).lower()
    db.execute(
        "INSERT INTO products VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            product.id,
            product.slug,
            product.name,
            product.brand,
            category_id,
            product.kind,
            product.price_cents,
            product.stock,
            product.colour,
            product.weight_g,
            product.size,
            product.rating,
            len(product.reviews),
            product.description,
            words,
        ),
    )
    db.executemany(
        "INSERT INTO product_specs VALUES (?, ?, ?, ?)",
        [(product.id, n, label, value) for n, (label, value) in enumerate(product.specs)],
    )
    db.executemany(
        "INSERT INTO reviews (product_id, author, stars, title, body, written_on)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        [
            (product.id, r.author, r.stars, r.title, r.body, r.written_on.isoformat())
            for r in product.reviews
        ],
    )


def _add_customer(db: sqlite3.Connection, customer: Customer) -> int:
    db.execute(
        "INSERT INTO customers VALUES (?, ?, ?, ?)",
        (
            customer.id,
            customer.email,
            customer.name,
            password_hash(customer.password, customer.email),
        ),
    )
    db.executemany(
        "INSERT INTO addresses (customer_id, label, recipient, street, postcode, city, is_default)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        [
            (customer.id, a.label, a.recipient, a.street, a.postcode, a.city, int(n == 0))
            for n, a in enumerate(customer.addresses)
        ],
    )
    db.executemany(
        "INSERT INTO wishlist_items (customer_id, product_id) VALUES (?, ?)",
        [(customer.id, product.id) for product in customer.wishlist],
    )
    return customer.id


def _add_order(db: sqlite3.Connection, order: Order, customer_id: int) -> None:
    sums = prices.total(
        [
            prices.Priced(
                category=line.product.category,
                unit_cents=line.product.price_cents,
                quantity=line.quantity,
            )
            for line in order.lines
        ],
        delivery=order.delivery,
    )
    address = order.address
    db.execute(
        "INSERT INTO orders VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, '', NULL, ?, 0, ?, 0, ?)",
        (
            order.id,
            order.number,
            customer_id,
            order.placed_on.isoformat(),
            order.status,
            address.recipient,
            address.street,
            address.postcode,
            address.city,
            order.delivery,
            sums.goods,
            sums.delivery,
            sums.total,
        ),
    )
    db.executemany(
        "INSERT INTO order_lines (order_id, product_id, quantity, unit_cents) VALUES (?, ?, ?, ?)",
        [(order.id, x.product.id, x.quantity, x.product.price_cents) for x in order.lines],
    )
