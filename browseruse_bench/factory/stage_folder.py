"""A stage on disk: what settled, by which version and configuration, and what is derived.

stage.json      version, configuration, hashes of prompts, commit
inputs.jsonl    the drops that came in, one line each: never rewritten
journal.jsonl   the truth: one settled unit a line
kept.jsonl      derived, sorted by key, so that two of them can be compared
dropped.jsonl   the same
report.md       derived
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from browseruse_bench.errors import ConfigError, DataError
from browseruse_bench.factory.stage import Step
from browseruse_bench.records.base import Record, canonical_json
from browseruse_bench.records.trace import Usage
from browseruse_bench.store.files import read_json, sha256_file, write_atomic, write_json

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
    seconds: float = Field(default=0, ge=0)
    at: str


class Drop(Record):
    """One line of inputs.jsonl: units that came in together."""

    source: str
    """The stage, or the file, that they came from."""
    n_units: int = Field(ge=0)
    n_new: int = Field(ge=0)
    """Those that had not come in before."""
    keys_sha256: str
    """Over the sorted keys."""
    at: str


@dataclass
class Index:
    """Where the newest line of each unit is, and what it says: all that resume needs."""

    offsets: dict[str, int] = field(default_factory=dict[str, int])
    """Unit -> byte at which its line begins."""
    statuses: dict[str, Status] = field(default_factory=dict[str, Status])


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
        """Which units settled under a version; a torn last line is left out.

        Raises:
            DataError: a whole line is damaged.
        """
        found = Index()
        for offset, entry in self._lines():
            if entry.version == version:
                found.offsets[entry.unit] = offset
                found.statuses[entry.unit] = entry.status
        return found

    def entries(self, version: int) -> Iterator[Entry]:
        """The newest line of each unit under a version, sorted by unit; one at a time in memory.

        Raises:
            DataError: a whole line is damaged.
        """
        offsets = self.index(version).offsets
        if not offsets:
            return
        with self.journal_path.open("rb") as file:
            for unit in sorted(offsets):
                file.seek(offsets[unit])
                yield Entry.model_validate_json(file.readline())

    def _lines(self) -> Iterator[tuple[int, Entry]]:
        if not self.journal_path.exists():
            return
        with self.journal_path.open("rb") as file:
            offset = 0
            for number, line in enumerate(file, 1):
                if not line.endswith(b"\n"):
                    return
                try:
                    yield offset, Entry.model_validate_json(line)
                except ValidationError as error:
                    raise DataError(
                        f"{self.journal_path}: line {number} is damaged; restore it, or remove "
                        f"that line: what it settled is then owed again ({error.errors()[0]['msg']})"
                    ) from error
                offset += len(line)

    def derive(self, version: int) -> None:
        """Write kept.jsonl and dropped.jsonl, the same bytes for the same journal."""
        kept, dropped = self.path / "kept.jsonl", self.path / "dropped.jsonl"
        temporary = [path.with_suffix(".tmp") for path in (kept, dropped)]
        with temporary[0].open("w") as to_kept, temporary[1].open("w") as to_dropped:
            for entry in self.entries(version):
                if entry.status == "kept":
                    line = {"key": entry.out, "unit": entry.unit, "value": entry.value}
                    to_kept.write(canonical_json(line) + "\n")
                elif entry.status == "dropped":
                    line = {"unit": entry.unit, "reason": entry.reason, "evidence": entry.evidence}
                    to_dropped.write(canonical_json(line) + "\n")
        for path, made in zip((kept, dropped), temporary, strict=True):
            made.replace(path)

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


def keys_hash(keys: Sequence[str]) -> str:
    """SHA-256 over keys, in whatever order they come."""
    return hashlib.sha256("\n".join(sorted(keys)).encode()).hexdigest()
