"""Sites as processes: started on demand, fresh for every attempt, replaced when they fail.

A lease holds one server for each host of a benchmark. A stateful site belongs to one lease
at a time and is reset before the next one gets it, so there are as many of its processes as
attempts went on at once; a stateless one is started once and shared.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import tempfile
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from browseruse_bench.errors import SiteError
from browseruse_bench.store.processes import Owned, end, spawn

_TAIL_BYTES = 2000


@dataclass(frozen=True, kw_only=True)
class Timeouts:
    """How long a site may take, in seconds."""

    start_s: float = 300
    """The first start of a site may build its data: 9 CPU-seconds of docs.test took 79 s on a
    machine whose two cores were shared by 50 processes."""
    reset_s: float = 30
    snapshot_s: float = 30
    stop_s: float = 3


class SiteName(NamedTuple):
    """A site by its host name and the "module:Site" that serves it."""

    host: str
    target: str

    def __str__(self) -> str:
        return f"site {self.host} ({self.target})"


class SiteProcess:
    """A running site. After a failure it is `broken` and only fit to be ended."""

    def __init__(self, name: SiteName, owned: Owned, timeouts: Timeouts) -> None:
        """Wrap a process that was just spawned; `start` makes these."""
        self.name = name
        self.address = ("", 0)
        self.stateful = True
        self.broken = False
        self._owned = owned
        self._timeouts = timeouts
        self._turn = asyncio.Lock()
        self._stderr = bytearray()
        self._drained = asyncio.create_task(self._drain())

    @classmethod
    async def start(
        cls,
        name: SiteName,
        *,
        owner: Path,
        seed: int,
        timeouts: Timeouts,
        temporary: Path | None = None,
    ) -> SiteProcess:
        """Start the site in a process and an empty folder of its own; it serves on return.

        Raises:
            SiteError: it cannot be imported, fails, ends or is silent for too long.
        """
        folder = Path(tempfile.mkdtemp(prefix="bubench-site-", dir=temporary)).resolve()
        pipe = asyncio.subprocess.PIPE
        module = "browseruse_bench.sites.serve"
        argv = [sys.executable, "-m", module, name.target, str(folder), str(seed)]
        try:
            owned = await spawn(
                argv, owner=owner, kind="site", stdin=pipe, stdout=pipe, stderr=pipe,
                removes=[folder],
            )  # fmt: skip
        except BaseException:
            folder.rmdir()
            raise
        site = cls(name, owned, timeouts)
        try:
            ready = await site._reply("start", timeouts.start_s)
            site.address = (ready["host"], ready["port"])
            site.stateful = ready["stateful"]
        except BaseException:
            await asyncio.shield(site.end())
            raise
        return site

    def alive(self) -> bool:
        """Whether it can still be used: nothing failed, and the process lives."""
        return not self.broken and self._owned.alive()

    async def reset(self) -> None:
        """Bring the site back to its state after the start.

        Raises:
            SiteError: it failed, ended or took too long; it is broken then.
        """
        await self._ask({"do": "reset"}, self._timeouts.reset_s)

    async def snapshot(self, path: Path) -> bool:
        """Have the site's state written to `path`; False if it has none.

        Raises:
            SiteError: it failed, ended or took too long; it is broken then.
        """
        command = {"do": "snapshot", "path": str(path.absolute())}
        reply = await self._ask(command, self._timeouts.snapshot_s)
        return bool(reply["written"])

    async def end(self) -> None:
        """Let the site stop in order where it can; then nothing of it is left."""
        if self.alive():
            # A site that cannot stop in order is ended all the same.
            with contextlib.suppress(SiteError):
                await self._ask({"do": "stop"}, self._timeouts.stop_s)
        self.broken = True
        await end(self._owned)
        await self._drained

    async def _ask(self, command: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        stdin = self._owned.process.stdin
        assert stdin is not None
        async with self._turn:
            if not self.alive():
                raise await self._failure(command["do"], "the process has ended")
            try:
                stdin.write(json.dumps(command).encode() + b"\n")
                await stdin.drain()
            except (BrokenPipeError, ConnectionResetError):
                raise await self._failure(command["do"], "the process has ended") from None
            return await self._reply(command["do"], timeout_s)

    async def _reply(self, doing: str, timeout_s: float) -> dict[str, Any]:
        """The next line. An interrupted wait breaks the site: its answer would come late."""
        stdout = self._owned.process.stdout
        assert stdout is not None
        try:
            line = await asyncio.wait_for(stdout.readline(), timeout_s)
        except TimeoutError:
            raise await self._failure(doing, f"no answer within {timeout_s:g} s") from None
        except BaseException:
            self.broken = True
            raise
        if not line.endswith(b"\n"):
            raise await self._failure(doing, "the process has ended")
        try:
            reply = json.loads(line)
        except ValueError:
            raise await self._failure(doing, f"an answer that is not JSON: {line!r}") from None
        if "error" in reply:
            raise await self._failure(doing, reply["error"])
        return reply

    async def _failure(self, doing: str, why: str) -> SiteError:
        """Mark the site broken and say what failed, with the end of its stderr."""
        self.broken = True
        await asyncio.wait({self._drained}, timeout=0.2)
        said = self._stderr.decode(errors="replace").strip()
        return SiteError(f"{self.name}: {doing}: {why}" + (f"; it said:\n{said}" if said else ""))

    async def _drain(self) -> None:
        """Keep the end of what the process says on stderr, so that it never blocks."""
        stderr = self._owned.process.stderr
        assert stderr is not None
        while chunk := await stderr.read(2**16):
            self._stderr += chunk
            del self._stderr[:-_TAIL_BYTES]


@dataclass(frozen=True)
class Lease:
    """The servers of one attempt."""

    _sites: Mapping[str, SiteProcess] = field(default_factory=dict[str, SiteProcess])

    @property
    def hosts(self) -> dict[str, tuple[str, int]]:
        """Host name -> loopback (address, port) that answers for it."""
        return {host: site.address for host, site in self._sites.items()}

    async def snapshot(self, host: str, path: Path) -> bool:
        """Have the state of a host's site written to `path` as one SQLite file.

        Returns:
            False if the site has no state; then nothing is written.

        Raises:
            SiteError: the site failed, ended or took too long.
        """
        return await self._sites[host].snapshot(path)


class SitePool:
    """The sites of a benchmark, for any number of attempts at once."""

    def __init__(
        self,
        owner: Path,
        sites: Mapping[str, str],
        seed: int,
        *,
        timeouts: Timeouts | None = None,
        temporary: Path | None = None,
    ) -> None:
        """Start nothing yet.

        Args:
            owner: folder whose processes file records the site processes.
            sites: host name -> "module:Site".
            seed: given to every site, so that each process serves the same content.
            timeouts: how long a site may take.
            temporary: folder for the sites' own ones; default: the system's.
        """
        self._owner = owner
        self._names = [SiteName(host, target) for host, target in sites.items()]
        self._seed = seed
        self._timeouts = timeouts or Timeouts()
        self._temporary = temporary
        self._locks = {name.host: asyncio.Lock() for name in self._names}
        self._shared: dict[str, SiteProcess] = {}
        self._idle: dict[str, list[SiteProcess]] = {name.host: [] for name in self._names}
        self._stateful: dict[str, bool] = {}
        self._running: set[SiteProcess] = set()

    @contextlib.asynccontextmanager
    async def lease(self) -> AsyncGenerator[Lease]:
        """One server for each host, in the state after its start.

        Raises:
            SiteError: a site cannot be started; one that fails its reset is replaced first.
        """
        held: dict[str, SiteProcess] = {}
        tasks = [asyncio.create_task(self._hold(name, held)) for name in self._names]
        try:
            await asyncio.gather(*tasks)
            yield Lease({name.host: held[name.host] for name in self._names})
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await asyncio.shield(self._give_back(held))

    async def close(self) -> None:
        """End every site process; nothing of them is left."""
        running, self._running = self._running, set()
        self._shared.clear()
        for idle in self._idle.values():
            idle.clear()
        await asyncio.gather(*(site.end() for site in running))

    async def _hold(self, name: SiteName, held: dict[str, SiteProcess]) -> None:
        held[name.host] = await self._take(name)

    async def _take(self, name: SiteName) -> SiteProcess:
        # Until the first one runs it is not known whether the site can be shared.
        async with self._locks[name.host]:
            if not self._stateful.get(name.host, True):
                return await self._share(name)
            if name.host not in self._stateful:
                site = await self._start(name)
                self._stateful[name.host] = site.stateful
                if not site.stateful:
                    self._shared[name.host] = site
                return site
        while self._idle[name.host]:
            site = self._idle[name.host].pop()
            if await self._fresh(site):
                return site
        return await self._start(name)

    async def _share(self, name: SiteName) -> SiteProcess:
        site = self._shared.get(name.host)
        if site is not None and site.alive():
            return site
        if site is not None:
            await self._end(site)
        self._shared[name.host] = await self._start(name)
        return self._shared[name.host]

    async def _fresh(self, site: SiteProcess) -> bool:
        """Reset a site that was used; one that cannot be is ended."""
        try:
            await site.reset()
        except SiteError:
            await self._end(site)
            return False
        return True

    async def _start(self, name: SiteName) -> SiteProcess:
        site = await SiteProcess.start(
            name,
            owner=self._owner,
            seed=self._seed,
            timeouts=self._timeouts,
            temporary=self._temporary,
        )
        self._running.add(site)
        return site

    async def _end(self, site: SiteProcess) -> None:
        self._running.discard(site)
        await site.end()

    async def _give_back(self, held: Mapping[str, SiteProcess]) -> None:
        for host, site in held.items():
            if not site.stateful or site not in self._running:
                continue
            if site.alive():
                self._idle[host].append(site)
            else:
                await self._end(site)
