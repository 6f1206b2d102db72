"""Run one coroutine to its end, and never wait for what refuses to end."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")

GRACE_S = 5.0


def run_loop(work: Coroutine[Any, Any, Result]) -> Result:
    """As `asyncio.run`, but tasks that ignore their cancellation are left after GRACE_S.

    `asyncio.run` waits for such a task for ever: an agent that swallows its cancellation
    would keep a finished run from ending.
    """
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(work)
    finally:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.wait(left, timeout=GRACE_S))
        loop.run_until_complete(loop.shutdown_asyncgens())
        if all(task.done() for task in left):
            loop.close()


def leave(status: int) -> None:
    """Exit at once with `status`, whatever an agent still holds: all that counts is on disk.

    Python's own exit would join every thread, also one that hangs in an agent's call.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
