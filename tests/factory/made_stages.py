"""Stages as a workspace makes them: from its configuration."""

from tests.factory.test_pipeline import Lines, Shorten, Shout


class Failing(Shout):
    """Fails while the workspace holds a file `fail`."""

    async def settle(self, unit, ctx):
        if (ctx.workspace / "fail").exists():
            raise ValueError("asked to")
        return await super().settle(unit, ctx)


def made_lines(config):
    return Lines()


def made_shorten(config):
    return Shorten()


def made_shout(config):
    return Failing()
