"""Which tasks people label: a seeded uniform sample, or one by strata with weights.

A task is drawn if its hash under the seed is among the smallest, so that the order of the corpus
does not matter, a larger sample with the same seed holds the smaller one, and memory is that of
the sample. In a sample by strata each task stands for as many as its stratum has for each drawn:
figures with these weights are figures of the whole corpus.
"""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from pydantic import Field, ValidationError

from browseruse_bench.errors import ConfigError, DataError
from browseruse_bench.factory.labels.chain import locked
from browseruse_bench.factory.labels.lines import LabelTask, new_task
from browseruse_bench.factory.labels.store import LabelStore
from browseruse_bench.records.base import Record
from browseruse_bench.records.candidate import Candidate
from browseruse_bench.store.journal import Journal, read_journal

By = Literal["count", "length", "month"]
BYS: tuple[By, ...] = get_args(By)
ALL = "all"
DRAWS = "draws.jsonl"


def _all(task: Candidate) -> str:
    del task
    return ALL


def _count(task: Candidate) -> str:
    for low, name in ((100, "100+"), (10, "10-99"), (2, "2-9")):
        if task.count >= low:
            return name
    return "1"


def _length(task: Candidate) -> str:
    for low, name in ((1000, "1000+"), (300, "300-999"), (100, "100-299")):
        if len(task.text) >= low:
            return name
    return "under 100"


def _month(task: Candidate) -> str:
    return (task.first_seen or "no time")[:7]


_STRATA: Mapping[By, Callable[[Candidate], str]] = {
    "count": _count,
    "length": _length,
    "month": _month,
}


class Stratum(Record):
    """What a draw took of a stratum."""

    n_all: int = Field(ge=1)
    """Tasks in it."""
    keys: tuple[str, ...]
    """Of the drawn ones, by hash."""

    @property
    def weight(self) -> float:
        """So many tasks of the corpus each drawn one stands for."""
        return self.n_all / len(self.keys)


class Draw(Record):
    """A line of draws.jsonl; the last one is the sample that counts."""

    seed: int
    n: int
    """Tasks that were asked for."""
    by: By | None = None
    strata: dict[str, Stratum]
    at: str = ""

    @property
    def weights(self) -> dict[str, float]:
        """Key of a drawn task -> its weight."""
        return {key: s.weight for s in self.strata.values() for key in s.keys}

    @property
    def stratum_of(self) -> dict[str, str]:
        """Key of a drawn task -> its stratum."""
        return {key: name for name, s in self.strata.items() for key in s.keys}


def hashed(seed: int, key: str, purpose: str = "draw") -> float:
    """Chance in 0..1 that is the same for a seed, a key and a purpose each time."""
    digest = hashlib.sha256(f"{purpose}\0{seed}\0{key}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


@dataclass
class _Smallest:
    """The n tasks with the smallest hashes of a stratum, and how many there are in all."""

    n: int
    n_all: int = 0
    heap: list[tuple[float, str, Candidate]] = field(
        default_factory=list[tuple[float, str, Candidate]]
    )

    def add(self, at: float, task: Candidate, key: str) -> None:
        self.n_all += 1
        # A heap gives its smallest: of the negative hash, the largest of those kept.
        if len(self.heap) < self.n:
            heapq.heappush(self.heap, (-at, key, task))
        elif -at > self.heap[0][0]:
            heapq.heapreplace(self.heap, (-at, key, task))

    @property
    def tasks(self) -> list[tuple[str, Candidate]]:
        """(key, task), by hash."""
        return [(key, task) for _, key, task in sorted(self.heap, key=lambda x: (-x[0], x[1]))]


@dataclass(frozen=True)
class Drawn:
    """A draw with its tasks."""

    draw: Draw
    tasks: tuple[Candidate, ...]


def draw(
    tasks: Iterable[Candidate],
    n: int,
    *,
    seed: int,
    by: By | None = None,
    shares: Mapping[str, float] | None = None,
) -> Drawn:
    """A sample without repetition.

    Args:
        tasks: distinct tasks, in any order; read once.
        n: how many to draw; all of them where there are fewer.
        seed: of the chance.
        by: draw as many of each stratum instead of uniformly over all.
        shares: stratum -> share of the sample, for those named; the rest is dealt evenly.

    Raises:
        ConfigError: there is no task, or a share is of no stratum or does not fit.
    """
    strata: dict[str, _Smallest] = {}
    of = _STRATA[by] if by else _all
    for task in tasks:
        key = task.key
        strata.setdefault(of(task), _Smallest(n)).add(hashed(seed, key), task, key)
    if not strata:
        raise ConfigError("there is no task to draw from")
    dealt = _dealt({name: s.n_all for name, s in sorted(strata.items())}, n, shares or {})
    taken = {name: strata[name].tasks[:k] for name, k in dealt.items() if k}
    made = {
        name: Stratum(n_all=strata[name].n_all, keys=tuple(key for key, _ in pairs))
        for name, pairs in taken.items()
    }
    found = tuple(task for pairs in taken.values() for _, task in pairs)
    return Drawn(Draw(seed=seed, n=n, by=by, strata=made), found)


def _dealt(sizes: Mapping[str, int], n: int, shares: Mapping[str, float]) -> dict[str, int]:
    """Stratum -> how many to draw of it: at least 1 where n allows, never more than there are.

    Raises:
        ConfigError: a share is of no stratum, or they do not fit.
    """
    strange = sorted(set(shares) - set(sizes))
    if strange:
        raise ConfigError(f"no stratum '{strange[0]}' is here; there are: {', '.join(sizes)}")
    if any(not 0 <= share <= 1 for share in shares.values()) or sum(shares.values()) > 1 + 1e-9:
        raise ConfigError("shares of strata lie in 0..1 and add up to at most 1")
    if n < len(sizes):
        raise ConfigError(
            f"{n} tasks cannot be drawn from {len(sizes)} strata: a stratum without any "
            "would be missing from every figure"
        )
    rest = len(sizes) - len(shares)
    even = (1 - sum(shares.values())) / rest if rest else 0.0
    wanted = {name: max(shares.get(name, even), 1e-9) for name in sizes}
    dealt = dict.fromkeys(sizes, 1)
    while sum(dealt.values()) < min(n, sum(sizes.values())):
        # To the one that is furthest behind its share.
        open_ = [name for name in sizes if dealt[name] < sizes[name]]
        dealt[min(open_, key=lambda name: (dealt[name] + 1) / wanted[name])] += 1
    return dealt


def add_draw(store: LabelStore, drawn: Drawn, *, twice: float) -> tuple[LabelTask, ...]:
    """Have the drawn tasks labelled.

    Args:
        store: the labels.
        drawn: what was drawn.
        twice: share of the tasks that two people are to label, 0..1.

    Returns:
        Those that were not there to be labelled before.

    Raises:
        ConfigError: a sample was drawn before with another seed or other strata.
    """
    before = last_draw(store)
    same = before is None or (before.seed, before.by) == (drawn.draw.seed, drawn.draw.by)
    if before is not None and not same:
        raise ConfigError(
            f"{store.folder / DRAWS}: the sample was drawn with seed {before.seed}"
            f"{f' by {before.by}' if before.by else ''}: drawn otherwise it would be two samples "
            "in one; draw more with the same"
        )
    at, seed = store.clock(), drawn.draw.seed
    tasks = [
        new_task(
            task.text,
            source="drawn",
            wanted=2 if hashed(seed, task.key, "twice") < twice else 1,
            at=at,
        )
        for task in drawn.tasks
    ]
    # The tasks first: a draw names none that is not there.
    added = store.add_tasks(tasks)
    with locked(store.folder), Journal(store.folder / DRAWS) as journal:
        journal.append(drawn.draw.model_copy(update={"at": at}).as_json())
    return added


def last_draw(store: LabelStore) -> Draw | None:
    """The sample that counts; None: nothing was drawn.

    Raises:
        DataError: the file is damaged.
    """
    lines = read_journal(store.folder / DRAWS)
    if not lines:
        return None
    try:
        return Draw.model_validate(lines[-1])
    except ValidationError as error:
        raise DataError(
            f"{store.folder / DRAWS}: line {len(lines)} is damaged ({error.errors()[0]['msg']})"
        ) from error
