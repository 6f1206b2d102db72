"""`bubench rubric`: check, show and compare rubrics."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from browseruse_bench.cli import options

if TYPE_CHECKING:
    from browseruse_bench.benchmarks.rubric_check import Checked
    from browseruse_bench.records.rubric import Rubric


@click.group("rubric")
def command() -> None:
    """Check, show and compare rubrics."""


@command.command("check")
@click.argument("target", metavar="FILE|BENCHMARK")
@click.option(
    "--profile",
    type=click.Choice(["load", "release"]),
    default="load",
    show_default=True,
    help="load: what publishers write; release: strict, and the lint's advice is an error.",
)
@click.option(
    "--from",
    "publisher",
    metavar="PUBLISHER",
    help="FILE is a publisher's task file (.json, .jsonl, .enc): odysseys, lexbench1, ...",
)
@click.option("--plaintext", is_flag=True, help="Quote what an encrypted FILE says.")
@options.as_json
def check(
    target: str,
    profile: Literal["load", "release"],
    publisher: str | None,
    plaintext: bool,
    as_json: bool,
) -> None:
    """List all that is wrong or doubtful about the rubrics of FILE or BENCHMARK."""
    from browseruse_bench.benchmarks.show import as_json_text
    from browseruse_bench.errors import DataError

    checked = _checked(target, profile, publisher, plaintext=plaintext)
    if as_json:
        click.echo(as_json_text(checked.as_json()))
    else:
        for line in checked.lines():
            click.echo(line, err=checked.n_errors > 0)
    if checked.n_errors:
        click.get_current_context().exit(DataError.exit_status)


def _checked(
    target: str, profile: Literal["load", "release"], publisher: str | None, *, plaintext: bool
) -> Checked:
    from browseruse_bench.benchmarks import rubric_check
    from browseruse_bench.benchmarks.rubric_files import file_at, place_at

    if publisher is not None:
        return rubric_check.check_published(Path(target), publisher, profile, plaintext=plaintext)
    path = file_at(target)
    if path is not None:
        return rubric_check.check_file(path, profile)
    return rubric_check.check_benchmark(place_at(target), profile)


@command.command("show")
@click.argument("target", metavar="FILE|BENCHMARK")
@click.argument("task_id", required=False)
@click.option("--judge", is_flag=True, help="As a model judge gets it: no weights, no canary.")
@options.as_json
def show(target: str, task_id: str | None, judge: bool, as_json: bool) -> None:
    """Print a rubric as the Markdown document that stands beside its JSON."""
    from browseruse_bench.benchmarks.rubric_files import rubric_at
    from browseruse_bench.benchmarks.show import as_json_text
    from browseruse_bench.records.rubric_text import markdown

    if judge and as_json:
        raise click.UsageError("--judge is Markdown; leave out --json")
    rubric: Rubric = rubric_at(target, task_id)
    if as_json:
        click.echo(as_json_text(rubric.as_json()))
    elif judge:
        click.echo(_judged(rubric))
    else:
        click.echo(markdown(rubric), nl=False)


def _judged(rubric: Rubric) -> str:
    from browseruse_bench.eval.findings.prompts import rubric_text

    coded = [item for item in rubric.items if item.check is not None]
    return rubric_text(rubric, [item for item in rubric.items if item not in coded], coded)


@command.command("diff")
@click.argument("before", metavar="FILE[@REVISION]")
@click.argument("after", metavar="FILE[@REVISION]")
@options.as_json
@options.as_markdown
def diff(before: str, after: str, as_json: bool, as_markdown: bool) -> None:
    """List what changed from one rubric to another: items, facts and rulings by their ids.

    FOLDER@2 is revision 2 in a folder of r1.json, r2.json, ...
    """
    from browseruse_bench.benchmarks.rubric_files import rubric_at
    from browseruse_bench.benchmarks.show import as_json_text
    from browseruse_bench.records.rubric_diff import changes, diff_lines, diff_markdown

    old, new = rubric_at(before), rubric_at(after)
    found = changes(old, new)
    if as_json:
        value = {
            "task_id": new.task_id,
            "before": old.revision,
            "after": new.revision,
            "changes": [change.as_json() for change in found],
        }
        click.echo(as_json_text(value))
    elif as_markdown:
        click.echo(diff_markdown(old, new, found), nl=False)
    else:
        for line in diff_lines(found):
            click.echo(line)
