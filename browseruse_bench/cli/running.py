"""What `run` and `demo` share: signals, progress, and the words at the end."""

from __future__ import annotations

import asyncio
import json
import shlex
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click

from browseruse_bench.cli.judges import CALLS, JudgeOptions
from browseruse_bench.cli.judging import announce
from browseruse_bench.cli.loop import run_loop
from browseruse_bench.errors import BudgetError, IncompleteError
from browseruse_bench.eval.evaluate import Asking, Judged, evaluation
from browseruse_bench.records.run import Accounting
from browseruse_bench.records.trace import OutcomeStatus
from browseruse_bench.report.render import clean
from browseruse_bench.report.summary import report_run
from browseruse_bench.runs.execute import Executed, Progress, execute
from browseruse_bench.runs.plan import Plan, RunRequest, plan

GRACE_S = 10.0
"""How long running attempts may go on after a first Ctrl-C."""

INTERRUPTED = 130


def run_and_print(
    request: RunRequest,
    *,
    judging: JudgeOptions | None = None,
    dry_run: bool = False,
    as_json: bool = False,
) -> int:
    """Plan and carry out a run, tell of it on stderr, and print its result on stdout.

    Args:
        request: what is to be run.
        judging: the judge that was named: it judges attempts while others still go on.
        dry_run: say what would be run, and do nothing.
        as_json: print the result as JSON.

    Returns:
        The exit status: 0; 4 if attempts ended as infrastructure failures; 5 if the budget was
        reached before all was made; 130 if the command was stopped. Tasks left out for want of a login are said and counted, but asked for.
    """
    planned = plan(request)
    _announce(planned)
    if dry_run:
        click.echo(json.dumps(_plan_json(planned), indent=2) if as_json else _plan_text(planned))
        return 0
    asking = None
    if judging is not None and judging.named:
        # A judge that cannot be asked is known before the first attempt is paid for.
        asking = judging.asking(scope=planned.run.run_id, experiments=request.experiments)
    teller = _Teller(len(planned.owed))
    executed, judged = run_loop(_made_and_judged(planned, teller, asking))
    teller.close()
    _tell_end(executed, judged, request.experiments / CALLS)
    accounting = _accounting(planned, executed)
    if as_json:
        click.echo(json.dumps(_result_json(planned, executed, accounting), indent=2))
    else:
        click.echo(_result_text(request, planned, accounting))
    return _status(executed, judged, accounting)


def _tell_end(executed: Executed, judged: Judged | None, calls: Path) -> None:
    for line in executed.reaped:
        click.echo(f"reaped: {line}", err=True)
    if executed.n_retries:
        click.echo(
            f"{executed.n_retries} tries were made again after infrastructure failures", err=True
        )
    if executed.over_budget:
        click.echo(
            f"{executed.over_budget}; {executed.n_stopped} attempts are not run: raise it, and "
            "the same command goes on",
            err=True,
        )
    if judged is not None:
        announce(judged, calls)


def _status(executed: Executed, judged: Judged | None, accounting: Accounting) -> int:
    if executed.over_budget or (judged is not None and judged.over_budget):
        return BudgetError.exit_status
    if executed.n_stopped:
        return INTERRUPTED
    if accounting.infrastructure or (judged is not None and accounting.ungraded):
        return IncompleteError.exit_status
    return 0


def _accounting(planned: Plan, executed: Executed) -> Accounting:
    """Where every attempt of the run is now; the run's summary is written with it."""
    if executed.n_stopped:
        why = "over_budget" if executed.over_budget else "stopped"
        settings = {**planned.run.settings, why: True}
        planned.folder.write_run(planned.run.model_copy(update={"settings": settings}))
    return report_run(planned.folder, planned.benchmark).figures.accounting


async def _made_and_judged(
    planned: Plan, teller: _Teller, asking: Asking | None
) -> tuple[Executed, Judged | None]:
    """Execute, and judge each attempt as soon as it has settled."""
    if asking is None:
        return await _until_stopped(planned, teller), None
    async with evaluation(planned.folder, planned.benchmark, asking) as judging:
        # What an earlier command settled and nobody judged is owed too.
        earlier = planned.folder.attempts().values()
        at_work = {asyncio.create_task(judging.settle(earlier))}

        def on_settled(progress: Progress) -> None:
            teller.tell(progress)
            at_work.add(asyncio.create_task(judging.settle([progress.entry])))

        try:
            executed = await _until_stopped(planned, teller, on_settled)
            if executed.n_stopped and not executed.over_budget:
                # A stopped command asks nothing further; `bubench eval` goes on.
                _cancel(at_work)
        except BaseException:  # whatever ends the run, Ctrl-C too, ends the judging beside it
            _cancel(at_work)
            raise
        finally:
            ended = await asyncio.gather(*at_work, return_exceptions=True)
        for end in ended:
            if isinstance(end, Exception):
                raise end
        return executed, judging.judged()


def _cancel(tasks: Iterable[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()


async def _until_stopped(
    planned: Plan, teller: _Teller, on_settled: Callable[[Progress], None] | None = None
) -> Executed:
    """Execute; a first signal stops starting, a second one or the grace's end stops all."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    work = asyncio.ensure_future(execute(planned, on_settled=on_settled or teller.tell, stop=stop))

    def on_signal(name: str) -> None:
        if stop.is_set():
            work.cancel()
            return
        stop.set()
        click.echo(
            f"{name}: nothing further starts; running attempts have {GRACE_S:g} s "
            "(once more ends them now)",
            err=True,
        )
        loop.call_later(GRACE_S, work.cancel)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, on_signal, signal.Signals(number).name)
    try:
        return await work
    except asyncio.CancelledError:
        if not stop.is_set():
            raise
        n_stopped = len(planned.owed) - teller.n_done
        return Executed(statuses=dict(teller.statuses), n_stopped=n_stopped, reaped=())


class _Teller:
    """Tells of progress on stderr: a bar on a terminal, plain lines elsewhere."""

    def __init__(self, n_owed: int) -> None:
        self.n_done = 0
        self.statuses: Counter[OutcomeStatus] = Counter()
        self._n_owed = n_owed
        self._start = time.monotonic()
        self._bar: Any = None
        if sys.stderr.isatty() and n_owed:
            self._bar = self._open_bar()

    def _open_bar(self) -> Any:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )
        from rich.progress import Progress as Bar

        bar = Bar(
            TextColumn("attempts"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            TextColumn("{task.description}"),
            console=Console(stderr=True),
        )
        bar.add_task("", total=self._n_owed)
        bar.start()
        return bar

    def tell(self, progress: Progress) -> None:
        """Tell of one settled attempt."""
        self.n_done = progress.n_done
        entry = progress.entry
        self.statuses[entry.status] += 1
        what = clean(f"{entry.task_id} #{entry.attempt} {entry.status}")
        rate = self.n_done / max(time.monotonic() - self._start, 1e-9)
        if self._bar is not None:
            from rich.markup import escape

            text = escape(f"{rate * 60:.1f}/min {what}")
            self._bar.update(self._bar.task_ids[0], completed=self.n_done, description=text)
            return
        left_s = (self._n_owed - self.n_done) / rate
        reason = clean(f" ({entry.reason})") if entry.reason else ""
        click.echo(
            f"[{self.n_done}/{self._n_owed}] {what}{reason}: {entry.n_steps} steps, "
            f"{entry.wall_s or 0:.1f} s; {rate * 60:.1f}/min, {left_s:.0f} s left",
            err=True,
        )

    def close(self) -> None:
        """Leave the terminal as it was."""
        if self._bar is not None:
            self._bar.stop()


def _announce(planned: Plan) -> None:
    run = planned.run
    for note in planned.notes:
        click.echo(f"note: {note}", err=True)
    click.echo(
        f"{run.identity.benchmark} [{run.identity.split}] from {run.benchmark_dir}: "
        f"{len(run.wanted)} attempts selected in all, {planned.n_settled} settled earlier, "
        f"{len(planned.owed)} to make, {planned.concurrency} at once",
        err=True,
    )
    if planned.no_login:
        click.echo(
            f"{len(planned.no_login)} not run: login ({_ids(planned)}); "
            "give --storage-state FILE to run them",
            err=True,
        )
    if run.stand_in_hosts:
        click.echo(
            f"stand-in for {', '.join(run.stand_in_hosts)}: never ranked with live runs", err=True
        )


def _ids(planned: Plan) -> str:
    names = [task_id for task_id, _ in planned.no_login]
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")


def _plan_json(planned: Plan) -> dict[str, Any]:
    return {
        "run_id": planned.run.run_id,
        "folder": str(planned.folder.path),
        "task_ids": list(planned.run.selections[-1].task_ids),
        "to_make": [[owed.task.task_id, owed.attempt] for owed in planned.owed],
        "settled": planned.n_settled,
        "not_run": {"login": len(planned.no_login)},
        "concurrency": planned.concurrency,
        "notes": list(planned.notes),
    }


def _plan_text(planned: Plan) -> str:
    lines = [f"{owed.task.task_id} #{owed.attempt}" for owed in planned.owed]
    return "\n".join([*lines, f"would be run as {planned.run.run_id} in {planned.folder.path}"])


def _result_json(planned: Plan, executed: Executed, accounting: Accounting) -> dict[str, Any]:
    return {
        "run_id": planned.run.run_id,
        "folder": str(planned.folder.path),
        "statuses": dict(executed.statuses),
        "retries": executed.n_retries,
        "accounting": accounting.as_json(),
        "notes": list(planned.notes),
    }


def _result_text(request: RunRequest, planned: Plan, accounting: Accounting) -> str:
    return "\n".join(
        (
            f"run {planned.run.run_id} in {planned.folder.path}",
            accounting.sentence,
            f"next: bubench {_next(request, planned, accounting)}",
        )
    )


def _next(request: RunRequest, planned: Plan, accounting: Accounting) -> str:
    """What to type: judge what has no verdict, else look at the verdicts."""
    place = None if request.experiments == Path("experiments") else request.experiments
    if not accounting.ungraded:
        words, options = ["report", planned.run.run_id], {"experiments": place}
    else:
        words = ["eval"]
        options = {
            "agent": request.agent,
            "benchmark": request.benchmark,
            "split": request.split,
            # An agent that asks no model has none in its run, whatever was given.
            "model": request.model if planned.run.identity.agent.model else None,
            "run-id": planned.run.run_id,
            "experiments": place,
        }
    given = (f"--{name} {shlex.quote(str(value))}" for name, value in options.items() if value)
    return " ".join([*words, *given])
