"""From the options that name judges to who judges."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

from browseruse_bench.errors import ConfigError
from browseruse_bench.eval.evaluate import Asking

if TYPE_CHECKING:
    from browseruse_bench.eval.judges import Judge
    from browseruse_bench.models.base import Model

CALLS = "calls"
"""Folder of the experiments folder that keeps every call: what was asked once is not paid again."""


@dataclass(frozen=True, kw_only=True)
class JudgeOptions:
    """What `options.judges` was given."""

    judge: str | None = None
    panel: tuple[str, ...] = ()
    per_item: bool = False
    evidence: Literal["whole", "divide"] = "whole"
    judge_all: bool = False
    judge_budget_usd: float | None = None
    batch: Path | None = None
    """Where calls are collected, to be answered together; None: they are made."""

    def __post_init__(self) -> None:
        if self.judge is not None and self.panel:
            raise ConfigError("--judge and --panel exclude each other")
        if self.per_item and self.evidence == "divide":
            raise ConfigError(
                "--per-item and --evidence divide exclude each other: divided "
                "evidence is judged item by item anyway"
            )
        if self.judge_budget_usd is not None and not self.named:
            raise ConfigError("--judge-budget-usd is for judges: name one with --judge")
        if self.batch is not None and not self.named:
            raise ConfigError("--batch collects the calls of judges: name one with --judge")
        if self.batch is not None and self.judge_budget_usd is not None:
            raise ConfigError(
                "--batch asks nobody, so --judge-budget-usd limits nothing; give --budget-usd to "
                "`bubench models batch submit`"
            )

    @property
    def named(self) -> bool:
        """Whether a judge was named."""
        return self.judge is not None or bool(self.panel)

    def opened(self, *, scope: str, experiments: Path) -> tuple[Judge, Model] | None:
        """The judge, and the model that a benchmark's own evaluator asks; None: none was named.

        Args:
            scope: what the budget is for: it holds over all commands with the same scope.
            experiments: the experiments folder; calls are kept below it.

        Raises:
            ConfigError: a model, its key, or a price that a budget needs is missing.
        """
        if not self.named:
            return None
        from browseruse_bench.eval.findings.judge import FindingsJudge
        from browseruse_bench.eval.findings.panel import PanelJudge
        from browseruse_bench.models.open import open_model
        from browseruse_bench.models.spending import Budget

        mode = "per_item" if self.per_item else self.evidence
        budget = Budget(self.judge_budget_usd, scope=scope, name="--judge-budget-usd")
        what = "--panel" if self.panel else "--judge"
        models = [
            open_model(name, calls=experiments / CALLS, budget=budget, what=what, batch=self.batch)
            for name in self.panel or (cast("str", self.judge),)
        ]
        by_code = not self.judge_all
        if self.panel:
            return PanelJudge(models, mode=mode, by_code=by_code), models[0]
        return FindingsJudge(models[0], mode=mode, by_code=by_code), models[0]

    def asking(
        self, *, scope: str, experiments: Path, concurrency: int = 2, timeout_s: float = 120
    ) -> Asking:
        """How attempts are judged; raises as `opened`."""
        opened = self.opened(scope=scope, experiments=experiments)
        judge, model = opened or (None, None)
        return Asking(judge=judge, model=model, concurrency=concurrency, timeout_s=timeout_s)


def spent_words(calls: Path) -> list[str]:
    """What this process paid for models, and what it took from the ledger instead; one line for
    each purpose. What a reused answer cost is part of its result and was not spent now.
    """
    from browseruse_bench.models.spending_log import spending_at, summed
    from browseruse_bench.report.render import money

    spending = spending_at(calls)
    now, reused = spending.now, spending.reused
    lines: list[str] = []
    for purpose in sorted({what.purpose for what in (*now, *reused)}):
        paid = summed(t for what, t in now.items() if what.purpose == purpose)
        kept = summed(t for what, t in reused.items() if what.purpose == purpose)
        words = f"{purpose}: {paid.n_calls} calls"
        if paid.n_calls:
            words += f", {money(paid.cost_usd, paid.known_usd, paid.n_unpriced)} spent now"
        if kept.n_calls:
            cost = money(kept.cost_usd, kept.known_usd, kept.n_unpriced)
            words += f"; {kept.n_calls} answers from the ledger, which had cost {cost}"
        lines.append(words)
    return lines
