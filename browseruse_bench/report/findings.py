"""A judgement as a person reads it: every item, its status, and the places it stands on."""

from __future__ import annotations

from collections.abc import Sequence

from browseruse_bench.measure.scoring import score
from browseruse_bench.records.judgement import Citation, Finding, Judgement
from browseruse_bench.records.rubric import Rubric
from browseruse_bench.report.render import NOTHING, Table, money, number

_QUOTE = 160
"""Characters of a quote that a table shows; the judgement holds all of it."""


def place_of(citation: Citation) -> str:
    """As in `step 3 page: “12 seats left”`; what does not hold says why."""
    step = "at the end" if citation.step == "final" else f"step {citation.step}"
    quote = ""
    if citation.quote:
        text = citation.quote
        quote = f": “{text if len(text) <= _QUOTE else text[:_QUOTE] + ' …'}”"
    where = f"{step}, {citation.source}{quote}"
    return where if citation.holds else f"{where} (does not hold: {citation.why_not or 'refused'})"


def judgement_table(judgement: Judgement, rubric: Rubric) -> Table:
    """One line per item, and below them the flags, the causes and the score."""
    findings = {finding.item: finding for finding in judgement.findings or ()}
    rows = [
        (item.id, str(item.weight), *_cells(findings.get(item.id), item.requirement))
        for item in rubric.items
    ]
    rows += [
        ("integrity", "", flag.flag, flag.claim, "; ".join(place_of(c) for c in flag.citations))
        for flag in judgement.integrity
    ]
    rows += [
        ("cause", "", cause.cause, cause.claim, "; ".join(place_of(c) for c in cause.citations))
        for cause in judgement.attribution
    ]
    rows.append(
        ("points", "100", points_of(judgement, rubric), judgement.message, _cost(judgement))
    )
    return Table(
        title=f"{judgement.task_id} #{judgement.attempt}, sample {judgement.sample}, "
        f"{judgement.protocol}",
        headers=("item", "weight", "status", "claim", "where"),
        rows=tuple(rows),
        right=frozenset({1}),
    )


def _cells(finding: Finding | None, requirement: str) -> tuple[str, str, str]:
    if finding is None:
        return NOTHING, requirement, NOTHING
    status = finding.status + (f" ({finding.reason})" if finding.reason else "")
    return status, finding.claim, "; ".join(place_of(c) for c in finding.citations) or NOTHING


def points_of(judgement: Judgement, rubric: Rubric) -> str:
    """The points that code makes of a judgement, and the flags; why not, where it is ungraded."""
    if judgement.status == "ungraded":
        return f"ungraded: {judgement.reason}"
    found = score(judgement, rubric, success_at=100)
    flags = f" ({', '.join(found.flags)}; {number(found.raw_points)} before)" if found.flags else ""
    return f"{number(found.points)}{flags}"


def _cost(judgement: Judgement) -> str:
    if not judgement.usage:
        return NOTHING
    costs = [usage.cost_usd for usage in judgement.usage]
    known = [cost for cost in costs if cost is not None]
    total = sum(known) if len(known) == len(costs) else None
    return f"judge's cost {money(total, sum(known), len(costs) - len(known))}"


def samples_table(judgements: Sequence[Judgement], rubric: Rubric) -> Table:
    """The status of every item in each of several gradings of one trace."""
    by_sample = [{f.item: f.status for f in j.findings or ()} for j in judgements]
    rows = [
        (item.id, *(statuses.get(item.id, NOTHING) for statuses in by_sample))
        for item in rubric.items
    ]
    rows.append(("points", *(points_of(judgement, rubric) for judgement in judgements)))
    return Table(
        title="Each grading of the same trace",
        headers=("item", *(f"sample {judgement.sample}" for judgement in judgements)),
        rows=tuple(rows),
    )
