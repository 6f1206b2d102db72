"""`bubench demo`: the whole path on the embedded benchmark, without keys or the web."""

from __future__ import annotations

from pathlib import Path

import click

from browseruse_bench.cli import options

BENCHMARK = "LocalSites"
AGENTS = ("oracle", "nop")


@click.command("demo")
@click.option("--count", type=options.positive, help="Only so many tasks, drawn by a seed.")
@click.option("--concurrency", type=options.positive, help="Attempts at once.")
@options.experiments
@click.pass_context
def command(
    ctx: click.Context, count: int | None, concurrency: int | None, experiments: Path
) -> None:
    """Run LocalSites with the oracle and with nop, judge both, and rank them."""
    from browseruse_bench.cli.eval import command as eval_command
    from browseruse_bench.cli.leaderboard import command as leaderboard_command
    from browseruse_bench.cli.running import run_and_print
    from browseruse_bench.runs.plan import RunRequest

    for agent in AGENTS:
        click.echo(f"== {agent} on {BENCHMARK}", err=True)
        request = RunRequest(
            agent=agent,
            benchmark=BENCHMARK,
            mode="all" if count is None else "sample_n",
            count=count,
            concurrency=concurrency,
            experiments=experiments,
        )
        if status := run_and_print(request):
            ctx.exit(status)
        ctx.invoke(eval_command, agent=agent, benchmark=BENCHMARK, experiments=experiments)
    ctx.invoke(leaderboard_command, benchmark=BENCHMARK, experiments=experiments)
