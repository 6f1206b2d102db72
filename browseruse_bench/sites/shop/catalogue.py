"""The goods of the shop: 120 products with reviews, made from a seed."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from datetime import date, timedelta

from browseruse_bench.sites.shop.draw import Draw
from browseruse_bench.sites.shop.words import (
    AUTHORS,
    BRANDS,
    CATEGORIES,
    CHARMS,
    COLOURS,
    DETAILS,
    MODELS,
    PRAISE,
    USES,
    Category,
    Kind,
)

TODAY = date(2026, 11, 30)
"""The shop's own date: it never moves, so that every attempt sees the same shop."""

PER_KIND = 3


@dataclass(frozen=True, kw_only=True)
class Review:
    """What a customer wrote about a product."""

    author: str
    stars: int
    title: str
    body: str
    written_on: date


@dataclass(frozen=True, kw_only=True)
class Product:
    """One article of the catalogue."""

    id: int
    slug: str
    name: str
    brand: str
    category: str
    kind: str
    price_cents: int
    stock: int
    colour: str
    weight_g: int
    size: str
    specs: tuple[tuple[str, str], ...]
    """Label and text, as the product page lists them below colour, weight and size."""
    description: str
    reviews: tuple[Review, ...]
    """Newest first."""

    @property
    def rating(self) -> float:
        """Mean of the stars, rounded half up to one decimal place."""
        total, n = sum(r.stars for r in self.reviews), len(self.reviews)
        return ((total * 20 + n) // (2 * n)) / 10

    @property
    def price(self) -> str:
        """The price as the pages show it."""
        return money(self.price_cents)

    def spec(self, label: str) -> str:
        """The text of one attribute."""
        return dict(self.specs)[label]


def money(cents: int) -> str:
    """An amount as the pages show it: €12.50."""
    sign = "-" if cents < 0 else ""
    return f"{sign}€{abs(cents) // 100}.{abs(cents) % 100:02d}"


def weight(grams: int) -> str:
    """A weight as the pages show it: 850 g, 1.65 kg."""
    if grams < 1000:
        return f"{grams} g"
    return f"{grams / 1000:.2f}".rstrip("0").rstrip(".") + " kg"


def slug_of(name: str) -> str:
    """A name as a part of an address."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


@functools.lru_cache(maxsize=4)
def catalogue(seed: int) -> tuple[Product, ...]:
    """All products in order of their ids, which start at 1. The same seed, the same goods."""
    draw = Draw(seed)
    plan = [
        (category, kind, n)
        for category in CATEGORIES
        for kind in category.kinds
        for n in range(PER_KIND)
    ]
    return tuple(
        _product(draw, index, category, kind) for index, (category, kind, _) in enumerate(plan)
    )


def _product(draw: Draw, index: int, category: Category, kind: Kind) -> Product:
    # 17 has no factor in common with the number of models, so a kind never repeats one.
    model = MODELS[(index * 17 + draw.below(len(MODELS), "offset")) % len(MODELS)]
    brand = draw.pick(BRANDS, index, "brand")
    name = f"{brand} {model} {kind.name}"
    colour = draw.pick(COLOURS, index, "colour")
    material = draw.pick(category.materials, index, "material")
    charm = draw.pick(CHARMS, index, "charm")
    return Product(
        id=index + 1,
        slug=slug_of(name),
        name=name,
        brand=brand,
        category=category.slug,
        kind=kind.name,
        price_cents=draw.between(*kind.price, index, "price") * 100
        + draw.pick((0, 50, 90, 95), index, "cents"),
        stock=0 if draw.below(8, index, "sold out") == 0 else draw.between(3, 40, index, "stock"),
        colour=colour,
        weight_g=draw.between(kind.weight[0] // 10, kind.weight[1] // 10, index, "weight") * 10,
        size=" × ".join(str(draw.between(6, 60, index, "size", axis)) for axis in "xyz") + " cm",
        specs=(
            (kind.spec, draw.pick(kind.values, index, "spec")),
            ("Material", material),
            ("Warranty", f"{draw.between(2, 6, index, 'warranty')} years"),
        ),
        description=f"The {model} is a {kind.name.lower()} in {colour.lower()}, {charm}. "
        f"Main material: {material.lower()}.",
        reviews=_reviews(draw, index),
    )


def _reviews(draw: Draw, index: int) -> tuple[Review, ...]:
    tendency = draw.pick((5, 4, 4, 3, 2), index, "tendency")
    reviews: list[Review] = []
    for n, author in enumerate(
        draw.several(AUTHORS, draw.between(4, 14, index, "reviews"), index, "authors")
    ):
        stars = max(1, min(5, tendency + draw.pick((-2, -1, 0, 0, 0, 1, 1), index, n, "stars")))
        use, detail = draw.pick(USES, index, n, "use"), draw.pick(DETAILS[stars], index, n, "more")
        reviews.append(
            Review(
                author=author,
                stars=stars,
                title=draw.pick(PRAISE[stars], index, n, "title"),
                body=f"{use} {detail}",
                written_on=TODAY - timedelta(days=3 + 23 * n + draw.below(20, index, n, "day")),
            )
        )
    return tuple(sorted(reviews, key=lambda r: r.written_on, reverse=True))
