"""`bubench agreement`: how far a judge agrees with people."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from browseruse_bench.cli import options

if TYPE_CHECKING:
    from browseruse_bench.report.agreement import AgreementReport

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command("agreement")
@click.argument("run", required=False, metavar="[RUN-ID or FOLDER]")
@click.option("--labels", "labels_file", type=_FILE, help="What people say: CSV, JSON, JSON lines.")
@click.option("--by", type=click.Choice(["category", "difficulty"]), help="Also for each of these.")
@click.option(
    "--statuses", is_flag=True, help="Compare items by their status instead of by credit."
)
@click.option(
    "--class",
    "classes",
    multiple=True,
    metavar="CODE",
    help="A label that is a class of its own, such as one for 'not executable'.",
)
@click.option(
    "--missing", multiple=True, metavar="CODE", help="A label that is none; it is counted apart."
)
@click.option("--csv", "csv_file", type=_FILE, help="Instead of a run: a table of others.")
@click.option("--truth", metavar="COLUMN", help="With --csv: whose labels are the truth.")
@click.option("--verdict", metavar="COLUMN", help="With --csv: the other's labels.")
@click.option("--group", metavar="COLUMN", help="With --csv: also for each value of this.")
@click.option("--cluster", metavar="COLUMN", help="With --csv: what hangs together (the task).")
@click.option(
    "--positive", metavar="LABEL", help="With --csv: the class of precision and recall.  [1]"
)
@options.experiments
@options.as_json
@options.as_markdown
def command(
    run: str | None, experiments: Path, as_json: bool, as_markdown: bool, **given: Any
) -> None:
    """Compare the verdicts of a run with labels of people, or two columns of any table.

    Rates without a denominator are empty (null in JSON), never 0. A code that is no class is
    refused, unless it is declared with --missing or --class.
    """
    import json

    from browseruse_bench.report.agreement_text import markdown, tables
    from browseruse_bench.report.render import show

    _refuse_mixture(run, given)
    found = _of_table(given) if given["csv_file"] else _of_run(run, experiments, given)
    if as_json:
        click.echo(json.dumps(found.model_dump(mode="json", by_alias=True), indent=2))
    elif as_markdown:
        click.echo(markdown(found), nl=False)
    else:
        show(tables(found))


_OF_RUN = ("labels_file", "by", "statuses", "classes")
_OF_TABLE = ("truth", "verdict", "group", "cluster", "positive")


def _refuse_mixture(run: str | None, given: dict[str, Any]) -> None:
    """Either a run with labels, or a table with two columns.

    Raises:
        ConfigError: neither, or something of both.
    """
    from browseruse_bench.errors import ConfigError

    if given["csv_file"] is None:
        strange = [f"--{name}" for name in _OF_TABLE if given[name]]
        if strange:
            raise ConfigError(f"{', '.join(strange)}: for a table, which --csv names")
        if given["labels_file"] is None:
            raise ConfigError("name the labels with --labels FILE, or a table with --csv FILE")
        return
    strange = [
        run or "",
        *(f"--{name.removesuffix('_file')}" for name in _OF_RUN if given[name]),
    ]
    if any(strange):
        raise ConfigError(f"{', '.join(filter(None, strange))}: for a run, not beside --csv")
    lacking = [f"--{name}" for name in ("truth", "verdict") if not given[name]]
    if lacking:
        raise ConfigError(f"--csv needs {' and '.join(lacking)}")


def _of_table(given: dict[str, Any]) -> AgreementReport:
    from browseruse_bench.report.agreement_table import table_agreement

    return table_agreement(
        given["csv_file"],
        truth=given["truth"],
        verdict=given["verdict"],
        group=given["group"],
        cluster=given["cluster"],
        positive=given["positive"] or "1",
        missing=given["missing"],
    )


def _of_run(run: str | None, experiments: Path, given: dict[str, Any]) -> AgreementReport:
    from browseruse_bench.cli.judging import which
    from browseruse_bench.errors import ConfigError
    from browseruse_bench.eval.labels import read_labels
    from browseruse_bench.report.agreement import Declared, run_agreement
    from browseruse_bench.report.find import benchmark_of, open_run

    declared = Declared.of(
        missing=given["missing"], classes=given["classes"], statuses=given["statuses"]
    )
    labels = read_labels(given["labels_file"])
    folder, found = open_run(experiments, run)
    benchmark, note = benchmark_of(found)
    if benchmark is None:
        raise ConfigError(f"{folder.path}: {note}")
    if not folder.judgements():
        raise ConfigError(
            f"{folder.path}: nothing of it is judged yet, so nothing can agree: "
            "`bubench eval` judges it"
        )
    click.echo(which(folder, found), err=True)
    return run_agreement(folder, found, benchmark, labels, declared=declared, by=given["by"])
