"""`bubench compare`: whether two runs differ."""

from __future__ import annotations

from pathlib import Path

import click

from browseruse_bench.cli import options


@click.command("compare")
@click.argument("first", metavar="RUN")
@click.argument("second", metavar="RUN")
@click.option(
    "--target",
    type=click.Choice(["tasks", "attempts"]),
    default="tasks",
    show_default=True,
    help="Infer for new tasks of the same kind, or for new attempts at exactly these tasks.",
)
@click.option(
    "--see",
    type=click.FloatRange(min=0, max=100, min_open=True),
    default=5,
    show_default=True,
    metavar="POINTS",
    help="Say how many tasks would show a difference of so many points.",
)
@options.experiments
@options.as_json
@options.as_markdown
@options.as_html
def command(
    first: str,
    second: str,
    target: str,
    see: float,
    experiments: Path,
    as_json: bool,
    as_markdown: bool,
    html_file: Path | None,
) -> None:
    """Say whether two runs (run ids or folders) differ, on the tasks that both have.

    Runs of unlike benchmarks, revisions, protocols, judges or evidence are refused.
    """
    import json

    from browseruse_bench.report.compare import Judged, compare, markdown, read, tables
    from browseruse_bench.report.find import benchmark_of, open_run
    from browseruse_bench.report.render import clean, show

    def judged(name: str) -> Judged:
        folder, run = open_run(experiments, name)
        at_hand, note = benchmark_of(run)
        return read(folder, run, at_hand, note=note)

    found = compare(
        judged(first),
        judged(second),
        target="new tasks" if target == "tasks" else "new attempts",
        see=see,
    )
    if html_file is not None:
        from browseruse_bench.report.html import comparison_page
        from browseruse_bench.store.files import write_atomic

        write_atomic(html_file, comparison_page(found))
        click.echo(f"HTML: {html_file}", err=True)
    if as_json:
        click.echo(json.dumps(found.model_dump(mode="json", by_alias=True), indent=2))
    elif as_markdown:
        click.echo(markdown(found), nl=False)
    else:
        for sentence in found.sentences:
            click.echo(clean(sentence))
        click.echo()
        show(tables(found))
        for note in found.notes:
            click.echo(clean(f"note: {note}"))
