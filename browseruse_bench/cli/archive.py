"""`bubench archive`: record pages into a package, see a package again without a network, check it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from browseruse_bench.cli import options

if TYPE_CHECKING:
    from browseruse_bench.browsers.base import Backend

_browser_path = click.option(
    "--browser-path", type=click.Path(path_type=Path), help="Chromium to be started."
)
_guard = click.option(
    "--guard",
    type=click.Choice(["auto", "layered", "confined", "flags", "observed"]),
    default="auto",
    show_default=True,
    help="What keeps the browser from addresses inside.",
)
_exact = click.option(
    "--exact", is_flag=True, help="Miss also what differs only in a time or a random number."
)


@click.group("archive")
def command() -> None:
    """Record pages with all their traffic, and see them again without a network."""


@command.command("record")
@click.argument("urls", metavar="[URL]...", nargs=-1)
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    metavar="FILE.wacz",
    help="The package; nothing is overwritten.",
)
@click.option("--cdp-url", help="Record a browser that runs already, until Ctrl-C.")
@click.option(
    "--storage-state",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="A login, in Playwright's format; it is kept nowhere.",
)
@click.option("--body-limit", "body_mb", type=options.megabytes, default=64, show_default=True,
              metavar="MB", help="Longer answers pass without being kept.")  # fmt: skip
@_browser_path
@_guard
@options.as_json
def record(
    urls: tuple[str, ...],
    out: Path,
    cdp_url: str | None,
    storage_state: Path | None,
    body_mb: float,
    browser_path: Path | None,
    guard: Any,
    as_json: bool,
) -> None:
    """Open each URL in one fresh browser and keep all traffic, and each page as text, MHTML, PNG.

    Exit status 4 if a page could not be reached; the package is made all the same.
    """
    from browseruse_bench.benchmarks.show import as_json_text
    from browseruse_bench.browsers.archive.recording import Limits
    from browseruse_bench.browsers.archive.sessions import Wanted
    from browseruse_bench.browsers.archive.sessions import record as recorded
    from browseruse_bench.cli.loop import run_loop
    from browseruse_bench.errors import IncompleteError

    if not urls and cdp_url is None:
        raise click.UsageError("name a URL, or --cdp-url of a browser that is to be recorded")
    if cdp_url is not None:
        click.echo("recording; Ctrl-C ends it", err=True)
    done = run_loop(
        recorded(
            _backend(browser_path, guard, cdp_url),
            out,
            urls,
            wanted=Wanted(storage_state=storage_state),
            limits=Limits(body_bytes=int(body_mb * 2**20)),
            until=None if cdp_url is None else _interrupted(),
            told=lambda line: click.echo(line, err=as_json),
        )
    )
    if as_json:
        click.echo(as_json_text(done.as_json()))
    else:
        t = done.tally
        click.echo(
            f"{done.path}: {len(done.pages)} pages, {t.kept} answers, {done.n_bytes / 1e6:.2f} MB in "
            f"{done.seconds:.1f} s; not kept: {t.streams} streams, {t.too_large} too large, "
            f"{t.stalled} without an end, {t.lost} of pages that went away"
        )
    if done.unreachable:
        click.get_current_context().exit(IncompleteError.exit_status)


@command.command("replay")
@click.argument("archive", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--hold", is_flag=True,
              help="Keep the browser for --cdp-url of another program, until Ctrl-C.")  # fmt: skip
@_exact
@_browser_path
@_guard
@options.as_json
def replay(
    archive: Path, hold: bool, exact: bool, browser_path: Path | None, guard: Any, as_json: bool
) -> None:
    """Open every page of ARCHIVE again in a browser that has no network, and compare the texts.

    What the archive does not hold is a miss: an error for the page, counted and named. Exit status
    4 if there is one, or if a page shows another text.
    """
    from browseruse_bench.benchmarks.show import as_json_text
    from browseruse_bench.browsers.archive.sessions import replay_pages
    from browseruse_bench.cli.loop import run_loop
    from browseruse_bench.errors import IncompleteError

    backend = _backend(browser_path, guard, None)
    if hold:
        told = run_loop(_hold(backend, archive, exact=exact))
        click.echo(as_json_text(told) if as_json else _misses(told))
        return
    done = run_loop(
        replay_pages(backend, archive, exact=exact, told=lambda line: click.echo(line, err=as_json))
    )
    value = done.as_json()
    click.echo(as_json_text(value) if as_json else _misses(value))
    if not done.holds:
        click.get_current_context().exit(IncompleteError.exit_status)


@command.command("check")
@click.argument(
    "archives",
    metavar="ARCHIVE...",
    nargs=-1,
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
)
@options.as_json
def check(archives: tuple[Path, ...], as_json: bool) -> None:
    """Compare every record of each ARCHIVE (.wacz, .warc.gz) with its digests.

    Exit status 3 if one is torn or was changed; all of them are read.
    """
    from browseruse_bench.benchmarks.show import as_json_text
    from browseruse_bench.errors import ConfigError, DataError
    from browseruse_bench.store.archive.opened import Archive

    told: list[dict[str, Any]] = []
    for path in archives:
        try:
            with Archive.open(path) as found:
                told.append(
                    {
                        "archive": str(path),
                        "problems": [],
                        "records": found.n_records,
                        "answers": found.n_exchanges,
                        "bytes": found.n_bytes,
                        "pages": [{"key": k, "url": p.final_url} for k, p in found.pages.items()],
                    }
                )
        except (ConfigError, DataError) as error:
            problems = error.problems if isinstance(error, DataError) else (str(error),)
            told.append({"archive": str(path), "problems": list(problems)})
    if as_json:
        click.echo(as_json_text({"archives": told}))
    for one in () if as_json else told:
        for problem in one["problems"]:
            click.echo(problem, err=True)
        if not one["problems"]:
            click.echo(
                f"{one['archive']}: whole: {one['records']} records, {one['answers']} answers, "
                f"{len(one['pages'])} pages, {one['bytes'] / 1e6:.2f} MB"
            )
    if any(one["problems"] for one in told):
        click.get_current_context().exit(DataError.exit_status)


def _backend(browser_path: Path | None, guard: Any, cdp_url: str | None) -> Backend:
    from browseruse_bench.browsers.endpoint import CdpEndpoint
    from browseruse_bench.browsers.local import LocalChromium
    from browseruse_bench.browsers.options import BrowserOptions

    chosen = BrowserOptions(path=browser_path, guard=guard, cdp_url=cdp_url)
    return CdpEndpoint(chosen) if cdp_url is not None else LocalChromium(chosen)


async def _interrupted() -> None:
    """Wait for Ctrl-C or the signal to stop, which then stop nothing else."""
    import asyncio
    import signal

    loop, told = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, told.set)
    await told.wait()


async def _hold(backend: Backend, path: Path, *, exact: bool) -> dict[str, Any]:
    import asyncio

    from browseruse_bench.browsers.archive.sessions import replaying
    from browseruse_bench.store.archive.opened import Archive

    with await asyncio.to_thread(Archive.open, path) as archive:
        async with replaying(backend, archive, exact=exact) as (session, replay):
            click.echo(f"{session.http_url} answers from {path}; Ctrl-C ends it", err=True)
            await _interrupted()
        return {"archive": str(path), **replay.tally.as_json()}


def _misses(told: dict[str, Any]) -> str:
    lines = [f"miss ({m['why']}): {m['method']} {m['url']} ({m['n']})" for m in told["misses"]]
    lines += [f"loosely: {m['asked']} got {m['answered']} ({m['n']})" for m in told["loosely"]]
    lines.append(
        f"{told['archive']}: {told['served']} requests answered, {told['served_loosely']} of them "
        f"loosely; {told['missed']} missed"
    )
    return "\n".join(lines)
