"""Where later checks of facts are, and the archived pages that they and the rubrics name.

    facts/<task_id>/<fact id>/checks.jsonl     one line per check, only ever appended to
    facts/archives/<page key>.wacz             a package that holds this page, or any other name

`facts/` stands beside `rubrics/` in a benchmark folder or a workspace, and beside a rubric that
stands alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from browseruse_bench.benchmarks.references import FACTS, RUBRICS
from browseruse_bench.errors import DataError, StoreError
from browseruse_bench.records.fact_check import FactCheck, Standing, standing
from browseruse_bench.records.rubric import Fact, Rubric
from browseruse_bench.store.archive.opened import SUFFIXES, Archive
from browseruse_bench.store.archive.wacz import SUFFIX as WACZ
from browseruse_bench.store.archive.wacz import pages_of
from browseruse_bench.store.archive.warc import DamagedError
from browseruse_bench.store.files import escaped
from browseruse_bench.store.journal import Journal, read_journal

ARCHIVES = "archives"
CHECKS = "checks.jsonl"


def facts_beside(rubric: Path) -> Path:
    """The `facts/` folder of a rubric's file, whether or not it is there."""
    folder = rubric.absolute().parent
    for above in (folder, folder.parent):
        if above.name == RUBRICS:
            return above.parent / FACTS
    return folder / FACTS


@dataclass(frozen=True)
class FactFolder:
    """A `facts/` folder, which may not be there yet."""

    root: Path
    _holders: dict[str, Path] = field(default_factory=dict[str, Path])
    """Page key -> package, as far as was looked."""
    _damaged: list[str] = field(default_factory=list[str])
    _looked: list[bool] = field(default_factory=list[bool])

    @property
    def archives(self) -> Path:
        """Where archives are."""
        return self.root / ARCHIVES

    def checks(self, task_id: str, fact: str) -> tuple[FactCheck, ...]:
        """The checks of one fact, in the order in which they were made.

        Raises:
            DataError: a line is damaged, or is no check; its number is named.
        """
        path = self._path(task_id, fact)
        checks: list[FactCheck] = []
        for number, entry in enumerate(read_journal(path), 1):
            try:
                checks.append(FactCheck.model_validate(entry))
            except ValidationError as error:
                problem = error.errors(include_url=False)[0]
                place = ".".join(map(str, problem["loc"]))
                raise DataError(f"{path}: line {number}: {place}: {problem['msg']}") from None
        return tuple(checks)

    def append(self, check: FactCheck) -> None:
        """Add a check; it is on disk on return.

        Raises:
            StoreError: it cannot be written; no older check was touched.
        """
        try:
            with Journal(self._path(check.task_id, check.fact)) as journal:
                journal.append(check.as_json())
        except OSError as error:
            raise StoreError(
                f"{self.root}: the check cannot be written: {error}; name another folder with --facts"
            ) from error

    def standing(self, rubric: Rubric, fact: Fact) -> Standing:
        """What is known of a fact after all checks.

        Raises:
            DataError: the checks cannot be read.
        """
        return standing(fact, self.checks(rubric.task_id, fact.id))

    def rotted(self, rubric: Rubric) -> Iterator[tuple[Fact, Standing]]:
        """The facts of a rubric that no longer hold.

        Raises:
            DataError: the checks cannot be read.
        """
        if not (self.root / escaped(rubric.task_id)).is_dir():
            return
        for fact in rubric.facts:
            known = self.standing(rubric, fact)
            if known.state == "rotted":
                yield fact, known

    def holder(self, page: str) -> Path | None:
        """The archive that holds a page; None: there is none."""
        named = self.archives / f"{page}{WACZ}"
        if named.is_file():
            return named
        if not self._looked:
            self._looked.append(True)
            self._look()
        return self._holders.get(page)

    def damaged(self) -> Sequence[str]:
        """What could not be read of the archives when a page was looked for, one line each."""
        return tuple(self._damaged)

    def _look(self) -> None:
        """Read which pages the archives hold whose names do not say so."""
        for path in sorted(self.archives.glob("*")):
            if not path.name.endswith(SUFFIXES):
                continue
            try:
                keys = pages_of(path) if path.suffix == WACZ else _keys_inside(path)
            except DamagedError as error:
                self._damaged.append(str(error))
                continue
            self._holders.update(dict.fromkeys(keys, path))

    def _path(self, task_id: str, fact: str) -> Path:
        return self.root / escaped(task_id) / escaped(fact) / CHECKS


def _keys_inside(path: Path) -> tuple[str, ...]:
    with Archive.open(path) as archive:
        return tuple(archive.pages)
