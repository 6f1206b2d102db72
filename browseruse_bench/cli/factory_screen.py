"""`bubench factory screen --plan`: what the screen will do, before a run is spent."""

from __future__ import annotations

import json
from pathlib import Path

import click

from browseruse_bench.cli import options


@click.command()
@click.option("--plan", "planned", is_flag=True, help="Print the design; nothing is run.")
@options.workspace
@options.as_json
def screen(planned: bool, workspace: Path, as_json: bool) -> None:
    """Print the design of the screen: for every true pass rate the chance of each verdict and the
    mean runs, by enumeration; what it saves; the optimal rule beside it.

    `bubench factory run screen` makes the runs.
    """
    from browseruse_bench.errors import ConfigError
    from browseruse_bench.factory.screen.design import tables
    from browseruse_bench.factory.workspace import Workspace
    from browseruse_bench.report.render import show

    if not planned:
        raise ConfigError(
            "factory screen: give --plan for the design; `bubench factory run screen` screens"
        )
    found = tables(Workspace.open(workspace).config.screen)
    if as_json:
        told = [
            {"title": t.title, "headers": list(t.headers), "rows": [list(row) for row in t.rows]}
            for t in found
        ]
        click.echo(json.dumps(told, indent=2, ensure_ascii=False))
        return
    show(found)
