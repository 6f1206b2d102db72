"""What a page may make of a text that an agent hands it: the text with its escapes decoded.

A value that was typed in base64 into a decoder, or escaped twice into an address, is the agent's
own as much as one that was typed as it is. Known are percent escapes, character references of
HTML, the escapes of JavaScript and JSON, base64 (also that of addresses) and hexadecimal digits,
and each of them within another. What takes a program to decode (a cipher, a translation, a sum)
is not known.
"""

from __future__ import annotations

import base64
import binascii
import html
import io
import re
import zipfile
import zlib
from collections.abc import Callable
from urllib.parse import unquote_plus

DEPTH = 3
"""How often a text is decoded."""
MAX_FORMS = 16
"""How many forms of one text are looked at."""
MAX_CHARS = 100_000
"""A longer text is decoded up to here."""

_ESCAPE = re.compile(r"\\(?:u\{([0-9a-fA-F]{1,6})\}|u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2}))")
_RUN = re.compile(r"[A-Za-z0-9+/_-]{2,}={0,2}")
_PLAIN_RUN = re.compile(r"[A-Za-z0-9]{2,}={0,2}")
_HEX = re.compile(r"(?<![0-9A-Za-z])(?:0x)?((?:[0-9a-fA-F]{2}){2,})(?![0-9A-Za-z])")


def forms(text: str) -> tuple[str, ...]:
    """The text, and what it is once its escapes are decoded, whatever is in what."""
    found: dict[str, None] = {text: None}
    latest = [text[:MAX_CHARS]]
    for _ in range(DEPTH):
        new = [decoded for one in latest for decoder in _DECODERS for decoded in (decoder(one),)]
        latest = [one for one in dict.fromkeys(new) if one and one not in found]
        for one in latest:
            if len(found) < MAX_FORMS:
                found[one] = None
    return tuple(found)


def _escapes(text: str) -> str:
    return _ESCAPE.sub(_character, text)


def _character(found: re.Match[str]) -> str:
    code = int(found[1] or found[2] or found[3], 16)
    return chr(code) if code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF else " "


def _base64(text: str) -> str:
    """The readable texts that stand in the text in base64, a line each."""
    runs = dict.fromkeys([*_RUN.findall(text), *_PLAIN_RUN.findall(text)])
    return "\n".join(filter(None, map(_of_base64, runs)))


def _of_base64(run: str) -> str:
    bare = run.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        content = base64.b64decode(bare + "=" * (-len(bare) % 4), validate=True)
    except binascii.Error:
        return ""
    # What was not written by an encoder (most words are such) does not come back the same.
    if base64.b64encode(content).decode().rstrip("=") != bare:
        return ""
    return _readable(content)


def _hex(text: str) -> str:
    """The readable texts that stand in the text in hexadecimal digits, a line each."""
    return "\n".join(filter(None, (_readable(bytes.fromhex(h)) for h in _HEX.findall(text))))


def _readable(content: bytes) -> str:
    # Every second byte of Latin text in UTF-16 is 0, which no text in UTF-8 has.
    for encoding in ("utf-16-le", "utf-16-be") if b"\0" in content else ("utf-8",):
        try:
            text = content.decode(encoding)
        except UnicodeDecodeError:
            continue
        if all(c.isprintable() or c in "\t\r\n\ufeff" for c in text):
            return text
    return ""


MAX_FILE_BYTES = 1_000_000
"""How much of a file, and of each part of a zip file, is read."""


def texts_of(content: bytes) -> list[str]:
    """The text of a file, and of each part of it if it is a zip file."""
    found = [content[:MAX_FILE_BYTES].decode("utf-8", "replace")]
    if not content.startswith(b"PK"):
        return found
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for part in archive.infolist()[:200]:
                with archive.open(part) as file:
                    text = file.read(MAX_FILE_BYTES).decode("utf-8", "replace")
                # Office programs cut a text into runs of markup.
                found += [text, re.sub(r"<[^>]*>", "", text), re.sub(r"<[^>]*>", " ", text)]
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, OSError):
        # Not a zip file after all, or an encrypted one, which no page can read either.
        return found
    return found


_DECODERS: tuple[Callable[[str], str], ...] = (
    unquote_plus,
    html.unescape,
    _escapes,
    _base64,
    _hex,
)
