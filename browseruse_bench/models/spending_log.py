"""What model calls cost: written down before and after each, by several processes together.

Before anything is sent, a call *begins* with the most that it can cost; it *ends* with what it
did cost. Both are lines of `spending.jsonl` beside the calls. So the sums outlive their process,
and what a process that died had asked for counts as spent in full: the provider may well have
billed it.

*Cost* is what a call took when it was made, and stays with its result for good. *Spent now* is
what this command paid: `Spending.now`. An answer from the ledger has a cost, and nothing was
spent on it now: `Spending.reused`.
"""

from __future__ import annotations

import os
import secrets
import threading
import time
import weakref
from collections import defaultdict
from collections.abc import Generator, Iterable
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple
from weakref import WeakValueDictionary

from pydantic import Field, ValidationError

from browseruse_bench.errors import DataError
from browseruse_bench.models.locks import FileLock, exclusive, is_held
from browseruse_bench.records.base import Record
from browseruse_bench.records.run import Tokens
from browseruse_bench.records.trace import Usage
from browseruse_bench.store.redact import Redactor

FILE = "spending.jsonl"
_LOCKS = ".locks"
_BLOCK_BYTES = 2**20

Outcome = Literal["answered", "failed", "released", "lost"]
"""`released`: nothing was asked. `lost`: whether it was paid is not known (its process died,
or it was cancelled), so it counts as what was held."""


class SpendingLine(Record):
    """A line of spending.jsonl. One with a purpose begins a call, one with an outcome ends it;
    one with both does both.
    """

    id: str
    at: str
    purpose: str | None = None
    scope: str = ""
    model: str = ""
    held_usd: float | None = Field(default=None, ge=0)
    """The most that it can cost; None: not known."""
    durable: bool = False
    """Held beyond the life of its process (a batch that a provider works on)."""
    outcome: Outcome | None = None
    cost_usd: float | None = Field(default=None, ge=0)
    """None: not known."""
    tokens: Tokens | None = None
    price_source: str | None = None


class What(NamedTuple):
    """What calls are added up by."""

    scope: str
    purpose: str
    model: str


@dataclass(kw_only=True)
class Totals:
    """Calls that were paid for, and what is known of their cost."""

    n_calls: int = 0
    n_failed: int = 0
    """Gave nothing to use; what was paid for them is in the sums."""
    n_lost: int = 0
    """May have been paid for; not in the sums, and `charged_usd` has the most that it can be."""
    known_usd: float = 0.0
    n_unpriced: int = 0
    """Calls whose cost is not known, lost ones included."""
    charged_usd: float = 0.0
    """What a limit counts: the cost, or what was held where the cost is not known."""
    n_unbounded: int = 0
    """Calls of which neither is known: no limit can be kept over them."""
    uncached_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    output_tokens: int = 0

    @property
    def cost_usd(self) -> float | None:
        """What they cost; None: not known in full."""
        return None if self.n_unpriced else self.known_usd

    def add(self, other: Totals) -> None:
        """Add the figures of another."""
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))

    def as_json(self) -> dict[str, Any]:
        """All figures, the cost as null where it is not known in full."""
        return {**vars(self), "cost_usd": self.cost_usd}


def summed(totals: Iterable[Totals]) -> Totals:
    """The figures of all of them."""
    total = Totals()
    for one in totals:
        total.add(one)
    return total


@dataclass
class _Book:
    """Sums over lines, and the calls that have begun and not ended."""

    sums: dict[What, Totals] = field(default_factory=lambda: defaultdict(Totals))
    open: dict[str, SpendingLine] = field(default_factory=dict[str, SpendingLine])

    def take(self, line: SpendingLine) -> None:
        """Count a line in; the end of a call that is not open does nothing."""
        if line.purpose is not None:
            self.open[line.id] = line
        if line.outcome is None or (begun := self.open.pop(line.id, None)) is None:
            return
        if line.outcome != "released":
            what = What(begun.scope, begun.purpose or "", begun.model)
            self.sums[what].add(_ended(begun.held_usd, line))

    def held(self, scope: str | None) -> list[SpendingLine]:
        """Calls of a scope (None: all) that are under way."""
        return [line for line in self.open.values() if scope in (None, line.scope)]


def _ended(held_usd: float | None, line: SpendingLine) -> Totals:
    lost = line.outcome == "lost"
    cost = None if lost else line.cost_usd
    bound = cost if cost is not None else held_usd
    tokens = line.tokens or Tokens()
    return Totals(
        n_calls=1,
        n_failed=int(line.outcome == "failed"),
        n_lost=int(lost),
        known_usd=cost or 0.0,
        n_unpriced=int(cost is None),
        charged_usd=bound or 0.0,
        n_unbounded=int(bound is None),
        uncached_tokens=tokens.uncached,
        cached_tokens=tokens.cached,
        reasoning_tokens=tokens.reasoning,
        output_tokens=tokens.output,
    )


class Spending:
    """What is spent under one calls folder, by scope, purpose and model.

    Safe for several processes, threads and event loops; without a path it is this object's own.
    """

    def __init__(self, path: Path | None = None) -> None:
        """Begin with what the file at `path` says."""
        self.path = path
        self._book = _Book()
        self._now: dict[What, Totals] = defaultdict(Totals)
        self._reused: dict[What, Totals] = defaultdict(Totals)
        self._session = secrets.token_hex(6)
        self._n = 0
        self._alive: FileLock | None = None
        self._thread = threading.RLock()
        self._file = None if path is None else _SharedLines(path)
        self.refresh()
        if path is not None:
            for left in (path.parent / _LOCKS).glob("spending-*"):
                is_held(left)  # what a dead process left goes

    def refresh(self) -> None:
        """Count in what other processes wrote since.

        Raises:
            DataError: a line of the file is damaged; its number is named.
        """
        with self._alone():
            pass

    def begin(self, what: What, held_usd: float | None, *, id: str | None = None) -> str:
        """A call may now be made; returns its id.

        Args:
            what: what it is added up under.
            held_usd: the most that it can cost; None: not known.
            id: given: it outlives this process, and is held until somebody ends it by this id.
        """
        with self._alone():
            durable = id is not None
            if id is None:
                self._live()
                self._n += 1
                id = f"{self._session}-{self._n}"
            self._write(
                SpendingLine(
                    id=id, at=_utc_now(), purpose=what.purpose, scope=what.scope,
                    model=what.model, held_usd=held_usd, durable=durable,
                )
            )  # fmt: skip
            return id

    def end(self, id: str, outcome: Outcome, usage: Usage | None = None) -> None:
        """A call is over. When this returns it is on disk. A second end does nothing.

        Args:
            id: as `begin` returned it.
            outcome: what came of it.
            usage: what it took; None: nothing was paid.
        """
        with self._alone():
            begun = self._book.open.get(id)
            if begun is None:
                return
            line = _end_line(id, outcome, usage)
            self._write(line, sync=True)
            if outcome != "released":
                what = What(begun.scope, begun.purpose or "", begun.model)
                self._now[what].add(_ended(begun.held_usd, line))

    def record(self, what: What, usage: Usage, outcome: Outcome = "answered") -> None:
        """A call was made and paid for, and nothing was held for it."""
        with self._alone():
            self._n += 1
            line = _end_line(f"{self._session}-{self._n}", outcome, usage)
            whole = {"purpose": what.purpose, "scope": what.scope, "model": what.model}
            self._write(line.model_copy(update=whole), sync=True)
            self._now[what].add(_ended(None, line))

    def reuse(self, what: What, usage: Usage) -> None:
        """An answer came from the ledger: it cost this once, and nothing now."""
        with self._thread:
            self._reused[what].add(_ended(None, _end_line("", "answered", usage)))

    @property
    def ever(self) -> dict[What, Totals]:
        """What all commands together paid for."""
        self.refresh()
        with self._thread:
            return {what: summed([totals]) for what, totals in self._book.sums.items()}

    @property
    def now(self) -> dict[What, Totals]:
        """What was paid for through this object."""
        with self._thread:
            return {what: summed([totals]) for what, totals in self._now.items()}

    @property
    def reused(self) -> dict[What, Totals]:
        """What was answered from the ledger through this object, and what it had cost."""
        with self._thread:
            return {what: summed([totals]) for what, totals in self._reused.items()}

    @property
    def is_new(self) -> bool:
        """Whether nothing was ever written here."""
        return not self._book.sums and not self._book.open

    def under_way(self, scope: str | None = None) -> tuple[int, float | None]:
        """How many calls have begun and not ended, and the most that they can cost."""
        with self._alone():
            return _bound(self._book.held(scope))

    def lasting_usd(self, scope: str | None = None) -> float | None:
        """The most that what is held beyond its process can cost; None: not known."""
        with self._alone():
            return _bound([line for line in self._book.held(scope) if line.durable])[1]

    @contextmanager
    def deciding(self, scope: str | None) -> Generator[tuple[Totals, float | None]]:
        """Alone with the file: what is spent in a scope (None: all), and the most that what is
        under way can cost (None: not known).
        """
        with self._alone():
            spent = summed(t for w, t in self._book.sums.items() if scope in (None, w.scope))
            yield spent, _bound(self._book.held(scope))[1]

    def close(self) -> None:
        """Give up what is open; what this object holds counts as lost from now on."""
        with self._thread:
            if self._alive is not None:
                self._alive.release()
                self._alive = None
            if self._file is not None:
                self._file.close()

    @contextmanager
    def _alone(self) -> Generator[None]:
        """Alone with the file, and up to date with it."""
        with self._thread, self._file.alone() if self._file else nullcontext():
            if self._file is not None:
                for line in self._file.unread():
                    self._book.take(line)
                self._end_dead()
            yield

    def _end_dead(self) -> None:
        """Calls of processes that died are lost."""
        alive: dict[str, bool] = {self._session: True}
        for line in list(self._book.open.values()):
            session = line.id.partition("-")[0]
            if line.durable:
                continue
            if session not in alive:
                alive[session] = is_held(self._lock_path(session))
            if not alive[session]:
                self._write(_end_line(line.id, "lost", None))

    def _live(self) -> None:
        """Others can see that this process lives, from its first call on."""
        if self.path is not None and self._alive is None:
            # Nobody else takes it, but somebody may look at it at this moment.
            while (lock := FileLock.take(self._lock_path(self._session))) is None:
                time.sleep(0.001)
            self._alive = lock
            weakref.finalize(self, lock.release)

    def _lock_path(self, session: str) -> Path:
        assert self.path is not None
        return self.path.parent / _LOCKS / f"spending-{session}"

    def _write(self, line: SpendingLine, *, sync: bool = False) -> None:
        if self._file is not None:
            self._file.append(line, sync=sync)
        self._book.take(line)


class _SharedLines:
    """The lines of a file to which several processes append, each alone while it does."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self._closed = weakref.finalize(self, os.close, self._descriptor)
        self._read = 0
        self._n_lines = 0
        self._depth = 0

    @contextmanager
    def alone(self) -> Generator[None]:
        """Alone with the file, also where that is asked for once more inside."""
        self._depth += 1
        try:
            with exclusive(self._descriptor) if self._depth == 1 else nullcontext():
                yield
        finally:
            self._depth -= 1

    def unread(self) -> Generator[SpendingLine]:
        """What was appended since; a torn last line, of a process that died, is cut off."""
        end = os.fstat(self._descriptor).st_size
        left = b""
        while self._read + len(left) < end:
            block = os.pread(self._descriptor, _BLOCK_BYTES, self._read + len(left))
            if not block:
                break
            *lines, left = (left + block).split(b"\n")
            for line in lines:
                self._read += len(line) + 1
                self._n_lines += 1
                yield self._parsed(line)
        if left:
            os.ftruncate(self._descriptor, self._read)

    def append(self, line: SpendingLine, *, sync: bool) -> None:
        """Add a line; everything before it was read. It survives this process; with `sync` the
        machine's end, too.
        """
        text = line.as_line()
        if line.purpose is not None:
            # The end of a call holds no words but those of a price list.
            text = Redactor.of_environment().own(text)
        left = memoryview(text.encode(errors="replace") + b"\n")
        try:
            while left:
                left = left[os.write(self._descriptor, left) :]
            if sync:
                os.fsync(self._descriptor)
        except OSError:
            os.ftruncate(self._descriptor, self._read)
            raise
        self._read = os.fstat(self._descriptor).st_size
        self._n_lines += 1

    def close(self) -> None:
        self._closed()

    def _parsed(self, line: bytes) -> SpendingLine:
        try:
            return SpendingLine.model_validate_json(line)
        except ValidationError as error:
            raise DataError(
                f"{self._path}: line {self._n_lines} is damaged ({str(error).splitlines()[0]}); "
                "restore it, or remove that line: what it says was spent is then not counted"
            ) from error


def _end_line(id: str, outcome: Outcome, usage: Usage | None) -> SpendingLine:
    if usage is None:
        # Without a use nothing was paid; of a lost call it is not known.
        cost = None if outcome == "lost" else 0.0
        return SpendingLine(id=id, at=_utc_now(), outcome=outcome, cost_usd=cost)
    return SpendingLine(
        id=id, at=_utc_now(), outcome=outcome, cost_usd=usage.cost_usd,
        tokens=Tokens.of([usage]), price_source=usage.price_source,
    )  # fmt: skip


def _bound(held: list[SpendingLine]) -> tuple[int, float | None]:
    amounts = [line.held_usd for line in held]
    known = [amount for amount in amounts if amount is not None]
    return len(held), (sum(known) if len(known) == len(amounts) else None)


def _utc_now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


_OPEN: WeakValueDictionary[Path, Spending] = WeakValueDictionary()
_OPEN_LOCK = threading.Lock()


def spending_at(calls: Path) -> Spending:
    """The one `Spending` of this process for a calls folder, as long as somebody holds it: all
    models that keep their calls there are added up in it.
    """
    path = calls.resolve() / FILE
    with _OPEN_LOCK:
        found = _OPEN.get(path)
        if found is None:
            found = _OPEN[path] = Spending(path)
        return found
