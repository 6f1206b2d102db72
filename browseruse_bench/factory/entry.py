"""Lines of a stage's books: how a unit settled, and which units came in together."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from browseruse_bench.records.base import Record
from browseruse_bench.records.trace import Usage

Status = Literal["kept", "dropped", "failed"]


class Entry(Record):
    """One line of journal.jsonl. The newest line of a unit and version counts; `failed` is owed
    again.
    """

    unit: str
    """Key of the unit that came in."""
    version: int
    status: Status
    value: dict[str, Any] | None = None
    """What it goes on as, if it is kept."""
    out: str | None = None
    """Key of that value: the unit of the next stage."""
    reason: str | None = None
    evidence: dict[str, Any] | None = None
    error: str | None = None
    usage: tuple[Usage, ...] = ()
    """Of each call that was made for it, also of those that the ledger answered."""
    calls: tuple[str, ...] = ()
    """Key in the ledger of each of them; empty text: it is in none."""
    seconds: float = Field(default=0, ge=0)
    at: str


class Drop(Record):
    """One line of inputs.jsonl: units that came in together."""

    source: str
    """The stage, or the file, that they came from."""
    n_units: int = Field(ge=0)
    n_new: int = Field(ge=0)
    """Those that had not settled before."""
    n_withdrawn: int = Field(default=0, ge=0)
    """Those that settled before and do not come in any more."""
    keys_sha256: str
    """Over the sorted keys."""
    at: str
