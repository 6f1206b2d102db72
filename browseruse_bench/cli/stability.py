"""`bubench stability`: regrade frozen traces, and say how often the verdict changes."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from browseruse_bench.cli import options

if TYPE_CHECKING:
    from browseruse_bench.cli.judges import JudgeOptions
    from browseruse_bench.eval.judges import Judge
    from browseruse_bench.eval.regrading import Regraded
    from browseruse_bench.report.stability import Stability


@click.command("stability")
@click.argument("run", required=False, metavar="[RUN-ID or FOLDER]")
@options.judges
@click.option("--second-judge", metavar="MODEL", help="Another model that grades the same traces.")
@click.option(
    "--samples",
    type=click.IntRange(min=2),
    default=5,
    show_default=True,
    help="Regrades of each trace by each judge.",
)
@click.option(
    "--traces",
    type=options.positive,
    default=120,
    show_default=True,
    help="Traces that are regraded, spread over the tasks; all where there are fewer.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of the choice of traces.")
@click.option(
    "--threshold",
    type=options.percent,
    default=5.0,
    show_default=True,
    metavar="PERCENT",
    help="Items that flip in more of the pairs are to be reworded.",
)
@click.option(
    "--limit",
    type=options.percent,
    default=1.0,
    show_default=True,
    metavar="PERCENT",
    help="What the flip rate of all items is claimed to be below.",
)
@click.option(
    "--retry-ungraded", is_flag=True, help="Ask again for each regrade that has no grade."
)
@click.option("--concurrency", type=options.positive, default=2, show_default=True, help="At once.")
@options.experiments
@options.as_json
@options.as_markdown
def command(
    run: str | None,
    second_judge: str | None,
    samples: int,
    traces: int,
    seed: int,
    threshold: float,
    limit: float,
    retry_ungraded: bool,
    concurrency: int,
    experiments: Path,
    as_json: bool,
    as_markdown: bool,
    judging: JudgeOptions,
) -> None:
    """Grade frozen traces of a run again and again, and say how often a verdict changes.

    The run's own verdicts stay as they are: regrades go to its stability.jsonl, and what is
    there is not asked again. Without --judge nothing is asked, and what is there is reported.
    """
    import json

    from browseruse_bench.cli.judging import which
    from browseruse_bench.errors import ConfigError
    from browseruse_bench.eval.regrading import read_judgements
    from browseruse_bench.eval.stability import choose, journal_of, judges_of
    from browseruse_bench.report.find import benchmark_of, open_run
    from browseruse_bench.report.render import show
    from browseruse_bench.report.stability import stability
    from browseruse_bench.report.stability_text import markdown, tables

    folder, found = open_run(experiments, run)
    benchmark, note = benchmark_of(found)
    if benchmark is None:
        raise ConfigError(f"{folder.path}: {note}")
    click.echo(which(folder, found), err=True)
    chosen = choose(folder, benchmark, traces=traces, seed=seed)
    judges = _judges(judging, second_judge, found.run_id, experiments)
    done = None
    if judges:
        from browseruse_bench.cli.regrading import regrade

        done = regrade(
            folder,
            chosen.specimens,
            judges,
            samples=samples,
            parameters={judge.judge_key: _parameters(judge) for judge in judges},
            retry_ungraded=retry_ungraded,
            concurrency=concurrency,
        )
    result = stability(
        found,
        chosen.specimens,
        read_judgements(journal_of(folder)),
        judge_keys=[judge.judge_key for judge in judges],
        by_code=not judging.judge_all,
        parameters=judges_of(folder),
        success_at=benchmark.info.success_at,
        threshold=threshold / 100,
        limit=limit / 100,
        n_fit=chosen.n_fit,
        seed=seed,
        skipped=chosen.reasons,
    )
    if as_json:
        click.echo(json.dumps(result.model_dump(mode="json", by_alias=True), indent=2))
    elif as_markdown:
        click.echo(markdown(result), nl=False)
    else:
        show(tables(result))
    _refuse_incomplete(result, done)


def _judges(
    judging: JudgeOptions, second: str | None, run_id: str, experiments: Path
) -> list[Judge]:
    """One or two judges; none where none is named.

    Raises:
        ConfigError: a second one without a first, or a model that cannot be opened.
    """
    from browseruse_bench.errors import ConfigError

    scope = f"stability of {run_id}"
    opened = judging.opened(scope=scope, experiments=experiments)
    if opened is None:
        if second is not None:
            raise ConfigError("--second-judge stands beside --judge: name that one too")
        return []
    judges = [opened[0]]
    if second is not None:
        other = dataclasses.replace(judging, judge=second, panel=())
        also = other.opened(scope=scope, experiments=experiments)
        judges += [also[0]] if also else []
    return judges


def _parameters(judge: Judge) -> dict[str, Any]:
    """The models of a judge and how they are asked."""
    from browseruse_bench.eval.findings.judge import FindingsJudge
    from browseruse_bench.eval.findings.panel import PanelJudge

    said: dict[str, Any] = {"protocol": judge.protocol}
    if isinstance(judge, PanelJudge):
        return {**said, "panel": [_parameters(each) for each in judge.judges]}
    if isinstance(judge, FindingsJudge):
        return {**said, "model": judge.model.id.as_json(), "params": judge.params.as_json()}
    return said


def _refuse_incomplete(found: Stability, done: Regraded | None) -> None:
    """Everything that was to be graded has a grade.

    Raises:
        BudgetError: the budget was reached.
        IncompleteError: something has none; says what to type.
    """
    from browseruse_bench.errors import BudgetError, IncompleteError

    if done is not None and done.over_budget:
        raise BudgetError(
            f"{done.n_left} regrades are owed: {done.over_budget}; raise it, and the same command "
            "goes on"
        )
    if done is not None and done.n_pending:
        raise IncompleteError(
            f"{done.n_pending} regrades wait for a batch: submit or answer it (`bubench models "
            "batch`), then the same command goes on"
        )
    short = sum(row.n_short for row in found.judges)
    if short:
        raise IncompleteError(
            f"{short} traces have fewer than two grades: nothing is known of them; "
            "`--retry-ungraded` asks again"
        )
