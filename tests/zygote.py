"""Processes that can be killed by the dozen: forked from one that has imported everything.

A fork begins where the imports end, which are most of what a short process costs.
"""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


class Zygote:
    """Forks processes, one at a time, that call `module:function` with some texts.

    What the function prints goes to the file `output`.
    """

    def __init__(self, work: str, *arguments: object, output: Path) -> None:
        self._output = output
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.zygote", work, str(output), *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        self._pid = 0

    def __enter__(self) -> Zygote:
        return self

    def __exit__(self, *_raised: object) -> None:
        self._process.kill()
        self._process.communicate()

    def fork(self) -> None:
        """One more process runs; it has printed nothing yet."""
        self._output.write_text("")
        self._pid = self._told("fork")

    def kill(self) -> None:
        """kill -9, if it still runs: nobody else gets its number before `wait`."""
        os.kill(self._pid, signal.SIGKILL)

    def kill_once(self, begun: Callable[[], bool], *, after_s: float) -> None:
        """kill -9, so many seconds after something has begun."""
        deadline = time.monotonic() + 60
        while not begun():
            assert time.monotonic() < deadline, "it never began"
            time.sleep(0.001)
        time.sleep(after_s)
        self.kill()

    def wait(self) -> tuple[int, str]:
        """How it ended, as `subprocess` counts it, and what it had printed."""
        return self._told("wait"), self._output.read_text()

    def _told(self, command: str) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{command}\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


def grown(journal: Path) -> Callable[[], bool]:
    """Whether a file is longer than it is now."""

    def size() -> int:
        return journal.stat().st_size if journal.exists() else 0

    before = size()
    return lambda: size() > before


def _main(work: str, output: str, *arguments: str) -> None:
    module, _, function = work.partition(":")
    call = getattr(importlib.import_module(module), function)
    pid = 0
    for command in sys.stdin:
        if command == "fork\n":
            pid = os.fork()
            if not pid:
                _call(call, output, arguments)
            print(pid, flush=True)
        else:
            print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)


def _call(call: Callable[..., object], output: str, arguments: tuple[str, ...]) -> None:
    with Path(output).open("w") as file:
        os.dup2(file.fileno(), 1)
    code = 1
    try:
        call(*arguments)
        sys.stdout.flush()
        code = 0
    finally:
        os._exit(code)


if __name__ == "__main__":
    _main(*sys.argv[1:])
