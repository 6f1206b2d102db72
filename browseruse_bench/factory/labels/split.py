"""Which labels develop a prompt, which validate it, and which stay sealed.

A task's part follows from a hash of its normalised text alone: no label, no order and no later
task moves it. The rule and every part that was given are frozen in `split.lock.jsonl`, a hash
chain. A task is found there by the hash that was noted when it came in, so that it keeps its part
even where a later Python normalises its text otherwise.

Source: RL-environments post, section 2.2: 80 percent for development, 10 for validation, 10
sealed, by a hash of the task text, frozen. That development is split again, into what a prompt is
searched on and what it is selected by, is ours.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Self, get_args

from pydantic import Field, ValidationError, model_validator

from browseruse_bench.errors import DataError
from browseruse_bench.factory.labels.chain import Chain, Link
from browseruse_bench.records.base import Record
from browseruse_bench.records.label import text_hash

Part = Literal["development", "validation", "sealed"]
PARTS: tuple[Part, ...] = get_args(Part)
Half = Literal["search", "selection"]
HALVES: tuple[Half, ...] = get_args(Half)
LOCK = "split.lock.jsonl"


class Rule(Record):
    """The first line of the lock."""

    rule: Literal["sha256 of salt and NFKC, casefold, single spaces"] = (
        "sha256 of salt and NFKC, casefold, single spaces"
    )
    salt: str = ""
    """Makes another split of the same texts."""
    development: float = Field(default=0.8, gt=0, lt=1)
    validation: float = Field(default=0.1, gt=0, lt=1)
    """The rest is sealed."""
    search: float = Field(default=0.5, gt=0, lt=1)
    """Of development; the rest selects."""

    @model_validator(mode="after")
    def _leaves_some(self) -> Self:
        if self.development + self.validation >= 1:
            raise ValueError("development and validation leave nothing to be sealed")
        return self


class Place(Record):
    """A further line: the part that a text was given."""

    text_hash: str
    part: Part


def part_of(text: str, rule: Rule | None = None) -> Part:
    """The part of a text under the rule, whatever a lock says."""
    return _part_of_hash(text_hash(text), rule or Rule())


def half_of(text: str, rule: Rule | None = None) -> Half:
    """For a text of development: what it serves there."""
    return _half_of_hash(text_hash(text), rule or Rule())


def _part_of_hash(hashed: str, rule: Rule) -> Part:
    at = _share(hashed, f"part\0{rule.salt}")
    if at < rule.development:
        return "development"
    return "validation" if at < rule.development + rule.validation else "sealed"


def _half_of_hash(hashed: str, rule: Rule) -> Half:
    return "search" if _share(hashed, f"half\0{rule.salt}") < rule.search else "selection"


def _share(hashed: str, purpose: str) -> float:
    """Where a text falls in 0..1."""
    digest = hashlib.sha256(f"{purpose}\0{hashed}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


@dataclass(frozen=True)
class Split:
    """A frozen split. `freeze` is called under the labels' lock."""

    path: Path
    rule: Rule = field(default_factory=Rule)
    _parts: dict[str, Part] = field(default_factory=dict[str, Part])
    _links: list[Link] = field(default_factory=list[Link])

    @classmethod
    def open(cls, folder: Path, rule: Rule | None = None) -> Split:
        """The split of a labels folder; there it is not yet frozen, it is that of `rule`.

        Raises:
            DataError: the lock was changed, is damaged, or is gone though there are labels.
        """
        path = folder / LOCK
        if not path.exists():
            left = [n for n in ("labels.jsonl", "sealed.jsonl") if (folder / n).exists()]
            if left:
                raise DataError(
                    f"{path} is gone, but {' and '.join(left)} are here: restore it; a new one "
                    "could open what is sealed"
                )
            return cls(path, rule or Rule())
        links = Chain(path).links()
        if not links:
            return cls(path, rule or Rule())
        try:
            frozen = Rule.model_validate(links[0].entry)
            places = [Place.model_validate(link.entry) for link in links[1:]]
        except ValidationError as error:
            raise DataError(f"{path}: {error.errors()[0]['msg']}") from error
        parts: dict[str, Part] = {place.text_hash: place.part for place in places}
        return cls(path, frozen, parts, list(links))

    def part_of(self, text: str) -> Part:
        """The part of a text: as it was frozen, else by the rule."""
        return self.part_of_hash(text_hash(text))

    def part_of_hash(self, hashed: str) -> Part:
        """The same by `records.label.text_hash` of the text."""
        return self._parts.get(hashed) or _part_of_hash(hashed, self.rule)

    def half_of(self, text: str) -> Half:
        """For a text of development: search or selection."""
        return half_of(text, self.rule)

    def half_of_hash(self, hashed: str) -> Half:
        """The same by `records.label.text_hash` of the text."""
        return _half_of_hash(hashed, self.rule)

    def freeze(self, hashes: Iterable[str]) -> None:
        """Write the parts of these texts into the lock; what is there stays as it is."""
        new = dict.fromkeys(h for h in hashes if h not in self._parts)
        entries = [] if self._links else [self.rule.as_json()]
        places = [Place(text_hash=h, part=_part_of_hash(h, self.rule)) for h in new]
        entries += [place.as_json() for place in places]
        self._links.extend(Chain(self.path).append_all(entries, self._links))
        self._parts.update((place.text_hash, place.part) for place in places)

    @property
    def counts(self) -> dict[Part, int]:
        """Texts that were frozen, by part."""
        parts = list(self._parts.values())
        return {part: parts.count(part) for part in PARTS}
