"""Looking around: front page, listings with filters, product pages and reviews."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from starlette.responses import Response

from browseruse_bench.sites.shop.catalogue import TODAY
from browseruse_bench.sites.shop.visit import LISTINGS, NEWSLETTER, Halt, Visit

PER_PAGE = 12
REVIEWS_PER_PAGE = 5
SORTS = {
    "name": ("Name", "p.name"),
    "price": ("Price, lowest first", "p.price_cents, p.name"),
    "price-down": ("Price, highest first", "p.price_cents DESC, p.name"),
    "rating": ("Rating, best first", "p.rating DESC, p.n_reviews DESC, p.name"),
    "weight": ("Weight, lightest first", "p.weight_g, p.name"),
}
_FROM = " FROM products p JOIN categories c ON c.id = p.category_id"


@dataclass(frozen=True)
class Filters:
    """What a listing is narrowed by, as it was sent."""

    q: str
    category: str
    min_price: str
    max_price: str
    rating: str
    colour: str
    in_stock: bool
    sort: str

    @classmethod
    def of(cls, query: Mapping[str, str], category: str | None) -> Filters:
        """Read the query of an address; a category page fixes the category."""
        sort = query.get("sort", "name")
        return cls(
            q=query.get("q", "").strip()[:100],
            category=category or query.get("category", ""),
            min_price=query.get("min_price", "").strip(),
            max_price=query.get("max_price", "").strip(),
            rating=query.get("rating", ""),
            colour=query.get("colour", ""),
            in_stock=query.get("in_stock") == "yes",
            sort=sort if sort in SORTS else "name",
        )

    def where(self) -> tuple[str, list[str | int]]:
        """The condition in SQL with its values."""
        parts: list[str] = ["1"]
        values: list[str | int] = []

        def add(part: str, value: str | int) -> None:
            parts.append(part)
            values.append(value)

        for word in self.q.lower().split():
            literal = re.sub(r"([\\%_])", r"\\\1", word)
            add("p.words LIKE ? ESCAPE '\\'", f"%{literal}%")
        if self.category:
            add("c.slug = ?", self.category)
        if self.colour:
            add("p.colour = ?", self.colour)
        if self.rating in ("2", "3", "4"):
            add("p.rating >= ?", int(self.rating))
        if self.min_price:
            add("p.price_cents >= ?", euros(self.min_price, "Minimum price"))
        if self.max_price:
            add("p.price_cents <= ?", euros(self.max_price, "Maximum price"))
        if self.in_stock:
            parts.append("p.stock > 0")
        return " WHERE " + " AND ".join(parts), values


def euros(text: str, what: str) -> int:
    """An amount in euros as cents.

    Raises:
        Halt: it is not an amount.
    """
    found = re.fullmatch(r"(\d{1,6})(?:[.,](\d{1,2}))?", text, re.ASCII)
    if not found:
        raise Halt(422, f"{what} must be an amount such as 25 or 25.50.")
    return int(found[1]) * 100 + int((found[2] or "").ljust(2, "0"))


def page_number(text: str, n_pages: int) -> int:
    """The page that was asked for, or the nearest one that exists."""
    wanted = int(text) if text.isascii() and text.isdigit() and len(text) < 9 else 1
    return max(1, min(wanted, n_pages))


def _page_address(query: Mapping[str, str]) -> Callable[[int], str]:
    """The address of a page of the same listing, relative to the listing."""

    def address(page: int) -> str:
        return "?" + urlencode({**query, "page": page})

    return address


def front(visit: Visit) -> Response:
    """The front page: departments and the best rated goods."""
    best = visit.all(
        "SELECT p.*" + _FROM + " WHERE p.stock > 0 ORDER BY p.rating DESC, p.n_reviews DESC LIMIT 6"
    )
    return visit.page("front.html", categories=_categories(visit), products=best)


def search(visit: Visit) -> Response:
    """The goods that match the words and filters."""
    filters = Filters.of(visit.request.query_params, None)
    title = f"Search results for “{filters.q}”" if filters.q else "All products"
    return _listing(visit, filters, title)


def category(visit: Visit) -> Response:
    """The goods of a department."""
    slug = visit.request.path_params["slug"]
    row = visit.one("SELECT * FROM categories WHERE slug = ?", slug)
    if row is None:
        raise Halt(404, "There is no such department.")
    return _listing(visit, Filters.of(visit.request.query_params, slug), row["name"])


def _listing(visit: Visit, filters: Filters, title: str) -> Response:
    where, values = filters.where()
    counted = visit.one("SELECT count(*) AS n" + _FROM + where, *values)
    n_found = int(counted["n"]) if counted else 0
    n_pages = max(1, -(-n_found // PER_PAGE))
    query = dict(visit.request.query_params)
    page = page_number(query.pop("page", "1"), n_pages)
    query.pop("notice", None)
    products = visit.all(
        f"SELECT p.*{_FROM}{where} ORDER BY {SORTS[filters.sort][1]} LIMIT ? OFFSET ?",
        *values,
        PER_PAGE,
        (page - 1) * PER_PAGE,
    )
    seen = visit.request.cookies.get(LISTINGS, "0")
    # The invitation comes with the second listing that a visitor opens.
    invite = seen != "0" and NEWSLETTER not in visit.request.cookies
    response = visit.page(
        "listing.html",
        title=title,
        filters=filters,
        search=filters.q,
        sorts=SORTS,
        categories=_categories(visit),
        colours=visit.all("SELECT DISTINCT colour FROM products ORDER BY colour"),
        products=products,
        n_found=n_found,
        page=page,
        n_pages=n_pages,
        page_address=_page_address(query),
        fixed_category=visit.request.path_params.get("slug"),
        ask_newsletter=invite,
    )
    response.set_cookie(LISTINGS, "1", samesite="lax")
    return response


def _categories(visit: Visit) -> list[sqlite3.Row]:
    return visit.all("SELECT * FROM categories ORDER BY id")


def product(visit: Visit) -> Response:
    """A product with its attributes and newest reviews."""
    row = find_product(visit, visit.request.path_params["slug"])
    return visit.page(
        "product.html",
        product=row,
        specs=visit.all(
            "SELECT * FROM product_specs WHERE product_id = ? ORDER BY position", row["id"]
        ),
        reviews=visit.all(
            "SELECT * FROM reviews WHERE product_id = ? ORDER BY written_on DESC LIMIT 2",
            row["id"],
        ),
    )


def reviews(visit: Visit) -> Response:
    """All reviews of a product, page by page, newest first; or those with so many stars."""
    row = find_product(visit, visit.request.path_params["slug"])
    stars = visit.request.query_params.get("stars", "")
    wanted = f" AND stars = {int(stars)}" if stars in ("1", "2", "3", "4", "5") else ""
    counted = visit.one(
        "SELECT count(*) AS n FROM reviews WHERE product_id = ?" + wanted, row["id"]
    )
    n_found = int(counted["n"]) if counted else 0
    n_pages = max(1, -(-n_found // REVIEWS_PER_PAGE))
    page = page_number(visit.request.query_params.get("page", "1"), n_pages)
    return visit.page(
        "reviews.html",
        product=row,
        stars=stars,
        n_found=n_found,
        page=page,
        n_pages=n_pages,
        page_address=_page_address({"stars": stars}),
        reviews=visit.all(
            f"SELECT * FROM reviews WHERE product_id = ?{wanted}"
            " ORDER BY written_on DESC LIMIT ? OFFSET ?",
            row["id"],
            REVIEWS_PER_PAGE,
            (page - 1) * REVIEWS_PER_PAGE,
        ),
    )


def find_product(visit: Visit, slug: str) -> sqlite3.Row:
    """A product with the name of its department.

    Raises:
        Halt: there is none with this slug.
    """
    row = visit.one(
        "SELECT p.*, c.slug AS category_slug, c.name AS category" + _FROM + " WHERE p.slug = ?",
        slug,
    )
    if row is None:
        raise Halt(404, "There is no such product.")
    return row


def help_page(visit: Visit) -> Response:
    """What customers ask: delivery, coupons, returns, signing in."""
    coupons = visit.all("SELECT * FROM coupons ORDER BY code")
    return visit.page("help.html", coupons=coupons, today=TODAY.isoformat())
