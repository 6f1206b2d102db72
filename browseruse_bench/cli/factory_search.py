"""`bubench factory search|compare|drift`: the prompt that labels tasks, and the labels behind it."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from browseruse_bench.cli import options

if TYPE_CHECKING:
    from browseruse_bench.factory.search.run import Asked
    from browseruse_bench.factory.workspace import Workspace
    from browseruse_bench.records.base import Record
    from browseruse_bench.report.render import Table

TELL_S = 2.0
"""The least time between two words about progress."""
_FILE = click.Path(path_type=Path, dir_okay=False, exists=True)


@click.command()
@click.option(
    "--method",
    type=click.Choice(["own", "gepa"]),
    default="own",
    show_default=True,
    help="Whose loop decides what is tried.",
)
@click.option(
    "--versions",
    type=options.positive,
    default=21,
    show_default=True,
    help="Versions of the prompt to try in all; may grow later.",
)
@click.option(
    "--variants",
    type=click.IntRange(1, 20),
    default=4,
    show_default=True,
    help="Versions that the proposer writes at a time.",
)
@click.option(
    "--look",
    type=options.positive,
    default=60,
    show_default=True,
    help="Tasks of the search part on which mistakes are looked for at a time.",
)
@click.option(
    "--recall-floor",
    type=click.FloatRange(0, 1),
    default=0.5,
    show_default=True,
    help="A version shown to find a smaller share of the suitable tasks is not chosen.",
)
@click.option("--first", type=_FILE, help="Prompt to begin with, instead of the shipped one.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--keep", is_flag=True, help="Leave the prompt of the workspace as it is.")
@options.workspace
@options.as_json
def search(
    method: str,
    versions: int,
    variants: int,
    look: int,
    recall_floor: float,
    first: Path | None,
    seed: int,
    keep: bool,
    workspace: Path,
    as_json: bool,
) -> None:
    """Search a prompt with which the labeller says what people said.

    The roles `labeller` and `proposer` of workspace.toml do the work. The same command goes on
    where it was stopped; nothing is paid twice.
    """
    from browseruse_bench.cli.loop import run_loop
    from browseruse_bench.errors import IncompleteError
    from browseruse_bench.factory.pipeline import utc_now
    from browseruse_bench.factory.search.bench import Limits
    from browseruse_bench.factory.search.report import sentences, tables
    from browseruse_bench.factory.search.run import deploy
    from browseruse_bench.factory.search.run import search as run_search
    from browseruse_bench.factory.workspace import Workspace

    limits = Limits(versions=versions, variants=variants, look=look, recall_floor=recall_floor)
    opened = Workspace.open(workspace)
    asked = _asked(opened, method=method, limits=limits, first=first, seed=seed)
    result = run_loop(run_search(asked))
    _show(result, sentences(result), tables(result), as_json=as_json)
    click.echo(f"report: {asked.folder / 'runs' / result.id / 'report.md'}", err=True)
    if result.outcome is None:
        raise IncompleteError(f"search {result.id}: {result.decision.sentence}")
    if not keep:
        deploy(workspace, asked, result, utc_now())
        click.echo(
            f"{result.outcome.id} is now the prompt of the workspace; `bubench factory run "
            "suitability` labels with it",
            err=True,
        )


def _asked(
    workspace: Workspace, *, method: str, limits: Any, first: Path | None, seed: int
) -> Asked:
    from browseruse_bench.factory.pipeline import opener
    from browseruse_bench.factory.search.chosen import named_prompt, search_folder
    from browseruse_bench.factory.search.run import Asked, labelled_examples
    from browseruse_bench.factory.workspace import CONFIG

    examples, people = labelled_examples(workspace, seed)
    open_model = opener(workspace)
    roles = {
        role: open_model(_role(workspace, role), f"{CONFIG}: [roles] {role}")
        for role in ("labeller", "proposer")
    }
    return Asked(
        folder=search_folder(workspace.path),
        examples=examples,
        people=people,
        labeller=roles["labeller"],
        proposer=roles["proposer"],
        first=named_prompt(workspace.path, "shipped" if first is None else str(first)),
        limits=limits,
        method=method,
        seed=seed,
        tell=lambda text: click.echo(text, err=True),
        asking=_Counter().tell,
    )


class _Counter:
    """Tells on stderr, at times, how many tasks were asked about."""

    def __init__(self) -> None:
        self._told = time.monotonic()

    def tell(self, done: int, of: int) -> None:
        """Tell of one more answer."""
        now = time.monotonic()
        if now - self._told >= TELL_S:
            self._told = now
            click.echo(f"[{done}/{of}] tasks asked about", err=True)


def _role(workspace: Workspace, role: str) -> str:
    from browseruse_bench.errors import ConfigError
    from browseruse_bench.factory.workspace import CONFIG

    name = workspace.config.roles.get(role)
    if name is None:
        raise ConfigError(f"{workspace.path / CONFIG}: [roles] names no {role}")
    return name


@click.command()
@click.argument("models", nargs=-1, required=True, metavar="MODEL...")
@click.option(
    "--prompt",
    default="chosen",
    show_default=True,
    metavar="chosen|shipped|FILE",
    help="The prompt that all get.",
)
@click.option(
    "--part",
    "parts",
    multiple=True,
    type=click.Choice(["search", "selection", "validation"]),
    help="Labels to compare on; several may be named.  [default: search and selection]",
)
@options.workspace
@options.as_json
def compare(
    models: tuple[str, ...], prompt: str, parts: tuple[str, ...], workspace: Path, as_json: bool
) -> None:
    """Compare models with one prompt on what people labelled: agreement, cost, leaning.

    A MODEL is a name of [models] in workspace.toml, or provider:name.
    """
    from browseruse_bench.cli.loop import run_loop
    from browseruse_bench.factory.pipeline import opener
    from browseruse_bench.factory.search.chosen import named_prompt, read_chosen, search_folder
    from browseruse_bench.factory.search.compare import compare as run_compare
    from browseruse_bench.factory.search.compare import sentences, tables
    from browseruse_bench.factory.search.run import labelled_examples
    from browseruse_bench.factory.workspace import Workspace

    opened = Workspace.open(workspace)
    examples, people = labelled_examples(opened, 0)
    wanted = set(parts or ("search", "selection"))
    open_model = opener(opened)
    chosen = read_chosen(opened.path)
    used = named_prompt(opened.path, prompt)
    found = run_loop(
        run_compare(
            search_folder(opened.path),
            [open_model(model, "MODEL") for model in models],
            used,
            [example for example in examples.all if example.part in wanted],
            people,
            tuned_for=chosen.model if chosen and chosen.prompt == used else None,
            tell=lambda text: click.echo(text, err=True),
            asking=_Counter().tell,
        )
    )
    _show(found, sentences(found), tables(found), as_json=as_json)


@click.command()
@options.workspace
@options.as_json
def drift(workspace: Path, as_json: bool) -> None:
    """Show how far labellers agree with themselves on what they labelled twice, blindly.

    Sealed labels stay sealed.
    """
    from browseruse_bench.errors import ConfigError
    from browseruse_bench.factory.labels.store import LabelStore
    from browseruse_bench.factory.search.drift import drift as read_drift
    from browseruse_bench.factory.search.drift import table
    from browseruse_bench.factory.workspace import Workspace

    store = LabelStore.of(Workspace.open(workspace))
    found = read_drift(store)
    if not found.labellers:
        raise ConfigError(
            f"{store.folder}: nobody has labelled a task twice; `bubench factory label "
            "--as NAME --recheck N` gives N of one's own tasks again, blindly"
        )
    _show(found, found.sentences, [table(found)], as_json=as_json)


def _show(value: Record, sentences: list[str], tables: list[Table], *, as_json: bool) -> None:
    from browseruse_bench.report.render import clean, show

    if as_json:
        click.echo(
            json.dumps(
                {**value.model_dump(mode="json"), "sentences": sentences},
                indent=2,
                ensure_ascii=False,
            )
        )
        return
    show(tables)
    for sentence in sentences:
        click.echo(clean(sentence))
