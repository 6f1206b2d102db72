"""Server-sent events, cut at their ends as they come and passed on as they are."""

from __future__ import annotations

import re
from collections.abc import Iterator

MAX_EVENT_BYTES = 16 * 2**20

_END = re.compile(rb"\n\r?\n|\r\r")
_LINE = re.compile(rb"\r\n|\n|\r")


class Events:
    """Cuts a stream into events; an event is handed on as soon as its blank line is there."""

    def __init__(self) -> None:
        """Nothing has come yet."""
        self._rest = bytearray()
        self._looked = 0

    @property
    def rest(self) -> bytes:
        """What has come behind the last whole event."""
        return bytes(self._rest)

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """The events that are whole now, each with the blank line that ends it."""
        self._rest += chunk
        while (end := _END.search(self._rest, self._looked)) is not None:
            event = bytes(self._rest[: end.end()])
            del self._rest[: end.end()]
            self._looked = 0
            yield event
        # The next chunk may bring the second half of a line's end.
        self._looked = max(0, len(self._rest) - 2)


def data_of(event: bytes) -> bytes:
    """The data of an event, its lines joined; empty where it has none."""
    lines = (line for line in _LINE.split(event) if line.startswith(b"data:"))
    return b"\n".join(line[5:].removeprefix(b" ") for line in lines)
