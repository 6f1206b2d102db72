"""`bubench demo`: the whole path on the embedded benchmark, without keys or the web."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from browseruse_bench.cli import options

BENCHMARK = "LocalSites"
AGENTS = ("oracle", "nop", "browser-use")
SCRIPTS = ("scripts", "browser-use")
"""Folder of the benchmark with what browser-use's model plays; index.json names the tasks."""


@click.command("demo")
@click.option("--count", type=options.positive, help="Only so many tasks, drawn by a seed.")
@click.option("--concurrency", type=options.positive, help="Attempts at once.")
@options.experiments
@click.pass_context
def command(
    ctx: click.Context, count: int | None, concurrency: int | None, experiments: Path
) -> None:
    """Run LocalSites with the oracle, with nop and, where it is installed, with browser-use;
    judge them and rank them.

    A model that plays prepared steps stands in for one that costs money: right ones, wrong ones
    and ones that give up, on the tasks that have such steps.
    """
    from browseruse_bench.cli.eval import command as eval_command
    from browseruse_bench.cli.leaderboard import command as leaderboard_command
    from browseruse_bench.cli.running import run_and_print
    from browseruse_bench.errors import IncompleteError
    from browseruse_bench.report.render import clean
    from browseruse_bench.runs.plan import RunRequest

    status = 0
    for agent in AGENTS:
        if agent == "browser-use" and not _installed(agent):
            click.echo(f"== without {agent}: `bubench agents install {agent}`", err=True)
            continue
        click.echo(f"== {agent} on {BENCHMARK}", err=True)
        request = RunRequest(
            agent=agent,
            benchmark=BENCHMARK,
            concurrency=concurrency,
            experiments=experiments,
            **(_scripted(count) if agent == "browser-use" else _sampled(count)),
        )
        made = run_and_print(request)
        if made not in (0, IncompleteError.exit_status):
            ctx.exit(made)
        try:
            ctx.invoke(eval_command, agent=agent, benchmark=BENCHMARK, experiments=experiments)
        except IncompleteError as error:
            # One attempt without a grade keeps nobody from the leaderboard, which says so.
            click.echo(clean(f"{agent}: {error}"), err=True)
            made = error.exit_status
        status = max(status, made)
    ctx.invoke(leaderboard_command, benchmark=BENCHMARK, experiments=experiments)
    ctx.exit(status)


def _installed(agent: str) -> bool:
    from browseruse_bench.agents.environments import environment

    return environment(agent).installed


def _sampled(count: int | None) -> dict[str, Any]:
    return {"mode": "all" if count is None else "sample_n", "count": count}


def _scripted(count: int | None) -> dict[str, Any]:
    """The tasks that have a script, and the model that plays them."""
    from browseruse_bench.benchmarks.folder import find
    from browseruse_bench.store.files import read_json

    folder = find(BENCHMARK).path.joinpath(*SCRIPTS)
    task_ids = tuple(read_json(folder / "index.json"))[:count]
    return {"mode": "ids", "task_ids": task_ids, "model": f"scripted:{folder}"}
