"""A model as a labeller: one call for one task, with one version of the prompt.

The version is what the search changes. The form of the reply stands behind it, is the same for
all versions, and takes part in the prompt's identity. The task is a message of its own, so that
nothing of it can be read as the prompt.
"""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from browseruse_bench.models.base import MalformedError, Message, Model, Reply, Request
from browseruse_bench.records.base import Record, content_key
from browseruse_bench.records.label import ReasonTag, Verdict

SHIPPED = Path(__file__).with_name("suitability.md")
REPLY = Path(__file__).with_name("reply.md")
PURPOSE = "suitability"


class Said(Record):
    """What the model says of a task."""

    reason: str
    quote: str = ""
    """Words of the task that decide."""
    tags: tuple[ReasonTag, ...] = ()
    verdict: Verdict

    def quotes(self, text: str) -> bool:
        """Whether its quote stands in the task, white space apart; an empty one does."""
        return " ".join(self.quote.split()) in " ".join(text.split())


class Prompt(Record):
    """One version of the prompt."""

    text: str = Field(min_length=1)

    @property
    def key(self) -> str:
        """SHA-256 of all that a labeller is told beside the task: version, form and schema."""
        return _key(self.text)

    @property
    def id(self) -> str:
        """What people call it: 12 digits of the SHA-256 of its text."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:12]


def shipped() -> Prompt:
    """The prompt that is used where no other was chosen."""
    return Prompt(text=SHIPPED.read_text(encoding="utf-8").strip())


@functools.cache
def _key(text: str) -> str:
    return content_key([text, _form(), schema()])


@functools.cache
def schema() -> dict[str, Any]:
    """JSON schema of the reply; all fields are required, the verdict comes last."""
    made = Said.model_json_schema()
    return {**made, "required": list(Said.model_fields)}


@functools.cache
def _form() -> str:
    return REPLY.read_text(encoding="utf-8").strip()


def request(prompt: Prompt, text: str) -> Request:
    """What the model is asked of a task."""
    return Request(
        messages=(
            Message(role="system", parts=(f"{prompt.text}\n\n{_form()}",)),
            Message(role="user", parts=(f"The task:\n\n{text}",)),
        ),
        schema=schema(),
        schema_name="suitability",
    )


async def label(model: Model, prompt: Prompt, text: str) -> tuple[Said, Reply]:
    """What a model says of a task, with the reply that it came in.

    Raises:
        CallError: nothing came that can be used.
        BudgetError: the budget does not allow it.
        ConfigError: the model is not cleared for restricted text.
    """
    reply = await model.ask(request(prompt, text), purpose=PURPOSE, restricted=True)
    try:
        return Said.model_validate(reply.value), reply
    except ValidationError as error:
        # Its own message would repeat what it was given.
        places = sorted({".".join(map(str, problem["loc"])) for problem in error.errors()})
        raise MalformedError(
            f"the reply is no label: {', '.join(places)}", raw=reply.raw, usage=reply.usage
        ) from None
