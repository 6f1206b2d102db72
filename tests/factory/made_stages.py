"""Stages as a workspace makes them: from its configuration."""

import asyncio
import os
import signal

from tests.factory.test_pipeline import Lines, Shorten, Shout


class Failing(Shout):
    """Fails while the workspace holds a file `fail`."""

    async def settle(self, unit, ctx):
        if (ctx.workspace / "fail").exists():
            raise ValueError("asked to")
        return await super().settle(unit, ctx)


class Signalled(Lines):
    """Reads until it is told to stop, where the workspace holds a file `signal`; somebody presses
    Ctrl-C meanwhile.
    """

    async def run(self, ctx, on_progress, stop):
        asked = ctx.workspace / "signal"
        if asked.exists():
            asked.unlink()
            os.kill(os.getpid(), signal.SIGINT)
            if not await asyncio.to_thread(stop.wait, 30):
                raise TimeoutError("it never heard of it")
        return await super().run(ctx, on_progress, stop)


def made_lines(config):
    return Signalled()


def made_shorten(config):
    return Shorten()


def made_shout(config):
    return Failing()
