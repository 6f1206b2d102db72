"""`bubench import`: results of other programs as runs of ours."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from browseruse_bench.cli import options

if TYPE_CHECKING:
    from browseruse_bench.benchmarks.load import Benchmark
    from browseruse_bench.export.reported import Imported, Importer

SHOWN = 10
"""So many lines that are left out are named."""


@click.group("import")
def command() -> None:
    """Bring in what other programs recorded."""


@command.command("results")
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--format", "format_", required=True, help="Format of the file: abp.")
@click.option(
    "--benchmark",
    metavar="NAME or FOLDER",
    help="Whose tasks these are.  [default: the one that the format is of]",
)
@click.option("--split", help="Split of the benchmark; its default_split if not given.")
@click.option(
    "--write-benchmark",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Write a benchmark folder of the tasks in the file, and take that one.",
)
@click.option("--model", help="Model of the agent, where the file does not tell it.")
@options.experiments
@options.as_json
def results(
    file: Path,
    format_: str,
    benchmark: str | None,
    split: str | None,
    write_benchmark: Path | None,
    model: str | None,
    experiments: Path,
    as_json: bool,
) -> None:
    """Import the results in FILE as a run whose evidence is the agent's own word.

    It can be judged, reported, compared and attacked like any run, is marked `agent_reported`
    everywhere, and is never ranked with runs that a harness of ours recorded. The same file
    gives the same run: what is there already is kept.
    """
    import json

    from browseruse_bench.errors import ConfigError
    from browseruse_bench.eval.evaluate import utc_now
    from browseruse_bench.export import IMPORTERS
    from browseruse_bench.export.reported import Source, import_results

    if benchmark is not None and write_benchmark is not None:
        raise ConfigError("--benchmark and --write-benchmark exclude each other")
    importer: Importer = IMPORTERS.get(format_)()
    at_hand = _benchmark(importer, file, benchmark, split, write_benchmark)
    source = Source.of(file, format_, importer, model)
    done = import_results(source, at_hand, experiments=experiments, now=utc_now)
    if as_json:
        click.echo(json.dumps(_as_json(done), indent=2))
    else:
        _tell(done, experiments)


def _benchmark(
    importer: Importer, file: Path, name: str | None, split: str | None, new: Path | None
) -> Benchmark:
    """The benchmark that the results are of.

    Raises:
        ConfigError: it is not at hand.
        DataError: its data is not pulled or is invalid.
    """
    from browseruse_bench.benchmarks.load import load_benchmark
    from browseruse_bench.errors import BenchError
    from browseruse_bench.export.reported import write_benchmark

    if new is not None:
        write_benchmark(importer.read(file), new)
        return load_benchmark(str(new), split)
    try:
        return load_benchmark(name or importer.benchmark, split)
    except BenchError as error:
        hint = "name another with --benchmark, or take the file's own tasks by --write-benchmark"
        raise type(error)(f"{error}; {hint}") from error


def _as_json(done: Imported) -> dict[str, object]:
    return {
        "run_id": done.run.run_id,
        "folder": str(done.folder.path),
        "evidence_policy": done.run.evidence_policy,
        "new": done.n_new,
        "kept": done.n_kept,
        "skipped": dict(done.skipped),
    }


def _tell(done: Imported, experiments: Path) -> None:
    from browseruse_bench.report.render import clean

    identity = done.run.identity
    for n, (where, why) in enumerate(done.skipped.items()):
        if n == SHOWN:
            click.echo(f"... and {len(done.skipped) - SHOWN} more (--json names all)", err=True)
            break
        click.echo(clean(f"left out: {where}: {why}"), err=True)
    kept = f", {done.n_kept} there already" if done.n_kept else ""
    click.echo(
        clean(
            f"{done.n_new} attempts imported{kept}, {len(done.skipped)} left out: run "
            f"{done.run.run_id} of {identity.agent.name} on {identity.benchmark}, evidence "
            f"agent_reported, in {done.folder.path}"
        )
    )
    click.echo(
        f"next: bubench eval --agent {identity.agent.name} --benchmark {done.run.benchmark_dir} "
        f"--run-id {done.run.run_id}"
        + (f" --experiments {experiments}" if str(experiments) != "experiments" else "")
    )
