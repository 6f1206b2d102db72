"""`bubench eval`: judge the attempts of a run."""

from __future__ import annotations

from typing import Any

import click

from browseruse_bench.cli import options


@click.command("eval")
@click.option("--agent", required=True, help="Name of the agent whose run is judged.")
@click.option("--benchmark", "--data", required=True, help="Name or folder of the benchmark.")
@click.option("--split", help="Split of the benchmark; its default_split if not given.")
@click.option("--model", help="Model of the agent, as it was given to `bubench run`.")
@click.option("--run-id", help="The run; otherwise the matching one that was active last.")
@click.option(
    "--task-ids",
    multiple=True,
    callback=options.split_commas,
    help="Ids, with commas; all other tasks stay as they are.",
)
@click.option("--force", is_flag=True, help="Judge again what is judged; the old verdicts stay.")
@click.option("--only-ungraded", is_flag=True, help="Judge again what has no grade, only that.")
@click.option("--concurrency", type=options.positive, default=2, show_default=True, help="At once.")
@click.option(
    "--timeout",
    "timeout_s",
    type=options.seconds,
    default=120.0,
    show_default=True,
    help="Longest time of the benchmark's own evaluator for one attempt, in seconds.",
)
@options.judges
@options.experiments
@options.as_json
def command(**given: Any) -> None:
    """Judge every settled attempt of a run that has no verdict yet, and report."""
    from browseruse_bench.cli.judging import judge_and_print

    judge_and_print(**given)
