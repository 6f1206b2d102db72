"""Run stages of the factory: signals, progress on stderr, reports."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import Sequence
from typing import NamedTuple

import click

from browseruse_bench.cli.loop import run_loop
from browseruse_bench.factory.funnel import stage_report
from browseruse_bench.factory.pipeline import Pipeline
from browseruse_bench.factory.runner import Progress, Settled
from browseruse_bench.factory.stage import Step

TELL_S = 2.0
"""The least time between two words about progress."""


class Ran(NamedTuple):
    """What a command did."""

    done: list[tuple[Step, Settled]]
    """What each step that was run came to; fewer than were asked for where it was stopped."""
    stopped: bool
    """Whether somebody stopped it before all was done."""


def run_stages(pipeline: Pipeline, steps: Sequence[Step], *, restart: bool) -> Ran:
    """Run the steps one after the other; a first signal stops starting, a second one ends."""
    return run_loop(_run(pipeline, steps, restart=restart))


async def _run(pipeline: Pipeline, steps: Sequence[Step], *, restart: bool) -> Ran:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    work = asyncio.ensure_future(_each(pipeline, steps, stop, restart=restart))

    def on_signal(name: str) -> None:
        if stop.is_set():
            work.cancel()
            return
        stop.set()
        click.echo(f"{name}: nothing further starts (once more ends now)", err=True)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, on_signal, signal.Signals(number).name)
    try:
        done = await work
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    return Ran(done, stop.is_set())


async def _each(
    pipeline: Pipeline, steps: Sequence[Step], stop: asyncio.Event, *, restart: bool
) -> list[tuple[Step, Settled]]:
    done: list[tuple[Step, Settled]] = []
    for step in steps:
        if stop.is_set():
            break
        click.echo(f"== {step.name}", err=True)
        teller = _Teller()
        settled = await pipeline.run(
            step,
            on_settled=teller.tell,
            on_progress=lambda text: click.echo(text, err=True),
            stop=stop,
            restart=restart,
        )
        done.append((step, settled))
        click.echo(f"{settled.flow.sentence}; {settled.n_now} now", err=True)
        _tell_changes(step, settled)
        pipeline.folder(step).write_report(stage_report(pipeline, step))
        if settled.over_budget:
            break
    return done


def _tell_changes(step: Step, settled: Settled) -> None:
    if settled.n_merged:
        click.echo(
            f"{step.name}: {settled.n_merged} units came in beside another of the same key, and "
            "are one with it (counts added; see dropped.jsonl)",
            err=True,
        )
    if settled.n_withdrawn:
        click.echo(
            f"{step.name}: {settled.n_withdrawn} units that settled here do not come in any more, "
            "and are not kept (the journal has them; nothing is paid if they come back)",
            err=True,
        )


class _Teller:
    """Tells on stderr of each failure, and at times of the progress."""

    def __init__(self) -> None:
        self._start = self._told = time.monotonic()

    def tell(self, progress: Progress) -> None:
        """Tell of one settled unit."""
        entry = progress.entry
        if entry.status == "failed":
            click.echo(f"{entry.unit[:12]} failed: {entry.error}", err=True)
        now = time.monotonic()
        if now - self._told < TELL_S and progress.n_now < progress.n_owed:
            return
        self._told = now
        rate = progress.n_now / max(now - self._start, 1e-9)
        left_s = (progress.n_owed - progress.n_now) / rate
        text = f"[{progress.n_now}/{progress.n_owed}] {rate:.1f}/s, {left_s:.0f} s left"
        end = "\n" if progress.n_now == progress.n_owed or not sys.stderr.isatty() else "\r"
        click.echo(text + end, err=True, nl=False)
