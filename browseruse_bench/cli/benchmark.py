"""`bubench benchmark`: make, check, audit, split and look at benchmark folders."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from browseruse_bench.cli import options

if TYPE_CHECKING:
    from browseruse_bench.cli.judges import JudgeOptions


@click.group("benchmark")
def command() -> None:
    """Make, check, audit, split and look at benchmark folders."""


@command.command("new")
@click.argument("name")
@click.option("--with-evaluator", is_flag=True, help="Write an evaluator.py, too.")
@click.option(
    "--dir",
    "parent",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("benchmarks"),
    show_default=True,
    help="Where the new folder goes.",
)
def new(name: str, with_evaluator: bool, parent: Path) -> None:
    """Write a benchmark folder NAME with two example tasks."""
    from browseruse_bench.benchmarks.scaffold import new_benchmark

    folder = new_benchmark(name, parent, with_evaluator=with_evaluator)
    click.echo(f"{folder}: written, with two example tasks that can be run as they are")
    called = name if parent == Path("benchmarks") else str(folder)
    click.echo(f"next: edit {folder / 'data' / 'tasks.json'}; bubench benchmark validate {called}")


@command.command("validate")
@click.argument("benchmark", metavar="NAME|PATH")
@options.as_json
def validate(benchmark: str, as_json: bool) -> None:
    """List everything that is wrong with a benchmark; nothing of it is executed."""
    from browseruse_bench.benchmarks.folder import find
    from browseruse_bench.benchmarks.show import as_json_text, findings_json, findings_lines
    from browseruse_bench.benchmarks.validate import examine
    from browseruse_bench.errors import DataError

    place = find(benchmark)
    examined = examine(place)
    if as_json:
        click.echo(as_json_text(findings_json(place, examined)))
    else:
        for line in findings_lines(place, examined):
            click.echo(line, err=bool(examined.problems))
    if examined.problems:
        click.get_current_context().exit(DataError.exit_status)


@command.command("audit")
@click.argument("benchmark", metavar="NAME|PATH")
@click.option("--split", help="Split of the benchmark; its default_split if not given.")
@click.option(
    "--task-ids",
    multiple=True,
    callback=options.split_commas,
    help="Only these tasks, with commas.",
)
@options.judges
@click.option("--concurrency", type=options.positive, help="Attempts at once.")
@options.experiments
@options.as_json
def audit(
    benchmark: str,
    split: str | None,
    task_ids: tuple[str, ...],
    concurrency: int | None,
    experiments: Path,
    as_json: bool,
    judging: JudgeOptions,
) -> None:
    """Measure that what does nothing earns nothing, at every task.

    An agent that takes no step and gives no answer attempts each task, and is judged as a run
    would be. Exit status 3: doing nothing earns points; 4: a task has no verdict although it
    could have one. What only a model can judge is said, and judged where --judge names one.
    """
    from browseruse_bench.cli.auditing import audit_and_print

    audit_and_print(
        benchmark,
        split=split,
        task_ids=task_ids,
        judging=judging,
        concurrency=concurrency,
        experiments=experiments,
        as_json=as_json,
    )


@command.command("split")
@click.argument("benchmark", metavar="NAME|PATH")
@click.option("--dry-run", is_flag=True, help="Say what would be written; write nothing.")
def split(benchmark: str, dry_run: bool) -> None:
    """Write the Easy, Medium and Hard subset files from the tasks' difficulty."""
    from browseruse_bench.benchmarks.folder import find
    from browseruse_bench.benchmarks.scaffold import plan_split, write_split

    plan = plan_split(find(benchmark))
    if not dry_run:
        write_split(plan)
    what = "would be written" if dry_run else "written"
    for path, rows in plan.files.items():
        click.echo(f"{path}: {len(rows)} task{'s' * (len(rows) != 1)}, {what}")
    click.echo(f"{plan.info_path}: {what}")
    for note in plan.notes:
        click.echo(f"note: {note}")


@command.command("show")
@click.argument("benchmark", metavar="NAME|PATH")
@click.argument("task_id", required=False)
@options.as_json
def show(benchmark: str, task_id: str | None, as_json: bool) -> None:
    """Show what a benchmark holds, or one task and which part of it an agent sees."""
    from browseruse_bench.benchmarks import show as shown
    from browseruse_bench.benchmarks.folder import find

    place = find(benchmark)
    if task_id is None:
        value, lines = shown.benchmark_json(place), shown.benchmark_lines(place)
    else:
        value, lines = shown.task_json(place, task_id), shown.task_lines(place, task_id)
    click.echo(shown.as_json_text(value) if as_json else "\n".join(lines))
