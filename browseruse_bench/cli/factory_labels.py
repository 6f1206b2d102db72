"""`bubench factory label|labels|split|unseal`: what people say of tasks, and what stays sealed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from browseruse_bench.cli import options

if TYPE_CHECKING:
    from browseruse_bench.factory.labels.chain import Head
    from browseruse_bench.factory.labels.notice import Candidate
    from browseruse_bench.factory.labels.store import LabelStore
    from browseruse_bench.factory.search.labeller import Prompt
    from browseruse_bench.factory.workspace import Workspace
    from browseruse_bench.records.base import Record

_FILE = click.Path(path_type=Path, dir_okay=False, exists=True)


def _store(path: Path) -> LabelStore:
    from browseruse_bench.factory.labels.store import LabelStore
    from browseruse_bench.factory.workspace import Workspace

    return LabelStore.of(Workspace.open(path))


@click.command()
@click.option("--as", "labeller", required=True, metavar="NAME", help="Who labels.")
@click.option(
    "--recheck",
    type=options.positive,
    metavar="N",
    help="Label N of your own tasks again, blindly, to see whether your word still holds.",
)
@click.option("--no-reasons", is_flag=True, help="Save labels without a written reason too.")
@options.workspace
def label(labeller: str, recheck: int | None, no_reasons: bool, workspace: Path) -> None:
    """Label tasks in this terminal, key by key; leave at any moment, and go on later.

    What others said is not shown. Every label is on disk once Enter is pressed.
    """
    import time

    from browseruse_bench.cli.factory_labelling import label_here
    from browseruse_bench.errors import ConfigError
    from browseruse_bench.factory.labels.session import Session

    store = _store(workspace)
    if not store.tasks:
        raise ConfigError(
            f"{store.folder}: no task is here to be labelled; `bubench factory labels sample N` "
            "draws some"
        )
    session = Session(
        store,
        labeller,
        monotonic=time.monotonic,
        needs_reason=not no_reasons,
        rechecks=recheck or 0,
    )
    label_here(session)
    rate = session.rate
    told = "" if rate.per_hour is None else f", {rate.per_hour:.0f} an hour"
    click.echo(f"{rate.n_saved} labels saved now{told}; {_left(session.progress)}")


def _left(progress: Any) -> str:
    return (
        f"{progress.n_given} of {progress.n_wanted} wanted labels are there, "
        f"{progress.n_left_for_me} are left for you"
    )


@click.group()
def labels() -> None:
    """Draw tasks to label, import labels, and report on them."""


@labels.command()
@click.argument("n", type=options.positive, metavar="N")
@click.option("--seed", type=int, help="Of the chance.  [default: seed of workspace.toml]")
@click.option(
    "--by",
    type=click.Choice(["count", "length", "month"]),
    help="Draw by strata, evenly, instead of uniformly; figures are weighted back.",
)
@click.option(
    "--share",
    "shares",
    multiple=True,
    metavar="STRATUM=SHARE",
    help="With --by: this share of the sample from this stratum.",
)
@click.option(
    "--twice",
    type=click.FloatRange(0, 1),
    default=0.2,
    show_default=True,
    help="Share of the tasks that two people are to label.",
)
@options.workspace
@options.as_json
def sample(
    n: int,
    seed: int | None,
    by: Any,
    shares: tuple[str, ...],
    twice: float,
    workspace: Path,
    as_json: bool,
) -> None:
    """Have N tasks in all labelled, drawn at random from what the filter kept.

    A larger N with the same seed adds to the sample; what was drawn stays.
    """
    from browseruse_bench.errors import ConfigError
    from browseruse_bench.factory.labels.sample import add_draw, draw
    from browseruse_bench.factory.labels.store import LabelStore
    from browseruse_bench.factory.pipeline import open_pipeline
    from browseruse_bench.records.candidate import Candidate

    if shares and by is None:
        raise ConfigError("--share: of which strata is said by --by")
    pipeline = open_pipeline(workspace)
    first = pipeline.steps[0]
    if not pipeline.folder(first).path.exists():
        raise ConfigError(
            f"stage {first.name} never ran here; `bubench factory run {first.name}` does it"
        )
    chosen = pipeline.workspace.config.seed if seed is None else seed
    given = _shares(shares)
    tasks = (task for task in _told(pipeline.kept(first)) if isinstance(task, Candidate))
    drawn = draw(tasks, n, seed=chosen, by=by, shares=given)
    store = LabelStore.of(pipeline.workspace)
    added = add_draw(store, drawn, twice=twice)
    strata = {
        name: {"tasks": s.n_all, "drawn": len(s.keys), "weight": s.weight}
        for name, s in drawn.draw.strata.items()
    }
    if as_json:
        click.echo(json.dumps({"n": len(drawn.tasks), "n_new": len(added), "strata": strata}))
        return
    for name, s in strata.items():
        click.echo(f"{name}: {s['drawn']} of {s['tasks']}, each stands for {s['weight']:.1f}")
    click.echo(
        f"{len(drawn.tasks)} tasks are in the sample, {len(added)} of them new; "
        "`bubench factory label --as NAME` labels them"
    )


def _told(units: Iterable[Record]) -> Iterator[Record]:
    """The units; every million of them is told of on stderr."""
    for n, unit in enumerate(units, 1):
        if n % 1_000_000 == 0:
            click.echo(f"{n // 1_000_000} million tasks read", err=True)
        yield unit


def _shares(given: tuple[str, ...]) -> dict[str, float]:
    from browseruse_bench.errors import ConfigError

    found: dict[str, float] = {}
    for text in given:
        name, _, share = text.rpartition("=")
        try:
            found[name] = float(share)
        except ValueError:
            raise ConfigError(f"--share {text}: give STRATUM=SHARE, as in 100+=0.5") from None
    return found


@labels.command("import")
@click.argument("file", type=_FILE)
@click.option(
    "--tag",
    "tags",
    multiple=True,
    metavar="THEIRS=OURS",
    help="What a tag of the file is called here; `hard` as ours says that the task is hard.",
)
@click.option(
    "--want",
    type=options.positive,
    default=1,
    show_default=True,
    help="So many people are to label each of these tasks.",
)
@options.workspace
@options.as_json
def import_labels(
    file: Path, tags: tuple[str, ...], want: int, workspace: Path, as_json: bool
) -> None:
    """Take labels from a file: CSV, JSON lines or a JSON list.

    Shown is how far the labellers of the file agree, on all of it; from then on the sealed tenth
    is in no figure.
    """
    from browseruse_bench.factory.labels.importing import add, read_labels
    from browseruse_bench.factory.labels.report import pairs
    from browseruse_bench.factory.labels.report_text import confusion, pair_table
    from browseruse_bench.factory.labels.store import utc_now
    from browseruse_bench.report.render import counts, show

    store = _store(workspace)
    read = read_labels(file, tags=_tags(tags), at=utc_now())
    done = add(store, read, wanted=want)
    agreeing = pairs(read.labels)
    if as_json:
        value = {
            **{
                name: getattr(done, name) for name in ("n_tasks", "n_labels", "n_known", "n_sealed")
            },
            "other_tags": dict(read.other_tags),
            "pairs": [pair.model_dump(mode="json") for pair in agreeing],
        }
        click.echo(json.dumps(value, indent=2))
        return
    if agreeing:
        tables = [confusion(f"{p.one} (rows) and {p.other}", p.agreement) for p in agreeing]
        show([pair_table(agreeing, None), *tables])
    click.echo(
        f"{file}: {done.n_labels} labels came in, {done.n_sealed} of them sealed, for "
        f"{len(read.tasks)} tasks ({done.n_tasks} new); {done.n_known} were here already"
    )
    if read.other_tags:
        told = counts(dict(read.other_tags))
        click.echo(f"tags that are none of ours, kept beside: {told} (--tag THEIRS=OURS maps)")


def _tags(given: tuple[str, ...]) -> dict[str, str]:
    from browseruse_bench.errors import ConfigError
    from browseruse_bench.factory.labels.importing import HARD
    from browseruse_bench.records.label import REASON_TAGS

    found: dict[str, str] = {}
    for text in given:
        theirs, _, ours = text.partition("=")
        if ours not in (*REASON_TAGS, HARD):
            known = ", ".join((*REASON_TAGS, HARD))
            raise ConfigError(f"--tag {text}: give THEIRS=OURS, ours being one of {known}")
        found[theirs] = ours
    return found


@labels.command()
@options.workspace
@options.as_json
def report(workspace: Path, as_json: bool) -> None:
    """Show who labelled what, how far people agree, and how much of the corpus is suitable."""
    from browseruse_bench.errors import ConfigError
    from browseruse_bench.factory.labels.report import label_report
    from browseruse_bench.factory.labels.report_text import tables
    from browseruse_bench.report.render import show

    store = _store(workspace)
    if not store.given():
        raise ConfigError(
            f"{store.folder}: nothing is labelled yet: `bubench factory label --as NAME`"
        )
    found = label_report(store)
    if as_json:
        click.echo(json.dumps(found.model_dump(mode="json"), indent=2, ensure_ascii=False))
    else:
        show(tables(found))


@click.command()
@click.option(
    "--freeze", is_flag=True, help="Freeze the rule now, before the first task; it never changes."
)
@click.option("--salt", default="", help="With --freeze: another split of the same texts.")
@click.option("--development", type=click.FloatRange(0, 1, True, True), default=0.8)
@click.option("--validation", type=click.FloatRange(0, 1, True, True), default=0.1)
@click.option(
    "--search",
    type=click.FloatRange(0, 1, True, True),
    default=0.5,
    help="Share of development that is searched on; the rest selects.",
)
@options.workspace
@options.as_json
def split(
    freeze: bool,
    salt: str,
    development: float,
    validation: float,
    search: float,
    workspace: Path,
    as_json: bool,
) -> None:
    """Show how tasks are split: by a hash of their text, frozen.

    The first drawn or imported task freezes the default rule: 80 % development, 10 % validation,
    10 % sealed.
    """
    from pydantic import ValidationError

    from browseruse_bench.errors import ConfigError
    from browseruse_bench.factory.labels.split import Rule

    store = _store(workspace)
    if freeze:
        try:
            rule = Rule(salt=salt, development=development, validation=validation, search=search)
        except ValidationError as error:
            raise ConfigError(f"--development, --validation: {error.errors()[0]['msg']}") from None
        store.freeze(rule)
    found = store.split
    n = {"search": 0, "selection": 0}
    for task in store.tasks.values():
        if found.part_of_hash(task.text_hash) == "development":
            n[found.half_of_hash(task.text_hash)] += 1
    value = {"rule": found.rule.as_json(), "frozen": found.path.exists(), "tasks": found.counts}
    if as_json:
        click.echo(json.dumps({**value, "development": n}, indent=2))
        return
    click.echo(f"rule: {found.rule.as_line()}")
    click.echo(f"lock: {found.path if found.path.exists() else 'not frozen yet'}")
    for part, count in found.counts.items():
        more = f" ({n['search']} search, {n['selection']} selection)"
        click.echo(f"{part}: {count}{more if part == 'development' else ''}")


@click.command()
@click.option(
    "--prompt",
    default="chosen",
    show_default=True,
    metavar="chosen|shipped|FILE",
    help="The prompt whose verdicts are compared with the sealed labels.",
)
@click.option(
    "--among",
    multiple=True,
    type=_FILE,
    metavar="FILE",
    help="A prompt that it was chosen from; several may be named.  [default: what the search tried]",
)
@click.option("--model", help="Name of [models], or provider:name.  [default: the role labeller]")
@click.option(
    "--again", default="", metavar="WHY", help="Look at labels that other candidates have seen."
)
@click.option(
    "--moved", default="", metavar="WHY", help="Own up that the folder is at another place."
)
@click.option("--check", is_flag=True, help="Look at nothing; say whether all is as it was left.")
@click.option(
    "--receipt", "receipts", multiple=True, metavar="N:HASH", help="With --check: of earlier looks."
)
@options.workspace
@options.as_json
def unseal(check: bool, receipts: tuple[str, ...], workspace: Path, as_json: bool, **given: Any):  # noqa: ANN201  a click command
    """Compare a prompt with the sealed labels: once, and on the record.

    A second look at the same candidates is refused, under whatever name. It is recorded in
    restricted/labels/unsealed.jsonl and noted outside of the workspace.
    """
    from browseruse_bench.factory.labels.report_text import look_sentences, look_tables
    from browseruse_bench.factory.workspace import Workspace
    from browseruse_bench.report.render import show

    opened = Workspace.open(workspace)
    if check:
        _check(workspace, receipts, as_json=as_json)
        return
    found = _look(opened, **given)
    if as_json:
        value = {
            "opened": found.opened.model_dump(mode="json"),
            "result": found.result.model_dump(mode="json"),
            "receipt": f"{found.receipt.n}:{found.receipt.chain}",
            "witness": None if found.witness is None else str(found.witness),
            "sentences": look_sentences(found),
        }
        click.echo(json.dumps(value, indent=2))
        return
    show(look_tables(found))
    for sentence in look_sentences(found):
        click.echo(sentence)


def _look(
    workspace: Workspace,
    *,
    prompt: str,
    among: tuple[Path, ...],
    model: str | None,
    again: str,
    moved: str,
) -> Any:
    from browseruse_bench.cli.loop import run_loop
    from browseruse_bench.factory.labels.asking import verdicts_of
    from browseruse_bench.factory.labels.gate import admit, look, sealed_tasks
    from browseruse_bench.factory.labels.store import LabelStore
    from browseruse_bench.factory.pipeline import opener
    from browseruse_bench.factory.search.run import refuse_uncleared
    from browseruse_bench.factory.workspace import CONFIG

    store = LabelStore.of(workspace)
    named = model or _role(workspace)
    where = f"{CONFIG}: [roles] labeller" if model is None else "--model"
    asked = opener(workspace)(named, where)
    refuse_uncleared(asked)
    used, what = _candidate(workspace, prompt, among, asked.id.label)
    # Before anything is paid for.
    cut_off = admit(store, what, again=again, moved=moved)
    said = {}
    if not cut_off:
        tasks = sealed_tasks(store)
        click.echo(f"{asked.id.label} is asked of {len(tasks)} sealed tasks", err=True)
        said = run_loop(verdicts_of(asked, used, tasks))
    return look(store, what, said, again=again, moved=moved)


def _role(workspace: Workspace) -> str:
    from browseruse_bench.errors import ConfigError
    from browseruse_bench.factory.workspace import CONFIG

    name = workspace.config.roles.get("labeller")
    if name is None:
        raise ConfigError(f"{workspace.path / CONFIG}: [roles] names no labeller; or --model")
    return name


def _candidate(
    workspace: Workspace, prompt: str, among: tuple[Path, ...], model: str
) -> tuple[Prompt, Candidate]:
    from browseruse_bench.factory.labels.gate import candidate
    from browseruse_bench.factory.search.chosen import named_prompt, read_chosen

    used = named_prompt(workspace.path, prompt)
    others = [named_prompt(workspace.path, str(path)).text for path in among]
    chosen = read_chosen(workspace.path)
    if chosen is not None and used.text in (chosen.prompt.text, *chosen.among):
        others += chosen.among
    return used, candidate(used.text, name=prompt, model=model, among=others)


def _check(workspace: Path, receipts: tuple[str, ...], *, as_json: bool) -> None:
    from browseruse_bench.errors import DataError
    from browseruse_bench.factory.labels.gate import CANNOT
    from browseruse_bench.factory.labels.notice import noticed

    store = _store(workspace)
    problems = noticed(store, [_receipt(text) for text in receipts])
    if as_json:
        click.echo(json.dumps({"noticed": list(problems), "cannot": CANNOT}, indent=2))
    elif not problems:
        click.echo(f"{store.folder}: all is as it was left. {CANNOT}")
    if problems:
        raise DataError(problems)


def _receipt(text: str) -> Head:
    from pydantic import ValidationError

    from browseruse_bench.errors import ConfigError
    from browseruse_bench.factory.labels.chain import Head

    n, _, chain = text.partition(":")
    try:
        return Head.model_validate({"n": n, "chain": chain})
    except ValidationError:
        raise ConfigError(f"--receipt {text}: give N:HASH, as the look printed it") from None
