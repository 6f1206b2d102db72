"""`bubench grade`: judge one frozen trace by a rubric, and show where each claim stands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from browseruse_bench.cli import options

if TYPE_CHECKING:
    from browseruse_bench.cli.judges import JudgeOptions
    from browseruse_bench.eval.judges import Case
    from browseruse_bench.records.judgement import Judgement
    from browseruse_bench.records.rubric import Rubric


@click.command("grade")
@click.argument("trace", type=click.Path(path_type=Path), metavar="TRACE")
@click.option(
    "--rubric",
    "rubric_file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Rubric as JSON; otherwise the benchmark's for this task.",
)
@click.option(
    "--benchmark", "--data", help="Where the task is from; otherwise the benchmark of the run."
)
@click.option(
    "--samples",
    type=options.positive,
    default=1,
    show_default=True,
    help="How often the same trace is graded; no grading answers another.",
)
@options.judges
@options.experiments
@options.as_json
def command(
    trace: Path,
    rubric_file: Path | None,
    benchmark: str | None,
    samples: int,
    experiments: Path,
    as_json: bool,
    judging: JudgeOptions,
) -> None:
    """Judge the frozen trace in the folder TRACE, and show every item with its citations.

    Without --judge code checks the items, where all of them have a check. Nothing is written
    but the judge's calls: `bubench eval` is what keeps verdicts.
    """
    import asyncio

    from browseruse_bench.errors import IncompleteError
    from browseruse_bench.eval.evaluate import utc_now
    from browseruse_bench.eval.grade import grade
    from browseruse_bench.eval.judges import CodeJudge, NoModelJudge
    from browseruse_bench.report.findings import judgement_table, samples_table
    from browseruse_bench.report.render import show

    case, rubric, success_at = _case(trace, rubric_file, benchmark)
    opened = judging.opened(scope=f"grade {case.trace.key[:12]}", experiments=experiments)
    judge = opened[0] if opened else CodeJudge() if rubric.is_code else NoModelJudge()

    async def graded() -> list[Judgement]:
        found: list[Judgement] = []
        async for judgement in grade(case, judge, samples=samples, now=utc_now):
            found.append(judgement)
            click.echo(f"[{len(found)}/{samples}] {judgement.status}", err=True)
            if not as_json:
                show([judgement_table(judgement, rubric)])
        return found

    found = asyncio.run(graded())
    if as_json:
        click.echo(json.dumps([_as_json(each, rubric, success_at) for each in found], indent=2))
    elif samples > 1:
        show([samples_table(found, rubric)])
    ungraded = [judgement for judgement in found if judgement.status == "ungraded"]
    if ungraded:
        raise IncompleteError(
            f"without a grade: {len(ungraded)} of {samples}: {ungraded[0].reason}: "
            f"{ungraded[0].message}"
        )


def _as_json(judgement: Judgement, rubric: Rubric, success_at: float) -> dict[str, Any]:
    from browseruse_bench.measure.scoring import score

    found = None
    if judgement.status == "graded":
        found = score(judgement, rubric, success_at=success_at).as_json()
    return {"judgement": judgement.as_json(), "score": found}


def _case(path: Path, rubric_file: Path | None, name: str | None) -> tuple[Case, Rubric, float]:
    """The attempt with its task, its rubric, and the points from which it is a success.

    Raises:
        ConfigError: one of them cannot be found, or they do not belong together.
        DataError: one of them is damaged.
    """
    from browseruse_bench.benchmarks.load import load_benchmark
    from browseruse_bench.benchmarks.references import read_rubric
    from browseruse_bench.errors import ConfigError
    from browseruse_bench.eval.grade import Place, case_of
    from browseruse_bench.report.find import benchmark_of

    place = Place.at(path)
    task_id = place.trace.trace.task_id
    if name is not None:
        found, why = load_benchmark(name, None), ""
    elif place.run is not None:
        found, why = benchmark_of(place.run.read_run())
    else:
        found, why = None, "the trace lies in no run"
    if found is None:
        raise ConfigError(
            f"{path}: the text of task '{task_id}' is needed: {why}; name --benchmark"
        )
    rubric = read_rubric(rubric_file) if rubric_file is not None else found.rubric(task_id)
    if rubric is None:
        raise ConfigError(f"{found.name}: task '{task_id}' has no rubric; give --rubric FILE")
    return case_of(place, found.task(task_id), rubric), rubric, found.info.success_at
