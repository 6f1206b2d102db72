"""`bubench factory`: from raw traffic to a released benchmark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from browseruse_bench.cli import factory_labels, factory_screen, factory_search, options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from browseruse_bench.factory.funnel import Row
    from browseruse_bench.factory.pipeline import Pipeline
    from browseruse_bench.factory.runner import Settled
    from browseruse_bench.factory.stage import Step
    from browseruse_bench.factory.workspace import EngineName

INTERRUPTED = 130


@click.group("factory")
def command() -> None:
    """Turn real traffic into tasks, rubrics and rewards."""


@command.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), metavar="DIR")
def init(folder: Path) -> None:
    """Make a workspace in DIR, with a workspace.toml to fill in."""
    from browseruse_bench.factory.workspace import create, template

    file = create(folder, template(folder.resolve().name))
    click.echo(f"{file}: fill in [corpus], then `bubench factory run --workspace {folder}`")


@command.command()
@click.argument("stages", nargs=-1, metavar="[STAGE...]")
@click.option("--until", metavar="STAGE", help="Run all stages up to this one.")
@click.option("--restart", is_flag=True, help="Begin the named stages anew; old ones are kept.")
@click.option(
    "--engine",
    type=click.Choice(["embedded", "ray"]),
    help="Who does the jobs of filter: threads, or the workers of a Ray cluster; the results are "
    "the same.  [default: as workspace.toml says]",
)
@options.workspace
@options.as_json
def run(
    stages: tuple[str, ...],
    until: str | None,
    restart: bool,
    engine: EngineName | None,
    workspace: Path,
    as_json: bool,
) -> None:
    """Run stages over everything that came in; what was settled stays settled.

    Without names all stages run, in their order. Exit status 4: something failed or is pending;
    5: the budget is reached; 130: it was stopped.
    """
    from browseruse_bench.cli.factory_running import run_stages
    from browseruse_bench.errors import ConfigError

    if restart and not stages:
        raise ConfigError("--restart: name the stages that begin anew")
    pipeline = _pipeline(workspace, engine)
    chosen = pipeline.chosen(stages, until)
    ran = run_stages(pipeline, chosen, restart=restart)
    _show_funnel(pipeline, as_json=as_json)
    if ran.stopped:
        # As after the signal itself: whatever is pending is so because somebody wanted it.
        click.echo("bubench: stopped; the same command goes on", err=True)
        click.get_current_context().exit(INTERRUPTED)
    _refuse_incomplete(pipeline, ran.done)


@command.command()
@options.workspace
@options.as_json
def status(workspace: Path, as_json: bool) -> None:
    """Show the funnel: what came in, what was kept and dropped, what it cost."""
    pipeline = _pipeline(workspace)
    _show_funnel(pipeline, as_json=as_json)
    for step in pipeline.steps:
        _tell_problems(pipeline, step)


@command.command()
@click.argument("unit", metavar="UNIT")
@options.workspace
@options.as_json
def show(unit: str, workspace: Path, as_json: bool) -> None:
    """Show everything that happened to one task, stage by stage.

    UNIT is its key in any stage, or the beginning of it.
    """
    from browseruse_bench.report.render import clean

    chapters = _pipeline(workspace).history(unit)
    told = [chapter.as_json() for chapter in chapters]
    if as_json:
        click.echo(json.dumps(told, indent=2, ensure_ascii=False))
        return
    for one in told:
        click.echo(f"{one.pop('stage')}:")
        for name, value in one.items():
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            click.echo(f"  {name}: {clean(text)}")


@command.command()
@click.argument("stage", required=False)
@options.workspace
def report(stage: str | None, workspace: Path) -> None:
    """Show a stage's report: counts by reason, cost, sampled drops; the funnel without STAGE."""
    from browseruse_bench.factory.funnel import funnel, stage_report

    pipeline = _pipeline(workspace)
    if stage is None:
        _show_funnel(pipeline, as_json=False)
        return
    click.echo(stage_report(pipeline, pipeline.step(stage)), nl=False)
    _refuse_broken(funnel(pipeline))


def _pipeline(path: Path, engine: EngineName | None = None) -> Pipeline:
    from browseruse_bench.factory.pipeline import open_pipeline

    return open_pipeline(path, engine=engine)


def _show_funnel(pipeline: Pipeline, *, as_json: bool) -> None:
    from browseruse_bench.factory.funnel import funnel, funnel_table
    from browseruse_bench.report.render import show

    rows = funnel(pipeline)
    if as_json:
        click.echo(json.dumps([row.as_json() for row in rows], indent=2))
    else:
        show([funnel_table(rows)])
    _refuse_broken(rows)


def _refuse_broken(rows: Sequence[Row]) -> None:
    from browseruse_bench.errors import StageError
    from browseruse_bench.factory.funnel import broken_boundaries

    if broken := broken_boundaries(rows):
        raise StageError(f"figures that must be equal are not: {'; '.join(broken)}")


SHOWN_PROBLEMS = 20


def _tell_problems(pipeline: Pipeline, step: Step) -> None:
    from browseruse_bench.factory.stage import Source

    if not isinstance(step, Source):
        return
    problems = step.problems(pipeline.folder(step).path)
    for place, problem in enumerate(problems):
        if place < SHOWN_PROBLEMS:
            click.echo(problem, err=True)
            continue
        click.echo(f"and {1 + sum(1 for _ in problems)} more", err=True)


def _refuse_incomplete(pipeline: Pipeline, done: list[tuple[Step, Settled]]) -> None:
    """Everything that was to be done is done.

    Raises:
        BudgetError: the budget was reached.
        IncompleteError: something failed or is pending.
    """
    from browseruse_bench.errors import BudgetError, IncompleteError
    from browseruse_bench.factory.stage import Source

    for step, settled in done:
        if settled.over_budget:
            raise BudgetError(
                f"{step.name}: {settled.over_budget}; raise it, and the same command goes on"
            )
    for step, _ in done:
        _tell_problems(pipeline, step)
    left = {
        step: f"{step.name}: {settled.flow.failed} failed, {settled.flow.pending} pending"
        for step, settled in done
        if settled.flow.failed or settled.flow.pending
    }
    if left:
        told = "; ".join(left.values())
        read = all(isinstance(step, Source) for step in left)
        next_step = "mend what is named above" if read else "the same command tries them again"
        raise IncompleteError(f"{told}; {next_step}")


command.add_command(factory_screen.screen)

for verb in (factory_search.search, factory_search.compare, factory_search.drift):
    command.add_command(verb)

for verb in (
    factory_labels.label,
    factory_labels.labels,
    factory_labels.split,
    factory_labels.unseal,
):
    command.add_command(verb)
