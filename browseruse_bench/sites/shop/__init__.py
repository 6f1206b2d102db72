"""A small web shop on a real database: something to search, order, change and cancel."""

from __future__ import annotations

from browseruse_bench.sites.shop.site import ShopSite

__all__ = ["ShopSite"]
