"""What `bubench models batch` does, for each model of a batch, and how it is printed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import click

from browseruse_bench.errors import ConfigError, DataError
from browseruse_bench.models.batch.export import Exported, Limits, export
from browseruse_bench.models.batch.folder import BatchFolder, Part, find_batches
from browseruse_bench.models.batch.form import settled
from browseruse_bench.models.batch.importing import Imported, Terms, import_answers
from browseruse_bench.models.batch.jobs import Batching, Submitted
from browseruse_bench.models.batch.jobs import price_factor as factor_of
from browseruse_bench.models.batch.service import service_of
from browseruse_bench.models.config import SchemaMode
from browseruse_bench.models.spec import ModelSpec, model_spec
from browseruse_bench.models.spending_log import spending_at
from browseruse_bench.report.render import NOTHING, Table, clean, money, show

Result = TypeVar("Result")


def spec_of(folder: BatchFolder, *, need_key: bool) -> ModelSpec:
    """The model of a batch, as its configuration has it now.

    Raises:
        ConfigError: it is another model now, or its key is missing.
    """
    info = folder.info
    spec = model_spec(
        info.text, what=str(folder.path), cwd=Path(info.cwd), config=info.config, need_key=need_key
    )
    if spec.id.key != info.model.key:
        raise ConfigError(
            f"{folder.path}: {info.text!r} means another model now ({spec.id.as_line()}) than when "
            f"it was collected ({info.model.as_line()}); change {info.config} back"
        )
    return spec


def export_and_print(
    batch: Path, limits: Limits, *, again: bool, mode: SchemaMode | None, as_json: bool
) -> None:
    """Write what waits.

    Raises:
        DataError: a request cannot be put into a file; the others are.
    """
    problems: list[str] = []
    said: dict[str, Any] = {}
    for folder in find_batches(batch):
        done = asyncio.run(_exported(folder, limits, again=again, mode=mode))
        said[str(folder.path)] = _export_json(folder, done)
        problems += [f"{folder.path}: {problem}" for problem in done.problems]
        if not as_json:
            for line in _export_lines(folder, done):
                click.echo(clean(line))
    _finish(said, problems, as_json=as_json)


async def _exported(
    folder: BatchFolder, limits: Limits, *, again: bool = False, mode: SchemaMode | None = None
) -> Exported:
    spec = settled(spec_of(folder, need_key=False), mode)
    with folder.alone():
        return await export(folder, spec, limits=limits, again=again)


def _export_json(folder: BatchFolder, done: Exported) -> dict[str, Any]:
    parts = [{**_part_json(p), "file": str(folder.lines_path(p))} for p in done.parts]
    return {**asdict(done), "parts": parts}


def _export_lines(folder: BatchFolder, done: Exported) -> Iterable[str]:
    for part in done.parts:
        most = f", at most {part.most_usd:.4f} USD" if part.most_usd is not None else ""
        yield f"{folder.lines_path(part)}: {part.n} requests, {part.n_bytes / 1e6:.1f} MB{most}"
    n_answered = f"; {done.n_answered} had been answered meanwhile" if done.n_answered else ""
    yield f"{folder.path}: {done.n_waiting} wait, {done.n_out} of them in earlier parts{n_answered}"


def import_and_print(batch: Path, files: Sequence[Path], terms: Terms, *, as_json: bool) -> None:
    """Take answers from files, which are to the one model whose batch it is.

    Raises:
        ConfigError: the folder has batches of several models.
        DataError: a line is no answer to what was asked; the others are taken.
    """
    folders = find_batches(batch)
    if len(folders) > 1:
        listed = ", ".join(str(folder.path) for folder in folders)
        raise ConfigError(f"{batch} has batches of several models; name one of them: {listed}")
    folder = folders[0]
    done = asyncio.run(_imported(folder, files, terms))
    _print_imported(folder, done, as_json=as_json)
    _finish({str(folder.path): asdict(done)}, done.problems, as_json=as_json)


async def _imported(folder: BatchFolder, files: Sequence[Path], terms: Terms) -> Imported:
    spec = spec_of(folder, need_key=False)
    spending = spending_at(Path(folder.info.calls))
    with folder.alone():
        return await import_answers(folder, spec, files, spending=spending, terms=terms)


def _print_imported(folder: BatchFolder, done: Imported, *, as_json: bool) -> None:
    if as_json:
        return
    known = f", {done.n_known} answered before" if done.n_known else ""
    click.echo(
        clean(
            f"{folder.path}: {done.n_lines} lines: {done.n_answered} answered, {done.n_refused} of "
            f"no use, {done.n_gone} not asked or out of reach{known}; "
            f"{money(done.cost_usd, n_unknown=1)}; {done.n_owed} are still owed"
        )
    )
    if done.cost_usd is None:
        click.echo("note: the cost is not known; --price-factor says what a batch costs")


def submit_and_print(
    batch: Path,
    *,
    limit_usd: float | None,
    price_factor: float | None,
    jobs: Sequence[str],
    anew: Sequence[str],
    as_json: bool,
) -> None:
    """Write what waits, and submit it.

    Raises:
        DataError: a request cannot be put into a file, or the provider takes no part of it.
    """
    given = dict(_pair(job) for job in jobs)
    problems: list[str] = []
    said: dict[str, Any] = {}
    for folder in find_batches(batch):
        exported = asyncio.run(_exported(folder, Limits()))
        problems += [f"{folder.path}: {problem}" for problem in exported.problems]
        work = _batching(folder, price_factor)
        done = _alone(folder, _submitted(work, limit_usd, given, anew))
        problems += [f"{folder.path}: {problem}" for problem in done.refused]
        said[str(folder.path)] = {
            "submitted": [_part_json(part) for part in done.parts],
            "adopted": done.adopted,
        }
        if not as_json:
            for part in done.parts:
                assert part.job is not None
                found = ", found at the provider" if part.name in done.adopted else ""
                click.echo(clean(f"part {part.name}: {part.n} requests, job {part.job.id}{found}"))
            if not done.parts and not done.refused:
                click.echo(f"{folder.path}: nothing to submit")
    _finish(said, problems, as_json=as_json)


async def _submitted(
    work: Batching, limit_usd: float | None, jobs: dict[str, str], anew: Sequence[str]
) -> Submitted:
    for name in anew:
        work.anew(name)
    return await work.submit(limit_usd=limit_usd, jobs=jobs)


def _pair(text: str) -> tuple[str, str]:
    part, equals, id = text.partition("=")
    if not equals or not part or not id:
        raise ConfigError(f"--job {text}: give PART=ID")
    return part, id


def status_and_print(batch: Path, *, offline: bool, as_json: bool) -> None:
    """Say how far each part is."""
    said: dict[str, Any] = {}
    for folder in find_batches(batch):
        n_waiting = sum(queued.refused is None for queued in folder.waiting())
        parts = folder.parts()
        running = any(p.job is not None and p.status == "submitted" for p in parts)
        if running and not offline:
            parts = _alone(folder, _batching(folder, None).look())
        said[str(folder.path)] = {
            "model": folder.info.model.label,
            "n_waiting": n_waiting,
            "parts": [_part_json(part) for part in parts],
        }
        if not as_json:
            show([_parts_table(folder, parts)])
            click.echo(f"{n_waiting} requests wait for an answer")
    _finish(said, [], as_json=as_json)


def fetch_and_print(
    batch: Path,
    *,
    every_s: float | None,
    also_served: tuple[str, ...],
    price_factor: float | None,
    as_json: bool,
) -> None:
    """Take what the provider has answered; with `every_s`, until all parts have ended.

    Raises:
        DataError: a line is no answer to what was asked; the others are taken.
    """
    problems: list[str] = []
    said: dict[str, Any] = {}
    for folder in find_batches(batch):
        work = _batching(folder, price_factor, also_served)
        done = _alone(folder, _fetched(work, every_s, tell=not as_json))
        said[str(folder.path)] = asdict(done)
        problems += [f"{folder.path}: {problem}" for problem in done.problems]
        _print_imported(folder, done, as_json=as_json)
    _finish(said, problems, as_json=as_json)


async def _fetched(work: Batching, every_s: float | None, *, tell: bool) -> Imported:
    while every_s is not None:
        running = [p for p in await work.look() if p.job and p.job.state == "running"]
        if not running:
            break
        if tell:
            answered = sum(p.job.n_answered for p in running if p.job)
            total = sum(p.n for p in running)
            click.echo(f"{len(running)} parts run: {answered} of {total} answered", err=True)
        await asyncio.sleep(every_s)
    return await work.fetch()


def cancel_and_print(batch: Path, *, as_json: bool) -> None:
    """Ask the provider to end what runs."""
    said: dict[str, Any] = {}
    for folder in find_batches(batch):
        asked = _alone(folder, _batching(folder, None).cancel())
        said[str(folder.path)] = [_part_json(part) for part in asked]
        if not as_json:
            for part in asked:
                click.echo(clean(f"part {part.name}: {part.job.word if part.job else NOTHING}"))
            click.echo(f"{folder.path}: {len(asked)} parts asked to end")
    _finish(said, [], as_json=as_json)


def _batching(
    folder: BatchFolder, price_factor: float | None, also_served: tuple[str, ...] = ()
) -> Batching:
    spec = spec_of(folder, need_key=True)
    factor = factor_of(spec) if price_factor is None else price_factor
    return Batching(
        folder=folder,
        spec=spec,
        service=service_of(spec),
        spending=spending_at(Path(folder.info.calls)),
        terms=Terms(also_served=also_served, price_factor=factor),
    )


def _alone(folder: BatchFolder, work: Coroutine[Any, Any, Result]) -> Result:
    try:
        with folder.alone():
            return asyncio.run(work)
    finally:
        work.close()


def _part_json(part: Part) -> dict[str, Any]:
    return {"name": part.name, **part.as_json()}


def _parts_table(folder: BatchFolder, parts: Sequence[Part]) -> Table:
    return Table(
        title=f"{folder.path} ({folder.info.model.label})",
        headers=("part", "requests", "MB", "state", "answered", "failed", "cost", "job"),
        rows=tuple(
            (
                part.name,
                str(part.n),
                f"{part.n_bytes / 1e6:.1f}",
                _state(part),
                NOTHING if part.job is None else str(part.job.n_answered),
                NOTHING if part.job is None else str(part.job.n_failed),
                money(part.cost_usd),
                NOTHING if part.job is None else part.job.id,
            )
            for part in parts
        ),
        right=frozenset((1, 2, 4, 5, 6)),
    )


def _state(part: Part) -> str:
    if part.status == "submitted" and part.job is not None:
        return part.job.word
    words = {"creating": "in doubt: `submit` finds out"}
    return words.get(part.status, part.status) + (f": {part.note}" if part.note else "")


def _finish(said: dict[str, Any], problems: Sequence[str], *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(said, indent=2))
    if problems:
        raise DataError([clean(problem) for problem in problems])
