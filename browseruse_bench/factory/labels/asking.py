"""What a prompt and a model say of the sealed tasks; no label is read for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from browseruse_bench.errors import IncompleteError
from browseruse_bench.factory.labels.lines import LabelTask
from browseruse_bench.factory.search.labeller import Prompt, label
from browseruse_bench.models.base import (
    MalformedError,
    Model,
    OutageError,
    PendingError,
    RefusalError,
    TooLongError,
    TruncatedError,
)
from browseruse_bench.records.label import Verdict

IN_FLIGHT = 16


async def verdicts_of(
    model: Model,
    prompt: Prompt,
    tasks: Sequence[LabelTask],
    *,
    tell: Callable[[int, int], None] = lambda done, n: None,
) -> dict[str, Verdict | None]:
    """Key of each task -> what the model says; None: it gave nothing that can be used.

    Raises:
        IncompleteError: the provider did not answer for some; answers that came are kept.
        BudgetError: the budget does not allow it.
        ConfigError: the model is not cleared for restricted text.
    """
    found: dict[str, Verdict | None] = {}
    away: list[Exception] = []
    places = asyncio.Semaphore(IN_FLIGHT)

    async def ask(task: LabelTask) -> None:
        async with places:
            try:
                said, _ = await label(model, prompt, task.text)
                found[task.key] = said.verdict
            except (MalformedError, RefusalError, TooLongError, TruncatedError):
                found[task.key] = None
            except (OutageError, PendingError) as error:
                away.append(error)
        tell(len(found), len(tasks))

    try:
        async with asyncio.TaskGroup() as group:
            for task in tasks:
                group.create_task(ask(task))
    except BaseExceptionGroup as errors:
        # One is enough: the others are of the same kind, or were cut off by it.
        raise errors.exceptions[0] from None
    if away:
        raise IncompleteError(
            f"{len(away)} of {len(tasks)} sealed tasks have no answer ({away[0]}); nothing was "
            "looked at; the same command asks them again"
        )
    return found
