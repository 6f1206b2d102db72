"""The base of every record: frozen, strict about unknown fields, addressed by its content."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from pydantic import BaseModel, ConfigDict

_CANONICAL = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
)


def canonical_json(value: Any) -> str:
    """JSON with sorted keys and no spaces: equal values give equal text."""
    return _CANONICAL.encode(value)


def content_key(value: Any) -> str:
    """SHA-256 (64 hex digits) of the canonical JSON of a JSON value."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


class Record(BaseModel):
    """A frozen noun. Fields that are None take no part in its key, so a later optional
    field leaves the keys of older records as they were.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True
    )

    def as_json(self) -> dict[str, Any]:
        """The record as plain JSON values, without fields that are None."""
        return self.model_dump(mode="json", exclude_none=True, by_alias=True)

    def as_line(self) -> str:
        """The record as one line of canonical JSON, without the line end."""
        return canonical_json(self.as_json())

    @property
    def key(self) -> str:
        """Identity by content; a record with a natural identity overrides it."""
        return content_key(self.as_json())
