"""No browser: for agents that need none, and for measuring what the rest costs."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from browseruse_bench.browsers.base import Backend, Session, SessionRequest
from browseruse_bench.browsers.options import BrowserOptions
from browseruse_bench.records.trace import BrowserId, Guard


class NoBrowser(Backend):
    """Sessions without a browser: no socket and no page."""

    name = "none"

    def __init__(self, options: BrowserOptions) -> None:
        """Nothing of `options` applies."""
        self.options = options

    def guard(self, *, fence: bool) -> Guard:
        return Guard(level="none", reason="there is no browser")

    @asynccontextmanager
    async def open(self, request: SessionRequest) -> AsyncGenerator[Session]:
        yield Session(
            browser=BrowserId(kind=self.name),
            guard=self.guard(fence=request.fence),
            ws_url=None,
            http_url=None,
            target_id=None,
        )

    def alive(self, session: Session) -> bool:
        return True
