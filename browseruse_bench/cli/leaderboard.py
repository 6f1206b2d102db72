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
def command(benchmark: str | None, experiments: Path, as_json: bool, as_markdown: bool) -> None:
    """Rank runs that may be compared: same benchmark, tasks, rules and judge."""
    import json

    from browseruse_bench.errors import ConfigError, DataError
    from browseruse_bench.report.find import benchmark_name
    from browseruse_bench.report.leaderboard import build, group_table, markdown
    from browseruse_bench.report.render import clean, show

    name = benchmark_name(benchmark)
    board = build(experiments, benchmark=name)
    if not board.groups and not board.problems:
        what = f" of {name}" if name else ""
        raise ConfigError(
            f"there is no run{what} below {experiments}; "
            "start with `bubench run --agent AGENT --benchmark BENCHMARK`"
        )
    if as_json:
        click.echo(json.dumps(board.model_dump(mode="json", by_alias=True), indent=2))
    elif as_markdown:
        click.echo(markdown(board), nl=False)
    else:
        for group in board.groups:
            show([group_table(group)])
            for note in group.notes:
                click.echo(f"note: {clean(note)}")
            click.echo()
    if board.problems:
        raise DataError(board.problems)
