"""`bubench agents`: which agents there are, and the environments that some of them need."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from browseruse_bench.cli import options


@click.group("agents")
def command() -> None:
    """List agents, and install what some of them need."""


@command.command("install")
@click.argument("agent")
@click.option("--again", is_flag=True, help="Build the environment anew although it is there.")
@click.option("--quiet", is_flag=True, help="Say nothing where nothing had to be done.")
def install(agent: str, again: bool, quiet: bool) -> None:
    """Put AGENT's pinned packages into an environment of its own; what is there stays."""
    from browseruse_bench.agents import AGENTS
    from browseruse_bench.agents import environments as env

    if agent in AGENTS.names() and agent not in env.REQUIREMENTS:
        click.echo(f"{agent} needs no environment of its own")
        return
    if not env.environment(agent).installed:
        click.echo(f"installing {agent} ...", err=True)
    done = env.install(agent, again=again)
    where = shown(done.environment.path)
    version = done.environment.pins[agent]
    if done.tool:
        click.echo(f"{agent} {version} in {where}, by {done.tool} in {done.seconds:.0f} s")
    elif not quiet:
        click.echo(f"{agent} {version} in {where}, already")


@command.command("list")
@options.as_json
def list_agents(as_json: bool) -> None:
    """List the agents, and whether what they need is installed."""
    import json

    rows = [_row(name) for name in _names()]
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    for row in rows:
        click.echo(f"{row['agent']:14} {row['state']}")


@command.command("doctor")
@options.as_json
@click.pass_context
def doctor(ctx: click.Context, as_json: bool) -> None:
    """Start each environment that is installed and compare it with its pins.

    Exit status 1 if one that is installed is damaged.
    """
    import json

    from browseruse_bench.agents import environments as env

    rows: list[dict[str, Any]] = []
    damaged = False
    for agent in sorted(env.REQUIREMENTS):
        problem = env.check(agent)
        installed = env.environment(agent).installed
        damaged = damaged or (installed and problem is not None)
        again = " --again" if installed else ""
        mend = "" if problem is None else f"bubench agents install {agent}{again}"
        rows.append({"agent": agent, "ok": problem is None, "problem": problem, "mend": mend})
    if as_json:
        click.echo(json.dumps(rows, indent=2))
    else:
        for row in rows:
            click.echo(f"{row['agent']}: {row['problem'] or 'ok'}")
            if row["mend"]:
                click.echo(f"    mend it: {row['mend']}")
    ctx.exit(1 if damaged else 0)


def _names() -> tuple[str, ...]:
    from browseruse_bench.agents import AGENTS

    return AGENTS.names()


def _row(name: str) -> dict[str, Any]:
    from browseruse_bench.agents import environments as env

    if name not in env.REQUIREMENTS:
        return {"agent": name, "installed": True, "state": "ready; needs no environment"}
    found = env.environment(name)
    version = found.pins[name]
    state = f"{version} in {shown(found.path)}" if found.installed else (
        f"{version}, not installed: bubench agents install {name}"
    )  # fmt: skip
    return {"agent": name, "installed": found.installed, "version": version, "state": state}


def shown(path: Path) -> str:
    """A path without the user's name where that can be helped."""
    home = Path.home()
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)
