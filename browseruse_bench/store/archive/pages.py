"""The parts of an archived page as records of a WARC file."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime
from typing import Literal

from browseruse_bench.records.archived import ArchivedPage
from browseruse_bench.store.archive.warc import Draft, WarcWriter

Part = Literal["text", "mhtml", "png"]

PAGE_TYPE = "application/vnd.bubench.page+json"
"""Media type of the record that describes a page."""
URIS: Mapping[Part, str] = {"text": "urn:text:", "mhtml": "urn:mhtml:", "png": "urn:view:"}
"""What goes before the page's address; `urn:text` and `urn:view` are those of Browsertrix."""
_TYPES: Mapping[Part, str] = {
    "text": "text/plain; charset=utf-8",
    "mhtml": "multipart/related",
    "png": "image/png",
}


def write_page(
    writer: WarcWriter, page: ArchivedPage, parts: Mapping[Part, bytes], at: datetime
) -> None:
    """Append the parts of a page and, last, the page itself: it counts once that is there."""
    for part, content in parts.items():
        assert getattr(page, part) == hashlib.sha256(content).hexdigest()
        draft = Draft(
            type="resource",
            uri=URIS[part] + page.final_url,
            content_type=_TYPES[part],
            block=content,
            payload=content,
            at=at,
        )
        writer.write(draft)
    described = Draft(
        type="metadata",
        uri=page.final_url,
        content_type=PAGE_TYPE,
        block=page.as_line().encode(errors="replace"),
        at=at,
        more=[("WARC-Page-ID", page.key)],
    )
    writer.write(described)
