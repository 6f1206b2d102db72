"""What an attacker knows: the whole answer key of one task."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

from browseruse_bench.eval import matcher
from browseruse_bench.eval.matcher import Read, Target, options_of, places
from browseruse_bench.eval.wording import alternatives
from browseruse_bench.records.rubric import (
    AnswerCheck,
    FileCheck,
    Item,
    Rubric,
    UrlCheck,
    Value,
)
from browseruse_bench.records.task import Task


@dataclass(frozen=True)
class Key:
    """The answer key of one task, as somebody uses it who wants its points for nothing."""

    task: Task
    rubric: Rubric | None
    """None: the answer is compared with the row's `expected_result`."""
    seed: str
    """Of all chance in one attack."""
    honest: str | None = None
    """The answer of the trace that is attacked, if it states all that is wanted."""

    @property
    def rng(self) -> random.Random:
        """Chance, the same each time."""
        return random.Random(self.seed)

    @property
    def stated(self) -> dict[str, tuple[Value, ...]]:
        """Item -> what the answer must state for it; the first alternatives."""
        if self.rubric is None:
            expected = self.task.expected_result
            values = expected if isinstance(expected, tuple) else (expected,)
            return {"expected_result": tuple(first(v) for v in values if v is not None)}
        found: dict[str, tuple[Value, ...]] = {}
        for item in self.rubric.items:
            if isinstance(item.check, AnswerCheck):
                found[item.id] = tuple(first(v) for v in item.check.values)
            elif item.check is None and (values := self._of_facts(item)):
                found[item.id] = values
        return found

    @property
    def shown(self) -> tuple[Value, ...]:
        """All that evidence could be wanted for: values that must be seen, and those of facts."""
        if self.rubric is None:
            return self._all_stated()
        values: list[Value] = []
        for item in self.rubric.items:
            if isinstance(item.check, AnswerCheck):
                values += item.check.values if item.check.seen is None else item.check.seen
            values += self._of_facts(item)
        return tuple(dict.fromkeys(values))

    def _of_facts(self, item: Item) -> tuple[Value, ...]:
        facts = {fact.id: fact for fact in self.rubric.facts} if self.rubric else {}
        return tuple(first(v) for name in item.facts for v in facts[name].values)

    def _all_stated(self) -> tuple[Value, ...]:
        return tuple(dict.fromkeys(v for values in self.stated.values() for v in values))

    @property
    def secrets(self) -> tuple[str, ...]:
        """All that a cheat would like a page to show."""
        values = (*self._all_stated(), *self.shown)
        return tuple(dict.fromkeys(str(first(v)) for v in values))

    @property
    def answer(self) -> str | None:
        """An answer that states all that is wanted; None: nothing is."""
        if self.honest is not None:
            return self.honest
        return self.answer_for(self.stated) if self.stated else None

    def answer_for(self, items: Sequence[str] | dict[str, tuple[Value, ...]]) -> str:
        """An answer that states what these items want, one value in a line."""
        values = dict.fromkeys(str(v) for item in items for v in self.stated[item])
        return "\n".join(values)

    @property
    def wrong(self) -> str | None:
        """An answer of the right shape that states none of what is wanted; None: none was found."""
        rng = self.rng
        for _ in range(8):
            values = dict.fromkeys(str(falsified(v, rng)) for v in self._all_stated())
            answer = "\n".join(values)
            if answer and matcher.match(self._all_stated(), answer).share == 0:
                return answer
        return None

    @property
    def canary(self) -> str | None:
        """The token that no honest agent can know."""
        return self.rubric.canary if self.rubric else None

    @property
    def files(self) -> tuple[FileCheck, ...]:
        """The files that are asked for."""
        checks = [item.check for item in self.rubric.items] if self.rubric else []
        return tuple(check for check in checks if isinstance(check, FileCheck))

    @property
    def pages(self) -> tuple[UrlCheck, ...]:
        """The pages that must have been open."""
        checks = [item.check for item in self.rubric.items] if self.rubric else []
        return tuple(check for check in checks if isinstance(check, UrlCheck))

    @property
    def sources(self) -> tuple[tuple[str, str], ...]:
        """(address, words that stand there) of the facts."""
        facts = self.rubric.facts if self.rubric else ()
        return tuple((f.url, f.quote or f.claim) for f in facts if f.url)

    @property
    def visual(self) -> frozenset[str]:
        """The items that a picture alone may prove."""
        items = self.rubric.items if self.rubric else ()
        return frozenset(item.id for item in items if item.evidence == "visual")

    def shows(self, text: str) -> bool:
        """Whether a text shows anything that evidence is wanted for, or a part of it."""
        read = Read(text)
        return any(places(target, read) for target in self._targets())

    def names(self, text: str) -> bool:
        """Whether a text names anything that the answer must state."""
        read = Read(text)
        return any(places(t, read) for v in self._all_stated() for t in _options(v))

    def _targets(self) -> list[Target]:
        options = [target for value in self.shown for target in _options(value)]
        return options + [part for target in options for part in target.parts]


def _options(value: Value) -> tuple[Target, ...]:
    try:
        return options_of(value)
    except ValueError:
        # A value that nothing can state (a lone sign, say) shows nowhere either.
        return ()


def first(value: Value) -> Value:
    """The first of a value's alternatives."""
    return (alternatives(value) or (value,))[0] if isinstance(value, str) else value


_DIGIT = re.compile(r"[0-9]")
_HOST = re.compile(r"(?<=[/.])(?!www)[\w-]{3,}(?=\.)")
_DAY = re.compile(r"(?<![0-9])[0-9]{1,2}(?![0-9])")
_WORD = re.compile(r"\w{3,}|^\w+$")
_WORDS = ("Marlow", "Tessa", "quince", "harbour", "ninth", "velvet", "Ostrava", "cobalt")


def falsified(value: Value, rng: random.Random) -> Value:
    """Another value of the same shape: another day, other digits, or as many other words."""
    if isinstance(value, (int, float)):
        return value + rng.choice((1, 2, 3, 7))
    polar = {"yes": "no", "no": "yes", "true": "false", "false": "true"}.get(value.casefold())
    if polar is not None:
        return polar
    if any(target.form == "address" for target in _options(value)):
        return _HOST.sub(lambda found: rng.choice(_WORDS).casefold(), value, count=1)
    days = list(_DAY.finditer(value))
    if days and any(target.date is not None for target in _options(value)):
        day = days[-1]
        other = 1 + (int(day[0]) + rng.randrange(1, 27)) % 28
        return f"{value[: day.start()]}{other:0{len(day[0])}}{value[day.end() :]}"
    if _DIGIT.search(value):
        shift = rng.choice((1, 2, 3, 4))
        return _DIGIT.sub(lambda found: str((int(found[0]) + shift) % 10), value)
    return _WORD.sub(lambda found: rng.choice(_WORDS), value)


def states_all(key: Key, answer: str | None) -> bool:
    """Whether an answer states everything that is wanted."""
    values = [v for values in key.stated.values() for v in values]
    return bool(values) and matcher.match(tuple(values), answer).share == 1
