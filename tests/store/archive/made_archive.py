"""Archives made without a browser."""

import hashlib
from datetime import UTC, datetime

from browseruse_bench.records.archived import ArchivedPage
from browseruse_bench.store.archive.exchange import Exchange
from browseruse_bench.store.archive.pages import write_page
from browseruse_bench.store.archive.wacz import package
from browseruse_bench.store.archive.warc import WarcWriter

AT = datetime(2026, 8, 20, 10, 0, 0, tzinfo=UTC)
ABOUT = {"software": "test"}


def exchange(url="http://shop.test/kettle", body=b"<p>Kettle, 31.90</p>", **changes):
    fields = {
        "method": "GET", "url": url, "request_headers": [("Accept", "*/*")], "request_body": b"",
        "status": 200, "phrase": "OK", "headers": [("Content-Type", "text/html"), ("Content-Encoding", "br")],
        "body": body, "at": AT, "kind": "Document", **changes,
    }  # fmt: skip
    return Exchange(**fields)


def mhtml(html):
    head = 'From: <test>\r\nContent-Type: multipart/related; boundary="b"\r\n\r\n--b\r\n'
    part = f"Content-Type: text/html; charset=utf-8\r\n\r\n{html}\r\n--b--\r\n"
    return (head + part).encode()


def page_of(text, url="http://shop.test/kettle", html=None, **changes):
    """A page and its parts."""
    parts = {"text": text.encode()}
    if html is not None:
        parts["mhtml"] = mhtml(html)
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in parts.items()}
    fields = {"url": url, "final_url": url, "title": "Kettle", "at": "2026-08-20T10:00:00.000000Z",
              "status": 200, "n_chars": len(text), **digests, **changes}  # fmt: skip
    return ArchivedPage(**fields), parts


def archived(folder, text, **more):
    """A package `<key>.wacz` in a folder, with one page; returns (path, page)."""
    page, parts = page_of(text, **more)
    warc = folder / f"{page.key}.tmp.gz"
    with WarcWriter(warc, ABOUT) as writer:
        exchange(page.final_url, text.encode()).write(writer)
        write_page(writer, page, parts, AT)
    path = package(warc, folder / f"{page.key}.wacz", title="made")
    warc.unlink()
    return path, page
