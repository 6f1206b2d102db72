"""A search in a workspace: who labels and proposes, where it is kept, and what it came to.

    restricted/search/
      answers.jsonl  proposals.jsonl     what models said, of all searches
      chosen.json                        the prompt of the workspace
      runs/<id>/ search.json versions.jsonl result.json report.md

The id is a hash of everything that decides: the same command goes on with the same search, other
labels or another method make another one beside it. Nothing is paid twice.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from browseruse_bench.errors import ConfigError
from browseruse_bench.factory.labels.store import LabelStore
from browseruse_bench.factory.search import SEARCHES
from browseruse_bench.factory.search.bench import (
    Answer,
    Bench,
    Brief,
    Limits,
    PromptSearch,
    Proposal,
)
from browseruse_bench.factory.search.book import Book, Proposed, total
from browseruse_bench.factory.search.chosen import Chosen, write_chosen
from browseruse_bench.factory.search.examples import Example, Examples
from browseruse_bench.factory.search.labelled import People, examples_of, people
from browseruse_bench.factory.search.labeller import Prompt
from browseruse_bench.factory.search.report import markdown
from browseruse_bench.factory.search.result import (
    Result,
    Settings,
    decided,
    outcome,
    version_of,
)
from browseruse_bench.factory.workspace import Workspace
from browseruse_bench.models.base import Model
from browseruse_bench.models.locks import FileLock
from browseruse_bench.store.files import write_atomic, write_json


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What a search works with."""

    folder: Path
    """restricted/search of the workspace."""
    examples: Examples
    people: People
    labeller: Model
    proposer: Model
    first: Prompt
    limits: Limits
    method: str = "own"
    seed: int = 0
    tell: Callable[[str], None] = lambda text: None
    """Told of each version."""
    asking: Callable[[int, int], None] = lambda done, of: None
    """Told how many of how many tasks a labeller was asked about."""

    @property
    def settings(self) -> Settings:
        """All that makes it another search."""
        return Settings(
            method=self.method,
            seed=self.seed,
            labeller=self.labeller.id.key,
            proposer=self.proposer.id.key,
            examples=self.examples.digest,
            first=self.first.key,
            limits=self.limits.model_copy(update={"versions": 1}),
        )


def refuse_uncleared(*models: Model) -> None:
    """Every model may see what people submitted; said before the first call is paid.

    Raises:
        ConfigError: one may not.
    """
    for model in models:
        if model.may_see != "restricted":
            raise ConfigError(
                f"model {model.id.label} is to read tasks before personal data is replaced, and is "
                'not cleared for that: give it may_see = "restricted" in workspace.toml, if it is'
            )


@contextmanager
def alone(folder: Path) -> Generator[None]:
    """Nobody else writes to the books meanwhile.

    Raises:
        ConfigError: somebody does.
    """
    lock = FileLock.take(folder / ".lock")
    if lock is None:
        raise ConfigError(f"{folder}: a search or comparison is under way here; wait for its end")
    try:
        yield
    finally:
        lock.release()


def labelled_examples(workspace: Workspace, seed: int) -> tuple[Examples, People]:
    """The labels of a workspace that are not sealed.

    Raises:
        ConfigError: there are none.
    """
    store = LabelStore.of(workspace)
    found = examples_of(store, seed=seed)
    if not found.all:
        raise ConfigError(
            f"{store.folder}: no task is labelled yet: `bubench factory label` does it, and "
            "`bubench factory labels import` takes what was labelled elsewhere"
        )
    return found, people(store)


async def search(asked: Asked) -> Result:
    """The search has ended, and is written down; the chosen version too.

    Raises:
        IncompleteError: a provider did not answer; the same search goes on later.
        BudgetError: the budget was reached; likewise.
    """
    refuse_uncleared(asked.labeller, asked.proposer)
    method: PromptSearch = SEARCHES.get(asked.method)()
    with alone(asked.folder):
        book = Book(asked.folder)
        label = partial(book.label, asked.labeller, tell=asked.asking)
        proposed: list[Proposed] = []

        async def propose(brief: Brief) -> list[Proposal]:
            proposed.append(await book.propose(asked.proposer, brief))
            return proposed[-1].proposals

        run = asked.folder / "runs" / asked.settings.id
        write_json(run / "search.json", asked.settings.as_json())
        bench = Bench(
            examples=asked.examples,
            label=label,
            propose=propose,
            first=asked.first.text,
            limits=asked.limits,
            tell=asked.tell,
            added=lambda bench: _write_versions(run, bench),
        )
        await method.search(bench, seed=asked.seed)
        decision = decided(bench)
        for version in sorted(_to_validate(bench, decision.chosen)):
            # Only of these two, and only now: nothing can be chosen by them.
            await label(version, asked.examples.part("validation"))
        result = _result(asked, bench, book, proposed)
        write_json(run / "result.json", result.model_dump(mode="json"))
        write_atomic(run / "report.md", markdown(result))
        return result


def deploy(workspace: Path, asked: Asked, result: Result, at: str) -> Chosen | None:
    """The chosen version is the prompt of the workspace; None: none was chosen."""
    if result.outcome is None:
        return None
    text = next(v.text for v in result.versions if v.id == result.outcome.id)
    chosen = Chosen(
        prompt=Prompt(text=text),
        search=result.id,
        model=asked.labeller.id.label,
        model_key=asked.labeller.id.key,
        decision=result.decision.sentence,
        selection=result.outcome.selection,
        validation=result.outcome.validation,
        among=tuple(v.text for v in result.versions),
        at=at,
    )
    write_chosen(workspace, chosen)
    return chosen


def _to_validate(bench: Bench, chosen: str | None) -> set[str]:
    """Texts of the chosen and the first version; none, where none was chosen."""
    if chosen is None:
        return set()
    return {version.text for version in bench.versions if version.id == chosen} | {
        bench.versions[0].text
    }


def _write_versions(run: Path, bench: Bench) -> None:
    """The ledger of versions, in the order in which they were tried."""
    lines = [version_of(v, len(bench.selection)).as_line() for v in bench.versions]
    write_atomic(run / "versions.jsonl", "".join(f"{line}\n" for line in lines))


def _result(asked: Asked, bench: Bench, book: Book, proposed: Sequence[Proposed]) -> Result:
    def known(text: str, examples: Sequence[Example]) -> list[Answer]:
        prompt = Prompt(text=text)
        lines = [book.find(prompt, asked.labeller, e.key) for e in examples]
        return [line.answer for line in lines if line is not None]

    decision = decided(bench)
    return Result(
        id=asked.settings.id,
        method=asked.method,
        labeller=asked.labeller.id.label,
        proposer=asked.proposer.id.label,
        counts=asked.examples.counts,
        n_split=asked.examples.n_split,
        people=asked.people,
        decision=decision,
        versions=tuple(version_of(v, len(bench.selection)) for v in bench.versions),
        outcome=outcome(bench, decision, known),
        n_proposals=len(proposed),
        n_proposals_silent=sum(p.silence is not None for p in proposed),
        cost_usd=total(
            [
                *book.costs({Prompt(text=v.text).key for v in bench.versions}, asked.labeller),
                *(p.cost_usd for p in proposed),
            ]
        ),
    )
