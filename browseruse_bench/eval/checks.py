"""Code checks: findings about a frozen trace without a model.

| check | met | otherwise |
|---|---|---|
| `answer` | the answer states all values (`matcher`) and each `seen` value, by default the values themselves, was on a page (`corroboration`) | `violated`: not stated; `unsupported`: stated, but not seen; `not_assessable: absent_scope`: no answer |
| `url` | the address was current after some step (`any`) or at the end (`final`) | `violated`; `unsupported`: only in an address bar that a script of the agent wrote to |
| `state` | the query over the site's snapshot gives these rows, in their order if it has an ORDER BY, else in any | `violated`; `not_assessable: missing_evidence`: no snapshot of the site |
| `file` | every file of that name that the agent saved fulfils the criterion or, if it saved none, the last such download does; a text that it wrote itself was on a page too, unless the item is about the deliverable only | `violated`; `unsupported`: right, but not seen; `not_assessable: absent_scope`: no such file |
| `probe` | the probe's value is equal as JSON (1 equals 1.0, true does not equal 1) | `violated`; `unsupported`: a script of the agent ran in that page; `not_assessable: missing_evidence`: no result |

`missing_evidence` is not the agent's fault; `absent_scope` is what it never produced. Neither
gives credit, so an empty trace has no item met.

A check that cannot be carried out (SQL that is wrong for the schema, a value that is not of
its kind) is a GraderError with rubric and item: never a zero. How an attempt ended (time or
step limit, an agent's error) changes nothing, but an attempt that the infrastructure ended is
not graded. A rubric's canary anywhere in the trace is an integrity flag (`canary`), whatever the
items are.

Traces of policy `agent_reported` are graded on what the agent says that it saw; each finding
says so in its reason. Whoever ranks results keeps them apart.

`VERSION` goes up with each change that can change a finding's status or a flag; a change of
the matcher is covered by its own version.
"""

from __future__ import annotations

import fnmatch
import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast
from urllib.parse import urlsplit

from browseruse_bench.errors import DataError, GraderError, boundary
from browseruse_bench.eval import addresses, matcher, said, snapshot
from browseruse_bench.eval.canary import MAX_FILE_BYTES, canaries
from browseruse_bench.eval.corroboration import SCRIPTED, Evidence, excerpt
from browseruse_bench.eval.wording import normal, phrase
from browseruse_bench.records.judgement import Citation, Finding, Integrity, Status
from browseruse_bench.records.rubric import (
    AnswerCheck,
    FileCheck,
    Item,
    ProbeCheck,
    Rubric,
    StateCheck,
    UrlCheck,
    Value,
)
from browseruse_bench.store.trace_folder import TraceFolder

VERSION = "4"

MISSING_EVIDENCE = "missing_evidence"
ABSENT_SCOPE = "absent_scope"
COPY = "it is a copy of a page, not an answer"


@dataclass(frozen=True)
class CodeGrade:
    """What code finds in a trace."""

    findings: tuple[Finding, ...]
    """One per item, in the rubric's order."""
    integrity: tuple[Integrity, ...]


@dataclass(frozen=True)
class _Outcome:
    status: Status
    claim: str
    citations: tuple[Citation, ...] = ()
    reason: str = ""


def grade(folder: TraceFolder, rubric: Rubric) -> CodeGrade:
    """The findings of a rubric whose items all have a check, and what breaks integrity.

    Raises:
        GraderError: the infrastructure ended the attempt, an item has no check, or a check
            cannot be carried out; the message names rubric and item.
    """
    where = f"rubric of task '{rubric.task_id}'"
    if folder.trace.outcome.status == "infrastructure":
        raise GraderError(f"{where}: the infrastructure ended this attempt; it is owed again")
    unchecked = [item.id for item in rubric.items if item.check is None]
    if unchecked:
        raise GraderError(f"{where}: no code check in {', '.join(unchecked)}; a model must judge")
    with boundary(GraderError, f"{where}: evidence"):
        evidence = Evidence(folder)
        integrity = tuple(canaries(folder, rubric.canary)) if rubric.canary else ()
    wanted = stated_values(rubric)
    found = tuple(finding(evidence, item, where, also=wanted) for item in rubric.items)
    return CodeGrade(found, integrity)


def stated_values(rubric: Rubric) -> tuple[Value, ...]:
    """All values that checks of a rubric want the answer to state."""
    checks = (item.check for item in rubric.items)
    return tuple(v for check in checks if isinstance(check, AnswerCheck) for v in check.values)


def finding(evidence: Evidence, item: Item, where: str, *, also: tuple[Value, ...] = ()) -> Finding:
    """What the check of one item finds.

    Args:
        evidence: of the trace.
        item: has a check.
        where: names the rubric in errors.
        also: what other items want of the same answer (`stated_values`).

    Raises:
        GraderError: the check cannot be carried out.
    """
    place = f"{where}: item '{item.id}'"
    try:
        outcome = _carried_out(evidence, item, also)
    except (GraderError, DataError, ValueError) as error:
        raise GraderError(f"{place}: {error}") from error
    reason = outcome.reason
    if evidence.reported and outcome.status != "not_assessable":
        reason = f"agent-reported evidence; {reason}".rstrip("; ")
    return Finding(
        item=item.id,
        claim=outcome.claim,
        citations=outcome.citations,
        status=outcome.status,
        reason=reason,
    )


def _carried_out(evidence: Evidence, item: Item, also: tuple[Value, ...]) -> _Outcome:
    match item.check:
        case AnswerCheck():
            return _answer(evidence, item.check, also)
        case UrlCheck():
            return _url(evidence, item.check)
        case StateCheck():
            return _state(evidence, item.check)
        case FileCheck():
            return _file(evidence, item.check, from_memory=item.evidence == "deliverable")
        case ProbeCheck():
            return _probe(evidence, item.check)
        case None:
            raise ValueError("no code check")


# Answer


def _answer(evidence: Evidence, check: AnswerCheck, also: tuple[Value, ...]) -> _Outcome:
    answer = evidence.folder.trace.outcome.answer
    # The values are parsed before the answer is looked at, so that a broken check never
    # depends on what an agent said.
    stated = matcher.state(
        check.values, answer, kind=check.match, tolerance=check.tolerance, also=also
    )
    seen = _seen_options(check)
    if answer is None or not answer.strip():
        return _Outcome("not_assessable", "The agent gave no answer.", reason=ABSENT_SCOPE)
    quote = answer if len(answer) <= 500 else f"{answer[:250]} … {answer[-250:]}"
    cited = Citation(step="final", source="answer", quote=quote, holds=stated.holds)
    if not stated.holds:
        why = "; ".join(f"{value}: {why}" for value, why in stated.details["missing"].items())
        extras = ", ".join(stated.details["extras"])
        why = "; ".join(part for part in (why, f"extra: {extras}" if extras else "") if part)
        cited = cited.model_copy(update={"why_not": why})
        return _Outcome("violated", f"The answer does not state all of it ({why}).", (cited,))
    if _hands_in_a_page(evidence, check, answer):
        cited = cited.model_copy(update={"holds": False, "why_not": COPY})
        return _Outcome("violated", "The answer hands in a whole page.", (cited,), COPY)
    sightings = {value: evidence.sighting(options) for value, options in seen}
    citations = (cited, *(s.citation for s in sightings.values() if s.citation is not None))
    unseen = {v: s.citation for v, s in sightings.items() if not s.holds}
    if unseen:
        reasons = [
            f"{value}: {citation.why_not if citation else 'on no page that was seen'}"
            for value, citation in unseen.items()
        ]
        return _Outcome(
            "unsupported",
            "The answer states it, but the trace does not show that it was found.",
            citations,
            "; ".join(reasons),
        )
    return _Outcome("met", "The answer states it, and it was seen on a page.", citations)


def _hands_in_a_page(evidence: Evidence, check: AnswerCheck, answer: str) -> bool:
    """Whether the answer is all that a page shows, where less than that was asked for."""
    if check.match == "list" or len(answer) < said.COPY_CHARS // 2:
        return False
    if any(len(str(value)) >= said.COPY_CHARS for value in check.values):
        return False
    plain = normal(answer)
    refs = dict.fromkeys(text.ref for text in evidence.texts)
    return any(said.is_copy(plain, evidence.read(ref).text) for ref in refs)


def _seen_options(check: AnswerCheck) -> list[tuple[str, tuple[matcher.Target, ...]]]:
    if check.seen is None:
        return [
            (str(v), matcher.options_of(v, kind=check.match, tolerance=check.tolerance))
            for v in check.values
        ]
    return [(str(value), matcher.options_of(value)) for value in check.seen]


# Address


def _url(evidence: Evidence, check: UrlCheck) -> _Outcome:
    moments = [m for m in evidence.moments if check.when == "any" or m.step == "final"]
    if not moments:
        return _Outcome("not_assessable", "No page was open.", reason=ABSENT_SCOPE)
    fitting = [
        m
        for m in moments
        if addresses.fits(m.url, host=check.host, path=check.path, query=check.query)
    ]
    good = next((m for m in fitting if m.why_not is None), None)
    shown = good or (fitting[0] if fitting else moments[-1])
    why = None if good else shown.why_not if fitting else "another address"
    citation = Citation(
        step=shown.step, source="page", quote=shown.url, holds=good is not None, why_not=why
    )
    if good:
        return _Outcome("met", f"The page {good.url} was open.", (citation,))
    if fitting:
        return _Outcome("unsupported", "The address proves nothing.", (citation,), why or "")
    when = "at the end" if check.when == "final" else "at any step"
    return _Outcome("violated", f"No such page was open {when}.", (citation,))


# State


def _state(evidence: Evidence, check: StateCheck) -> _Outcome:
    for observation in evidence.observations("state"):
        if observation.url and addresses.host_name(observation.url) == check.site.lower():
            break
    else:
        return _Outcome(
            "not_assessable", f"There is no snapshot of {check.site}.", reason=MISSING_EVIDENCE
        )
    evidence.folder.evidence(observation.ref)
    path = evidence.folder.path / "evidence" / observation.ref
    try:
        rows = snapshot.query(path, check.sql, max_rows=len(check.equals) + 1)
    except snapshot.TooLargeError as error:
        large = Citation(
            step="final", source="state", ref=observation.ref, holds=False, why_not=str(error)
        )
        return _Outcome("violated", f"The state of {check.site} is another one.", (large,))
    same = _same_rows(rows, check)
    shown = json.dumps([[_plain(cell) for cell in row] for row in rows], ensure_ascii=False)
    citation = Citation(
        step="final",
        source="state",
        ref=observation.ref,
        quote=shown[:1000],
        holds=same,
        why_not=None if same else "other rows",
    )
    if same:
        return _Outcome("met", f"The state of {check.site} is as required.", (citation,))
    return _Outcome("violated", f"The state of {check.site} is another one.", (citation,))


def _same_rows(rows: list[snapshot.Row], check: StateCheck) -> bool:
    """Whether rows are equal: integers and floats by value, text only with text."""
    if re.search(r"\border\s+by\b", check.sql, re.IGNORECASE):
        return rows == list(check.equals)
    return Counter(rows) == Counter(check.equals)


def _plain(cell: snapshot.Cell) -> str | int | float | None:
    return f"<{len(cell)} bytes>" if isinstance(cell, bytes) else cell


# File


@dataclass(frozen=True)
class SavedFile:
    """A file that the agent saved or downloaded."""

    step: Literal["final"]
    ref: str
    name: str
    path: Path
    of_web: bool = False
    """Whether it was downloaded from an http or https address; what was not, the agent or a
    script of its own may have written."""


def _file(evidence: Evidence, check: FileCheck, *, from_memory: bool) -> _Outcome:
    """What a check of a file gives.

    Args:
        evidence: of the trace.
        check: what is asked for.
        from_memory: whether the item is about the form of the file only, so that it does not
            matter where its content was seen.
    """
    own = saved_files(evidence.folder) if check.host is None else []
    saved = [f for f in own if fnmatch.fnmatchcase(f.name, check.name)]
    downloads = _downloads(evidence, check.host)
    downloaded = [f for f in downloads if fnmatch.fnmatchcase(f.name, check.name)]
    files = saved or downloaded[:1]
    if not files:
        return _Outcome("not_assessable", f"There is no file '{check.name}'.", reason=ABSENT_SCOPE)
    citations = tuple(_file_citation(file, check) for file in files)
    if not all(citation.holds for citation in citations):
        return _Outcome("violated", f"A file '{check.name}' is not as required.", citations)
    if check.contains and not from_memory and not all(file.of_web for file in files):
        # What the agent wrote itself it may know by heart, or have made up.
        seen, why = _seen_in_parts(evidence, check.contains)
        citations = (*citations, *seen)
        if why is not None:
            return _Outcome(
                "unsupported",
                f"'{files[0].name}' is as required, but the trace does not show where from.",
                citations,
                why,
            )
    return _Outcome("met", f"'{files[0].name}' is as required.", citations)


def _seen_in_parts(evidence: Evidence, text: str) -> tuple[tuple[Citation, ...], str | None]:
    """Where a text was seen, as a whole or cell by cell, and else why a cell does not count."""
    whole = evidence.sighting(matcher.options_of(text, kind="text"))
    if whole.holds and whole.citation is not None:
        return (whole.citation,), None
    cells = [cell for cell in re.split(r"[,;|\t\n]", text) if phrase(cell)]
    sightings = {cell.strip(): evidence.sighting(matcher.options_of(cell)) for cell in cells}
    reasons = [
        f"{cell}: {s.citation.why_not if s.citation else 'on no page that was seen'}"
        for cell, s in sightings.items()
        if not s.holds
    ]
    citations = tuple(s.citation for s in sightings.values() if s.citation is not None)
    return citations, "; ".join(reasons) or None


def saved_files(folder: TraceFolder) -> list[SavedFile]:
    """The files that the agent itself saved, by name."""
    root = folder.path / "files"
    return [
        SavedFile("final", path.relative_to(root).as_posix(), path.name, path)
        for path in sorted(root.rglob("*"))
        if path.is_file() and not path.is_symlink()
    ]


def _downloads(evidence: Evidence, host: str | None) -> Iterator[SavedFile]:
    """The downloads, the latest first; with `host` only those that came from there."""
    for observation in evidence.observations("download"):
        if host is not None and not _is_from(observation.url, host):
            continue
        evidence.folder.evidence(observation.ref)
        path = evidence.folder.path / "evidence" / observation.ref
        of_web = urlsplit(observation.url or "").scheme in ("http", "https")
        name = observation.name or observation.ref
        yield SavedFile("final", observation.ref, name, path, of_web=of_web)


def _is_from(url: str | None, host: str) -> bool:
    """A blob: or data: address is not from a host: a script of the page may have made it."""
    parts = urlsplit(url or "")
    return parts.scheme in ("http", "https") and parts.hostname == host


def _file_citation(file: SavedFile, check: FileCheck) -> Citation:
    if check.sha256 is not None:
        with file.path.open("rb") as content:
            found = hashlib.file_digest(content, "sha256").hexdigest()
        holds, quote, why = found == check.sha256, f"sha256 {found}", "other content"
    else:
        holds, quote = _contains(decoded(file.path), check.contains or "")
        why = "the text is not in it"
    return Citation(
        step=file.step,
        source="file",
        ref=file.ref,
        quote=quote,
        holds=holds,
        why_not=None if holds else why,
    )


def decoded(path: Path) -> str:
    """The text of a file, up to `MAX_FILE_BYTES`, in the encoding that it seems to have."""
    with path.open("rb") as file:
        content = file.read(MAX_FILE_BYTES)
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return content.decode("utf-16", "replace")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("cp1252", "replace")


def _contains(text: str, wanted: str) -> tuple[bool, str | None]:
    """Whether a text holds another, as a whole, and the line where it does.

    White space and case are folded; an edge that is a letter or a digit does not continue a
    word or a number.
    """
    flat = re.sub(r"\s+", " ", normal(text)).casefold()
    needle = re.sub(r"\s+", " ", normal(wanted)).strip().casefold()
    before = r"(?<!\w)(?<![0-9][.,])" if needle[:1].isalnum() else ""
    after = r"(?!\w)(?![.,][0-9])" if needle[-1:].isalnum() else ""
    found = re.search(before + re.escape(needle) + after, flat)
    return (True, excerpt(flat, found.start(), found.end())) if found else (False, None)


# Probe


def _probe(evidence: Evidence, check: ProbeCheck) -> _Outcome:
    found = next((o for o in evidence.observations("probe") if o.name == check.name), None)
    if found is None:
        return _Outcome(
            "not_assessable", f"The probe '{check.name}' has no result.", reason=MISSING_EVIDENCE
        )
    content = evidence.folder.evidence(found.ref)
    try:
        value = json.loads(content)
    except ValueError as error:
        raise GraderError(f"probe '{check.name}': its result is not JSON: {error}") from error
    same = json_equal(value, check.equals)
    why = SCRIPTED if evidence.scripted_at_end else None if same else "another value"
    citation = Citation(
        step="final",
        source="probe",
        ref=found.ref,
        quote=content.decode("utf-8", "replace")[:1000],
        holds=same and why is None,
        why_not=why,
    )
    if not same:
        return _Outcome("violated", f"The probe '{check.name}' gave another value.", (citation,))
    if why is not None:
        return _Outcome("unsupported", "The probe proves nothing.", (citation,), why)
    return _Outcome("met", f"The probe '{check.name}' gave the value.", (citation,))


def json_equal(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal: 1 equals 1.0, true does not equal 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        a, b = cast("dict[str, Any]", one), cast("dict[str, Any]", other)
        return a.keys() == b.keys() and all(json_equal(a[key], b[key]) for key in a)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        left, right = cast("list[Any]", one), cast("list[Any]", other)
        return len(left) == len(right) and all(map(json_equal, left, right))
    return bool(one == other)
