"""From a benchmark and judges to a service that is ready to be asked."""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import AsyncGenerator, Callable, Generator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

from browseruse_bench.benchmarks.load import Benchmark
from browseruse_bench.errors import ConfigError
from browseruse_bench.eval.evaluate import Asking, utc_now
from browseruse_bench.eval.evaluator_process import EvaluatorJudge, EvaluatorSpec
from browseruse_bench.eval.judges import CodeJudge, Judge, Kind, MatcherJudge, NoModelJudge
from browseruse_bench.export.reward.fresh import Freshness
from browseruse_bench.export.reward.intake import Intake, RunTraces
from browseruse_bench.export.reward.service import Service


def utc_today() -> date:
    """The date now, in UTC."""
    return datetime.now(UTC).date()


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """How a service works."""

    folder: Path
    """Where traces, orders and results are kept."""
    runs: Path | None = None
    """The experiments folder whose runs recorded the traces that count as `harness`."""
    asking: Asking = Asking()
    max_queue: int = 64
    max_fact_age_days: int | None = None
    now: Callable[[], str] = utc_now
    today: Callable[[], date] = utc_today


@contextlib.asynccontextmanager
async def reward_service(benchmark: Benchmark, wanted: Wanted) -> AsyncGenerator[Service]:
    """A service that goes on with what an earlier one accepted.

    Raises:
        ConfigError: the evaluator cannot be loaded, or another process serves this folder.
        DataError: a journal is damaged.
    """
    async with contextlib.AsyncExitStack() as stack:
        stack.enter_context(_alone(wanted.folder))
        judges: dict[Kind, Judge] = {
            "checks": CodeJudge(),
            "matcher": MatcherJudge(),
            "model": wanted.asking.judge or NoModelJudge(),
        }
        if benchmark.evaluator is not None:
            spec = EvaluatorSpec(
                target=benchmark.evaluator,
                fallback=benchmark.path / "evaluator.py",
                timeout_s=wanted.asking.timeout_s,
            )
            own = EvaluatorJudge(
                spec, n_processes=wanted.asking.concurrency, model=wanted.asking.model
            )
            stack.push_async_callback(own.close)
            await own.start()
            judges["evaluator"] = own
        yield await stack.enter_async_context(
            Service(
                benchmark,
                judges,
                wanted.folder,
                Intake(wanted.folder, RunTraces(wanted.runs), benchmark),
                fresh=Freshness(benchmark.path, wanted.today, wanted.max_fact_age_days),
                now=wanted.now,
                concurrency=wanted.asking.concurrency,
                max_queue=wanted.max_queue,
            )
        )


@contextlib.contextmanager
def _alone(folder: Path) -> Generator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConfigError(
                f"{folder}: another process serves from it; end that one, or name another --state"
            ) from None
        yield
