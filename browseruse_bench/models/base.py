"""What a model is asked and what it says: the one interface to every provider and double.

    reply = await model.ask(Request(messages=(...), schema={...}), purpose="judge")

A `Request` is content: two requests that are equal in everything that matters (messages, bytes
of the images, schema, parameters, sample number) have one `key`, and a ledger answers the second
from the first. What goes wrong is one of the errors below, each with what it cost.

    ModelError
    └── CallError           a call that gave nothing to use; it is never an answer
        ├── OutageError     the provider did not answer, or with an error, after all retries
        ├── TruncatedError  the reply was cut short (finish reason `length`)
        ├── RefusalError    the provider or the model declined
        ├── TooLongError    the request is longer than the model reads; nothing was answered
        ├── PendingError    the request waits in a batch; nothing was paid yet
        └── MalformedError  the reply fits no schema, after all that was asked again
"""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Any, Literal, Protocol

from pydantic import Field

from browseruse_bench.errors import DataError, ModelError
from browseruse_bench.records.base import Record, content_key
from browseruse_bench.records.trace import Usage

Clearance = Literal["clean", "restricted"]
"""`restricted`: may see text that may hold personal data; `clean`: never."""
Finish = Literal["stop", "length", "refusal", "other"]
MediaType = Literal["image/png", "image/jpeg", "image/webp"]


class Image(Record):
    """A picture in a request; its identity is its bytes, wherever they are."""

    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    media_type: MediaType
    path: Path | None = Field(default=None, exclude=True)
    """Where the bytes are, if they are in a file; read when the request is sent."""
    data: str | None = Field(default=None, exclude=True, repr=False)
    """The bytes in base64, if they are in no file."""

    @classmethod
    def of_bytes(cls, content: bytes, media_type: MediaType) -> Image:
        """A picture that is in no file."""
        return cls(
            sha256=hashlib.sha256(content).hexdigest(),
            media_type=media_type,
            data=base64.b64encode(content).decode(),
        )

    def content(self) -> bytes:
        """The bytes, compared with their identity.

        Raises:
            DataError: they are nowhere, or not what they were.
        """
        if self.data is not None:
            content = base64.b64decode(self.data)
        elif self.path is not None and self.path.is_file():
            content = self.path.read_bytes()
        else:
            raise DataError(f"{self.path or 'image'}: no such image ({self.sha256[:12]})")
        if hashlib.sha256(content).hexdigest() != self.sha256:
            raise DataError(f"{self.path or 'image'}: changed since it was captured")
        return content


class Message(Record):
    """One turn; texts and pictures in the order in which a model reads them."""

    role: Literal["system", "user", "assistant"]
    parts: tuple[str | Image, ...]

    @property
    def text(self) -> str:
        """Its texts, one after the other."""
        return "\n".join(part for part in self.parts if isinstance(part, str))


class Params(Record):
    """How a model answers. None: the provider's default."""

    max_tokens: int | None = Field(default=None, ge=1)
    temperature: float | None = Field(default=None, ge=0)
    top_p: float | None = Field(default=None, gt=0, le=1)
    seed: int | None = None
    reasoning: Literal["none", "minimal", "low", "medium", "high"] | None = None


class Request(Record):
    """What a model is asked; `key` is the identity of its content."""

    messages: tuple[Message, ...] = Field(min_length=1)
    schema_: dict[str, Any] | None = Field(default=None, alias="schema")
    """JSON schema of the value that is wanted; None: text."""
    schema_name: str = "reply"
    params: Params = Params()
    sample: int = Field(default=0, ge=0)
    """Equal requests of other samples are asked anew: no ledger answers one from the other."""

    @property
    def images(self) -> tuple[Image, ...]:
        """Its pictures, in order."""
        return tuple(p for m in self.messages for p in m.parts if isinstance(p, Image))

    @property
    def text(self) -> str:
        """All its texts."""
        return "\n".join(message.text for message in self.messages)

    def as_wire(self) -> dict[str, Any]:
        """The request as JSON with the places or bytes of its images, for another process."""
        wire = self.as_json()
        for message, plain in zip(self.messages, wire["messages"], strict=True):
            plain["parts"] = [
                part if isinstance(part, str) else _image_wire(part) for part in message.parts
            ]
        return wire


def _image_wire(image: Image) -> dict[str, Any]:
    place = {"data": image.data} if image.path is None else {"path": str(image.path)}
    return {**image.as_json(), **place}


class Reply(Record):
    """What a model said. With a schema, `value` fits it; without one it is None."""

    value: Any = None
    raw: str
    """As it came, before anything was parsed."""
    finish: Finish = "stop"
    usage: Usage
    """Of all that was asked for this reply, also of what was asked again; `usage.cost_usd` is
    None where the price is unknown."""
    call: str | None = None
    """Key of the call in the ledger that holds it."""
    from_ledger: bool = False
    """Nothing was asked and nothing was paid for it now."""
    n_asked: int = Field(default=1, ge=0)
    """How often the provider was asked, retries of outages apart."""
    seconds: float = Field(default=0, ge=0)


class CallError(ModelError):
    """A call that gave nothing to use."""

    def __init__(self, message: str, *, raw: str = "", usage: Usage | None = None) -> None:
        """Say what went wrong; `raw` is what came all the same, `usage` what was paid."""
        super().__init__(message)
        self.raw = raw
        self.usage = usage
        self.call: str | None = None
        """Key of the call in the ledger that keeps the raw reply."""


class OutageError(CallError):
    """The provider did not answer, or with an error, after all retries."""


class TruncatedError(CallError):
    """The reply was cut short."""


class RefusalError(CallError):
    """The provider or the model declined to answer."""


class TooLongError(CallError):
    """The provider refused the request for its length: more tokens, bytes or images than the
    model takes. Asking again is of no use; asking for less is.
    """


class PendingError(CallError):
    """The request was put into a batch: its answer comes later, and the same work then goes on."""


class MalformedError(CallError):
    """The reply fits no schema, after all that was asked again."""


class ModelId(Record):
    """Which model: all that makes its answers another model's. No key, no path."""

    label: str
    """What results call it."""
    provider: str
    name: str
    base_url: str | None = None
    detail: dict[str, Any] = {}
    """What else decides: the hash of a double's script, say."""

    @property
    def key(self) -> str:
        """The label is for people and takes no part."""
        return content_key({k: v for k, v in self.as_json().items() if k != "label"})


class Model(Protocol):
    """Something that can be asked. Safe to be asked by many tasks at a time."""

    @property
    def id(self) -> ModelId:
        """Its identity."""
        ...

    @property
    def may_see(self) -> Clearance:
        """What text it is cleared for."""
        ...

    async def ask(self, request: Request, *, purpose: str, restricted: bool = False) -> Reply:
        """Ask, and wait for what can be used.

        Args:
            request: the messages, the schema of the value, parameters, sample number.
            purpose: what the call is for ("judge", "writer"); its cost is reported under it.
            restricted: whether the request holds restricted text.

        Raises:
            CallError: nothing came that can be used; its subclass says why.
            BudgetError: the budget does not allow it; nothing was asked.
            ConfigError: the text is restricted and the model is not cleared for it.
        """
        ...
