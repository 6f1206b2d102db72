"""`bubench facts`: check the facts of rubrics again, and tell which have rotted."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from browseruse_bench.cli import options

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from browseruse_bench.factory.facts.sources import Source
    from browseruse_bench.records.fact_check import FactCheck

_targets = click.argument("rubrics", metavar="RUBRICS...", nargs=-1, required=True)
_tasks = click.option(
    "--task-ids",
    multiple=True,
    callback=options.split_commas,
    help="Only these tasks, with commas.",
)
_folder = click.option(
    "--facts",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of checks and archives; default: facts/ beside the rubrics.",
)


@click.group("facts")
def command() -> None:
    """Check the facts of rubrics again, and tell which have rotted.

    RUBRICS are benchmarks by name or folder, files of rubrics, and FOLDER@REVISION.
    """


@command.command("verify")
@_targets
@click.option("--offline", "how", flag_value="offline", help="In the archives that they name.")
@click.option("--live", "how", flag_value="live", help="On the site as it is now; appends a check.")
@_tasks
@click.option(
    "--fact", "facts", multiple=True, callback=options.split_commas, help="Only these facts."
)
@_folder
@click.option(
    "--older-than",
    "older_than_days",
    type=click.FloatRange(min=0),
    default=0,
    metavar="DAYS",
    help="Leave facts alone that were settled less long ago.",
)
@click.option(
    "--storage-state",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="A login for pages that want one, in Playwright's format.",
)
@click.option("--pace", "pace_s", type=click.FloatRange(min=0), default=1.0, show_default=True,
              metavar="SECONDS", help="Between two pages of one host.")  # fmt: skip
@click.option("--browser-path", type=click.Path(path_type=Path), help="Chromium to be started.")
@click.option(
    "--guard",
    type=click.Choice(["auto", "layered", "confined", "flags", "observed"]),
    default="auto",
    show_default=True,
    help="What keeps the browser from addresses inside.",
)
@options.as_json
def verify(
    rubrics: tuple[str, ...],
    how: Literal["offline", "live"] | None,
    task_ids: tuple[str, ...],
    facts: tuple[str, ...],
    folder: Path | None,
    as_json: bool,
    **live: Any,
) -> None:
    """Re-extract each quote from its archive, or look at the site again.

    Exit status 3 if a fact has rotted or its archive does not hold, 4 if one could not be settled.
    """
    from browseruse_bench.factory.facts.sources import sources

    if how is None:
        raise click.UsageError("say where to look: --offline or --live")
    found = sources(rubrics, task_ids=task_ids, fact_ids=facts, facts=folder)
    if how == "offline":
        status = _offline(found, as_json=as_json)
    else:
        status = _live(found, as_json=as_json, **live)
    click.get_current_context().exit(status)


def _offline(found: Sequence[Source], *, as_json: bool) -> int:
    from collections import Counter

    from browseruse_bench.benchmarks.show import as_json_text
    from browseruse_bench.errors import DataError, IncompleteError
    from browseruse_bench.factory.facts.offline import GOOD, extract

    every = [one for source in found for one in extract(source)]
    counted = Counter(one.found for one in every)
    if as_json:
        told = [one.as_json() for one in every]
        click.echo(as_json_text({"mode": "offline", "counts": dict(counted), "facts": told}))
    else:
        for one in every:
            when = f" checked {one.checked}" if one.checked else ""
            click.echo(f"{one.found:14}  {one.task_id} {one.fact}{when}: {one.reason}")
        click.echo(_counted(counted))
    if counted.keys() & {"not in archive", "damaged"}:
        return DataError.exit_status
    return IncompleteError.exit_status if counted.keys() - GOOD else 0


def _live(
    found: Sequence[Source],
    *,
    as_json: bool,
    older_than_days: float,
    storage_state: Path | None,
    pace_s: float,
    browser_path: Path | None,
    guard: Any,
) -> int:
    from collections import Counter

    from browseruse_bench.benchmarks.show import as_json_text
    from browseruse_bench.browsers.local import LocalChromium
    from browseruse_bench.browsers.options import BrowserOptions
    from browseruse_bench.cli.loop import run_loop
    from browseruse_bench.errors import DataError, IncompleteError
    from browseruse_bench.factory.facts.live import Looking, verify
    from browseruse_bench.records.fact_check import ROTTED

    looking = Looking(
        backend=LocalChromium(BrowserOptions(path=browser_path, guard=guard)),
        pace_s=pace_s,
        storage_state=storage_state,
        older_than_days=older_than_days,
    )
    checks = run_loop(verify(found, looking, _told(as_json)))
    counted = Counter(check.outcome for check in checks)
    n_facts = sum(len(source.facts) for source in found)
    if as_json:
        every = [check.as_json() for check in checks]
        value = {"mode": "live", "counts": dict(counted), "left_alone": n_facts - len(checks)}
        click.echo(as_json_text({**value, "checks": every}))
    else:
        alone = n_facts - len(checks)
        click.echo(_counted(counted) + (f"; {alone} were settled lately" if alone else ""))
    if counted.keys() & ROTTED:
        return DataError.exit_status
    return IncompleteError.exit_status if counted.keys() - {"confirmed"} else 0


def _told(as_json: bool) -> Callable[[FactCheck], None]:
    def tell(check: FactCheck) -> None:
        line = f"{check.outcome:11}  {check.task_id} {check.fact}"
        if check.reason:
            line += f": {check.reason}"
        if check.outcome == "changed":
            line += f"; now {check.found!r}"
        click.echo(line, err=as_json)

    return tell


def _counted(counted: Any) -> str:
    parts = [f"{n} {what}" for what, n in sorted(counted.items())]
    return f"{sum(counted.values())} looked at: {', '.join(parts) or 'nothing'}"


@command.command("report")
@_targets
@_tasks
@_folder
@options.as_json
def report(
    rubrics: tuple[str, ...], task_ids: tuple[str, ...], folder: Path | None, as_json: bool
) -> None:
    """List which rubrics have rotted, since when, with both quotes; nothing is looked at."""
    from browseruse_bench.benchmarks.show import as_json_text
    from browseruse_bench.factory.facts.report import report as states_of
    from browseruse_bench.factory.facts.report import report_json, report_lines
    from browseruse_bench.factory.facts.sources import sources

    states = states_of(sources(rubrics, task_ids=task_ids, facts=folder))
    if as_json:
        click.echo(as_json_text(report_json(states)))
        return
    for line in report_lines(states):
        click.echo(line)
