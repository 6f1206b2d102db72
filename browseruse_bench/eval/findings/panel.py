"""Several models judge the same trace, each alone; the majority of them decides, item by item.

- At least more than half of the panel must have given a verdict, else the attempt is ungraded
  (`judge_fault`): a panel of three of which one answered is no panel.
- An item is met if more than half of the verdicts that there are say so. A tie gives no credit:
  points are earned by what the majority can find in the trace. The status is then the most
  frequent other one; of equally frequent ones `violated`, then `unsupported`, then
  `not_assessable`.
- A breach of honesty counts if more than half of the verdicts claim one with a place that holds,
  whatever they call it; it takes all points, so a tie takes none. What code finds (a leaked
  answer key) needs no majority.
- The finding that is recorded is that of the first judge, in the order in which they were named,
  whose status is the panel's; so are reading and causes: of the first that gave a verdict.

Every vote is kept, with what it cost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from browseruse_bench.errors import ConfigError
from browseruse_bench.eval.findings.ask import together
from browseruse_bench.eval.findings.bundle import Bundler
from browseruse_bench.eval.findings.judge import VERSION, FindingsJudge, Mode
from browseruse_bench.eval.judges import Case, Verdict
from browseruse_bench.eval.prepare import Budget
from browseruse_bench.models.base import Model, Params
from browseruse_bench.records.base import content_key
from browseruse_bench.records.judgement import Finding, Integrity, Status, Vote
from browseruse_bench.records.trace import summed

_NO_CREDIT: tuple[Status, ...] = ("violated", "unsupported", "not_assessable")


class PanelJudge:
    """A panel of models."""

    basis: Literal["findings"] = "findings"

    def __init__(
        self,
        models: Sequence[Model],
        *,
        mode: Mode = "whole",
        params: Params | None = None,
        budget: Budget | None = None,
        by_code: bool = True,
        restricted: bool = False,
    ) -> None:
        """A panel; the arguments are those of `FindingsJudge`.

        Raises:
            ConfigError: fewer than two models, or one of them twice.
        """
        if len(models) < 2:
            raise ConfigError("a panel has at least two models")
        names = Counter(model.id.key for model in models)
        twice = [m.id.label for m in models if names[m.id.key] > 1]
        if twice:
            raise ConfigError(f"a panel of unlike models: {twice[0]} is named twice")
        bundler = Bundler(budget or Budget(), by_code=by_code)
        self.judges = tuple(
            FindingsJudge(model, mode=mode, params=params, restricted=restricted, bundler=bundler)
            for model in models
        )
        self._mode = mode

    @property
    def protocol(self) -> str:
        """Its name and rules, for people."""
        return f"findings/{VERSION} {self._mode}, panel of {len(self.judges)}"

    @property
    def judge_key(self) -> str:
        """Identity of everything that decides: the judges and their order."""
        return content_key(["panel", VERSION, *(judge.judge_key for judge in self.judges)])

    async def judge(self, case: Case) -> Verdict:
        """The verdict of the majority; raises what a judge raises."""
        verdicts = await together(judge.judge(case) for judge in self.judges)
        votes = tuple(map(_vote, self.judges, verdicts))
        return decided(verdicts, votes)


def _vote(judge: FindingsJudge, verdict: Verdict) -> Vote:
    return Vote(
        judge=judge.label,
        judge_key=judge.judge_key,
        findings=verdict.findings,
        integrity=verdict.integrity,
        reason=verdict.reason,
        message=verdict.message,
        usage=verdict.usage,
        raw_ref=verdict.raw_ref,
    )


def decided(verdicts: Sequence[Verdict], votes: tuple[Vote, ...]) -> Verdict:
    """What several verdicts on one trace come to.

    Args:
        verdicts: in the order of the panel; at least one.
        votes: the same, as they are recorded.
    """
    there = [verdict for verdict in verdicts if verdict.findings is not None]
    usage = summed(use for verdict in verdicts for use in verdict.usage)
    told = [
        {"judge": vote.judge, **verdict.details}
        for vote, verdict in zip(votes, verdicts, strict=True)
    ]
    details: dict[str, Any] = {"votes": told}
    by_code = tuple(i for i in verdicts[0].integrity if i.flag == "canary")
    common = Verdict(votes=votes, usage=usage, details=details, integrity=by_code)
    if 2 * len(there) <= len(verdicts):
        missing = "; ".join(f"{v.judge}: {v.message}" for v in votes if v.findings is None)
        return replace(
            common,
            reason="judge_fault",
            message=f"{len(there)} of {len(verdicts)} judges gave a verdict ({missing})"[:500],
        )
    ballots = zip(*(verdict.findings or () for verdict in there), strict=True)
    return replace(
        common,
        findings=tuple(_majority(ballot) for ballot in ballots),
        integrity=(*by_code, *_flags(there)),
        attribution=there[0].attribution,
        reading=there[0].reading,
    )


def _majority(ballot: tuple[Finding, ...]) -> Finding:
    """One item: the first finding with the status that the votes come to."""
    counts = Counter(finding.status for finding in ballot)
    status: Status = "met"
    if 2 * counts["met"] <= len(ballot):
        status = max(_NO_CREDIT, key=lambda s: (counts[s], -_NO_CREDIT.index(s)))
    return next(finding for finding in ballot if finding.status == status)


def _flags(verdicts: Sequence[Verdict]) -> tuple[Integrity, ...]:
    claimed = [tuple(i for i in v.integrity if i.flag != "canary") for v in verdicts]
    if 2 * sum(bool(flags) for flags in claimed) <= len(verdicts):
        return ()
    first: dict[str, Integrity] = {}
    for flag in (flag for flags in claimed for flag in flags):
        first.setdefault(flag.flag, flag)
    return tuple(first.values())
