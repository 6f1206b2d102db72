"""Chromium on this machine: one process and one fresh profile per session.

The browser listens on a port that the system chose and, beside it, on a pipe that only this
process holds open: when this process dies, however it dies, the pipe closes and Chromium
exits by itself. Its record (`store.processes`) covers the rest.
"""

from __future__ import annotations

import asyncio
import os
import re
import tempfile
import uuid
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from browseruse_bench.browsers.base import Backend, Session, SessionRequest
from browseruse_bench.browsers.cdp import CDP
from browseruse_bench.browsers.find import find_chromium
from browseruse_bench.browsers.guard.canary import Canary, canary, try_file, try_port
from browseruse_bench.browsers.guard.confinement import (
    KEYS,
    Confinement,
    Report,
    has_user_namespaces,
)
from browseruse_bench.browsers.guard.levels import choose, policy
from browseruse_bench.browsers.guard.levels import flags as guard_flags
from browseruse_bench.browsers.guard.network import PROXY, Network, led_inwards
from browseruse_bench.browsers.guard.proxy import GuardProxy, Reach, Web
from browseruse_bench.browsers.guard.watch import Watch, refuse_files, watch_pages
from browseruse_bench.browsers.options import BrowserOptions
from browseruse_bench.browsers.pages import page_size
from browseruse_bench.browsers.storage_state import apply_storage_state, read_storage_state
from browseruse_bench.errors import BrowserError, boundary
from browseruse_bench.records.trace import BrowserId, Guard
from browseruse_bench.store.processes import Owned, end, owned_folder, spawn

FLAGS = (
    "--headless=new",
    "--remote-debugging-port=0",
    "--remote-debugging-pipe",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
    # Together with --disable-extensions, leaving out the two pages behind the address bar takes
    # a start, a page and five screenshots from 1.08 to 0.70 CPU-seconds (Chromium 156).
    "--disable-features=Translate,MediaRouter,OptimizationHints,AutofillServerCommunication,"
    "HttpsUpgrades,WebUIOmniboxPopup,WebUIOmniboxAimPopup",
    "--disable-extensions",
    "--disable-breakpad",
    "--disable-crash-reporter",
    "--disable-dev-shm-usage",
    # As root, a bar about the missing sandbox shrinks the page about a second after the start.
    "--disable-infobars",
    "--hide-scrollbars",
    "--lang=en-US",
    "--metrics-recording-only",
    "--mute-audio",
    "--password-store=basic",
    "--use-mock-keychain",
)
_START_S = 30.0
_LET_GO_S = 2.0
_PORT_FILE = re.compile(r"(\d+)\n(/devtools/browser/[0-9a-f-]{36})\s*")
_HOST = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?")
# A socket's path is limited to 104 bytes (macOS) or 108 (Linux), and Chromium dies when its
# own, TMPDIR/org.chromium.Chromium.XXXXXX/SingletonSocket, is longer.
_MAX_TMPDIR_BYTES = 55
# Chromium takes commands from descriptor 3 and answers on 4. /dev/fd, because dash takes no
# descriptor above 9 in a redirection.
_WITH_PIPES = (
    'PATH="$PATH:/bin:/usr/bin" mkdir -p -m 700 "$TMPDIR" && '
    'exec "$@" 3</dev/fd/{commands} 4>/dev/fd/{answers}'
)
# A page can read the browser's environment (file:///proc/self/environ), so nothing else of
# this process's environment, which may hold keys, goes into it.
_ENVIRONMENT = re.compile(r"PATH|LANG|LANGUAGE|LC_\w+|TZ|LD_LIBRARY_PATH|FONTCONFIG_\w+")


@dataclass(frozen=True, kw_only=True)
class _Held:
    """How one session is held; without a canary it is only observed."""

    watch: Watch
    ways_out: tuple[str, ...]
    """The flags that say where the browser's traffic goes."""
    bird: Canary | None = None
    proxy: GuardProxy | None = None
    browser: Confinement | None = None
    worker: Confinement | None = None

    @property
    def network(self) -> Network | None:
        """The network that the browser is enclosed in."""
        return None if self.browser is None else self.browser.network

    def for_worker(self, address: str) -> Confinement | None:
        """What a worker is held to that talks to the browser at host:port/path."""
        if self.worker is None:
            return None
        worker = self.worker.allowing(ports=(_port(address),))
        return worker if worker.network is None else replace(worker, devtools=address)


class LocalChromium(Backend):
    """Starts Chromium on this machine; any number of sessions at once."""

    name = "local"

    def __init__(self, options: BrowserOptions, *, web: Web | None = None) -> None:
        """Look for the program of `options.path` only when a session is opened.

        Args:
            options: of the command line.
            web: what counts as the public web; tests bring a small one of their own.
        """
        self.options = options
        self._web = web or Web()
        self._running: dict[str, Owned] = {}
        self._files_tried = False

    def guard(self, *, fence: bool) -> Guard:
        return choose(self.options.guard)

    @asynccontextmanager
    async def open(self, request: SessionRequest) -> AsyncGenerator[Session]:
        async with AsyncExitStack() as stack:
            with boundary(BrowserError, "start Chromium"):
                session = await self._start(request, stack)
            yield session

    def alive(self, session: Session) -> bool:
        owned = self._running.get(session.ws_url or "")
        return owned is not None and owned.alive()

    def exit_status(self, session: Session) -> int | None:
        owned = self._running.get(session.ws_url or "")
        return None if owned is None else owned.process.returncode

    async def _start(self, request: SessionRequest, stack: AsyncExitStack) -> Session:
        """A session whose end is left to `stack`."""
        program = find_chromium(self.options.path)
        state = None if request.storage_state is None else read_storage_state(request.storage_state)
        guard = self.guard(fence=request.fence)
        profile = _make_profile(request)
        held = await self._prepare(request, program, guard, stack)
        flags = (*FLAGS, *held.ways_out, *self._own_flags(profile, guard))
        owned = await _spawn((str(program), *flags, "about:blank"), request, held, stack)
        address = await _listening(owned, profile, request.work / "stderr.log")
        confinement = held.for_worker(address)
        if held.network is not None:
            inside = led_inwards(held.network, ("127.0.0.1", _port(address)))
            port = await stack.enter_async_context(inside)
            address = f"127.0.0.1:{port}/{address.partition('/')[2]}"
        ws_url = f"ws://{address}"
        self._running[ws_url] = owned
        stack.callback(self._running.pop, ws_url)
        # The socket stays open: Chromium forgets where downloads go when it closes.
        cdp = await CDP.connect(ws_url, timeout_s=_START_S)
        stack.push_async_callback(cdp.close)
        downloads = {"behavior": "allow", "downloadPath": str(request.downloads)}
        await cdp.send("Browser.setDownloadBehavior", downloads, timeout_s=_START_S)
        target_id = await _first_page(cdp)
        await self._hold(cdp, target_id, held)
        if state is not None:
            await apply_storage_state(cdp, state)
        viewport = await _fit_viewport(cdp, target_id, self.options.viewport)
        version: str = (await cdp.send("Browser.getVersion"))["product"]
        return Session(
            browser=BrowserId(kind=self.name, version=version.partition("/")[2], viewport=viewport),
            guard=guard,
            watch=held.watch,
            confinement=confinement,
            ws_url=ws_url,
            http_url=f"http://{address.partition('/')[0]}",
            target_id=target_id,
        )

    async def _prepare(
        self, request: SessionRequest, program: Path, guard: Guard, stack: AsyncExitStack
    ) -> _Held:
        """The proxy, the canary and the rules of a session; they go when `stack` ends."""
        watch = Watch()
        if guard.level == "observed":
            rules = host_rules(request.hosts, fence=request.fence)
            direct = ("--no-proxy-server",)
            ways = (*direct, f"--host-resolver-rules={rules}") if rules else direct
            return _Held(watch=watch, ways_out=ways)
        check_hosts(request.hosts)
        aviary = stack.enter_context(owned_folder(request.owner))
        bird = await stack.enter_async_context(canary(aviary))
        reach = Reach(hosts=request.hosts, public=not request.fence, web=self._web)
        proxy = GuardProxy(reach, watch, "browser")
        stack.push_async_callback(proxy.close)
        # Enclosed, it listens where the browser is, and so not before it is there.
        network = Network() if guard.level == "layered" else None
        if network is None:
            await proxy.start()
        host, port = PROXY if network else ("127.0.0.1", proxy.port)
        held = _Held(watch=watch, ways_out=guard_flags(port, host), bird=bird, proxy=proxy)
        if guard.level == "flags":
            return held
        hidden = (*request.hidden, *KEYS)
        base = Confinement(bird=bird, reach=reach, hidden=hidden, network=network)
        browser = base.allowing(
            readable=(program.resolve().parent, *request.readable),
            writable=(request.work, request.downloads),
            ports=(port,),
        )
        if network is not None:
            browser = replace(browser, policy=policy(port))
            stack.callback(network.close)
        return replace(held, worker=base, browser=browser)

    async def _hold(self, cdp: CDP, target_id: str, held: _Held) -> None:
        """What is held over the browser's own socket, and the canaries that prove it."""
        await watch_pages(cdp, held.watch, turn=held.bird is not None, timeout_s=_START_S)
        if held.bird is None:
            return
        await refuse_files(cdp, held.watch, timeout_s=_START_S)
        await try_port(cdp, target_id, held.bird, held.watch)
        if not self._files_tried:
            # A page of its own takes 200 ms, so it is the first session that proves it.
            await try_file(cdp, held.bird, held.watch)
            self._files_tried = True

    def _own_flags(self, profile: Path, guard: Guard) -> list[str]:
        width, height = self.options.viewport
        flags = [
            f"--user-data-dir={profile}",
            f"--window-size={width},{height}",
            f"--screen-info={{{width}x{height}}}",
        ]
        # Chromium's own sandbox is not for root. Confined it needs user namespaces: its helper
        # with privileges gets none there.
        if os.geteuid() == 0 or (guard.level == "confined" and not has_user_namespaces()):
            flags.append("--no-sandbox")
        return flags


def check_hosts(hosts: Mapping[str, tuple[str, int]]) -> None:
    """Every key is a host name.

    Raises:
        BrowserError: a name is not a host name.
    """
    for host in hosts:
        if not _HOST.fullmatch(host):
            raise BrowserError(f"site '{host}': not a host name of letters, digits, '.' and '-'")


def host_rules(hosts: Mapping[str, tuple[str, int]], *, fence: bool) -> str:
    """Chromium's resolver rules: each host's port 80 goes to its site, the rest of it nowhere.

    The first rule that fits holds. With `fence` every other name and every address literal,
    also of this machine, resolves to nothing.

    Raises:
        BrowserError: a name is not a host name.
    """
    check_hosts(hosts)
    rules: list[str] = []
    for host, (address, port) in hosts.items():
        rules += [f"MAP {host}:80 {address}:{port}", f"MAP {host} ~NOTFOUND"]
    if fence:
        rules.append("MAP * ~NOTFOUND")
    return ", ".join(rules)


def _make_profile(request: SessionRequest) -> Path:
    profile = request.work / "profile"
    request.work.mkdir(parents=True, exist_ok=True)
    request.downloads.mkdir(parents=True, exist_ok=True)
    try:
        profile.mkdir()
    except FileExistsError:
        raise BrowserError(
            f"{profile}: in use by another session; each session needs a folder of its own"
        ) from None
    return profile


async def _spawn(
    argv: tuple[str, ...], request: SessionRequest, held: _Held, stack: AsyncExitStack
) -> Owned:
    """Start Chromium with its two pipes; `stack` ends it and then closes them."""
    temporary = _temporary(request.work)
    report = None
    if held.browser is not None:
        report = Report()
        stack.callback(report.close)
        confinement = held.browser.allowing(writable=(temporary,))
        argv = tuple(report.command(confinement, argv))
    commands, to_browser = os.pipe()
    stack.callback(os.close, to_browser)
    from_browser, answers = os.pipe()
    stack.callback(os.close, from_browser)
    script = _WITH_PIPES.format(commands=commands, answers=answers)
    try:
        with (request.work / "stderr.log").open("wb") as stderr:
            owned = await spawn(
                ("/bin/sh", "-c", script, "sh", *argv),
                owner=request.owner,
                kind="browser",
                env=_environment(request.work, temporary),
                cwd=request.work,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=stderr,
                pass_fds=(commands, answers, *(report.pass_fds if report else ())),
                removes=(temporary, request.work),
            )
    except BaseException:  # a cancelled start, too, leaves nobody who would report
        if report is not None:
            report.give_up()
        raise
    finally:
        os.close(commands)
        os.close(answers)
    stack.push_async_callback(end, owned)
    if report is not None:
        stack.push_async_callback(_let_go, report, owned)
        try:
            await report.settle(held.watch, "browser")
        except BrowserError as error:
            raise BrowserError(f"{error}{_said(request.work / 'stderr.log')}") from error
    if held.network is not None and held.proxy is not None:
        await held.proxy.start(await held.network.listen(PROXY))
    return owned


async def _let_go(report: Report, owned: Owned) -> None:
    """Let an enclosed browser end by itself, so that it is told what it used of the processor."""
    if report.close():
        with suppress(TimeoutError):
            await asyncio.wait_for(owned.process.wait(), _LET_GO_S)


def _port(address: str) -> int:
    """The port of host:port/path."""
    return int(address.partition("/")[0].rpartition(":")[2])


def _temporary(work: Path) -> Path:
    """A folder for temporary files whose path is short enough: in `work` if that can be."""
    name = f"bubench-{uuid.uuid4().hex[:16]}"
    places = (work / "tmp", Path(tempfile.gettempdir()) / name, Path("/tmp") / name)
    return next((p for p in places if len(os.fsencode(p)) <= _MAX_TMPDIR_BYTES), places[-1])


def _environment(work: Path, temporary: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if _ENVIRONMENT.fullmatch(name)}
    return {**kept, "HOME": str(work), "TMPDIR": str(temporary)}


async def _listening(owned: Owned, profile: Path, log: Path) -> str:
    """Wait until Chromium says where it listens: "127.0.0.1:PORT/devtools/browser/ID"."""
    file = profile / "DevToolsActivePort"
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _START_S
    while loop.time() < deadline:
        if file.exists() and (match := _PORT_FILE.fullmatch(file.read_text())):
            return f"127.0.0.1:{match[1]}{match[2]}"
        if owned.process.returncode is not None:
            why = f"ended with status {owned.process.returncode}"
            break
        await asyncio.sleep(0.01)
    else:
        why = f"did not listen within {_START_S:g} s"
    raise BrowserError(f"Chromium {why} (see `bubench doctor`){_said(log)}")


def _said(log: Path) -> str:
    """What a browser that did not start wrote at last."""
    lines = log.read_text(errors="replace").strip().splitlines()[-6:]
    return "; it said:\n  " + "\n  ".join(lines) if lines else ""


async def _first_page(cdp: CDP) -> str:
    targets: list[dict[str, Any]] = (await cdp.send("Target.getTargets", timeout_s=_START_S))[
        "targetInfos"
    ]
    pages = [target["targetId"] for target in targets if target["type"] == "page"]
    if not pages:
        raise BrowserError("Chromium opened no page")
    return pages[0]


async def _fit_viewport(cdp: CDP, target_id: str, wanted: tuple[int, int]) -> tuple[int, int]:
    """Resize the window until the page, without the window's own bars, has the wanted size.

    Returns the size that the page has in the end, which is what is recorded.
    """
    attach = {"targetId": target_id, "flatten": True}
    session: str = (await cdp.send("Target.attachToTarget", attach, timeout_s=_START_S))[
        "sessionId"
    ]
    window = await cdp.send("Browser.getWindowForTarget", {"targetId": target_id})
    size = (0, 0)
    for attempt in range(50):
        size = await page_size(cdp, session)
        if size == wanted:
            break
        if attempt == 0:
            bounds = window["bounds"]
            bounds = {
                "width": bounds["width"] + wanted[0] - size[0],
                "height": bounds["height"] + wanted[1] - size[1],
            }
            resize = {"windowId": window["windowId"], "bounds": bounds}
            await cdp.send("Browser.setWindowBounds", resize)
        await asyncio.sleep(0.01)
    await cdp.send("Target.detachFromTarget", {"sessionId": session})
    return size
