"""A page as it was seen once: where it was, and the digests of what was kept of it."""

from __future__ import annotations

from pydantic import Field

from browseruse_bench.records.base import Record

_SHA256 = r"^[0-9a-f]{64}$"
_TIME = r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?Z$"


class ArchivedPage(Record):
    """One look at one page. Its key, which a fact names in `archived`, holds the digests of its
    parts, so it says that they are unchanged since; not that the site said so.
    """

    url: str
    """As it was asked for."""
    final_url: str
    """Where that led."""
    title: str = ""
    at: str = Field(pattern=_TIME)
    """When it was seen, in UTC."""
    status: int | None = None
    """HTTP status of the document; None: not known."""
    text: str = Field(pattern=_SHA256)
    """SHA-256 of its visible text, frames of other origins included."""
    mhtml: str | None = Field(default=None, pattern=_SHA256)
    """SHA-256 of the rendered document as MHTML; None: the browser gave none."""
    png: str | None = Field(default=None, pattern=_SHA256)
    """SHA-256 of its picture; None: the browser gave none."""
    n_chars: int = Field(ge=0)
    """Length of the text."""
    asks_login: bool = False
    """Whether it shows a field for a password."""
    by_address: bool = False
    """Whether opening its address was all that it took; False: somebody may have clicked or typed
    before it showed what it shows."""
    settled: bool = True
    """Whether it had come to rest: loaded, and nothing more on its way."""
