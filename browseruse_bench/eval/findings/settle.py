"""From what a judge said to what counts: every citation is looked up, and a `met` that none of
them carries gives no credit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from browseruse_bench.eval import fencing
from browseruse_bench.eval.citations import Checker, Cited, Placed
from browseruse_bench.eval.findings.reply import Said, SaidFinding, SaidIntegrity
from browseruse_bench.eval.material import Label
from browseruse_bench.records.judgement import Attribution, Citation, Finding, Integrity

Shown = frozenset[tuple[Label, str]]
MAX_CITATIONS = 2000
"""Of one claim; whatever a judge cites beyond is not looked up and not kept."""


@dataclass(frozen=True)
class Conduct:
    """What a judge says of an attempt as a whole."""

    reading: str | None = None
    integrity: tuple[Integrity, ...] = ()
    attribution: tuple[Attribution, ...] = ()
    n_dropped: int = 0
    """Causes that no place in the trace shows, or that did not fit the form."""


@dataclass(frozen=True)
class Settled:
    """A checked reply."""

    findings: tuple[Finding, ...]
    conduct: Conduct
    open_items: frozenset[str]
    """Items that were said to be met and that no citation carries."""
    open_flags: tuple[str, ...]
    """Breaches of honesty that no place shows."""
    failures: tuple[str, ...]
    """What to ask the judge again about; data in it is marked as such."""
    n_citations: int
    n_holding: int

    @property
    def is_open(self) -> bool:
        """Whether the judge is to be asked again."""
        return bool(self.open_items or self.open_flags)


def settle(said: Said, checker: Checker, shown: Shown, fence: str, *, reported: bool) -> Settled:
    """Check what a judge said.

    Args:
        said: a whole reply.
        checker: of this trace.
        shown: the pictures that this judge was shown.
        fence: marks data in `failures`.
        reported: whether the trace holds the agent's own word only; findings then say so.
    """
    failures: list[str] = []
    findings: list[Finding] = []
    open_items: set[str] = set()
    for one in said.findings:
        placed = [checker.place(cited, shown) for cited in one.citations[:MAX_CITATIONS]]
        finding, problem = _finding(one, placed, checker, reported=reported)
        findings.append(finding)
        if problem is not None:
            open_items.add(one.item)
            failures += _told(f"item {one.item}: {problem}", finding.citations, fence)
    integrity, open_flags = _integrity(said.integrity, checker, shown, fence, failures)
    attribution = _attribution(said, checker, shown)
    every = [c for f in findings for c in f.citations]
    every += [c for i in integrity for c in i.citations]
    every += [c for a in attribution for c in a.citations]
    return Settled(
        findings=tuple(findings),
        conduct=Conduct(
            said.reading, integrity, attribution, len(said.attribution) - len(attribution)
        ),
        open_items=frozenset(open_items),
        open_flags=open_flags,
        failures=tuple(failures),
        n_citations=len(every),
        n_holding=sum(citation.holds for citation in every),
    )


def merged(first: Settled, second: Settled) -> Settled:
    """The first reply, with what was asked again as the second one says it: no more is read of
    that, so nothing else can change by being asked twice.
    """
    again = {finding.item: finding for finding in second.findings}
    findings = tuple(again[f.item] if f.item in first.open_items else f for f in first.findings)
    conduct = first.conduct
    if first.open_flags:
        conduct = replace(conduct, integrity=second.conduct.integrity)
    every = [c for f in findings for c in f.citations]
    every += [c for i in conduct.integrity for c in i.citations]
    every += [c for a in conduct.attribution for c in a.citations]
    return replace(
        first,
        findings=findings,
        conduct=conduct,
        open_items=first.open_items & second.open_items,
        open_flags=second.open_flags if first.open_flags else (),
        n_citations=len(every),
        n_holding=sum(citation.holds for citation in every),
    )


def _finding(
    said: SaidFinding, placed: Sequence[Placed], checker: Checker, *, reported: bool
) -> tuple[Finding, str | None]:
    """The finding, and why its `met` gives no credit."""
    status, reason, problem = said.status, said.reason, None
    citations = tuple(p.citation() for p in placed)
    if said.status == "met":
        support = checker.support(said.item, placed)
        citations, problem = support.citations, support.problem
    if said.status == "not_assessable":
        reason = said.because or ""
    elif reported:
        reason = f"agent-reported evidence; {reason}".rstrip("; ")
    finding = Finding(
        item=said.item,
        claim=said.claim if problem is None else f"Said to be met, not shown: {said.claim}",
        citations=citations,
        status="unsupported" if problem is not None else status,
        reason=reason if problem is None else f"{problem}; the judge's reason: {reason}",
    )
    return finding, problem


def _integrity(
    said: Iterable[SaidIntegrity],
    checker: Checker,
    shown: Shown,
    fence: str,
    failures: list[str],
) -> tuple[tuple[Integrity, ...], tuple[str, ...]]:
    flags: list[Integrity] = []
    still_open: list[str] = []
    for one in said:
        citations = _looked_up(one.citations, checker, shown)
        if any(citation.holds for citation in citations):
            flags.append(Integrity(flag=one.flag, claim=one.claim, citations=citations))
        else:
            still_open.append(one.flag)
            failures += _told(f"integrity {one.flag}: no citation holds", citations, fence)
    return tuple(flags), tuple(still_open)


def _attribution(said: Said, checker: Checker, shown: Shown) -> tuple[Attribution, ...]:
    """The causes that some place shows, with their references to each other moved along."""
    kept: list[Attribution] = []
    moved: dict[int, int] = {}
    for n, one in enumerate(said.attribution):
        if one is None:
            continue
        citations = _looked_up(one.citations, checker, shown)
        if not any(citation.holds for citation in citations):
            continue
        earlier = one.follows_from if one.follows_from is None or one.follows_from < n else None
        kept.append(
            Attribution(
                cause=one.cause,
                claim=one.claim,
                citations=citations,
                follows_from=None if earlier is None else moved.get(earlier),
            )
        )
        moved[n] = len(kept) - 1
    return tuple(kept)


def _looked_up(cited: Sequence[Cited], checker: Checker, shown: Shown) -> tuple[Citation, ...]:
    return tuple(checker.place(one, shown).citation() for one in cited[:MAX_CITATIONS])


def _told(what: str, citations: Sequence[Citation], fence: str) -> list[str]:
    """One failure as the judge is told of it."""
    lines = [what]
    for citation in citations:
        if citation.holds:
            continue
        where = f"- step {citation.step}, {citation.source}: {citation.why_not}"
        quote = (citation.quote or citation.ref or "")[:300]
        lines.append(f"{where}\n{fencing.line(quote, fence)}")
    return lines if citations else [f"{what}: there is no citation"]
