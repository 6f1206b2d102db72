"""WACZ 1.1.1: a WARC file with its index and its pages, as one zip file.

Source: https://specs.webrecorder.net/wacz/1.1.1/. What is in a package is stored as it is, so
records are read where they lie. datapackage.json holds the SHA-256 of every other file, and
datapackage-digest.json that of datapackage.json.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import secrets
import shutil
import tempfile
import zipfile
from collections.abc import Generator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, cast
from urllib.parse import parse_qsl, urlencode, urlsplit

from browseruse_bench.errors import DataError
from browseruse_bench.records.archived import ArchivedPage
from browseruse_bench.store.archive.pages import PAGE_TYPE
from browseruse_bench.store.archive.warc import DamagedError, WarcRecord, read_warc
from browseruse_bench.store.files import sha256_file

SUFFIX = ".wacz"
VERSION = "1.1.1"
_PACKAGE, _DIGEST = "datapackage.json", "datapackage-digest.json"
_EPOCH = (1980, 1, 1, 0, 0, 0)


def package(warc: Path, out: Path, *, title: str) -> Path:
    """Make a WACZ package of a WARC file; the package is on disk, whole, on return.

    Args:
        warc: whole, as `WarcWriter` left it.
        out: of the package; a file that is there is refused.
        title: of the package, for people.

    Raises:
        DataError: `out` is there.
        DamagedError: the WARC file is torn or damaged.
    """
    if out.exists():
        raise DataError(f"{out}: is there already; nothing is overwritten, choose another name")
    name = "data.warc.gz"
    index, pages = _indexed(warc, name)
    small = {
        "indexes/index.cdx": "".join(f"{line}\n" for line in sorted(index)).encode(),
        "pages/pages.jsonl": _pages_file(pages),
    }
    resources = [_resource(f"archive/{name}", sha256_file(warc), warc.stat().st_size)]
    for path, content in small.items():
        resources.append(_resource(path, hashlib.sha256(content).hexdigest(), len(content)))
    described = {
        "profile": "data-package",
        "wacz_version": VERSION,
        "software": "browseruse-bench",
        "title": title,
        "created": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "resources": resources,
    }
    text = json.dumps(described, indent=2, ensure_ascii=False).encode(errors="replace")
    digest = {"path": _PACKAGE, "hash": f"sha256:{hashlib.sha256(text).hexdigest()}"}
    small |= {_PACKAGE: text, _DIGEST: json.dumps(digest, indent=2).encode()}
    out.parent.mkdir(parents=True, exist_ok=True)
    _zip(out, small, {f"archive/{name}": warc})
    return out


def _resource(path: str, sha256: str, n_bytes: int) -> dict[str, Any]:
    name = path.rpartition("/")[2]
    return {"name": name, "path": path, "hash": f"sha256:{sha256}", "bytes": n_bytes}


def _zip(out: Path, small: dict[str, bytes], large: dict[str, Path]) -> None:
    """Put a zip file at `out`, whole or not at all."""
    temporary = out.with_name(f".{out.name}.{secrets.token_hex(4)}.tmp")
    try:
        with temporary.open("xb") as file:
            with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as outer:
                for name, path in large.items():
                    with (
                        path.open("rb") as source,
                        outer.open(_info(name), "w", force_zip64=True) as to,
                    ):
                        shutil.copyfileobj(source, to, 2**20)
                for name, content in small.items():
                    outer.writestr(_info(name), content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(out)
    except BaseException:  # Ctrl-C, too, leaves no half package
        temporary.unlink(missing_ok=True)
        raise


def _info(name: str) -> zipfile.ZipInfo:
    return zipfile.ZipInfo(name, _EPOCH)


@contextlib.contextmanager
def opened_warcs(path: Path) -> Generator[Sequence[BinaryIO]]:
    """The WARC files in an archive, open for reading; of a package all hashes were compared.

    Raises:
        DamagedError: it is no package, or a file in it is missing or was changed.
    """
    if path.suffix != SUFFIX:
        with path.open("rb") as file:
            yield (file,)
        return
    with contextlib.ExitStack() as stack:
        try:
            outer = stack.enter_context(zipfile.ZipFile(path))
        except (zipfile.BadZipFile, OSError) as error:
            raise DamagedError(f"torn or not a package: {error}") from None
        files: list[BinaryIO] = []
        for name in _checked(outer):
            # Records are read in any order, for which a file in a zip file is not made.
            copy = cast("BinaryIO", stack.enter_context(tempfile.TemporaryFile()))
            with outer.open(name) as source:
                shutil.copyfileobj(source, copy, 2**20)
            files.append(copy)
        yield files


def pages_of(path: Path) -> tuple[str, ...]:
    """The keys of the pages in a package, by its list, whose hash is not compared.

    Raises:
        DamagedError: it is no package.
    """
    try:
        with zipfile.ZipFile(path) as outer:
            lines = outer.read("pages/pages.jsonl").decode().splitlines()[1:]
        return tuple(str(json.loads(line)["id"]) for line in lines)
    except (zipfile.BadZipFile, OSError, KeyError, ValueError, EOFError) as error:
        raise DamagedError(f"{path}: torn or not a package: {error}") from None


def _checked(outer: zipfile.ZipFile) -> list[str]:
    """The names of the WARC files of a package whose files are those that it lists."""
    try:
        text = outer.read(_PACKAGE)
        resources: list[dict[str, Any]] = json.loads(text)["resources"]
        wanted = {str(entry["path"]): str(entry["hash"]) for entry in resources}
        if _DIGEST in outer.namelist():
            wanted[_PACKAGE] = str(json.loads(outer.read(_DIGEST))["hash"])
        for name, digest in wanted.items():
            with outer.open(name) as file:
                algorithm, _, value = digest.partition(":")
                if hashlib.file_digest(cast("Any", file), algorithm).hexdigest() != value:
                    raise DamagedError(f"{name}: was changed since the package was made")
    except (zipfile.BadZipFile, KeyError, TypeError, ValueError, OSError, EOFError) as error:
        raise DamagedError(f"torn or not a package: {error}") from None
    unlisted = [n for n in outer.namelist() if n not in wanted and n != _DIGEST and n[-1] != "/"]
    if unlisted:
        raise DamagedError(f"{', '.join(sorted(unlisted))}: not in the package's own list")
    return [name for name in wanted if name.startswith("archive/")]


def _indexed(warc: Path, name: str) -> tuple[list[str], list[ArchivedPage]]:
    """The index lines (CDXJ) of a WARC file, and its pages."""
    lines: list[str] = []
    pages: list[ArchivedPage] = []
    with warc.open("rb") as file:
        for record in read_warc(file):
            if record.type in ("response", "resource"):
                lines.append(_index_line(record, name))
            elif record.headers.get("content-type") == PAGE_TYPE:
                pages.append(ArchivedPage.model_validate_json(record.block))
    return lines, pages


def _index_line(record: WarcRecord, name: str) -> str:
    entry = {
        "url": record.uri,
        "mime": record.headers.get("content-type", "").partition(";")[0],
        "digest": record.headers.get("warc-payload-digest", ""),
        "length": str(record.length),
        "offset": str(record.offset),
        "filename": name,
    }
    if record.type == "response":
        http = record.http
        kind = next((v for n, v in http.headers if n.lower() == "content-type"), "")
        entry |= {"mime": kind.partition(";")[0].strip(), "status": http.first.split(" ", 2)[1]}
    stamp = re.sub(r"\D", "", record.headers.get("warc-date", ""))[:14]
    return f"{sort_key(record.uri)} {stamp} {json.dumps(entry, ensure_ascii=False)}"


def sort_key(url: str) -> str:
    """An address in the order of indexes: `http://www.Shop.test:81/a?b=2&a=1` is
    `test,shop:81)/a?a=1&b=2`. Others than http and https stay as they are.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https"):
        return url.replace(" ", "%20")
    host = (parts.hostname or "").removeprefix("www.")
    port = f":{parts.port}" if parts.port not in (None, 80, 443) else ""
    if not re.fullmatch(r"[\d.]+", host) and ":" not in host:
        host = ",".join(reversed(host.split(".")))
    query = urlencode(sorted(parse_qsl(parts.query, keep_blank_values=True)))
    path = parts.path.rstrip("/") or "/"
    return f"{host}{port}){path}{f'?{query}' if query else ''}".lower().replace(" ", "%20")


def _pages_file(pages: Sequence[ArchivedPage]) -> bytes:
    head = {"format": "json-pages-1.0", "id": "pages", "title": "Pages"}
    lines = [head]
    for page in pages:
        # Whole seconds, which is what other programs read.
        stamp = f"{page.at.partition('.')[0].removesuffix('Z')}Z"
        lines.append({"id": page.key, "url": page.final_url, "title": page.title, "ts": stamp})
    return "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines).encode(
        errors="replace"
    )
