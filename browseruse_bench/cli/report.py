"""`bubench report`: what a run came to."""

from __future__ import annotations

from pathlib import Path

import click

from browseruse_bench.cli import options


@click.command("report")
@click.argument("run", required=False, metavar="[RUN-ID or FOLDER]")
@click.option("--agent", help="Only runs of this agent.")
@click.option("--benchmark", "--data", help="Only runs of this benchmark (name or folder).")
@click.option("--split", help="Only runs of this split.")
@click.option("--model", help="Only runs with this model.")
@options.experiments
@options.as_json
@options.as_markdown
@options.as_html
@options.as_plot
def command(
    run: str | None,
    agent: str | None,
    benchmark: str | None,
    split: str | None,
    model: str | None,
    experiments: Path,
    as_json: bool,
    as_markdown: bool,
    html_file: Path | None,
    plot_file: Path | None,
) -> None:
    """Report on a run: the one that is named, else the fitting one that was active last.

    Its summary.json and report.md are rebuilt from the journals.
    """
    import json

    from browseruse_bench.cli.judging import refuse_incomplete, which
    from browseruse_bench.report.find import agent_name, benchmark_name, benchmark_of, open_run
    from browseruse_bench.report.render import show
    from browseruse_bench.report.summary import markdown, report_run, tables

    folder, found = open_run(
        experiments,
        run,
        agent=agent_name(agent),
        benchmark=benchmark_name(benchmark),
        split=split,
        model=model,
    )
    at_hand, note = benchmark_of(found)
    click.echo(which(folder, found), err=True)
    summary = report_run(folder, at_hand, note=note)
    if html_file is not None:
        from browseruse_bench.report.html import report_page
        from browseruse_bench.store.files import write_atomic

        write_atomic(html_file, report_page(summary))
        click.echo(f"HTML: {html_file}", err=True)
    if plot_file is not None:
        from browseruse_bench.report.plots import plot_report

        plot_report(summary, plot_file)
        click.echo(f"plot: {plot_file}", err=True)
    if as_json:
        click.echo(json.dumps(summary.model_dump(mode="json", by_alias=True), indent=2))
    elif as_markdown:
        click.echo(markdown(summary), nl=False)
    else:
        show(tables(summary))
    refuse_incomplete(summary)
