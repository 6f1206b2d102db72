"""What a person says of a task: whether it suits a benchmark, and why."""

from __future__ import annotations

import hashlib
import unicodedata
from typing import Literal, get_args

from pydantic import Field

from browseruse_bench.records.base import Record

Verdict = Literal["suitable", "unsuitable", "uncertain"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
ReasonTag = Literal[
    "too_easy",
    "personal_data",
    "destructive",
    "impossible",
    "too_vague",
    "needs_login",
    "time_bound",
]
REASON_TAGS: tuple[ReasonTag, ...] = get_args(ReasonTag)


class Label(Record):
    """One person's word on one task. The newest of a labeller and task counts; a recheck stands
    beside it.
    """

    task: str = Field(min_length=1)
    """Key of the candidate."""
    text_hash: str = Field(pattern=r"^[0-9a-f]{64}$")
    """`text_hash` of its text: what the split is decided by."""
    verdict: Verdict
    hard: bool | None = None
    """Whether it would be hard for an agent; None: not said."""
    reason: str = ""
    """In words: what the search for a prompt is built against."""
    tags: tuple[ReasonTag, ...] = ()
    other_tags: tuple[str, ...] = ()
    """Tags that came with an import and are none of ours."""
    seconds: float | None = Field(default=None, ge=0)
    """Spent on it; None: unknown."""
    labeller: str = Field(min_length=1)
    at: str
    """ISO 8601 in UTC."""
    blind: bool = True
    """False: the labeller had been shown what another one said of this task."""
    recheck: bool = False
    """Said again, without being shown the earlier word, to see whether it still holds."""


def normal_text(text: str) -> str:
    """The text as it is split by: compatible characters alike, without case, invisible
    characters and differences in white space.
    """
    alike = unicodedata.normalize("NFKC", text).casefold()
    # Case folding can leave what composes differently, so it is brought to one form again.
    visible = "".join(
        " " if unicodedata.category(c) == "Cc" else c
        for c in unicodedata.normalize("NFKC", alike)
        if unicodedata.category(c) not in ("Cf", "Cs")
    )
    return " ".join(visible.split())


def text_hash(text: str) -> str:
    """SHA-256 (64 hex digits) of the normalised text."""
    return hashlib.sha256(normal_text(text).encode()).hexdigest()
