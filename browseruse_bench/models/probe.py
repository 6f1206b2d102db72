"""What an endpoint really supports, found by asking it once.

Profiles promise too much: an endpoint may take a field that asks for a schema and ignore it.
So each ability is asked for in a way that only something that has it can answer: a greeting
that is held to a schema comes back as JSON, a picture of a number is read, a word that only
the system text tells is known. A probe is a handful of requests of some fifty tokens.

What was found is kept in `$XDG_CACHE_HOME/browseruse-bench/models/` (~/.cache without the
variable), by provider, address and name of the model, never by key, for 30 days. What could
not be told is not kept.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Callable, Collection, Coroutine, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal, Protocol, get_args

from pydantic import Field, ValidationError

from browseruse_bench.errors import DataError
from browseruse_bench.models.base import (
    CallError,
    Image,
    Message,
    Params,
    RefusalError,
    TooLongError,
)
from browseruse_bench.models.config import Asking, SchemaMode
from browseruse_bench.models.failures import RejectedError
from browseruse_bench.models.parse import Parsed, parse_arguments
from browseruse_bench.models.prices import added, used
from browseruse_bench.models.schema import Schema
from browseruse_bench.models.spec import ModelSpec
from browseruse_bench.models.wire import How, Said
from browseruse_bench.records.base import Record, content_key
from browseruse_bench.records.trace import Usage
from browseruse_bench.store.files import escaped, read_json, write_json

Ability = Literal["system", "native", "tool", "prompted", "images"]
ABILITIES: tuple[Ability, ...] = get_args(Ability)
MAX_AGE = timedelta(days=30)
PARAMS = Params(max_tokens=2000)
"""Room for a model that reasons first; the answers themselves are a few words."""

_SCHEMA: Schema = {
    "type": "object",
    "properties": {"greeting": {"type": "string"}, "polite": {"type": "boolean"}},
    "required": ["greeting", "polite"],
    "additionalProperties": False,
}
_WORD = "plover"
_DIGITS = "4719"


class Capabilities(Record):
    """What an endpoint does with a request; None: not asked, or it could not be told."""

    system: bool | None = None
    """Reads the system role."""
    native: bool | None = None
    """Holds a reply to the schema that it is given in the API's own field."""
    tool: bool | None = None
    """Calls the one tool that it is given, with arguments that fit."""
    prompted: bool | None = None
    """Writes JSON that fits when the prompt asks for it."""
    images: bool | None = None
    """Reads pictures."""
    notes: dict[str, str] = {}
    """Ability -> why it is not there, or could not be told."""
    probed_at: str | None = None
    """ISO 8601 in UTC."""
    usage: Usage | None = None
    """What the last probe cost."""

    def known(self, ability: Ability) -> bool | None:
        """Whether it is there."""
        return getattr(self, ability)

    @property
    def mode(self) -> SchemaMode | None:
        """The best known way to hold a reply to a schema; None: none that was found."""
        ways: tuple[SchemaMode, ...] = ("native", "tool", "prompted")
        return next((way for way in ways if self.known(way)), None)

    def given(self, asking: Asking) -> Capabilities:
        """With what the configuration says in place of what was found."""
        said: dict[str, Any] = {}
        if asking.images is not None:
            said["images"] = asking.images
        if asking.system is not None:
            said["system"] = asking.system
        if asking.schema_ is not None:
            said |= {"native": asking.schema_ == "native", "tool": asking.schema_ == "tool"}
        return self.model_copy(update=said)


class Probed(Protocol):
    """What is needed of a model to probe it."""

    @property
    def spec(self) -> ModelSpec:
        """Which one it is."""
        ...

    async def said(self, messages: Sequence[Message], how: How) -> Said:
        """One reply, after retries.

        Raises:
            CallError: there is none.
        """
        ...


async def probe(
    model: Probed, what: Collection[Ability] = ABILITIES, known: Capabilities | None = None
) -> Capabilities:
    """What an endpoint supports; asks it anew.

    Args:
        model: who is asked.
        what: the abilities that are asked for; the others stay as known.
        known: what was found before.

    Raises:
        CallError: the endpoint does not answer, or takes no plain request; its `usage` is what
            was paid before.
    """
    before = known or Capabilities()
    probing = _Probing(model)
    found: dict[str, Any] = {}
    try:
        for ability in ABILITIES:
            if ability in what:
                found[ability] = await _PROBES[ability](probing)
    except CallError as error:
        error.usage = added(probing.usages, model.spec.label) if probing.usages else None
        raise
    notes = {name: note for name, note in before.notes.items() if name not in what}
    return before.model_copy(
        update={
            **found,
            "notes": {**notes, **probing.notes},
            "probed_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "usage": added(probing.usages, model.spec.label),
        }
    )


@dataclass
class _Probing:
    model: Probed
    usages: list[Usage] = field(default_factory=list[Usage])
    notes: dict[Ability, str] = field(default_factory=dict[Ability, str])
    sure: bool = False
    """Whether the endpoint is known to take a plain request."""

    async def ask(
        self, ability: Ability, messages: Sequence[Message], **how: Any
    ) -> Said | bool | None:
        """What was said; False: the endpoint takes no such request; None: it cannot be told."""
        try:
            said = await self._said(messages, **how)
        except RejectedError as error:
            # If it takes no plain request either, something else is wrong.
            if not self.sure:
                await self._said((Message(role="user", parts=("Say hello.",)),))
            self.notes[ability] = f"the endpoint takes no such request: {error}"
            return False
        except (RefusalError, TooLongError) as error:
            self.notes[ability] = f"cannot be told: {error}"
            return None
        if said.finish != "stop":
            self.notes[ability] = f"cannot be told: the reply ended with '{said.finish_word}'"
            return None
        return said

    async def _said(self, messages: Sequence[Message], **how: Any) -> Said:
        spec = self.model.spec
        params = PARAMS.model_copy(update=spec.asking.params.model_dump(exclude_none=True))
        said = await self.model.said(messages, How(params=params, **how))
        self.sure = True
        self.usages.append(used(spec, said.counted, served=said.served))
        return said

    async def schema(self, mode: SchemaMode) -> bool | None:
        """Whether a greeting comes back as JSON that fits."""
        greet = Message(role="user", parts=("Say hello to me in one short sentence.",))
        said = await self.ask(mode, (greet,), schema=_SCHEMA, mode=mode, name="greeting")
        if not isinstance(said, Said):
            return said
        if mode == "tool" and not said.arguments:
            self.notes["tool"] = f"it called no tool, but said: {said.text[:100]!r}"
            return False
        found = parse_arguments(said.arguments, said.text, _SCHEMA)
        if isinstance(found, Parsed):
            return True
        self.notes[mode] = f"{found.problem}: {said.raw[:100]!r}"
        return False

    async def system(self) -> bool | None:
        """Whether a word is known that only the system text tells."""
        secret = Message(role="system", parts=(f"The word of the day is {_WORD}.",))
        asked = Message(role="user", parts=("Which word is the word of the day? Say it alone.",))
        said = await self.ask("system", (secret, asked))
        if said is None or (isinstance(said, Said) and _WORD in said.text.lower()):
            return None if said is None else True
        folded = await self.ask("system", (secret, asked), fold_system=True)
        if said is False:
            return False
        if isinstance(folded, Said) and _WORD in folded.text.lower():
            self.notes["system"] = "what it says does not reach the model"
            return False
        self.notes["system"] = "cannot be told: the model does not know the word either way"
        return None

    async def images(self) -> bool | None:
        """Whether a number is read that only a picture shows."""
        picture = Image.of_bytes(picture_of(_DIGITS), "image/png")
        words = "Which number does the picture show? Say its digits alone."
        said = await self.ask("images", (Message(role="user", parts=(picture, words)),))
        if not isinstance(said, Said):
            return said
        if _DIGITS in "".join(said.text.split()):
            return True
        self.notes["images"] = f"a picture of {_DIGITS} was read as {said.text[:100]!r}"
        return False


_PROBES: dict[Ability, Callable[[_Probing], Coroutine[Any, Any, bool | None]]] = {
    "system": _Probing.system,
    "native": lambda probing: probing.schema("native"),
    "tool": lambda probing: probing.schema("tool"),
    "prompted": lambda probing: probing.schema("prompted"),
    "images": _Probing.images,
}


class _Kept(Record):
    """The file of one endpoint and model."""

    version: Literal[1] = 1
    provider: str
    name: str
    base_url: str | None = None
    capabilities: Capabilities = Field(default_factory=Capabilities)


@dataclass(frozen=True)
class ProbeFile:
    """Where the capabilities of a model are kept between processes."""

    spec: ModelSpec
    folder: Path | None = None
    """None: the user's cache."""

    @property
    def path(self) -> Path:
        """By provider, address and name."""
        spec = self.spec
        key = content_key([spec.provider, spec.base_url, spec.name])
        folder = self.folder
        if folder is None:
            root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
            folder = root / "browseruse-bench" / "models"
        return folder / f"{escaped(f'{spec.provider}-{spec.name}')[:80]}-{key[:16]}.json"

    def read(self) -> Capabilities:
        """What was found in the last 30 days; nothing where the file is missing or unreadable."""
        try:
            kept = _Kept.model_validate(read_json(self.path))
            at = datetime.fromisoformat(kept.capabilities.probed_at or "")
        except (OSError, DataError, ValidationError, ValueError):
            return Capabilities()
        if datetime.now(UTC) - at > MAX_AGE:
            return Capabilities()
        return kept.capabilities

    def write(self, capabilities: Capabilities) -> None:
        """Keep it. A cache that cannot be written is none: the next process asks again."""
        spec = self.spec
        kept = _Kept(
            provider=spec.provider,
            name=spec.name,
            base_url=spec.base_url,
            capabilities=capabilities,
        )
        try:
            write_json(self.path, json.loads(kept.as_line()))
        except OSError:
            return


_FONT = {
    "0": "0111010001100111010111001100010111000000",
    "1": "0010001100001000010000100001000111000000",
    "2": "0111010001000010001000100010001111100000",
    "3": "1111100010001000001000001100010111000000",
    "4": "0001000110010101001011111000100001000000",
    "5": "1111110000111100000100001100010111000000",
    "6": "0011001000100001111010001100010111000000",
    "7": "1111100001000100010001000010000100000000",
    "8": "0111010001100010111010001100010111000000",
    "9": "0111010001100010111100001000100110000000",
}
"""Rows of five dots, from the top; the eighth is empty."""
_DOT = 14


def picture_of(digits: str) -> bytes:
    """A PNG of digits, black on white, 84 pixels wide and 112 high each."""
    rows: list[bytes] = []
    for y in range(8):
        dots = "0" + "".join(_FONT[digit][5 * y : 5 * y + 5] + "0" for digit in digits)
        line = b"".join((b"\x00" if dot == "1" else b"\xff") * _DOT for dot in dots)
        rows += [b"\x00" + line] * _DOT
    white = b"\x00" + b"\xff" * (len(rows[0]) - 1)
    rows = [white] * _DOT + rows
    size = struct.pack(">IIBBBBB", len(rows[0]) - 1, len(rows), 8, 0, 0, 0, 0)
    chunks = ((b"IHDR", size), (b"IDAT", zlib.compress(b"".join(rows))), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )
