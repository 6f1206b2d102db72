"""The words and signals of `bubench gateway`."""

from __future__ import annotations

import asyncio
import json
import secrets
import signal
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from browseruse_bench.errors import BudgetError, ConfigError
from browseruse_bench.models.base import ModelId
from browseruse_bench.models.gateway.endpoint import Endpoint
from browseruse_bench.models.gateway.meter import Meter
from browseruse_bench.models.gateway.recorded import Recorded
from browseruse_bench.models.gateway.server import Gateway
from browseruse_bench.models.gateway.wires import wires_of
from browseruse_bench.models.ledger import Ledger
from browseruse_bench.models.replay import recorded_model
from browseruse_bench.models.spec import ModelSpec, model_spec
from browseruse_bench.models.spending import Budget, cost_of
from browseruse_bench.models.spending_log import FILE, Spending
from browseruse_bench.records.run import Tokens
from browseruse_bench.report.render import money
from browseruse_bench.store.files import write_atomic


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What the command was given."""

    model: str
    port: int
    budget_usd: float | None
    token_file: Path | None
    calls: Path
    replay: bool
    as_json: bool


async def serve(wanted: Wanted) -> int:
    """Serve until a signal ends it; the exit status.

    Raises:
        ConfigError: the model, its key, its price or the port is not to be had.
    """
    ledger = Ledger(wanted.calls, keep_requests=True)
    id = recorded_model(wanted.model, ledger) if wanted.replay else None
    spec = _live(wanted) if id is None else _replayed(id)
    if not wires_of(spec.provider):
        raise ConfigError(f"--model {wanted.model}: is asked over no wire, so through no gateway")
    way = None if id is None else Recorded(ledger, id)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stop.set)
    scope = f"gateway-{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"
    with closing(Spending(wanted.calls / FILE)) as spending:
        meter = Meter(
            spec,
            scope=scope,
            run=Budget(wanted.budget_usd, spending, scope=scope),
            ledger=ledger if way is None else None,
            changed=lambda meter: _tell(meter, wanted),
        )
        async with Gateway(port=wanted.port) as gateway:
            access = gateway.open(meter, way)
            _announce(access.endpoint, spec, wanted, scope)
            try:
                await stop.wait()
            finally:
                if wanted.token_file is not None:
                    wanted.token_file.unlink(missing_ok=True)
    _conclude(meter, wanted, scope)
    return BudgetError.exit_status if meter.spent is not None else 0


def _replayed(id: ModelId) -> ModelSpec:
    """A recorded model: its key is not needed."""
    return ModelSpec(label=id.label, provider=id.provider, name=id.name, base_url=id.base_url)


def _live(wanted: Wanted) -> ModelSpec:
    spec = model_spec(wanted.model)
    if wanted.budget_usd is not None and cost_of(spec)(1, 1) is None:
        raise ConfigError(
            f"--budget-usd: no price is known for model '{spec.label}', so its cost cannot be "
            "limited; give it a price in bubench.toml, or leave the limit out"
        )
    return spec


def _announce(endpoint: Endpoint, spec: ModelSpec, wanted: Wanted, scope: str) -> None:
    token = endpoint.token
    if wanted.token_file is not None:
        write_atomic(wanted.token_file, f"{token}\n", mode=0o600)
        token = None
    ways = {wire.name: endpoint.url + path for wire in wires_of(spec.provider)
            for path in wire.paths(spec)[:1]}  # fmt: skip
    if wanted.as_json:
        told: dict[str, Any] = {
            "model": spec.name,
            "provider": spec.provider,
            "url": endpoint.url,
            "base_url": endpoint.base_url,
            "ways": ways,
            "scope": scope,
            **({"token_file": str(wanted.token_file)} if token is None else {"token": token}),
        }
        click.echo(json.dumps(told))
        return
    shown = token or f"in {wanted.token_file}"
    lines = [f"{spec.label}: base URL {endpoint.base_url}", f"token: {shown}"]
    lines += [f"  {name}: POST {way}" for name, way in ways.items()]
    if token is not None:
        given = " ".join(f"{name}={value}" for name, value in endpoint.variables.items())
        lines.append(f"for a client library of the provider: export {given}")
    lines.append(f"calls are kept in {wanted.calls} under {scope}; Ctrl-C ends it")
    click.echo("\n".join(lines))


def _tell(meter: Meter, wanted: Wanted) -> None:
    """After each call, on stderr: what it came to so far."""
    if wanted.as_json:
        click.echo(json.dumps({"so_far": _sums(meter)}), err=True)
        return
    refused = "" if meter.spent is None else f"; refused: {meter.spent.reason}"
    failing = "" if meter.failing is None else f"; the provider fails: {meter.failing.why}"
    click.echo(f"{_sentence(meter)}{refused}{failing}", err=True)


def _conclude(meter: Meter, wanted: Wanted, scope: str) -> None:
    if wanted.as_json:
        click.echo(json.dumps({"ended": _sums(meter), "scope": scope}))
    else:
        click.echo(f"ended: {_sentence(meter)}")


def _sums(meter: Meter) -> dict[str, Any]:
    return {
        "calls": meter.n_calls,
        "replayed": meter.n_replayed,
        "tokens": Tokens.of(meter.usage).as_json(),
        "usage": [usage.as_json() for usage in meter.usage],
        "refused": None if meter.spent is None else meter.spent.reason,
    }


def _sentence(meter: Meter) -> str:
    tokens = Tokens.of(meter.usage)
    costs = [usage.cost_usd for usage in meter.usage]
    known = [cost for cost in costs if cost is not None]
    cost = sum(known) if len(known) == len(costs) else None
    n_replayed = f", {meter.n_replayed} from the record" if meter.n_replayed else ""
    return (
        f"{meter.n_calls} calls{n_replayed}, {tokens.uncached + tokens.cached} tokens read "
        f"({tokens.cached} of them cached), {tokens.reasoning + tokens.output} written, "
        f"{money(cost, sum(known), len(costs) - len(known))}"
    )
