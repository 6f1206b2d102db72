"""Whether two texts ask for the same, instruction by instruction: a model says, code checks."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

from pydantic import Field

from browseruse_bench.factory.persona.canonical import canonical
from browseruse_bench.factory.restyle.literals import literals
from browseruse_bench.records.base import Record


class Instruction(Record):
    """One thing that a text asks for, or a condition of it."""

    id: str = Field(min_length=1)
    quote: str = Field(min_length=1)


class Pair(Record):
    """Two instructions that ask for the same."""

    first: str
    second: str


class Comparison(Record):
    """The reply of the model."""

    first: tuple[Instruction, ...]
    second: tuple[Instruction, ...]
    pairs: tuple[Pair, ...]


class Finding(NamedTuple):
    """Why two texts are not the same."""

    kind: Literal["first_only", "second_only", "not_believed"]
    what: str


def schema() -> dict[str, Any]:
    """JSON schema of the reply."""
    return Comparison.model_json_schema()


def findings(first: str, second: str, said: Comparison) -> list[Finding]:
    """What keeps the texts from being the same; empty: they ask for the same.

    A comparison is believed if its quotes stand in their texts, leave no sentence out, and what
    it pairs has the same numbers.
    """
    problems: list[Finding] = []
    for text, items in ((first, said.first), (second, said.second)):
        problems += [Finding("not_believed", why) for why in _quotes(text, items)]
    ones, others = ({i.id: i.quote for i in items} for items in (said.first, said.second))
    for pair in said.pairs:
        if pair.first not in ones or pair.second not in others:
            problems.append(Finding("not_believed", "a pair of an instruction that is not listed"))
    paired_1 = {pair.first for pair in said.pairs}
    paired_2 = {pair.second for pair in said.pairs}
    problems += [Finding("first_only", ones[i]) for i in ones if i not in paired_1]
    problems += [Finding("second_only", others[i]) for i in others if i not in paired_2]
    problems += _numbers(ones, others, said.pairs)
    return problems


def _quotes(text: str, items: tuple[Instruction, ...]) -> list[str]:
    if len({item.id for item in items}) < len(items):
        return ["one id for two instructions"]
    plain = " ".join(canonical(text).text.split())
    quotes = [" ".join(canonical(item.quote).text.split()) for item in items]
    if not all(quote in plain for quote in quotes):
        return ["a quote that is not in its text"]
    covered = [m.span() for quote in quotes for m in re.finditer(re.escape(quote), plain)]
    problems: list[str] = []
    for sentence in re.finditer(r"[^.!?]+(?:[.!?](?!\s|$)[^.!?]*)*", plain):
        wordy = len(re.findall(r"\w+", sentence.group())) > 1
        if wordy and not any(a < sentence.end() and b > sentence.start() for a, b in covered):
            problems.append("a sentence that no instruction quotes")
    return problems


def _numbers(
    ones: dict[str, str], others: dict[str, str], pairs: tuple[Pair, ...]
) -> list[Finding]:
    """Instructions that are paired, directly or through others, must hold the same numbers."""
    groups: list[list[Pair]] = []
    for pair in pairs:
        if pair.first not in ones or pair.second not in others:
            continue
        joined = [
            g for g in groups if any(pair.first == p.first or pair.second == p.second for p in g)
        ]
        groups = [g for g in groups if g not in joined] + [[pair, *(p for g in joined for p in g)]]
    return [
        Finding("not_believed", "it pairs instructions with different numbers")
        for group in groups
        if _held({ones[p.first] for p in group}) != _held({others[p.second] for p in group})
    ]


def _held(quotes: Iterable[str]) -> set[str]:
    return {item.value for q in quotes for item in literals(q) if item.kind == "number"}
