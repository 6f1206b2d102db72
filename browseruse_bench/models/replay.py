"""A model that answers from a ledger and nowhere else: no key, no network, no cost.

    --judge replay:gpt-5        the calls that a model with the label `gpt-5` answered

The label is what results call the model. Its verdicts are that model's own: it has the same
identity, so a judgement from a replay has the keys of the one that it repeats.
"""

from __future__ import annotations

from browseruse_bench.errors import ConfigError
from browseruse_bench.models.base import CallError, Clearance, ModelId, Reply, Request
from browseruse_bench.models.ledger import Ledger, call_key
from browseruse_bench.models.spending_log import Spending, What
from browseruse_bench.registry import unknown_name

PREFIX = "replay:"


class NotRecordedError(CallError):
    """The ledger does not hold the call; nothing was asked."""


class ReplayModel:
    """Answers what its ledger holds."""

    def __init__(
        self,
        id: ModelId,
        ledger: Ledger,
        *,
        restricted: Ledger | None = None,
        spending: Spending | None = None,
        scope: str = "",
    ) -> None:
        """Stand in for the model `id`; whatever is asked stays on this machine."""
        self.id = id
        self.may_see: Clearance = "restricted"
        self._ledgers = (ledger, restricted)
        self._spending = spending
        self._scope = scope
        self._key = id.key

    async def ask(self, request: Request, *, purpose: str, restricted: bool = False) -> Reply:
        """The kept answer.

        Raises:
            NotRecordedError: there is none; says which call is missing where.
        """
        ledger = self._ledgers[1 if restricted else 0]
        if ledger is None:
            raise ConfigError(
                f"{self.id.label}: give the folder of restricted calls to replay them"
            )
        key = call_key(self._key, request)
        call = ledger.find(key)
        if call is None:
            raise NotRecordedError(self._missing(ledger, key, request, purpose))
        if self._spending is not None:
            what = What(self._scope, purpose, self.id.label)
            self._spending.reuse(what, call.reply.usage)
        return call.reply

    def _missing(self, ledger: Ledger, key: str, request: Request, purpose: str) -> str:
        others = [
            str(sample)
            for sample in range(request.sample + 3)
            if sample != request.sample and self._holds(ledger, request, sample)
        ]
        beside = f"; of this request it holds sample {', '.join(others)}" if others else ""
        return (
            f"replay of {self.id.label}: {ledger.path} holds no call {key[:12]} for {purpose}, "
            f"sample {request.sample}{beside}; ask the model itself with the same settings first"
        )

    def _holds(self, ledger: Ledger, request: Request, sample: int) -> bool:
        other = request.model_copy(update={"sample": sample})
        return ledger.find(call_key(self._key, other)) is not None


def recorded_model(label: str, *ledgers: Ledger) -> ModelId:
    """The one model with this label that the ledgers know.

    Raises:
        ConfigError: there is none, or several that answer differently (another address or
            other parameters under the same label).
    """
    known = {key: model for ledger in ledgers for key, model in ledger.models().items()}
    found = {key: model for key, model in known.items() if label in (model.label, key)}
    if len(found) == 1:
        return next(iter(found.values()))
    where = ledgers[0].path
    if not found:
        labels = tuple(sorted({model.label for model in known.values()}))
        if not labels:
            raise ConfigError(f"{PREFIX}{label}: {where} holds no calls")
        raise ConfigError(f"{PREFIX}{label}: in {where}: {unknown_name('model', label, labels)}")
    listed = "; ".join(f"{key} ({model.as_line()})" for key, model in sorted(found.items()))
    raise ConfigError(
        f"{PREFIX}{label}: {where} holds {len(found)} models of this label; give the key of the "
        f"one that is meant, {PREFIX}KEY: {listed}"
    )
