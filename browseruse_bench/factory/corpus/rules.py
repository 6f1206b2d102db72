"""What decides in the filter beside its code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from browseruse_bench.errors import ConfigError
from browseruse_bench.factory.corpus.inputs import MEANINGS
from browseruse_bench.factory.workspace import Corpus

REASONS = frozenset(
    {
        "no_permitted_tag",
        "too_short",
        "too_long",
        "local_address",
        "local_file",
        "benchmark_overlap",
        "not_english",
        "uncertain_language",
        "combined",
    }
)
"""Why a submission does not go on as a task of its own. `combined`: it is the same task as
another submission, and is in that one's count. `no_permitted_tag`: only counted."""


@dataclass(frozen=True)
class Rules:
    """Thresholds and names, the same for all drops of a workspace."""

    columns: Mapping[str, str]
    permitted_tags: tuple[str, ...]
    mask: bool
    """Numbers do not tell tasks apart."""
    similarity: float
    """Estimated Jaccard similarity of character 5-grams with the leader from which on a text is
    the same task."""
    overlap: float
    """Share of a benchmark text's word grams from which on a text holds it."""
    english: float
    min_chars: int
    max_chars: int

    @classmethod
    def of(cls, corpus: Corpus) -> Rules:
        """The rules of a workspace.

        Raises:
            ConfigError: a column is mapped that means nothing here.
        """
        unknown = sorted(set(corpus.columns) - set(MEANINGS))
        if unknown:
            raise ConfigError(
                f"workspace.toml: [corpus] columns: {', '.join(unknown)}: not one of "
                f"{', '.join(MEANINGS)}"
            )
        columns = {"text": "text", "tag": "data_use", **corpus.columns}
        return cls(
            columns=columns,
            permitted_tags=corpus.permitted_tags,
            mask=corpus.mask_numbers,
            similarity=corpus.similarity,
            overlap=corpus.overlap,
            english=corpus.english,
            min_chars=corpus.min_chars,
            max_chars=corpus.max_chars,
        )

    def settings(self) -> dict[str, Any]:
        """As plain JSON."""
        return {**asdict(self), "permitted_tags": sorted(self.permitted_tags)}
