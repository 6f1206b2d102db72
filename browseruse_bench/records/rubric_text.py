"""A rubric as a document for people, beside its JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from browseruse_bench.records.base import canonical_json
from browseruse_bench.records.markdown import block, inline, quotation, verbatim
from browseruse_bench.records.rubric import (
    AnswerCheck,
    Check,
    Fact,
    FileCheck,
    Item,
    ProbeCheck,
    Rubric,
    StateCheck,
    Statement,
    UrlCheck,
)

_EVIDENCE = {
    "page": "words on a page that was open",
    "visual": "a screenshot",
    "deliverable": "the answer or a file of the agent",
}
_HOW = {
    "live": "on the live page",
    "archive": "in an archive",
    "traces": "in traces",
    "site": "in the data of the site",
}


def markdown(rubric: Rubric) -> str:
    """All of a rubric as one Markdown document: what stands beside the JSON as `.md`.

    Equal rubrics give equal text. Every text of the rubric is shown as it is: none can begin a
    heading or end a quotation.
    """
    title = f"# Rubric of {inline(rubric.task_id)}, revision {rubric.revision}"
    return _document([title, _identity(rubric), *_knowledge(rubric), *_rest(rubric)])


def notes(rubric: Rubric) -> tuple[str, ...]:
    """What a publisher wrote in prose, for a judge to read beside the fields.

    A text that is JSON is a publisher's own record: its content stands in the fields, and it may
    name weights, which no judge sees.
    """
    return (rubric.text,) if rubric.text is not None and not _is_json(rubric.text) else ()


def _document(parts: Sequence[str]) -> str:
    return "\n\n".join(part for part in parts if part) + "\n"


def _identity(rubric: Rubric) -> str:
    named = {
        "Task key": rubric.task_key,
        "Canary": rubric.canary,
        "Done from": None if rubric.success_at is None else f"{rubric.success_at:g} points",
    }
    return "\n".join(f"- {name}: {inline(value)}" for name, value in named.items() if value)


def _knowledge(rubric: Rubric) -> Iterator[str]:
    yield _listed("What a correct result is", map(_statement, rubric.answers))
    yield _listed("Ways that reach it", map(_statement, rubric.paths))
    yield "## Items"
    for item in rubric.items:
        yield _item(item)
    if rubric.facts:
        yield "## Facts"
        for fact in rubric.facts:
            yield _fact(fact)
    failures = (
        f"{block(failure.text, '  ')}{_looks_like(failure.looks_like)}"
        for failure in rubric.failures
    )
    yield _listed("Failures that recur", failures)
    yield _listed("What agents say that is not true", map(_statement, rubric.false_claims))
    if rubric.rulings:
        yield "## Rulings"
        for ruling in rubric.rulings:
            yield f"### {inline(ruling.id)}\n\n{block(ruling.text)}"


def _rest(rubric: Rubric) -> Iterator[str]:
    waivers = (
        block(f"{waiver.rule}, {', '.join(waiver.items)}: {waiver.reason}", "  ")
        for waiver in rubric.waivers or ()
    )
    yield _listed("Remarks of the lint that stand", waivers)
    if rubric.text is not None:
        language = "json" if _is_json(rubric.text) else "text"
        yield f"## As published\n\n{verbatim(rubric.text, language)}"


def _listed(title: str, entries: Iterator[str]) -> str:
    lines = [f"- {entry}" for entry in entries]
    return "\n".join([f"## {title}", "", *lines]) if lines else ""


def _statement(statement: Statement) -> str:
    return f"{block(statement.text, '  ')}{_cited(statement.facts)}"


def _cited(facts: Sequence[str]) -> str:
    return f" ({inline(', '.join(facts))})" if facts else ""


def _looks_like(text: str) -> str:
    return f" In a trace: {block(text, '  ')}" if text.strip() else ""


def _item(item: Item) -> str:
    points = "point" if item.weight == 1 else "points"
    title = f"### {inline(item.id)} ({item.weight} {points})"
    parts = [title, block(item.requirement)]
    if item.verification is not None:
        parts.append(f"How to see it: {block(item.verification)}")
    if item.check is None:
        parts.append(f"Evidence: {_EVIDENCE[item.evidence]}.")
    if item.facts:
        parts.append(f"Stands on: {inline(', '.join(item.facts))}.")
    if item.check is not None:
        parts.append(f"Checked by code: {_check(item.check)}")
    return _document(parts).rstrip("\n")


def _check(check: Check) -> str:
    match check:
        case AnswerCheck():
            text = f"the answer states {_values(check.values)}, matched as {check.match}"
            if check.tolerance:
                text += f", up to {check.tolerance:g} off"
            seen = check.values if check.seen is None else check.seen
            return f"{text}; the harness saw {_values(seen)}."
        case UrlCheck():
            query = f" with {_values([f'{k}={v}' for k, v in check.query.items()])}"
            where = f"{check.host}{check.path or ', any path'}{query if check.query else ''}"
            when = "at the end" if check.when == "final" else "at some time"
            return f"{inline(where)} is open {when}."
        case StateCheck():
            rows = canonical_json(check.as_json()["equals"])
            query, result = verbatim(check.sql, "sql"), verbatim(rows, "json")
            return f"over the data of {inline(check.site)},\n\n{query}\n\ngives\n\n{result}"
        case FileCheck():
            what = f"has SHA-256 {check.sha256}"
            if check.contains is not None:
                what = f"contains {_values([check.contains])}"
            source = f" from {inline(check.host)}" if check.host else ""
            return f"the file {inline(check.name)}{source} {what}."
        case ProbeCheck():
            value = inline(canonical_json(check.as_json().get("equals")))
            return f"the probe {inline(check.name)} gives {value}."


def _values(values: Sequence[str | int | float]) -> str:
    return ", ".join(f"“{inline(str(value))}”" for value in values)


def _fact(fact: Fact) -> str:
    parts = [f"### {inline(fact.id)}", block(fact.claim)]
    if fact.values:
        parts.append(f"Values: {_values(fact.values)}.")
    if fact.quote is not None:
        parts.append(quotation(fact.quote))
    how = f", {_HOW[fact.how]}" if fact.how else ""
    standing = f"{fact.standing[0].upper()}{fact.standing[1:]}{how}"
    parts.append(f"{standing}: {inline(fact.url)}" if fact.url else f"{standing}.")
    if fact.pages_searched:
        pages = "\n".join(f"- {block(page, '  ')}" for page in fact.pages_searched)
        parts.append(f"Pages searched:\n\n{pages}")
    if fact.archived:
        parts.append("Archived as:\n\n" + "\n".join(f"- {key}" for key in fact.archived))
    return _document(parts).rstrip("\n")


def _is_json(text: str) -> bool:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, (dict, list))
