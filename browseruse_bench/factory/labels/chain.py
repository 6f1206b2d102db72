"""An append-only file of JSON lines, each of which names the hash of all before it.

A line that was changed, put in or taken out shows, for the lines after it no longer fit. That the
last lines were cut off doesn't show here: whoever must know keeps a `Head` elsewhere, and `has`
tells whether the file still leads there.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from browseruse_bench.errors import DataError, StoreError
from browseruse_bench.records.base import Record, canonical_json
from browseruse_bench.store.journal import Journal, read_journal
from browseruse_bench.store.redact import Redactor

START = hashlib.sha256(b"").hexdigest()
"""What stands before the first line."""


class Head(Record):
    """How long a chain is, and its last hash: all that has to be kept elsewhere."""

    n: int = Field(ge=0)
    chain: str = Field(pattern=r"^[0-9a-f]{64}$")


class Link(Record):
    """One line."""

    n: int = Field(ge=1)
    entry: dict[str, Any]
    chain: str = Field(pattern=r"^[0-9a-f]{64}$")
    """SHA-256 of the hash before it and this entry."""

    @property
    def head(self) -> Head:
        """The end of a chain whose last line this is."""
        return Head(n=self.n, chain=self.chain)


def chained(before: str, entry: Mapping[str, Any]) -> str:
    """The hash of an entry behind what is before it."""
    return hashlib.sha256(f"{before}\n{canonical_json(entry)}".encode(errors="replace")).hexdigest()


@dataclass(frozen=True)
class Chain:
    """A chained file; it needs not be there yet. Whoever appends holds `locked`."""

    path: Path
    mode: int = 0o644

    def links(self) -> tuple[Link, ...]:
        """All lines; a torn last line counts as never written.

        Raises:
            DataError: a line is damaged, or the chain doesn't hold at one; it is named.
        """
        found: list[Link] = []
        before = START
        for number, line in enumerate(read_journal(self.path), 1):
            try:
                link = Link.model_validate(line)
            except ValidationError as error:
                raise DataError(
                    f"{self.path}: line {number} is damaged ({error.errors()[0]['msg']})"
                ) from error
            if link.n != number or link.chain != chained(before, link.entry):
                raise DataError(
                    f"{self.path}: the chain breaks at line {number}: this line, or one before "
                    "it, was changed, put in or taken out after it was written; restore the file"
                )
            found.append(link)
            before = link.chain
        return tuple(found)

    def append_all(
        self, entries: Iterable[Mapping[str, Any]], links: Sequence[Link] | None = None
    ) -> tuple[Link, ...]:
        """Add entries; they are on disk when this returns.

        Args:
            entries: plain JSON.
            links: what `links` gave under the same lock, if that was read already.

        Raises:
            DataError: what is there doesn't hold; nothing is added.
            StoreError: it cannot be written.
        """
        known = self.links() if links is None else links
        last = known[-1].head if known else Head(n=0, chain=START)
        own = Redactor.of_environment().own
        added: list[Link] = []
        for entry in entries:
            # Hashed as it will be read: without our own secrets, which the journal takes out.
            plain: dict[str, Any] = json.loads(own(canonical_json(entry)))
            n, chain = last.n + 1, chained(last.chain, plain)
            added.append(Link(n=n, entry=plain, chain=chain))
            last = added[-1].head
        if not added:
            return ()
        try:
            if not self.path.exists():
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self.path.touch(self.mode)
            with Journal(self.path) as journal:
                journal.append_all(link.model_dump(mode="json") for link in added)
        except OSError as error:
            raise StoreError(f"{self.path}: cannot be written: {error}") from error
        return tuple(added)


def has(links: Sequence[Link], head: Head) -> bool:
    """Whether a chain leads through this head."""
    if head.n == 0:
        return head.chain == START
    return head.n <= len(links) and links[head.n - 1].chain == head.chain


@contextlib.contextmanager
def locked(folder: Path) -> Generator[None]:
    """Keep every other process that labels here from writing until the end of the block.

    Raises:
        StoreError: the folder cannot be written.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = (folder / ".lock").open("a")
    except OSError as error:
        raise StoreError(f"{folder}: cannot be written: {error}") from error
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
