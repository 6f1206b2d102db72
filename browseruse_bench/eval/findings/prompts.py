"""The judge's prompts: the `.md` files beside this module, and how a task and a rubric read.

A prompt is filled in one pass: what is filled in is never scanned again. No weight and no canary
of a rubric is ever part of a prompt.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

from browseruse_bench.eval import fencing
from browseruse_bench.records.base import canonical_json
from browseruse_bench.records.judgement import Finding
from browseruse_bench.records.rubric import CANARY, Fact, Item, Rubric, Statement
from browseruse_bench.records.rubric_text import notes
from browseruse_bench.records.task import TaskView
from browseruse_bench.records.trace import Trace

_FOLDER = Path(__file__).parent
_SLOT = re.compile(r"\{\{(\w+)\}\}")


@functools.cache
def template(name: str) -> str:
    """The text of one prompt file."""
    return (_FOLDER / f"{name}.md").read_text(encoding="utf-8").strip()


def fill(name: str, **values: str) -> str:
    """A prompt with its slots filled.

    Raises:
        KeyError: a slot has no value.
    """
    return _SLOT.sub(lambda slot: values[slot[1]], template(name))


@functools.cache
def hashes() -> dict[str, str]:
    """File -> SHA-256 of each prompt; all of them are part of a judge's identity."""
    files = sorted(_FOLDER.glob("*.md"))
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def case_text(
    view: TaskView, trace: Trace, rubric: Rubric, asked: Sequence[Item], settled: Sequence[Item]
) -> str:
    """The task and its rubric, whole.

    Args:
        view: what the agent was given.
        trace: of the attempt; only its date is used.
        rubric: without its weights, its canary and its checks.
        asked: the items that the judge gives findings on.
        settled: the items that code settles.
    """
    facts = [
        f"Start address: {view.start_url}" if view.start_url else "",
        f"Website: {view.website}" if view.website else "",
        f"Files given: {', '.join(a.name for a in view.attachments)}" if view.attachments else "",
        f"The attempt began at {trace.started_at}." if trace.started_at else "",
    ]
    return fill(
        "case",
        task=view.text,
        circumstances="\n".join(fact for fact in facts if fact),
        rubric=rubric_text(rubric, asked, settled),
    )


def rubric_text(rubric: Rubric, asked: Sequence[Item], settled: Sequence[Item]) -> str:
    """What is known about a task, as a judge reads it."""
    sections = [
        ("What a correct result is", _statements(rubric.answers)),
        ("Which ways reach it", _statements(rubric.paths)),
        (
            "Failures that recur, and what they look like in a trace",
            [f"- {f.text}" + (f" Looks like: {f.looks_like}" if f.looks_like else "")
             for f in rubric.failures],
        ),
        ("What agents say that is not true", _statements(rubric.false_claims)),
        ("Facts", [line for fact in rubric.facts for line in _fact(fact)]),
        ("Rulings", [f"- {ruling.id}: {ruling.text}" for ruling in rubric.rulings]),
        ("Notes of the rubric's author", [_without_weights(n, rubric) for n in notes(rubric)]),
        ("Items", [line for item in asked for line in _item(item)]),
        (
            "Items that code settles; they are not asked of you",
            [f"- {item.requirement}" for item in settled],
        ),
    ]  # fmt: skip
    text = "\n\n".join("\n".join([f"## {name}", *lines]) for name, lines in sections if lines)
    own = re.escape(rubric.canary) if rubric.canary else CANARY.pattern
    return re.sub(f"{own}|{CANARY.pattern}", "[canary]", text)


def _statements(statements: Sequence[Statement]) -> list[str]:
    return [f"- {s.text}" + (f" ({', '.join(s.facts)})" if s.facts else "") for s in statements]


def _fact(fact: Fact) -> list[str]:
    seen = {"live": "seen live", "archive": "archived", "traces": "seen in traces only"}
    how = seen.get(fact.how or "", fact.how or "")
    dated = " ".join(
        part for part in (how, f"on {fact.checked_on}" if fact.checked_on else "") if part
    )
    lines = [f"FACT {fact.id}" + (f" ({dated})" if dated else "")]
    if fact.kind == "absent":
        lines.append("kind: absent; not found on the pages that were searched, which is no proof")
    lines.append(f"claim: {fact.claim}")
    if fact.values:
        lines.append(f"values: {canonical_json(list(fact.values))}")
    if fact.url:
        lines.append(f"address: {fact.url}")
    if fact.quote:
        lines.append(f"quote: {fact.quote}")
    return lines


def _item(item: Item) -> list[str]:
    return [
        f"ITEM {item.id}",
        f"evidence: {item.evidence}",
        *([f"facts: {', '.join(item.facts)}"] if item.facts else []),
        f"requirement: {item.requirement}",
        *([f"how to see it: {item.verification}"] if item.verification else []),
    ]


def _without_weights(text: str, rubric: Rubric) -> str:
    """A publisher's own text may tell the weight of an item: in a line that names an item, its
    weight is taken out where it is called one.
    """
    weights = {item.id: f"{float(item.weight):g}" for item in rubric.items}
    called = r"(?:points?|pts|weight(?:ed)?)"
    lines = text.split("\n")
    for n, line in enumerate(lines):
        for number in sorted({w for name, w in weights.items() if name in line}):
            told = rf"\b{called}\W{{0,3}}{number}(?![\d.])|(?<![\d.]){number}[ -]?{called}\b"
            lines[n] = re.sub(told, "[weight]", lines[n], flags=re.IGNORECASE)
    return "\n".join(lines)


def ending_text(trace: Trace) -> str:
    """How an attempt ended, in the harness's own words."""
    endings = {
        "finished": "The agent ended the attempt itself",
        "gave_up": "The agent gave up",
        "step_limit": "The attempt ended at its limit of steps",
        "time_limit": "The attempt ended at its time limit",
        "budget_limit": "The attempt ended at its limit of cost",
        "agent_error": "The agent's program failed",
        "infrastructure": "The infrastructure failed",
    }
    answer = trace.outcome.answer
    said = "and gave an answer" if answer is not None and answer.strip() else "without an answer"
    told = f"{endings[trace.outcome.status]}, after {trace.n_steps} steps, {said}."
    if trace.evidence_policy == "agent_reported":
        told += (
            " No harness was there: what the agent's own program tells that it saw stands in the "
            "place of what a harness would have seen, and is cited as such."
        )
    return told


def findings_text(findings: Sequence[Finding], fence: str) -> str:
    """Findings as a list, for a judge that looks for their causes; their claims are data."""
    return "\n".join(
        f"- {f.item}: {f.status}\n{fencing.line(f.claim[:400], fence)}" for f in findings
    )
