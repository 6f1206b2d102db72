"""A clock that stands still while anything can go on, and then jumps to the next waking."""

import asyncio


class PretendedTime:
    def __init__(self):
        self.now = 0.0
        self._wakings = []

    def clock(self):
        return self.now

    async def sleep(self, seconds):
        waking = (self.now + seconds, asyncio.get_running_loop().create_future())
        self._wakings.append(waking)
        try:
            await waking[1]
        finally:
            self._wakings.remove(waking)

    async def run(self, *work):
        """Carry out coroutines or tasks together; time passes only when all of them wait."""
        tasks = [asyncio.ensure_future(one) for one in work]
        while not all(task.done() for task in tasks):
            for _ in range(20):
                await asyncio.sleep(0)
            pending = [w for w in self._wakings if not w[1].done()]
            if pending and not all(task.done() for task in tasks):
                at, future = min(pending, key=lambda w: w[0])
                self.now = max(self.now, at)
                future.set_result(None)
            elif not all(task.done() for task in tasks):
                await asyncio.sleep(0.001)
        return await asyncio.gather(*tasks)
