"""`bubench leaderboard`: runs side by side."""

from __future__ import annotations

from pathlib import Path

import click

from browseruse_bench.cli import options


@click.command("leaderboard")
@click.option("--benchmark", "--data", help="Only this benchmark (name or folder).")
@options.experiments
@options.as_json
@options.as_markdown
@options.as_html
@options.as_plot
def command(
    benchmark: str | None,
    experiments: Path,
    as_json: bool,
    as_markdown: bool,
    html_file: Path | None,
    plot_file: Path | None,
) -> None:
    """Rank runs that may be compared: same benchmark, tasks, rules and judge."""
    import json

    from browseruse_bench.errors import ConfigError, DataError
    from browseruse_bench.report.find import benchmark_name
    from browseruse_bench.report.leaderboard import build, group_tables, markdown
    from browseruse_bench.report.render import clean, show

    name = benchmark_name(benchmark)
    board = build(experiments, benchmark=name)
    if not board.groups and not board.problems:
        what = f" of {name}" if name else ""
        raise ConfigError(
            f"there is no run{what} below {experiments}; "
            "start with `bubench run --agent AGENT --benchmark BENCHMARK`"
        )
    if html_file is not None:
        from browseruse_bench.report.html import leaderboard_page
        from browseruse_bench.store.files import write_atomic

        write_atomic(html_file, leaderboard_page(board))
        click.echo(f"HTML: {html_file}", err=True)
    if plot_file is not None and board.groups:
        from browseruse_bench.report.plots import plot_leaderboard

        plot_leaderboard(board, plot_file)
        click.echo(f"plot: {plot_file}", err=True)
    if as_json:
        click.echo(json.dumps(board.model_dump(mode="json", by_alias=True), indent=2))
    elif as_markdown:
        click.echo(markdown(board), nl=False)
    else:
        for group in board.groups:
            show(group_tables(group))
            for note in group.notes:
                click.echo(f"note: {clean(note)}")
            click.echo()
    if board.problems:
        raise DataError(board.problems)
