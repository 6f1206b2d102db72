"""A model as the proposer: it reads a brief, and writes versions of the prompt."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import Field

from browseruse_bench.factory.search.bench import Brief, Mistake
from browseruse_bench.factory.search.examples import Example
from browseruse_bench.models.base import Message, Request
from browseruse_bench.records.base import Record
from browseruse_bench.records.markdown import verbatim

PROMPT = Path(__file__).with_name("propose.md")
PURPOSE = "prompt search"
TEXT_CHARS = 1_500
"""Of a task that is shown; the middle of a longer one is left out."""


class Variant(Record):
    """One version as the model writes it."""

    change: str
    """What it changes and why, in one sentence."""
    text: str = Field(min_length=1)
    """The whole prompt."""


class Variants(Record):
    """The reply of the model."""

    variants: tuple[Variant, ...]


def request(brief: Brief) -> Request:
    """What a proposer is asked. The turn is its sample number: another turn asks anew."""
    return Request(
        messages=(
            Message(role="system", parts=(PROMPT.read_text(encoding="utf-8").strip(),)),
            Message(role="user", parts=(_told(brief),)),
        ),
        schema=schema(),
        schema_name="variants",
        sample=brief.turn,
    )


def schema() -> dict[str, Any]:
    """JSON schema of the reply."""
    return Variants.model_json_schema()


def _told(brief: Brief) -> str:
    parent = brief.parent
    parts = [
        f"# The current prompt ({parent.id})",
        verbatim(parent.text),
        f"# Where it was wrong: {len(brief.mistakes)} shown, of {brief.n_asked} tasks asked",
        *map(_mistake, brief.mistakes),
        "# Where it was right",
        *map(_task, brief.right),
        "# What was tried, best first",
        "\n".join(
            f"- {v.id}: agrees on {v.n_right} of {len(v.right)} other tasks, finds {v.n_found} of "
            f"{v.n_suitable} suitable ones; made from {v.parent or 'nothing'}: "
            f"{' '.join(v.change.split()) or 'the first prompt'}"
            for v in brief.tried
        ),
        f"Write {brief.n_variants} new versions of the current prompt.",
    ]
    return "\n\n".join(part for part in parts if part)


def _mistake(mistake: Mistake) -> str:
    verdict, reason = mistake.answer.verdict or "no label", mistake.answer.reason
    said = f"{verdict}. {' '.join(reason.split())}"
    return f"{_task(mistake.example)}\nThe model: {said}".strip()


def _task(example: Example) -> str:
    why = " / ".join(" ".join(reason.split()) for reason in example.reasons if reason)
    return f"{verbatim(_shortened(example.text))}\nPeople: {example.truth}. {why}".rstrip()


def _shortened(text: str) -> str:
    if len(text) <= TEXT_CHARS:
        return text
    half = TEXT_CHARS // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters ...]\n{text[-half:]}"
