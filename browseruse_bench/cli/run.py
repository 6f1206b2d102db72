"""`bubench run`: make the attempts of an agent at a benchmark."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from browseruse_bench.cli import options

if TYPE_CHECKING:
    from browseruse_bench.cli.judges import JudgeOptions

_HOST = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?")


def _sites(_ctx: click.Context, _param: click.Parameter, value: tuple[str, ...]) -> dict[str, str]:
    sites: dict[str, str] = {}
    for text in value:
        host, equals, target = text.partition("=")
        if not equals or not _HOST.fullmatch(host.lower()) or ":" not in target:
            raise click.BadParameter(f"'{text}' is not of the form HOST=module:Site")
        sites[host.lower()] = target
    return sites


def _concurrency(_ctx: click.Context, _param: click.Parameter, value: str) -> int | None:
    if value == "auto":
        return None
    if not value.isdecimal() or int(value) < 1:
        raise click.BadParameter(f"'{value}' is neither auto nor a number from 1")
    return int(value)


@click.command("run")
@click.option("--agent", required=True, help="Name of the agent; see `bubench list`.")
@click.option("--benchmark", "--data", required=True, help="Name or folder of the benchmark.")
@click.option("--model", help="Model of the agent, as provider:name.")
@click.option(
    "--browser", default="local", show_default=True, help="Browser backend; see `bubench list`."
)
@click.option(
    "--browser-path",
    type=click.Path(path_type=Path),
    help="The Chromium that --browser local starts.",
)
@click.option("--cdp-url", help="Endpoint of --browser cdp.")
@click.option(
    "--guard",
    type=click.Choice(["auto", "layered", "confined", "flags", "observed"]),
    default="auto",
    show_default=True,
    help="How browsers and workers are held; auto: the best level that this machine allows.",
)
@click.option(
    "--gateway/--no-gateway",
    default=True,
    show_default=True,
    help="Lead an agent's model calls through the gateway, or give the agent the key itself.",
)
@click.option("--split", help="Split of the benchmark; its default_split if not given.")
@click.option(
    "--mode",
    type=click.Choice(["all", "first_n", "sample_n", "ids"]),
    help="Which tasks; `all`, or what --count or --task-ids mean.",
)
@click.option("--count", type=int, help="How many tasks, for first_n and sample_n.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of sample_n.")
@click.option("--task-ids", multiple=True, callback=options.split_commas, help="Ids, with commas.")
@click.option(
    "--category", multiple=True, callback=options.split_commas, help="Only these categories."
)
@click.option(
    "--difficulty", multiple=True, callback=options.split_commas, help="Only these difficulties."
)
@click.option(
    "--repeat",
    type=click.IntRange(1, 1000),
    default=1,
    show_default=True,
    help="Attempts at each task.",
)
@click.option(
    "--concurrency",
    default="auto",
    show_default=True,
    callback=_concurrency,
    help="Attempts at once.",
)
@click.option(
    "--per-host",
    type=options.positive,
    default=4,
    show_default=True,
    help="Attempts at once on one public website.",
)
@click.option(
    "--max-steps",
    type=options.positive,
    default=100,
    show_default=True,
    help="Steps of one attempt.",
)
@click.option(
    "--timeout",
    type=options.seconds,
    default=600.0,
    show_default=True,
    help="Seconds of one attempt.",
)
@click.option(
    "--step-timeout",
    type=options.seconds,
    default=120.0,
    show_default=True,
    help="Longest silence between two actions, in seconds.",
)
@click.option(
    "--max-cost-usd", "cost_usd", type=options.usd, help="What one attempt may cost, in USD."
)
@click.option(
    "--budget-usd",
    type=options.usd,
    help="What the whole run may cost, in USD; the attempts that are left are not run.",
)
@click.option(
    "--max-memory-gb",
    "memory_gb",
    type=options.gigabytes,
    help="What an agent's own process may use, with all that it starts.",
)
@click.option(
    "--retries",
    type=click.IntRange(min=0),
    default=2,
    show_default=True,
    help="Tries again after an infrastructure failure.",
)
@click.option("--run-id", help="Name of the run; otherwise the settings name it.")
@click.option(
    "--fresh", is_flag=True, help="Begin a new run although one of these settings exists."
)
@click.option(
    "--storage-state",
    type=click.Path(path_type=Path),
    help="Login for tasks that need one (Playwright's format).",
)
@click.option(
    "--site",
    "sites",
    multiple=True,
    callback=_sites,
    metavar="HOST=module:Site",
    help="A stand-in for a public host.",
)
@options.judges
@options.experiments
@click.option("--dry-run", is_flag=True, help="Say what would be run; write and start nothing.")
@options.as_json
def command(
    as_json: bool,
    dry_run: bool,
    timeout: float,
    step_timeout: float,
    max_steps: int,
    cost_usd: float | None,
    memory_gb: float | None,
    mode: str | None,
    judging: JudgeOptions,
    **given: Any,
) -> None:
    """Run an agent on a benchmark; the same command goes on where it stopped.

    With --judge each attempt is judged as soon as it has settled, while others still go on.
    """
    from browseruse_bench.cli.loop import leave
    from browseruse_bench.cli.running import run_and_print
    from browseruse_bench.records.trace import Limits
    from browseruse_bench.runs.plan import RunRequest

    limits = Limits(
        max_steps=max_steps,
        timeout_s=timeout,
        step_timeout_s=step_timeout,
        cost_usd=cost_usd,
        memory_gb=memory_gb,
    )
    request = RunRequest(limits=limits, mode=_mode(mode, given), **given)
    leave(run_and_print(request, judging=judging, dry_run=dry_run, as_json=as_json))


def _mode(mode: str | None, given: dict[str, Any]) -> Any:
    """The mode as given, or the one that the other options mean."""
    if mode is not None:
        return mode
    if given["task_ids"]:
        return "ids"
    if given["count"] is not None:
        return "first_n"
    return "all"
