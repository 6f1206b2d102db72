"""`bubench redteam`: attack copies of frozen traces, and say what the attacks gain."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from browseruse_bench.cli import options

if TYPE_CHECKING:
    from browseruse_bench.cli.judges import JudgeOptions
    from browseruse_bench.eval.redteam.attack import Attack
    from browseruse_bench.eval.redteam.campaign import Victim
    from browseruse_bench.measure.redteam import Trial
    from browseruse_bench.report.redteam import RedTeam
    from browseruse_bench.store.run_folder import RunFolder

TELL_S = 5.0
"""The least time between two words about progress."""


@click.command("redteam")
@click.argument("run", required=False, metavar="[RUN-ID or FOLDER]")
@options.judges
@click.option(
    "--attacks",
    multiple=True,
    callback=options.split_commas,
    metavar="NAMES",
    help="Attacks or families of them, with commas; `--list` names them.  [default: all]",
)
@click.option("--list", "as_list", is_flag=True, help="List the attacks and do nothing else.")
@click.option(
    "--task-ids",
    multiple=True,
    callback=options.split_commas,
    help="Only these tasks, with commas.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of what is left to chance.")
@click.option(
    "--into",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Keep the trials there, so that the same command goes on where it stopped. Without it "
    "a temporary folder is used.",
)
@click.option("--keep-copies", is_flag=True, help="Leave the attacked traces in --into.")
@click.option("--concurrency", type=options.positive, default=2, show_default=True, help="At once.")
@options.experiments
@options.as_json
@options.as_markdown
def command(
    run: str | None,
    attacks: tuple[str, ...],
    as_list: bool,
    task_ids: tuple[str, ...],
    seed: int,
    into: Path | None,
    keep_copies: bool,
    concurrency: int,
    experiments: Path,
    as_json: bool,
    as_markdown: bool,
    judging: JudgeOptions,
) -> None:
    """Attack copies of a run's frozen traces, and say how often a cheat gains points, and an
    honest trace loses some.

    The run stays as it is. What has code checks is judged by code; a judge that is named reads
    the rubrics as well, as it would for `bubench eval`. Exit status 4: something has no verdict.
    """
    import json
    import tempfile

    from browseruse_bench.cli.judges import CALLS, spent_words
    from browseruse_bench.errors import BudgetError, ConfigError
    from browseruse_bench.eval.redteam.campaign import campaign
    from browseruse_bench.eval.redteam.catalogue import chosen
    from browseruse_bench.report.redteam import markdown, redteam, tables
    from browseruse_bench.report.render import show

    wanted = chosen(attacks)
    if as_list:
        _list(wanted)
        return
    if keep_copies and into is None:
        raise ConfigError("--keep-copies leaves copies in a folder: name one with --into")
    victims, found, success_at, skipped = _victims(run, experiments, judging, task_ids)
    with tempfile.TemporaryDirectory(prefix="bubench-redteam-") as scratch:
        place = Path(scratch) if into is None else _outside(into, found.path)
        done = asyncio.run(
            campaign(
                victims,
                wanted,
                into=place,
                success_at=success_at,
                seed=seed,
                keep=keep_copies,
                concurrency=concurrency,
                on_trial=_Teller().tell,
            )
        )
    for words in spent_words(experiments / CALLS) if judging.named else ():
        click.echo(words, err=True)
    result = redteam(found.read_run(), done, seed=seed)
    result = result.model_copy(update={"skipped": {**skipped, **result.skipped}})
    if as_json:
        click.echo(json.dumps(result.model_dump(mode="json"), indent=2))
    elif as_markdown:
        click.echo(markdown(result), nl=False)
    else:
        show(tables(result))
    if done.over_budget:
        raise BudgetError(done.over_budget)
    _refuse_incomplete(result)


def _victims(
    run: str | None, experiments: Path, judging: JudgeOptions, task_ids: tuple[str, ...]
) -> tuple[list[Victim], RunFolder, float, dict[str, str]]:
    """Who is attacked, in which run, from how many points an attempt succeeds, and who is not.

    Raises:
        ConfigError: the run, its benchmark, a task or a model is not there, or no trace can be
            attacked.
    """
    from browseruse_bench.cli.judging import which
    from browseruse_bench.errors import ConfigError
    from browseruse_bench.eval.redteam.campaign import victims
    from browseruse_bench.report.find import benchmark_of, open_run

    folder, found = open_run(experiments, run)
    benchmark, note = benchmark_of(found)
    if benchmark is None:
        raise ConfigError(f"{folder.path}: {note}")
    unknown = set(task_ids) - {task_id for task_id, _ in found.wanted}
    if unknown:
        raise ConfigError(f"{folder.path}: no task {', '.join(sorted(unknown))} in this run")
    click.echo(which(folder, found), err=True)
    opened = judging.opened(scope=f"red team on {found.run_id}", experiments=experiments)
    chosen, skipped = victims(
        folder,
        benchmark,
        judge=opened[0] if opened else None,
        by_code=not judging.judge_all,
        task_ids=task_ids or None,
    )
    if not chosen:
        why = "; ".join(dict.fromkeys(skipped.values())) or "no attempt has settled"
        raise ConfigError(f"{folder.path}: nothing to attack: {why}")
    return chosen, folder, benchmark.info.success_at, skipped


def _outside(into: Path, run: Path) -> Path:
    """The folder for copies, which is not within the run.

    Raises:
        ConfigError: it is.
    """
    from browseruse_bench.errors import ConfigError

    if into.resolve().is_relative_to(run.resolve()):
        raise ConfigError(f"--into {into}: is within the run, which stays as it is")
    return into


class _Teller:
    """Tells on stderr of progress, at times."""

    def __init__(self) -> None:
        self._n = 0
        self._n_failed = 0
        self._told = time.monotonic()

    def tell(self, trial: Trial) -> None:
        """Tell of one new trial."""
        from browseruse_bench.report.render import clean

        self._n += 1
        self._n_failed += trial.is_counted and trial.failed
        if time.monotonic() - self._told >= TELL_S:
            self._told = time.monotonic()
            words = f"{self._n} trials, {self._n_failed} came through; the last one: "
            click.echo(clean(f"{words}{trial.attack} on {trial.task_id}"), err=True)


def _list(attacks: tuple[Attack, ...]) -> None:
    from browseruse_bench.report.redteam import TELLABLE
    from browseruse_bench.report.render import Table, show

    rows = tuple((a.name, a.family, TELLABLE[a.tellable], a.says) for a in attacks)
    show([Table(title="", headers=("attack", "family", "told by", "what"), rows=rows)])


def _refuse_incomplete(result: RedTeam) -> None:
    """Every trial has its verdicts.

    Raises:
        IncompleteError: some have none.
    """
    from browseruse_bench.errors import IncompleteError

    if result.is_complete:
        return
    missing = len(result.not_graded) + result.n_pending
    raise IncompleteError(
        f"{missing} of {result.n_trials + result.n_pending} trials have no verdict; "
        "the same command with --into FOLDER tries these again"
    )
