"""One request and its answer: how it is kept in a WARC file, and what makes two requests equal."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from browseruse_bench.store.archive.warc import Draft, Headers, WarcWriter, http_block

Truncated = Literal["length", "unspecified"]
"""Why a body was not kept, in the words of WARC: too large, or a stream without an end."""

_PACKED = frozenset({"content-encoding", "transfer-encoding", "content-length"})
"""Headers of an answer as it was sent; bodies are kept unpacked."""
_BODILESS = frozenset({"GET", "HEAD", "OPTIONS"})
_BOUNDARY = re.compile(rb'boundary="?([^";,\s]+)"?', re.IGNORECASE)
_BUSTERS = frozenset(
    {"_", "_t", "cb", "t", "ts", "rnd", "nocache", "cachebust", "cachebuster", "rand", "random",
     "timestamp"}
)  # fmt: skip
_DRAWN = re.compile(r"\d{9,}|0?\.\d{5,}")
"""A time since 1970, or what Math.random gives. Both the name and the value must fit: an answer to
another question is worse than none."""


@dataclass(frozen=True, kw_only=True)
class Exchange:
    """A request and its answer, bodies unpacked."""

    method: str
    url: str
    request_headers: Headers
    request_body: bytes
    status: int
    phrase: str
    headers: Headers
    body: bytes
    at: datetime
    kind: str
    """What the browser wanted it for: Document, XHR, Image, ..."""
    truncated: Truncated | None = None
    """Why the body is not there."""

    @property
    def key(self) -> str:
        """Equal for requests that may get the same answer."""
        return request_key(self.method, self.url, self.request_headers, self.request_body)

    def write(self, writer: WarcWriter) -> None:
        """Append the answer and, beside it, the request."""
        answered = [(n, v) for n, v in self.headers if n.lower() not in _PACKED]
        answered.append(("Content-Length", str(len(self.body))))
        more = [("WARC-Resource-Type", self.kind.lower())]
        if self.truncated is not None:
            more.append(("WARC-Truncated", self.truncated))
        phrase = self.phrase.strip() or "Unknown"
        identity = writer.write(
            Draft(
                type="response",
                uri=self.url,
                content_type="application/http; msgtype=response",
                block=http_block(f"HTTP/1.1 {self.status} {phrase}", answered, self.body),
                payload=self.body,
                at=self.at,
                more=more,
            )
        )
        asked = [(n, v) for n, v in self.request_headers if n.lower() != "content-length"]
        if self.request_body:
            asked.append(("Content-Length", str(len(self.request_body))))
        parts = urlsplit(self.url)
        path = urlunsplit(("", "", parts.path or "/", parts.query, ""))
        request = Draft(
            type="request",
            uri=self.url,
            content_type="application/http; msgtype=request",
            block=http_block(f"{self.method} {path} HTTP/1.1", asked, self.request_body),
            payload=self.request_body,
            at=self.at,
        )
        writer.write(request, beside=identity)


def request_key(
    method: str, url: str, headers: Headers | Mapping[str, str], body: bytes, *, loose: bool = False
) -> str:
    """What a request asks for: method, address without fragment and with its parameters sorted,
    and the SHA-256 of what it sends. The separators of a form with files, which are drawn by lot,
    do not count.

    Args:
        method: of HTTP.
        url: as it was asked for.
        headers: of the request; only its content type counts.
        body: what it sends.
        loose: leave out parameters that only keep an answer from being cached.
    """
    parts = urlsplit(url)
    query = parse_qsl(parts.query, keep_blank_values=True)
    if loose:
        query = [(n, v) for n, v in query if n.lower() not in _BUSTERS or not _DRAWN.fullmatch(v)]
    place = urlunsplit(
        (parts.scheme, parts.netloc.lower(), parts.path or "/", urlencode(sorted(query)), "")
    )
    sent = ""
    if method not in _BODILESS and body:
        sent = f" {hashlib.sha256(_without_boundary(headers, body)).hexdigest()}"
    return f"{method} {place}{sent}"


def _without_boundary(headers: Headers | Mapping[str, str], body: bytes) -> bytes:
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    kind = next((value for name, value in pairs if name.lower() == "content-type"), "")
    found = _BOUNDARY.search(kind.encode("utf-8", "replace"))
    return body.replace(found[1], b"BOUNDARY") if found else body
