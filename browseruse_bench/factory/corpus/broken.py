"""Lines of JSON-lines files that could not be read: where they are, and whether they were mended.

Nothing of such a line is kept. Of the rest of its file a hash is, so that a file in which only
these lines were mended or removed is told from one that changed elsewhere.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from browseruse_bench.factory.corpus.inputs import Broken, InputFile
from browseruse_bench.store.files import sha256_file

MOST = 1_000
"""Lines of one file that can be mended one by one."""


def find_broken(places: Mapping[str, Sequence[int]]) -> tuple[Broken, ...]:
    """What is wrong with each file.

    Args:
        places: path -> bytes at which its broken lines begin.
    """
    return tuple(_broken(path, frozenset(at)) for path, at in sorted(places.items()) if at)


def _broken(path: str, places: Collection[int]) -> Broken:
    rest = hashlib.sha256()
    numbers: list[int] = []
    for number, start, line in _lines(Path(path)):
        if start in places:
            numbers.append(number)
        else:
            rest.update(line)
    return Broken(path=path, lines=tuple(numbers[:MOST]), n=len(numbers), rest=rest.hexdigest())


def mended(path: Path, broken: Broken) -> InputFile | None:
    """The file as it is now, of which only what was broken is to be read; None: it changed
    elsewhere too, or too much of it was broken.
    """
    if broken.n > MOST:
        return None
    without, whole = hashlib.sha256(), hashlib.sha256()
    places: list[tuple[int, int]] = []
    for number, start, line in _lines(path):
        whole.update(line)
        if number in broken.lines:
            places.append((start, start + len(line)))
        else:
            without.update(line)
    removed = whole.hexdigest() == broken.rest
    if not removed and without.hexdigest() != broken.rest:
        return None
    stat = path.stat()
    return InputFile(
        path=str(path),
        size=stat.st_size,
        mtime_ns=stat.st_mtime_ns,
        sha256=sha256_file(path),
        places=((0, 0),) if removed else tuple(places),
        mends=broken.n,
    )


def _lines(path: Path) -> Iterator[tuple[int, int, bytes]]:
    """(number from 1, byte at which it begins, bytes) of each line."""
    start = 0
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            yield number, start, line
            start += len(line)


def told(broken: Broken) -> Iterator[str]:
    """One line for each, with what to do."""
    for line in broken.lines:
        yield (
            f"{broken.path}:{line}: not a JSON object with text and tag as texts: it is left out "
            "and counted as failed; mend or remove this line in its place, and the same command "
            "takes it"
        )
    if broken.n > len(broken.lines):
        yield (
            f"{broken.path}: {broken.n} lines are broken, more than {MOST}: mend the file, and read "
            "everything again with `bubench factory run filter --restart`"
        )
