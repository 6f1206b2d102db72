"""How a worker is started so that it is held to what its session allows.

A worker that is confined reaches its browser's DevTools port, its model's endpoint where that
is on this machine, and through a proxy the public web and the sites of its benchmark. It
reads its own program, its environment and the folders of its attempt.
"""

from __future__ import annotations

import shutil
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from browseruse_bench.agents.base import Workspace
from browseruse_bench.browsers.base import Session
from browseruse_bench.browsers.guard.addresses import literal
from browseruse_bench.browsers.guard.confinement import PACKAGE, Confinement, Report
from browseruse_bench.browsers.guard.network import led_outwards
from browseruse_bench.browsers.guard.proxy import guard_proxy
from browseruse_bench.errors import AgentError, BrowserError

_DIRECT = "127.0.0.1,localhost,::1"


@dataclass(frozen=True, kw_only=True)
class Worker:
    """What is to be started."""

    argv: Sequence[str]
    env: Mapping[str, str]
    readable: Sequence[Path]
    """What the program needs beside its environment and its own file."""
    told: Mapping[str, Any]
    """All that it is told (settings, variables), in which its model's endpoint is looked for:
    what is called `base_url`, or a variable that ends so."""


@dataclass(frozen=True, kw_only=True)
class Held:
    """A worker that is ready to be started."""

    argv: Sequence[str]
    env: Mapping[str, str]
    session: Session
    """Its session, with the addresses by which the worker reaches the browser."""
    report: Report | None = None

    @property
    def pass_fds(self) -> tuple[int, ...]:
        """The descriptors that the process needs."""
        return self.report.pass_fds if self.report else ()

    @contextmanager
    def handing_over(self) -> Generator[None]:
        """Around the start: a process that was never started leaves nothing open."""
        try:
            yield
        except BaseException:
            if self.report is not None:
                self.report.give_up()
            raise

    async def settle(self) -> None:
        """After the start: note what its canaries told.

        Raises:
            AgentError: it could not be confined.
        """
        if self.report is not None:
            try:
                await self.report.settle(self.session.watch, "worker")
            except BrowserError as error:
                raise AgentError(str(error)) from error


@asynccontextmanager
async def held(worker: Worker, session: Session, workspace: Workspace) -> AsyncGenerator[Held]:
    """The worker as it is to be started; its proxy runs until the block is left."""
    base = session.confinement
    if base is None:
        yield Held(argv=worker.argv, env=worker.env, session=session)
        return
    endpoints = _endpoints(worker.told)
    local = [(host, port) for host, port in endpoints if _is_loopback(host)]
    reach = replace(base.reach, public=True, endpoints=frozenset(endpoints))
    async with AsyncExitStack() as stack:
        listener = None
        if base.network is not None:
            await stack.enter_async_context(led_outwards(base.network, local))
            listener = await base.network.listen(("127.0.0.1", 0))
        proxied = guard_proxy(reach, session.watch, "worker", listener)
        proxy = await stack.enter_async_context(proxied)
        argv = [shutil.which(worker.argv[0]) or worker.argv[0], *worker.argv[1:]]
        downloads = [] if workspace.downloads is None else [workspace.downloads]
        confinement = base.allowing(
            readable=[
                *_needs(argv), *worker.readable, workspace.attachments, *downloads
            ],
            writable=(workspace.scratch, workspace.files, workspace.native),
            ports=(proxy.port, *(port for _, port in local)),
        )  # fmt: skip
        report = Report()
        stack.callback(report.close)
        yield Held(
            argv=report.command(confinement, argv),
            env=_environment(worker, workspace, proxy.port),
            session=_inside(session, base),
            report=report,
        )


def _environment(worker: Worker, workspace: Workspace, port: int) -> dict[str, str]:
    way = f"http://127.0.0.1:{port}"
    names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
    return {
        **worker.env,
        **{name: way for upper in names for name in (upper, upper.lower())},
        "NO_PROXY": _DIRECT,
        "no_proxy": _DIRECT,
        # The user's own home is not readable.
        "HOME": str(workspace.scratch),
    }


def _inside(session: Session, base: Confinement) -> Session:
    """The session as its worker sees it: enclosed, its browser is at another address."""
    if base.devtools is None:
        return session
    http_url = f"http://{base.devtools.partition('/')[0]}"
    return replace(session, ws_url=f"ws://{base.devtools}", http_url=http_url)


def _endpoints(told: Mapping[str, Any]) -> list[tuple[str, int]]:
    """(host, port) of every base URL that a worker is told of, at whatever depth."""
    found: list[tuple[str, int]] = []
    for name, value in told.items():
        if isinstance(value, Mapping):
            found += _endpoints(cast("Mapping[str, Any]", value))
        elif name.lower().endswith(("base_url", "api_base")) and isinstance(value, str):
            parts = urlsplit(value)
            if parts.hostname:
                found.append(
                    (parts.hostname, parts.port or (443 if parts.scheme == "https" else 80))
                )
    return found


def _is_loopback(host: str) -> bool:
    address = literal(host)
    return host == "localhost" or (address is not None and address.is_loopback)


def _needs(argv: Sequence[str]) -> list[Path]:
    """The program with its environment, and the files that its arguments name."""
    program = Path(argv[0])
    places = [program, program.resolve()]
    # An environment has its marker two levels above the program; an interpreter its library.
    roots = (program.parent.parent, program.resolve().parent.parent)
    places += [root for root in roots if (root / "pyvenv.cfg").exists() or _is_prefix(root)]
    for word in argv[1:]:
        path = Path(word)
        if path.is_absolute() and path.is_file():
            # A program of ours lies beside the modules that it needs.
            places.append(path.parent if path.is_relative_to(PACKAGE) else path)
    return places


def _is_prefix(root: Path) -> bool:
    return any((root / "lib").glob("python3*/os.py"))
