"""`bubench list`: the benchmarks, agents and browsers that are known here."""

from __future__ import annotations

import click

from browseruse_bench.cli import options


@click.command("list")
@options.as_json
def command(as_json: bool) -> None:
    """List the benchmarks, agents and browsers that are known here."""
    from browseruse_bench.agents import AGENTS
    from browseruse_bench.benchmarks.folder import all_places
    from browseruse_bench.benchmarks.show import as_json_text, list_json, list_lines
    from browseruse_bench.browsers import BROWSERS

    places = all_places()
    names = {"agents": AGENTS.names(), "browsers": BROWSERS.names()}
    if as_json:
        click.echo(as_json_text(list_json(places, names)))
        return
    for line in list_lines(places, names):
        click.echo(line)
