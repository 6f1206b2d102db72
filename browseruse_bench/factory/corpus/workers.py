"""Processes that do jobs, one at a time each, so that no two wait for one interpreter's lock.

Jobs and what they counted go through pipes. A worker ends with the process that started it, also
if that one is killed: its pipe then ends, and whatever was half done was never put in place.
"""

from __future__ import annotations

import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
from typing import Any

from browseruse_bench.errors import StageError
from browseruse_bench.factory.corpus.books import Job, settle


class Worker:
    """One process."""

    def __init__(self) -> None:
        """Start it; tables are worked on by one thread there, for there is a worker a core."""
        paths = [path for path in sys.path if path]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "browseruse_bench.factory.corpus.workers"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "POLARS_MAX_THREADS": "1"},
        )

    def settle(self, job: Job) -> dict[str, Any]:
        """What a job counted.

        Raises:
            StageError: the process died.
            BaseException: whatever the job raised.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            pickle.dump(job, self._process.stdin)
            self._process.stdin.flush()
            counted, error = pickle.load(self._process.stdout)
        except (EOFError, BrokenPipeError, pickle.UnpicklingError) as problem:
            raise StageError(
                f"a worker of the filter ended with status {self._process.wait()} over "
                f"{job.manifest} (-9: killed, often for want of memory); the same command goes on"
            ) from problem
        if error is not None:
            raise error
        return counted

    def end(self) -> None:
        """End the process, whatever it does."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


def work() -> None:
    """Do jobs from standard input until it ends."""
    # Who stops the run decides what goes on: the terminal tells all processes of a group.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    # Nothing that a library prints may stand between the replies.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    jobs: queue.SimpleQueue[Job] = queue.SimpleQueue()
    threading.Thread(target=_take, args=(jobs,), daemon=True).start()
    while True:
        job = jobs.get()
        counted, problem = None, None
        try:
            counted = settle(job)
        except BaseException as error:  # noqa: BLE001  it is raised again where the job came from
            problem = error
        pickle.dump((counted, problem), replies)
        replies.flush()


def _take(jobs: queue.SimpleQueue[Job]) -> None:
    while True:
        try:
            jobs.put(pickle.load(sys.stdin.buffer))
        except EOFError:
            os._exit(0)


if __name__ == "__main__":
    work()
