"""Options that several verbs have, and how their values are read."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click


def split_commas(
    _ctx: click.Context, _param: click.Parameter, value: tuple[str, ...]
) -> tuple[str, ...]:
    """`--x a,b --x c` as ("a", "b", "c"); `--x ,` names nothing and is refused, not left out."""
    found = tuple(part.strip() for text in value for part in text.split(",") if part.strip())
    if value and not found:
        raise click.BadParameter(f"{', '.join(map(repr, value))} names nothing")
    return found


experiments = click.option(
    "--experiments",
    type=click.Path(path_type=Path),
    default=Path("experiments"),
    show_default=True,
    help="Where runs are kept.",
)
workspace = click.option(
    "--workspace",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    show_default="the current folder",
    help="Folder with workspace.toml.",
)


def _one_form(ctx: click.Context, param: click.Parameter, value: bool) -> bool:
    """`--json --markdown` is refused, rather than one of them left out."""
    other = "as_markdown" if param.name == "as_json" else "as_json"
    if value and ctx.params.get(other):
        raise click.UsageError("give one of --json and --markdown")
    return value


as_json = click.option(
    "--json", "as_json", is_flag=True, callback=_one_form, help="Print the result as JSON."
)
as_markdown = click.option(
    "--markdown", "as_markdown", is_flag=True, callback=_one_form, help="Print it as Markdown."
)


class _Amount(click.FloatRange):
    """A number above 0; `nan` and `inf`, which every comparison lets through, are none."""

    def __init__(self, unit: str, *, below: float | None = None, zero: bool = False) -> None:
        super().__init__(min=0, min_open=not zero, max=below, max_open=below is not None)
        self._unit = unit

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        number = super().convert(value, param, ctx)
        if not 0 <= number < float("inf"):
            self.fail(f"{value!r} is not a number of {self._unit}", param, ctx)
        return number


as_html = click.option(
    "--html",
    "html_file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Also write it as one HTML file, with pictures and without scripts.",
)
as_plot = click.option(
    "--plot",
    "plot_file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Also draw the scores as a .png or .svg file (needs the extra 'plots').",
)

positive = click.IntRange(min=1)
seconds = _Amount("seconds")
usd = _Amount("USD")
gigabytes = _Amount("GB")
percent = _Amount("percent", below=100)
factor = _Amount("times", zero=True)
megabytes = _Amount("MB")


def judges(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that name who reads rubrics, and how; the command gets them as `judging`, a
    `cli.judges.JudgeOptions`.
    """

    @functools.wraps(command)
    def with_judging(**given: Any) -> Any:
        from browseruse_bench.cli.judges import JudgeOptions

        names = ["judge", "panel", "per_item", "evidence", "judge_all", "judge_budget_usd", "batch"]
        judging = JudgeOptions(**{name: given.pop(name) for name in names})
        return command(judging=judging, **given)

    return functools.reduce(lambda made, option: option(made), reversed(_JUDGES), with_judging)


_JUDGES = (
    click.option(
        "--judge",
        metavar="MODEL",
        help="Model that reads rubrics, as provider:name or a name of bubench.toml; a "
        "benchmark's own evaluator asks it too.",
    ),
    click.option(
        "--panel",
        multiple=True,
        callback=split_commas,
        metavar="M1,M2,M3",
        help="Several judges that vote on each item.",
    ),
    click.option("--per-item", is_flag=True, help="One call for each item instead of one for all."),
    click.option(
        "--evidence",
        type=click.Choice(["whole", "divide"]),
        default="whole",
        show_default=True,
        help="Show the whole trace, or rate its pieces first and show each item its best ones.",
    ),
    click.option(
        "--judge-all",
        is_flag=True,
        help="The judge decides the items that have a check too; otherwise code decides those, "
        "and the judge the others and what is honest.",
    ),
    click.option(
        "--judge-budget-usd",
        type=usd,
        help="What the judges of this run may cost in all, in USD; held before each call.",
    ),
    click.option(
        "--batch",
        type=click.Path(path_type=Path, file_okay=False),
        metavar="FOLDER",
        help="Ask nobody now: collect the judges' calls there, to be answered together "
        "(`bubench models batch`).",
    ),
)
