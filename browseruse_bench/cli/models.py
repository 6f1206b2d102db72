"""`bubench models`: which models can be asked, what their calls cost, and batches of calls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from browseruse_bench.cli import options

calls_folder = click.option(
    "--calls",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("experiments") / "calls",
    show_default=True,
    help="Folder of the call ledger.",
)
batch_folder = click.argument("batch", type=click.Path(path_type=Path, file_okay=False))
accept_model = click.option(
    "--accept-model",
    "also_served",
    multiple=True,
    metavar="NAME",
    help="Take answers of this model, too.",
)
price_factor = click.option(
    "--price-factor",
    type=options.factor,
    help="Which part of the ordinary price the batch costs.",
)


@click.group("models")
def command() -> None:
    """See which models can be asked, what their calls cost, and work with batches."""


@command.command("list")
@options.as_json
def list_models(as_json: bool) -> None:
    """List the models of bubench.toml and the providers, with key, price and clearance."""
    import json

    from browseruse_bench.cli.model_tables import model_rows, model_table
    from browseruse_bench.report.render import show

    rows = model_rows(Path.cwd())
    if as_json:
        click.echo(json.dumps(rows, indent=2))
    else:
        show([model_table(rows)])


@command.command("check")
@click.argument("model", metavar="NAME")
@calls_folder
@options.as_json
def check(model: str, calls: Path, as_json: bool) -> None:
    """Ask the endpoint of a model what it supports, and say what that cost.

    NAME is a [models.NAME] of bubench.toml or provider:name. What is found is kept for 30 days.
    """
    import json

    from browseruse_bench.cli.model_tables import checked, found_table
    from browseruse_bench.report.render import show

    found = checked(model, calls)
    if as_json:
        click.echo(json.dumps(found, indent=2))
    else:
        show([found_table(found)])


@command.command("calls")
@calls_folder
@click.option("--purpose", help="Only calls for this (judge, writer, ...).")
@click.option("--scope", help="Only calls of this run.")
@click.option("--show", "ref", metavar="KEY", help="Show one call, as a judgement names it.")
@click.option("--check", "verify", is_flag=True, help="Read every file, and list damaged ones.")
@options.as_json
def calls_(
    calls: Path,
    purpose: str | None,
    scope: str | None,
    ref: str | None,
    verify: bool,
    as_json: bool,
) -> None:
    """Say what the calls of a ledger cost, by purpose and model.

    With --check: exit status 3 if a file is damaged.
    """
    import json

    from browseruse_bench.cli.model_tables import call_json, spending_json, spending_table, verified
    from browseruse_bench.errors import DataError
    from browseruse_bench.report.render import show

    if ref is not None:
        click.echo(json.dumps(call_json(calls, ref), indent=2, ensure_ascii=False))
        return
    found = spending_json(calls, purpose=purpose, scope=scope)
    damaged: list[str] = []
    if verify:
        found["files"], damaged = verified(calls)
    if as_json:
        click.echo(json.dumps(found, indent=2))
    else:
        show([spending_table(found)])
        for note in found["notes"]:
            click.echo(f"note: {note}")
        if verify:
            click.echo(f"{found['files']} files, {len(damaged)} damaged")
    if damaged:
        raise DataError(damaged)


@command.group("batch")
def batch_() -> None:
    """Have collected calls answered together: by a provider's batch API, or as files.

    `--batch FOLDER` beside --judge collects calls in FOLDER. Then either `submit` and `fetch`,
    or `export`, let the files be answered by anything, and `import`. Then the first command
    again: it goes on with the answers. FOLDER is the batch or the part of it of one model.
    """


@batch_.command("export")
@batch_folder
@click.option("--max-lines", type=options.positive, default=50_000, show_default=True)
@click.option("--max-mb", type=options.megabytes, default=200.0, show_default=True)
@click.option("--again", is_flag=True, help="Write anew what was written and not submitted.")
@click.option(
    "--schema",
    "mode",
    type=click.Choice(["native", "tool", "prompted"]),
    help="How requests are held to their schema; otherwise as known of the model.",
)
@options.as_json
def export(
    batch: Path, max_lines: int, max_mb: float, again: bool, mode: Any, as_json: bool
) -> None:
    """Write what waits as files of requests, one part after the other."""
    from browseruse_bench.cli.batching import export_and_print
    from browseruse_bench.models.batch.export import Limits

    limits = Limits(n_lines=max_lines, n_bytes=int(max_mb * 1e6))
    export_and_print(batch, limits, again=again, mode=mode, as_json=as_json)


@batch_.command("import")
@batch_folder
@click.argument(
    "files", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True, dir_okay=False)
)
@accept_model
@price_factor
@options.as_json
def import_(
    batch: Path,
    files: tuple[Path, ...],
    also_served: tuple[str, ...],
    price_factor: float | None,
    as_json: bool,
) -> None:
    """Put answers from FILES into the ledger; what is not answered is still owed.

    Exit status 3 if a line is no answer to what was asked of this model; the others are taken.
    Without --price-factor the cost is unknown: anything may have answered.
    """
    from browseruse_bench.cli.batching import import_and_print
    from browseruse_bench.models.batch.importing import Terms

    terms = Terms(also_served=also_served, price_factor=price_factor)
    import_and_print(batch, files, terms, as_json=as_json)


@batch_.command("submit")
@batch_folder
@click.option(
    "--budget-usd",
    "limit_usd",
    type=options.usd,
    help="Submit nothing that can bring this batch above so much.",
)
@price_factor
@click.option(
    "--job",
    "jobs",
    multiple=True,
    metavar="PART=ID",
    help="The provider's job that a part of doubtful state became.",
)
@click.option("--anew", multiple=True, metavar="PART", help="A part of doubtful state became none.")
@options.as_json
def submit(
    batch: Path,
    limit_usd: float | None,
    price_factor: float | None,
    jobs: tuple[str, ...],
    anew: tuple[str, ...],
    as_json: bool,
) -> None:
    """Write what waits as files and submit them to the provider's batch API.

    May be repeated at any time, after a kill too: no part is submitted twice.
    """
    from browseruse_bench.cli.batching import submit_and_print

    submit_and_print(
        batch, limit_usd=limit_usd, price_factor=price_factor, jobs=jobs, anew=anew, as_json=as_json
    )


@batch_.command("status")
@batch_folder
@click.option("--offline", is_flag=True, help="Ask no provider.")
@options.as_json
def status(batch: Path, offline: bool, as_json: bool) -> None:
    """Say how far the parts of a batch are."""
    from browseruse_bench.cli.batching import status_and_print

    status_and_print(batch, offline=offline, as_json=as_json)


@batch_.command("fetch")
@batch_folder
@click.option("--wait", is_flag=True, help="Wait until all parts have ended.")
@click.option(
    "--every",
    "every_s",
    type=options.seconds,
    default=60.0,
    show_default=True,
    help="Seconds between two looks while waiting.",
)
@accept_model
@price_factor
@options.as_json
def fetch(
    batch: Path,
    wait: bool,
    every_s: float,
    also_served: tuple[str, ...],
    price_factor: float | None,
    as_json: bool,
) -> None:
    """Put what the provider has answered into the ledger; what it has not is owed again."""
    from browseruse_bench.cli.batching import fetch_and_print

    fetch_and_print(
        batch,
        every_s=every_s if wait else None,
        also_served=also_served,
        price_factor=price_factor,
        as_json=as_json,
    )


@batch_.command("cancel")
@batch_folder
@options.as_json
def cancel(batch: Path, as_json: bool) -> None:
    """Ask the provider to end what runs; `fetch` then takes what was answered."""
    from browseruse_bench.cli.batching import cancel_and_print

    cancel_and_print(batch, as_json=as_json)
