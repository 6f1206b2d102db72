"""`bubench export`: benchmarks and runs in the formats of other programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from browseruse_bench.cli import options

if TYPE_CHECKING:
    from browseruse_bench.export.outgoing import Exporter


@click.command("export")
@click.argument("format_", metavar="FORMAT")
@click.argument("source")
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--split", help="One split only.")
@click.option(
    "--answers",
    is_flag=True,
    help="Rubrics, expected results and solutions go along, with their canaries.",
)
@click.option("--private", is_flag=True, help="A private set may leave, in plain text.")
@click.option("--restricted", is_flag=True, help="Restricted bytes may leave.")
@options.as_json
def command(
    format_: str,
    source: str,
    out: Path,
    split: str | None,
    answers: bool,
    private: bool,
    restricted: bool,
    as_json: bool,
) -> None:
    """Write SOURCE, a benchmark (name or folder) or a run folder, to OUT in another FORMAT.

    Formats of a benchmark: parquet (with data card and Croissant), harbor, verifiers, openenv; of
    a run: inspect (OUT is a .eval file). OUT is there whole, or not at all.
    """
    import json

    from browseruse_bench.export import EXPORTERS
    from browseruse_bench.export.outgoing import Wish

    write: Exporter = EXPORTERS.get(format_)
    wish = Wish(split=split, answers=answers, private=private, restricted=restricted)
    done = write(source, out, wish)
    if as_json:
        told = {"format": format_, "out": str(out), "tasks": done.n_tasks, "notes": done.notes}
        click.echo(json.dumps(told, indent=2))
        return
    for note in done.notes:
        click.echo(f"note: {note}", err=True)
    key = "with" if answers else "without"
    click.echo(f"{format_}: {done.n_tasks} tasks, {key} the answer key, in {out}")
