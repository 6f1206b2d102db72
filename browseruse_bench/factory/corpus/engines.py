"""Who does the jobs: this process, processes of its own, or the workers of a Ray cluster.

All do the same jobs, and a job leaves the same files wherever it is done.
"""

# What arrays and tables hold is said in the docstrings: pyarrow ships no types, and those of numpy
# and polars say nothing of columns.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from browseruse_bench.errors import ConfigError
from browseruse_bench.factory.corpus.books import Job, settle
from browseruse_bench.factory.corpus.workers import Worker

APART_BYTES = 32 << 20
"""Size of the files from which on jobs are done in processes of their own."""


class Stopped(Exception):  # noqa: N818  no error: somebody asked for it
    """Nothing further starts; what is done stays done."""


class Engine(ABC):
    """Does jobs."""

    @abstractmethod
    def settle_all(self, jobs: Sequence[Job]) -> list[dict[str, Any]]:
        """What each job counted, in order, done now or before.

        Raises:
            Stopped: it was asked to stop.
        """

    def expect(self, n_bytes: int) -> None:
        """Be told of how large the files are that the next jobs are about."""
        del n_bytes

    def close(self) -> None:
        """Nothing that it started goes on."""
        return


class Embedded(Engine):
    """Threads of this process; each has a process of its own where there is much to do."""

    def __init__(self, workers: int | None = None, stop: threading.Event | None = None) -> None:
        """`workers` jobs at a time, one for each processor where it is None."""
        self._workers = workers or len(os.sched_getaffinity(0))
        self._stop = stop or threading.Event()
        self._apart = False
        self._idle: list[Worker] = []
        self._started: list[Worker] = []

    def settle_all(self, jobs: Sequence[Job]) -> list[dict[str, Any]]:
        with ThreadPoolExecutor(self._workers) as pool:
            try:
                return list(pool.map(self._one, jobs))
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise

    def _one(self, job: Job) -> dict[str, Any]:
        if self._stop.is_set():
            raise Stopped
        if not self._apart or job.manifest.exists():
            return settle(job)
        try:
            worker = self._idle.pop()
        except IndexError:
            worker = Worker()
            self._started.append(worker)
        counted = worker.settle(job)
        self._idle.append(worker)
        return counted

    def expect(self, n_bytes: int) -> None:
        # Processes take a second or two to start; then nothing waits for the interpreter's lock.
        self._apart = n_bytes >= APART_BYTES

    def close(self) -> None:
        for worker in self._started:
            worker.end()
        self._started.clear()
        self._idle.clear()


class OnRay(Engine):
    """Workers of Ray; all of them see the workspace's folder and the corpus under one path."""

    def __init__(self, stop: threading.Event | None = None) -> None:
        """Use the cluster that is there, or start one on this machine.

        Raises:
            ConfigError: Ray is not installed.
        """
        try:
            import ray  # pyright: ignore[reportMissingImports]  an extra
        except ImportError as error:
            raise ConfigError(
                "the engine ray needs Ray: pip install 'browseruse-bench[ray]'"
            ) from error
        self._ray: Any = ray
        self._stop = stop or threading.Event()
        if not self._ray.is_initialized():
            self._ray.init(include_dashboard=False, log_to_driver=False)
        self._settle: Any = self._ray.remote(settle)

    def settle_all(self, jobs: Sequence[Job]) -> list[dict[str, Any]]:
        places: dict[Any, int] = {}
        found: list[dict[str, Any]] = [{} for _ in jobs]
        waiting = iter(enumerate(jobs))
        room = max(2, 2 * int(self._ray.cluster_resources().get("CPU", 1)))
        while True:
            while len(places) < room and not self._stop.is_set():
                place, job = next(waiting, (-1, None))
                if job is None:
                    break
                places[self._settle.remote(job)] = place
            if not places:
                break
            done, _ = self._ray.wait(list(places), num_returns=1)
            for reference in done:
                found[places.pop(reference)] = self._ray.get(reference)
        if self._stop.is_set():
            raise Stopped
        return found
