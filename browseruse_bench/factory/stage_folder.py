"""A stage on disk: what settled, by which version and configuration, and what is derived.

stage.json      version, configuration, hashes of prompts, commit
inputs.jsonl    the drops that came in, one line each: never rewritten
journal.jsonl   the truth: one settled unit a line
kept.jsonl      derived, sorted by key, so that two of them can be compared
dropped.jsonl   the same
report.md       derived
seconds.jsonl   of a source: how long each call took
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from browseruse_bench.errors import ConfigError
from browseruse_bench.factory.entry import Entry
from browseruse_bench.factory.index import Index
from browseruse_bench.factory.stage import Step
from browseruse_bench.store.files import read_json, sha256_file, write_atomic, write_json
from browseruse_bench.store.journal import Journal, read_journal


@dataclass(frozen=True)
class StageFolder:
    """The folder of one stage in a workspace."""

    path: Path

    @property
    def journal_path(self) -> Path:
        """journal.jsonl."""
        return self.path / "journal.jsonl"

    @property
    def inputs_path(self) -> Path:
        """inputs.jsonl."""
        return self.path / "inputs.jsonl"

    def claim(self, step: Step, commit: str | None) -> None:
        """Write stage.json, or find that it is the same work that goes on.

        A higher version settles every unit again; a changed configuration of the same version
        is refused, for then one set of results would come from two.

        Raises:
            ConfigError: the configuration or a prompt changed; the keys that differ are named.
        """
        now = {
            "name": step.name,
            "version": step.version,
            "settings": dict(step.settings()),
            "prompts": {path.name: sha256_file(path) for path in step.prompts},
            "commit": commit,
        }
        path = self.path / "stage.json"
        if path.exists():
            before: dict[str, Any] = read_json(path)
            if before["version"] == now["version"]:
                changed = sorted(
                    key for part in ("settings", "prompts") for key in _differ(before, now, part)
                )
                if changed:
                    raise ConfigError(
                        f"{path}: stage {step.name} was begun with another {', '.join(changed)}; "
                        f"put it back, or begin anew with `bubench factory run {step.name} "
                        "--restart` (what is there is kept aside)"
                    )
            elif before["version"] > step.version:
                raise ConfigError(
                    f"{path}: stage {step.name} was run by version {before['version']}, this is "
                    f"version {step.version}: use the newer program"
                )
        self.path.mkdir(parents=True, exist_ok=True)
        write_json(path, now)

    def set_aside(self) -> Path | None:
        """Rename the folder, so that the stage begins anew; None: there was nothing."""
        if not self.path.exists():
            return None
        numbers = (
            int(number)
            for path in self.path.parent.glob(f"{self.path.name}.before-*")
            if (number := path.name.rpartition("-")[2]).isdecimal()
        )
        aside = self.path.with_name(f"{self.path.name}.before-{max(numbers, default=0) + 1}")
        return self.path.rename(aside)

    def index(self, version: int) -> Index:
        """The journal's lines by unit; to be closed.

        Raises:
            DataError: a whole line is damaged.
        """
        return Index(self.journal_path, version, beside=self.path.parent)

    def entries(self, version: int) -> Iterator[Entry]:
        """The newest line of each unit under a version, sorted by unit, also of those that do not
        come in any more; one at a time in memory.

        Raises:
            DataError: a whole line is damaged.
        """
        with self.index(version) as index:
            yield from index.entries()

    def lines(self) -> Iterator[Entry]:
        """Every whole line of the journal, in order, of all versions."""
        with contextlib.suppress(FileNotFoundError), self.journal_path.open("rb") as file:
            for line in file:
                if line.endswith(b"\n"):
                    yield Entry.model_validate_json(line)

    @property
    def seconds(self) -> float:
        """How long a source ran here, over all calls."""
        path = self.path / "seconds.jsonl"
        return sum(float(line["seconds"]) for line in read_journal(path))

    def add_seconds(self, seconds: float) -> None:
        """A source ran so long, to its end or not."""
        with Journal(self.path / "seconds.jsonl") as journal:
            journal.append({"seconds": round(seconds, 3)})

    def write_report(self, text: str) -> None:
        """Put report.md in place."""
        write_atomic(self.path / "report.md", text)


def _differ(before: dict[str, Any], now: dict[str, Any], part: str) -> list[str]:
    one, other = before.get(part, {}), now[part]
    # Compared as JSON: what a file gave back is lists where the stage has tuples.
    return [
        f"{part}.{key}"
        for key in {*one, *other}
        if json.dumps(one.get(key), sort_keys=True) != json.dumps(other.get(key), sort_keys=True)
    ]
