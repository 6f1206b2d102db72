"""The guard's proxy: the one way out of a guarded browser or worker.

It resolves names itself, checks every address that a name has, and dials the address that it
checked, so that a name cannot change its mind in between. A page that redirects, a WebSocket
(CONNECT) and a download each come here again.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ipaddress import IPv4Address, ip_address
from typing import Literal, NamedTuple

from browseruse_bench.browsers.guard.addresses import Address, literal, why_not_public
from browseruse_bench.browsers.guard.serving import Server, Streams, join
from browseruse_bench.browsers.guard.watch import Watch

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]

WEB_PORTS = (80, 443)
"""Ports below 1024 that count as the web; every port from 1024 on does."""
_HEAD_S = 15.0
_RESOLVE_S = 10.0
_DIAL_S = 15.0
_MAX_HEAD = 2**16
_OWN_HOSTS = ("accounts.google.com", "clients2.google.com", "android.clients.google.com")
_OWN_DOMAINS = (".googleapis.com", ".gvt1.com", ".gvt2.com")
_HOP_BY_HOP = frozenset(
    {"connection", "proxy-connection", "proxy-authorization", "keep-alive", "upgrade", "te", "host"}
)
# Threads of its own, so that slow names do not hold up the evidence of other attempts.
_RESOLVERS = ThreadPoolExecutor(max_workers=8, thread_name_prefix="guard-dns")


async def resolve(host: str, port: int) -> Sequence[str]:
    """The addresses of a name, by the system's resolver.

    Raises:
        OSError: it has none.
    """
    loop = asyncio.get_running_loop()
    found = await loop.run_in_executor(
        _RESOLVERS, lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    )
    return [str(entry[4][0]) for entry in found]


@dataclass(frozen=True, kw_only=True)
class Web:
    """What counts as the public web; tests bring a small one of their own."""

    also_public: frozenset[Address] = frozenset()
    resolve: Resolve = resolve


@dataclass(frozen=True, kw_only=True)
class Reach:
    """What lies behind a proxy."""

    hosts: Mapping[str, tuple[str, int]] = field(default_factory=dict[str, tuple[str, int]])
    """Site host -> the loopback address that answers for its port 80."""
    public: bool
    """Whether the public web is open beside the sites."""
    endpoints: frozenset[tuple[str, int]] = frozenset()
    """Hosts and ports that are let through as they are: a model's own endpoint."""
    web: Web = field(default_factory=Web)


class Refused(Exception):  # noqa: N818  it is an answer, not a fault
    """A target that is not allowed, with the reason."""


class _Request(NamedTuple):
    verb: str
    host: str
    port: int
    path: str | None
    """None for CONNECT."""
    headers: tuple[str, ...]


class GuardProxy(Server):
    """A forward proxy (absolute-form HTTP and CONNECT) on a loopback port."""

    limit = _MAX_HEAD

    def __init__(self, reach: Reach, watch: Watch, by: Literal["browser", "worker"]) -> None:
        """Let `reach` through and tell `watch` of all else."""
        super().__init__()
        self._reach = reach
        self._watch = watch
        self._by: Literal["browser", "worker"] = by

    async def targets(self, host: str, port: int) -> tuple[tuple[str, int], ...]:
        """The addresses to dial for a host and port, each of them checked.

        Raises:
            Refused: it is neither a declared site nor the public web.
        """
        host = host.strip("[]").removesuffix(".").lower()
        if host in self._reach.hosts:
            if port != 80:
                raise Refused(f"port {port} of a site")
            return (self._reach.hosts[host],)
        if (host, port) in self._reach.endpoints:
            return ((host, port),)
        written = literal(host)
        self._check_open(host, port, written)
        if written is not None:
            return ((str(written), port),)
        try:
            found = await asyncio.wait_for(self._reach.web.resolve(host, port), _RESOLVE_S)
        except (OSError, UnicodeError, TimeoutError):
            raise Refused("name not found") from None
        for text in found:
            self._check(ip_address(text.partition("%")[0]))
        return tuple(dict.fromkeys((text, port) for text in found))

    def _check_open(self, host: str, port: int, written: Address | None) -> None:
        """What can be said of a target before its name is resolved."""
        if written is not None:
            self._check(written)
        if host == "localhost" or host.endswith(".localhost"):
            raise Refused("loopback name")
        if not self._reach.public:
            raise Refused("not a declared site")
        if port not in WEB_PORTS and port < 1024:
            raise Refused(f"port {port}")

    def _check(self, address: Address) -> None:
        also = self._reach.web.also_public
        why = why_not_public(address, also)
        if why is None and address not in also and _is_of_this_machine(address):
            why = f"address {address} of this machine"
        if why is not None:
            raise Refused(why)

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), _HEAD_S)
        try:
            request = _parse(head)
        except ValueError:
            await _say(writer, "400 Bad Request", "not a proxy request")
            return
        try:
            targets = await self.targets(request.host, request.port)
        except Refused as refused:
            why = str(refused)
            # A name that does not exist is a mistake, not an attempt to get somewhere.
            if why != "name not found" and not _is_chromiums_own(request.host):
                self._watch.hit(self._by, _address(request), why)
            await _say(writer, "403 Forbidden", why)
            return
        try:
            upstream = await _dial(targets)
        except (OSError, TimeoutError):
            await _say(writer, "502 Bad Gateway", "no answer")
            return
        try:
            await self._join(request, (reader, writer), upstream)
        finally:
            upstream[1].close()

    async def _join(
        self,
        request: _Request,
        client: Streams,
        upstream: Streams,
    ) -> None:
        if request.path is None:
            client[1].write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            upstream[1].write(_forwarded(request))
        # The answer to a plain request ends it; a tunnel ends when both sides did, or one broke.
        await join(client, upstream, until_both=request.path is None)


@asynccontextmanager
async def guard_proxy(
    reach: Reach,
    watch: Watch,
    by: Literal["browser", "worker"],
    listener: socket.socket | None = None,
) -> AsyncGenerator[GuardProxy]:
    """A proxy that listens until the block is left, on a bound socket if one is given."""
    proxy = GuardProxy(reach, watch, by)
    await proxy.start(listener)
    try:
        yield proxy
    finally:
        await proxy.close()


def _parse(head: bytes) -> _Request:
    """The request of a client to its proxy.

    Raises:
        ValueError: it is none, or leaves open which host it means.
    """
    first, *headers = head[:-4].decode("latin-1").split("\r\n")
    verb, target, _version = first.split(" ")
    if verb == "CONNECT":
        host, _, port = target.rpartition(":")
        return _Request(verb, host, _port(port), None, tuple(headers))
    if not target.lower().startswith("http://"):
        raise ValueError(target)
    authority, slash, rest = target[7:].partition("/")
    if not authority or any(mark in authority for mark in "@?#\\"):
        raise ValueError(target)
    host, colon, port = authority.rpartition(":")
    if not colon or authority.endswith("]"):
        host, port = authority, "80"
    return _Request(verb, host, _port(port), slash + rest or "/", tuple(headers))


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 65536):
        raise ValueError(text)
    return int(text)


def _forwarded(request: _Request) -> bytes:
    """The request as the server gets it: its own host, and one request per connection."""
    kept = [
        line
        for line in request.headers
        if line.partition(":")[0].strip().lower() not in _HOP_BY_HOP
    ]
    port = "" if request.port == 80 else f":{request.port}"
    lines = (
        f"{request.verb} {request.path} HTTP/1.1",
        f"Host: {request.host}{port}",
        *kept,
        "Connection: close",
    )
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def _is_chromiums_own(host: str) -> bool:
    """Whether Chromium asks for this host by itself; it is refused like any other."""
    return host in _OWN_HOSTS or host.endswith(_OWN_DOMAINS)


def _address(request: _Request) -> str:
    if request.path is None:
        return f"{request.host}:{request.port}"
    return f"http://{request.host}:{request.port}{request.path}"


async def _dial(targets: Sequence[tuple[str, int]]) -> Streams:
    """A connection to the first of the targets that answers."""
    error: Exception = OSError("no address")
    for host, port in targets:
        try:
            return await asyncio.wait_for(asyncio.open_connection(host, port), _DIAL_S)
        except (OSError, TimeoutError) as failed:
            error = failed
    raise error


async def _say(writer: asyncio.StreamWriter, status: str, why: str) -> None:
    lines = (
        f"HTTP/1.1 {status}",
        f"X-Guard: {why}",
        "Content-Length: 0",
        "Connection: close",
    )
    writer.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace"))
    await writer.drain()


def _is_of_this_machine(address: Address) -> bool:
    """Whether a server here that listens on all addresses would answer."""
    family = socket.AF_INET if isinstance(address, IPv4Address) else socket.AF_INET6
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        try:
            probe.bind((str(address), 0))
        except OSError:
            return False
    return True
