"""The parts of a request's body that count apart: words, and pictures or files in base64.

A prompt's tokens are not known before its provider has counted them. `prompt_tokens` says how
many there can be at most; where a provider counted more all the same, the next prompts of that
token are taken for greater by as much (`meter`).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from typing import Any, cast

from browseruse_bench.models.base import Message, Request
from browseruse_bench.models.gateway.wires import Json
from browseruse_bench.models.spending import IMAGE_TOKENS, IMAGE_TOKENS_OF, most_tokens

OTHER_BYTES_A_TOKEN = 4
"""Of documents and sound in base64."""
FORM_TOKENS = 1_000
"""What a provider puts around a request of its own, for tools above all."""

MAX_TEXT_BYTES = 8 * 2**20
LONG_TEXT_BYTES = 400_000
"""From here on a token is a byte: to look at each word would hold up everybody else."""

_MEDIA = re.compile(r"data:([\w.+-]+/[\w.+-]+)[;,]")
_LONG = 2_000
"""Characters from which a text in base64 is taken out of a record."""

Part = Callable[[str, str], str]
"""(text in base64, its media type) -> what stands in its place."""


def prompt_tokens(body: Json, model: str) -> int:
    """At most so many tokens has the prompt of a request to a model.

    Raises:
        ValueError: no model reads so long a text.
    """
    n_other = 0

    def gone(text: str, media_type: str) -> str:
        nonlocal n_other
        if media_type.startswith("image/"):
            n_other += IMAGE_TOKENS_OF.get(model, IMAGE_TOKENS)
        else:
            n_other += len(text) // OTHER_BYTES_A_TOKEN
        return ""

    words: list[str] = []
    _collect(without_media(body, gone), words)
    text = "\n".join(words)
    n_bytes = len(text.encode(errors="replace"))
    if n_bytes > MAX_TEXT_BYTES:
        raise ValueError(f"more than {MAX_TEXT_BYTES} bytes of text: no model reads as much")
    if n_bytes > LONG_TEXT_BYTES:
        return FORM_TOKENS + n_other + n_bytes
    request = Request(messages=(Message(role="user", parts=(text,)),))
    return FORM_TOKENS + n_other + most_tokens(request)


def as_kept(body: Json) -> tuple[Json, tuple[str, ...]]:
    """A body whose pictures and files are named by the SHA-256 of their base64, and these."""
    found: list[str] = []

    def named(text: str, media_type: str) -> str:
        digest = hashlib.sha256(text.encode(errors="replace")).hexdigest()
        found.append(digest)
        return f"[{media_type}, {len(text)} characters of base64, SHA-256 {digest}]"

    return without_media(body, named), tuple(found)


def request_id(wire: str, path: str, content: bytes) -> str:
    """Identity of what was asked: equal requests have one, whoever asks and however often."""
    return hashlib.sha256(f"{wire}\0{path}\0".encode() + content).hexdigest()


def without_media(value: Any, part: Part, media_type: str | None = None) -> Any:
    """A JSON value with `part` in the place of everything that is in base64."""
    if isinstance(value, str):
        media = _MEDIA.match(value)
        if media is not None:
            return part(value, media[1])
        return part(value, media_type) if media_type and len(value) >= _LONG else value
    if isinstance(value, dict):
        fields = cast("Json", value)
        names = ("media_type", "mimeType", "mime_type")
        named = next((str(fields[name]) for name in names if name in fields), None)
        return {
            name: without_media(inner, part, named if name == "data" else None)
            for name, inner in fields.items()
        }
    if isinstance(value, list):
        return [without_media(inner, part) for inner in cast("list[Any]", value)]
    return value


def _collect(value: Any, words: list[str]) -> None:
    """Every text in it, names of fields too: those of a tool's schema are part of a prompt."""
    if isinstance(value, dict):
        for name, inner in cast("Json", value).items():
            words.append(name)
            _collect(inner, words)
    elif isinstance(value, list):
        for inner in cast("list[Any]", value):
            _collect(inner, words)
    elif value is not None:
        words.append(str(value))
