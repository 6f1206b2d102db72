"""The revision loop of one task on disk: every revision, why it was made, and every grading.

    <folder>/
      revise.json      what is measured, by which judge, on which traces; refused if it differs
      r1.json r1.md    the rubric as it came; r2, r3, ... what became of it
      revisions.jsonl  what the author was asked and what it answered, one item a line
      regrades.jsonl   every grading

An interrupted loop goes on with the same call: nothing that is there is asked again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from browseruse_bench.errors import BudgetError, ConfigError, DataError
from browseruse_bench.eval.evaluate import utc_now
from browseruse_bench.eval.judges import Judge
from browseruse_bench.eval.regrading import Owed, Regrading, Specimen, regrading
from browseruse_bench.eval.revise import Author, Change, Revised, Terms, revise
from browseruse_bench.models.base import PendingError
from browseruse_bench.records.judgement import Judgement
from browseruse_bench.records.rubric import Rubric
from browseruse_bench.records.rubric_text import markdown
from browseruse_bench.store.files import read_json, write_atomic, write_json
from browseruse_bench.store.journal import Journal, read_journal

FIRST_SAMPLE = 1_000
"""Above the numbers that `bubench eval` and `bubench stability` give, so that no grading of the
loop was ever seen before."""
_NEXT_TRY = 1_000_000
"""What is added to the number of a grading without a grade when it is asked for once more."""
_TRIES = 3
"""Times that it is asked for in one call."""


async def revise_in(
    folder: Path,
    specimens: Sequence[Specimen],
    judge: Judge,
    author: Author,
    *,
    terms: Terms | None = None,
    fixed: Collection[str] = (),
    concurrency: int = 2,
    on_judged: Callable[[Judgement], None] | None = None,
    now: Callable[[], str] = utc_now,
) -> Revised:
    """What comes of a task's rubric; see `revise`. A crash loses at most what was in flight.

    Args:
        folder: of this task alone.
        specimens: the frozen traces of one task, all with its first rubric.
        judge: the deployed one.
        author: rewords items.
        terms: how items are measured.
        fixed: items that no judge decides.
        concurrency: gradings at a time.
        on_judged: called with each new judgement after it is on disk.
        now: the clock.

    Raises:
        ConfigError: the folder holds the loop of something else, the specimens are not of one
            rubric, or another process works in it.
        DataError: a file of the folder is damaged.
        GraderError: the author failed.
        BudgetError, PendingError: gradings could not be made now; the same call goes on.
    """
    terms = terms or Terms()
    rubrics = {specimen.rubric.key for specimen in specimens}
    if len(rubrics) != 1:
        raise ConfigError(f"{folder}: traces of one rubric are revised, not of {len(rubrics)}")
    first = specimens[0].rubric
    _hold(folder, specimens, judge, terms, fixed)
    changes = folder / "revisions.jsonl"
    known = _changes(changes)
    async with regrading(
        folder / "regrades.jsonl", concurrency=concurrency, on_judged=on_judged, now=now
    ) as regrades:

        async def grade(rubric: Rubric, numbers: Sequence[int]) -> Sequence[Judgement]:
            against = [replace(specimen, rubric=rubric) for specimen in specimens]
            return await _grade(regrades, against, judge, numbers)

        with Journal(changes) as journal:
            return await revise(
                first,
                grade=grade,
                author=author,
                terms=terms,
                fixed=fixed,
                first_sample=FIRST_SAMPLE,
                known=known,
                on_change=lambda change: journal.append(change.as_json()),
                on_rubric=lambda rubric: _write(folder, rubric, rubric.revision - first.revision),
            )


def _hold(
    folder: Path, specimens: Sequence[Specimen], judge: Judge, terms: Terms, fixed: Collection[str]
) -> None:
    """The folder is that of this loop.

    Raises:
        ConfigError: it is of another one; the keys that differ are named.
    """
    ours: dict[str, Any] = {
        "rubric": specimens[0].rubric.key,
        "judge": judge.judge_key,
        "traces": sorted(specimen.trace_key for specimen in specimens),
        "fixed": sorted(fixed),
        "samples": terms.samples,
        "gate_samples": terms.gate_samples,
        "figure_samples": terms.figure_samples,
        "threshold": terms.threshold,
        "rounds": terms.rounds,
        "prior": terms.prior.as_json(),
        "success_at": terms.success_at,
    }
    path = folder / "revise.json"
    if not path.exists():
        write_json(path, ours)
        return
    try:
        theirs = TypeAdapter(dict[str, Any]).validate_python(read_json(path))
    except ValidationError as error:
        raise DataError(f"{path}: {error}") from error
    differing = [key for key, value in ours.items() if theirs.get(key) != value]
    if differing:
        raise ConfigError(
            f"{folder}: holds a revision with another {', '.join(differing)}; numbers that were "
            "used once must not be used again: take a new folder"
        )


def _changes(path: Path) -> list[Change]:
    try:
        return [Change.model_validate(line) for line in read_journal(path)]
    except ValidationError as error:
        raise DataError(f"{path}: {error}") from error


def _write(folder: Path, rubric: Rubric, n_before: int) -> None:
    """Put a revision in place; the first one is r1, whatever its publisher calls it.

    Raises:
        DataError: another rubric is there.
    """
    path = folder / f"r{n_before + 1}.json"
    if path.exists():
        found = Rubric.model_validate(read_json(path))
        if found.key != rubric.key:
            raise DataError(f"{path}: not the rubric that came of the revisions in this folder")
        return
    write_json(path, rubric.as_json())
    write_atomic(path.with_suffix(".md"), markdown(rubric))


async def _grade(
    regrades: Regrading, specimens: Sequence[Specimen], judge: Judge, numbers: Sequence[int]
) -> Sequence[Judgement]:
    """The gradings under these numbers. One without a grade is asked for again, a few times,
    under a number of its own; it is counted all the same.

    Raises:
        BudgetError, PendingError: some could not be made now.
    """
    for _ in range(_TRIES):
        owed = [
            Owed(specimen=specimen, judge=judge, samples=following)
            for specimen in specimens
            for given in [regrades.given(specimen, judge.judge_key)]
            if (following := tuple(_following(given, n) for n in numbers if not _ended(given, n)))
        ]
        done = await regrades.settle(owed)
        if done.over_budget:
            raise BudgetError(done.over_budget)
        if done.n_pending:
            raise PendingError(f"{done.n_pending} gradings wait for a batch")
    return [
        given[number]
        for specimen in specimens
        for given in [regrades.given(specimen, judge.judge_key)]
        for first in numbers
        for number in _tries(given, first)
    ]


def _tries(given: Mapping[int, Judgement], number: int) -> range:
    """The numbers under which a grading was asked for."""
    n = 0
    while number + n * _NEXT_TRY in given:
        n += 1
    return range(number, number + n * _NEXT_TRY, _NEXT_TRY)


def _ended(given: Mapping[int, Judgement], number: int) -> bool:
    tries = _tries(given, number)
    return bool(tries) and given[tries[-1]].status == "graded"


def _following(given: Mapping[int, Judgement], number: int) -> int:
    return number + len(_tries(given, number)) * _NEXT_TRY
