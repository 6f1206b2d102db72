"""`bubench serve-reward`: a reward over HTTP for any trainer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from browseruse_bench.cli import options

if TYPE_CHECKING:
    from browseruse_bench.cli.judges import JudgeOptions


@click.command("serve-reward")
@click.option("--benchmark", "--data", required=True, help="Whose tasks are graded.")
@click.option("--split", help="Split of the benchmark; its default_split if not given.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen at.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    show_default=True,
    help="Port to listen at; 0: any that is free.",
)
@click.option(
    "--token-file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="The token that opens it; written, for this user alone, if the file is not there. "
    "Without it a new token is printed.",
)
@click.option(
    "--state",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("experiments") / "reward",
    show_default=True,
    help="Folder that keeps traces, orders and results; the next start goes on with it.",
)
@click.option(
    "--runs",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Experiments folder: only traces of its runs are graded as recorded by our harness.",
)
@click.option(
    "--concurrency",
    type=options.positive,
    default=2,
    show_default=True,
    help="How many are graded at a time.",
)
@click.option(
    "--queue",
    "max_queue",
    type=options.positive,
    default=64,
    show_default=True,
    help="How many may wait; the next one is answered 429 with Retry-After.",
)
@click.option(
    "--max-fact-age-days",
    type=options.positive,
    help="A rubric with a fact that was checked longer ago is stale and gives no reward.",
)
@click.option(
    "--timeout",
    "timeout_s",
    type=options.seconds,
    default=120.0,
    show_default=True,
    help="The longest that a benchmark's own evaluator may take, in seconds.",
)
@options.judges
@options.experiments
@click.option("--json", "as_json", is_flag=True, help="Tell of it in lines of JSON.")
def command(
    benchmark: str,
    split: str | None,
    host: str,
    port: int,
    token_file: Path | None,
    state: Path,
    runs: Path | None,
    concurrency: int,
    max_queue: int,
    max_fact_age_days: int | None,
    timeout_s: float,
    experiments: Path,
    as_json: bool,
    judging: JudgeOptions,
) -> None:
    """Grade traces over HTTP: a trace in, findings and a reward out.

    It prints its address and goes on until Ctrl-C. What was accepted is graded once, also over a
    crash. A stale rubric answers `stale`, a failed grading an error; neither has a reward.
    """
    from browseruse_bench.benchmarks.load import load_benchmark
    from browseruse_bench.cli.loop import leave, run_loop
    from browseruse_bench.cli.rewarding import At, serve
    from browseruse_bench.errors import ConfigError
    from browseruse_bench.export.reward.open import Wanted
    from browseruse_bench.export.reward.server import check_libraries

    check_libraries()
    if judging.batch is not None:
        raise ConfigError("--batch collects calls for later; a reward is wanted now")
    loaded = load_benchmark(benchmark, split)
    asking = judging.asking(
        scope=f"reward {loaded.name}",
        experiments=experiments,
        concurrency=concurrency,
        timeout_s=timeout_s,
    )
    wanted = Wanted(
        folder=state,
        runs=runs,
        asking=asking,
        max_queue=max_queue,
        max_fact_age_days=max_fact_age_days,
    )
    at = At(host=host, port=port, token_file=token_file, as_json=as_json)
    leave(run_loop(serve(loaded, wanted, at)))
