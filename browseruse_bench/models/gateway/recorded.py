"""Answers from a ledger, to an agent's equal requests: no key, no network, no cost.

Only where that was asked for: the gateway itself never answers a call from what it kept, since
two samples of an agent must be two.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Mapping

from browseruse_bench.errors import ConfigError
from browseruse_bench.models.base import ModelId
from browseruse_bench.models.gateway.call import Call, Denied
from browseruse_bench.models.gateway.forward import Client, only_usage
from browseruse_bench.models.gateway.meter import PURPOSE
from browseruse_bench.models.gateway.sse import Events, data_of
from browseruse_bench.models.ledger import Call as Kept
from browseruse_bench.models.ledger import Ledger


class Recorded:
    """Gives the answers that a model gave to equal requests, each once, in their order."""

    def __init__(self, ledger: Ledger, id: ModelId) -> None:
        """Read what the ledger has of a model.

        Raises:
            ConfigError: it has nothing of it.
        """
        self._path = ledger.path
        self._left: dict[str, deque[Kept]] = defaultdict(deque)
        found = [
            call for call in ledger.calls() if call.purpose == PURPOSE and call.model_key == id.key
        ]
        for call in sorted(
            found, key=lambda call: (call.asked_at, call.scope, call.request.sample)
        ):
            self._left[call.request.id].append(call)
        if not found:
            raise ConfigError(
                f"{ledger.path}: holds no call of an agent to {id.label}; what is replayed was "
                "asked through a gateway before"
            )

    async def forward(
        self,
        call: Call,
        headers: Mapping[str, str],
        client: Client,
        settle: Callable[[], Awaitable[None]],
    ) -> None:
        """Pass on the next answer to an equal request.

        Raises:
            Denied: there is none, or none is left.
        """
        del headers
        if not self._left[call.id]:
            raise Denied(
                404,
                f"{self._path} holds no answer to this request, or none that was not given yet",
                "not_recorded",
            )
        content = self._left[call.id].popleft().raw.encode()
        call.end, call.replayed, call.streamed = "answered", True, call.asked.stream
        await settle()
        if call.strip_usage:
            content = b"".join(e for e in Events().feed(content) if not only_usage(data_of(e)))
        kind = "text/event-stream" if call.asked.stream else "application/json"
        length = ("content-length", str(len(content)))
        await client.start(200, [("content-type", kind), length])
        await client.piece(content)
