"""Web addresses, compared by their components, never by prefix."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlsplit

_PORTS = {"http": 80, "https": 443}
_WEB = re.compile(r"https?://[^\s<>\"'`\])}|\\]+", re.IGNORECASE)


class Address(NamedTuple):
    """An http(s) address in parts that can be compared."""

    host: str
    """Lower case, IDNA form, without a trailing dot."""
    port: int | None
    """None: the scheme's default."""
    path: str
    """Percent escapes in one form; without trailing slashes."""
    query: tuple[tuple[str, str], ...]
    """Sorted pairs, decoded."""
    fragment: str


def parse(url: str) -> Address | None:
    """The parts of an http or https address; None for anything else.

    http and https are one; a user name in the address is left out; an address with a
    backslash, which browsers and parsers read differently, is None.
    """
    if "\\" in url:
        return None
    try:
        parts = urlsplit(url.strip())
        port = parts.port
        scheme = parts.scheme.lower()
        if scheme not in _PORTS or not parts.hostname:
            return None
    except ValueError:
        return None
    return Address(
        host=host_name(parts.hostname),
        port=None if port == _PORTS[scheme] else port,
        path=same_path(parts.path),
        query=tuple(sorted(parse_qsl(parts.query, keep_blank_values=True))),
        fragment=parts.fragment,
    )


def host_name(host: str) -> str:
    """A host name as it is compared."""
    host = host.rstrip(".").lower()
    try:
        return host if host.isascii() else host.encode("idna").decode()
    except UnicodeError:
        return host


def same_path(path: str) -> str:
    """A path as it is compared: case counts, trailing slashes do not."""
    return quote(unquote(path), safe="/:@!$&'()*+,;=~-._").rstrip("/")


def same(expected: str, found: str) -> bool:
    """Whether two addresses are one.

    Scheme (http or https), case of the host, a default port, trailing slashes of the path,
    the order of parameters and the way of escaping do not count. Host, port, path (with its
    case) and all parameters do; a fragment counts where the expected address has one.
    """
    a, b = parse(expected), parse(found)
    if a is None or b is None:
        return False
    return a[:4] == b[:4] and (not a.fragment or a.fragment == b.fragment)


def fits(url: str, *, host: str, path: str | None, query: dict[str, str]) -> bool:
    """Whether an address has this host, path and parameters.

    Args:
        url: a page's address.
        host: a name, with ":port" where the port is not the default one.
        path: exact, trailing slashes aside; None: any.
        query: each parameter occurs, and each time with this value; others are allowed.
    """
    found = parse(url)
    wanted = parse(f"http://{host}/")
    if found is None or wanted is None or found.host != wanted.host:
        return False
    if found.port != wanted.port:
        return False
    if path is not None and found.path != same_path(path):
        return False
    values: dict[str, set[str]] = {}
    for name, value in found.query:
        values.setdefault(name, set()).add(value)
    return all(values.get(name) == {value} for name, value in query.items())


def in_text(text: str) -> list[tuple[int, int, str]]:
    """The web addresses in a text, as (start, end, address), without closing punctuation."""
    found: list[tuple[int, int, str]] = []
    for match in _WEB.finditer(text):
        url = match[0].rstrip(".,;:!?*_")
        found.append((match.start(), match.start() + len(url), url))
    return found
