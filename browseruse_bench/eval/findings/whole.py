"""The whole trace in every request: one call for everything, or one for each item."""

from __future__ import annotations

from browseruse_bench.eval.findings import prompts
from browseruse_bench.eval.findings.ask import Asker, together
from browseruse_bench.eval.findings.bundle import (
    Answer,
    Bundle,
    conduct_question,
    left_out_text,
)
from browseruse_bench.eval.findings.settle import Settled
from browseruse_bench.models.base import Message, PendingError


def _up_to(bundle: Bundle, question: str) -> tuple[Message, ...]:
    """A conversation up to its question, which is all that differs between two of them."""
    whole = bundle.whole
    return bundle.messages("judge", whole.parts, left_out_text(whole.left_out), question)


async def at_once(asker: Asker, bundle: Bundle) -> Answer:
    """Everything by one call.

    Raises:
        CallError: it gave nothing to use.
    """
    items = [item.id for item in bundle.asked]
    question = (
        prompts.fill("whole", items=", ".join(items)) if items else conduct_question(bundle, ())
    )
    settle = bundle.settler(bundle.whole.shown)
    settled = await asker.findings(_up_to(bundle, question), items, settle, conduct=True)
    return Answer(
        findings=settled.findings, conduct=settled.conduct, left_out=bundle.whole.left_out
    )


async def per_item(asker: Asker, bundle: Bundle) -> Answer:
    """One call for each item, and one more for honesty and causes.

    The first is waited for, so that the others find the trace in the provider's cache.

    Raises:
        CallError: one of them gave nothing to use: then there is no verdict at all.
    """
    settle = bundle.settler(bundle.whole.shown)

    async def one(item: str) -> Settled:
        question = prompts.fill("items", items=item)
        return await asker.findings(_up_to(bundle, question), [item], settle, conduct=False)

    ids = [item.id for item in bundle.asked]
    first: list[Settled] = []
    if ids:
        try:
            first = [await one(ids[0])]
        except PendingError:
            # All of them are put into the batch now, and not one in each round.
            await together(one(item) for item in ids[1:])
            raise
    others = await together(one(item) for item in ids[1:])
    findings = tuple(finding for s in (*first, *others) for finding in s.findings)
    question = conduct_question(bundle, findings)
    last = await asker.findings(_up_to(bundle, question), [], settle, conduct=True)
    return Answer(findings=findings, conduct=last.conduct, left_out=bundle.whole.left_out)
