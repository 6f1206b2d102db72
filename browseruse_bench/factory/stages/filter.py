"""Stage filter: from files of submissions to distinct tasks that may and can be used.

In this order: rights, length, local addresses and files, each on every submission; then, on
distinct texts, overlap with public benchmarks and language; then near-duplicates become one task
with its count and time span.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from browseruse_bench.errors import ConfigError
from browseruse_bench.factory.context import Context
from browseruse_bench.factory.corpus import broken as broken_lines
from browseruse_bench.factory.corpus import drops, report, story
from browseruse_bench.factory.corpus.engines import Embedded, Engine, OnRay, Stopped
from browseruse_bench.factory.corpus.inputs import InputFile, found_files, new_files
from browseruse_bench.factory.corpus.overlap import Reference, read_references
from browseruse_bench.factory.corpus.results import candidates
from browseruse_bench.factory.corpus.rules import REASONS, Rules
from browseruse_bench.factory.corpus.shelves import Shelf
from browseruse_bench.factory.stage import Flow, Source
from browseruse_bench.factory.workspace import WorkspaceConfig
from browseruse_bench.records.candidate import Candidate

PIECE_ROWS = 500_000
"""Rows of a file that one job reads."""


class Filter(Source[Candidate]):
    """Reads what is new in the corpus; files that came in before are never read again."""

    name = "filter"
    version = 4
    zone = "restricted"
    gives = Candidate
    reasons = REASONS

    def __init__(self, config: WorkspaceConfig) -> None:
        """Filter what `[corpus]` names."""
        self._corpus = config.corpus
        self._rules = Rules.of(config.corpus)

    def settings(self) -> Mapping[str, Any]:
        return self._rules.settings()

    async def run(
        self, ctx: Context, on_progress: Callable[[str], None], stop: threading.Event
    ) -> Flow:
        """Settle the drop that was begun, then one of all files that are new.

        Raises:
            ConfigError: no file is named, no tag is permitted, the engine is not installed, or
                benchmarks changed since files came in.
            DataError: a file that came in before has changed.
        """
        try:
            return await asyncio.to_thread(self._run, ctx, on_progress, stop)
        except Stopped:
            on_progress("stopped; what is done stays done, and the same command goes on")
            return self.flow(ctx.folder)
        except asyncio.CancelledError:
            stop.set()
            raise

    def _run(self, ctx: Context, tell: Callable[[str], None], stop: threading.Event) -> Flow:
        self._refuse_nothing()
        _set_aside_other_versions(ctx.folder, self.version)
        references = read_references(ctx.workspace, self._corpus.benchmarks)
        drops.refuse_other_benchmarks(ctx.folder, references)
        engine = self._engine(stop)
        try:
            self._settle_owed(ctx, references, engine, tell)
        finally:
            engine.close()
        return self.flow(ctx.folder)

    def _settle_owed(
        self,
        ctx: Context,
        references: list[Reference],
        engine: Engine,
        tell: Callable[[str], None],
    ) -> None:
        before = drops.drops_in(ctx.folder)
        for drop in before:
            drop.clean()
        if before and before[-1].outcome is None:
            self._settle(before[-1], before[:-1], engine, tell)
        known = {file.path: file for drop in before for file in drop.plan.files}
        broken = drops.broken_in(drops.drops_in(ctx.folder))

        def mended(path: Path) -> InputFile | None:
            found = broken.get(str(path))
            return None if found is None else broken_lines.mended(path, found)

        files = new_files(found_files(ctx.workspace, self._corpus.paths), known, mended)
        if not files:
            tell("no new files")
            return
        drop = drops.plan_drop(
            ctx.folder,
            files,
            references,
            version=self.version,
            mask=self._rules.mask,
            partitions=self._corpus.partitions,
            piece_rows=PIECE_ROWS,
        )
        self._settle(drop, before, engine, tell)

    def _settle(
        self,
        drop: drops.Drop,
        earlier: list[drops.Drop],
        engine: Engine,
        tell: Callable[[str], None],
    ) -> None:
        engine.expect(sum(file.size for file in drop.plan.files))
        drops.Work(drop, earlier, self._rules, engine, tell).settle()

    def _engine(self, stop: threading.Event) -> Engine:
        return OnRay(stop) if self._corpus.engine == "ray" else Embedded(stop=stop)

    def _refuse_nothing(self) -> None:
        if not self._corpus.paths:
            raise ConfigError("workspace.toml: [corpus] paths names no file or folder to read")
        if not self._corpus.permitted_tags:
            raise ConfigError(
                "workspace.toml: [corpus] permitted_tags is empty: no submission may be used; "
                "name the data-use tags that permit it"
            )

    def flow(self, folder: Path) -> Flow:
        n_in = kept = failed = 0
        dropped: Counter[str] = Counter()
        for drop in drops.drops_in(folder):
            outcome = drop.outcome
            if outcome is not None:
                n_in, kept, failed = (
                    n_in + outcome.n_in,
                    kept + outcome.kept,
                    failed + outcome.failed,
                )
                dropped.update(outcome.dropped)
                mends = sum(file.mends for file in drop.plan.files)
                n_in, failed = n_in - mends, failed - mends
        return Flow(n_in=n_in, kept=kept, dropped=dict(sorted(dropped.items())), failed=failed)

    def kept(self, folder: Path) -> Iterator[Candidate]:
        shelves = _shelves(folder)
        if shelves:
            yield from candidates(shelves)

    def find(self, folder: Path, key: str) -> Mapping[str, Any] | None:
        return story.find(_shelves(folder), key)

    def problems(self, folder: Path) -> Iterator[str]:
        """A line for each broken line of a file."""
        for broken in drops.broken_in(drops.drops_in(folder)).values():
            yield from broken_lines.told(broken)

    def report(self, folder: Path) -> str:
        """Drops with their evidence, and clusters for a person to judge."""
        shelves = _shelves(folder)
        return report.sections(shelves) if shelves else ""


def _shelves(folder: Path) -> list[Shelf]:
    return [drop.shelf for drop in drops.drops_in(folder) if drop.outcome is not None]


def _set_aside_other_versions(folder: Path, version: int) -> None:
    """A drop of another version settles again: all of them do, for later ones joined its tasks."""
    planned = drops.drops_in(folder)
    if any(drop.plan.version != version for drop in planned):
        old = planned[0].plan.version
        (folder / "drops").rename(folder / f"drops.of-version-{old}")
