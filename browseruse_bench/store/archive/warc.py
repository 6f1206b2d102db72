"""WARC 1.1 (ISO 28500:2017): records of web traffic, each a gzip member of its own.

A file is only ever appended to, so what a power failure leaves is whole records and at most one
that is torn. Every record that is read is compared with its own digest. Source of the format:
https://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import uuid
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Literal, NamedTuple, Self

from browseruse_bench.errors import DataError

RecordType = Literal["warcinfo", "response", "request", "resource", "metadata", "conversion"]
Headers = Sequence[tuple[str, str]]

MAX_RECORD_BYTES = 2**29
"""A record that unpacks to more is refused: nothing of ours writes one."""
_VERSION = b"WARC/1.1"
_PIECE = 2**18
_LINE_END = re.compile(r"[\r\n]+")
_HTTP = "application/http"


class DamagedError(DataError):
    """An archive that is torn, or that is not what was written; says where."""


@dataclass(frozen=True, kw_only=True)
class Draft:
    """A record that is to be written."""

    type: RecordType
    uri: str | None
    content_type: str
    block: bytes
    at: datetime
    payload: bytes | None = None
    """The part of the block that the payload digest is of; None: no such digest."""
    more: Headers = ()
    """Further headers of the record."""


@dataclass(frozen=True, kw_only=True)
class WarcRecord:
    """A record that was read and whose digests fit."""

    type: str
    uri: str
    headers: Mapping[str, str]
    """By name in lower case."""
    block: bytes
    offset: int
    """Of its gzip member in the file."""
    length: int
    """Of its gzip member, in bytes."""

    @property
    def http(self) -> Http:
        """The block as an HTTP message.

        Raises:
            DamagedError: it is none.
        """
        return parse_http(self.block, self.offset)


class Http(NamedTuple):
    """An HTTP message: `HTTP/1.1 200 OK` or `GET /x HTTP/1.1`, headers, body."""

    first: str
    headers: tuple[tuple[str, str], ...]
    body: bytes


def http_block(first: str, headers: Headers, body: bytes) -> bytes:
    """An HTTP message as bytes; a header with line ends becomes several of its name."""
    lines = [_LINE_END.sub(" ", first)]
    for name, value in headers:
        lines += [f"{name}: {part.strip()}" for part in _LINE_END.split(value) or [""]]
    head = "\r\n".join(lines) + "\r\n\r\n"
    return head.encode("utf-8", "replace") + body


def parse_http(block: bytes, offset: int) -> Http:
    """The parts of an HTTP message.

    Raises:
        DamagedError: there is no end of its headers.
    """
    head, gap, body = block.partition(b"\r\n\r\n")
    if not gap:
        raise DamagedError(f"record at byte {offset}: not an HTTP message")
    first, *lines = head.decode("utf-8", "replace").split("\r\n")
    parts = (line.partition(":") for line in lines)
    return Http(first, tuple((name.strip(), value.strip()) for name, _, value in parts), body)


class WarcWriter:
    """Appends records to a new file; each is whole in the file once `write` returns."""

    def __init__(self, path: Path, about: Mapping[str, str]) -> None:
        """Begin the file with a `warcinfo` record that says `about` it.

        Raises:
            FileExistsError: there is such a file already; nothing is overwritten.
        """
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file: BinaryIO = path.open("xb")
        block = "".join(f"{name}: {_LINE_END.sub(' ', value)}\r\n" for name, value in about.items())
        info = Draft(
            type="warcinfo", uri=None, content_type="application/warc-fields",
            block=block.encode(), at=datetime.now(UTC), more=[("WARC-Filename", path.name)],
        )  # fmt: skip
        self._info_id = ""
        self._info_id = self.write(info)

    def write(self, draft: Draft, *, beside: str | None = None) -> str:
        """Append a record and return its id.

        Args:
            draft: the record.
            beside: id of the record that it belongs to (a request's response).

        Raises:
            OSError: it cannot be written (a full disk, say); then nothing of it is there.
        """
        identity = f"<urn:uuid:{uuid.uuid4()}>"
        content = _head(draft, identity, self._info_id, beside) + draft.block + b"\r\n\r\n"
        packer = zlib.compressobj(6, zlib.DEFLATED, 31)
        packed = packer.compress(content) + packer.flush()
        start = self._file.tell()
        try:
            self._file.write(packed)
            self._file.flush()
        except OSError:
            os.ftruncate(self._file.fileno(), start)
            self._file.seek(start)
            raise
        return identity

    @property
    def n_bytes(self) -> int:
        """Size of the file so far."""
        return 0 if self._file.closed else self._file.tell()

    def close(self) -> None:
        """Have all of it on disk, and close the file; may be called again."""
        if self._file.closed:
            return
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
        finally:
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _head(draft: Draft, identity: str, info_id: str, beside: str | None) -> bytes:
    headers = [
        ("WARC-Type", draft.type),
        ("WARC-Record-ID", identity),
        ("WARC-Date", draft.at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")),
        ("Content-Type", draft.content_type),
        ("Content-Length", str(len(draft.block))),
        ("WARC-Block-Digest", _digest(draft.block)),
    ]
    if draft.uri is not None:
        headers.insert(2, ("WARC-Target-URI", draft.uri))
    if draft.payload is not None:
        headers.append(("WARC-Payload-Digest", _digest(draft.payload)))
    if info_id:
        headers.append(("WARC-Warcinfo-ID", info_id))
    if beside is not None:
        headers.append(("WARC-Concurrent-To", beside))
    lines = [
        _VERSION.decode(),
        *(f"{n}: {_LINE_END.sub(' ', v)}" for n, v in (*headers, *draft.more)),
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8", "replace")


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


@dataclass
class _Member:
    """A gzip member while it is unpacked."""

    offset: int
    unpacker: zlib._Decompress = field(default_factory=lambda: zlib.decompressobj(31))  # pyright: ignore[reportPrivateUsage]
    pieces: list[bytes] = field(default_factory=list[bytes])
    size: int = 0

    def feed(self, piece: bytes) -> bytes:
        """Unpack; returns what lies behind the member's end.

        Raises:
            DamagedError: it is no gzip, or too large.
        """
        try:
            unpacked = self.unpacker.decompress(piece, MAX_RECORD_BYTES + 1 - self.size)
        except zlib.error as error:
            raise DamagedError(f"record at byte {self.offset}: damaged: {error}") from None
        self.size += len(unpacked)
        if self.size > MAX_RECORD_BYTES:
            raise DamagedError(
                f"record at byte {self.offset}: larger than {MAX_RECORD_BYTES} bytes"
            )
        self.pieces.append(unpacked)
        return self.unpacker.unused_data


def read_warc(file: BinaryIO, *, offset: int = 0, end: int | None = None) -> Iterator[WarcRecord]:
    """The records of a file, in order, each compared with its digests.

    Args:
        file: gzip members, as `WarcWriter` and most other programs write them.
        offset: where to begin.
        end: where to stop; None: at the end of the file.

    Raises:
        DamagedError: it is torn at its end, damaged, or a record was changed; the records
            before that were given already.
    """
    file.seek(offset)
    rest, n_before = b"", 0
    while True:
        member = _Member(offset)
        read = len(rest)
        rest = member.feed(rest) if rest else b""
        while not member.unpacker.eof:
            piece = file.read(_PIECE)
            if not piece and read == 0:
                return
            if not piece:
                raise DamagedError(
                    f"torn: the record at byte {offset} is cut off; {n_before} whole ones are "
                    "before it"
                )
            read += len(piece)
            rest = member.feed(piece)
        length = read - len(rest)
        yield _parsed(b"".join(member.pieces), offset, length)
        n_before += 1
        offset += length
        if end is not None and offset >= end:
            return


def _parsed(content: bytes, offset: int, length: int) -> WarcRecord:
    head, gap, rest = content.partition(b"\r\n\r\n")
    version, *lines = head.decode("utf-8", "replace").split("\r\n")
    if not gap or not version.startswith("WARC/1."):
        raise DamagedError(f"record at byte {offset}: not a WARC record")
    pairs = (line.partition(":") for line in lines)
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    size = headers.get("content-length", "")
    if not size.isdigit() or len(rest) != int(size) + 4:
        raise DamagedError(f"record at byte {offset}: its length is not {size or 'given'}")
    record = WarcRecord(
        type=headers.get("warc-type", ""),
        uri=headers.get("warc-target-uri", "").strip("<>"),
        headers=headers,
        block=rest[:-4],
        offset=offset,
        length=length,
    )
    _check_digests(record)
    return record


def _check_digests(record: WarcRecord) -> None:
    """Compare a record with what it says of itself.

    Raises:
        DamagedError: a digest does not fit.
    """
    wanted = {"block": record.headers.get("warc-block-digest")}
    payload = record.headers.get("warc-payload-digest")
    if payload and record.headers.get("content-type", "").startswith(_HTTP):
        wanted["payload"] = payload
    for part, digest in wanted.items():
        if not digest:
            continue
        content = record.block if part == "block" else record.http.body
        if not _fits(content, digest):
            raise DamagedError(
                f"record at byte {record.offset} ({record.uri}): its {part} was changed since it "
                "was written"
            )


def _fits(content: bytes, digest: str) -> bool:
    """Whether `algorithm:value` is the content's; the value is hexadecimal or base 32."""
    algorithm, _, value = digest.partition(":")
    name = algorithm.lower().replace("-", "")
    if name not in ("sha1", "sha256", "sha512", "md5"):
        return True  # a digest that we do not know says nothing
    found = hashlib.new(name, content, usedforsecurity=False).digest()
    return value.lower() == found.hex() or value.upper() == base64.b32encode(found).decode()
