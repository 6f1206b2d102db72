"""A model that asks nobody: what it is asked waits in a batch, to be answered later.

Any judge or stage runs over it as over any model. Each request that the ledger cannot answer is
queued and raises `PendingError`, which leaves its attempt as it was. Once the batch is answered
the same command finds all of it in the ledger and goes on; what it asks then, having read an
answer, waits for the next round.
"""

from __future__ import annotations

from collections.abc import Callable

from browseruse_bench.errors import ConfigError
from browseruse_bench.models.base import (
    CallError,
    Clearance,
    MalformedError,
    ModelId,
    OutageError,
    PendingError,
    RefusalError,
    Reply,
    Request,
    TooLongError,
    TruncatedError,
)
from browseruse_bench.models.batch.folder import BatchFolder, BatchInfo, Queued, Refused, utc_now
from browseruse_bench.models.ledger import Status, call_key

_ERRORS: dict[Status, type[CallError]] = {
    "truncated": TruncatedError,
    "refusal": RefusalError,
    "too_long": TooLongError,
    "malformed": MalformedError,
    "outage": OutageError,
}


class BatchCollector:
    """Puts what it is asked into the batch of a model."""

    def __init__(
        self,
        folder: BatchFolder,
        info: BatchInfo,
        *,
        may_see: Clearance = "clean",
        scope: str = "",
        now: Callable[[], str] = utc_now,
    ) -> None:
        """Collect for the model of `info`, which is written down with the first request."""
        self.id: ModelId = info.model
        self.may_see: Clearance = may_see
        self._folder = folder
        self._info = info
        self._scope = scope
        self._now = now
        self._key = info.model.key

    async def ask(self, request: Request, *, purpose: str, restricted: bool = False) -> Reply:
        """Queue it.

        Raises:
            PendingError: it waits.
            CallError: the batch was answered, and what came for this gave nothing to use. That
                is said once: asked again, it waits again.
        """
        if restricted and self.may_see != "restricted":
            raise ConfigError(f"model {self.id.label} is not cleared for restricted text")
        if restricted and self._info.restricted_calls is None:
            raise ConfigError(
                f"{self._folder.path}: give a folder for restricted calls to collect them"
            )
        key = call_key(self._key, request)
        queued = self._folder.queued(key)
        if queued is not None and queued.refused is not None:
            self._folder.remove(key)
            raise _error(queued.refused)
        if queued is None:
            self._folder.make(self._info)
            self._folder.add(
                Queued(
                    id=key,
                    purpose=purpose,
                    scope=self._scope,
                    restricted=restricted,
                    request=request.as_json(),
                    queued_at=self._now(),
                ),
                request,
            )
        raise PendingError(
            f"{self.id.label}: waits in {self._folder.path}; answer it with `bubench models batch "
            f"submit {self._folder.path}` or export, then run the same command again"
        )


def _error(refused: Refused) -> CallError:
    kind = _ERRORS.get(refused.status, CallError)
    error = kind(refused.error, raw=refused.raw, usage=refused.usage)
    error.call = refused.call
    return error
