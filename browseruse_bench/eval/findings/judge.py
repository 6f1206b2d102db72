"""A model as judge of rubrics: it states findings, code looks them up, nobody takes its word.

    judge = FindingsJudge(model)
    verdict = await judge.judge(case)

A verdict has one finding per item of the rubric, in its order. Items with a check are settled by
code (unless `by_code` is off: then the model reads them too). What the model says is located,
and each place is looked up (`eval/citations.py`). What fails is the judge's fault, never the
agent's: an outage, a reply that is cut short, declined, or does not fit after it was asked for
once more, leaves the attempt ungraded (`judge_fault`), with the raw reply kept. An agent cannot
bring that about by the length or the content of its trace: what is too long, or is declined, is
taken apart (`divide.py`), and what then is not there is absent.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Literal

from browseruse_bench.errors import ModelError
from browseruse_bench.eval import checks, citations, matcher, prepare
from browseruse_bench.eval.findings import prompts, reply
from browseruse_bench.eval.findings.ask import MAX_RAW, Account, Asker
from browseruse_bench.eval.findings.bundle import Answer, Bundle, Bundler
from browseruse_bench.eval.findings.divide import RATINGS, divide
from browseruse_bench.eval.findings.settle import Conduct
from browseruse_bench.eval.findings.whole import at_once, per_item
from browseruse_bench.eval.judges import Case, Verdict
from browseruse_bench.eval.prepare import Budget
from browseruse_bench.models.base import (
    Model,
    Params,
    PendingError,
    RefusalError,
    TooLongError,
    TruncatedError,
)
from browseruse_bench.records.base import content_key
from browseruse_bench.records.judgement import Finding

Mode = Literal["whole", "per_item", "divide"]
VERSION = "2"
MAX_REFS = 200
"""How many calls a judgement names."""
TAKEN_APART = (TooLongError, TruncatedError, RefusalError)
"""What an agent could bring about by the length or the content of its trace."""


class FindingsJudge:
    """Grades traces against rubrics by what a model finds in them."""

    basis: Literal["findings"] = "findings"

    def __init__(
        self,
        model: Model,
        *,
        mode: Mode = "whole",
        params: Params | None = None,
        budget: Budget | None = None,
        by_code: bool = True,
        restricted: bool = False,
        bundler: Bundler | None = None,
    ) -> None:
        """A judge.

        Args:
            model: who reads.
            mode: `whole`: one call for a trace; `per_item`: one for each item; `divide`: the
                trace is rated piece by piece first. The other two fall back on it.
            params: how the model answers.
            budget: how much of a trace one request holds.
            by_code: whether items with a check are settled by code.
            restricted: whether the traces hold restricted text.
            bundler: shares what is made ready with other judges, which then have the same budget
                and the same `by_code`.
        """
        self.model = model
        self.mode: Mode = mode
        self.params = params or Params()
        self.restricted = restricted
        self._bundler = bundler or Bundler(budget or Budget(), by_code=by_code)

    @property
    def label(self) -> str:
        """What results call it."""
        return self.model.id.label

    @property
    def protocol(self) -> str:
        """Its name and rules, for people."""
        return f"findings/{VERSION} {self.mode}"

    @property
    def judge_key(self) -> str:
        """Identity of everything that decides, beside the trace and the rubric."""
        return content_key(
            {
                "judge": "findings",
                "mode": self.mode,
                "model": self.model.id.key,
                "params": self.params.as_json(),
                "prompts": prompts.hashes(),
                "schema": [reply.schema(["item"], conduct=True), RATINGS],
                "budget": asdict(self._bundler.budget),
                "by_code": self._bundler.by_code,
                "versions": {
                    "findings": VERSION,
                    "prepare": prepare.VERSION,
                    "reply": reply.VERSION,
                    "citations": citations.VERSION,
                    "checks": checks.VERSION,
                    "matcher": matcher.VERSION,
                },
            }
        )

    async def judge(self, case: Case) -> Verdict:
        """Findings on one attempt.

        Raises:
            GraderError: the infrastructure ended the attempt, or the rubric cannot be used.
            DataError: the trace is damaged.
            BudgetError: the budget does not allow the next call.
            PendingError: a call waits in a batch; the same work later goes on.
        """
        bundle = await self._bundler.get(case)
        if bundle.nothing_done:
            return _verdict(bundle, _nothing(bundle), Account(), {"mode": "none"})
        account = Account()
        asker = Asker(
            model=self.model,
            params=self.params,
            sample=case.sample,
            restricted=self.restricted,
            account=account,
        )
        try:
            answer = await self._answer(asker, bundle)
        except PendingError:
            raise
        except ModelError as error:
            return _fault(bundle, account, error)
        mode = "divide" if "divided" in answer.details else self.mode
        return _verdict(bundle, answer, account, {"mode": mode, **answer.details})

    async def _answer(self, asker: Asker, bundle: Bundle) -> Answer:
        why = "asked for" if self.mode == "divide" else bundle.clipped
        if not why:
            ask = per_item if self.mode == "per_item" else at_once
            try:
                return await ask(asker, bundle)
            except TAKEN_APART as error:
                why = f"{type(error).__name__}: {error}"[:300]
        return await divide(asker, bundle, why)


def _nothing(bundle: Bundle) -> Answer:
    """Whoever does nothing, earns nothing, and costs nothing."""
    return Answer(
        findings=tuple(
            Finding(
                item=item.id,
                claim="The agent did nothing.",
                status="not_assessable",
                reason=checks.ABSENT_SCOPE,
            )
            for item in bundle.asked
        ),
        conduct=Conduct(),
        left_out=(),
    )


def _verdict(bundle: Bundle, answer: Answer, account: Account, details: dict[str, Any]) -> Verdict:
    every = {finding.item: finding for finding in (*answer.findings, *bundle.settled)}
    conduct = answer.conduct
    return Verdict(
        findings=tuple(every[item.id] for item in bundle.rubric.items),
        integrity=(*bundle.integrity, *conduct.integrity),
        attribution=conduct.attribution,
        reading=conduct.reading,
        usage=account.usage,
        raw_ref=account.raw_ref,
        details={
            **details,
            **_counts(account),
            **({"left_out": list(answer.left_out)} if answer.left_out else {}),
            **({"causes_dropped": conduct.n_dropped} if conduct.n_dropped else {}),
            **({"by_code": [f.item for f in bundle.settled]} if bundle.settled else {}),
        },
    )


def _counts(account: Account) -> dict[str, Any]:
    return {
        "calls": account.n_calls,
        "citations": {
            "n": account.n_citations,
            "holding": account.n_holding,
            "n_at_first": account.n_first_citations,
            "holding_at_first": account.n_first_holding,
        },
        "asked_again": {"form": account.n_malformed, "places": account.n_open},
        **({"raw_refs": account.refs[:MAX_REFS]} if len(account.refs) > 1 else {}),
    }


def _fault(bundle: Bundle, account: Account, error: ModelError) -> Verdict:
    """Why there is no verdict; what code found without the judge stands all the same."""
    kind = type(error).__name__.removesuffix("Error").lower()
    keep_raw = account.raw_ref is None and bool(account.raw)
    return Verdict(
        integrity=bundle.integrity,
        usage=account.usage,
        raw_ref=account.raw_ref,
        details={
            "fault": kind,
            **_counts(account),
            **({"raw": account.raw[:MAX_RAW]} if keep_raw else {}),
        },
        reason="judge_fault",
        message=" ".join(str(error).split())[:500],
    )
