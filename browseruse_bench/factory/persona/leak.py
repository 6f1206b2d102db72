"""Where a value that must not be in a folder is all the same, decoded files included.

A file is read as it is, and as what it holds: JSON texts unescaped, gzip (WARC too), members of
zip files, cells of Parquet, and sealed task files. Values of six characters or more are looked
for by bytes, shorter ones as whole words, in any case, also percent-encoded.
"""

from __future__ import annotations

import gzip
import io
import json
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, cast
from urllib.parse import unquote_plus

from browseruse_bench.benchmarks.publishers.sealed import unseal
from browseruse_bench.factory.persona.residue import leaked


class Leak(NamedTuple):
    """A value in a file."""

    path: Path
    value: int
    """Its index among the values; never the value itself."""


def leaks(
    folder: Path,
    values: Sequence[str],
    *,
    sealed_as: str | None = None,
    shown: Iterable[bytes] = (),
) -> list[Leak]:
    """Every value that a file below a folder holds.

    Args:
        folder: searched with all that is below it; names of files count as content.
        values: what must not be there.
        sealed_as: name of the benchmark whose `.enc` files are below.
        shown: what live sites show by themselves, to somebody who brought none of the values: a
            value that is in it, a town or a brand, is public there and counts for nothing.
    """
    public = {index for page in shown for index in _held(page, values)}
    found: set[Leak] = set()
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder)).encode(errors="replace")
        contents = [name]
        if path.is_file() and not path.is_symlink():
            contents += decoded(path.read_bytes(), path.suffix, sealed_as)
        for content in contents:
            found |= {Leak(path, index) for index in _held(content, values) - public}
    return sorted(found)


def outside(workspace: Path, values: Sequence[str], *, inputs: Iterable[str] = ()) -> list[Leak]:
    """Every value that anything of a workspace but restricted/ holds: clean/, releases/, files at
    its root, and names of files.

    Args:
        workspace: its root. Sealed files below releases/<Name>/ are opened as that benchmark's.
        values: what must not be there.
        inputs: names at the root that hold what was submitted, and so may hold values.
    """
    skipped = {"restricted", *inputs}
    found: list[Leak] = []
    for path in sorted(workspace.iterdir()):
        if path.name in skipped:
            continue
        if path.name == "releases":
            for release in sorted(path.iterdir()):
                found += _below(release, values, release.name)
        else:
            found += _below(path, values, None)
    return found


def _below(path: Path, values: Sequence[str], sealed_as: str | None) -> list[Leak]:
    if path.is_dir():
        return leaks(path, values, sealed_as=sealed_as)
    name = path.name.encode(errors="replace")
    held = [_held(content, values) for content in (name, *decoded(path.read_bytes(), path.suffix))]
    return [Leak(path, index) for index in sorted(set[int]().union(*held))]


def _held(content: bytes, values: Sequence[str]) -> set[int]:
    """Which values, by their index, a content holds, percent-encoded or as they are."""
    found = set(leaked(values, content))
    if b"%" in content or b"+" in content:
        plain = unquote_plus(content.decode(errors="replace")).encode(errors="replace")
        found |= set(leaked(values, plain))
    return found


def decoded(content: bytes, suffix: str, sealed_as: str | None = None) -> Iterator[bytes]:
    """A file's content as it is, then as each thing that it holds."""
    yield content
    if content.startswith(b"\x1f\x8b"):
        try:
            inner = gzip.decompress(content)
        except (OSError, EOFError, zlib.error):
            return  # cut off or damaged: its bytes were searched as they are
        yield from decoded(inner, "", sealed_as)
    elif zipfile.is_zipfile(io.BytesIO(content)):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for name in archive.namelist():
                yield name.encode()
                yield from decoded(archive.read(name), Path(name).suffix, sealed_as)
    elif content.startswith(b"PAR1"):
        yield from _cells(content)
    elif suffix == ".enc" and sealed_as is not None:
        yield json.dumps(unseal(content, sealed_as), ensure_ascii=False).encode()
    elif b"\\" in content:
        yield from _unescaped(content)


def _cells(content: bytes) -> Iterator[bytes]:
    import polars

    for row in polars.read_parquet(io.BytesIO(content)).iter_rows(named=True):
        yield json.dumps(row, ensure_ascii=False, default=str).encode(errors="replace")


def _unescaped(content: bytes) -> Iterator[bytes]:
    """The texts of a JSON file, or of each line of one."""
    for part in (content, *content.splitlines()):
        try:
            value: object = json.loads(part)
        except ValueError:
            continue
        yield "\n".join(_texts(value)).encode(errors="replace")
        if part is content:
            return


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in cast("list[object]", value):
            yield from _texts(item)
    elif isinstance(value, dict):
        for key, item in cast("dict[str, object]", value).items():
            yield key
            yield from _texts(item)
