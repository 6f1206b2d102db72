"""From a judgement to points: the only place where a score is made."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

from browseruse_bench.records.judgement import Finding, Judgement
from browseruse_bench.records.rubric import Rubric
from browseruse_bench.records.score import Score


def score(judgement: Judgement, rubric: Rubric | None, *, success_at: float) -> Score:
    """What a graded attempt is worth.

    Findings give the exact sum of the weights of the met items: no negative marks, no
    worst-wins. Any other basis gives the judgement's own score, and its label, where it has
    one, decides success. Integrity is looked at afterwards: one flag with a citation that
    holds makes the points 0 and the attempt no success; the raw points are kept.

    Args:
        judgement: graded.
        rubric: the rubric that the findings are about; any other basis takes at most
            `success_at` from it.
        success_at: points, 0..100, from which a graded attempt is a success, unless the rubric
            names its own.

    Raises:
        ValueError: the judgement is ungraded (it has no score, which is not the same as a
            score of 0), the rubric is missing, or the findings are not exactly one per item.
    """
    if judgement.status == "ungraded":
        raise ValueError(f"{_where(judgement)}: ungraded ({judgement.reason}): there is no score")
    flags = tuple(
        sorted({i.flag for i in judgement.integrity if any(c.holds for c in i.citations)})
    )
    if rubric is not None and rubric.success_at is not None:
        success_at = rubric.success_at
    if judgement.basis == "findings":
        raw = _points(judgement, rubric)
        success = raw >= Fraction(success_at)
    else:
        if judgement.score is None:
            raise ValueError(f"{_where(judgement)}: graded without a score")
        raw = Fraction(judgement.score)
        success = bool(judgement.label) if judgement.label is not None else raw >= success_at
    points = Fraction(0) if flags else raw
    return Score(
        raw_points=float(raw),
        points=float(points),
        reward=float(points / 100),
        success=success and not flags,
        flags=flags,
    )


def _points(judgement: Judgement, rubric: Rubric | None) -> Fraction:
    if rubric is None:
        raise ValueError(f"{_where(judgement)}: findings need their rubric")
    findings = judgement.findings or ()
    if [finding.item for finding in findings] != [item.id for item in rubric.items]:
        problems = mismatches(findings, rubric)
        if problems:
            raise ValueError(f"{_where(judgement)}: " + "; ".join(problems))
    met = {finding.item for finding in findings if finding.status == "met"}
    weights = [item.weight for item in rubric.items if item.id in met]
    # Whole weights, which are the rule, are added up as such: it is several times faster.
    whole = sum(weight.numerator for weight in weights if weight.denominator == 1)
    return sum((weight for weight in weights if weight.denominator != 1), Fraction(whole))


def mismatches(findings: tuple[Finding, ...], rubric: Rubric) -> list[str]:
    """How the items of the findings differ from those of the rubric; empty if they agree."""
    counts = Counter(finding.item for finding in findings)
    items = {item.id for item in rubric.items}
    lines = [f"no finding for item '{i.id}'" for i in rubric.items if i.id not in counts]
    lines += [f"{n} findings for item '{i}'" for i, n in sorted(counts.items()) if n > 1]
    lines += [f"unknown item '{i}'" for i in sorted(set(counts) - items)]
    return lines


def _where(judgement: Judgement) -> str:
    return f"judgement of task '{judgement.task_id}', attempt {judgement.attempt}"
