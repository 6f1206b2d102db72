"""`bubench gateway`: one model for any agent on this machine, with a budget and a ledger."""

from __future__ import annotations

from pathlib import Path

import click

from browseruse_bench.cli import options


@click.command("gateway")
@click.option("--model", required=True, help="Model, as provider:name or a name of bubench.toml.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    show_default=True,
    help="Port of 127.0.0.1; 0: any that is free.",
)
@click.option("--budget-usd", type=options.usd, help="What its calls may cost in all, in USD.")
@click.option(
    "--token-file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the token there, for this user alone, instead of printing it.",
)
@click.option(
    "--calls",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("experiments") / "calls",
    show_default=True,
    help="Folder in which each call is kept.",
)
@click.option(
    "--replay",
    is_flag=True,
    help="Answer only what an agent asked before, from --calls; no key, no cost.",
)
@click.option("--json", "as_json", is_flag=True, help="Tell of it in lines of JSON.")
def command(
    model: str,
    port: int,
    budget_usd: float | None,
    token_file: Path | None,
    calls: Path,
    replay: bool,
    as_json: bool,
) -> None:
    """Forward calls to a model for an agent outside: OpenAI's, Anthropic's and Google's wires.

    It prints where to ask and the token that opens it, and goes on until Ctrl-C. The agent never
    sees the provider's key. Exit status 5 if a call was refused for --budget-usd.
    """
    from browseruse_bench.cli.gatekeeping import Wanted, serve
    from browseruse_bench.cli.loop import leave, run_loop

    wanted = Wanted(
        model=model,
        port=port,
        budget_usd=budget_usd,
        token_file=token_file,
        calls=calls,
        replay=replay,
        as_json=as_json,
    )
    leave(run_loop(serve(wanted)))
