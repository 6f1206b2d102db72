"""A judge that believes everything: every item is met, and anything is a reason for it.

It sees the text of a request and nothing else, and cites, for each item it is asked about, all
of these: each value of the item's facts, as it is, at every step and in every source; every line
of the trace that holds such a value; every picture; the first lines of every text, of the answer,
of every call and file. So whatever code lets pass, it gets. Where code alone must hold a
reward, it earns nothing that an honest judge would not.

    model = ScriptedModel(Believer())
    FindingsJudge(model, mode="per_item")

It never claims a breach of honesty, and rates every piece of a divided trace as decisive.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field


@dataclass
class Line:
    """One line of data: where it stands and what it says."""

    step: str
    source: str
    text: str
    name: str | None = None


@dataclass
class Seen:
    """What the text of a request holds."""

    items: dict[str, list[str]] = field(default_factory=dict)
    """Item -> the values of its facts."""
    steps: list[str] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    pictures: list[tuple[str, str]] = field(default_factory=list)
    """(step, name)"""
    here: tuple[str, str, str | None] = ("final", "page", None)
    """Step, source and name of the lines that come."""

    def take(self, line: str) -> None:
        """Read one line of the trace."""
        step, source, name = self.here
        label, is_data, data = line.partition(": | ")
        if line.startswith("| "):
            self.lines.append(Line(step, source, line[2:], name))
        elif line.startswith("## "):
            step = line.removeprefix("## Step ") if line.startswith("## Step ") else "final"
            self.steps.append(step)
            self.here = (step, "page", None)
        elif not is_data and (found := re.search(r"picture (\w+) of step (\w+)", line)):
            self.pictures.append((found[2], found[1]))
        elif label == "name":
            self.here = (step, source, data)
        elif not line.startswith(("piece ", "[")):
            self.here = (step, _source(label), None)
            if is_data:
                self.lines.append(Line(step, _source(label), data))


SOURCES = ("page", "answer", "file", "state", "probe", "call")


def read(text: str) -> Seen:
    """Take a request's text apart, by its form alone."""
    seen = Seen()
    told: list[str] = []
    inside = False
    for line in text.split("\n"):
        if line.startswith(("BEGIN DATA ", "END DATA ")):
            inside = line.startswith("BEGIN")
        elif inside:
            seen.take(line)
        else:
            told.append(line)
    _read_rubric(told, seen)
    return seen


def _read_rubric(lines: list[str], seen: Seen) -> None:
    facts: dict[str, list[str]] = {}
    item = fact = None
    for line in lines:
        if found := re.fullmatch(r"FACT (\S+).*", line):
            fact = found[1]
        elif line.startswith("values: ") and fact:
            facts[fact] = [str(value) for value in json.loads(line.removeprefix("values: "))]
        elif found := re.fullmatch(r"ITEM (\S+)", line):
            item = found[1]
            seen.items[item] = []
        elif line.startswith("facts: ") and item:
            for one in line.removeprefix("facts: ").split(", "):
                seen.items[item] += facts.get(one, [])


def _source(label: str) -> str:
    if label.startswith(("page text", "message of a dialog", "address", "title")):
        return "page"
    for word in ("answer", "file", "state", "probe"):
        if label.startswith(word) or f"{word}," in label:
            return word
    return "probe" if "probe" in label else "call"


def citations(seen: Seen, values: list[str]) -> list[dict]:
    """Everything that could be cited for an item."""
    found: dict[tuple, dict] = {}

    def cite(step, source, quote, ref=None):
        key = (step, source, quote, ref)
        found[key] = {"step": step, "source": source, "ref": ref, "quote": quote}

    options = [option.strip() for value in values for option in value.split("|OR|")]
    for option in options:
        for step in dict.fromkeys([*seen.steps, "final"]):
            for source in SOURCES:
                cite(step, source, option)
    bare = [re.sub(r"\W", "", option).casefold() for option in options]
    first: set[tuple] = set()
    for line in seen.lines:
        flat = re.sub(r"\W", "", line.text).casefold()
        place = (line.step, line.source, line.name)
        if (
            any(one and one in flat for one in bare)
            or place not in first
            or line.source == "answer"
        ):
            cite(line.step, line.source, line.text[:300], line.name)
        if flat:
            first.add(place)
        if line.name:
            cite(line.step, line.source, None, line.name)
    for step, name in seen.pictures:
        cite(step, "screenshot", None, name)
    return list(found.values())


class Believer:
    """Answers requests of a findings judge; call it with (text, sample)."""

    def __call__(self, text: str, sample: int = 0) -> dict:
        seen = read(text)
        if pieces := re.search(r"^# Pieces\n\nThe items: (.*)\n\nThe pieces: (.*)$", text, re.M):
            items = pieces[1].split(", ")
            rated = [
                {"piece": piece, "decisive": items, "related": []}
                for piece in pieces[2].split(", ")
            ]
            return {"pieces": rated}
        asked = re.findall(r"^Now examine the attempt.*in this order: (.*)$", text, re.MULTILINE)
        reply: dict = {"reading": "whatever", "integrity": [], "attribution": []}
        if asked:
            reply["findings"] = [self.finding(seen, item) for item in asked[0].split(", ")]
        return reply

    def finding(self, seen: Seen, item: str) -> dict:
        """That the item is met, with everything there is."""
        return {
            "item": item,
            "claim": "It is so.",
            "citations": citations(seen, seen.items[item]),
            "reason": "I believe it.",
            "because": None,
            "status": "met",
        }
