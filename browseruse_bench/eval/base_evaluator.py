"""The class that a benchmark's own `evaluator.py` derives from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from browseruse_bench.errors import ConfigError

if TYPE_CHECKING:
    from browseruse_bench.models.base import Reply, Request


class NoReferenceError(ValueError):
    """The row has nothing to compare with: the attempt is ungraded (`no_reference`)."""


class BaseEvaluator(ABC):
    """Grades the attempts of one benchmark.

    It is made once per process, without arguments, and asked for one attempt at a time, in
    a process of its own: what it prints goes to the log, an exception or a reply that is
    not well formed leaves that one attempt ungraded (`evaluator_error`), never at zero, and
    so does a call that takes longer than `bubench eval --timeout`.

    `result` holds plain JSON values:

    | key | value |
    |---|---|
    | `task_id` | the id of the task |
    | `task` | its row of tasks.json, with every field that the row has |
    | `answer` | the agent's final answer, or None if it gave none |
    | `status` | how the attempt ended: `finished`, `gave_up`, `step_limit`, `time_limit`, `budget_limit` or `agent_error` |
    | `steps` | one dict per action: `index`, `calls` (`name`, `arguments`, `result`, `error`), `thought`, `page_before` and `page_after` (`url`, `title`, `tabs`), `observations` (`kind`, `ref`), `errors`, `t0`, `t1` in seconds since the start |
    | `final` | the state when the attempt settled, in the form of a step |
    | `trace_dir` | the folder of the frozen trace; `evidence/<ref>` is what an observation names, `files/` what the agent saved. Read only: a file that is written there damages the trace |
    | `metrics` | `n_steps`, `wall_s`, `cost_usd` (None: unknown), `usage` (one dict per model) |
    """

    version: ClassVar[str] = "1"
    """Part of the identity of every verdict, beside the source of the evaluator. Change it
    when something else that decides (a data file, say) changes."""

    _ask: Callable[[Request], Reply] | None = None
    """Set by the process that this evaluator runs in."""

    def ask(self, request: Request) -> Reply:
        """What the model of `bubench eval --judge` says, asked by the harness: under its call
        ledger, budget and limits, and without its key in this process.

        May be called from several threads. The time that it takes does not count against
        `--timeout`; what it costs is part of the verdict's usage. Leave a failed call to the
        harness: the attempt is then ungraded (`judge_fault`), never a zero.

        Args:
            request: `browseruse_bench.models.base.Request`: messages with texts and images, a
                JSON schema if a value is wanted. Equal requests of other `sample` numbers are
                asked anew; a regrade of the trace asks all of them anew.

        Raises:
            ModelError: no usable reply came.
            ConfigError: no model was named.
        """
        if self._ask is None:
            raise ConfigError("this evaluator asks a model: name it with --judge provider:name")
        return self._ask(request)

    @abstractmethod
    def evaluate_task(self, task_id: str, result: dict[str, Any]) -> dict[str, Any]:
        """Evaluate a single task.

        Returns:
            `predicted_label` 0 or 1, `score` 0..100, and optionally `evaluation_details`,
            a dict. Other keys are kept with the details.
        """

    def _calculate_score(self, result: dict[str, Any]) -> float:
        """The share, 0..100, of the row's `expected_result` that the answer states.

        This is the matcher that grades tasks without a rubric and without an evaluator.

        Raises:
            NoReferenceError: the row has no `expected_result`.
        """
        from browseruse_bench.eval.matcher import match

        expected = result["task"].get("expected_result")
        if expected is None:
            raise NoReferenceError(
                f"task '{result['task_id']}' has no expected_result to compare with"
            )
        return 100 * match(expected, result["answer"]).share
