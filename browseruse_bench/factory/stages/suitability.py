"""Stage suitability: a small model says of each distinct task whether it suits a benchmark.

It asks in one call a task, with the prompt that a search chose for this workspace; without one,
with the prompt that comes along, and then the report says so. What is uncertain is dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from pathlib import Path
from typing import Any, Self

from browseruse_bench.factory.context import Context
from browseruse_bench.factory.search.book import total
from browseruse_bench.factory.search.chosen import Chosen, read_chosen
from browseruse_bench.factory.search.figures import Rate
from browseruse_bench.factory.search.labeller import Said, label, shipped
from browseruse_bench.factory.stage import Dropped, Kept, Stage
from browseruse_bench.factory.stage_folder import StageFolder
from browseruse_bench.factory.workspace import BATCH, WorkspaceConfig
from browseruse_bench.models.base import RefusalError, TooLongError
from browseruse_bench.models.batch.folder import find_batches
from browseruse_bench.records.candidate import Candidate
from browseruse_bench.records.label import REASON_TAGS
from browseruse_bench.report.render import Table, markdown_table, markdown_text, money
from browseruse_bench.store.journal import Journal


class Suitability(Stage[Candidate, Candidate]):
    """Keeps what the model calls suitable, as it came."""

    name = "suitability"
    version = 1
    zone = "restricted"
    takes, gives = Candidate, Candidate
    reasons = frozenset({*REASON_TAGS, "unsuitable", "uncertain", "no_label"})

    def __init__(self, config: WorkspaceConfig) -> None:
        """Of a workspace."""
        self._model = config.behind("labeller")
        self.collects = config.suitability.batch
        self.prompt = shipped()
        self._chosen: Chosen | None = None

    def at(self, workspace: Path) -> Self:
        """With the prompt that was chosen there."""
        made = copy(self)
        made._chosen = read_chosen(workspace)
        if made._chosen is not None:
            made.prompt = made._chosen.prompt
        return made

    def settings(self) -> Mapping[str, Any]:
        """The model, and the key of all that it is told."""
        return {"model": self._model, "prompt": self.prompt.key}

    async def settle(self, unit: Candidate, ctx: Context) -> Kept[Candidate] | Dropped:
        """As the model says."""
        try:
            said, _ = await label(ctx.model("labeller"), self.prompt, unit.text)
        except (RefusalError, TooLongError) as error:
            # So it would be each time, and each time it would be paid. What was cut short or
            # garbled is owed instead: a setting may be the cause.
            return Dropped("no_label", {"why": type(error).__name__.removesuffix("Error")})
        evidence = _evidence(said, unit.text)
        if said.verdict == "suitable":
            with Journal(ctx.folder / "notes.jsonl") as notes:
                notes.append({"unit": unit.key, **evidence})
            return Kept(unit)
        if said.verdict == "uncertain":
            return Dropped("uncertain", evidence)
        return Dropped(said.tags[0] if said.tags else "unsuitable", evidence)

    def report(self, folder: Path) -> str:
        """Which prompt labelled, what is known of it, and what a thousand suitable tasks cost."""
        rows = [("prompt", self._which()), *self._costs(folder)]
        if self._chosen is not None:
            rows += [
                ("agrees with people", self._chosen.validation.agreement.text + " of validation"),
                ("chosen with", f"{self._chosen.model}, search {self._chosen.search}"),
                ("what was shown", self._chosen.decision),
            ]
        table = Table(title="", headers=("what", "value"), rows=tuple(rows))
        parts = ["## Prompt\n", markdown_table(table)]
        if waiting := self._waiting(folder):
            parts.append(markdown_text(waiting) + "\n")
        return "\n".join(parts)

    def _which(self) -> str:
        if self._chosen is not None:
            return f"{self.prompt.id}, chosen by a search"
        return (
            f"{self.prompt.id}, the one that comes with the program: no prompt was chosen for this "
            "workspace, so how far it agrees with people here is not known"
        )

    def _costs(self, folder: Path) -> list[tuple[str, str]]:
        n = kept = n_quoted = n_quotes = 0
        with StageFolder(folder).index(self.version) as index:
            costs = [use.cost_usd for use in index.usage]
            for entry in index.entries():
                if entry.status == "failed":
                    continue
                n += 1
                kept += entry.status == "kept"
                if entry.status == "dropped" and entry.evidence and entry.evidence.get("quote"):
                    n_quotes += 1
                    n_quoted += bool(entry.evidence.get("quote_found"))
        cost = total(costs)
        each = None if cost is None or not kept else 1000 * cost / kept
        return [
            ("suitable", Rate.of_counts(kept, n).text),
            ("a thousand suitable tasks cost", "not known" if each is None else money(each)),
            ("quoted words found in the task", Rate.of_counts(n_quoted, n_quotes).text),
        ]

    def _waiting(self, folder: Path) -> str:
        batch = folder.parent / BATCH
        if not self.collects or not any(batch.glob("*/batch.json")):
            return ""
        n = sum(1 for found in find_batches(batch) for q in found.waiting() if q.refused is None)
        return (
            f"{n} calls wait in {batch}: `bubench models batch submit {batch}`, later `fetch`, "
            "then run the stage again."
            if n
            else ""
        )


def _evidence(said: Said, text: str) -> dict[str, Any]:
    """What a person can check the verdict by; whether the quote stands in the task is looked up."""
    return {
        "reason": said.reason,
        "tags": list(said.tags),
        "quote": said.quote,
        "quote_found": said.quotes(text),
    }
