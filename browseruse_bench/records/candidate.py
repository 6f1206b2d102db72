"""A candidate: a distinct task of the traffic on its way to become a task of a benchmark."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from browseruse_bench.records.base import Record, content_key


class Candidate(Record):
    """A task's text, and where it comes from. Its key is its text: whoever rewrites it makes
    another unit of work; `origin` stays what it was when it came out of the filter.
    """

    text: str = Field(min_length=1)
    origin: str
    """Key of the candidate as the filter gave it, the same through all stages; from the persona
    stage on keyed with the workspace's secret, so that no text can be guessed from it."""
    count: int = Field(default=1, ge=1)
    """Submissions that were combined to it."""
    first_seen: str | None = None
    """Time of the first and of the last of them, ISO 8601; None: the corpus has no times."""
    last_seen: str | None = None
    country: str | None = Field(default=None, pattern=r"^[A-Z]{2}$")
    """Where the task is at home (ISO 3166), once a persona was adapted to it."""

    @property
    def key(self) -> str:
        """Identity of the work: the text alone."""
        return content_key([self.text])

    @property
    def carried(self) -> dict[str, Any]:
        """Its origin, and what it says of the traffic: what takes no part in its key."""
        names = ("origin", *_CARRIED)
        return {name: value for name in names if (value := getattr(self, name)) is not None}

    def joined(self, other: Candidate) -> Candidate:
        """One candidate for two of the same text: counts added, times spanned; the rest is that
        of the smaller origin, so that their order decides nothing.
        """
        first = min(self, other, key=lambda one: (one.origin, one.country or ""))
        firsts = [one.first_seen for one in (self, other) if one.first_seen is not None]
        lasts = [one.last_seen for one in (self, other) if one.last_seen is not None]
        return first.model_copy(
            update={
                "count": self.count + other.count,
                "first_seen": min(firsts, default=None),
                "last_seen": max(lasts, default=None),
            }
        )

    def carrying(self, unit: Candidate) -> Candidate:
        """The same, with what the unit says of the traffic of which it was made. The origin stays:
        a stage may have renamed it, so that nothing points back.
        """
        return self.model_copy(update={name: getattr(unit, name) for name in _CARRIED})


_CARRIED = ("count", "first_seen", "last_seen")


def new_candidate(text: str, **more: object) -> Candidate:
    """A candidate whose origin is itself."""
    return Candidate.model_validate({"text": text, "origin": content_key([text]), **more})
