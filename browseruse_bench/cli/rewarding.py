"""The words, the token and the signals of `bubench serve-reward`."""

from __future__ import annotations

import asyncio
import json
import secrets
import signal
from dataclasses import dataclass
from pathlib import Path

import click

from browseruse_bench.benchmarks.load import Benchmark
from browseruse_bench.errors import ConfigError
from browseruse_bench.export.reward.open import Wanted, reward_service
from browseruse_bench.export.reward.server import END_S, make_app
from browseruse_bench.export.reward.service import Service
from browseruse_bench.models.listening import serving
from browseruse_bench.store.files import write_atomic
from browseruse_bench.store.redact import register

MIN_TOKEN_CHARS = 16


@dataclass(frozen=True, kw_only=True)
class At:
    """Where it listens, and who may ask."""

    host: str
    port: int
    token_file: Path | None
    as_json: bool


async def serve(benchmark: Benchmark, wanted: Wanted, at: At) -> int:
    """Serve until a signal ends it; the exit status.

    Raises:
        ConfigError: the port, the token or the state folder is not to be had.
        DataError: a journal is damaged.
    """
    token = _token(at.token_file)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stop.set)
    async with (
        reward_service(benchmark, wanted) as service,
        serving(make_app(service, token), at.host, at.port, grace_s=END_S) as port,
    ):
        _announce(service, at, port, None if at.token_file else token)
        await stop.wait()
        service.closing = True
    for fault in service.faults:
        click.echo(f"the server failed once: {type(fault).__name__}: {fault}", err=True)
    return 1 if service.faults else 0


def _token(file: Path | None) -> str:
    """The token of the file, or a new one.

    Raises:
        ConfigError: the file holds none.
    """
    if file is None or not file.exists():
        token = secrets.token_urlsafe(32)
        if file is not None:
            write_atomic(file, f"{token}\n", mode=0o600)
        return token
    token = file.read_text().strip()
    if len(token) < MIN_TOKEN_CHARS or not token.isascii() or not token.isprintable():
        raise ConfigError(
            f"{file}: holds no token of {MIN_TOKEN_CHARS} or more printable characters; "
            "remove it, and a new one is written"
        )
    register(token)
    return token


def _announce(service: Service, at: At, port: int, token: str | None) -> None:
    states = service.tasks()
    n_stale = sum(state.stale is not None for state in states)
    n_not = sum(state.not_gradable is not None for state in states)
    host = f"[{at.host}]" if ":" in at.host else at.host
    url = f"http://{host}:{port}"
    if at.as_json:
        told = {
            "url": url,
            "benchmark": service.benchmark.name,
            "split": service.benchmark.split,
            "tasks": len(states),
            "stale": n_stale,
            "not_gradable": n_not,
            "resumed": service.n_resumed,
            **({"token": token} if token else {"token_file": str(at.token_file)}),
        }
        click.echo(json.dumps(told))
        return
    click.echo(f"rewards of {service.benchmark.name}: {url}/v1/gradings, described at")
    click.echo(f"{url}/openapi.json")
    click.echo(f"token: {token or f'in {at.token_file}'}")
    click.echo(f"{len(states)} tasks, {n_stale} stale, {n_not} that nothing grades")
    for order, why in service.lost:
        click.echo(f"owed, but not to be had: {order.id[:12]} of {order.task_id}: {why}", err=True)
    if service.n_resumed:
        click.echo(f"going on with {service.n_resumed} gradings that were accepted earlier")
    click.echo("Ctrl-C ends it; what is accepted is kept")
