"""From what `--judge` or a configuration names to a model that can be asked.

    model = open_model("small", calls=experiments / "calls", budget=Budget(5.0, scope=run_id))
    reply = await model.ask(request, purpose="judge")

It answers from the ledger what was asked before, keeps to its budget, to the rate limits of its
key and to its clearance, and redacts what it writes. Whoever asks needs to know none of this.
"""

from __future__ import annotations

from pathlib import Path

from browseruse_bench.errors import ConfigError
from browseruse_bench.models import MODELS
from browseruse_bench.models.base import Model
from browseruse_bench.models.batch.collector import BatchCollector
from browseruse_bench.models.batch.folder import BatchFolder, BatchInfo
from browseruse_bench.models.batch.form import form_of
from browseruse_bench.models.config import CONFIG
from browseruse_bench.models.ledger import Ledger, LedgerModel, restore_spending
from browseruse_bench.models.limits import Limiter, Limits, limiter_for
from browseruse_bench.models.replay import PREFIX, ReplayModel, recorded_model
from browseruse_bench.models.spec import ModelSpec, model_spec
from browseruse_bench.models.spending import Budget, BudgetModel, HoldingLimiter, cost_of
from browseruse_bench.models.spending_log import FILE, spending_at


def open_model(
    text: str,
    *,
    calls: Path | None,
    budget: Budget | None = None,
    cwd: Path | None = None,
    restricted_calls: Path | None = None,
    batch: Path | None = None,
    keep_requests: bool = False,
    what: str = "--model",
    config: str = CONFIG,
) -> Model:
    """The model that `text` means, behind its ledger and its budget.

    Args:
        text: provider:name, a [models.NAME] of bubench.toml, a double, or replay:LABEL.
        calls: folder of the ledger; None: nothing is kept, and equal requests are paid again.
        budget: what it may cost; several models may share it. Unless it has a place of its own
            it is written beside the calls, so that it goes on where earlier commands ended.
        cwd: the folder of the configuration and .env; default the current one.
        restricted_calls: folder of the calls that may hold personal data, mode 0700; None:
            restricted requests are refused.
        batch: folder in which requests wait that the ledger cannot answer; asking raises
            PendingError, and nothing is paid. None: the provider is asked.
        keep_requests: keep the messages of requests beside their digest.
        what: the flag or place that `text` comes from, for messages.
        config: name of the file in `cwd` whose [models] may be meant.

    Raises:
        ConfigError: the form is wrong, a key is missing, a replay has nothing to replay.
    """
    budget = budget or Budget(None)
    ledger = None if calls is None else Ledger(calls, keep_requests=keep_requests)
    restricted = _restricted(restricted_calls, keep_requests=keep_requests)
    if calls is not None and ledger is not None:
        restore_spending(calls / FILE, *([ledger] if restricted is None else [ledger, restricted]))
        budget.bind(spending_at(calls))
    scope = budget.scope or ""
    if text.startswith(PREFIX):
        if ledger is None:
            raise ConfigError(f"{what} {text}: a replay needs a folder of calls")
        ledgers = [ledger] if restricted is None else [ledger, restricted]
        return ReplayModel(
            recorded_model(text.removeprefix(PREFIX), *ledgers),
            ledger,
            restricted=restricted,
            spending=budget.spending,
            scope=scope,
        )
    spec = model_spec(text, what=what, cwd=cwd, config=config, need_key=batch is None)
    if batch is not None:
        if calls is None:
            raise ConfigError(f"{what} {text}: a batch needs a folder of calls for its answers")
        info = BatchInfo(
            model=spec.id,
            text=text,
            cwd=str((cwd or Path.cwd()).resolve()),
            config=config,
            calls=str(calls.resolve()),
            restricted_calls=None if restricted_calls is None else str(restricted_calls.resolve()),
        )
        asked: Model = _collector(batch, info, spec, scope)
    else:
        asked = paid_model(spec, budget)
    if ledger is None:
        return asked
    return LedgerModel(asked, ledger, restricted=restricted, spending=budget.spending, scope=scope)


def _collector(batch: Path, info: BatchInfo, spec: ModelSpec, scope: str) -> BatchCollector:
    form_of(spec)
    folder = BatchFolder.of(batch, spec.id)
    return BatchCollector(folder, info, may_see=spec.asking.may_see, scope=scope)


def paid_model(spec: ModelSpec, budget: Budget) -> BudgetModel:
    """The model of a spec within a budget and the limits of its key, without a ledger."""
    inner = MODELS.get(spec.provider)(spec, limiter=HoldingLimiter(limiter_of(spec)))
    return BudgetModel(inner, budget, cost=cost_of(spec), max_tokens=spec.asking.params.max_tokens)


def limiter_of(spec: ModelSpec) -> Limiter:
    """The limiter of a spec's key: one for everything in this process that uses the key."""
    asking = spec.asking
    limits = Limits(
        concurrency=asking.concurrency,
        requests_per_minute=asking.requests_per_minute,
        tokens_per_minute=asking.tokens_per_minute,
    )
    return limiter_for(spec.base_url or spec.provider, spec.key, limits)


def _restricted(path: Path | None, *, keep_requests: bool) -> Ledger | None:
    return None if path is None else Ledger(path, private=True, keep_requests=keep_requests)
