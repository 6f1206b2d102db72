"""Regrade the traces of a run, and tell of it while it goes on."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

import click

from browseruse_bench.cli.judging import TELL_S
from browseruse_bench.eval.judges import Judge
from browseruse_bench.eval.regrading import Regraded, Specimen
from browseruse_bench.eval.stability import Parameters, regrade_run
from browseruse_bench.records.judgement import Judgement
from browseruse_bench.report.render import clean, money
from browseruse_bench.store.run_folder import RunFolder


def regrade(
    folder: RunFolder,
    specimens: Sequence[Specimen],
    judges: Sequence[Judge],
    *,
    samples: int,
    parameters: Parameters,
    retry_ungraded: bool,
    concurrency: int,
) -> Regraded:
    """What `eval.stability.regrade_run` did; raises as it does."""
    teller = _Teller(len(specimens) * len(judges) * samples)
    done = asyncio.run(
        regrade_run(
            folder,
            specimens,
            judges,
            samples=samples,
            parameters=parameters,
            retry_ungraded=retry_ungraded,
            concurrency=concurrency,
            on_judged=teller.tell,
        )
    )
    click.echo(f"{done.n_new} regraded{teller.cost}, {done.n_kept} regraded earlier", err=True)
    return done


class _Teller:
    """Tells on stderr of each regrade without a grade, and at times of progress and cost."""

    def __init__(self, n: int) -> None:
        self._n = n
        self._done = 0
        self._usd = 0.0
        self._unknown = 0
        self._told = time.monotonic()

    @property
    def cost(self) -> str:
        """As in ", $0.42"; what is unknown is said. Empty where nothing was asked."""
        if not self._done:
            return ""
        total = None if self._unknown else self._usd
        return f", {money(total, self._usd, self._unknown)}"

    def tell(self, judgement: Judgement) -> None:
        """Tell of one new regrade."""
        self._done += 1
        for usage in judgement.usage:
            self._usd += usage.cost_usd or 0
            self._unknown += usage.cost_usd is None
        what = f"{judgement.task_id} #{judgement.attempt}, sample {judgement.sample}"
        if judgement.reason is not None:
            click.echo(clean(f"{what} {judgement.reason}: {judgement.message}"), err=True)
        elif time.monotonic() - self._told >= TELL_S:
            self._told = time.monotonic()
            said = f"{self._done} of {self._n} at most{self.cost}; the last one {what}"
            click.echo(clean(said), err=True)
