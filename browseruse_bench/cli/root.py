"""The root command, and the one place where errors become exit statuses."""

from __future__ import annotations

import importlib
import keyword
import os
import sys
import traceback
from pathlib import Path
from typing import Any

import click

VERBS = (
    "run",
    "eval",
    "grade",
    "serve-reward",
    "export",
    "report",
    "leaderboard",
    "import",
    "compare",
    "stability",
    "redteam",
    "agreement",
    "list",
    "benchmark",
    "rubric",
    "facts",
    "archive",
    "agents",
    "models",
    "gateway",
    "factory",
    "demo",
    "doctor",
)
"""Each is `browseruse_bench.cli.<verb>`, with a command named `command`; of `import` it is
`import_`, of `serve-reward` `serve_reward`."""


class _Root(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        # A verb that is a word of Python has its module under that word and "_".
        module = f"{cmd_name}_" if keyword.iskeyword(cmd_name) else cmd_name.replace("-", "_")
        return importlib.import_module(f"browseruse_bench.cli.{module}").command

    def invoke(self, ctx: click.Context) -> Any:
        try:
            _know_secrets_of(Path(".env"))
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except KeyboardInterrupt:
            click.echo("bubench: interrupted", err=True)
            ctx.exit(130)
        except BrokenPipeError:
            # The reader went away (`bubench list | head`): nothing is left to say.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(141)
        except Exception as error:  # noqa: BLE001  the one place where errors become statuses
            from browseruse_bench.errors import BenchError
            from browseruse_bench.store.redact import Redactor

            said = Redactor.of_environment().said
            if ctx.params.get("debug") or not isinstance(error, (BenchError, OSError)):
                # Python's own words about the error would show what it holds.
                click.echo(said("".join(traceback.format_exception(error))), err=True, nl=False)
                ctx.exit(1)
            click.echo(said(f"bubench: {error}"), err=True)
            ctx.exit(error.exit_status if isinstance(error, BenchError) else 1)


def _know_secrets_of(file: Path) -> None:
    """Have every secret of a .env file redacted, also those that this command does not use."""
    if not os.access(file, os.R_OK):
        return
    from browseruse_bench.models.spec import read_env
    from browseruse_bench.store.redact import register, secrets_of

    for secret in secrets_of(read_env(file)):
        register(secret)


@click.group(cls=_Root, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.version_option(package_name="browseruse-bench", prog_name="bubench")
def bubench(debug: bool) -> None:
    """Run browser agents on benchmarks, judge their traces, compare them honestly."""
