"""An archive that was read whole once: its exchanges and pages, each found without a search."""

from __future__ import annotations

import hashlib
import threading
from collections import defaultdict
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Self

from pydantic import ValidationError

from browseruse_bench.errors import ConfigError
from browseruse_bench.records.archived import ArchivedPage
from browseruse_bench.store.archive.exchange import request_key
from browseruse_bench.store.archive.pages import PAGE_TYPE, URIS, Part
from browseruse_bench.store.archive.wacz import SUFFIX as WACZ
from browseruse_bench.store.archive.wacz import opened_warcs
from browseruse_bench.store.archive.warc import DamagedError, WarcRecord, read_warc

SUFFIXES = (WACZ, ".warc.gz", ".warc")


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a record is, and what must be known of it before it is read."""

    file: int
    """Position among the archive's WARC files."""
    offset: int
    uri: str
    kind: str = ""
    truncated: bool = False
    length: int = 0
    content_type: str = ""
    digest: str = ""
    status: int | None = None
    date: str = ""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What is sent to a browser again."""

    status: int
    phrase: str
    headers: tuple[tuple[str, str], ...]
    body: bytes


class Archive:
    """An open archive; made by `open`. All of its records were compared with their digests."""

    def __init__(self, path: Path) -> None:
        """Know nothing of the file yet."""
        self.path = path
        self.n_bytes = path.stat().st_size
        self.n_records = 0
        self.pages: dict[str, ArchivedPage] = {}
        """By key, in the order in which they were seen."""
        self.exchanges: dict[str, list[Place]] = defaultdict(list)
        """By `request_key`, in the order in which they were answered."""
        self._loose: dict[str, list[Place]] = defaultdict(list)
        self._parts: dict[tuple[Part, str], Place] = {}
        self._files: Sequence[BinaryIO] = ()
        self._stack = ExitStack()
        self._reading = threading.Lock()

    @classmethod
    def open(cls, path: Path) -> Archive:
        """Read and check a .wacz, .warc.gz or .warc file.

        Raises:
            ConfigError: there is no such file.
            DamagedError: it is torn, or something in it was changed; its place is named.
        """
        if not path.is_file():
            raise ConfigError(f"{path}: no such archive")
        archive = cls(path)
        try:
            archive._files = archive._stack.enter_context(opened_warcs(path))
            for number, file in enumerate(archive._files):
                archive._index(number, file)
            archive._check_parts()
        except DamagedError as error:
            archive.close()
            raise DamagedError([f"{path}: {problem}" for problem in error.problems]) from None
        except BaseException:  # whatever it is, the files must not stay open
            archive.close()
            raise
        return archive

    @property
    def n_exchanges(self) -> int:
        """How many answers there are."""
        return sum(map(len, self.exchanges.values()))

    def find(self, method: str, url: str, headers: dict[str, str], body: bytes) -> list[Place]:
        """The answers to exactly this request, in order."""
        return self.exchanges.get(request_key(method, url, headers, body), [])

    def find_loosely(
        self, method: str, url: str, headers: dict[str, str], body: bytes
    ) -> list[Place]:
        """The answers to this request but for parameters that keep it from being cached."""
        return self._loose.get(request_key(method, url, headers, body, loose=True), [])

    def answer(self, place: Place) -> Answer:
        """Read an answer.

        Raises:
            DamagedError: the file was changed since it was opened.
        """
        http = self._record(place).http
        _version, _, rest = http.first.partition(" ")
        status, _, phrase = rest.partition(" ")
        return Answer(status=int(status), phrase=phrase, headers=http.headers, body=http.body)

    def part(self, page: ArchivedPage, part: Part) -> bytes | None:
        """A part of a page; None: it was not kept.

        Raises:
            DamagedError: the file was changed since it was opened.
        """
        digest = getattr(page, part)
        return None if digest is None else self._record(self._parts[part, digest]).block

    def close(self) -> None:
        """Close the file; may be called again."""
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _record(self, place: Place) -> WarcRecord:
        with self._reading:
            return next(read_warc(self._files[place.file], offset=place.offset))

    def _index(self, number: int, file: BinaryIO) -> None:
        answered: tuple[str, Place] | None = None
        for record in read_warc(file):
            self.n_records += 1
            place = _place(number, record)
            if record.type == "response" and record.uri.startswith(("http://", "https://")):
                answered = (record.headers.get("warc-record-id", ""), place)
            elif record.type == "request" and answered is not None:
                # Ours come behind their answer; of other programs', what cannot be told is left.
                if record.headers.get("warc-concurrent-to") == answered[0]:
                    self._ask(record, answered[1])
                answered = None
            elif record.type == "resource":
                self._note_part(record, place)
            elif record.type == "metadata" and place.content_type == PAGE_TYPE:
                page = _page(record)
                self.pages[page.key] = page

    def _ask(self, request: WarcRecord, place: Place) -> None:
        http = request.http
        method = http.first.partition(" ")[0]
        for table, loose in ((self.exchanges, False), (self._loose, True)):
            key = request_key(method, request.uri, http.headers, http.body, loose=loose)
            table[key].append(place)

    def _note_part(self, record: WarcRecord, place: Place) -> None:
        for part, prefix in URIS.items():
            if record.uri.startswith(prefix):
                self._parts[part, hashlib.sha256(record.block).hexdigest()] = place

    def _check_parts(self) -> None:
        """Every part that a page names is there.

        Raises:
            DamagedError: one is not.
        """
        for key, page in self.pages.items():
            for part in URIS:
                digest = getattr(page, part)
                if digest is not None and (part, digest) not in self._parts:
                    raise DamagedError(f"page {key[:12]} ({page.final_url}): its {part} is missing")


def _place(number: int, record: WarcRecord) -> Place:
    kind = record.headers.get("content-type", "")
    status, mime = None, kind
    if record.type == "response" and kind.startswith("application/http"):
        http = record.http
        found = http.first.split(" ", 2)
        status = int(found[1]) if len(found) > 1 and found[1].isdigit() else None
        mime = next((v for n, v in http.headers if n.lower() == "content-type"), "")
    return Place(
        file=number,
        offset=record.offset,
        length=record.length,
        uri=record.uri,
        kind=record.headers.get("warc-resource-type", ""),
        truncated="warc-truncated" in record.headers,
        content_type=mime,
        digest=record.headers.get("warc-payload-digest", ""),
        status=status,
        date=record.headers.get("warc-date", ""),
    )


def _page(record: WarcRecord) -> ArchivedPage:
    try:
        page = ArchivedPage.model_validate_json(record.block)
    except ValidationError as error:
        raise DamagedError(f"record at byte {record.offset}: not a page: {error}") from None
    if page.key != record.headers.get("warc-page-id"):
        raise DamagedError(f"record at byte {record.offset}: the page was changed")
    return page
